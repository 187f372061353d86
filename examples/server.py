"""Serves the language model over HTTP: several requests at once, each in a separate session.

    python examples/server.py --sessions=4 --port=8000
    curl -N localhost:8000/generate -d '{"prompt": "The with statement", "tokens": 40}'

There is one program, whose weights are on the device once, and `--sessions` threads, each with a
session and a stream. A request waits in a queue of length `--waiting` for a free session. The
answer is JSON lines, one for each token as soon as it is made. Needs
`pip install 'gputensor[server]'`.

- If the queue is full, the answer is status 503 with Retry-After, at once.
- If the client disconnects, its session stops within a token, or the waiting request is skipped.
- If the device runs out of memory, the answer is status 507, or an `error` line if text was sent
  before. The request's memory is freed, and other requests continue.
"""

import argparse
import asyncio
import contextlib
import json
import queue
import threading
from pathlib import Path

import language_model as model
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

import gputensor as gt

MOST_TOKENS, LONGEST_BODY = 2000, 1 << 16


class Request:
    """A text to write. The thread of a session fills `lines`; the event loop reads them."""

    def __init__(self, prompt, count, how, seed):
        self.prompt, self.count, self.how, self.seed = prompt, count, how, seed
        self.loop, self.lines = asyncio.get_running_loop(), asyncio.Queue()
        self.is_cancelled = False

    def put(self, **line):
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self.loop.call_soon_threadsafe(self.lines.put_nowait, line)


class Sessions:
    """Threads with sessions of one program, and their queue of requests.

    It opens `count` sessions, or as many as fit the device's memory, but at least one.
    """

    def __init__(self, program, count, waiting):
        self.program, self.tokens = program, model.Tokens()
        self.waiting = queue.Queue(waiting)
        self.busy, self.answered = set(), 0
        self.sessions = []
        for _session in range(count):
            try:
                self.sessions.append(program.session())
            except gt.OutOfMemoryError:
                if not self.sessions:
                    raise
                break
        self.threads = [
            threading.Thread(target=self.serve, args=(one,), daemon=True) for one in self.sessions
        ]
        for thread in self.threads:
            thread.start()

    def add(self, request):
        """Queue a request, and return whether there was room."""
        try:
            self.waiting.put_nowait(request)
        except queue.Full:
            return False
        return True

    def serve(self, session):
        """Answer requests in the thread of a session until None comes."""
        stream = gt.Stream(self.program.device)
        with gt.device(self.program.device), gt.stream(stream), session:
            while (request := self.waiting.get()) is not None:
                if request.is_cancelled:
                    continue
                self.busy.add(request)
                try:
                    self.answer(request, session)
                except gt.OutOfMemoryError as error:
                    request.put(error="out of memory", detail=str(error).splitlines()[0])
                except Exception as error:  # a request must not end the thread
                    request.put(error=type(error).__name__, detail=str(error))
                finally:
                    self.busy.discard(request)
                    self.answered += 1

    def answer(self, request, session):
        session.state["random"][...] = gt.random.generator(seed=request.seed)
        written = model.stream(session, request.prompt, request.count, request.how)
        for number in written:
            if request.is_cancelled:
                return
            request.put(text=self.tokens.text([number]))
        request.put(done=True)

    def close(self):
        """End the threads, and give the memory of the sessions back."""
        for request in list(self.busy):
            request.is_cancelled = True
        for _thread in self.threads:
            self.waiting.put(None)
        for thread in self.threads:
            thread.join()


def number(found, name, default, low, high):
    """Return a checked number of a request's body."""
    value = found.get(name, default)
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{name}: got {value!r}; expected a number from {low} to {high}")
    return value


def parsed(body, tokens):
    """Return the Request of a body, or raise ValueError with the reason."""
    found = json.loads(body)
    if not isinstance(found, dict) or not isinstance(found.get("prompt"), str):
        raise ValueError("prompt: got none; expected an object with a prompt")
    prompt = tokens.numbers(found["prompt"])
    if len(prompt) < 2:
        raise ValueError("prompt: got fewer than two tokens; expected a word")
    how = (
        number(found, "temperature", 0.7, 0, 10),
        number(found, "top_k", 40, 1, model.BEST),
        number(found, "top_p", 0.9, 0, 1),
    )
    count = int(number(found, "tokens", 60, 1, MOST_TOKENS))
    return Request(prompt, count, how, int(number(found, "seed", 0, 0, 2**63 - 1)))


def application(sessions):
    """Return the application; closing it closes the sessions."""

    async def generate(http):
        if int(http.headers.get("content-length", 0)) > LONGEST_BODY:
            return JSONResponse({"error": "the body is too long"}, 413)
        try:
            request = parsed(await http.body(), sessions.tokens)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        if not sessions.add(request):
            return JSONResponse({"error": "all sessions are busy"}, 503, {"Retry-After": "1"})
        first = await until_gone(http, request)
        if first is None:
            return JSONResponse({"error": "cancelled"}, 499)
        if "error" in first:
            status = 507 if first["error"] == "out of memory" else 500
            return JSONResponse(first, status)
        return StreamingResponse(lines(request, first), media_type="application/jsonl")

    async def until_gone(http, request):
        """Return the first line of an answer, or None if the client disconnects before it."""
        line = asyncio.ensure_future(request.lines.get())
        try:
            while not line.done():
                await asyncio.wait([line], timeout=0.1)
                if not line.done() and await http.is_disconnected():
                    return None
            return line.result()
        finally:
            if not line.done():
                request.is_cancelled = True
                line.cancel()

    async def lines(request, line):
        try:
            while True:
                yield json.dumps(line) + "\n"
                if "text" not in line:
                    return
                line = await request.lines.get()
        finally:
            request.is_cancelled = True  # even if the client disconnects

    async def health(_http):
        facts = {"sessions": len(sessions.sessions), "busy": len(sessions.busy)}
        facts |= {"waiting": sessions.waiting.qsize(), "answered": sessions.answered}
        facts["bytes"] = gt.memory.memory_allocated(sessions.program.device)
        return JSONResponse(facts)

    @contextlib.asynccontextmanager
    async def lifespan(_application):
        yield
        await asyncio.to_thread(sessions.close)

    routes = [Route("/generate", generate, methods=["POST"]), Route("/health", health)]
    return Starlette(routes=routes, lifespan=lifespan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--waiting", type=int, default=16)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--program", type=Path, default=Path("out/language.gtp"))
    options = parser.parse_args()
    if not options.program.exists():
        options.program.parent.mkdir(parents=True, exist_ok=True)
        with model.compiled("int4:128") as made:
            made.save(options.program)
    with gt.load_program(options.program) as program:
        sessions = Sessions(program, options.sessions, options.waiting)
        uvicorn.run(application(sessions), host=options.host, port=options.port)


if __name__ == "__main__":
    main()

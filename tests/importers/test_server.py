"""The server example under real requests: streams, queueing, disconnects, out of memory."""

import http.client
import importlib
import json
import re
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

import gputensor as gt

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("starlette", reason="pip install 'gputensor[server]' runs these")
uvicorn = pytest.importorskip("uvicorn", reason="pip install 'gputensor[server]' runs these")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        yield importlib.import_module("server")
    finally:
        sys.path.remove(str(ROOT / "examples"))
        for name in ("server", "language_model"):
            sys.modules.pop(name)


@pytest.fixture(scope="module")
def program(server):
    with gt.device("host"), server.model.compiled("int4:128") as program:
        yield program


class Running:
    """A server on a free port, with two sessions and room for two more requests."""

    def __init__(self, server, program):
        self.sessions = server.Sessions(program, 2, 2)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        config = uvicorn.Config(server.application(self.sessions), log_level="warning", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))
        self.thread.start()

    def __enter__(self):
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_error):
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()

    def ask(self, method="POST", path="/generate", body=None):
        """Send a request; return (connection, response), with the body of the response unread."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body))
        return connection, connection.getresponse()

    def answer(self, **body):
        """Send a request; return (status, lines) of the whole answer."""
        connection, response = self.ask(body=body)
        lines = [json.loads(line) for line in response.read().splitlines()]
        connection.close()
        return response.status, lines

    def health(self):
        connection, response = self.ask("GET", "/health")
        found = json.loads(response.read())
        connection.close()
        return found

    def until(self, **wanted):
        """Wait until the server's health has these values."""
        end = time.monotonic() + 30
        while any(self.health()[name] != value for name, value in wanted.items()):
            assert time.monotonic() < end, (self.health(), wanted)
            time.sleep(0.02)


@pytest.fixture
def running(server, program):
    with Running(server, program) as found:
        yield found


def text_of(lines):
    assert lines[-1] == {"done": True}
    return "".join(line["text"] for line in lines[:-1])


def test_answers_are_those_of_the_model_alone(server, program, running):
    """Six requests at once in two sessions: each gets the same text as alone with its seed."""
    tokens, found = server.model.Tokens(), {}

    def ask(seed):
        status = 503
        while status == 503:
            status, lines = running.answer(prompt="The with statement", tokens=25, seed=seed)
        found[seed] = text_of(lines)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prompt = tokens.numbers("The with statement")
    for seed, text in found.items():
        with gt.device("host"), program.session() as session:
            session.state["random"][...] = gt.random.generator(seed=seed)
            alone = list(server.model.stream(session, prompt, 25, (0.7, 40, 0.9)))
        assert text == tokens.text(alone)
    assert len(set(found.values())) > 3


def test_the_request_of_the_page_is_answered(running):
    page = (ROOT / "docs" / "examples" / "server.md").read_text()
    (body,) = re.findall(r"generate -d '(.*)'", page)
    connection, response = running.ask(body=body.encode())
    assert response.status == 200 and response.read().endswith(b'{"done": true}\n')
    connection.close()
    assert set(running.health()) == set(json.loads(re.findall(r'^\{"sessions".*', page, re.M)[0]))


def test_text_is_streamed_as_it_is_generated(running):
    connection, response = running.ask(body={"prompt": "The with", "tokens": 1500})
    assert response.status == 200 and "text" in json.loads(response.readline())
    assert running.health()["busy"] == 1
    connection.close()
    running.until(busy=0)


def test_requests_beyond_the_queue_are_refused(running):
    """Two are served and two wait; the fifth is refused at once. Later the waiting ones run."""
    asked = [running.ask(body={"prompt": "The with", "tokens": 1500}) for _request in range(2)]
    sent = []
    for _request in range(2):
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        connection.request("POST", "/generate", json.dumps({"prompt": "The with", "tokens": 3}))
        sent.append(connection)
    running.until(busy=2, waiting=2)
    connection, response = running.ask(body={"prompt": "The with"})
    assert (response.status, response.headers["Retry-After"]) == (503, "1")
    connection.close()
    for connection, _response in asked:
        connection.close()
    for connection in sent:
        response = connection.getresponse()
        assert response.status == 200 and response.read().endswith(b'{"done": true}\n')
        connection.close()
    running.until(busy=0, waiting=0)


def test_a_client_that_leaves_the_queue_takes_no_turn(running):
    asked = [running.ask(body={"prompt": "The with", "tokens": 1500}) for _request in range(2)]
    waiting = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    waiting.request("POST", "/generate", json.dumps({"prompt": "The with", "tokens": 1500}))
    running.until(busy=2, waiting=1)
    waiting.close()
    (left,) = running.sessions.waiting.queue
    end = time.monotonic() + 30
    while not left.is_cancelled:
        assert time.monotonic() < end
        time.sleep(0.02)
    answered = running.health()["answered"]
    for connection, _response in asked:
        connection.close()
    running.until(busy=0, waiting=0, answered=answered + 2)


def test_out_of_memory_is_an_answer(running):
    """With no memory left below a limit a request fails; once there is memory it works."""
    prompt = " ".join(["with"] * 150)
    device = gt.Device("host")
    gt.memory.empty_cache()
    gt.memory.set_per_process_memory_fraction(1e-9, device)
    held, nbytes = [], 1 << 24
    while nbytes >= 512:
        try:
            held.append(gt.empty(nbytes, dtype=gt.uint8, device=device))
        except gt.OutOfMemoryError:
            nbytes //= 2
    try:
        status, lines = running.answer(prompt=prompt, tokens=3)
    finally:
        held.clear()
        gt.memory.set_per_process_memory_fraction(1.0, device)
    assert status == 507 and lines[0]["error"] == "out of memory"
    assert running.answer(prompt=prompt, tokens=3)[0] == 200
    running.until(busy=0)


def test_as_many_sessions_as_fit(server, program):
    """All sessions that fit in memory are opened; one is enough."""
    asked, real = [], program.session

    class Short:
        device = program.device

        def session(self):
            asked.append(1)
            if len(asked) > 1:
                raise gt.OutOfMemoryError("planted")
            return real()

    sessions = server.Sessions(Short(), 5, 1)
    assert (len(asked), len(sessions.sessions)) == (2, 1)
    sessions.close()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"no json", "Expecting value"),
        (b"[1]", "expected an object with a prompt"),
        (b'{"prompt": ""}', "fewer than two tokens"),
        (b'{"prompt": "The with", "tokens": 0}', "tokens: got 0; expected a number from 1 to 2000"),
        (b'{"prompt": "The with", "top_p": "all"}', "top_p: got 'all'"),
        (b'{"prompt": "The with", "seed": NaN}', "seed: got nan"),
    ],
)
def test_wrong_requests_are_refused(running, body, text):
    connection, response = running.ask(body=body)
    assert response.status == 400 and text in json.loads(response.read())["error"]
    connection.close()

"""``gputensor bench``: times a function of a program, as a whole and call by call."""

import json
import statistics
import threading
import time

import numpy as np

from gputensor.cli.input_error import InputError
from gputensor.cli.run import arguments_of, function_named, input_types, opened
from gputensor.cli.value_text import described, type_of
from gputensor.errors import argument_error

__all__ = ["register"]

MODES = ("graph", "stream")
MOST_THREADS = 256
COPIED = 1 << 28  # bytes of the copy that measures the copy rate; a 16th on a host device


def register(subparsers):
    """Add ``bench`` to the command line."""
    parser = subparsers.add_parser(
        "bench",
        help="time a function of a program",
        description="Times a function of a program in rounds of runs, and the host time to queue "
        "a run. Values are written as for gputensor run; without --input, all arguments are zeros "
        "of the largest size.",
        allow_abbrev=False,
    )
    parser.add_argument("--module", metavar="FILE", help="the program, a .gtp file")
    parser.add_argument("--function", metavar="NAME", help="optional if there is only one")
    parser.add_argument("--device", metavar="URI", help="cuda, cuda://1, cuda://GPU-UUID or host")
    parser.add_argument("--weights", metavar="FILE", help="weights that are not in the program")
    parser.add_argument("--verify", action="store_true", help="compare weights with their hashes")
    repeats = {"action": "append", "default": [], "metavar": "VALUE"}
    parser.add_argument("--input", **repeats, help="an argument; repeat it for each, in order")
    text = "least time of all rounds together, as 1s, 200ms or 0.5 (default: 1s)"
    parser.add_argument("--min_time", default="1s", metavar="TIME", help=text)
    parser.add_argument("--repetitions", default="5", metavar="N", help="rounds (default: 5)")
    text = "runs before the first round (default: 3)"
    parser.add_argument("--warmup", default="3", metavar="N", help=text)
    text = "graph: one launch for each run where possible; stream: one launch for each call"
    parser.add_argument("--mode", choices=MODES, default="graph", help=text)
    text = "threads, each with its own session and stream (default: 1)"
    parser.add_argument("--concurrency", default="1", metavar="N", help=text)
    text = "also show the time, bytes and share of the copy rate of each call"
    parser.add_argument("--per_call", action="store_true", help=text)
    parser.add_argument("--flagfile", metavar="FILE", help="read more options, one per line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options):
    """Time the function and print the results. Returns the exit code."""
    if options.module is None:
        raise argument_error(InputError, "--module", None, "a .gtp file")
    limits = {
        "repetitions": number_of(options, "repetitions", 1, 10_000),
        "warmup": number_of(options, "warmup", 0, 10_000),
        "concurrency": number_of(options, "concurrency", 1, MOST_THREADS),
    }
    seconds = seconds_of(options.min_time)
    with opened(options) as program:
        program.uses_graphs = options.mode == "graph"
        name = function_named(program.functions, options.function)
        options.input = options.input or zeros_of(program.variants[name])
        arguments = arguments_of(program, name, options.input)
        try:
            found = timed(program, name, arguments, limits, seconds)
        except (TypeError, ValueError) as error:
            raise InputError(f"--input: {error}") from None
        if options.per_call:
            found["copy_rate"] = copy_rate(program.device)
            found["calls"] = calls_of(program, name, arguments, found["copy_rate"])
    print(json.dumps(found) if options.json else as_text(found))
    return 0


def number_of(options, name, least, most):
    """Return the value of an option as a number."""
    text = getattr(options, name)
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:9]) <= most:
        rule = f"an integer from {least} to {most}"
        raise argument_error(InputError, f"--{name}", described(text), rule)
    return int(text)


def seconds_of(text):
    """Return the seconds of a text such as 1s, 200ms or 0.5."""
    units = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "": 1.0}
    unit = next(name for name in units if text.endswith(name))
    try:
        seconds = float(text[: len(text) - len(unit)]) * units[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        rule = "at most 3600 seconds, as 1s, 200ms or 0.5"
        raise argument_error(InputError, "--min_time", described(text), rule)
    return seconds


def zeros_of(functions):
    """Return the texts of --input for a function: zeros of its largest sizes."""
    found = []
    for dtype, shape in input_types(functions):
        sizes = tuple(part if isinstance(part, int) else part[-1] for part in shape)
        found.append(f"{type_of(dtype, sizes)}=0")
    return found


def timed(program, name, arguments, limits, seconds):
    """Time runs in rounds; return the results, with times in seconds."""
    rounds = limits["repetitions"]
    threads = [Runner(program, name, arguments) for _ in range(limits["concurrency"])]
    for one in threads:
        one.runs(limits["warmup"])
    count, (spent, _queued) = 1, round_of(threads, 1)
    while spent < seconds / rounds and count < 1 << 24:
        count = min(1 << 24, max(2 * count, int(1.2 * count * seconds / rounds / max(spent, 1e-9))))
        spent, _queued = round_of(threads, count)
    times = [round_of(threads, count) for _ in range(rounds)]
    total = count * len(threads)
    walls = sorted(spent / total for spent, _queued in times)
    graphs = [sizes["graph"] for sizes in program.report()[name]["sizes"]]
    for one in threads:
        one.session.close()
    return {
        "function": name,
        "device": str(program.device),
        "runs": total * rounds,
        "threads": len(threads),
        "graph": graphs[-1] if graphs else "none",
        "median": statistics.median(walls),
        "least": walls[0],
        "most": walls[-1],
        "host": statistics.median(queued / count for _spent, queued in times),
    }


class Runner:
    """A caller with its own session and stream."""

    def __init__(self, program, name, arguments):
        from gputensor.streams import Stream

        self.session = program.session()
        self.name, self.arguments = name, arguments
        self.stream = Stream(program.device)
        self.queued = 0.0
        self.error = None

    def runs(self, count):
        """Run the function `count` times and wait; keep the time that queueing took."""
        from gputensor.streams import stream

        try:
            with stream(self.stream):
                start = time.perf_counter()
                for _ in range(count):
                    self.session.call(self.name, (), self.arguments)
                self.queued = time.perf_counter() - start
                self.stream.synchronize()
        except BaseException as error:
            self.error = error


def round_of(runners, count):
    """Run all at once; return the time until the last ended, and the mean queueing time of one."""
    threads = [threading.Thread(target=one.runs, args=(count,)) for one in runners[1:]]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    runners[0].runs(count)
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - start
    for one in runners:
        if one.error is not None:
            raise one.error
    return spent, statistics.mean(one.queued for one in runners)


def copy_rate(device):
    """Return the bytes that a copy of a large tensor reads and writes in a second."""
    from gputensor.streams import current_stream
    from gputensor.tensor.manipulation import empty

    nbytes = COPIED if "cuda" in str(device) else COPIED // 16
    source, target = (empty((nbytes,), dtype="uint8", device=device) for _ in range(2))
    stream, best = current_stream(device), np.inf
    source[...] = 0
    for _ in range(5):
        stream.synchronize()
        start = time.perf_counter()
        for _ in range(4):
            target[...] = source
        stream.synchronize()
        best = min(best, (time.perf_counter() - start) / 4)
    return 2 * nbytes / best


def calls_of(program, name, arguments, rate):
    """Time each call of the function; return a dict for each."""
    from gputensor.programs.running.call_times import call_times
    from gputensor.streams import Stream, synchronize
    from gputensor.tensor.manipulation import empty

    inputs = program.leaves(name, (), arguments)
    binding = program.binding(name, tuple(one.shape for one in inputs))
    arena = empty((max(binding.arena_nbytes, 1),), dtype="uint8", device=program.device)
    outputs = [empty(shape, dtype=dtype, device=program.device) for dtype, shape in binding.outputs]
    states = {one: program.first_state(one, None) for one in program.data.states}
    addresses = [one.data_ptr() for one in (arena, *inputs, *outputs)]
    for piece in binding.pieces[len(addresses) :]:
        held = program.weights if piece.kind == "weight" else states
        addresses.append(held[piece.name].data_ptr())
    weights = {one: program.weights[one].data_ptr() for one in binding.region_weights}
    synchronize(program.device)
    found = []
    for call in call_times(binding, tuple(addresses), weights, Stream(program.device)):
        share = call.nbytes / call.seconds / rate if call.seconds else None
        found.append(
            {
                "call": call.name,
                "line": call.line,
                "bytes": call.nbytes,
                "time": call.seconds,
                "share_of_copy_rate": share,
            }
        )
    return found


def as_text(found):
    """Return the results as lines for a person."""
    lines = [
        f"@{found['function']} on {found['device']}: {found['runs']:,} runs"
        + (f" of {found['threads']} threads" if found["threads"] > 1 else ""),
        f"  a run: {microseconds(found['median'])} µs (least {microseconds(found['least'])}, "
        f"most {microseconds(found['most'])}), {1 / found['median']:,.0f} a second",
        f"  to queue it: {microseconds(found['host'])} µs",
        f"  graph: {found['graph']}",
    ]
    if "calls" in found:
        lines.append(f"  copy rate: {found['copy_rate'] / 1e9:,.1f} GB/s")
        lines.append(f"{'µs':>12} {'bytes':>15} {'of the copy rate':>17}  call")
        for call in found["calls"]:
            is_timed = call["time"] is not None
            spent = microseconds(call["time"]) if is_timed else "-"
            share = f"{call['share_of_copy_rate']:.3f}" if is_timed else "-"
            place = f"  {call['line']}" if call["line"] else ""
            lines.append(f"{spent:>12} {call['bytes']:>15,} {share:>17}  {call['call']}{place}")
    return "\n".join(lines)


def microseconds(seconds):
    """Return seconds as microseconds with at least three digits.

    >>> microseconds(1.2345e-6), microseconds(0.25)
    ('1.23', '250,000')
    """
    found = seconds * 1e6
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"

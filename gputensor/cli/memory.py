"""`gputensor memory replay`: shows the memory that the allocator reserves for a recorded trace.

The trace runs through the allocator's own code: on a phantom host device of any capacity (addresses
with no memory behind them, driver calls charged with times measured on a GPU), or on a real GPU.
_alloc/replay reads traces and replays them; this module has the arguments and the two forms of the
output.
"""

import json
import os
from argparse import ArgumentTypeError

from gputensor.cli.input_error import InputError
from gputensor.errors import argument_error

__all__ = ["register"]

# A phantom device uses no memory, so in practice this capacity does not limit a trace.
DEFAULT_CAPACITY = 2**40


def register(subparsers):
    """Add ``memory`` and its verbs to the command line."""
    verbs = subparsers.add_parser(
        "memory", help="replay a recorded trace through the allocator"
    ).add_subparsers(dest="verb", metavar="VERB", required=True)
    replay = verbs.add_parser(
        "replay",
        help="run a recorded malloc/free trace through the allocator",
        description="Run a recorded malloc/free trace through the allocator and print the peaks.",
    )
    replay.add_argument("trace", metavar="TRACE", help="an .npz file (see benchmarks/traces)")
    replay.add_argument(
        "--conf", metavar="CONF", help="allocator options, as in GPUTENSOR_ALLOC_CONF"
    )
    replay.add_argument(
        "--capacity",
        type=parse_capacity,
        metavar="BYTES",
        help="memory of the phantom device; units K, M, G and T are accepted (default: 1T)",
    )
    replay.add_argument(
        "--device",
        choices=("host", "cuda"),
        default="host",
        help="host: a phantom device with modelled driver times (default); cuda: a GPU",
    )
    replay.add_argument("--json", action="store_true", help="print one JSON object")
    replay.set_defaults(run=run_replay)


def parse_capacity(text):
    """Return the number of bytes in a text such as ``80G``.

    >>> parse_capacity("80G"), parse_capacity("85899345920")
    (85899345920, 85899345920)
    """
    from gputensor._driver.settings import LARGEST_HOST, parse_nbytes

    try:
        nbytes = parse_nbytes(text, "BYTES")
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not 0 < nbytes <= LARGEST_HOST:
        raise argument_error(ArgumentTypeError, "BYTES", text, f"1 to {LARGEST_HOST}")
    return nbytes


def run_replay(options):
    """Replay a trace and print the result. Returns the exit code."""
    from gputensor._alloc.replay.trace_file import TraceFileError, read_trace

    if options.capacity is not None and options.device == "cuda":
        raise argument_error(
            InputError, "--capacity", options.capacity, "no such option with --device cuda"
        )
    try:
        trace = read_trace(options.trace)
    except TraceFileError as error:
        raise InputError(error) from None
    configure(options.conf)
    result = replay(trace, options)
    if options.json:
        print(json.dumps(result))
    else:
        print(as_text(options.trace, trace, result))
    return 0


def configure(conf):
    """Apply the options of ``--conf`` on top of those of the environment."""
    from gputensor._alloc.config import settings

    try:
        if conf is not None:
            settings.parse(conf, source="--conf")
            before = os.environ.get(settings.VARIABLE, "")
            os.environ[settings.VARIABLE] = f"{before},{conf}".strip(",")
        settings.current()
        if conf is not None:
            # The environment may have been read before; this applies the same options again.
            settings.change(conf)
    except ValueError as error:
        raise InputError(error) from None


def replay(trace, options):
    """Run the trace on the chosen device and return the results as one flat dict."""
    from gputensor._alloc.replay import replay_trace
    from gputensor._driver.registry import close_host, cuda_device_count, observe, open_host

    arrays = (trace.op, trace.id, trace.size, trace.stream)
    if options.device == "cuda":
        if not cuda_device_count():
            raise argument_error(InputError, "--device", "cuda", "a machine with a CUDA device")
        # Counting must begin before the allocator takes the driver's table.
        observe(0)
        result = replay_trace(*arrays, 0, trace.thread)
    else:
        device = open_host(capacity=options.capacity or DEFAULT_CAPACITY, phantom=True)
        try:
            result = replay_trace(*arrays, device, trace.thread)
        finally:
            close_host(device)
    reserved = result["peak_reserved_bytes"]
    result["events"] = trace.events
    result["utilization"] = result["peak_requested_bytes"] / reserved if reserved else 1.0
    return result


def as_text(name, trace, result):
    """Return the results as lines for a person."""
    calls = ", ".join(f"{call} {count}" for call, count in result["driver_calls"].items() if count)
    lines = [
        ("trace", f"{name}: {trace.events} events"),
        ("peak requested", in_mebibytes(result["peak_requested_bytes"])),
        ("peak reserved", in_mebibytes(result["peak_reserved_bytes"])),
        ("ratio", f"{result['utilization']:.4f}"),
    ]
    if trace.recorded.get("peak_reserved"):
        reserved = trace.recorded["peak_reserved"]
        ratio = trace.peak_requested / reserved
        lines.append(("when recorded", f"{in_mebibytes(reserved)} reserved, ratio {ratio:.4f}"))
    lines.append(("driver calls", calls or "none"))
    lines.append(("driver time", f"{result['modelled_driver_seconds']:.4f} s, modelled"))
    lines.append(("host time", f"{result['ns_per_event']:.0f} ns per event"))
    return "\n".join(f"{label + ':':<16} {text}" for label, text in lines)


def in_mebibytes(nbytes):
    return f"{nbytes / 2**20:,.1f} MiB"

"""Errors about arguments have the form ``name: got VALUE; expected RULE``."""

import re

import pytest

import gputensor as gt
from gputensor import graphs, memory
from gputensor._alloc.config import settings
from gputensor._driver.settings import parse_nbytes
from gputensor.cli.main import main
from gputensor.errors import Described, argument_error
from tests.project import layout_rules as rules
from tests.project.test_docs import ROOT

FORM = re.compile(r"^(?:\w+: )?[-\w. ()]+: got [^\n]+; expected [^\n]+$")

#: Calls with one wrong argument each, and the name that the error must contain.
BAD = [
    ("device", lambda: gt.Device("gpu")),
    ("device", lambda: gt.Device("cuda:99")),
    ("device", lambda: gt.Device(10**6)),
    ("device", lambda: gt.Device(2.0)),
    ("device", lambda: gt.Device("host:0", 1)),
    ("mode", lambda: gt.ordering("automatic")),
    ("priority", lambda: gt.Stream("host", priority=0.5)),
    ("stream_ptr", lambda: gt.ExternalStream("0", "host")),
    ("stream_ptr", lambda: gt.ExternalStream(-1, "host")),
    ("stream", lambda: gt.set_stream(object())),
    ("stream", lambda: gt.Stream("host").wait_stream(3)),
    ("event", lambda: gt.Stream("host").wait_event("now")),
    ("event", lambda: gt.Stream("host").record_event(3)),
    ("end_event", lambda: gt.Event().elapsed_time(3)),
    ("end_event", lambda: gt.Event().elapsed_time(gt.Event())),
    (
        "end_event",
        lambda: gt.Event(enable_timing=True).elapsed_time(gt.Event(enable_timing=True)),
    ),
    ("cuda_graph", lambda: graphs.graph(3)),
    ("sample_args", lambda: graphs.make_graphed_callables((abs, abs), ((),))),
    ("sample_args", lambda: graphs.make_graphed_callables(abs, (1,))),
    ("device", lambda: memory.list_gpu_processes("host")),
    ("device", lambda: gt.device.get_device_capability("host")),
    ("size", lambda: memory.caching_allocator_alloc(-1, "host")),
    ("stream", lambda: memory.caching_allocator_alloc(8, "host", stream=-1)),
    ("stream", lambda: memory.caching_allocator_alloc(8, "host", stream="s")),
    ("mem_ptr", lambda: memory.caching_allocator_delete("p")),
    ("mem_ptr", lambda: memory.caching_allocator_delete(12345)),
    ("mem_ptr", lambda: memory.record_stream(12345, gt.Stream("host"), "host")),
    ("ptr", lambda: memory.where_allocated(12345)),
    ("fraction", lambda: memory.set_per_process_memory_fraction("all", "host")),
    ("fraction", lambda: memory.set_per_process_memory_fraction(1.5, "host")),
    ("text", lambda: memory.set_allocator_settings(3)),
    ("mempool_id", lambda: memory.memory_snapshot(3)),
    ("count", lambda: memory.top_call_sites("host", 0)),
    ("use_on_oom", lambda: memory.MemPool("host", use_on_oom=1)),
    ("no_split", lambda: memory.MemPool("host", no_split=None)),
    ("pool", lambda: memory.use_mem_pool(3).__enter__()),
    ("observer", lambda: memory.attach_out_of_memory_observer(3)),
    ("max_entries", lambda: memory.record_memory_history(max_entries=0)),
    ("enabled", lambda: memory.record_memory_history("sometimes")),
    ("BYTES", lambda: parse_nbytes("many", "BYTES")),
    ("X: page_size_mb", lambda: settings.parse("page_size_mb:3", source="X")),
    ("X", lambda: settings.parse("page_size_mb", source="X")),
    ("X", lambda: settings.parse("page_size:3", source="X")),
]


@pytest.mark.parametrize(
    ("name", "call"), BAD, ids=[f"{name}-{at}" for at, (name, _) in enumerate(BAD)]
)
def test_error_names_the_argument_the_value_and_the_rule(name, call):
    with pytest.raises((ValueError, TypeError)) as info:
        call()
    message = str(info.value)
    assert message.startswith(f"{name}: got "), message
    assert FORM.match(message), message


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["memory", "replay", "no.npz", "--capacity", "many"], "BYTES"),
        (["memory", "replay", "no.npz", "--capacity", "0"], "BYTES"),
        (["memory", "replay", "no.npz", "--capacity", "1G", "--device", "cuda"], "--capacity"),
        (["blas", "tune", "--shapes", "no/such.json"], "--shapes"),
        (["blas", "tune", "--shapes", __file__, "--seconds", "0"], "--seconds"),
        (["blas", "tune", "--shapes", __file__, "--output", "/"], "--output"),
    ],
)
def test_commands_use_the_same_form(arguments, name, capsys):
    try:
        code = main(arguments)
    except SystemExit as exit_:
        code = exit_.code
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert code == 2
    assert re.search(rf"{name}: got [^\n]+; expected [^\n]+$", last), last


# Errors raised without the helper in these packages are not about arguments.
BY_HAND = {
    "gputensor/memory/pools.py": ["cannot copy or pickle a MemPool"],
}
RAISED = re.compile(r"raise (?:ValueError|TypeError|ArgumentTypeError)\(\s*f?[\"'](.*)")


@pytest.mark.parametrize("folder", ["memory", "streams", "cli", "device.py", "graphs.py"])
def test_argument_errors_are_made_by_the_helper(folder):
    for path in rules.files(ROOT, (".py", ".pyx", ".pxi"), ("gputensor",)):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(f"gputensor/{folder}"):
            for text in RAISED.findall(path.read_text()):
                assert any(known in text for known in BY_HAND.get(name, ())), f"{name}: {text}"


LITERALS = r"""(?:\s*f?"(?:[^"\\\n]|\\.)*")+"""
WRITTEN = re.compile(
    rf"raise (?:ValueError|TypeError|IndexError|BufferError|OverflowError)\(({LITERALS})"
)
# Texts that contain another error, or that have no value to show.
FRAMES = ("{path}, line {number}: {error}", "header: {error}", "entry {shown(name)} {fault}")
NO_VALUE = ("is not a regular file", "the header is not", "header: __metadata__ is not")


@pytest.mark.parametrize("folder", ["_alloc", "_arrays", "_driver", "blas", "streams", "tensor"])
def test_errors_written_out_have_the_same_form(folder):
    count = 0
    for path in rules.files(ROOT, (".py", ".pyx", ".pxi"), (f"gputensor/{folder}",)):
        if path.match("_alloc/config/options.py"):
            continue  # rules of options, to which settings.py adds the name and the value
        for match in WRITTEN.finditer(path.read_text()):
            text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1]))
            if not text.startswith(NO_VALUE) and text not in FRAMES:
                assert re.search("got .*; expected ", text), f"{path.relative_to(ROOT)}: {text}"
                count += 1
    assert count or folder == "streams"  # it only uses the helper


def test_a_value_is_shown_by_its_repr_and_a_wrong_type_by_its_name():
    assert str(argument_error(ValueError, "n", "3", "an int")) == "n: got '3'; expected an int"
    assert str(argument_error(TypeError, "n", "3", "an int")) == "n: got str; expected an int"
    error = argument_error(TypeError, "n", Described("two values"), "one")
    assert type(error) is TypeError
    assert str(error) == "n: got two values; expected one"

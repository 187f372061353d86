"""Untrusted files: mutated programs give a one-line error, large ones take bounded time."""

import json
import random
import time

import pytest

from gputensor.errors import ProgramError
from gputensor.programs import function_json as form
from gputensor.programs.passes.plan import plan
from gputensor.programs.passes.plan_check import check_plan
from gputensor.programs.text import program_text
from gputensor.programs.verify import verify_program
from tests.support.programs.fuzz_json import campaign, read


@pytest.mark.slow
def test_mutations_end_in_one_line():
    seed = random.randrange(2**32)
    print("seed", seed)
    taken, slowest = campaign(4_000, seed)
    assert 0 < taken < 2_000 and slowest < 2


def view(number):
    return {"value": number, "dtype": "float32", "shape": [4], "strides": [1]}


def large(kind, count):
    """A program of many calls: each reads the last result, the input, or writes a version."""
    values = [{"kind": "input", "nbytes": 16, "name": "x"}]
    calls = []
    for index in range(count):
        value = {"kind": "temporary", "nbytes": 16}
        source = index if kind in ("line", "streams") else 0
        call = {
            "name": "elementwise", "attributes": {"op": "copy", "compute": "float32"},
            "writes": [view(index + 1)], "reads": [view(source)],
        }  # fmt: skip
        if kind == "versions" and index:
            value["base"], call["into"] = index, [index]
        if kind == "streams":
            call["stream"] = index % 31
        values.append(value)
        calls.append(call)
    function = {
        "name": "f", "values": values, "calls": calls,
        "inputs": [{"path": "x", "operand": view(0)}],
        "outputs": [{"path": "", "operand": view(count)}],
    }  # fmt: skip
    return json.dumps({"functions": {"f": function}}).encode()


def seconds(kind, count):
    text = large(kind, count)
    start = time.process_time()
    program = form.from_json(read(text))
    verify_program(program)
    found = plan(program.functions["f"], {})
    check_plan(program.functions["f"], {}, found)
    program_text(program)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["line", "fan", "versions", "streams"])
def test_time_grows_with_the_text(kind):
    """Eight times as many calls take far less than 64 times as long."""
    short = min(seconds(kind, 1000) for _turn in range(3))
    long = seconds(kind, 8000)
    assert long < 24 * short + 0.2, (short, long)


@pytest.mark.parametrize("levels", [20, 63])
def test_regions_nested_too_deep_are_refused(levels):
    function = json.loads(large("line", 1))["functions"]["f"]
    for _level in range(levels):
        outer = json.loads(large("line", 1))["functions"]["f"]
        outer["calls"][0]["regions"] = [function]
        function = outer
    text = json.dumps({"functions": {"f": function}}).encode()
    with pytest.raises(ValueError, match="deeper than 128 levels|at most 16 levels"):
        verify_program(form.from_json(read(text)))


def test_sums_of_sizes_beyond_all_memory_are_refused():
    program = json.loads(large("line", 3))
    for value in program["functions"]["f"]["values"][1:]:
        value["nbytes"] = 2**62
    found = form.from_json(read(json.dumps(program).encode()))
    found.functions["f"].outputs.clear()
    with pytest.raises(ProgramError, match=r"^plan of f: got \d+; expected at most 2\*\*62 bytes"):
        plan(found.functions["f"], {})


def test_products_of_dims_do_not_grow():
    """Evaluating an integer with 100 factors is refused; it is never expanded."""
    integer = ["dim", "n"]
    for _level in range(6):
        integer = ["mul", integer, integer]
    program = json.loads(large("line", 1))
    function = program["functions"]["f"]
    function["dims"] = {"n": {"least": 2, "most": 2**40}}
    function["values"][1]["nbytes"] = integer
    start = time.process_time()
    with pytest.raises(ProgramError, match=r"f.values\[1\].nbytes: got .*; expected a result"):
        found = form.from_json(read(json.dumps(program).encode()))
        program_text(found)
        verify_program(found)
    assert time.process_time() - start < 1

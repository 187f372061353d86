"""Mutates the JSON of programs: each mutation must be verified, or refused with one line.

    python -m tests.support.programs.fuzz_json --count 100000 --seed 7

Verified programs are also printed, planned, and written again. Prints the time of the slowest.
"""

import argparse
import json
import random
import time

from gputensor.errors import ProgramError
from gputensor.programs import dims as forms
from gputensor.programs import function_json as form
from gputensor.programs.function import ProgramData, Weight
from gputensor.programs.passes.plan import plan
from gputensor.programs.passes.plan_check import check_plan
from gputensor.programs.text import program_text
from gputensor.programs.tree import flatten
from gputensor.programs.verify import verify_program
from gputensor.strict_json import loads
from tests.support.programs.example_function import example_program
from tests.support.programs.random_functions import random_function

MAX_SECONDS = 2.0
MAX_MESSAGE = 2000


def json_copy(value):
    return json.loads(json.dumps(value))


def deep(levels):
    value = 0
    for _level in range(levels):
        value = [value]
    return value


HOSTILE = (
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**40, 2**62, -(2**62), 2**63, 2**64, 10**19, 0.5,
    -0.0, 1e308, "", "n", "dim", "float32", "float64", "bool", "int64", "a\nb", "\x00", "é" * 40,
    "x" * 5000, [], {}, [[]], [0], [-1, 1], ["dim", "n"], ["dim", "m"], ["dim"], ["mul", 9**19, 9],
    ["floordiv", ["dim", "n"], 0], ["floordiv", ["dim", "n"], 2], ["add", ["dim", "n"], 1],
    {"integer": ["dim", "n"]}, {"float": "nan"}, {"complex": [1, 2]}, {"dict": {}}, {"a": 1},
    "leaf", {"list": ["leaf"]}, {"dict": [["x", "leaf"]]}, deep(40), deep(130), "state",
    "temporary", "weight", "constant", "input", "elementwise", "product", "scan", "cond", "gather",
)  # fmt: skip


def seeds_of(rng):
    """Return the texts of a few valid programs."""
    programs = [example_program()]
    for _turn in range(6):
        function, arrays, states = random_function(rng, rng.randint(0, 6))
        weights = {n: Weight(n, str(a.dtype), a.shape) for n, a in arrays.items()}
        held = {n: (str(a.dtype), a.shape) for n, a in states.items()}
        tree = {item.path: 1j for item in function.inputs}
        function.tree = flatten(tree, lambda part: type(part) is complex)[1]
        programs.append(ProgramData({"f": function}, weights, held))
    return [json.dumps(form.to_json(program)).encode() for program in programs]


def places(data, found):
    """Append every (container, key) below `data` to `found`, and return it."""
    for key in list(data) if type(data) is dict else range(len(data)):
        found.append((data, key))
        if type(data[key]) in (dict, list):
            places(data[key], found)
    return found


def mutated_tree(rng, text):
    """Return JSON with one to three nodes replaced, removed or repeated."""
    data = json.loads(text)
    for _turn in range(rng.choice((1, 1, 2, 3))):
        found = places(data, [])
        held, key = rng.choice(found)
        other, place = rng.choice(found)
        kind = rng.randrange(6)
        if kind == 0 and type(held) is list:
            held.insert(key, json_copy(held[key]))
        elif kind == 1:
            del held[key]
        elif kind == 2:
            held[key] = json_copy(other[place])
        elif kind == 3 and type(held[key]) is int:
            held[key] += rng.choice((-1, 1, 2, -2, 4, 256, 2**32))
        else:
            held[key] = json_copy(rng.choice(HOSTILE))
    return json.dumps(data).encode()


def mutated_bytes(rng, text):
    """Return text with bytes changed, removed, repeated or inserted."""
    text = bytearray(text)
    for _turn in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        span = rng.choice((1, 1, 1, 5, 50))
        kind = rng.randrange(4)
        if kind == 0 and at < len(text):
            text[at] = rng.choice(b'0123456789[]{}",:\\-eEnt\x00\xff')
        elif kind == 1:
            del text[at : at + span]
        elif kind == 2:
            text[at:at] = text[at : at + span] * rng.choice((1, 3))
        else:
            text[at:at] = rng.choice((b"[" * 100, b"9" * 30, b"NaN", b'"', b"1e999", b"-", b"{}"))
    return bytes(text)


def read(text):
    """Return the JSON of a program, parsed as in a program file."""
    return loads(text, 10**7, form.MAX_DEPTH)


def take(text):
    """Read, verify and use one program; return whether it was accepted. Raise on wrong errors."""
    try:
        plain = read(text)
    except ValueError as error:
        if "\n" in str(error) or len(str(error)) > MAX_MESSAGE:
            raise AssertionError(f"not one short line: {str(error)[:3000]!r}") from error
        return False
    try:
        program = form.from_json(plain)
        verify_program(program)
        for function in program.functions.values():
            for sizes in forms.ends(function.dims.values()):
                check_plan(function, sizes, plan(function, sizes))
    except ProgramError as error:
        message = str(error)
        if "\n" in message or len(message) > MAX_MESSAGE or "; expected " not in message:
            raise AssertionError(f"not one short line: {message[:3000]!r}") from error
        return False
    program_text(program)
    again = form.from_json(read(json.dumps(form.to_json(program)).encode()))
    assert repr(again) == repr(program)
    return True


def campaign(count, seed):
    """Try `count` mutations; return (number accepted, seconds that the slowest computed)."""
    rng = random.Random(seed)
    taken, slowest = 0, 0.0
    for index in range(count):
        if index % 1000 == 0:
            texts = seeds_of(rng)
            assert all(take(text) for text in texts)
        if rng.random() < 0.75:
            text = mutated_tree(rng, rng.choice(texts))
        else:
            text = mutated_bytes(rng, rng.choice(texts))
        start = time.process_time()
        try:
            taken += take(text)
        except Exception:
            print(f"mutation {index} of seed {seed}:\n{text!r}"[:20000])
            raise
        slowest = max(slowest, time.process_time() - start)
        assert slowest < MAX_SECONDS, (index, seed, slowest)
    return taken, slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    start = time.perf_counter()
    taken, slowest = campaign(options.count, options.seed)
    print(
        f"{options.count} mutations of seed {options.seed}: {taken} accepted, the others refused; "
        f"slowest {slowest * 1e3:.0f} ms, "
        f"{time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()

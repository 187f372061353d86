"""Fuzz the reader of `.gtp` files: a mutated file is refused in one line, or is a valid program.

    python -m tests.unit.programs.file_fuzz --count 100000
    python -m tests.unit.programs.file_fuzz --count 1 --seed 7     # the case that a failure names

One case in six changes bytes anywhere; the others change the header, the JSON of the program or its
launches and correct the hash, to get past its check. An accepted program is printed, written,
read again, loaded into a device of 64 MiB and run there. If the process crashes, the file of the
case remains in the newest folder of /dev/shm.
"""

import argparse
import copy
import faulthandler
import hashlib
import json
import os
import random
import resource
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter

import numpy as np

from gputensor._driver import registry
from gputensor.errors import GpuTensorError, ProgramError, ProgramFileError
from gputensor.programs import dims, file, text, tree, weights
from gputensor.programs.ahead.bindings import Ahead, Maker, fill_lists
from gputensor.programs.ahead.code import Image
from gputensor.programs.bind import bind
from gputensor.programs.function import ProgramData, Weight
from gputensor.programs.program import Program
from gputensor.programs.targets import TARGETS
from gputensor.tensor.core import Tensor
from gputensor.tensor.manipulation import zeros
from tests.support.programs.example_function import example_program
from tests.support.programs.random_functions import random_function

MEMORY = "/dev/shm"  # a file system in memory
MOST_SECONDS = 10.0  # of processor time for one case, under a sanitizer too
BATCH = 1000
MOST_TURNS = 1000  # of loops that run
MOST_GROWTH = 1 << 30  # of resident memory, over all cases
INTS = (0, 1, -1, 2, 3, 7, 2**31, 2**32, 2**61, 2**62, 2**63, 2**64, -(2**62), 10**19, 10**40)
WORDS = ("", "f", "w", "float32", "int8", "bool", "add", "copy", "n", "dim", "mul", "floordiv",
         "input", "state", "weight", "constant", "temporary", "\n", "\0", "..", "/", "x" * 2000,
         "elementwise", "product", "cond", "while_loop", "scan", "constant.0")  # fmt: skip


def random_program(rng):
    """A ProgramData with elements."""
    if rng.random() < 0.1:
        data = example_program()
        data.weights["w"].source = np.ones((4, 4), np.float32)
        return data
    function, arrays, states = random_function(rng)
    data = ProgramData(
        {"f": function},
        {n: Weight(n, str(a.dtype), a.shape, a) for n, a in arrays.items()},
        {n: (str(a.dtype), a.shape) for n, a in states.items()},
    )
    if rng.random() < 0.3:
        data.ahead = random_ahead(rng, function)
    return data


def random_ahead(rng, function):
    """Launch lists of a function, with kernels that contain no code."""
    made = Ahead()
    target = TARGETS[rng.choice(sorted(TARGETS))]
    lists = made.lists[target] = {}
    try:
        with Maker(target.facts, made.kernels) as maker:
            fill_lists(
                lists, maker, bind(function, {d.name: d.low for d in function.dims.values()})
            )
    except ProgramError:
        return None
    for kernel in made.kernels.all:
        for name in ("sm_80", "compute_80"):
            kernel.images[name] = Image(rng.randbytes(rng.randrange(1, 64)) + b"\0")
    return made


class Pieces:
    """A file in its parts: header, JSON of the program, other bytes."""

    def __init__(self, raw):
        length = struct.unpack("<Q", raw[:8])[0]
        self.header = json.loads(raw[8 : 8 + length])
        first, last = self.header["program"]["data_offsets"]
        data = raw[8 + length :]
        self.text = data[first:last]
        self.is_packed = self.header["__metadata__"].pop("program_nbytes", None) is not None
        if self.is_packed:
            self.text = zlib.decompress(self.text)
        self.before, self.after = data[:first], data[last:]

    def joined(self, program=None, header=None):
        """The bytes of the file, with the right hash and place of the program."""
        body = self.text if program is None else program
        found = copy.deepcopy(self.header)
        if self.is_packed:
            found["__metadata__"]["program_nbytes"] = str(len(body))
            body = zlib.compress(body)
        first, last = found["program"]["data_offsets"]
        grown = len(body) - (last - first)
        for name, entry in found.items():
            if name != "__metadata__" and entry["data_offsets"][0] >= last:
                entry["data_offsets"] = [place + grown for place in entry["data_offsets"]]
        found["program"].update(shape=[len(body)], data_offsets=[first, first + len(body)])
        found["__metadata__"]["program_sha256"] = hashlib.sha256(body).hexdigest()
        if header is not None:
            header(found)
        head = json.dumps(found).encode()
        return struct.pack("<Q", len(head)) + head + self.before + body + self.after

    def with_launches(self, change):
        """The bytes of the file with other launches of the same length, and their hash."""
        first, last = self.header["launches.0"]["data_offsets"]
        shift = self.header["program"]["data_offsets"][1]
        content = self.after[first - shift : last - shift]
        changed = change(content)[: last - first].ljust(last - first, b"\0")
        whole = copy.copy(self)
        whole.after = self.after[: first - shift] + changed + self.after[last - shift :]
        program = json.loads(self.text)
        program["ahead"]["targets"][0]["sha256"] = hashlib.sha256(changed).hexdigest()
        return whole.joined(program=json.dumps(program).encode())


def nodes(value, found, path=()):
    """All (container, key) of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in items:
        found.append((value, key))
        if isinstance(part, (dict, list)):
            nodes(part, found)
    return found


def change_json(rng, value):
    """Change a place of a JSON value: swapped, deleted, doubled, nested, huge, of another type."""
    places = nodes(value, [])
    if not places:
        return
    container, key = rng.choice(places)
    part = container[key]
    kind = rng.randrange(10)
    if kind == 0:
        other, at = rng.choice(places)
        container[key] = copy.deepcopy(other[at])
    elif kind == 1:
        del container[key]
    elif kind == 2 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), copy.deepcopy(part))
    elif kind == 3:
        for _ in range(rng.choice((1, 3, 70, 150))):
            part = [part] if rng.random() < 0.9 else {"add": part}
        container[key] = part
    elif kind == 4:
        container[key] = rng.choice((None, True, False, [], {}, "", 1.5, -0.0, 1e308))
    elif kind == 5 and isinstance(container, dict):
        container[rng.choice(WORDS)] = container.pop(key)
    elif kind == 6 and isinstance(container, list):
        rng.shuffle(container)
    elif isinstance(part, str):
        container[key] = rng.choice(WORDS)
    elif isinstance(part, bool) or not isinstance(part, int):
        container[key] = rng.choice(INTS)
    else:
        container[key] = rng.choice((part + 1, part - 1, 2 * part, -part, rng.choice(INTS)))


def change_bytes(rng, raw):
    raw = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind, at = rng.randrange(6), rng.randrange(len(raw) or 1)
        # Half of the places lie in the header and the program.
        at = at if rng.random() < 0.5 else min(rng.randrange(6000), len(raw) - 1)
        end = min(len(raw), at + rng.choice((1, 8, 64, 5000)))
        if not raw:
            break
        if kind == 0:
            del raw[at:]
        elif kind == 1:
            raw[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            raw[at:end] = rng.randbytes(end - at)
        elif kind == 3:
            del raw[at:end]
        elif kind == 4:
            raw[at:at] = raw[at:end]
        else:
            digits = rng.choice((b"9", b"0", b"[", b'"', b"}", b"{", b"99999999999999999999"))
            raw[at : at + len(digits)] = digits
    return bytes(raw)


def change_text(rng, pieces):
    """A program with invalid JSON, or with JSON that is costly to read."""
    text = pieces.text
    many = 100 if rng.random() < 0.99 else 10**5
    end = rng.randrange(len(text))
    strange = rng.choice((b"NaN", b"Infinity", b"1e999", b"-0", b"1.0", b"01"))
    changes = (
        lambda: text[:end],
        lambda: text.replace(b"{", b"[" * many, 1),
        lambda: text.replace(b":", b":" + b"[" * many + b"]" * many + b",", 1),
        lambda: text.replace(b'"f"', b'"' + b"f" * many + b'"'),
        lambda: text.replace(b"1", b"1" * many, 1),
        lambda: text.replace(b"1", strange, 1),
        lambda: text.replace(b'"', b"\xff", 1),
        lambda: text.replace(b'"f"', b'"\\ud800"'),
        lambda: text.replace(b",", b"," + text[1:-1] + b",", 1),
        lambda: b'{"functions":{' + b",".join(b'"%d":{}' % n for n in range(many)) + b"}}",
    )
    return rng.choice(changes)()


def mutated(rng, raw, pieces):
    """One mutation of a file: (kind, bytes)."""
    kind = rng.choice(("bytes", "program", "program", "header", "text", "launches"))
    has_launches = "launches.0" in pieces.header and b'"launches.0":' not in pieces.text
    if kind == "launches" and not has_launches:  # otherwise a hash protects its stream
        kind = "program"
    if kind == "bytes":
        return kind, change_bytes(rng, raw)
    if kind == "header":
        return kind, pieces.joined(header=lambda found: change_json(rng, found))
    if kind == "text":
        return kind, pieces.joined(program=change_text(rng, pieces))
    if kind == "launches":
        return kind, pieces.with_launches(lambda content: change_bytes(rng, content))
    program = json.loads(pieces.text)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        change_json(rng, program)
    return kind, pieces.joined(program=json.dumps(program).encode())


def outcome(path, place, verify=True):
    """Read the file at `path`: return "refused", or how far an accepted program came."""
    try:
        data = file.read(path)
    except ProgramFileError as error:
        message = str(error)
        assert message.startswith(path) and "\n" not in message and len(message) < 1000, message
        return "refused"
    text.program_text(data)
    again = f"{path}.again"
    try:
        weights.check_memory(data, place)
        program = Program(data, place, verify=verify)
        file.write(data, again)
    except GpuTensorError as error:
        assert "\n" not in str(error)
        return "not loaded"
    assert file.read(again).functions == data.functions
    with program:
        return "run" if all([run_function(program, name) for name in data.functions]) else "not run"


def run_function(program, name):
    """Run a function on zeros at its smallest sizes; return whether it succeeded."""
    function = program.functions[name]
    low = {dim.name: dim.low for dim in function.dims.values()}
    if any(turns(call, low) > MOST_TURNS for call in function.calls):
        return False
    leaves = [
        zeros(
            [dims.evaluate(extent, low) for extent in argument.operand.shape],
            dtype=argument.operand.dtype,
            device=program.device,
        )
        for argument in function.inputs
    ]
    paths = (argument.path for argument in function.inputs)
    given = function.tree
    arguments = tree.unflatten(given, leaves) if given else dict(zip(paths, leaves, strict=True))
    try:
        with program.session() as session:
            result = session.call(name, (), arguments)
    except (ArithmeticError, GpuTensorError, IndexError, TypeError, ValueError) as error:
        assert "\n" not in str(error), error
        return False
    for _path, tensor in tree.flatten(result, lambda part: isinstance(part, Tensor))[0]:
        tensor.numpy()
    return True


def turns(call, sizes):
    """An upper bound of how often the regions of a call run."""
    inner = [turns(part, sizes) for region in call.regions for part in region.calls]
    attributes = call.attributes
    own = 1 if call.name != "while_loop" else MOST_TURNS + 1
    if call.name == "fori_loop":
        lower, upper = (dims.evaluate(attributes[key], sizes) for key in ("lower", "upper"))
        own = max(upper - lower, 0)
    elif call.name == "scan":
        own = dims.evaluate(attributes["length"], sizes)
    return own * max([1, *inner])


class Arena:
    """Whole files to mutate, a folder for them, and the device that programs are loaded into."""

    def __init__(self, rng, count=24):
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None)
        self.path = os.path.join(self.folder.name, "p.gtp")
        self.place = registry.open_host(64 << 20)
        self.files = []
        for number in range(count):
            data = random_program(rng)
            apart = f"{number}.safetensors" if number % 4 == 0 else None
            file.write(data, self.path, weights=apart, compress=rng.random() < 0.3)
            with open(self.path, "rb") as written:
                raw = written.read()
            self.files.append((raw, Pieces(raw)))

    def run(self, seed):
        """Make and read the case of one seed; return its kind and outcome."""
        rng = random.Random(seed)
        kind, raw = mutated(rng, *rng.choice(self.files))
        with open(self.path, "wb") as changed:
            changed.write(raw)
        start = time.process_time()
        found = outcome(self.path, self.place, verify=seed % 2 == 0)
        seconds = time.process_time() - start
        assert seconds < MOST_SECONDS, f"{seconds:.1f} s"
        return f"{kind} {found}"

    def close(self):
        registry.close_host(self.place)
        self.folder.cleanup()


def run(count, seed):
    """Run the cases `seed` to `seed + count - 1`; return the count of each outcome.

    Every batch of seeds mutates new files.
    """
    arena, batch, before, seen = None, None, None, Counter()
    try:
        for number in range(seed, seed + count):
            if number // BATCH != batch:
                if arena is not None:
                    arena.close()
                batch = number // BATCH
                arena = Arena(random.Random(batch))
            try:
                seen[arena.run(number)] += 1
            except BaseException:
                print(f"seed {number}", file=sys.stderr)
                raise
            if number == seed + 20:  # the caches are filled by now
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - (before or 0)
        assert before is None or grown << 10 < MOST_GROWTH, f"memory grew by {grown >> 10} MiB"
    finally:
        if arena is not None:
            arena.close()
    return seen


def main():
    """Run a campaign and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    faulthandler.enable()
    seed = given.seed
    if seed is None:
        seed = random.SystemRandom().getrandbits(32)
    start = time.perf_counter()
    seen = run(given.count, seed)
    seconds = time.perf_counter() - start
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(seen.items()))
    print(f"seed {seed}, {given.count} files in {seconds:.0f} s: {kinds}")


if __name__ == "__main__":
    main()

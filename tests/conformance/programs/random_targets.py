"""Random functions compiled ahead of time, saved, opened, and compared with the functions.

Functions are those of random_programs.py. Each is compiled for GPUs that are not present, with
``rounding="each"`` and ``"once"``, and saved to a file. On the host device and on a simulated or
real GPU the file gives the bits of eager work for "each", from Python and, on a GPU, from both
libraries for C. For "once" it gives results that eager work could give with slightly different
roundings (`spreads_of`).

    python -m tests.conformance.programs.random_targets --count 1000 --seed 1
    python -m tests.conformance.programs.random_targets --device cuda --simulated --seconds 600
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import gputensor as gt
from gputensor._kernels.launch import images
from gputensor.errors import ProgramError, TraceError
from gputensor.programs.ahead.bindings import sites_of
from gputensor.programs.ahead.call_places import places_of
from gputensor.programs.bind import bind
from gputensor.programs.targets import TARGETS
from tests.conformance.programs.random_programs import Case, canonical, differ
from tests.support import kernel_compiler, simulated_gpu
from tests.support.programs import random_steps as steps
from tests.support.programs.c_caller import CProgram, poisoned
from tests.support.programs.campaigns import options_of, report, run_many

SIZES = (1, 2, 4, 8, 16, 32, 40)  # bound ahead of time
SHARED = str(228 << 10)  # of a simulated GPU with the properties of an H200
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPSILON["complex64"] = EPSILON["float32"]
TINY = {"float16": 2.0**-24, "bfloat16": 1e-40, "float32": 1e-44, "float64": 0, "complex64": 1e-44}
RUNS = 16  # with other roundings
#: Steps and dtypes of every other function: passes join these steps into one call.
JOINED = [*[steps.unary, steps.binary] * 4, steps.rows, steps.product, steps.view, steps.loop]
FLOATS = ["float16", "bfloat16", "float32", "float32"]


@contextmanager
def images_without_code():
    """Compile kernels to an empty image within a block."""
    made, images.image_of = images.image_of, lambda program, target: b"\x7fELF"
    try:
        yield
    finally:
        images.image_of = made


def compiled(case, listed, targets, rounding):
    """The program of a case, whose last inputs are weights if the case has `held` arrays."""

    def model(inputs, state, weights):
        return case.model([*inputs, *weights], state)

    state = [gt.spec(shape, dtype) for dtype, shape in case.states]
    specs = case.specs()[: len(case.shapes) - len(case.held)]
    at = None if listed is None else {"n": listed}
    given = {"state": state, "weights": case.held}
    return gt.compile(model, specs, **given, target=targets, at=at, rounding=rounding)


class Latest(random.Random):
    """Prefers the latest values, so that steps build on each other."""

    def randrange(self, *given):
        made = [super(Latest, self).randrange(*given) for _ in range(3 if len(given) == 1 else 1)]
        return max(made)


def drawn(seed, home):
    """The function of a seed: of all kinds of steps, or of those that become one call."""
    if seed % 2:
        case = Case(random.Random(seed), home)
    else:
        case = Case(Latest(seed), home, JOINED, FLOATS, (4, 16))
        case.outputs = [case.total - 1, *case.outputs[: case.rng.choice((0, 0, 1))]]
    case.held = []
    if len(case.shapes) > 1 and "n" not in case.shapes[-1] and seed % 4 > 1:
        numbers = np.random.default_rng(seed)
        held = steps.random_values(numbers, case.shapes[-1], case.dtypes[-1])
        case.held = [np.asarray(held)]
    return case


def random_targets(rng):
    """Names of two targets, sometimes with PTX."""
    return [name + rng.choice(["", "", "+ptx"]) for name in rng.sample(sorted(TARGETS), 2)]


def check_lists(data, opened, rng):
    """The lists of a file equal those that were made, and stay in memory that calls may touch."""
    ahead = opened.ahead
    made = {t: {k: one.to_bytes() for k, one in d.items()} for t, d in data.ahead.lists.items()}
    found = {t: {k: one.to_bytes() for k, one in d.items()} for t, d in ahead.lists.items()}
    assert made == found, "lists differ in the file"
    for function in opened.functions.values():
        sizes = {name: rng.choice(SIZES) for name in function.dims}
        for site in sites_of(bind(function, sizes)):
            places = places_of(site.call, site.alignments)
            for lists in ahead.lists.values():
                assert lists[places.key].check(len(ahead.kernels), places.reaches), site.call.line


class Perturbed:
    """The steps of a case, with results that are rounded slightly differently.

    Elements move independently, or all elements of a step by the same factor: where every element
    of a step was rounded up, another rounding changes all of them alike.
    """

    def __init__(self, case, numbers, is_alike):
        self.case, self.numbers, self.is_alike = case, numbers, is_alike
        self.is_finite = True

    def results(self, arrays, states):
        case, home = self.case, self.case.home
        with gt.Device(home):
            values = [*(gt.asarray(a, device=home) for a in arrays), *states]
            for step in case.steps:
                known = len(values)
                step(values)
                for tensor in values[known:]:
                    self.move(tensor)
            return [values[i].numpy() for i in case.outputs]

    def move(self, tensor):
        name = tensor.dtype.name
        if name not in EPSILON or not tensor.size:
            return
        array = tensor.numpy()
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        if not np.isfinite(wide).all():
            self.is_finite = False
        factor = 1 + EPSILON[name] * self.numbers.uniform(
            -1, 1, () if self.is_alike else array.shape
        )
        moved = wide * factor + TINY[name] * self.numbers.integers(-1, 2, array.shape)
        try:
            tensor[...] = gt.asarray(moved.astype(array.dtype), device=self.case.home)
        except (ValueError, RuntimeError):
            pass  # a view with one element at several indices


def spreads_of(case, arrays, states, wanted, seed):
    """How far each result moves if all steps round differently; None if a step overflows."""
    found = [0.0] * len(wanted)
    for number in range(RUNS):
        run = Perturbed(case, np.random.default_rng((seed, number)), number % 2 == 0)
        moved = run.results(arrays, [gt.asarray(a, device=case.home) for a in states])
        if not run.is_finite:
            return None
        for place, (one, other) in enumerate(zip(moved, wanted, strict=True)):
            found[place] = max(found[place], distance(one, other))
    return found


def distance(one, other):
    if not one.size:
        return 0.0
    kind = np.complex128 if one.dtype.kind == "c" else np.float64
    apart = np.abs(one.astype(kind) - other.astype(kind))
    return float(np.nan_to_num(apart, nan=np.inf).max())


def beyond(made, wanted, spreads):
    """The indices of results that differ from eager ones by more than other roundings explain."""
    found = []
    for place, (one, other) in enumerate(zip(made, wanted, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            found.append(place)
        elif canonical(one) != canonical(other):
            largest = np.abs(other.astype(np.complex128)).max() if other.size else 0
            rounding = EPSILON.get(str(other.dtype), 0) * largest
            if distance(one, other) > 8 * spreads[place] + 4 * rounding:
                found.append(place)
    return found


class Opened:
    """A program from its file, with a session for each caller: Python, and C on a GPU."""

    def __init__(self, path, device):
        self.program = gt.load_program(path, device=device)
        self.session = self.program.session()
        self.device = device
        names = () if device == "host" else ("module", "alone")
        self.callers = {name: CProgram(path, name=name) for name in names}
        self.sessions = {name: one.session() for name, one in self.callers.items()}

    def results(self, arrays, like):
        """The results of one call from each caller, by its name."""
        tensors = [gt.asarray(a, device=self.device) for a in arrays]
        found = {"Python": [one.numpy() for one in self.session.model(tensors)]}
        for name, session in self.sessions.items():
            outputs = [poisoned(one) for one in like]
            gt.synchronize(self.device)
            session.run("model", tensors, outputs)
            gt.synchronize(self.device)
            found[name] = [one.numpy() for one in outputs]
        return found

    def close(self):
        for one in (*self.sessions.values(), *self.callers.values()):
            one.close()
        self.session.close()
        self.program.close()


def run_one(seed, home, folder):
    """Check one program; returns "ran", "refused: " with a reason, or what differs."""
    case = drawn(seed, home)
    listed = case.listed() if any("n" in shape for shape in case.shapes) else None
    is_host = home == "host"
    targets = random_targets(case.rng) if is_host else ["h200", *random_targets(case.rng)[:1]]
    turns = [case.rng.choice(listed or (SIZES if not is_host else range(1, 41))) for _ in range(2)]
    for rounding in ("each", "once"):
        try:
            if is_host:
                with images_without_code():
                    program = compiled(case, listed, targets, rounding)
            else:
                program = compiled(case, listed, targets[:1], rounding)
        except TraceError as error:
            return f"refused: {error}"
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            if case.has_dim and not isinstance(error, ProgramError):
                return f"refused: {error}"  # its steps do not fit at some size
            raise
        path = Path(folder, f"{seed}.gtp")
        program.save(path, compress=case.rng.random() < 0.5)
        opened = Opened(path, home)
        try:
            check_lists(program.data, opened.program.data, case.rng)
            difference = compare(case, opened, turns, seed, rounding)
        finally:
            opened.close()
            program.close()
            path.unlink()
        if difference:
            return difference
    return "ran"


def compare(case, opened, turns, seed, rounding):
    """Call an opened program and the function; returns a description of what differs, or None."""
    numbers = np.random.default_rng(seed)
    states = [gt.zeros(shape, dtype=dtype, device=case.home) for dtype, shape in case.states]
    for turn, size in enumerate(turns):
        count = len(case.shapes) - len(case.held)
        arrays = [*case.inputs(size, numbers)[:count], *case.held]
        before = [one.numpy() for one in states]
        try:
            wanted = case.eager(arrays, states)
        except IndexError as error:  # indices on the device, which a trace does not see
            return f"refused: eagerly, {error}"
        for name, made in opened.results(arrays[:count], wanted).items():
            found = differ(made, wanted)
            if found and rounding == "once":
                spreads = spreads_of(case, arrays, before, wanted, seed)
                found = [] if spreads is None else beyond(made, wanted, spreads)
            if found:
                return f"{name}, {rounding}: differs in {found}, turn {turn}"
        if rounding == "once":  # another turn would amplify the roundings of its states
            break
    return None


def campaign(count, seed, seconds=None, show=print, home="host"):
    """Run `count` programs; returns (ran, refused, failures)."""
    with tempfile.TemporaryDirectory() as folder:
        return run_many(lambda one, _index: run_one(one, home, folder), count, seed, seconds, show)


def main(arguments=None):
    parser = options_of(__doc__, 1_000_000)
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args(arguments)
    if options.simulated and kernel_compiler.PRECOMPILED not in os.environ:
        # The simulated driver must be in the environment before the process starts.
        environment = simulated_gpu.environment(FAKE_CUDA_SHARED=SHARED)
        command = [sys.executable, "-m", "tests.conformance.programs.random_targets"]
        return subprocess.call([*command, *(arguments or sys.argv[1:])], env=environment)
    if options.simulated:
        kernel_compiler.install()
    return report(campaign, options)


if __name__ == "__main__":
    sys.exit(main())

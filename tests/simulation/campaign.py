"""A campaign: hours of random programs, with a report of bugs found and lines reached.

    make campaign HOURS=8

Rounds of threaded programs on each kind of device, seeded programs of the allocator under each
configuration, its state machine, and the fault sweep, until the time is up. A failure is counted,
its seed and traceback are printed, and the campaign goes on. At the end: programs run, bugs found,
and which lines of the allocator's core were reached, where the build counts them
(``GPUTENSOR_COVERAGE=1``)::

    python -m tests.simulation.campaign --hours 1
    python -m tests.simulation.campaign --coverage
"""

import argparse
import json
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, settings

from gputensor._driver import registry
from tests.conformance.threads import threaded_programs
from tests.simulation import test_allocator_faults as faults
from tests.simulation import test_allocator_machine as machine
from tests.support.allocator_settings import put_in_force, restored
from tests.support.models.allocator_shadow import random_program

ROOMS = ("core", "order", "grow", "allocator")  # rows of the coverage table
PROGRAMS = 100  # threaded programs per round, on each kind of device
EXAMPLES = 20  # examples per round, of each state machine


class Tally:
    """Programs run and bugs found, by part."""

    def __init__(self):
        self.run, self.bugs = {}, {}
        self.source = random.SystemRandom()

    def attempt(self, part, facts, function, count=1):
        """Run one program, or `count` of them; a failure is printed and counted."""
        self.run[part] = self.run.get(part, 0) + count
        try:
            function()
        except Exception:
            self.bugs[part] = self.bugs.get(part, 0) + 1
            print(f"BUG in {part}: {facts}\n{traceback.format_exc()}", flush=True)

    def seed(self):
        return self.source.getrandbits(40)

    def __str__(self):
        parts = [f"{part} {count}" for part, count in self.run.items()]
        bugs = [f"{part} {count}" for part, count in self.bugs.items()] or ["none"]
        return f"programs: {', '.join(parts)}; bugs: {', '.join(bugs)}"


def threads(tally):
    kinds = threaded_programs.KINDS if registry.cuda_device_count() else threaded_programs.KINDS[:3]
    for kind in kinds:
        seed = tally.seed()
        tally.attempt(
            f"threads on {kind}",
            f"from seed {seed}",
            lambda kind=kind, seed=seed: threaded_programs.campaign(
                kind, [seed + at for at in range(PROGRAMS)]
            ),
            PROGRAMS,
        )


def programs(tally):
    for name, text in machine.CONFIGURATIONS.items():
        for mode in ("deferred", "immediate"):
            seed = tally.seed()
            tally.attempt(
                "allocator",
                f"{name}, {mode}, seed {seed}",
                lambda t=text, m=mode, s=seed: one(t, m, s),
            )


def one(text, mode, seed):
    """A seeded program of the allocator under a configuration."""
    with restored():
        put_in_force(text)
        number = registry.open_host(
            capacity=machine.CAPACITY, seed=seed if mode == "deferred" else None
        )
        try:
            random_program(number, seed, steps=250)
        finally:
            registry.close_host(number)


def machines(tally):
    for kind in (
        machine.AllocatorMachine,
        machine.OtherOrderAllocatorMachine,
        machine.ImmediateAllocatorMachine,
    ):
        case = kind.TestCase
        case.settings = settings(
            max_examples=EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        tally.attempt("state machine", kind.__name__, lambda case=case: case().runTest(), EXAMPLES)


def sweep(tally):
    for name in faults.SCENARIOS:
        status = tally.source.choice((faults.OUT_OF_MEMORY, faults.INVALID_VALUE, faults.UNKNOWN))
        with restored():
            tally.attempt(
                "fault sweep",
                f"{name}, status {status}",
                lambda name=name, status=status: faults.test_any_driver_call_may_fail(
                    put_in_force, name, status
                ),
            )


def run(hours):
    """Run rounds until the time is up; return the tally."""
    tally, end, turn = Tally(), time.monotonic() + hours * 3600, 0
    while time.monotonic() < end or turn == 0:
        for part in (threads, programs, machines, sweep):
            part(tally)
        turn += 1
        left = max(0.0, end - time.monotonic())
        print(f"round {turn}, {left / 60:.0f} min left; {tally}", flush=True)
    return tally


def coverage():
    """Yield (room, lines reached, lines) of the allocator, from a build that counts them."""
    lines = {}
    for counts in Path.cwd().glob("build/temp*/**/_alloc/**/*.gcda"):
        report = subprocess.run(
            ["gcov", "--json-format", "--stdout", "--object-file", counts, counts],
            check=True,
            capture_output=True,
        )
        for file in json.loads(report.stdout)["files"]:
            path = Path(file["file"])
            if path.suffix not in (".pxi", ".h") or "_alloc" not in path.parts:
                continue
            room = path.parts[path.parts.index("_alloc") + 1]
            seen = lines.setdefault(room, {})
            for line in file["lines"]:
                place = path.name, line["line_number"]
                seen[place] = seen.get(place, 0) + line["count"]
    for room in ROOMS:
        counts = lines.get(room, {})
        yield room, sum(count > 0 for count in counts.values()), len(counts)


def print_coverage():
    rooms = list(coverage())
    if not any(total for _, _, total in rooms):
        print("coverage: not counted by this build; make campaign has one that does")
        return
    for room, reached, total in rooms:
        print(
            f"coverage of _alloc/{room}: {reached} of {total} lines, {reached / max(total, 1):.1%}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--coverage", action="store_true", help="print what was reached, and end")
    given = parser.parse_args()
    if given.coverage:
        print_coverage()
        return 0
    tally = run(given.hours)
    print(f"campaign: {tally}")
    return 1 if tally.bugs else 0


if __name__ == "__main__":
    sys.exit(main())

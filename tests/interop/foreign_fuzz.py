"""Fuzzes objects of other libraries: DLPack, `__cuda_array_interface__`, buffers, `__array__`.

Run it for a campaign; a failure prints the seed of its batch of a thousand programs:

    python -m tests.interop.foreign_fuzz dlpack --programs 1000000
    python -m tests.interop.foreign_fuzz all --programs 10000 --seed 7
"""

import argparse
import gc
import sys
import time
from collections import Counter

import numpy as np

from gputensor._driver import registry
from tests.interop import capsule_cases, export_cases, host_array_cases, interface_cases

BATCH = 1000
# Objects that programs may leave behind: caches of the interpreter and, with a GPU, kernels that a
# later batch needs first, but not one object for each program of a campaign.
MOST_BLOCKS_KEPT = 400 if registry.cuda_device_count() == 0 else 5000
SUBJECTS = {
    "dlpack": (capsule_cases.make_arena, capsule_cases.one_program),
    "export": (export_cases.make_arena, export_cases.one_program),
    "interface": (interface_cases.make_arena, interface_cases.one_program),
    "buffer": (host_array_cases.make_arena, host_array_cases.one_buffer),
    "array": (host_array_cases.make_arena, host_array_cases.one_array),
}
if registry.cuda_device_count() > 0:
    SUBJECTS["cuda dlpack"] = (capsule_cases.make_cuda_arena, capsule_cases.one_program)


def run_batch(subject, seed, programs):
    """Run programs of one seed; returns the count of each kind of object."""
    rng = np.random.default_rng(seed)
    make_arena, one_program = SUBJECTS[subject]
    arena = make_arena(rng)
    seen = Counter()
    for number in range(programs):
        try:
            seen[one_program(rng, arena)] += 1
        except BaseException:
            print(f"{subject}: seed {seed}, program {number}", file=sys.stderr)
            raise
    return seen


def run(subject, programs, seed):
    """Run many programs in batches; AssertionError if they leave memory behind."""
    seen = Counter()
    # The first batch fills caches.
    run_batch(subject, seed, min(programs, BATCH))
    gc.collect()
    before = sys.getallocatedblocks()
    for batch in range(-(-programs // BATCH)):
        seen += run_batch(subject, seed + batch, min(BATCH, programs - batch * BATCH))
    gc.collect()
    kept = sys.getallocatedblocks() - before
    assert kept < MOST_BLOCKS_KEPT, f"{subject}: {kept} blocks of memory were left behind"
    return seen


def main():
    """Run a campaign and print its counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subject", choices=[*SUBJECTS, "all"])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    for subject in SUBJECTS if given.subject == "all" else [given.subject]:
        start = time.perf_counter()
        seen = run(subject, given.programs, seed)
        seconds = time.perf_counter() - start
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(seen.items()))
        print(f"{subject}: seed {seed}, {seen.total()} programs in {seconds:.0f} s: {kinds}")
    print("ok")


if __name__ == "__main__":
    main()

"""The devices of the tensor tests: the embedded host device, deferred host devices, and CUDA.

A deferred device runs queued work at any moment and in any order that streams and events allow, so
an operation that forgets to order itself gives a wrong number. The devices stay open for the whole
run; their seeds are fresh and are in the name of the device that a failure reports.
"""

import functools

import numpy as np

from gputensor._driver import registry

# Fresh for each run; printed by `device_of` and shown by pytest for a failing test.
SEEDS = {
    name: int(np.random.SeedSequence().generate_state(1)[0])
    for name in ("deferred-a", "deferred-b")
}
NAMES = ("host", *SEEDS, "cuda")


@functools.cache
def _opened(name):
    return registry.open_host(capacity=1 << 30, seed=SEEDS[name])


def device_of(name):
    """Return the device number for a name, or None if this machine has no such device."""
    if name == "cuda":
        return 0 if registry.cuda_device_count() else None
    if name == "host":
        return -1
    print(f"{name}: seed {SEEDS[name]}")
    return _opened(name)

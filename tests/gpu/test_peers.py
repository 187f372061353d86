"""Copies between two GPUs: large, in both directions at once, of memory from before the first copy.

test_peers.py in conformance/driver and conformance/tensor test the basic behavior; these tests need
the memory and speed of GPUs. They are skipped on machines with fewer than two.
"""

import numpy as np
import pytest

import gputensor as gt
from gputensor._driver import registry


@pytest.fixture
def two_gpus():
    """The names of CUDA devices 0 and 1."""
    if registry.cuda_device_count() < 2:
        pytest.skip("needs two NVIDIA GPUs in one machine")
    return "cuda:0", "cuda:1"


def numbers(first, count, device):
    """Consecutive integers, so that every element differs."""
    return gt.arange(first, first + count, dtype="int32", device=device)


def same(one, other):
    return bool(gt.all(one == other))


@pytest.mark.parametrize("count", [1, 1000, (1 << 20) + 3, (1 << 28) + 1])
def test_copies_of_every_size_are_exact(two_gpus, count):
    here, there = two_gpus
    for source, target in ((here, there), (there, here)):
        x = numbers(7, count, source)
        y = x.to_device(target)
        assert str(y.device) == target
        assert same(y, numbers(7, count, target))
        assert same(y.to_device(source), x)


def test_memory_made_before_and_after_the_first_copy_is_reached(two_gpus):
    here, there = two_gpus
    early = [numbers(i, 5 << 20, there) for i in range(4)]
    moved = [x.to_device(here) for x in early]
    late = [numbers(i, 9 << 20, there) for i in range(4)]
    moved_late = [x.to_device(here) for x in late]
    gt.memory.empty_cache()
    again = [x.to_device(there) for x in moved + moved_late]
    for i in range(4):
        assert same(moved[i], numbers(i, 5 << 20, here))
        assert same(moved_late[i], numbers(i, 9 << 20, here))
        assert same(again[i], early[i])
        assert same(again[4 + i], late[i])


def test_copies_wait_for_long_work_and_work_waits_for_copies(two_gpus):
    here, there = two_gpus
    a = gt.ones((4096, 4096), device=here)
    for _ in range(5):
        x = gt.zeros((4096, 4096), device=here)
        for _ in range(10):
            x = a @ a + x
        y = x.to_device(there)
        x[...] = np.nan
        del x
        junk = gt.full((4096, 4096), np.nan, device=here)
        z = y * 2
        back = z.to_device(here)
        del y, z, junk
        assert float(gt.max(back)) == float(gt.min(back)) == 2 * 10 * 4096


def test_both_directions_at_once_on_their_own_streams(two_gpus):
    here, there = two_gpus
    x, y = numbers(0, 1 << 24, here), numbers(5, 1 << 24, there)
    for _ in range(10):
        with gt.stream(gt.Stream(here)), gt.stream(gt.Stream(there)):
            x = x.to_device(there).to_device(here)
        with gt.stream(gt.Stream(here)), gt.stream(gt.Stream(there)):
            y = y.to_device(here).to_device(there)
    assert same(x, numbers(0, 1 << 24, here))
    assert same(y, numbers(5, 1 << 24, there))


def test_a_direct_copy_is_faster_than_one_through_the_host(two_gpus):
    """Copies half a GiB directly, then by a download and an upload."""
    here, there = two_gpus
    x = numbers(0, 1 << 27, here)
    x.to_device(there)
    start, end = (gt.Event(enable_timing=True) for _ in range(2))
    with gt.Device(here):
        gt.synchronize(there)
        start.record()
        x.to_device(there)
        end.record()
        end.synchronize()
        direct = start.elapsed_time(end)
        start.record()
        gt.asarray(x.numpy(), device=there)
        end.record()
        gt.synchronize(there)
        end.synchronize()
        staged = start.elapsed_time(end)
    print(
        f"direct {x.nbytes / direct / 1e6:.1f} GB/s, through the host "
        f"{x.nbytes / staged / 1e6:.1f} GB/s"
    )
    assert direct < staged

"""Which block serves a request, compared with a sorted list of the free blocks; address look-up."""

import random

import pytest

from gputensor._alloc import foreign as raw_memory
from gputensor._alloc import observe as report
from tests.support.alloc_probe import MIB, opened

INACTIVE = 0


def free_blocks(device, is_large):
    """The (size, address) of the free blocks of one kind, from a snapshot."""
    segments, blocks = report.collect_segments(device)
    found, first = [], 0
    for segment in segments:
        own = blocks[first : first + segment["n_blocks"]]
        first += segment["n_blocks"]
        if bool(segment["is_large"]) == is_large:
            free = own[own["state"] == INACTIVE]
            found += zip(free["nbytes"].tolist(), free["address"].tolist(), strict=True)
    return sorted(found)


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("segments", ["True", "False"])
def test_the_smallest_block_that_fits_serves_at_the_lowest_address(is_large, segments):
    rng = random.Random()
    seed = rng.randrange(1 << 30)
    print(f"seed {seed}")
    rng.seed(seed)
    conf = f"thread_cache:False,page_reuse:False,expandable_segments:{segments}"
    # Requests from 192 KiB to 1 MiB have a pool of their own.
    low, high = (MIB + 512, 9 * MIB) if is_large else (1, MIB if segments == "False" else 195_000)
    found = 0
    with opened(conf, capacity=1024 * MIB, phantom=True) as probe:
        for _ in range(1500):
            if probe.held and rng.random() < 0.5:
                probe.free(rng.choice(probe.held))
                continue
            nbytes = rng.choice([rng.randint(low, high), rng.randint(low, low + 20000)])
            rounded = (nbytes + 511) // 512 * 512
            fits = [entry for entry in free_blocks(probe.device, is_large) if entry[0] >= rounded]
            ptr = probe.malloc(nbytes)
            if fits:
                found += 1
                assert ptr == fits[0][1], f"{nbytes} bytes: best is {fits[0]}"
    assert found > 100


def test_a_column_of_equal_blocks_gives_any_of_them_without_growing():
    with opened("thread_cache:False", phantom=True) as probe:
        blocks = [probe.malloc(2048) for _ in range(2000)]
        probe.free_all(blocks[::2])
        probe.mark()
        again = {probe.malloc(2048) for _ in range(1000)}
        assert again == set(blocks[::2])
        assert not probe.asked_for_memory()


def test_only_the_start_of_a_block_in_use_is_an_address():
    with opened(phantom=True) as probe, opened(phantom=True) as other:
        blocks = [probe.malloc(nbytes) for nbytes in (700, 5000, 3 * MIB, 30 * MIB)]
        blocks += [other.malloc(nbytes) for nbytes in (700, 3 * MIB)]
        assert len(set(blocks)) == len(blocks)
        for ptr in blocks:
            for wrong in (ptr + 1, ptr + 256, ptr - 512):
                if wrong not in blocks:
                    with pytest.raises(ValueError, match="^(mem_)?ptr: got 0x"):
                        raw_memory.raw_delete(wrong)
        freed = blocks[2]
        probe.free(freed)
        for call in (raw_memory.raw_delete, raw_memory.raw_traceback):
            with pytest.raises(ValueError, match="^(mem_)?ptr: got 0x"):
                call(freed)
        assert probe.malloc(3 * MIB) == freed
        raw_memory.raw_record_stream(freed, 0)


def test_an_address_means_its_newest_block():
    """Merging and splitting place blocks of other sizes where earlier blocks began."""
    rng = random.Random(4)
    with opened(phantom=True) as probe:
        for _ in range(50):
            sizes = [rng.randrange(1, MIB) for _ in range(8)]
            blocks = [probe.malloc(nbytes) for nbytes in sizes]
            rng.shuffle(blocks)
            for ptr in blocks:
                probe.free(ptr)
                with pytest.raises(ValueError):
                    raw_memory.raw_delete(ptr)
        assert probe.stats()["allocated_bytes.all.current"] == 0

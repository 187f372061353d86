"""All memory of a device, taken for a while."""

import contextlib

import gputensor as gt


def all_memory():
    """Tensors that leave no free block of the device, but for the smallest."""
    held = []
    for nbytes in (64 << 20, 1 << 20, 1 << 15, 1 << 12):
        with contextlib.suppress(gt.OutOfMemoryError):
            while True:
                held.append(gt.empty(nbytes, dtype="uint8", device="cuda"))
    return held

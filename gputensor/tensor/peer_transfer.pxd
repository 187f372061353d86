# Copies from one device to another of the same kind.

from gputensor.tensor.tensor cimport Tensor

# Whether memory goes from one device to the other directly: both host devices, or both CUDA.
cdef bint are_peers(int device, int other) noexcept
# A row-major copy of `source` on `device`, queued; nobody waits.
cdef Tensor copied_to_peer(Tensor source, int device)

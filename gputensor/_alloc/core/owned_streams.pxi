"""Owned streams: those that stay valid as long as their device is open.

The allocator may pass such a stream to the driver at any time. A stream of another library may be
destroyed once no tensor of ours uses it, and passing it to the driver afterwards is undefined. The
library's own streams are never destroyed (streams/DESIGN.md); the default stream cannot be.
"""

cdef enum:
    LEGACY_STREAM = 1           # CUDA's other name of stream 0

cdef struct OwnedStream:
    uint64_t handle
    OwnedStream* next

cdef OwnedStream* owned_streams[MAX_DEVICES]
cdef int32_t owned_streams_lock = 0


cdef void stream_own(int device, uint64_t stream) noexcept nogil:
    # Without host memory for the record the stream is only queried less often.
    cdef OwnedStream* record = <OwnedStream*>calloc(1, sizeof(OwnedStream))
    if record == NULL:
        return
    record.handle = stream
    gt_spin_lock(&owned_streams_lock)
    record.next = owned_streams[device + HOST_DEVICES]
    owned_streams[device + HOST_DEVICES] = record
    gt_spin_unlock(&owned_streams_lock)


cdef bint stream_is_owned(int device, uint64_t stream) noexcept nogil:
    cdef OwnedStream* record
    if stream == 0 or (stream == LEGACY_STREAM and device >= 0):
        return True
    gt_spin_lock(&owned_streams_lock)
    record = owned_streams[device + HOST_DEVICES]
    while record != NULL and record.handle != stream:
        record = record.next
    gt_spin_unlock(&owned_streams_lock)
    return record != NULL


def keep_stream(int device, uint64_t stream):
    """Register a stream that stays valid until its device is closed."""
    stream_own(device, stream)


@before_close
def _forget(int device):
    cdef OwnedStream* record
    cdef OwnedStream* following
    gt_spin_lock(&owned_streams_lock)
    record = owned_streams[device + HOST_DEVICES]
    owned_streams[device + HOST_DEVICES] = NULL
    gt_spin_unlock(&owned_streams_lock)
    while record != NULL:
        following = record.next
        free(record)
        record = following


# The child of a fork knows no stream of its parent.
cdef void _owned_streams_after_fork() noexcept nogil:
    cdef int index
    for index in range(MAX_DEVICES):
        owned_streams[index] = NULL
    gt_spin_unlock(&owned_streams_lock)


at_fork(_owned_streams_after_fork)

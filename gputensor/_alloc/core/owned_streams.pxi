"""Owned streams: those that stay valid as long as their device is open; and the slot of this room.

The allocator may pass such a stream to the driver at any time. A stream of another library may be
destroyed once no tensor of ours uses it, and passing it to the driver afterwards is undefined. The
library's own streams are never destroyed (streams/DESIGN.md); the default stream cannot be.
"""

cdef enum:
    LEGACY_STREAM = 1           # CUDA's other name for stream 0

cdef struct OwnedStream:
    uint64_t handle
    OwnedStream* next

cdef struct CoreSlot:
    OwnedStream* owned_streams

cdef int32_t owned_streams_lock = 0


# The device has to be open.
cdef inline CoreSlot* core_of(int device) noexcept nogil:
    return <CoreSlot*>device_slot(device, core_slot)


cpdef void stream_own(int device, uint64_t stream) noexcept nogil:
    cdef SpinHeld held
    # Without host memory for the record the stream is only queried less often.
    cdef OwnedStream* record = <OwnedStream*>calloc(1, sizeof(OwnedStream))
    if record == NULL:
        return
    record.handle = stream
    held.take(&owned_streams_lock)
    row_push(&core_of(device).owned_streams, record)


cdef bint stream_is_owned(int device, uint64_t stream) noexcept nogil:
    cdef OwnedStream* record
    cdef SpinHeld held
    if stream == 0 or (stream == LEGACY_STREAM and device >= 0):
        return True
    held.take(&owned_streams_lock)
    for record in each(core_of(device).owned_streams):
        if record.handle == stream:
            return True
    return False


# ---- the slot of this room (registry.pxd), and the locks of the process in a fork

cdef int _close(int device) except -1:
    cdef SpinHeld held
    held.take(&owned_streams_lock)
    while core_of(device).owned_streams != NULL:
        free(row_pop(&core_of(device).owned_streams))
    return 0


cdef void _fork() noexcept nogil:
    gt_spin_unlock(&check_lock)
    gt_spin_unlock(&owned_streams_lock)
    gt_spin_unlock(&closing_lock)
    block_fork()


cdef Slot slot
slot.nbytes = sizeof(CoreSlot)
slot.close = _close
slot.fork = _fork
cdef int core_slot = register_slot(&slot)

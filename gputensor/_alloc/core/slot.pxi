"""What this room keeps for each open device (registry.pxd), and the locks of the process in a fork.

Records of blocks, the map of addresses and the thread caches are the process's.
"""

cdef int _close(int device) except -1:
    owned_streams_forget(device)
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

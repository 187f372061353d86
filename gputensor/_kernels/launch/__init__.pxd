# What other rooms may call of _kernels/launch; each section is named after its part.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._arrays cimport Operand
from gputensor._driver.table cimport MAX_DEVICES

# ---- module_cache

# Kernels: compiled at their first use on a device, kept by device, launched without the GIL.
#
# `Kernel` is the one type of a compiled kernel, passed as a borrowed void* where no GIL is held; a
# Kernel is never freed. A launcher with a single program keeps a Kernel; one with variants keeps a
# KernelTable, where an integer names the variant. On a known key no Python object is touched.

cdef class Kernel:
    cdef readonly object program            # a program.Program
    cdef uint64_t[MAX_DEVICES] functions    # by device + HOST_DEVICES; 0: not loaded there

cdef extern from "gputensor/_kernels/launch/kernel_table.h" namespace "gputensor" nogil:
    cdef cppclass KernelTable:
        void* find(uint64_t key)
        void insert(uint64_t key, void* kernel)

# Makes the program.Program of a variant; what `variant` points to is between it and its launcher.
ctypedef object (*program_t)(const void* variant)

# The kernel of a variant. The first time, takes the GIL and asks `make` for its program.
cdef void* kernel_of(KernelTable* table, uint64_t key, program_t make,
                     const void* variant) except NULL nogil

# One launch: all three extents of grid and block; what shared_nbytes may rise to in later launches
# of the kernel; the program's single parameter struct of `nbytes` bytes, zeroed before it was
# filled, which is copied before the call returns.
cdef struct Launch:
    int device
    uint64_t stream
    uint32_t[3] grid
    uint32_t[3] block
    uint32_t shared_nbytes
    uint32_t most_shared_nbytes
    const void* parameters
    size_t nbytes

# A launch of `grid` blocks of `block` threads, of one dimension, without dynamic shared memory.
cdef inline void launch_init(Launch* launch, int device, uint64_t stream, uint32_t grid,
                             uint32_t block, const void* parameters, size_t nbytes) noexcept nogil:
    launch.device, launch.stream = device, stream
    launch.grid[0], launch.grid[1], launch.grid[2] = grid, 1, 1
    launch.block[0], launch.block[1], launch.block[2] = block, 1, 1
    launch.shared_nbytes = launch.most_shared_nbytes = 0
    launch.parameters, launch.nbytes = parameters, nbytes

# Compiles (unless the disk has it) and loads the kernel, with up to `shared_nbytes` of dynamic
# shared memory allowed, unless that is done. Raises DeviceError when nothing compiles it, or when
# the device lacks what it needs.
cdef int kernel_load(void* kernel, int device, int shared_nbytes) except -1 nogil
# Loads the kernel where it is not yet, and queues the launch; raises DriverError when it is
# refused.
cdef int launch_kernel(void* kernel, const Launch* launch) except -1 nogil


# ---- host_call

# Work on a host device: a call of the registry (calls.py) queued on one of its streams.
#
# A host device may do it at once, or later in any order that its streams and events allow. An
# exception inside the row's function is kept for its device, and raised by the next host_call or
# raise_pending on that device; on a device that does not defer that is the very same call, or the
# end of the section that it is in.
# Every function needs the GIL.

# Queues row.run(*arguments), arguments in the row's order; holds them until it ran (for captured
# work: until the capture's graph is released). On a device with a recorder, gives them to that.
cdef int host_call(int device, uint64_t stream, object row, tuple arguments) except -1
# Queues a C function that needs no GIL and cannot fail, with a record that it frees. 0: the device
# keeps its calls, or the stream captures; it has to be a call, and the record is the caller's.
cdef int host_work(int device, uint64_t stream, void (*function)(void*) noexcept nogil,
                   void* record) except -1
# Raises the first exception that queued work of this device left, once.
cdef int raise_pending(int device) except -1
# A NumPy array over the operand's memory (no copy, owns nothing); for a scalar operand a 0-d array
# of the operand's dtype.
cdef object host_view(Operand* operand)
# An operand as an argument of host_call: a view, or a CallOperand where the device has a recorder;
# None for NULL.
cdef object call_argument(int device, const Operand* operand)


# ---- call_operand

# Operands of calls as Python objects: what a recorder gets, and what a door takes.

cdef class CallOperand:
    cdef Operand c

cdef CallOperand call_operand(const Operand* operand)
# The recorder of a device, or None; and whether it has one.
cdef object recorder_of(int device)
cdef bint is_recorded(int device) noexcept nogil

# The functions of _kernels/launch that other rooms may call; each section is named after its part.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._arrays cimport Operand
from gputensor._driver.table cimport MAX_DEVICES

# ---- module_cache

# Kernels: compiled at their first use on a device, kept by device, launched without the GIL.
#
# `Kernel` is the only type of compiled kernels, passed as a borrowed void* where no GIL is held; a
# Kernel is never freed. A launcher with a single program keeps a Kernel; one with variants keeps a
# KernelTable with integer keys of the variants. With a known key no Python object is touched.

cdef class Kernel:
    cdef readonly object program            # a program.Program
    cdef uint64_t[MAX_DEVICES] functions    # by device + HOST_DEVICES; 0: not loaded there
    cdef uint32_t[MAX_DEVICES] allowed      # bytes of dynamic shared memory that it may use there

cdef extern from "gputensor/_kernels/launch/kernel_table.h" namespace "gputensor" nogil:
    cdef cppclass KernelTable:
        void* find(uint64_t key)
        void insert(uint64_t key, void* kernel)

# Makes the program.Program of a variant; `variant` points to a struct that its launcher defines.
ctypedef object (*program_t)(const void* variant)

# Returns the kernel of a variant. At its first use, takes the GIL and calls `make` for its program.
cdef void* kernel_of(KernelTable* table, uint64_t key, program_t make,
                     const void* variant) except NULL nogil

# One launch: all three extents of grid and block; the greatest shared_nbytes of later launches of
# the kernel; the program's single parameter struct of `nbytes` bytes, which was zeroed before it
# was filled and is copied before the call returns.
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

# If the kernel is not loaded, compiles it (unless the disk cache has it) and loads it, with up to
# `shared_nbytes` of dynamic shared memory allowed. Raises DeviceError when there is no compiler for
# it, or when the device lacks a feature that it needs.
cdef int kernel_load(void* kernel, int device, int shared_nbytes) except -1 nogil
# The same, and allows more dynamic shared memory to a kernel that is loaded already.
cdef int kernel_allow(Kernel kernel, int device, uint32_t shared_nbytes) except -1
# Loads the kernel if needed, and queues the launch; raises DriverError when the driver refuses it.
cdef int launch_kernel(void* kernel, const Launch* launch) except -1 nogil


# ---- host_call

# Work on a host device: a call of the registry (calls.py) queued on one of its streams.
#
# A host device may run the call at once, or later in any order that its streams and events allow.
# An exception inside the row's function is kept for its device, and raised by the next host_call or
# raise_pending on that device; on a device that is not deferred, by the same call, or at the end of
# the section that the call is in. Every function needs the GIL.

# Queues row.run(*arguments), arguments in the row's order, and holds them until it has run
# (captured work: until the capture's graph is released). If the device has a recorder, passes them
# to it.
cdef int host_call(int device, uint64_t stream, object row, tuple arguments) except -1
# Queues a C function that needs no GIL and cannot fail, with a record that it frees. Returns 0 when
# the device has a recorder or the stream captures: then the caller keeps the record and has to make
# a host_call.
cdef int host_work(int device, uint64_t stream, void (*function)(void*) noexcept nogil,
                   void* record) except -1
# Keeps an exception of queued work of a device, to be raised as said above.
cdef void keep_error(int device, object error) noexcept
# Raises the first exception of queued work of this device, once.
cdef int raise_pending(int device) except -1
# A NumPy array over the operand's memory (no copy, owns nothing); for a scalar operand a 0-d array
# of the operand's dtype.
cdef object host_view(Operand* operand)
# An operand as an argument of host_call: a view, or a CallOperand if the device has a recorder;
# None for NULL.
cdef object call_argument(int device, const Operand* operand)


# ---- call_operand

# Operands of calls as Python objects, for recorders and doors.

cdef class CallOperand:
    cdef Operand c

cdef CallOperand call_operand(const Operand* operand)
# The recorder of a device, or None; and whether it has one.
cdef object recorder_of(int device)
cdef bint is_recorded(int device) noexcept nogil

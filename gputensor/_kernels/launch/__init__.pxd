# What other rooms may call of _kernels/launch; each section is named after its part.

from cython.operator cimport dereference
from libc.stdint cimport uint32_t, uint64_t
from libcpp.unordered_map cimport unordered_map

from gputensor._arrays cimport Operand
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES

# ---- module_cache

# Kernels: compiled at their first use on a device, kept by device, launched.
#
# `Kernel` is the one type of a compiled kernel. A launcher with a single program keeps a Kernel;
# one with variants keeps a KernelTable, where an integer names the variant. Neither lookup hashes
# text or makes a Python object. What a Kernel holds is read without the GIL; a table is read with
# it, like everything else here.

cdef class Kernel:
    cdef readonly object program            # a program.Program
    cdef uint64_t[MAX_DEVICES] functions    # by device + HOST_DEVICES; 0: not loaded there
    # Compiles (unless the disk has it) and loads the kernel, with up to `shared_nbytes` of dynamic
    # shared memory allowed. Raises DeviceError when nothing compiles it, or when the device lacks
    # what it needs. Needs the GIL.
    cdef uint64_t load(self, int device, int shared_nbytes) except 0

cdef class KernelTable:
    cdef unordered_map[uint64_t, void*] kernels     # borrowed from `owned`
    cdef list owned
    # The kernel of a program, borrowed, and now found under `key`.
    cdef void* add(self, uint64_t key, object program) except NULL

# The kernel of a variant, borrowed, or NULL when it is not known yet: add it then.
cdef inline void* kernel_find(KernelTable table, uint64_t key) noexcept:
    found = table.kernels.find(key)
    return NULL if found == table.kernels.end() else dereference(found).second

# The handle of the kernel on a device, loaded when it is not yet there.
cdef inline uint64_t kernel_function(Kernel kernel, int device, int shared_nbytes=0) except 0:
    cdef uint64_t function = kernel.functions[device + HOST_DEVICES]
    return function if function else kernel.load(device, shared_nbytes)

cdef struct LaunchShape:
    uint32_t x, y, z                    # blocks
    uint32_t block_x, block_y, block_z  # threads of each
    uint32_t shared_nbytes              # dynamic shared memory of each

cdef inline LaunchShape blocks_in_line(uint64_t blocks, uint32_t threads,
                                       uint32_t shared_nbytes=0) noexcept nogil:
    return LaunchShape(<uint32_t>blocks, 1, 1, threads, 1, 1, shared_nbytes)

# Queues one launch. `parameters` points to the program's single parameter struct of `nbytes` bytes,
# zeroed before it was filled; it is copied before the call returns. Raises DriverError when the
# launch is refused.
cdef int launch_kernel(int device, uint64_t stream, uint64_t function, LaunchShape shape,
                       const void* parameters, size_t nbytes) except -1


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
# Raises the first exception that queued work of this device left, once.
cdef int raise_pending(int device) except -1
# A NumPy array over the operand's memory (no copy, owns nothing); for a scalar operand a 0-d array
# of the operand's dtype.
cdef object host_view(Operand* operand)
# An operand as an argument of host_call: a view, or a CallOperand where the device has a recorder;
# None for NULL.
cdef object call_argument(int device, const Operand* operand)

cdef inline bint is_host(int device) noexcept nogil:
    return device < 0


# ---- call_operand

# Operands of calls as Python objects: what a recorder gets, and what a door takes.

cdef class CallOperand:
    cdef Operand c

cdef CallOperand call_operand(const Operand* operand)
# The recorder of an open device; None on every CUDA device.
cdef object recorder_of(int device)

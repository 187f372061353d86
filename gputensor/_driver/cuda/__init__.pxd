# What other rooms may call of _driver/cuda; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport Driver, status_t

# ---- cuda

# CUDA devices: opening one gives a filled driver table. The functions below it are for those who
# load device code; `device` is an open CUDA device, handles are integers, the results CUDA statuses
# (STATUS_INVALID_DEVICE when the device is not open). A failed call leaves its outputs untouched.

# Names for `function_attribute` (CUfunction_attribute).
cdef enum:
    FUNCTION_MAX_THREADS = 0            # threads of a block
    FUNCTION_STATIC_SHARED_NBYTES = 1
    FUNCTION_LOCAL_NBYTES = 3           # of one thread: spills
    FUNCTION_REGISTERS = 4
    FUNCTION_MAX_DYNAMIC_SHARED_NBYTES = 8

# Raises DeviceError, in one sentence, when there is no such device or no way to it.
cdef Driver* cuda_open(int ordinal) except NULL
# In the child of a fork, where the driver refuses whatever its parent initialised.
cdef void cuda_after_fork() noexcept nogil
# For libraries that work in the thread's current context: makes the device's current, and puts back
# the one that was current `before`. A thread without a context keeps the device's.
cdef status_t context_enter(int device, void** before) noexcept nogil
cdef void context_leave(int device, void* before) noexcept nogil
# The compute capability as one number: 90 for 9.0. Raises DeviceError as cuda_open does.
cdef int cuda_capability(int device) except -1
# `image`: a cubin, a fat binary, or PTX text that ends with a zero byte.
cdef status_t module_load(int device, const void* image, uint64_t* module) noexcept nogil
cdef status_t module_function(int device, uint64_t module, const char* name,
                              uint64_t* function) noexcept nogil
# Allows launches with up to `nbytes` of dynamic shared memory (above 48 KiB it must be allowed).
cdef status_t function_allow_shared(int device, uint64_t function, int nbytes) noexcept nogil

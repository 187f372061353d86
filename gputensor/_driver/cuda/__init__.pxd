# The functions of _driver/cuda that the registry calls; no code outside _driver imports this room.

from gputensor._driver.table cimport Driver

# ---- cuda

# Returns the table of a CUDA device, with its primary context retained. Raises DeviceError, in one
# sentence, when the device does not exist or CUDA cannot be used.
cdef Driver* cuda_open(int ordinal) except NULL
# Called in the child of a fork, where the driver refuses all that the parent initialised.
cdef void cuda_after_fork() noexcept nogil

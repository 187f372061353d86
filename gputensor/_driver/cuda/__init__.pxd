# What the registry may call of _driver/cuda; nothing outside _driver names this room.

from gputensor._driver.table cimport Driver

# ---- cuda

# The table of a CUDA device, with its primary context retained. Raises DeviceError, in one
# sentence, when there is no such device or no way to it.
cdef Driver* cuda_open(int ordinal) except NULL
# In the child of a fork, where the driver refuses whatever its parent initialised.
cdef void cuda_after_fork() noexcept nogil

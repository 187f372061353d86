# The functions of _driver/cuda that other files of _driver call; no code outside it imports this
# room.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._driver.table cimport Driver

# ---- cuda

# Returns the table of a CUDA device, with its primary context retained. Raises DeviceError, in one
# sentence, when the device does not exist or CUDA cannot be used.
cdef Driver* cuda_open(int ordinal) except NULL
# Called in the child of a fork, where the driver refuses all that the parent initialised.
cdef void cuda_after_fork() noexcept nogil

# ---- tensor maps

# The driver's functions that encode tensor maps; NULL where it lacks them, or before it is loaded.
cdef struct MapEncoders:
    int (*tiled)(void* map, int kind, unsigned int rank, uint64_t ptr, const uint64_t* extents,
                 const uint64_t* strides, const uint32_t* box, const uint32_t* steps,
                 int interleave, int swizzle, int promotion, int fill) noexcept nogil
    int (*im2col)(void* map, int kind, unsigned int rank, uint64_t ptr, const uint64_t* extents,
                  const uint64_t* strides, const int* lower, const int* upper,
                  unsigned int channels, unsigned int pixels, const uint32_t* steps,
                  int interleave, int swizzle, int promotion, int fill) noexcept nogil
cdef MapEncoders map_encoders() noexcept nogil

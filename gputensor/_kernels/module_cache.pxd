# Compiled kernels by their source, and their launch. Whoever has a CUDA kernel uses these two.

from libc.stdint cimport uint32_t, uint64_t

# The handle of the function `name` of a CUDA C++ program on a device, compiled when neither this
# process (by device and hash of the source) nor the disk has it. `options` are further NVRTC
# options. Needs the GIL. Keep the handle under an integer key of your own: this call hashes text.
cdef uint64_t compile_kernel(int device, str source, str name, tuple options) except 0

# Queues one launch. `parameters` points to the program's single parameter struct, which is copied
# before the call returns. Raises DriverError when the launch is refused.
cdef int launch_kernel(int device, uint64_t stream, uint64_t function, uint32_t grid,
                       uint32_t block, uint32_t shared_nbytes, void* parameters) except -1
cdef int launch_kernel_3d(int device, uint64_t stream, uint64_t function,
                          uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                          uint32_t block_x, uint32_t block_y, uint32_t block_z,
                          uint32_t shared_nbytes, void* parameters) except -1

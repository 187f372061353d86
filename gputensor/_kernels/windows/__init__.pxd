# What other rooms may call of _kernels/windows.

from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport Operand

cdef enum:
    POOL_MAX = 0
    POOL_SUM = 1
    POOL_MEAN = 2
    POOL_PADDED_MEAN = 3
    POOL_WEIGHTED = 4           # a convolution in which each channel is by itself

# A fold over windows of `x`; all are (batch, channels, one to three axes). Attributes are for three
# axes, of which the last ones are those of the operands; a kernel of 0 cuts an axis in as many
# windows as the result has.
cdef struct WindowFold:
    int pooling                 # POOL_*
    const Operand* x
    const Operand* out          # shares nothing with the others
    const Operand* weight       # (channels of out, 1, kernel); NULL unless weighted, as those below
    const Operand* bias         # or NULL
    const Operand* addend       # of the shape of out; or NULL
    int activation              # by its number in CONVOLUTION_ACTIVATIONS
    int64_t[3] kernel
    int64_t[3] stride
    int64_t[3] padding
    int64_t[3] ends
    int64_t[3] dilation

# Queues the kernel on a CUDA device. The caller has checked: shapes, types, that no extent is 0.
cdef int window_launch(int device, uint64_t stream, const WindowFold* given) except -1
# The values of a sequence for the last of three axes, `absent` for those before.
cdef int read_axes(object values, int64_t absent, int64_t* out) except -1

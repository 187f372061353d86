# What other rooms may call of blas/convolution.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._arrays cimport Operand

# activation(convolution(x, weight) + bias + addend). Attributes are for three axes, of which the
# last ones are those of the operands. The caller has checked shapes and types; no extent is 0.
cdef struct Convolution:
    const Operand* x            # [batch, channels, one to three axes]
    const Operand* weight       # [outputs, channels / groups, kernel]
    const Operand* out          # [batch, outputs, axes], shares nothing with the others
    const Operand* bias         # [outputs]; or NULL
    const Operand* addend       # of the shape of out; or NULL
    int64_t[3] stride
    int64_t[3] padding          # before x; what lies beyond x is 0
    int64_t[3] dilation
    int64_t groups
    int activation              # by its number in CONVOLUTION_ACTIVATIONS
    uint32_t precision          # flags of precision.pxd

# Queues the work on any device.
cdef int convolve(int device, uint64_t stream, const Convolution* given) except -1

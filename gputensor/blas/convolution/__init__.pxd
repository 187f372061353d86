# The parts of blas/convolution that other rooms may call.

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t

from gputensor._arrays cimport Operand

# activation(convolution(x, weight) + bias + addend). Attributes are for three axes; operands with
# fewer axes use the last ones. The caller has checked shapes and types; no extent is 0.
cdef struct Convolution:
    const Operand* x            # [batch, channels, one to three axes]
    const Operand* weight       # [outputs, channels / groups, kernel]
    const Operand* out          # [batch, outputs, axes], shares nothing with the others
    const Operand* bias         # [outputs]; or NULL
    const Operand* addend       # of the shape of out; or NULL
    int64_t[3] stride
    int64_t[3] padding          # zeros before x; positions beyond x are 0 too
    int64_t[3] dilation
    int64_t groups
    int activation              # by its number in CONVOLUTION_ACTIVATIONS
    uint32_t precision          # flags of blas/plan

# Queues the work on any device.
cdef int convolve(int device, uint64_t stream, const Convolution* given) except -1

# ---- parameters of kernels, and the plans of shifted patches and of maps, which tests read

cdef extern from "gputensor/blas/kernels/convolution/convolution.h" namespace "gputensor" nogil:
    cdef struct ConvolutionOperand:
        uint64_t ptr
        int64_t batch
        int64_t channel
        int64_t[3] axes

    cdef struct ConvolutionAxis:
        int32_t x
        int32_t out
        int32_t kernel
        int32_t stride
        int32_t padding
        int32_t dilation

    cdef struct ConvolutionParameters:
        ConvolutionOperand x
        ConvolutionOperand weight
        ConvolutionOperand out
        ConvolutionOperand addend
        uint64_t bias
        int64_t bias_stride
        uint64_t partial
        ConvolutionAxis[3] axes
        int32_t pixels
        int32_t channels
        int32_t outputs
        int32_t groups
        int32_t column_tiles
        int32_t splits
        int32_t steps

cdef extern from "gputensor/blas/kernels/convolution/few.h" namespace "gputensor" nogil:
    cdef struct FewParameters:
        ConvolutionParameters common
        int32_t rows
        int32_t fragments
        int32_t down
        int32_t across
        int32_t lines
        int32_t pitch
        uint32_t tiles

cdef extern from "gputensor/blas/kernels/convolution/shifted.h" namespace "gputensor" nogil:
    cdef struct ShiftedTap:
        int32_t shift
        int16_t number
        int16_t is_first
        int16_t y
        int16_t x

    cdef struct ShiftedParameters:
        ConvolutionParameters common
        int64_t positions
        int32_t pitch
        int32_t image
        int32_t lead
        int32_t rows
        int32_t patch
        int32_t taps
        int32_t steps
        uint32_t tiles
        ShiftedTap[64] tap

cdef extern from "gputensor/blas/kernels/convolution/mapped.h" namespace "gputensor" nogil:
    cdef struct DeviceMap "gputensor::TensorMap":
        uint64_t[16] words

    cdef struct MappedParameters:
        DeviceMap x
        DeviceMap weight
        DeviceMap out
        ConvolutionParameters common
        int32_t steps
        uint32_t tiles

cdef struct ShiftedForm:
    int dtype
    int activation
    int outputs                 # of a block: 64 or 128
    int columns                 # positions of a warpgroup
    int stages
    int places
    int splits
    int is_vectored
    int sharing

cdef struct MappedForm:
    int dtype
    int activation
    int outputs                 # of a block: 64 or 128
    int columns                 # positions of a warpgroup
    int stages
    int splits
    int blocks                  # of a multiprocessor

# Converts operands to parameters; raises ValueError where there are too many results or terms.
cdef int convolution_parameters(ConvolutionParameters* p, const Convolution* given) except -1
# Completes a form whose dtype, activation and is_vectored are set, and fills all parameters that
# follow from it and `common`. Returns False where no form fits. Needs the GIL.
cdef bint shifted_plan(ShiftedForm* form, ShiftedParameters* s, int64_t images,
                       int multiprocessors) noexcept
# Completes a form as above, and fills all parameters that follow from it and `common` but the maps.
cdef bint mapped_plan(MappedForm* form, MappedParameters* m, int multiprocessors,
                      int64_t shared_nbytes) noexcept nogil

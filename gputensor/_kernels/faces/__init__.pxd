# The functions of _kernels/faces that other rooms may call; each section is named after its part.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._arrays cimport Layout, Operand

# ---- reduction_layout

# The axes of a reduction in their simplest form: kept and reduced axes apart, innermost first.

cdef extern from "gputensor/_kernels/cuda/reduction.h" namespace "gputensor" nogil:
    cdef struct KeptAxis:
        int64_t size
        int64_t in_stride
        int64_t out_stride

    cdef struct ReducedAxis:
        int64_t size
        int64_t stride

cdef struct ReductionLayout:
    int kept_ndim
    int reduced_ndim
    int64_t kept                # products of the sizes
    int64_t reduced
    KeptAxis[16] kept_axes
    ReducedAxis[16] reduced_axes


# ---- elementwise

# Element-wise kernels on Operands.
#
# This and every other call below goes to the executor of the device's kind. On CUDA it takes no GIL
# and touches no Python object, except to compile a new kernel and to raise.
#
# Inputs are broadcast to the shape of `out` (stride 0 along broadcast axes) or are scalars; each is
# first cast to `compute_dtype`, and the result is cast to the dtype of `out`. The 16-bit floats are
# computed in float32 and rounded once. Values are NumPy's: integers wrap, x // 0 is 0 for
# integers, % has the divisor's sign. `out` may be an input with the same layout; the caller avoids
# any other overlap. No call here waits for the device.
#
# Operations and their values are rows of operations.py; a code is the number of a row. These are
# the codes that C code names; they are compared with the table at import. COPY always casts to the
# dtype of out and ignores compute_dtype; WHERE reads its first input as bool.

cdef enum:
    OP_COPY = 0
    OP_ADD = 4
    OP_SUB = 5
    OP_MUL = 6
    OP_DIV = 7
    OP_POW = 10
    OP_MAXIMUM = 11
    OP_MINIMUM = 12
    OP_WHERE = 25
    OP_SQUARE = 34
    OP_GELU = 60
    OP_CLIP = 62
    OP_CONJ = 65
    OP_GELU_TANH = 66
    MAX_OPERATIONS = 128        # the codes have 7 bits in the keys of kernels

# Raises TypeError when the operation does not exist for compute_dtype (sin of int32, bool - bool).
cdef int elementwise_check(int op, int compute_dtype) except -1
# The caller has checked: the number of inputs, their shapes, elementwise_check.
cdef int elementwise(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, int count, Operand* inputs) except -1 nogil


# ---- index

# Gather and scatter by integer index arrays.
#
# `indices` are `count` operands of integer dtype, broadcast to one common shape; together they
# index the `count` consecutive axes of `source` (or `target`) that start at `first_axis`. The other
# side has the shape  source.shape[:first_axis] + indices.shape + source.shape[first_axis + count:].
# Both sides have one dtype. A negative index counts from the end. An index out of range raises
# IndexError on a host device (when the work runs). A CUDA kernel cannot raise: gather then reads
# the nearest valid element, and scatter writes no element. Which of several writes to one element
# wins is not defined on CUDA; on a host device it is the last.

cdef int gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                int count, Operand* indices) except -1 nogil
cdef int scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                 Operand* indices, Operand* values) except -1 nogil
# For a selection without elements, of which none is read or written: IndexError for an axis of
# extent 0 that has indices, and on a host device for every index out of range (when the work runs).
cdef int check_unused(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                      Operand* indices) except -1 nogil


# ---- reduction

# Reductions of one Operand.
#
# `axes_mask` has bit i set when axis i of the input is reduced; `out` has the kept axes, in order.
# The input is cast to `compute_dtype`, reduced, and the result cast to the dtype of out. Sums of
# 16-bit floats are accumulated in float32; sums of float32 and float64 in a tree; integers exactly
# modulo 2^64. NaN wins in MAX, MIN, ARGMAX and ARGMIN. ARGMAX and ARGMIN give the first occurrence
# as an index along the reduced axis, or into the reduced axes flattened in C order. Results do not
# depend on timing: the same call gives the same bits. No call here waits for the device.
#
# An empty SUM is 0, PROD 1, ANY False, ALL True, MEAN NaN; an empty MAX, MIN, ARGMAX or ARGMIN
# raises ValueError.

cdef enum:
    RED_SUM = 0
    RED_PROD = 1
    RED_MAX = 2
    RED_MIN = 3
    RED_ARGMAX = 4
    RED_ARGMIN = 5
    RED_ANY = 6
    RED_ALL = 7
    RED_MEAN = 8
    RED_VAR = 9

# Raises TypeError when the reduction does not exist for compute_dtype.
cdef int reduction_check(int op, int compute_dtype) except -1
# The caller has checked: the shape of out, reduction_check, and that out has elements.
cdef int reduce(int op, int device, uint64_t stream, int compute_dtype,
                Operand* out, Operand* input, uint32_t axes_mask) except -1 nogil


# ---- creation

# Kernels that write an Operand and read no array: constants and arithmetic progressions.

# out[...] = value, a scalar operand, cast to the dtype of out.
cdef int fill(int device, uint64_t stream, Operand* out, Operand* value) except -1 nogil
# out[i] = start + i * step, out of one dimension. Integer dtypes (and bool) use the integer pair,
# which wraps; floating-point and complex dtypes use the double pair, rounded once at the end.
cdef int arange(int device, uint64_t stream, Operand* out, double start, double step,
                int64_t integer_start, int64_t integer_step) except -1 nogil


# ---- window

cdef enum:
    POOL_MAX = 0
    POOL_SUM = 1
    POOL_MEAN = 2
    POOL_PADDED_MEAN = 3
    POOL_WEIGHTED = 4           # a depthwise convolution

# A fold over windows of `x`; operands are (batch, channels, one to three axes). Attributes are for
# three axes, of which the last ones are those of the operands; a kernel of 0 cuts an axis into as
# many windows as the result has.
cdef struct WindowFold:
    int pooling                 # POOL_*
    const Operand* x
    const Operand* out          # shares no memory with the others
    const Operand* weight       # (channels of out, 1, kernel); NULL unless weighted, like the next
    const Operand* bias         # or NULL
    const Operand* addend       # of the shape of out, or NULL
    int activation              # its number in CONVOLUTION_ACTIVATIONS
    int64_t[3] kernel
    int64_t[3] stride
    int64_t[3] padding
    int64_t[3] ends
    int64_t[3] dilation

# Queues the kernel on a CUDA device. The caller has checked: shapes, types, that no extent is 0.
cdef int window_launch(int device, uint64_t stream, const WindowFold* given) except -1
# The values of a sequence for the last of three axes, `absent` for the axes before.
cdef int read_axes(object values, int64_t absent, int64_t* out) except -1

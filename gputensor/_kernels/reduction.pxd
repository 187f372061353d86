# Reductions of one Operand.
#
# `axes_mask` has bit i set when axis i of the input is reduced; `out` has the kept axes, in order.
# The input is cast to `compute_dtype`, reduced, and the result cast to the dtype of out. Sums of
# 16-bit floats are accumulated in float32; sums of float32 and float64 in a tree; integers exactly
# modulo 2^64. NaN wins in MAX, MIN, ARGMAX and ARGMIN. ARGMAX and ARGMIN give the first occurrence
# as an index along the reduced axis, or into the reduced axes flattened in C order. Results do not
# depend on timing: the same call gives the same bits. Nothing here waits for the device.
#
# An empty SUM is 0, PROD 1, ANY False, ALL True, MEAN NaN; an empty MAX, MIN, ARGMAX or ARGMIN
# raises ValueError.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._kernels.operand cimport Operand

cdef enum ReductionOp:
    RED_SUM = 0
    RED_PROD = 1
    RED_MAX = 2
    RED_MIN = 3
    RED_ARGMAX = 4
    RED_ARGMIN = 5
    RED_ANY = 6
    RED_ALL = 7
    RED_MEAN = 8

# Apart from the names: Cython 3.0 takes a member of a named enum for no array dimension.
cdef enum:
    REDUCTION_COUNT = 9

cdef int reduce(int op, int device, uint64_t stream, int compute_dtype,
                Operand* out, Operand* input, uint32_t axes_mask) except -1

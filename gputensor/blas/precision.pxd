# The precision flags as one number: which shortcuts a product may take. 0 is the exact setting.

from libc.stdint cimport uint32_t

cdef enum:
    FP32_MASK = 3               # how float32 products are computed, one of the next four
    FP32_IEEE = 0
    FP32_TF32 = 1
    FP32_BF16 = 2
    FP32_BF16X9 = 3
    FP16_REDUCTION = 4          # partial sums of fp16 products may be rounded to fp16
    BF16_REDUCTION = 8
    FP16_ACCUMULATION = 16      # fp16 products may be summed in fp16
    DETERMINISTIC = 32          # bitwise equal from run to run and across streams

# The flags in force in this thread: its innermost scope over the process default.
cdef class Precision:
    cdef readonly uint32_t mask     # the flags that are given
    cdef readonly uint32_t value

cdef uint32_t precision_current() noexcept nogil
# The same with a call's own setting on top: None, a Precision, or a string.
cdef uint32_t precision_for(object setting) except? 0xFFFFFFFF
# The library's compute type for products of a dtype into another: the libraries sum in float16 only
# what they give in float16.
cdef int compute_type(int dtype, int result, uint32_t flags) noexcept nogil
# Whether partial sums may be rounded to the output type.
cdef bint allows_reduced_reduction(int dtype, uint32_t flags) noexcept nogil

# A skinny product: y = alpha * x w^T + beta * addend + bias for at most 16 rows of x, as the own
# kernels take it (small_m.pyx).

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    SMALL_M = 16                # rows of x at most

cdef enum Form:                 # how the weights lie, as in skinny_mma.cuh
    FORM_PLAIN = 0              # [n, k], of the type of x
    FORM_INT8 = 1               # [n, k], with scales
    FORM_INT4 = 2               # tiles of 16 x 64 (int4_layout.py), with scales

cdef struct SmallProduct:
    int device
    int form
    int type_x                  # DType codes
    int type_y                  # also of bias and addend
    int group                   # k that share a scale; 0: all
    int64_t m, n, k
    uint64_t x, w, y
    int64_t x_pitch             # elements from row to row
    int64_t w_pitch             # elements; for INT4 tiles from tile row to tile row
    int64_t y_pitch
    int64_t addend_pitch
    uint64_t scales             # [groups, n] of type_x; 0 for plain weights
    uint64_t bias               # [n], or 0
    uint64_t addend             # [m, n]; read when beta is not 0
    float alpha, beta

cdef struct SmallDevice:        # what the shape of blocks depends on
    int multiprocessors         # 0: not asked yet
    int can_cluster
    int shared_nbytes           # of a multiprocessor

# What follows a product and is not the library's to do, in one launch on a GPU:
#
#   target = (activation(source * scale * scale2 + bias) + residual) * result_scale
#
# Every operand has the target's shape, broadcast by strides of 0; absent ones are NULL. Scales are
# float32. The arithmetic is float32, or float64 for a float64 target; the result is rounded once.
# `target` may be `source`, or `residual` when both have the same strides.

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

cdef struct Epilogue:
    int activation              # ACT_* of product.pxd
    const Operand* scale
    const Operand* scale2
    const Operand* bias
    const Operand* residual
    const Operand* result_scale     # one element

cdef void epilogue_init(Epilogue* epilogue) noexcept nogil
# A vector along the last axis, broadcast to the shape of `target`.
cdef void along_last_axis(const Operand* vector, const Operand* target, Operand* out) noexcept nogil
# Queues the launch. Types that are not floats know a bias only.
cdef int epilogue_run(int device, uint64_t stream, const Epilogue* epilogue,
                      const Operand* source, const Operand* target) except -1

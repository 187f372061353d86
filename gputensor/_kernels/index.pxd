# Gather and scatter by integer index arrays.
#
# `indices` are `count` operands of integer dtype, broadcast to one common shape; together they
# index the `count` consecutive axes of `source` (or `target`) that start at `first_axis`. The other
# side has the shape  source.shape[:first_axis] + indices.shape + source.shape[first_axis + count:].
# Both sides have one dtype. A negative index counts from the end. An index out of range raises
# IndexError on a host device (when the work runs); a CUDA kernel cannot raise: gather then reads
# the nearest element inside, scatter writes nothing. Which of several writes to one element wins is
# not defined on CUDA; on a host device it is the last.

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

cdef int gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                int count, Operand* indices) except -1
cdef int scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                 Operand* indices, Operand* values) except -1
# For a selection without elements, where nothing is read or written: IndexError for an axis of
# extent 0 that has indices, and on a host device for every index out of range (when the work runs).
cdef int check_unused(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                      Operand* indices) except -1

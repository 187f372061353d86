# Loops of the host device: operations of floats that NumPy does not have, without the GIL.
#
# A loop takes contiguous arrays of one dtype, float32 or float64, or single numbers. The C face of
# element-wise calls queues it directly (faces/elementwise.pxi); for all other arrays a HostLoop is
# the function of NumPy arrays that the row's host function has to be.

from cpython.buffer cimport (
    PyBUF_CONTIG, PyBUF_CONTIG_RO, PyBuffer_Release, PyObject_GetBuffer,
)

from libc.string cimport strcmp

import numpy as np

include "host_loops.pxi"


cdef const LoopRow* find_loop(str name):
    cdef bytes wanted = name.encode()
    cdef int i
    for i in range(LOOP_COUNT):
        if strcmp(LOOPS[i].name, wanted) == 0:
            return &LOOPS[i]
    return NULL


cdef class HostLoop:
    """The function of NumPy arrays that runs the loop of a row.

    >>> HostLoop("i0e")(np.zeros(2))
    array([1., 1.])
    """

    cdef const LoopRow* row

    def __init__(self, name):
        self.row = find_loop(name)
        if self.row == NULL:
            raise ImportError(f"operation {name}: got no loop; build again")

    def __call__(self, *inputs):
        shape = inputs[0].shape
        if len(inputs) > 1:
            shape = np.broadcast_shapes(*[x.shape for x in inputs])
        out = np.empty(shape, inputs[0].dtype)
        self._run(out, [_dense(x, shape) for x in inputs])
        return out

    def into(self, out, inputs):
        """Write the result into an array if it and the inputs are dense; return whether it did."""
        if not out.flags.c_contiguous:
            return False
        for x in inputs:
            if x.dtype != out.dtype or not (x.size == 1 or (x.shape == out.shape and
                                                            x.flags.c_contiguous)):
                return False
            if np.may_share_memory(x, out) and (
                    x.shape != out.shape or x.ctypes.data != out.ctypes.data):
                return False
        self._run(out, inputs)
        return True

    cdef int _run(self, object out, object inputs) except -1:
        cdef LoopCall call
        cdef Py_buffer[4] views
        cdef int held = 0, i
        cdef Loop loop = self.row.single if out.dtype.itemsize == 4 else self.row.wide
        call.count = out.size
        if call.count == 0:
            return 0
        try:
            PyObject_GetBuffer(out, &views[0], PyBUF_CONTIG)
            held = 1
            call.out = views[0].buf
            for i, x in enumerate(inputs):
                PyObject_GetBuffer(x, &views[i + 1], PyBUF_CONTIG_RO)
                held += 1
                call.inputs[i] = views[i + 1].buf
                call.steps[i] = x.size > 1
            with nogil:
                loop(call)
        finally:
            for i in range(held):
                PyBuffer_Release(&views[i])
        return 0


cdef object _dense(x, shape):
    """The input as one number or as a contiguous array of the shape."""
    if x.size == 1:
        return x
    return np.ascontiguousarray(x if x.shape == shape else np.broadcast_to(x, shape))

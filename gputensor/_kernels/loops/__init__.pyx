# Loops of the host device, without the GIL: operations of floats that NumPy does not have, short
# operations in which calling NumPy costs more than the work, and conversions of 16-bit floats.
#
# A loop takes contiguous arrays of one dtype, or single numbers. The C face of element-wise calls
# queues it directly (faces/elementwise.pxi); for all other arrays a HostLoop is the function of
# NumPy arrays that the host function of a row of floats has to be.

from cpython.buffer cimport (
    PyBUF_CONTIG, PyBUF_CONTIG_RO, PyBuffer_Release, PyObject_GetBuffer,
)

from libc.stdint cimport int64_t, uint16_t, uint32_t
from libc.string cimport strcmp

import numpy as np

from gputensor._arrays.element_types import DTYPES

include "host_loops.pxi"

cdef extern from "gputensor/_kernels/loops/halves.h" namespace "gputensor" nogil:
    bint has_halves()
    void widen_halves(const uint16_t* source, float* to, int64_t count)
    void narrow_to_halves(const float* source, uint16_t* to, int64_t count)
    void narrow_to_bfloats(const uint32_t* source, uint16_t* to, int64_t count)

cdef enum:                      # elements from which `converted` is faster than NumPy
    MANY_HALVES = 256
    MANY_BFLOATS = 2048

_SINGLE, _HALF = np.dtype(np.float32), np.dtype(np.float16)
_BFLOAT = next(row.numpy for row in DTYPES if row.name == "bfloat16")


def converted(array, dtype):
    """Return ``array.astype(dtype)``; many floats of 16 bits are converted by the loops here.

    >>> converted(np.ones(300, np.float32), np.dtype(np.float16)).sum()
    np.float16(300.0)
    """
    cdef Py_buffer source, target
    cdef int64_t count = array.size
    cdef bint is_wider = array.dtype is _HALF and dtype is _SINGLE, is_half = dtype is _HALF
    if not is_wider and not (array.dtype is _SINGLE and (is_half or dtype is _BFLOAT)):
        return array.astype(dtype)
    if count < (MANY_HALVES if is_wider or is_half else MANY_BFLOATS):
        return array.astype(dtype)
    if (is_wider or is_half) and not has_halves():
        return array.astype(dtype)
    array, out = np.ascontiguousarray(array), np.empty(array.shape, dtype)
    PyObject_GetBuffer(array, &source, PyBUF_CONTIG_RO)
    try:
        # Buffers have no bfloat16.
        words = out if is_wider or is_half else out.view(np.uint16)
        PyObject_GetBuffer(words, &target, PyBUF_CONTIG)
        with nogil:
            if is_wider:
                widen_halves(<const uint16_t*>source.buf, <float*>target.buf, count)
            elif is_half:
                narrow_to_halves(<const float*>source.buf, <uint16_t*>target.buf, count)
            else:
                narrow_to_bfloats(<const uint32_t*>source.buf, <uint16_t*>target.buf, count)
        PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
    return out


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
        cdef Loop loop = self.row.loops[LOOP_FLOAT if out.dtype.itemsize == 4 else LOOP_DOUBLE]
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

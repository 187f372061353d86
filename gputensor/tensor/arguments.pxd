# Arguments that many functions share: shapes, dtypes, axes.

from libc.stdint cimport int64_t

from gputensor.tensor.tensor cimport Tensor

# Reads a shape (an int or a sequence of ints) into `out`; gives the number of axes. ValueError for
# a negative extent, too many axes or more bytes than there are addresses.
cdef int shape_argument(object shape, int64_t* out) except -1
# A number of elements: 0 or more, and not more than there are addresses. Messages name the function
# and the argument.
cdef int64_t count_argument(object count, str name, str argument) except -1
# The number of a diagonal, k > 0 above the main one, cut to what 64 bits can add.
cdef int64_t diagonal_argument(object k, str name) except? -1
# The code of a dtype argument; `default` for None.
cdef int dtype_argument(object dtype, int default) except -1
# The device number of a device argument; None is the current device.
cdef int device_argument(object device) except? -1000
# An axis as 0 <= axis < ndim. IndexError names the function.
cpdef int axis_argument(object axis, int ndim, str name) except -1
# A bit for each axis of an int or a tuple of ints; all axes for None.
cdef int axes_mask(object axis, int ndim, str name) except -1
# A flag: True or False (also NumPy's). TypeError for anything else, names function and argument.
cdef bint flag_argument(object value, str name, str argument) except -1
# The copy argument of the array API: True, False or None; TypeError for anything else.
cdef object copy_argument(object value, str name)
# `value` as a Tensor; TypeError names the function.
cpdef Tensor tensor_argument(object value, str name)

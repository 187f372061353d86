# Nested lists and tuples with arrays, tensors and NumPy scalars among their parts.

# Whether a list or tuple holds anything but Python numbers that brings a dtype of its own.
cdef bint holds_arrays(object obj, int depth=*) except -1
# (array, parts): the parts as one NumPy array of the dtype they meet in, and as nested lists of
# numbers and NumPy arrays. TypeError for parts that are neither.
cdef tuple joined(object obj)

# The handle behind an object of another library.

# What the method __cuda_stream__ of a stream gives. TypeError when that is no pair, ValueError when
# it is of another version.
cdef object protocol_handle(object stream)

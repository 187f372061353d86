# The Device of a device number; equal numbers give the same object.

cdef class Device:
    cdef readonly int number

cdef Device device_object(int device)

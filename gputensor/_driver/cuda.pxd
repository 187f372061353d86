# CUDA devices.

from gputensor._driver.table cimport Driver

cdef Driver* cuda_open(int ordinal) except NULL

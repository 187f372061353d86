# Open devices by number (see table.pxd for the numbering). Written once when a device opens, under
# the GIL; read without any lock afterwards.

from gputensor._driver.table cimport Driver

# The table of an open device, or NULL when it is not open.
cdef Driver* driver_get(int device) noexcept nogil
# Opens the device when needed. Raises gputensor.errors.DeviceError when there is none.
cdef Driver* driver_open(int device) except NULL
# Puts another table (a wrapper around the present one) in front of an open device. Who holds the
# former table goes on using it, so replace before a device is used.
cdef void driver_replace(int device, Driver* table) noexcept nogil

# Has `function` called in the child of a fork, before any Python code runs there and after the
# tables are fit for it (DESIGN.md). Threads of the parent that are not there may have held any
# lock, in the middle of a change of what it guards. For modules, when they are imported.
ctypedef void (*fork_function_t)() noexcept nogil
cdef int at_fork(fork_function_t function) except -1

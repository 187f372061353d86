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

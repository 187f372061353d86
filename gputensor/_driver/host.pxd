# Host devices: opening one gives a filled driver table; closing frees all that it holds.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport Driver, status_t

# The table of a new host device; NULL when the process has no memory for it.
cdef Driver* host_open(int device, size_t capacity, bint phantom, bint deferred,
                       uint64_t seed) noexcept nogil
# Frees the device and its table. Nobody may use either afterwards.
cdef void host_close(Driver* table) noexcept nogil
# Runs all pending work of a deferred device.
cdef status_t host_run(Driver* table) noexcept nogil
# Around a fork of the process. In the child every open host device is empty afterwards: its number,
# capacity and table stay, and its memory is shared with nobody.
cdef void host_before_fork() noexcept nogil
cdef void host_after_fork(bint is_child) noexcept nogil
# Name to count of what is live on the device.
cdef dict host_live(Driver* table)

# What other rooms may call of _driver/host; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._driver.phantom cimport PhantomRecorder
from gputensor._driver.table cimport Driver, status_t

# ---- host

# Host devices: opening one gives a filled driver table; closing frees all that it holds.

# The table of a new host device; NULL when the process has no memory for it.
cdef Driver* host_open(int device, size_t capacity, bint phantom, bint deferred,
                       uint64_t seed) noexcept nogil
# Frees the device and its table. Nobody may use either afterwards.
cdef void host_close(Driver* table) noexcept nogil
# The same for a phantom GPU (phantom_gpu.h): a table that keeps work as records.
cdef Driver* phantom_open(int device, int capability, int multiprocessors,
                          int shared_nbytes) noexcept nogil
cdef void phantom_close(Driver* table) noexcept nogil
# What the phantom GPU behind the table of an open one keeps.
cdef PhantomRecorder* phantom_recorder(Driver* table) noexcept nogil
# Runs all pending work of a deferred device.
cdef status_t host_run(Driver* table) noexcept nogil
# Around a fork of the process. In the child every open host device is empty afterwards: its number,
# capacity and table stay, and its memory is private.
cdef void host_before_fork() noexcept nogil
cdef void host_after_fork(bint is_child) noexcept nogil
# Name to count of what is live on the device.
cdef dict host_live(Driver* table)
# The section of a call that orders its uses of memory and queues its work, on any device
# (section.h). Other threads wait for it without the GIL. Sections nest.
cdef void section_begin() noexcept nogil
cdef bint section_entered() noexcept nogil
# In a section that waits for other threads: runs what this one has queued in it so far.
cdef void section_pay() noexcept nogil
# Host devices run now what was queued in the section: call it without the GIL where that may be.
# Gives the first status that this work left.
cdef status_t section_end() noexcept nogil

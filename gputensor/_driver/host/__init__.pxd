# The functions of _driver/host that other rooms may call; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._driver.phantom cimport PhantomRecorder
from gputensor._driver.table cimport Driver, status_t

# ---- host

# Host devices: opening one gives a filled driver table; closing frees all that it holds.

# Returns the table of a new host device; NULL when the process has no memory for it.
cdef Driver* host_open(int device, size_t capacity, bint phantom, bint deferred,
                       uint64_t seed) noexcept nogil
# Frees the device and its table; neither may be used afterwards.
cdef void host_close(Driver* table) noexcept nogil
# The same for a phantom GPU (phantom_gpu.h): a table that keeps work as records.
cdef Driver* phantom_open(int device, int capability, int multiprocessors,
                          int shared_nbytes) noexcept nogil
cdef void phantom_close(Driver* table) noexcept nogil
# The recorder of the phantom GPU that has this table.
cdef PhantomRecorder* phantom_recorder(Driver* table) noexcept nogil
# Runs all pending work of a deferred device.
cdef status_t host_run(Driver* table) noexcept nogil
# Called around a fork of the process. In the child every open host device is empty afterwards: its
# number, capacity and table stay, and its memory is private.
cdef void host_before_fork() noexcept nogil
cdef void host_after_fork(bint is_child) noexcept nogil
# The counts of live objects on the device, by name (LIVE_NAMES).
cdef dict host_live(Driver* table)
# The section of a call that orders its uses of memory and queues its work, on any device
# (section.h). Other threads wait for it without the GIL. Sections nest.
cdef void section_begin() noexcept nogil
cdef bint section_entered() noexcept nogil
# In a section that waits for other threads: runs the work that this thread has queued in it so far.
cdef void section_pay() noexcept nogil
# Ends the section. Host devices run its work now, so call it without the GIL where there may be
# such work. Returns the first failure of this work.
cdef status_t section_end() noexcept nogil

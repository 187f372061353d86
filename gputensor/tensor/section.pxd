# The section in which an operation on tensors orders its uses and queues its work: between the first
# prepare_read or prepare_write and the last piece of work, no other thread orders or queues.
#
#     work_begin()
#     try:
#         a.prepare_read(stream)
#         ...                         # queue the work; wait for nothing
#     finally:
#         work_end(device)
#
# What allocates, copies or waits comes before it.

from gputensor._driver.host cimport section_begin, section_end

cdef inline int work_begin() except -1:
    section_begin()
    return 0

cdef inline int work_end(int device) except -1:
    if device < 0:
        return host_work_end(device)
    section_end()
    return 0

# On a host device that does not defer, the work runs here; raises what it left.
cdef int host_work_end(int device) except -1

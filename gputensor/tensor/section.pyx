# The end of a section on a host device (see section.pxd).

from gputensor._driver.host cimport section_end
from gputensor._driver.table cimport status_t
from gputensor._kernels.host_call cimport raise_pending
from gputensor.streams.current cimport device_text

from gputensor.errors import raise_for_status


cdef int host_work_end(int device) except -1:
    cdef status_t status
    with nogil:
        status = section_end()
    raise_pending(device)
    if status:
        raise_for_status(status, "queued work", f"on {device_text(device)}")
    return 0

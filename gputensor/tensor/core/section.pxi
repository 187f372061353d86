# The end of a section on a host device (see __init__.pxd).

cdef int host_work_end(int device) except -1:
    cdef status_t status
    with nogil:
        status = section_end()
    raise_pending(device)
    if status:
        raise_for_status(status, "queued work", f"on {device_text(device)}")
    return 0

"""Reports of reads that wait for a device, to find those that slow a program down.

The mode is one word for the process, read by each read of a tensor's values. The GIL protects it.
"""

cdef enum:
    WAITS_ALLOWED = 0
    WAITS_WARN = 1
    WAITS_REFUSED = 2

cdef int wait_report = WAITS_ALLOWED
MODES = ("default", "warn", "error")
WAIT_TEXT = ("the program waits here for a device, to read the values of a tensor "
             "(set_sync_debug_mode)")


cdef int report_wait() except -1:
    cdef int level = 1
    if wait_report == WAITS_REFUSED:
        raise RuntimeError(WAIT_TEXT)
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gputensor."):
        frame = frame.f_back
        level += 1
    warnings.warn(WAIT_TEXT, UserWarning, stacklevel=level)
    return 0


def set_sync_debug_mode(debug_mode):
    """Choose what happens when the values of a tensor are read, which waits for its device.

    Parameters
    ----------
    debug_mode : {"default", "warn", "error"} or 0, 1, 2
        Nothing, a `UserWarning` at the line of the program, or a `RuntimeError` before the wait. It
        is the mode of the whole process, for reads such as ``x.numpy()``, ``x.item()``,
        ``print(x)`` and ``nonzero(x)``. Calls that only wait, as ``synchronize``, are not reported.

    Raises
    ------
    ValueError
        The mode is another one.

    Examples
    --------
    >>> import gputensor as gt
    >>> set_sync_debug_mode("error")
    >>> try:
    ...     gt.ones(3, device="host").sum().item()
    ... except RuntimeError as error:
    ...     print(str(error)[:35])
    ... finally:
    ...     set_sync_debug_mode("default")
    the program waits here for a device
    """
    global wait_report
    if isinstance(debug_mode, str) and debug_mode in MODES:
        wait_report = MODES.index(debug_mode)
    elif type(debug_mode) is int and 0 <= debug_mode <= 2:
        wait_report = debug_mode
    else:
        raise argument_error(ValueError, "debug_mode", debug_mode, f"one of {', '.join(MODES)}")


def get_sync_debug_mode():
    """Return the mode of :func:`set_sync_debug_mode`: 0, 1 or 2.

    >>> get_sync_debug_mode()
    0
    """
    return wait_report

"""One call of the registry with tensors, through its door.

For calls whose arguments Python code can check fast enough: the checked arguments go to the door as
operands, ordered like those of any operation.
"""


def queue_call(str name, tuple attributes, tuple writes, tuple reads=(), str title=None):
    """Queue a call that writes some tensors and reads others, all on one device.

    Parameters
    ----------
    name : str
        A row of ``_kernels.calls``.
    attributes : tuple
        In the row's order; already checked against the row's rule.
    writes, reads : tuple of Tensor or None
    title : str, optional
        The public function's name, for messages.

    >>> state, out = gt.zeros(4, dtype="uint64", device="host"), gt.empty(2, device="host")
    >>> queue_call("random", ("uniform", 0.0, 1.0), (out, state))
    >>> out.tolist() == [0x6627e8 / 2**24, 0xe169c5 / 2**24]
    True
    """
    cdef Operand operand
    cdef Tensor first = <Tensor?> writes[0]
    cdef int device = first.storage.device
    cdef uint64_t stream
    cdef object one, door = bound_row(name).door
    cdef list operands = list(attributes)
    for one in reads:
        if one is not None and (<Tensor?> one).storage.device != device:
            reads = on_one_device(title or name, reads, first)
            break
    for one in writes[1:]:
        if (<Tensor?> one).storage.device != device:
            on_one_device(title or name, writes[1:], first)
    stream = current_handle(device)
    work_begin()
    try:
        order_uses(list(writes), reads, stream)
        for one in writes + reads:
            if one is None:
                operands.append(None)
                continue
            (<Tensor?> one).fill_operand(&operand)
            operands.append(call_operand(&operand))
        door(device, stream, tuple(operands))
    finally:
        work_end(device)


def refuse_in_trace(Tensor tensor, str problem, str way_out):
    """Raise TraceError with `problem` and `way_out` if the tensor belongs to a trace.

    >>> refuse_in_trace(gt.ones(1, device="host"), "sorting letters", "sort numbers")
    """
    cdef int device = tensor.storage.device
    if is_recorded(device):
        recorder_of(device).refuse(problem, way_out)


def device_generation(Tensor tensor):
    """Return (number, generation) of a tensor's device; they differ once it was closed.

    >>> device_generation(gt.ones(1, device="host"))[0]
    -1
    """
    return tensor.storage.device, tensor.storage.generation

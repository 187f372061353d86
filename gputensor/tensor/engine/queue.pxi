"""One call of an engine: its reads and writes are ordered like those of any operation.

A host device queues the engine's NumPy function inside the section. CuPy may compile and wait, so
on CUDA it runs after the section, and the uses are ordered once more behind its work.
"""

cdef int order_uses(list outputs, tuple inputs, uint64_t stream) except -1:
    for one in inputs:
        if one is not None:
            (<Tensor> one).prepare_read(stream)
    for one in outputs:
        (<Tensor> one).prepare_write(stream)
    return 0


def queue_engine(engine, tuple attributes, list outputs, *inputs):
    """Queue an engine that writes new tensors and reads others, all on one device.

    Parameters
    ----------
    engine : Engine
    attributes : tuple
    outputs : list of Tensor
        New memory of the result's shapes and dtypes.
    *inputs : Tensor or None

    Returns
    -------
    Tensor or tuple of Tensor
        The outputs.

    Raises
    ------
    RuntimeError
        The device records its calls for a trace, and the engine is not a call.

    >>> from gputensor._engines.sorting import sort
    >>> x = gt.asarray([3, 1, 2], device="host")
    >>> queue_engine(sort, (0, False), [gt.empty_like(x)], x).tolist()
    [1, 2, 3]
    """
    cdef Operand operand
    cdef Tensor first = <Tensor?> outputs[0]
    cdef int device = first.storage.device
    cdef bint is_host = device_kind(device) == DEVICE_HOST
    cdef uint64_t stream
    cdef list operands = []
    cdef str title = engine.title(attributes)
    for one in inputs:
        if one is not None and (<Tensor?> one).storage.device != device:
            inputs = on_one_device(title, inputs, first)
            break
    if is_recorded(device) and engine.is_call:
        queue_call(engine.name, attributes, tuple(outputs), inputs, title)
        return first if len(outputs) == 1 else tuple(outputs)
    if is_recorded(device):
        recorder_of(device).refuse(f"{title}() in a program", "call it outside")
    if not is_host:
        cupy_calls.library(title)
    stream = current_handle(device)
    work_begin()
    try:
        order_uses(outputs, inputs, stream)
        for one in outputs + list(inputs):
            if one is None:
                operands.append(None)
                continue
            (<Tensor?> one).fill_operand(&operand)
            operands.append(host_view(&operand) if is_host else call_operand(&operand))
        if is_host:
            host_call(device, stream, engine, attributes + tuple(operands))
    finally:
        work_end(device)
    if not is_host:
        cupy_calls.run(engine, device, stream, attributes, operands)
        work_begin()
        try:
            order_uses(outputs, inputs, stream)
        finally:
            work_end(device)
    return first if len(outputs) == 1 else tuple(outputs)

"""Tensors while this thread traces a function: lifting, refusing, and watching writes.

Otherwise none of it runs, except `on_one_device`, which then raises an error. The tracer is
described in streams/order/traces.pxi.
"""

cdef int refuse_value_of(Tensor tensor, str what) except -1:
    tracer = current_tracer()
    if tracer.number == tensor.storage.device:
        tracer.refuse_value(what)
    return 0


cpdef tuple on_one_device(str function, tuple operands, Tensor out):
    cdef Tensor one
    if is_tracing():
        return current_tracer().lift(function, operands, out)
    found = [tensor for tensor in (*operands, out) if type(tensor) is Tensor]
    for one in found:
        if one.storage.device != (<Tensor> found[0]).storage.device:
            raise ValueError(f"{function}: operands: got devices {found[0].device} and "
                             f"{one.device}; expected one device (move a tensor with to_device)")
    return operands


cdef tuple extents_seen(Tensor tensor, tuple values):
    """Return extents as a function that this thread traces sees them."""
    if not is_tracing():
        return values
    return current_tracer().extents(tensor.storage.device, values)


cdef int length_seen(Tensor tensor) except -1:
    if is_tracing():
        current_tracer().length(tensor.storage.device, tensor.shape_[0])
    return 0


def storage_place(Tensor tensor):
    """Return (address of the storage, its bytes, byte offset of the tensor in it), for tracers."""
    return tensor.storage.ptr, tensor.storage.nbytes, tensor.ptr - tensor.storage.ptr


def device_number_of(Tensor tensor):
    """Return the number of a tensor's device, also if that is a trace device."""
    return tensor.storage.device


def view_of(Tensor base, int64_t offset, object dtype, object shape, object strides):
    """Return a tensor over the storage of `base`: `offset` bytes into it, strides in elements."""
    cdef int64_t[16] extents
    cdef int64_t[16] steps
    cdef int i, ndim = shape_argument(shape, extents)
    for i in range(ndim):
        steps[i] = strides[i]
    return tensor_over(base.storage, base.storage.ptr + <uint64_t> offset, dtype_argument(dtype, 0),
                       ndim, extents, steps)


cdef int storage_check_write(Storage storage) except -1:
    storage_check_open(storage)
    if is_tracing():
        current_tracer().made(storage.device, storage)
    return 0


def watch_writes(bint on):
    """Report every write, in any thread and on any device, to tracers; calls nest."""
    global closable, traces
    traces += 1 if on else -1
    closable = MAX_DEVICES - HOST_DEVICES if traces else closable_untraced

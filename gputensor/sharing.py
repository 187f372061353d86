"""Tensors on one device that several processes share.

A shared tensor has pages of its own, which live as long as any process maps them: no process has to
wait for another one to drop the tensor, and no allocator reuses its memory. A
:mod:`multiprocessing` queue, pipe or argument sends a handle, not the values; for CUDA any start
method but ``"fork"`` works. Sending waits for the work queued so far, so the receiver sees its
results. A handle can be opened once, while its sender runs. Processes order all later work
themselves, with messages or with ``Event(interprocess=True)``.
"""

from multiprocessing.reduction import DupFd, ForkingPickler

from gputensor._alloc import observe
from gputensor._driver.registry import cuda_device_count, device_info
from gputensor.errors import DeviceError, OutOfMemoryError, argument_error, list_argument
from gputensor.streams.queue import Device, device_number, synchronize
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import SharedPages, memory_owner, over_memory
from gputensor.tensor.manipulation import broadcast_to, empty

__all__ = ["empty_shared", "is_shared", "share"]


def empty_shared(shape, dtype="float32", device=None):
    """Return a new tensor with undefined values in memory that other processes can use.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : optional
    device : optional
        Default: the current device.

    Raises
    ------
    OutOfMemoryError
        The device has not enough memory, even without the cache of free memory.

    Examples
    --------
    >>> x = empty_shared(3, device="host")
    >>> is_shared(x), is_shared(x[1:])
    (True, True)
    """
    rule = "an int or a sequence of ints"
    is_int = hasattr(shape, "__index__")
    extents = (shape,) if is_int else tuple(list_argument("shape", shape, rule))
    model = _model(extents, dtype, device)
    number = device_number(device)
    try:
        pages = SharedPages(number, max(model.nbytes, 1))
    except OutOfMemoryError:
        observe.empty_cache(number)
        pages = SharedPages(number, max(model.nbytes, 1))
    return over_memory(pages, pages.ptr, extents, None, dtype)


def share(x):
    """Return `x` itself if its memory is shared, otherwise a copy of it in shared memory.

    Examples
    --------
    >>> import gputensor as gt
    >>> y = share(gt.arange(3, device="host"))
    >>> y.numpy(), share(y) is y
    (array([0, 1, 2]), True)
    """
    if is_shared(x):
        return x
    made = empty_shared(x.shape, x.dtype, x.device)
    made[...] = x
    return made


def is_shared(x):
    """Return whether other processes can use the memory of a tensor."""
    if not isinstance(x, Tensor):
        raise argument_error(TypeError, "x", x, "a Tensor")
    return isinstance(memory_owner(x), SharedPages)


def _model(shape, dtype, device):
    """Return a tensor of the shape without memory for its elements; checks the arguments."""
    return broadcast_to(empty((), dtype=dtype, device=device), shape)


def _reduce(x):
    pages = memory_owner(x)
    if not isinstance(pages, SharedPages):
        return x.__reduce__()
    synchronize(pages.device)
    strides = tuple(stride // x.itemsize for stride in x.strides)
    place = x.data_ptr() - pages.ptr if x.size else 0
    layout = (place, x.shape, strides, x.dtype.name)
    return _opened, (_name_of(pages.device), pages.nbytes, DupFd(pages.descriptor), layout)


def _opened(name, nbytes, descriptor, layout):
    """Return the tensor that another process sent."""
    place, shape, strides, dtype = layout
    number = _number_of(name)
    try:
        received = descriptor.detach()
    except (EOFError, OSError) as error:
        raise DeviceError(
            "a shared tensor cannot be received: its handle was opened before, or the process that "
            "sent it has ended"
        ) from error
    pages = SharedPages(number, nbytes, received)
    return over_memory(pages, pages.ptr + place, shape, strides, dtype)


def _name_of(number):
    """Return a device's name for all processes; CUDA ordinals depend on CUDA_VISIBLE_DEVICES."""
    return str(Device(number)) if number < 0 else device_info(number)["uuid"]


def _number_of(name):
    if name.startswith("host"):
        return device_number(name)
    for ordinal in range(cuda_device_count()):
        if device_info(ordinal)["uuid"] == name:
            return device_number(ordinal)
    raise DeviceError(f"this process does not see the GPU {name} of a shared tensor")


ForkingPickler.register(Tensor, _reduce)


def __dir__():
    return sorted(__all__)

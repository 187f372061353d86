"""Device: the value that names a device, and a `with` block that makes it current.

A Device is a name, not a resource: making one opens nothing and makes no driver call. There is
one object for each device number, so `tensor.device` costs a list access.
"""

cdef list devices = [None] * MAX_DEVICES


cdef class Device:
    """A device by name: ``"cuda:0"``, ``"cuda"`` (the current CUDA device), ``"host"``.

    Parameters
    ----------
    device : str, int, Device or None
        The name of the device. An int is a CUDA ordinal, or the negative number of a host device;
        None is the current device. An object with ``.type`` and ``.index`` works too.
    index : int, optional
        The ordinal, when `device` is a bare type such as ``"cuda"``.

    Attributes
    ----------
    type : str
        ``"cuda"`` or ``"host"``.
    index : int
        The ordinal among the devices of the type.
    number : int
        The library's internal number: the CUDA ordinal, or -1 - index for a host device.

    Raises
    ------
    ValueError, TypeError
        `device` is not the name of a possible device. A device that does not exist raises at its
        first use.

    Notes
    -----
    In a ``with`` statement the device is the thread's current device until the end of the block,
    also upon an exception.

    Examples
    --------
    >>> device = Device("host")
    >>> device.type, device.index
    ('host', 0)
    >>> device == "host", device == Device("cuda:1")
    (True, False)
    >>> str(Device("cuda", 1))
    'cuda:1'
    """

    def __cinit__(self, device=None, index=None):
        if index is not None:
            if not isinstance(device, str) or ":" in device:
                raise argument_error(ValueError, "device", device,
                                     "'cuda' or 'host' beside an index")
            device = f"{device}:{index}"
        self.number = parse_device(device)

    @property
    def type(self):
        """``"cuda"`` or ``"host"``."""
        return "cuda" if self.number >= 0 else "host"

    @property
    def index(self):
        """The ordinal among the devices of its type."""
        return self.number if self.number >= 0 else HOST_DEVICE - self.number

    @property
    def id(self):
        """The ordinal: CuPy's name of `index`."""
        return self.index

    def synchronize(self):
        """Wait until all work of the device is done, as :func:`synchronize`."""
        synchronize(self)

    def use(self):
        """Make the device current in this thread, as :func:`set_device`, and return it.

        >>> with Device("host"):
        ...     Device("host").use()
        device('host')
        """
        make_device_current(self.number)
        return self

    def __eq__(self, other):
        if isinstance(other, Device):
            return self.number == (<Device>other).number
        if isinstance(other, str):
            # "cuda" without a number is "cuda:0" here: equality does not depend on the thread.
            return other == device_text(self.number) or (other == "cuda" and self.number == 0) or (
                other == "host:0" and self.number == HOST_DEVICE)
        return NotImplemented

    def __hash__(self):
        return hash(device_text(self.number))

    def __str__(self):
        return device_text(self.number)

    def __repr__(self):
        return f"device('{device_text(self.number)}')"

    def __reduce__(self):
        return Device, (device_text(self.number),)

    def __enter__(self):
        enter_device(self.number)
        return self

    def __exit__(self, kind, value, trace):
        leave()


cdef Device device_object(int device):
    cdef object found = devices[device + HOST_DEVICES]
    if found is None:
        found = devices[device + HOST_DEVICES] = Device(device)
    return <Device>found


def stand_for(int number, device):
    """Make tensors on device `number` report `device` as theirs; None ends that."""
    devices[number + HOST_DEVICES] = None if device is None else Device(device)


def device_of(int number):
    """Return the Device of a device number.

    >>> device_of(-1)
    device('host')
    """
    if not -HOST_DEVICES <= number < MAX_DEVICES - HOST_DEVICES:
        raise argument_error(ValueError, "number", number, "the number of a device")
    return device_object(number)


def set_device(device):
    """Make a device current in this thread. Prefer a ``with`` statement, which restores it.

    Parameters
    ----------
    device : device
        An argument of :class:`Device`.

    Raises
    ------
    DeviceError
        The machine has no such device.

    Examples
    --------
    >>> with Device("host"):
    ...     set_device("host")
    """
    make_device_current(parse_device(device))

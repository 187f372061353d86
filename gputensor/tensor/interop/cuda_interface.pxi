"""The CUDA array interface, both ways: `__cuda_array_interface__`, versions 0 to 3.

Every field of an imported interface is checked before it is used. Version 3 names a stream on which
the memory is ready; our current stream waits for it. The protocol names no device, so the current
CUDA device is assumed; DLPack names one and is preferred if an object has both.
"""

cdef str NAME = "__cuda_array_interface__"
cdef int NEWEST_VERSION = 3

# Type string -> DType. Producers write "V2" for bfloat16, for which the protocol has no name.
cdef dict CODES = {row.numpy.str: code for code, row in enumerate(DTYPES)
                   if row.kind != "small" and row.numpy.kind != "V"}
CODES["<V2"] = CODES["|V2"] = DT_BFLOAT16


cdef int typestr_code(object text) except -1:
    cdef object code
    if not isinstance(text, str):
        raise TypeError(f"{NAME}: typestr: got {text!r:.60}; expected a str such as '<f4'")
    code = CODES.get(text)
    if code is None and text[1:] in ("b1", "i1", "u1"):
        code = CODES.get("|" + text[1:]) if text[0] in "<>=" else None
    if code is None and text[:1] == "=":
        code = CODES.get("<" + text[1:])
    if code is None:
        raise ValueError(f"{NAME}: typestr: got {text!r:.60}; expected one of "
                         f"{', '.join(sorted(CODES))}")
    return code


cdef bint read_data(Layout* layout, object data) except -1:
    """Store the address; return whether the memory is read-only."""
    cdef object address
    cdef tuple items = tuple(data) if isinstance(data, (tuple, list)) else ()
    if len(items) != 2:
        raise TypeError(f"{NAME}: data: got {data!r:.60}; expected a pair (address, is read-only)")
    address, is_readonly = items
    try:
        address = 0 if address is None else PyNumber_Index(address)
    except TypeError:
        raise TypeError(f"{NAME}: data: got address {address!r:.60}; expected an int") from None
    if not 0 <= address < 1 << 64:
        raise ValueError(f"{NAME}: data: got address {address:#x}; expected 0 to 2**64 - 1")
    if not isinstance(is_readonly, (bool, np.bool_)):
        raise TypeError(f"{NAME}: data: got {is_readonly!r:.60} as the read-only flag; expected "
                        "True or False")
    layout.ptr = address
    return is_readonly


cdef int check_version(object version) except -1:
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"{NAME}: version: got {version!r:.60}; expected an int")
    if not 0 <= version <= NEWEST_VERSION:
        raise ValueError(f"{NAME}: version: got {version:#x}; expected 0 to {NEWEST_VERSION}")
    return 0


cdef tuple read_interface(object interface, Layout* layout):
    """Fill the layout; return whether the memory is read-only, and the stream or None."""
    cdef dict fields
    if not isinstance(interface, dict):
        raise TypeError(f"{NAME}: got a {type(interface).__name__}; expected a dict")
    fields = <dict> interface       # bypasses overridden methods of a subclass
    for key in ("shape", "typestr", "data", "version"):
        if key not in fields:
            raise ValueError(f"{NAME}: got no {key!r}; expected shape, typestr, data and version")
    check_version(fields["version"])
    if fields.get("mask") is not None:
        raise ValueError(f"{NAME}: mask: got a mask; expected None, because masked arrays are "
                         "not supported")
    layout.dtype = typestr_code(fields["typestr"])
    is_readonly = read_data(layout, fields["data"])
    layout_shape(layout, fields["shape"], NAME)
    layout_strides(layout, fields.get("strides"), NAME)
    layout_check(layout, NAME)
    return is_readonly, fields.get("stream")


def from_cuda_array(obj):
    """Return a tensor over the memory of an object with ``__cuda_array_interface__``.

    The current stream waits for the stream that the object names.

    Raises
    ------
    TypeError, ValueError
        A field of the interface is missing or invalid; the message names it.
    """
    cdef Layout layout
    cdef int device, status
    cdef uint64_t ready = 0
    is_readonly, stream = read_interface(obj.__cuda_array_interface__, &layout)
    if stream is not None:
        ready = stream_of_protocol(stream, NAME)
    device = current_device()
    if device_kind(device) == DEVICE_HOST:
        device = resolve_device("cuda:0")
    if stream is not None:
        status = stream_wait_stream(device, current_handle(device), ready)
        raise_for_order(device, current_handle(device), status)
    return foreign_tensor(device, &layout, obj, is_readonly, NAME)


def array_interface(Tensor t):
    """Return the ``__cuda_array_interface__`` (version 3) of a tensor.

    It names the current stream, which first waits for all uses of the memory. Raises
    AttributeError for host tensors and float8, which the protocol cannot describe.
    """
    cdef int device = t.storage.device
    cdef uint64_t stream
    if device_kind(device) == DEVICE_HOST:
        raise AttributeError("__cuda_array_interface__ exists only for tensors on CUDA devices; "
                             f"this one is on {device_text(device)}")
    if dtype_kind(t.dtype_code) == KIND_SMALL:
        raise AttributeError(f"__cuda_array_interface__ has no name for {t.dtype}; use DLPack")
    stream = current_handle(device)
    prepare_export(t, stream)
    return {
        "shape": t.shape,
        "typestr": DTYPES[t.dtype_code].numpy.str,
        "data": (t.data_ptr(), bool(t.storage.is_readonly)),
        "strides": None if t.is_c_contiguous else t.strides,
        "stream": 1 if stream == 0 else stream,
        "version": 3,
    }

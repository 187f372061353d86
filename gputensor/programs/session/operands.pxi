"""Operands of bound calls, and single words, at addresses of host memory."""

cdef dict DTYPE_CODES = {row.name: row.code for row in DTYPES}


def host_arguments(tuple arguments, tuple patches, tuple addresses):
    """Return the arguments of a call for its host function, with views in place of operands.

    Parameters
    ----------
    arguments : tuple
        Attributes, and a CallOperand for each operand.
    patches : tuple of (int, int, int)
        (argument, piece, offset): the operand's address is the piece's plus the offset.
    addresses : tuple of int
        The address of each piece.
    """
    cdef list made = list(arguments)
    cdef CallOperand operand
    cdef int at, piece
    cdef int64_t offset
    for at, piece, offset in patches:
        operand = (<CallOperand>arguments[at]).at(<uint64_t>addresses[piece] + offset)
        made[at] = host_view(&operand.c)
    for at in range(len(made)):
        if type(made[at]) is CallOperand:
            operand = made[at]
            made[at] = host_view(&operand.c)
    return tuple(made)


cdef Tensor new_arena(int device, size_t nbytes):
    """Return new memory for the temporaries of a function."""
    cdef int64_t size = nbytes
    return empty_tensor(DT_UINT8, 1, &size, device)


def read_word(uint64_t address, int nbytes):
    """Return the unsigned integer of 1 or 8 bytes at an address of host memory."""
    return (<uint8_t*>address)[0] if nbytes == 1 else (<uint64_t*>address)[0]


def write_word(uint64_t address, int64_t value):
    """Write an int64 to an address of host memory."""
    (<int64_t*>address)[0] = value


def device_number(device):
    """Return the number of a device argument; None is the current device."""
    return resolve_device(device)

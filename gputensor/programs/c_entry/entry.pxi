"""The functions of gputensor_program.h: handles are references to a Program or a CSession."""

cdef extern from "gputensor/programs/c_entry/exported.h" nogil:
    cdef enum:
        OK "GPUTENSOR_PROGRAM_OK"
        INVALID "GPUTENSOR_PROGRAM_INVALID"
        MEMORY "GPUTENSOR_PROGRAM_MEMORY"
        FAILED "GPUTENSOR_PROGRAM_FAILED"

    ctypedef struct Calls "gt_program_calls_t":
        int (*open)(void**, const char*, const char*, int32_t) noexcept nogil
        int (*close)(void*) noexcept nogil
        const char* (*describe)(void*) noexcept nogil
        int (*session_open)(void**, void*) noexcept nogil
        int (*session_run)(void*, const char*, int32_t, const CTensor*, int32_t, CTensor*,
                           void*) noexcept nogil
        int (*session_close)(void*) noexcept nogil
    Calls gt_program_calls


@cython.final
@cython.internal
cdef class OpenProgram:
    cdef object program
    cdef bytes text


cdef int reported(error):
    """Keep the text of an exception for the caller, and return its status."""
    text = f"{type(error).__name__}: {error}".encode()
    gt_program_set_error(text)
    if isinstance(error, OutOfMemoryError):
        return MEMORY
    if isinstance(error, ProgramError):
        return FAILED
    return INVALID if isinstance(error, (TypeError, ValueError)) else FAILED


cdef int refuse(const char* text) noexcept nogil:
    gt_program_set_error(text)
    return INVALID


cdef int program_open(void** out, const char* path, const char* weights,
                      int32_t device) noexcept with gil:
    cdef OpenProgram made
    if out is NULL or path is NULL:
        return refuse(b"program or path: got NULL; expected addresses")
    try:
        if device < 0:
            raise argument_error(ValueError, "device", device, "the number of a GPU")
        made = OpenProgram.__new__(OpenProgram)
        made.program = load_program(
            path.decode(), device=device, weights=None if weights is NULL else weights.decode())
        made.program.bind_launches()
        made.text = described(made.program.data).encode()
    except BaseException as error:
        return reported(error)
    Py_INCREF(made)
    out[0] = <void*>made
    return OK


cdef int program_close(void* program) noexcept with gil:
    if program is NULL:
        return OK
    Py_DECREF(<OpenProgram>program)     # its sessions keep the program alive
    return OK


cdef const char* program_describe(void* program) noexcept with gil:
    if program is NULL:
        refuse(b"program: got NULL; expected an open program")
        return b""
    return (<OpenProgram>program).text


cdef int session_open(void** out, void* program) noexcept with gil:
    cdef CSession made
    if out is NULL or program is NULL:
        return refuse(b"session or program: got NULL; expected addresses")
    try:
        made = CSession((<OpenProgram>program).program)
    except BaseException as error:
        return reported(error)
    Py_INCREF(made)
    out[0] = <void*>made
    return OK


cdef int session_bind(void* session, const char* function, int32_t count,
                      const CTensor* inputs) noexcept with gil:
    try:
        (<CSession>session).bind(function, count, inputs)
    except BaseException as error:
        return reported(error)
    return OK


cdef int tell_status(status_t status) noexcept with gil:
    if status == PRODUCT_FAILED:
        return reported(product_problem())
    try:
        raise_for_status(status, "launch", "of a program")
    except BaseException as error:
        return reported(error)
    return FAILED


cdef int session_run(void* session, const char* function, int32_t input_count,
                     const CTensor* inputs, int32_t output_count, CTensor* outputs,
                     void* stream) noexcept nogil:
    cdef void* bound
    cdef int status
    cdef status_t queued
    if session is NULL or function is NULL or (input_count and inputs is NULL) or (
            output_count and outputs is NULL):
        return refuse(b"session, function or tensors: got NULL; expected addresses")
    bound = (<CSession>session).find(function, input_count, inputs)
    if bound is NULL:
        status = session_bind(session, function, input_count, inputs)
        if status != OK:
            return status
        bound = (<CSession>session).find(function, input_count, inputs)
        if bound is NULL:
            return refuse(b"inputs: got other strides; expected row-major strides")
    if not all_fit((<Bound>bound).outputs, output_count, outputs, (<CSession>session).device):
        return refuse(b"outputs: got other tensors; expected the function's, row-major, on its GPU")
    if not (have_addresses((<Bound>bound).inputs, inputs)
            and have_addresses((<Bound>bound).outputs, outputs)):
        return refuse(b"data of a tensor: got NULL; expected the address of memory of the GPU")
    if not are_aligned(input_count, inputs, INPUT_ALIGNMENT):
        return refuse(b"inputs: got an unaligned address; expected multiples of 16")
    if not are_aligned(output_count, outputs, OUTPUT_ALIGNMENT):
        return refuse(b"outputs: got an unaligned address; expected multiples of 256")
    (<CSession>session).last_stream = <uint64_t>stream
    queued = (<CSession>session).run(bound, inputs, outputs, <uint64_t>stream)
    return OK if queued == STATUS_OK else tell_status(queued)


cdef int session_close(void* session) noexcept with gil:
    if session is NULL:
        return OK
    try:
        synchronize((<CSession>session).device)
    except BaseException as error:
        return reported(error)
    Py_DECREF(<CSession>session)
    return OK


gt_program_calls.open, gt_program_calls.close = program_open, program_close
gt_program_calls.describe, gt_program_calls.session_open = program_describe, session_open
gt_program_calls.session_run, gt_program_calls.session_close = session_run, session_close


def library_path():
    """Return the path of the shared object that exports the functions, for ``dlopen``.

    >>> library_path().endswith(".so")
    True
    """
    return __file__


def header_path():
    """Return the path of ``gputensor_program.h``.

    >>> header_path().endswith(".h")
    True
    """
    return os.path.join(os.path.dirname(__file__), "gputensor_program.h")

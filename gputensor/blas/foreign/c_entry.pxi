"""The C entry: ``gputensor_mm_out`` and ``gputensor_last_error`` (c_entry.h has the contract).

A call takes no lock and no GIL when its plan is known, touches no Python object and shares plans
with the Python side. The GIL is taken to open a device with its libraries, once, and for host
products, which NumPy computes. Importing this module makes the symbols usable;
:func:`library_path` names the file that has them.
"""

cdef extern from "gputensor/blas/foreign/c_entry.h" nogil:
    ctypedef struct GtDLDevice:
        int32_t device_type
        int32_t device_id
    ctypedef struct GtDLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct GtDLTensor:
        void* data
        GtDLDevice device
        int32_t ndim
        GtDLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    ctypedef int (*gt_mm_out_t)(GtDLTensor*, const GtDLTensor*, const GtDLTensor*,
                                void*) noexcept nogil
    gt_mm_out_t gt_mm_out
    void gt_set_error(const char* text)
    void gt_set_argument_error(const char* name, const char* problem)
    void gt_set_error_number(const char* text, int64_t number)

cdef enum:                      # the results of c_entry.h
    OK = 0
    INVALID = 1
    NO_MEMORY = 2
    LIBRARY = 3

cdef enum:
    DL_HOST = 1
    DL_CUDA = 2


cdef int invalid(const char* name, const char* problem) noexcept nogil:
    """Set ``name: got VALUE; expected RULE``; `problem` is the part after the name."""
    gt_set_argument_error(name, problem)
    return INVALID


cdef int dtype_of(GtDLDataType dtype) noexcept nogil:
    """Return the DType code of a DLPack type of the contract; -1 for any other."""
    if dtype.lanes != 1:
        return -1
    if dtype.code == 2 and dtype.bits == 32:
        return DT_FLOAT32
    if dtype.code == 2 and dtype.bits == 16:
        return DT_FLOAT16
    if dtype.code == 4 and dtype.bits == 16:
        return DT_BFLOAT16
    return -1


cdef int read_tensor(const char* name, const GtDLTensor* tensor, Operand* operand) noexcept nogil:
    cdef int axis
    if tensor is NULL:
        return invalid(name, b"got NULL; expected a tensor")
    if tensor.ndim != 2:
        return invalid(name, b"got another number of dimensions; expected 2")
    if tensor.shape is NULL:
        return invalid(name, b"got the shape NULL; expected two extents")
    operand.dtype = dtype_of(tensor.dtype)
    if operand.dtype < 0:
        return invalid(name, b"got another element type; expected float32, float16 or bfloat16")
    operand.ptr = <uint64_t>tensor.data + tensor.byte_offset
    operand.ndim = 2
    operand.is_scalar = 0
    for axis in range(2):
        operand.shape[axis] = tensor.shape[axis]
        if operand.shape[axis] < 0:
            return invalid(name, b"got a negative extent; expected 0 or more")
    if tensor.strides is NULL:
        operand.strides[0], operand.strides[1] = operand.shape[1], 1
    else:
        operand.strides[0], operand.strides[1] = tensor.strides[0], tensor.strides[1]
    if operand.shape[0] == 0 or operand.shape[1] == 0:
        # Without elements, any strides are allowed.
        operand.strides[0], operand.strides[1] = operand.shape[1] or 1, 1
        return OK
    if tensor.data is NULL:
        return invalid(name, b"got the data NULL; expected the address of the elements")
    if operand.ptr % <uint64_t>dtype_itemsize(operand.dtype) != 0:
        return invalid(name, b"got an odd address; expected a multiple of the element's size")
    return OK


cdef bint overlaps(const Operand* out, const Operand* other) noexcept nogil:
    """Whether two matrices share an element.

    Exact for row-major matrices with equal row pitches, such as views of one buffer; for others,
    whether their address ranges overlap.
    """
    cdef uint64_t low, high, other_low, other_high
    cdef int64_t pitch, width, other_width, shift
    extent_of(out, &low, &high)
    extent_of(other, &other_low, &other_high)
    if low >= other_high or other_low >= high:
        return False
    if (out.strides[1] != 1 or other.strides[1] != 1 or out.strides[0] != other.strides[0]
            or out.strides[0] <= 0):
        return True
    pitch = out.strides[0] * dtype_itemsize(out.dtype)
    width = out.shape[1] * dtype_itemsize(out.dtype)
    other_width = other.shape[1] * dtype_itemsize(other.dtype)
    if width > pitch or other_width > pitch:
        return True
    shift = <int64_t>(other.ptr - out.ptr) % pitch
    if shift < 0:
        shift += pitch
    return shift < width or shift + other_width > pitch


cdef int check(GtDLTensor* out, const GtDLTensor* left, const GtDLTensor* right, Operand* operands,
               int* device) noexcept nogil:
    """Read and check the arguments; operands are out, self, mat2."""
    cdef int status = read_tensor(b"out", out, &operands[0])
    if status == OK:
        status = read_tensor(b"self", left, &operands[1])
    if status == OK:
        status = read_tensor(b"mat2", right, &operands[2])
    if status != OK:
        return status
    if operands[0].dtype != operands[1].dtype or operands[0].dtype != operands[2].dtype:
        return invalid(b"tensors", b"got several element types; expected one element type")
    if (out.device.device_type != left.device.device_type
            or out.device.device_type != right.device.device_type
            or out.device.device_id != left.device.device_id
            or out.device.device_id != right.device.device_id):
        return invalid(b"tensors", b"got several devices; expected one device")
    if out.device.device_type != DL_CUDA and out.device.device_type != DL_HOST:
        return invalid(b"device", b"got another type; expected a CUDA device or the host")
    # We use numbers below 0 for host devices.
    if out.device.device_type == DL_CUDA and not (
            0 <= out.device.device_id < MAX_DEVICES - HOST_DEVICES):
        gt_set_error_number(b"device: got %lld; expected the number of a CUDA device",
                            out.device.device_id)
        return INVALID
    device[0] = out.device.device_id if out.device.device_type == DL_CUDA else HOST_DEVICE
    if check_out(&operands[1], &operands[2], &operands[0]) != 0:
        return invalid(b"shapes", b"got extents or strides that do not fit; expected out[m, n] = "
                                  b"self[m, k] @ mat2[k, n], and no stride of 0 in out")
    if overlaps(&operands[0], &operands[1]) or overlaps(&operands[0], &operands[2]):
        return invalid(b"out", b"got memory that it shares with an operand; expected other "
                               b"memory")
    return OK


cdef int open_device(int device) noexcept with gil:
    """Open the device and load its libraries, once for each device."""
    try:
        driver_open(device)
        libraries_load(device)
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".encode()
        gt_set_error(text)
        return LIBRARY
    return OK


cdef int run_host(Operand* operands, uint64_t stream) noexcept with gil:
    try:
        driver_open(HOST_DEVICE)
        host_call(HOST_DEVICE, stream, PRODUCT_CALL, (
            1, 0, None, False, False, precision_current() & FP32_MASK,
            call_argument(HOST_DEVICE, &operands[0]), call_argument(HOST_DEVICE, &operands[1]),
            call_argument(HOST_DEVICE, &operands[2]), None, None, None, None,
        ))
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".encode()
        gt_set_error(text)
        return LIBRARY
    return OK


cdef int run_cuda(Product* product, uint64_t stream) noexcept nogil:
    cdef Wanted wanted
    cdef Outcome outcome
    cdef Work work
    cdef Plan* plan
    outcome.stage = STAGE_DONE
    wanted_init(&wanted, product, preferred_library(), PLAN_PLAIN)
    plan = plan_of(&wanted, stream, &outcome)
    if plan is not NULL:
        work_init(&work, plan, product, stream)
        work_queue(&work, &outcome)
    elif outcome.stage == STAGE_LIBRARY:
        gt_set_error_number(b"no library can plan the product: cuBLAS status %lld", outcome.status)
        return NO_MEMORY if outcome.status == BLAS_ALLOC_FAILED else LIBRARY
    if outcome.stage == STAGE_WORKSPACE:
        gt_set_error_number(b"no memory for a workspace of %lld bytes",
                            <int64_t>plan.workspace_nbytes)
    elif outcome.stage == STAGE_CONTEXT:
        gt_set_error(b"the device's context cannot be made current")
    elif outcome.stage == STAGE_LIBRARY:
        gt_set_error_number(b"the product was refused: cuBLAS status %lld", outcome.status)
    if plan is not NULL:
        plan_drop(plan)
    if outcome.stage == STAGE_DONE:
        return OK
    return NO_MEMORY if outcome.stage == STAGE_WORKSPACE else LIBRARY


cdef int write_zeros(const Product* product, uint64_t stream) noexcept nogil:
    """A sum of no terms is zero: fill the lines of the result."""
    cdef Driver* driver = driver_get(product.device)
    cdef int width = dtype_itemsize(product.type_d)
    cdef int64_t line
    cdef int64_t lines = product.n
    cdef int64_t length = product.m
    if product.ldd == length:
        length *= lines
        lines = 1
    for line in range(lines):
        if driver.fill_async(driver.self, product.d + <uint64_t>(line * product.ldd * width), 0,
                             width, <size_t>length, stream) != STATUS_OK:
            gt_set_error(b"the driver refused to fill the result")
            return LIBRARY
    return OK


cdef int mm_out(GtDLTensor* out, const GtDLTensor* left, const GtDLTensor* right,
                void* stream) noexcept nogil:
    cdef Operand[3] operands
    cdef Product product
    cdef int device = 0
    cdef int status = check(out, left, right, operands, &device)
    if status != OK:
        return status
    if operands[0].shape[0] == 0 or operands[0].shape[1] == 0:
        return OK
    # NumPy takes any strides, but the contract is the same for all devices.
    if prepare(&operands[1], &operands[2], NULL, operands, &product) != 0:
        return invalid(b"strides", b"got no unit stride, or rows that overlap; expected rows or "
                                   b"columns that are contiguous and separate")
    if device == HOST_DEVICE:
        return run_host(operands, <uint64_t>stream)
    if not libraries_are_loaded(device):
        status = open_device(device)
        if status != OK:
            return status
    # Only the flags that keep sums in float32, because a compiled program cannot see the others.
    product_fill(&product, device, precision_current() & FP32_MASK)
    if product.k == 0:
        return write_zeros(&product, <uint64_t>stream)
    return run_cuda(&product, <uint64_t>stream)


gt_mm_out = mm_out


def library_path():
    """Return the path of the shared object that exports the C entry, for ``dlopen``.

    >>> library_path().endswith(".so")
    True
    """
    return __file__

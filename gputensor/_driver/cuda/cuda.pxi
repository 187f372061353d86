# The CUDA driver library: finding it, its functions, and the devices it knows.
#
# Nothing happens at import. The first caller that needs CUDA loads the library and resolves every
# function once (api.h); the first that needs a device initialises CUDA and retains the device's
# primary context, the one that torch and CuPy use too. The context is kept until the process ends:
# at interpreter shutdown its users are unknown, and the driver frees it anyway.
#
# The library is loaded with RTLD_NOW, so that a broken installation fails here and not in a later
# call, and with RTLD_LOCAL: its functions are found through its handle, and other libraries that
# load the same file share it without getting its symbols through us.

cdef extern from "dlfcn.h" nogil:
    const int RTLD_NOW
    const int RTLD_LOCAL
    void* dlopen(const char* path, int flags)
    void* dlsym(void* library, const char* name)
    char* dlerror()

cdef extern from "gputensor/_driver/cuda/device.h" namespace "gputensor" nogil:
    cdef cppclass CudaApi:
        const char* resolve(void* library, void* (*symbol_of)(void*, const char*))
        int cuGetErrorName(int status, const char** name)
        int cuInit(unsigned int flags)
        int cuDriverGetVersion(int* version)
        int cuDeviceGetCount(int* count)
        int cuDeviceGet(int* device, int ordinal)
        int cuDeviceGetName(char* name, int length, int device)
        int cuDeviceGetUuid(void* uuid, int device)
        int cuDeviceGetPCIBusId(char* text, int length, int device)
        int cuDeviceTotalMem(size_t* nbytes, int device)
        int cuDeviceGetAttribute(int* value, int attribute, int device)
        int cuDevicePrimaryCtxRetain(void** context, int device)
        int cuCtxGetCurrent(void** context)
        int cuCtxSetCurrent(void* context)
        int (*cuTensorMapEncodeTiled)(
            void*, int, unsigned int, uint64_t, const uint64_t*, const uint64_t*, const uint32_t*,
            const uint32_t*, int, int, int, int) noexcept nogil
        int (*cuTensorMapEncodeIm2col)(
            void*, int, unsigned int, uint64_t, const uint64_t*, const uint64_t*, const int*,
            const int*, unsigned int, unsigned int, const uint32_t*, int, int, int,
            int) noexcept nogil
    const int ABI_VERSION "gputensor::CudaApi::ABI_VERSION"

    cdef cppclass CudaDevice:
        CudaDevice(const CudaApi& api, int device, void* context, bint blocking)
        void introduce(int ordinal)
        size_t granularity()

    void bind_entries(Driver* table, CudaDevice* device)

# Key of device_info -> number of the device attribute.
ATTRIBUTES = {
    "threads_per_block": 1,
    "static_shared_nbytes_per_block": 8,
    "warp_size": 10,
    "clock_khz": 13,
    "multiprocessors": 16,
    "integrated": 18,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_nbytes": 38,
    "threads_per_multiprocessor": 39,
    "shared_nbytes_per_multiprocessor": 81,
    "registers_per_multiprocessor": 82,
    "multi_gpu_board": 84,
    "shared_nbytes_per_block": 97,
    "virtual_memory": 102,
    "memory_pools": 115,
}
# What to do about the common failures of cuInit.
HINTS = {
    34: "the library found is a stub for linking; remove its directory from the library path",
    36: "the installed NVIDIA driver is older than this program needs",
    46: "the GPU is in use by another process in exclusive mode",
    100: "no GPU is visible to this process",
    802: "the system is not ready; on NVSwitch machines the fabric manager must run",
    803: "the library does not match the loaded kernel module; restart after the driver update",
    804: "the forward-compatibility library does not support this GPU",
    999: "the NVIDIA kernel module is probably not loaded, or the GPU is in a bad state",
}

cdef CudaApi api
cdef bint has_library = False
cdef bint is_initialised = False
cdef bint is_forked = False         # a parent of this process had initialised CUDA
cdef int device_count = 0           # as last counted


cdef int load_library() except -1:
    global has_library
    if has_library:
        return 0
    path = os.environ.get("GPUTENSOR_LIBCUDA") or "libcuda.so.1"
    cdef void* library = dlopen(path.encode(), RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        raise DeviceError(f"no CUDA: the driver library cannot be loaded ({dlerror().decode()})")
    cdef const char* missing = api.resolve(library, dlsym)
    if missing != NULL:
        raise DeviceError(f"no CUDA: {path} lacks {missing.decode()}{version_text()}; "
                          f"gputensor needs a driver for CUDA {version_name(ABI_VERSION)} or newer")
    has_library = True
    return 0


cdef int initialise() except -1:
    global is_initialised
    if is_initialised:
        return 0
    if is_forked:
        raise DeviceError("CUDA cannot be used in a forked process whose parent has used it; start "
                          "processes with the method 'spawn'")
    load_library()
    check(api.cuInit(0), "cuInit")
    cdef int version = 0
    check(api.cuDriverGetVersion(&version), "cuDriverGetVersion")
    if version < ABI_VERSION:
        raise DeviceError(f"no CUDA: the driver supports CUDA {version_name(version)}; "
                          f"gputensor needs {version_name(ABI_VERSION)} or newer")
    is_initialised = True
    return 0


cdef int check(int status, call) except -1:
    cdef const char* name = NULL
    if status == 0:
        return 0
    text = status_text(status)
    if text.startswith("status ") and api.cuGetErrorName(status, &name) == 0 and name != NULL:
        text = name.decode()
    hint = f": {HINTS[status]}" if status in HINTS else ""
    raise DeviceError(f"{call} failed: {text}{hint}")


cdef str version_name(int version):
    return f"{version // 1000}.{version % 1000 // 10}"


cdef str version_text():
    # For a library that lacks a function: it may still have the version function.
    cdef int version = 0
    if <void*>api.cuDriverGetVersion != NULL and api.cuDriverGetVersion(&version) == 0:
        return f" (it supports CUDA {version_name(version)})"
    return ""


cdef int count_devices() except -1:
    global device_count
    initialise()
    check(api.cuDeviceGetCount(&device_count), "cuDeviceGetCount")
    return device_count


cdef int device_handle(int ordinal) except -1:
    cdef int device = 0, count = count_devices()
    if not 0 <= ordinal < count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        tail = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible})"
        raise DeviceError(f"there is no CUDA device {ordinal}: this process sees {count}{tail}")
    check(api.cuDeviceGet(&device, ordinal), "cuDeviceGet")
    return device


cdef Driver* cuda_open(int ordinal) except NULL:
    cdef void* context = NULL
    cdef void* before = NULL
    cdef int device = device_handle(ordinal)
    cdef CudaDevice* cuda
    cdef Driver* table
    check(api.cuDevicePrimaryCtxRetain(&context, device), f"cuDevicePrimaryCtxRetain({ordinal})")
    check(api.cuCtxGetCurrent(&before), "cuCtxGetCurrent")
    if before == NULL:
        check(api.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    table = <Driver*>calloc(1, sizeof(Driver))
    if table == NULL:
        raise MemoryError
    blocking = os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")
    cuda = new CudaDevice(api, device, context, blocking)
    cuda.introduce(ordinal)
    bind_entries(table, cuda)
    table.name = "cuda"
    table.device = ordinal
    table.page_granularity = cuda.granularity()
    return table


cdef void cuda_after_fork() noexcept nogil:
    # The registry makes its tables refuse every call. The driver itself refuses the calls that this
    # file makes without a table.
    global is_forked, is_initialised
    is_forked = is_forked or is_initialised
    is_initialised = False


cdef MapEncoders map_encoders() noexcept nogil:
    return MapEncoders(api.cuTensorMapEncodeTiled, api.cuTensorMapEncodeIm2col)


def cuda_device_count():
    """Return how many CUDA devices this process sees; 0 when CUDA cannot be used, never an error.

    Loads the driver library and initialises CUDA, but makes no context. A forked process whose
    parent has used CUDA gets the parent's number, although it cannot use the devices.

    >>> cuda_device_count() >= 0
    True
    """
    try:
        return count_devices()
    except DeviceError:
        return device_count if is_forked else 0


def driver_version():
    """Return the CUDA version that the driver supports, for example ``(12, 8)``.

    Raises
    ------
    DeviceError
        CUDA cannot be used here; the message says why.
    """
    cdef int version = 0
    initialise()
    check(api.cuDriverGetVersion(&version), "cuDriverGetVersion")
    return version // 1000, version % 1000 // 10


def device_info(int ordinal):
    """Return the facts of a CUDA device, without opening it.

    Returns
    -------
    dict
        ``name``, ``uuid`` and ``pci`` (str), ``compute_capability`` and ``driver_version`` (pairs
        of int), ``total_memory`` (bytes), and as int the keys of `ATTRIBUTES`:
        ``shared_nbytes_per_block`` is the opt-in limit; ``integrated``, ``multi_gpu_board``,
        ``virtual_memory`` and ``memory_pools`` are 1 where it is so.

    Raises
    ------
    DeviceError
        There is no such device, or CUDA cannot be used here.
    """
    cdef int device = device_handle(ordinal)
    cdef char text[256]
    cdef unsigned char uuid[16]
    cdef size_t total = 0
    check(api.cuDeviceGetName(text, sizeof(text), device), "cuDeviceGetName")
    info = {"name": text.decode(), "driver_version": driver_version()}
    check(api.cuDeviceGetPCIBusId(text, sizeof(text), device), "cuDeviceGetPCIBusId")
    info["pci"] = text.decode()
    check(api.cuDeviceGetUuid(uuid, device), "cuDeviceGetUuid")
    digits = uuid[:16].hex()
    info["uuid"] = "GPU-" + "-".join(
        (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    check(api.cuDeviceTotalMem(&total, device), "cuDeviceTotalMem")
    info["total_memory"] = total
    info["compute_capability"] = (attribute(ATTRIBUTE_CAPABILITY_MAJOR, device),
                                  attribute(ATTRIBUTE_CAPABILITY_MINOR, device))
    for name, number in ATTRIBUTES.items():
        info[name] = attribute(number, device)
    return info


cdef int attribute(int number, int device) except? -1:
    cdef int value = 0
    check(api.cuDeviceGetAttribute(&value, number, device), f"cuDeviceGetAttribute({number})")
    return value

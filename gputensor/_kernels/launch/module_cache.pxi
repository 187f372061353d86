# Kernels: compiled at their first use on a device, kept by device, launched.
#
# A program's code comes from its Kernel, the files of disk_cache, or NVRTC, in this order
# (images.py). A phantom GPU has kernels without code and records which one was launched. Modules
# stay loaded for the life of the process: a queued launch or a graph may still use them. Only
# `forget_kernels` removes handles, when their device closes and in the child of a fork.

cdef list kernels = []      # every Kernel of the process

cdef enum:
    MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


cdef class Kernel:
    def __init__(self, program):
        self.program = program
        kernels.append(self)


cdef uint64_t load(Kernel kernel, int device, int shared_nbytes) except 0:
    cdef status_t status
    cdef Driver* driver = driver_open(device)
    cdef uint64_t module, function = 0
    cdef object program = kernel.program
    cdef bytes symbol = program.entry.encode()
    cdef str call = "module_function"
    module = load_module(driver, program)
    status = driver.module_function(driver.self, module, symbol, &function)
    if status == 0 and shared_nbytes:
        call = "function_allow_shared"
        status = driver.function_allow_shared(driver.self, function, shared_nbytes)
    if status != 0:
        # Unloads, so that the next load starts from the beginning.
        driver.module_unload(driver.self, module)
        raise_for_status(status, call, f"for {program.entry} of {program.path} with "
                         f"{shared_nbytes} bytes of shared memory on device {device}")
    kernel.allowed[device + HOST_DEVICES] = shared_nbytes
    # Stored last: a thread that reads the handle without the GIL may launch the kernel at once.
    kernel.functions[device + HOST_DEVICES] = function
    return function


cdef uint64_t load_with_gil(void* kernel, int device, int shared_nbytes) except 0 with gil:
    return load(<Kernel>kernel, device, shared_nbytes)


cdef int kernel_load(void* kernel, int device, int shared_nbytes) except -1 nogil:
    if not (<Kernel>kernel).functions[device + HOST_DEVICES]:
        load_with_gil(kernel, device, shared_nbytes)
    return 0


cdef int kernel_allow(Kernel kernel, int device, uint32_t shared_nbytes) except -1:
    cdef Driver* driver = driver_open(device)
    cdef int place = device + HOST_DEVICES
    cdef status_t status
    kernel_load(<void*>kernel, device, <int>shared_nbytes)
    if shared_nbytes > kernel.allowed[place]:
        status = driver.function_allow_shared(
            driver.self, kernel.functions[place], <int>shared_nbytes)
        raise_for_status(status, "function_allow_shared", f"for {kernel.program.path} with "
                         f"{shared_nbytes} bytes of shared memory on device {device}")
        kernel.allowed[place] = shared_nbytes
    return 0


def function_attribute(Kernel kernel, int device, int attribute):
    """Return a fact of a kernel on a device, by CUDA's number; loads it if needed."""
    cdef Driver* driver = driver_open(device)
    cdef int value = 0
    kernel_load(<void*>kernel, device, 0)
    raise_for_status(
        driver.function_attribute(driver.self, kernel.functions[device + HOST_DEVICES], attribute,
                                  &value),
        "function_attribute", f"{attribute} of {kernel.program.path} on device {device}")
    return value


def set_function_attribute(Kernel kernel, int device, int attribute, int value):
    """Change a setting of a kernel on a device, by CUDA's number; loads it if needed."""
    cdef Driver* driver = driver_open(device)
    kernel_load(<void*>kernel, device, 0)
    raise_for_status(
        driver.function_attribute_set(driver.self, kernel.functions[device + HOST_DEVICES],
                                      attribute, value),
        "function_attribute_set",
        f"{attribute} of {kernel.program.path} to {value} on device {device}")
    if attribute == MAX_DYNAMIC_SHARED:
        kernel.allowed[device + HOST_DEVICES] = value


cdef void* kernel_of(KernelTable* table, uint64_t key, program_t make,
                     const void* variant) except NULL nogil:
    cdef void* found = table.find(key)
    return found if found != NULL else kernel_add(table, key, make, variant)


cdef void* kernel_add(KernelTable* table, uint64_t key, program_t make,
                      const void* variant) except NULL with gil:
    cdef object program = make(variant)
    cdef void* found = table.find(key)
    cdef Kernel kernel
    if found == NULL:           # otherwise another thread has added it
        kernel = Kernel(program)
        found = <void*>kernel
        table.insert(key, found)
    return found


def forget_kernels(int device):
    """Remove the handles of kernels on a device that closes, or from the parent of a fork."""
    cdef Kernel kernel
    for kernel in kernels:
        kernel.functions[device + HOST_DEVICES] = 0


def loaded_programs(int device):
    """Return the programs whose kernels are loaded on a device."""
    cdef Kernel kernel
    return [kernel.program for kernel in kernels if kernel.functions[device + HOST_DEVICES]]


def programs_by_function(int device):
    """Return the programs of the kernels loaded on a device, by the handles of their functions."""
    cdef Kernel kernel
    return {kernel.functions[device + HOST_DEVICES]: kernel.program for kernel in kernels
            if kernel.functions[device + HOST_DEVICES]}


cdef uint64_t load_module(Driver* driver, object program) except 0:
    cdef status_t status
    cdef uint64_t module = 0
    cdef int device = driver.device
    cdef int capability = device_facts(device).capability
    cdef bytes image
    if capability < program.minimum:
        raise DeviceError(f"{program.path} needs compute capability {program.minimum / 10}; device "
                          f"{device} has {capability / 10}")
    if device_facts(device).is_phantom:     # it needs no code
        driver.module_load(driver.self, NULL, &module)
        return module
    target = nvrtc.architecture(capability)
    image = images.image_of(program, target)
    status = driver.module_load(driver.self, <const void*><const char*>image, &module)
    raise_for_status(status, "module_load", f"of {len(image)} bytes for {target}")
    return module | images.starts_early(image)


cdef int launch_kernel(void* kernel, const Launch* launch) except -1 nogil:
    cdef Driver* driver = driver_get(launch.device)
    cdef uint64_t function = (<Kernel>kernel).functions[launch.device + HOST_DEVICES]
    cdef status_t status
    if function == 0:
        function = load_with_gil(kernel, launch.device, <int>launch.most_shared_nbytes)
        driver = driver_get(launch.device)
    status = driver.kernel_launch(
        driver.self, function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
        launch.block[1], launch.block[2], launch.shared_nbytes, launch.stream, launch.parameters,
        launch.nbytes)
    return 0 if status == STATUS_OK else raise_for_launch(status, kernel, launch)


cdef int raise_for_launch(int status, void* kernel, const Launch* launch) except -1 with gil:
    grid = (launch.grid[0], launch.grid[1], launch.grid[2])
    program = (<Kernel>kernel).program
    raise_for_status(status, "kernel_launch",
                     f"of {program.entry} of {program.path} with grid {grid} on device "
                     f"{launch.device}")
    return 0

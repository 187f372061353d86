# Kernels: compiled at their first use on a device, kept by device, launched (see module_cache.pxd).
#
# A program is looked for in three places: its Kernel, the files of disk_cache, NVRTC. Modules stay
# loaded for the life of the process: a queued launch or a graph may still name them. Handles are
# forgotten in one place, `forget_kernels`, when their device closes and in the child of a fork.

cdef list kernels = []      # every Kernel of the process


cdef class Kernel:
    def __init__(self, program):
        self.program = program
        kernels.append(self)

    cdef uint64_t load(self, int device, int shared_nbytes) except 0:
        cdef status_t status
        cdef Driver* driver = driver_open(device)
        cdef uint64_t module, function = 0
        cdef bytes symbol = self.program.entry.encode()
        cdef str call = "module_function"
        module = load_module(driver, self.program)
        status = driver.module_function(driver.self, module, symbol, &function)
        if status == 0 and shared_nbytes:
            call = "function_allow_shared"
            status = driver.function_allow_shared(driver.self, function, shared_nbytes)
        if status != 0:
            # The next load begins anew.
            driver.module_unload(driver.self, module)
            raise_for_status(status, call, f"for {self.program.entry} of {self.program.path} with "
                             f"{shared_nbytes} bytes of shared memory on device {device}")
        # Whole only now: who reads the handle without the GIL may launch it.
        self.functions[device + HOST_DEVICES] = function
        return function


cdef class KernelTable:
    def __init__(self):
        self.owned = []

    cdef void* add(self, uint64_t key, object program) except NULL:
        cdef Kernel kernel
        cdef void* found = kernel_find(self, key)
        if found != NULL:           # another thread was quicker
            return found
        kernel = Kernel(program)
        self.owned.append(kernel)
        found = self.kernels[key] = <void*>kernel
        return found


def forget_kernels(int device):
    """Forget the kernels of a device that closes, or that a parent of this process had loaded."""
    cdef Kernel kernel
    for kernel in kernels:
        kernel.functions[device + HOST_DEVICES] = 0


def loaded_programs(int device):
    """Return the programs whose kernels are loaded on a device."""
    cdef Kernel kernel
    return [kernel.program for kernel in kernels if kernel.functions[device + HOST_DEVICES]]


cdef uint64_t load_module(Driver* driver, object program) except 0:
    cdef status_t status
    cdef uint64_t module = 0
    cdef int device = driver.device
    cdef int capability = device_facts(device).capability
    cdef bytes image
    if capability < program.minimum:
        raise DeviceError(f"{program.path} needs compute capability {program.minimum / 10}; device "
                          f"{device} has {capability / 10}")
    source, options = program.text(), program.options
    target = nvrtc.architecture(capability)
    file_name = disk_cache.name_of(source, options, target, nvrtc.version())
    image = disk_cache.load(file_name)
    if image is None:
        image = nvrtc.compile_source(source, target, options)
        disk_cache.store(file_name, image)
    status = driver.module_load(driver.self, <const void*><const char*>image, &module)
    raise_for_status(status, "module_load", f"of {len(image)} bytes for {target}")
    return module


cdef int launch_kernel(int device, uint64_t stream, uint64_t function, LaunchShape shape,
                       const void* parameters, size_t nbytes) except -1:
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    if driver == NULL:
        raise DeviceError(f"device {device} is not open")
    status = driver.kernel_launch(
        driver.self, function, shape.x, shape.y, shape.z, shape.block_x, shape.block_y,
        shape.block_z, shape.shared_nbytes, stream, parameters, nbytes)
    if status != 0:
        raise_for_status(status, "kernel_launch",
                         f"with grid ({shape.x}, {shape.y}, {shape.z}) on device {device}")
    return 0

# Compiled kernels by their source, and their launch (see module_cache.pxd).
#
# A program is looked for in three places: the functions of this process, the files of disk_cache,
# NVRTC. Modules stay loaded for the life of the process: a queued launch or a graph may still name
# them.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._driver.cuda cimport cuda_capability, module_function, module_load
from gputensor._driver.registry cimport driver_get, driver_open
from gputensor._driver.table cimport Driver, status_t

from gputensor.errors import DeviceError, raise_for_status
from gputensor._kernels import disk_cache, nvrtc

cdef dict functions = {}        # (device, program's file name, function) -> handle
cdef dict modules = {}          # (device, program's file name) -> handle


cdef uint64_t compile_kernel(int device, str source, str name, tuple options) except 0:
    cdef status_t status
    cdef uint64_t module, function = 0
    cdef bytes symbol
    # The hash of the text, not the text: some programs are long.
    key = (device, hash(source), len(source), name, options)
    found = functions.get(key)
    if found is not None:
        return <uint64_t>found
    module = load_program(device, source, options)
    symbol = name.encode()
    status = module_function(device, module, symbol, &function)
    raise_for_status(status, "module_function", f"for kernel {name} on device {device}")
    functions[key] = function
    return function


cdef uint64_t load_program(int device, str source, tuple options) except 0:
    cdef status_t status
    cdef uint64_t module = 0
    cdef bytes image
    driver_open(device)
    target = nvrtc.architecture(cuda_capability(device))
    file_name = disk_cache.name_of(source, options, target, nvrtc.version())
    found = modules.get((device, file_name))
    if found is not None:
        return <uint64_t>found
    image = disk_cache.load(file_name)
    if image is None:
        image = nvrtc.compile_source(source, target, options)
        disk_cache.store(file_name, image)
    status = module_load(device, <const void*><const char*>image, &module)
    raise_for_status(status, "module_load", f"of {len(image)} bytes for {target}")
    modules[(device, file_name)] = module
    return module


cdef int launch_kernel(int device, uint64_t stream, uint64_t function, uint32_t grid,
                       uint32_t block, uint32_t shared_nbytes, void* parameters) except -1:
    return launch_kernel_3d(device, stream, function, grid, 1, 1, block, 1, 1, shared_nbytes,
                            parameters)


cdef int launch_kernel_3d(int device, uint64_t stream, uint64_t function,
                          uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                          uint32_t block_x, uint32_t block_y, uint32_t block_z,
                          uint32_t shared_nbytes, void* parameters) except -1:
    cdef Driver* driver = driver_get(device)
    cdef void* list_of_one[1]
    cdef status_t status
    if driver == NULL:
        raise DeviceError(f"device {device} is not open")
    list_of_one[0] = parameters
    status = driver.kernel_launch(driver.self, function, grid_x, grid_y, grid_z, block_x, block_y,
                                  block_z, shared_nbytes, stream, list_of_one)
    if status != 0:
        raise_for_status(status, "kernel_launch",
                         f"with grid ({grid_x}, {grid_y}, {grid_z}) on device {device}")
    return 0

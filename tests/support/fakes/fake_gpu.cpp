// fake_libcuda.cpp with device code: an image is a shared library compiled with cuda_on_cpu.h, and
// a launch queues its `run`, which is called when the stream reaches it.
#define cuModuleLoadData fake_module_load
#define cuModuleGetFunction fake_module_function
#define cuModuleUnload fake_module_unload
#define cuLaunchKernel fake_launch
#define cuLaunchKernelEx fake_launch_early
#include <dlfcn.h>

#include <cstddef>

#define KERNELS_ON_CPU
static size_t parameters_nbytes(void* function) {
    return reinterpret_cast<size_t (*)()>(dlsym(function, "parameters_nbytes"))();
}
#include "tests/support/fakes/fake_libcuda.cpp"
#undef cuModuleLoadData
#undef cuModuleGetFunction
#undef cuModuleUnload
#undef cuLaunchKernel
#undef cuLaunchKernelEx

#include <sys/mman.h>
#include <unistd.h>
#include <vector>

// The image begins with the length of the library, because cuModuleLoadData has no size argument.
EXPORT int cuModuleLoadData(void** module, const void* image) {
    return unsafe_call([=] {
        uint64_t nbytes;
        memcpy(&nbytes, image, 8);
        int file = memfd_create("kernel", 0);
        if (write(file, static_cast<const char*>(image) + 8, nbytes) != ssize_t(nbytes)) return 200;
        char path[64];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        // Kernels are linked without libraries (LIBRARIES in kernel_compiler.py) and use these.
        static void* const found[] = {dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL),
                                      dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL)};
        *module = found[0] && found[1] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        live_modules += *module != nullptr;
        return *module ? 0 : 200;
    });
}
EXPORT int cuModuleUnload(void* module) {
    return unsafe_call([=] {
        live_modules--;
        std::lock_guard<std::mutex> lock(function_mutex);
        function_attributes.erase(module);
        return dlclose(module) ? INVALID_VALUE : 0;
    });
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
    if (!dlsym(module, name)) return 500;
    *function = module;
    return 0;
}
EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void* stream,
                          void** parameters, void** extra) {
    if (extra || gx == 0 || gy == 0 || gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024 ||
        bz > 64 || gx > 0x7fffffff || gy > 65535 || gz > 65535)
        return INVALID_VALUE;
    if (int(shared) > function_attribute(function, 8)) return INVALID_VALUE;
    return safe_call([=] {
        auto* launch = new Launch{};  // never freed: a captured launch runs at each replay
        *reinterpret_cast<void**>(&launch->run) = dlsym(function, "run");
        unsigned sizes[] = {gx, gy, gz, bx, by, bz, shared};
        memcpy(launch->grid, sizes, sizeof(sizes));
        const char* first = static_cast<const char*>(parameters[0]);
        launch->parameters.assign(first, first + parameters_nbytes(function));
        launch->function = function;
        return device().host_launch(run_launch, launch, number(stream));
    });
}

EXPORT int cuLaunchKernelEx(const LaunchConfig* c, void* function, void** parameters,
                            void** extra) {
    LAUNCH_EARLY(cuLaunchKernel)
}

#include "tests/support/fakes/tensor_map.h"

// The requirements of the driver's manual that our maps could violate. FAKE_CUDA_MAPS=0 makes a
// driver that refuses all maps, and FAKE_CUDA_MAPS=2 one whose maps have the address twice.
static int describe(void* out, int type, unsigned axes, uint64_t address, const uint64_t* extents,
                    const uint64_t* strides, const unsigned* steps, int swizzle,
                    CpuTensorMap* made) {
    *made = CpuTensorMap{};
    if (!setting("FAKE_CUDA_MAPS", 1) || reinterpret_cast<uint64_t>(out) % 64 || (type != 6 && type != 9) || axes < 2 || axes > 4 ||
        address % 16 || !address || (swizzle && swizzle != 3))
        return INVALID_VALUE;
    made->address = address;
    if (setting("FAKE_CUDA_MAPS", 1) == 2) made->copy = address;
    made->axes = uint8_t(axes);
    for (unsigned i = 0; i < axes; ++i) {
        if (!extents[i] || extents[i] >> 32 || !steps[i] || steps[i] > 8) return INVALID_VALUE;
        made->extents[i] = uint32_t(extents[i]);
        made->steps[i] = uint8_t(steps[i]);
        if (i && (strides[i - 1] % 16 || strides[i - 1] >> 40)) return INVALID_VALUE;
        if (i) made->strides[i - 1] = strides[i - 1];
    }
    return 0;
}
EXPORT int cuTensorMapEncodeTiled(void* out, int type, unsigned axes, uint64_t address,
                                  const uint64_t* extents, const uint64_t* strides,
                                  const unsigned* box, const unsigned* steps, int interleave,
                                  int swizzle, int, int fill) {
    CpuTensorMap made;
    int status = describe(out, type, axes, address, extents, strides, steps, swizzle, &made);
    if (status || interleave || fill || (swizzle && box[0] > 64)) return INVALID_VALUE;
    made.is_plain = !swizzle;
    for (unsigned i = 0; i < axes; ++i) {
        if (!box[i] || box[i] > 256) return INVALID_VALUE;
        made.box[i] = uint16_t(box[i]);
    }
    memcpy(out, &made, sizeof(made));
    return 0;
}
EXPORT int cuTensorMapEncodeIm2col(void* out, int type, unsigned axes, uint64_t address,
                                   const uint64_t* extents, const uint64_t* strides,
                                   const int* lower, const int* upper, unsigned channels,
                                   unsigned pixels, const unsigned* steps, int interleave,
                                   int swizzle, int, int fill) {
    CpuTensorMap made;
    int status = describe(out, type, axes, address, extents, strides, steps, swizzle, &made);
    if (status || interleave || fill || axes != 4 || channels != 64 || !pixels || pixels > 1024)
        return INVALID_VALUE;
    for (int i = 0; i < 2; ++i) {
        if (lower[i] < -128 || lower[i] > 127 || upper[i] < -128 || upper[i] > 127)
            return INVALID_VALUE;
        made.lower[i] = int16_t(lower[i]);
        made.upper[i] = int16_t(upper[i]);
    }
    made.box[0] = uint16_t(channels);
    made.box[1] = uint16_t(pixels);
    made.is_pixels = 1;
    memcpy(out, &made, sizeof(made));
    return 0;
}

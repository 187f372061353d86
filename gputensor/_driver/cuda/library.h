// The driver library for programs without Python: found and resolved once, devices opened once.
//
// cuda.pxi does the same with exceptions. Nothing is ever closed: other code of the process may use
// the primary contexts, and the driver frees them when it ends.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gputensor/_driver/cuda/device.h"

namespace gputensor {

struct OpenCuda {
    const CudaApi* api = nullptr;
    int handle = 0;  // the CUdevice
    CudaDevice* device = nullptr;
};

class CudaLibrary {
public:
    // Opens a device by its number. On failure, `problem` says why.
    static bool open(int ordinal, OpenCuda* out, std::string* problem) {
        static CudaLibrary library;
        std::lock_guard<std::mutex> guard(library.mutex);
        return library.load(problem) && library.open_device(ordinal, out, problem);
    }

    // "CUDA_ERROR_OUT_OF_MEMORY", or the number.
    static std::string name_of(const CudaApi& api, int status) {
        const char* name = nullptr;
        if (!api.cuGetErrorName(status, &name) && name) return name;
        return "status " + std::to_string(status);
    }

private:
    bool load(std::string* problem) {
        if (is_loaded) return true;
        const char* given = getenv("GPUTENSOR_LIBCUDA");
        std::string path = given && *given ? given : "libcuda.so.1";
        void* found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!found) {
            *problem = std::string("no CUDA: the driver library cannot be loaded (") + dlerror() + ")";
            return false;
        }
        if (const char* missing = api.resolve(found, dlsym)) {
            *problem = "no CUDA: " + path + " lacks " + missing + "; CUDA 12.0 or newer is needed";
            return false;
        }
        int version = 0, status = api.cuInit(0);
        if (!status) status = api.cuDriverGetVersion(&version);
        if (status) {
            *problem = "no CUDA: cuInit failed: " + name_of(api, status);
            return false;
        }
        if (version < CudaApi::ABI_VERSION) {
            *problem = "no CUDA: the driver is older than CUDA 12.0";
            return false;
        }
        return is_loaded = true;
    }

    bool open_device(int ordinal, OpenCuda* out, std::string* problem) {
        int count = 0, handle = 0, status = api.cuDeviceGetCount(&count);
        if (!status && (ordinal < 0 || ordinal >= count)) {
            *problem = "device: got " + std::to_string(ordinal) + "; expected the number of one of " +
                       std::to_string(count) + " GPUs";
            return false;
        }
        if (devices.size() < size_t(count)) devices.resize(size_t(count));
        std::unique_ptr<CudaDevice>* place = status ? nullptr : &devices[size_t(ordinal)];
        void *context = nullptr, *before = nullptr;
        if (!status) status = api.cuDeviceGet(&handle, ordinal);
        if (!status && !*place) {
            status = api.cuDevicePrimaryCtxRetain(&context, handle);
            if (!status) status = api.cuCtxGetCurrent(&before);
            if (!status && !before) status = api.cuCtxSetCurrent(context);
            if (!status) place->reset(new CudaDevice(api, handle, context, is_blocking()));
        }
        if (status) {
            *problem = "device " + std::to_string(ordinal) + ": " + name_of(api, status);
            return false;
        }
        *out = {&api, handle, place->get()};
        return true;
    }

    static bool is_blocking() {
        const char* text = getenv("CUDA_LAUNCH_BLOCKING");
        return text && *text && std::string(text) != "0";
    }

    std::mutex mutex;
    bool is_loaded = false;
    CudaApi api{};
    std::vector<std::unique_ptr<CudaDevice>> devices;
};

}  // namespace gputensor

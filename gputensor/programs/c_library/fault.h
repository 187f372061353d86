// Failures as statuses of gputensor_program.h with one line of text, a GPU, and its memory.
#pragma once

#include <stdexcept>
#include <string>

#include "gputensor/_driver/cuda/library.h"
#include "gputensor/programs/c_entry/gputensor_program.h"

namespace gputensor {

struct ProgramFault : std::runtime_error {
    ProgramFault(int status, const std::string& text) : std::runtime_error(text), status(status) {}
    int status;
};

[[noreturn]] inline void refuse(const std::string& what, const std::string& got,
                                const std::string& rule) {
    throw ProgramFault(GPUTENSOR_PROGRAM_INVALID, what + ": got " + got + "; expected " + rule);
}

// A GPU with the facts by which targets are compared.
struct Gpu {
    OpenCuda cuda;
    int ordinal = 0, capability = 0, multiprocessors = 0, shared_nbytes = 0;

    explicit Gpu(int ordinal) : ordinal(ordinal) {
        std::string problem;
        if (!CudaLibrary::open(ordinal, &cuda, &problem))
            throw ProgramFault(GPUTENSOR_PROGRAM_FAILED, problem);
        int major = fact(75), minor = fact(76);
        capability = major * 10 + minor;
        multiprocessors = fact(16);
        shared_nbytes = fact(81);
    }

    CudaDevice* operator->() const { return cuda.device; }

    void check(int status, const std::string& call) const {
        if (!status) return;
        bool is_memory = status == OUT_OF_MEMORY;
        throw ProgramFault(is_memory ? GPUTENSOR_PROGRAM_MEMORY : GPUTENSOR_PROGRAM_FAILED,
                           call + " failed: " + CudaLibrary::name_of(*cuda.api, status));
    }

    std::string name() const {
        return "sm_" + std::to_string(capability) + " with " + std::to_string(multiprocessors) +
               " multiprocessors";
    }

private:
    int fact(int attribute) const {
        int found = 0;
        check(cuda.device->device_attribute(attribute, &found), "cuDeviceGetAttribute");
        return found;
    }
};

// Memory of a GPU, freed by the destructor.
class GpuMemory {
public:
    GpuMemory() = default;
    GpuMemory(const Gpu& gpu, uint64_t nbytes, const char* what) { take(gpu, nbytes, what); }
    ~GpuMemory() { give_back(); }
    GpuMemory(const GpuMemory&) = delete;
    GpuMemory& operator=(const GpuMemory&) = delete;

    // Replaces the previous memory.
    void take(const Gpu& gpu, uint64_t nbytes, const char* what) {
        give_back();
        if (!nbytes) return;
        int status = gpu->mem_alloc(&ptr, size_t(nbytes));
        if (status) ptr = 0;
        gpu.check(status, "allocating " + std::to_string(nbytes) + " bytes for " + what);
        device = gpu.cuda.device;
        size = nbytes;
    }
    void give_back() {
        if (ptr) device->mem_free(ptr);
        ptr = size = 0;
    }

    uint64_t ptr = 0, size = 0;

private:
    CudaDevice* device = nullptr;
};

}  // namespace gputensor

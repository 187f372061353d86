// A driver that runs no kernels: device memory is host memory, so that a sanitizer checks copies
// and fills; kernels are only counted. It can fail the k-th call, and it counts live objects.
// Graphs are in stub_graphs.h.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_SUPPORTED = 801, FAILED = 999 };
static std::atomic<long> left{0}, live{0}, calls{0}, launches{0}, graph_launches{0};
static thread_local void* current = nullptr;

// Makes the k-th call from now fail, once; 0 means that no call fails.
EXPORT void stub_fail_at(long k) { left = k; }
EXPORT long stub_live() { return live; }
EXPORT long stub_calls() { return calls; }
// Calls up to the one that fails (0 after it); kernels launched outside graphs; graphs launched.
EXPORT long stub_left() { return left; }
EXPORT long stub_launches() { return launches; }
EXPORT long stub_graph_launches() { return graph_launches; }

static bool fails() {
    calls++;
    long before = left.load();
    while (before > 0 && !left.compare_exchange_weak(before, before - 1)) {}
    return before == 1;
}
#define CALL \
    if (fails()) return FAILED

#include "stub_graphs.h"

EXPORT int cuInit(unsigned) { return 0; }
EXPORT int cuDriverGetVersion(int* version) { return *version = 12080, 0; }
EXPORT int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_STUB", 0; }
EXPORT int cuDeviceGetCount(int* count) { return *count = 1, 0; }
EXPORT int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
    CALL;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : 228 << 10;
    return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &left, 0; }
EXPORT int cuCtxGetCurrent(void** context) { return *context = current, 0; }
EXPORT int cuCtxSetCurrent(void* context) { return current = context, 0; }
EXPORT int cuThreadExchangeStreamCaptureMode(int*) { return 0; }
EXPORT int cuCtxSynchronize() { CALL; return 0; }
EXPORT int cuStreamSynchronize(void*) { CALL; return 0; }
EXPORT int cuMemAlloc_v2(uint64_t* ptr, size_t nbytes) {
    CALL;
    void* found = nbytes > size_t(1) << 28 ? nullptr : aligned_alloc(256, (nbytes + 255) / 256 * 256);
    if (!found) return OUT_OF_MEMORY;
    memset(found, 0, nbytes);
    live++;
    return *ptr = reinterpret_cast<uint64_t>(found), 0;
}
EXPORT int cuMemFree_v2(uint64_t ptr) {
    free(reinterpret_cast<void*>(ptr));
    live--;
    return 0;
}
EXPORT int cuMemcpyAsync(uint64_t dst, uint64_t src, size_t nbytes, void* stream) {
    CALL;
    return queue(stream, Node::copy(dst, src, nbytes));
}
EXPORT int cuMemsetD8Async(uint64_t dst, unsigned char value, size_t count, void* stream) {
    CALL;
    return queue(stream, Node::fill(dst, value, 1, count));
}
EXPORT int cuMemsetD16Async(uint64_t dst, unsigned short value, size_t count, void* stream) {
    CALL;
    return queue(stream, Node::fill(dst, value, 2, count));
}
EXPORT int cuMemsetD32Async(uint64_t dst, unsigned value, size_t count, void* stream) {
    CALL;
    return queue(stream, Node::fill(dst, value, 4, count));
}
EXPORT int cuLaunchKernel(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void* stream, void** parameters, void**) {
    CALL;
    return queue(stream, Node::kernel(function, *parameters));
}
EXPORT int cuModuleLoadData(void** module, const void*) {
    CALL;
    live++;
    return *module = malloc(1), 0;
}
EXPORT int cuModuleUnload(void* module) {
    free(module);
    live--;
    return 0;
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char*) {
    CALL;
    return *function = module, 0;
}
EXPORT int cuFuncSetAttribute(void*, int, int) { CALL; return 0; }

// Stands for every other function that a driver must have.
static int nothing() { return FAILED; }
EXPORT int cuGetProcAddress_v2(const char*, void** found, int, uint64_t, int*);
#include <dlfcn.h>
EXPORT int cuGetProcAddress_v2(const char* name, void** found, int, uint64_t, int* answer) {
    static void* self = [] {
        Dl_info info;
        dladdr(reinterpret_cast<void*>(&cuInit), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    }();
    char second[128];
    strcpy(second, name);
    strcat(second, "_v2");
    *found = dlsym(self, second);
    if (!*found) *found = dlsym(self, name);
    if (!*found) *found = reinterpret_cast<void*>(&nothing);  // not implemented here
    return *answer = 0;
}

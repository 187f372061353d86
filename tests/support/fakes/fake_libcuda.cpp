// A CUDA driver library for tests: the driver's binary interface on an embedded host device.
//
// With it the CUDA filler (gputensor/_driver/cuda) runs its conformance tests without a GPU. It is
// stricter than a real driver: it checks the structure fields, flags and enumerations of calls
// against CUDA's headers; a call without the right current context fails, and so do calls that CUDA
// forbids during a capture, unless the thread's capture mode is relaxed.
//
// FAKE_CUDA_INIT, FAKE_CUDA_COUNT, FAKE_CUDA_VERSION and FAKE_CUDA_VMM set the status of cuInit,
// the number of devices, the driver version, and whether there is virtual memory; FAKE_CUDA_NAME
// and FAKE_CUDA_GIB set the name of a device and the size of its memory; FAKE_CUDA_MULTIPROCESSORS
// and FAKE_CUDA_SHARED set those attributes of it. With FAKE_CUDA_ELAPSED the time between any two
// events is that many milliseconds, whatever the load of the machine.

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gputensor/_driver/host/device.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using gputensor::HostDevice;

namespace {

constexpr int INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, UNSUPPORTED = 801;
constexpr int CAPTURE_UNSUPPORTED = 900;

struct Location { int type, id; };
struct AllocationProp {
    int type, handle_types;
    Location location;
    void* metadata;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
struct AccessDesc {
    Location location;
    int flags;
};

int setting(const char* name, int otherwise) {
    const char* text = getenv(name);
    return text ? atoi(text) : otherwise;
}

size_t memory_nbytes() { return size_t(setting("FAKE_CUDA_GIB", 1)) << 30; }

bool initialised = false;
char primary_context;
thread_local void* current_context = nullptr;
thread_local int capture_mode = 0;
std::atomic<int> captures{0};
std::map<uint64_t, int> exported;  // descriptors of shared pages, until they are exported
uint64_t release_threshold = 0;
std::atomic<int> live_modules{0};

#include "tests/support/fakes/fake_device.h"

FakeDevice& device() {
    static FakeDevice* host = new FakeDevice(
        memory_nbytes(), false, getenv("FAKE_CUDA_SEED") != nullptr,
        uint64_t(setting("FAKE_CUDA_SEED", 0)));
    return *host;
}

uint64_t number(void* handle) { return reinterpret_cast<uint64_t>(handle); }

bool ready() { return initialised && current_context == &primary_context; }

int unsafe() {
    if (!ready()) return INVALID_CONTEXT;
    return captures.load() && capture_mode != 2 ? CAPTURE_UNSUPPORTED : 0;
}

template <class Call> int safe_call(Call call) { return ready() ? call() : INVALID_CONTEXT; }
template <class Call> int unsafe_call(Call call) {
    int status = unsafe();
    return status ? status : call();
}
template <class Call> int make(void** handle, Call call) {
    uint64_t found = 0;
    int status = call(&found);
    *handle = reinterpret_cast<void*>(status ? 0xBAD : found);
    return status;
}

bool is_ours(const AllocationProp& p) {
    return p.type == 1 && (p.handle_types == 0 || p.handle_types == 1) && p.location.type == 1 && p.location.id < setting("FAKE_CUDA_COUNT", 1) &&
           !p.metadata && !p.compression && !p.rdma && !p.usage && !memcmp(p.reserved, "\0\0\0", 4);
}

bool captures_on(void* stream) {
    int active = 0;
    uint64_t id = 0;
    return !device().capture_info(number(stream), &active, &id) && active;
}

}  // namespace

EXPORT int cuInit(unsigned flags) {
    if (flags) return INVALID_VALUE;
    int status = setting("FAKE_CUDA_INIT", 0);
    initialised = !status;
    return status;
}
EXPORT int cuGetErrorName(int status, const char** name) {
    if (status != 805) return INVALID_VALUE;
    *name = "CUDA_ERROR_MPS_CONNECTION_FAILED";
    return 0;
}
EXPORT int cuDriverGetVersion(int* version) {
    *version = setting("FAKE_CUDA_VERSION", 12080);
    return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
    if (!initialised) return NOT_INITIALIZED;
    *count = setting("FAKE_CUDA_COUNT", 1);
    return 0;
}
EXPORT int cuDeviceGet(int* found, int ordinal) {
    *found = ordinal;
    return initialised ? 0 : NOT_INITIALIZED;
}
EXPORT int cuDeviceGetName(char* name, int length, int) {
    const char* given = getenv("FAKE_CUDA_NAME");
    snprintf(name, size_t(length), "%s", given ? given : "Fake GPU");
    return 0;
}
EXPORT int cuDeviceGetUuid_v2(void* uuid, int) {
    for (int i = 0; i < 16; i++) static_cast<unsigned char*>(uuid)[i] = (unsigned char)(i * 17);
    return 0;
}
EXPORT int cuDeviceGetPCIBusId(char* text, int length, int) {
    snprintf(text, size_t(length), "0000:0A:00.0");
    return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t* nbytes, int) {
    *nbytes = memory_nbytes();
    return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
    *value = attribute == 75    ? 9
             : attribute == 76  ? 0
             : attribute == 16  ? setting("FAKE_CUDA_MULTIPROCESSORS", 132)
             : attribute == 81  ? setting("FAKE_CUDA_SHARED", 1081)
             : attribute == 102 ? setting("FAKE_CUDA_VMM", 1)
                                : 1000 + attribute;
    return 0;
}
EXPORT int cuDeviceGetMemPool(void** pool, int) {
    *pool = &primary_context;
    return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
    *context = &primary_context;
    return 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
    *context = current_context;
    return 0;
}
EXPORT int cuCtxSetCurrent(void* context) {
    current_context = context;
    return 0;
}
EXPORT int cuCtxSynchronize() {
    return safe_call([] { return device().synchronize(); });
}
EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return safe_call([=] { return device().stream_priority_range(least, greatest); });
}
EXPORT int cuMemAlloc_v2(uint64_t* ptr, size_t nbytes) {
    *ptr = 0xBAD;
    return unsafe_call([=] { return device().mem_alloc(ptr, nbytes); });
}
EXPORT int cuMemFree_v2(uint64_t ptr) {
    return unsafe_call([=] { return device().mem_free(ptr); });
}
EXPORT int cuMemGetInfo_v2(size_t* free, size_t* total) {
    return safe_call([=] { return device().mem_info(free, total); });
}
EXPORT int cuMemHostAlloc(void** ptr, size_t nbytes, unsigned flags) {
    if (flags != 1) return INVALID_VALUE;
    return unsafe_call([=] {
        return make(ptr, [=](uint64_t* out) { return device().pinned_alloc(out, nbytes); });
    });
}
EXPORT int cuMemFreeHost(void* ptr) {
    return unsafe_call([=] { return device().pinned_free(number(ptr)); });
}
EXPORT int cuMemHostRegister_v2(void* ptr, size_t nbytes, unsigned flags) {
    if (flags != 1) return INVALID_VALUE;
    return unsafe_call([=] { return device().pinned_register(number(ptr), nbytes); });
}
EXPORT int cuMemHostUnregister(void* ptr) {
    return unsafe_call([=] { return device().pinned_unregister(number(ptr)); });
}
EXPORT int cuMemAllocAsync(uint64_t* ptr, size_t nbytes, void* stream) {
    return safe_call([=] { return device().async_alloc(ptr, nbytes, number(stream)); });
}
EXPORT int cuMemFreeAsync(uint64_t ptr, void* stream) {
    return safe_call([=] { return device().async_free(ptr, number(stream)); });
}
EXPORT int cuMemPoolTrimTo(void* pool, size_t) {
    return pool == &primary_context ? 0 : INVALID_VALUE;
}
EXPORT int cuMemPoolSetAttribute(void* pool, int attribute, void* value) {
    if (pool != &primary_context || attribute != 4) return INVALID_VALUE;
    return unsafe_call([=] {
        int status = setting("FAKE_CUDA_SET_THRESHOLD", 0);
        if (!status) release_threshold = *static_cast<uint64_t*>(value);
        return status;
    });
}
EXPORT uint64_t fake_release_threshold() { return release_threshold; }
EXPORT int cuMemAddressReserve(uint64_t* va, size_t nbytes, size_t alignment, uint64_t at,
                               unsigned long long flags) {
    if (at || flags) return INVALID_VALUE;
    return unsafe_call([=] { return device().va_reserve(va, nbytes, alignment); });
}
EXPORT int cuMemAddressFree(uint64_t va, size_t nbytes) {
    return unsafe_call([=] { return device().va_release(va, nbytes); });
}
EXPORT int cuMemCreate(uint64_t* page, size_t nbytes, const AllocationProp* property,
                       unsigned long long flags) {
    if (flags || !is_ours(*property)) return INVALID_VALUE;
    *page = 0xBAD;
    return unsafe_call([=] {
        if (!property->handle_types) return device().page_create(page, nbytes);
        int descriptor = -1;
        int status = device().page_create_shared(page, nbytes, &descriptor);
        if (!status) exported[*page] = descriptor;
        return status;
    });
}
#include "tests/support/fakes/fake_sharing.h"
EXPORT int cuMemRelease(uint64_t page) {
    return unsafe_call([=] { return device().page_destroy(page); });
}
EXPORT int cuMemMap(uint64_t va, size_t nbytes, size_t offset, uint64_t page,
                    unsigned long long flags) {
    if (offset || flags) return INVALID_VALUE;
    return unsafe_call([=] { return device().page_map(va, nbytes, page); });
}
EXPORT int cuMemUnmap(uint64_t va, size_t nbytes) {
    return unsafe_call([=] { return device().page_unmap(va, nbytes); });
}
// Grants access to any device, but only to one per call if FAKE_CUDA_NO_PEER_ACCESS is set.
EXPORT int cuMemSetAccess(uint64_t, size_t, const AccessDesc* access, size_t count) {
    if (!count) return INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (access[i].location.type != 1 || access[i].flags != 3 || access[i].location.id < 0 ||
            access[i].location.id >= setting("FAKE_CUDA_COUNT", 1))
            return INVALID_VALUE;
    if (count > 1 && setting("FAKE_CUDA_NO_PEER_ACCESS", 0)) return 217;
    return unsafe_call([] { return setting("FAKE_CUDA_SET_ACCESS", 0); });
}
EXPORT int cuMemGetAllocationGranularity(size_t* nbytes, const AllocationProp* property,
                                         int option) {
    if (option || !is_ours(*property)) return INVALID_VALUE;
    *nbytes = gputensor::HostMemory::GRANULARITY;
    return 0;
}
EXPORT int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
    if (flags != 1) return INVALID_VALUE;
    return unsafe_call([=] {
        return make(stream, [=](uint64_t* out) { return device().stream_create(out, priority); });
    });
}
EXPORT int cuStreamDestroy_v2(void* stream) {
    return unsafe_call([=] { return device().stream_destroy(number(stream)); });
}
EXPORT int cuStreamQuery(void* stream) {
    return unsafe_call([=] { return device().stream_query(number(stream)); });
}
EXPORT int cuStreamSynchronize(void* stream) {
    return unsafe_call([=] { return device().stream_synchronize(number(stream)); });
}
EXPORT int cuEventCreate(void** event, unsigned flags) {
    if (flags != 0 && flags != 2 && flags != 6) return INVALID_VALUE;
    return unsafe_call([=] {
        return make(event, [=](uint64_t* out) {
            return device().event_create(out, flags == 6 ? 2 : flags ? 0 : 1);
        });
    });
}
EXPORT int cuEventDestroy_v2(void* event) {
    return unsafe_call([=] { return device().event_destroy(number(event)); });
}
EXPORT int cuEventRecord(void* event, void* stream) {
    return safe_call([=] { return device().event_record(number(event), number(stream)); });
}
EXPORT int cuEventQuery(void* event) {
    return unsafe_call([=] { return device().event_query(number(event)); });
}
EXPORT int cuEventSynchronize(void* event) {
    return unsafe_call([=] { return device().event_synchronize(number(event)); });
}
EXPORT int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
    *milliseconds = -1;
    return unsafe_call([=] {
        int status = device().event_elapsed(milliseconds, number(start), number(end));
        const char* fixed = getenv("FAKE_CUDA_ELAPSED");
        if (!status && fixed) *milliseconds = float(atof(fixed));
        return status;
    });
}
EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
    if (*mode < 0 || *mode > 2) return INVALID_VALUE;
    std::swap(*mode, capture_mode);
    return 0;
}
EXPORT int cuStreamBeginCapture_v2(void* stream, int mode) {
    return safe_call([=] {
        int status = device().capture_begin(number(stream), mode);
        captures += !status;
        return status;
    });
}
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
    return safe_call([=] {
        int active = 0;
        uint64_t id = 0;
        device().capture_info(number(stream), &active, &id);
        int status = make(graph, [=](uint64_t* out) {
            return device().capture_end(number(stream), out);
        });
        int still = 0;
        device().capture_info(number(stream), &still, &id);
        captures -= active && !still;
        return status;
    });
}
EXPORT int cuStreamGetCaptureInfo_v2(void* stream, int* active, uint64_t* id, void** graph,
                                     const void*** nodes, size_t* count) {
    if (!stream || !graph != !nodes || !nodes != !count) return INVALID_VALUE;
    return safe_call([=] {
        static thread_local std::vector<const void*> names;
        int status = device().capture_info(number(stream), active, id);
        if (status || !nodes || *active != 1) return status;
        names.clear();
        device().frontier(number(stream), names);
        *graph = device().graph_of(number(stream));
        *nodes = names.data();
        *count = names.size();
        return 0;
    });
}
EXPORT int cuStreamGetCaptureInfo_v3(void* stream, int* active, uint64_t* id, void** graph,
                                     const void*** nodes, const void** edges, size_t* count) {
    if (edges) *edges = nullptr;
    return cuStreamGetCaptureInfo_v2(stream, active, id, graph, nodes, count);
}
EXPORT int cuGraphNodeGetDependencies(void* node, void** nodes, size_t* count) {
    std::vector<void*> names;
    device().dependencies(*static_cast<FakeDevice::Node*>(node), names);
    for (size_t i = 0; nodes && i < names.size() && i < *count; i++) nodes[i] = names[i];
    *count = names.size();
    return 0;
}
EXPORT int cuGraphNodeGetDependencies_v2(void* node, void** nodes, void* edges,
                                         size_t* count) {
    if (nodes && !edges) return INVALID_VALUE;
    return cuGraphNodeGetDependencies(node, nodes, count);
}
EXPORT int cuMemcpyAsync(uint64_t dst, uint64_t src, size_t nbytes, void* stream) {
    return safe_call([=] { return device().copy_async(dst, src, nbytes, number(stream)); });
}
EXPORT int cuMemcpyPeerAsync(uint64_t dst, void* dst_context, uint64_t src, void* src_context,
                             size_t nbytes, void* stream) {
    if (dst_context != &primary_context || src_context != &primary_context) return INVALID_CONTEXT;
    return safe_call([=] { return device().copy_async(dst, src, nbytes, number(stream)); });
}
EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
    if (device == peer) return INVALID_VALUE;
    *can = setting("FAKE_CUDA_PEERS", 1);
    return 0;
}
EXPORT int cuCtxEnablePeerAccess(void* context, unsigned flags) {
    if (flags || context != &primary_context) return INVALID_VALUE;
    return unsafe_call([] { return 0; });
}
EXPORT int cuMemsetD8Async(uint64_t dst, unsigned char value, size_t count, void* stream) {
    return safe_call([=] { return device().fill_async(dst, value, 1, count, number(stream)); });
}
EXPORT int cuMemsetD16Async(uint64_t dst, unsigned short value, size_t count, void* stream) {
    return safe_call([=] { return device().fill_async(dst, value, 2, count, number(stream)); });
}
EXPORT int cuMemsetD32Async(uint64_t dst, unsigned value, size_t count, void* stream) {
    return safe_call([=] { return device().fill_async(dst, value, 4, count, number(stream)); });
}
EXPORT int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
    return safe_call([=] { return device().host_launch(function, argument, number(stream)); });
}

#ifndef KERNELS_ON_CPU
static size_t parameters_nbytes(void*) { return 0; }
#endif
#include "tests/support/fakes/fake_early.h"
#include "tests/support/fakes/fake_graphs.h"

// The only kernel writes its launch configuration to the address in its first parameter.
EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void* stream,
                          void** parameters, void** extra) {
    if (extra || number(function) != 0xF0) return INVALID_VALUE;
    return safe_call([=] {
        uint64_t out = *static_cast<uint64_t*>(parameters[0]);
        unsigned launched[] = {gx, gy, gz, bx, by, bz, shared, unsigned(number(stream))};
        memcpy(reinterpret_cast<void*>(out), launched, sizeof(launched));
        return 0;
    });
}
EXPORT int fake_cuda_early_launches() { return early_launches; }
EXPORT int cuLaunchKernelEx(const LaunchConfig* c, void* function, void** parameters,
                            void** extra) {
    LAUNCH_EARLY(cuLaunchKernel)
}
// An image is PTX text; every module contains only that kernel.
EXPORT int cuModuleLoadData(void** module, const void* image) {
    *module = reinterpret_cast<void*>(0xBAD);
    if (!strstr(static_cast<const char*>(image), ".entry kernel(")) return 200;
    return unsafe_call([=] {
        live_modules++;
        return *module = reinterpret_cast<void*>(0xE0), 0;
    });
}
EXPORT int cuModuleUnload(void* module) {
    if (number(module) != 0xE0 || !live_modules) return INVALID_VALUE;
    return unsafe_call([] {
        live_modules--;
        return 0;
    });
}
EXPORT int fake_live_modules() { return live_modules; }
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
    if (number(module) != 0xE0) return 400;
    if (strcmp(name, "kernel")) return 500;
    *function = reinterpret_cast<void*>(0xF0);
    return 0;
}
// A function's attributes by number. Facts are the same for all functions; 8 and 9 are settings.
static std::mutex function_mutex;
static std::map<void*, std::array<int, 10>> function_attributes;
static int function_attribute(void* function, int attribute, int value = -2) {
    std::lock_guard<std::mutex> lock(function_mutex);
    const std::array<int, 10> made{1024, 0, 0, 0, 32, 90, 90, 0, 48 << 10, -1};
    int& found = function_attributes.try_emplace(function, made).first->second[attribute];
    return value == -2 ? found : found = value;
}
EXPORT int cuFuncSetAttribute(void* function, int attribute, int value) {
    if (attribute == 14) return safe_call([=] { return value == 1 ? 0 : INVALID_VALUE; });
    if (attribute != 8 && attribute != 9) return UNSUPPORTED;
    return safe_call([=] {
        if (attribute == 8 ? value < 0 || value > 227 << 10 : value < -1 || value > 100)
            return INVALID_VALUE;
        return function_attribute(function, attribute, value), 0;
    });
}
EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) {
    *value = -1;
    if (attribute < 0 || attribute > 9) return INVALID_VALUE;
    return safe_call([=] { return *value = function_attribute(function, attribute), 0; });
}
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int size, size_t) {
    *blocks = -1;
    if (size < 1) return INVALID_VALUE;
    return safe_call([=] { return *blocks = 2048 / size, 0; });
}

#include <dlfcn.h>
// Finds the exported form of a name, the form with the suffix _v2 first (as of CUDA 12.0).
EXPORT int cuGetProcAddress_v2(const char* name, void** found, int version, uint64_t flags,
                               int* answer) {
    *found = nullptr;
    *answer = 1;
    if (version != 12000 || flags != 1) return INVALID_VALUE;
    Dl_info self;
    dladdr(reinterpret_cast<void*>(&cuInit), &self);
    void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    char second[128];
    snprintf(second, sizeof(second), "%s_v2", name);
    *found = dlsym(library, second);
    if (!*found) *found = dlsym(library, name);
    dlclose(library);
    *answer = *found ? 0 : 1;
    return *found ? 0 : 500;
}

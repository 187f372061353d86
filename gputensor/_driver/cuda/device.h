// One CUDA device: the entries of the driver table through the CUDA driver.
//
// Each entry is one or two calls of the driver, made inside the device's context (context.h).
// Entries that CUDA calls unsafe during a capture (allocation, mapping, queries) are `relaxed`:
// they are allowed during any capture and are no part of it. The others take part in captures.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "gputensor/_driver/cuda/streams.h"
#include "gputensor/_driver/user_call.h"

namespace gputensor {

class CudaDevice : public CudaStreams {
public:
    // `blocking`: wait after each piece of work (CUDA_LAUNCH_BLOCKING).
    CudaDevice(const CudaApi& api, int device, void* context, bool blocking)
        : CudaStreams(api, context), device(device), blocking(blocking),
          may_start_early(can_start_early(api)) {
        property.type = 1;
        property.location = {1, device};
        access.push_back({{1, device}, READ_WRITE});
    }

    // Lets peers find the device by its number.
    void introduce(int ordinal) { opened[ordinal] = this; }

    // ---- memory --------------------------------------------------------------------------------

    int mem_alloc(uint64_t* ptr, size_t nbytes) {
        return relaxed([&] { return give(ptr, api.cuMemAlloc, nbytes); });
    }
    int mem_free(uint64_t ptr) {
        if (!ptr) return INVALID_VALUE;
        return relaxed([&] { return api.cuMemFree(ptr); });
    }
    int mem_info(size_t* free, size_t* total) {
        return relaxed([&] {
            size_t found_free = 0, found_total = 0;
            int status = api.cuMemGetInfo(&found_free, &found_total);
            if (status) return status;
            *free = found_free;
            *total = found_total;
            return OK;
        });
    }
    int pinned_alloc(uint64_t* ptr, size_t nbytes) {
        return relaxed([&] { return give(ptr, api.cuMemHostAlloc, nbytes, PORTABLE); });
    }
    int pinned_free(uint64_t ptr) {
        if (!ptr) return INVALID_VALUE;
        return relaxed([&] { return api.cuMemFreeHost(handle(ptr)); });
    }
    int pinned_register(uint64_t ptr, size_t nbytes) {
        return relaxed([&] { return api.cuMemHostRegister(handle(ptr), nbytes, PORTABLE); });
    }
    int pinned_unregister(uint64_t ptr) {
        return relaxed([&] { return api.cuMemHostUnregister(handle(ptr)); });
    }
    int async_alloc(uint64_t* ptr, size_t nbytes, uint64_t stream) {
        if (!is_kept.load(std::memory_order_relaxed) && !is_kept.exchange(true)) keep_freed();
        return relaxed([&] { return give(ptr, api.cuMemAllocAsync, nbytes, handle(stream)); });
    }
    int async_free(uint64_t ptr, uint64_t stream) {
        return relaxed([&] { return api.cuMemFreeAsync(ptr, handle(stream)); });
    }
    int async_trim(size_t keep) {
        return relaxed([&] {
            void* pool = nullptr;
            int status = api.cuDeviceGetMemPool(&pool, device);
            return status ? status : api.cuMemPoolTrimTo(pool, keep);
        });
    }

    // ---- virtual memory ------------------------------------------------------------------------

    size_t granularity() {
        int supported = 0;
        size_t found = 0;
        if (api.cuDeviceGetAttribute(&supported, VIRTUAL_MEMORY_SUPPORTED, device) || !supported)
            return 0;
        return api.cuMemGetAllocationGranularity(&found, &property, MINIMUM) ? 0 : found;
    }
    int va_reserve(uint64_t* va, size_t nbytes, size_t alignment) {
        return relaxed([&] {
            return give(va, api.cuMemAddressReserve, nbytes, alignment, uint64_t(0), 0ull);
        });
    }
    int va_release(uint64_t va, size_t nbytes) {
        return relaxed([&] { return api.cuMemAddressFree(va, nbytes); });
    }
    int page_create(uint64_t* page, size_t nbytes) {
        return relaxed([&] { return give(page, api.cuMemCreate, nbytes, &property, 0ull); });
    }
    int page_create_shared(uint64_t* page, size_t nbytes, int* descriptor) {
        if (!api.cuMemExportToShareableHandle) return NOT_SUPPORTED;
        MemAllocationProp shared = property;
        shared.requested_handle_types = POSIX_DESCRIPTOR;
        uint64_t made = 0;
        return relaxed([&] {
            int status = give(&made, api.cuMemCreate, nbytes, &shared, 0ull);
            if (status) return status;
            int found = -1;
            status = api.cuMemExportToShareableHandle(&found, made, POSIX_DESCRIPTOR, 0);
            if (status) {
                api.cuMemRelease(made);
                return status;
            }
            *page = made;
            *descriptor = found;
            return OK;
        });
    }
    int page_import(uint64_t* page, size_t, int descriptor) {
        if (!api.cuMemImportFromShareableHandle) return NOT_SUPPORTED;
        if (descriptor < 0) return INVALID_VALUE;
        return relaxed([&] {
            return give(page, api.cuMemImportFromShareableHandle,
                        handle(uint64_t(descriptor)), POSIX_DESCRIPTOR);
        });
    }
    int page_destroy(uint64_t page) {
        return relaxed([&] { return api.cuMemRelease(page); });
    }
    int page_map(uint64_t va, size_t nbytes, uint64_t page) {
        return relaxed([&] {
            std::lock_guard<std::mutex> guard(mapping);
            int status = api.cuMemMap(va, nbytes, 0, page, 0);
            if (status) return status;
            status = api.cuMemSetAccess(va, nbytes, access.data(), access.size());
            // A peer without access copies through the driver's own memory.
            if (status && access.size() > 1)
                status = api.cuMemSetAccess(va, nbytes, access.data(), 1);
            if (status) api.cuMemUnmap(va, nbytes);
            else mapped[va] = nbytes;
            return status;
        });
    }
    int page_unmap(uint64_t va, size_t nbytes) {
        return relaxed([&] {
            std::lock_guard<std::mutex> guard(mapping);
            int status = api.cuMemUnmap(va, nbytes);
            if (!status)
                mapped.erase(mapped.lower_bound(va), mapped.lower_bound(va + nbytes));
            return status;
        });
    }

    // ---- capture and graphs --------------------------------------------------------------------

    int capture_begin(uint64_t stream, int mode) {
        return current([&] { return api.cuStreamBeginCapture(handle(stream), mode); });
    }
    int capture_end(uint64_t stream, uint64_t* graph) {
        return current([&] {
            void* found = nullptr;
            int status = api.cuStreamEndCapture(handle(stream), &found);
            if (!status) *graph = number(found);
            return status;
        });
    }
    int capture_nodes(uint64_t stream, uint64_t* nodes, int capacity, int* count) {
        void* graph = nullptr;
        const void** found = nullptr;
        size_t size = 0;
        int status = capture_frontier(stream, &graph, &found, &size);
        if (status) return status;
        for (size_t i = 0; i < size && i < size_t(capacity); i++) nodes[i] = number(found[i]);
        *count = int(size);
        return OK;
    }
    int capture_follows(uint64_t stream, const uint64_t* nodes, int count, uint8_t* follows) {
        void* graph = nullptr;
        const void** found = nullptr;
        size_t size = 0;
        int status = capture_frontier(stream, &graph, &found, &size);
        if (status) return status;
        std::unordered_set<uint64_t> before;
        std::vector<uint64_t> left;
        for (size_t i = 0; i < size; i++) left.push_back(number(found[i]));
        while (!left.empty() && !status) {
            uint64_t node = left.back();
            left.pop_back();
            if (before.insert(node).second) status = add_dependencies(node, left);
        }
        if (status) return status;
        for (int i = 0; i < count; i++) follows[i] = before.count(nodes[i]) != 0;
        return OK;
    }
    int graph_launch(uint64_t executable, uint64_t stream) {
        if (!executable) return INVALID_HANDLE;
        int active = 0;
        uint64_t id = 0;
        int status = capture_info(stream, &active, &id);
        if (status) return status;
        return work(stream, [&] {
            return active ? capture_child(stream, executable)
                          : api.cuGraphLaunch(handle(executable), handle(stream));
        });
    }

    // ---- work ----------------------------------------------------------------------------------

    int copy_async(uint64_t dst, uint64_t src, size_t nbytes, uint64_t stream) {
        if (!nbytes) return OK;
        if (!dst || !src) return INVALID_VALUE;
        return work(stream, [&] { return api.cuMemcpyAsync(dst, src, nbytes, handle(stream)); });
    }
    int fill_async(uint64_t dst, uint32_t value, int width, size_t count, uint64_t stream) {
        if (width != 1 && width != 2 && width != 4) return INVALID_VALUE;
        if (dst % uint64_t(width) || (count && !dst)) return INVALID_VALUE;
        if (!count) return OK;
        return work(stream, [&] {
            void* to = handle(stream);
            if (width == 1) return api.cuMemsetD8Async(dst, (unsigned char)value, count, to);
            if (width == 2) return api.cuMemsetD16Async(dst, (unsigned short)value, count, to);
            return api.cuMemsetD32Async(dst, value, count, to);
        });
    }
    int host_launch(void (*function)(void*), void* argument, uint64_t stream) {
        if (!function) return INVALID_VALUE;
        return work(stream, [&] {
            return api.cuLaunchHostFunc(handle(stream), function, argument);
        });
    }
    int kernel_launch(uint64_t function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z,
                      uint32_t shared_nbytes, uint64_t stream, const void* parameters,
                      size_t nbytes) {
        if (!function) return INVALID_HANDLE;
        if (!parameters || !nbytes) return INVALID_VALUE;
        void* one_struct[] = {const_cast<void*>(parameters)};
        if (function & EARLY) {
            LaunchAttribute early{PROGRAMMATIC_SERIALIZATION, 0, 1, {}};
            LaunchConfig config{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                shared_nbytes, handle(stream), &early, 1};
            return work(stream, [&] {
                return api.cuLaunchKernelEx(&config, plain(function), one_struct, nullptr);
            });
        }
        return work(stream, [&] {
            return api.cuLaunchKernel(handle(function), grid_x, grid_y, grid_z, block_x, block_y,
                                      block_z, shared_nbytes, handle(stream), one_struct,
                                      nullptr);
        });
    }

    int call_apart(void (*function)(void*), void* argument) {
        if (!function) return INVALID_VALUE;
        return relaxed([&] {
            call_users(function, argument);
            return OK;
        });
    }

    // ---- peers ---------------------------------------------------------------------------------

    int wait_for_peer(uint64_t stream, int peer, uint64_t event) {
        if (!find_peer(peer)) return INVALID_DEVICE;
        int status = refuse_capture(stream);
        return status ? status : stream_wait_event(stream, event);
    }
    // cuMemcpyPeerAsync, unlike cuMemcpyAsync, accepts pages that only their own device may access.
    int copy_to_peer(uint64_t dst, int peer, uint64_t src, size_t nbytes, uint64_t stream) {
        if (nbytes && (!dst || !src)) return INVALID_VALUE;
        CudaDevice* other = find_peer(peer);
        if (!other) return INVALID_DEVICE;
        int status = refuse_capture(stream);
        if (status || !nbytes) return status;
        if (other != this) reach(*other);
        return work(stream, [&] {
            return api.cuMemcpyPeerAsync(dst, other->context, src, context, nbytes,
                                         handle(stream));
        });
    }

    // ---- the device, its context and its code --------------------------------------------------

    int device_attribute(int attribute, int* value) {
        int found = 0;
        int status = api.cuDeviceGetAttribute(&found, attribute, device);
        if (!status) *value = found;
        return status;
    }
    int context_enter(uint64_t* before) {
        void* found = nullptr;
        int status = api.cuCtxGetCurrent(&found);
        if (!status && found != context) status = api.cuCtxSetCurrent(context);
        if (!status) *before = number(found);
        return status;
    }
    int context_leave(uint64_t before) {
        return before && handle(before) != context ? api.cuCtxSetCurrent(handle(before)) : OK;
    }
    int module_load(const void* image, uint64_t* module) {
        if (!image) return INVALID_VALUE;
        return relaxed([&] { return give(module, api.cuModuleLoadData, image); });
    }
    int module_unload(uint64_t module) {
        if (!module) return INVALID_HANDLE;
        return relaxed([&] { return api.cuModuleUnload(plain(module)); });
    }
    int module_function(uint64_t module, const char* name, uint64_t* function) {
        if (!module) return INVALID_HANDLE;
        if (!name) return INVALID_VALUE;
        return relaxed([&] {
            int status = give(function, api.cuModuleGetFunction, plain(module), name);
            if (!status && may_start_early) *function |= module & EARLY;
            return status;
        });
    }
    // Where there are clusters, it permits those of more than 8 blocks too.
    int function_allow_shared(uint64_t function, int nbytes) {
        if (!function) return INVALID_HANDLE;
        return current([&] {
            int major = 0;
            int status = api.cuDeviceGetAttribute(&major, CAPABILITY_MAJOR, device);
            if (!status && major >= 9)
                status = api.cuFuncSetAttribute(plain(function), WIDE_CLUSTERS, 1);
            return status ? status
                          : api.cuFuncSetAttribute(plain(function), MAX_DYNAMIC_SHARED, nbytes);
        });
    }
    int function_occupancy(uint64_t function, int threads, size_t shared_nbytes, int* blocks) {
        if (!function) return INVALID_HANDLE;
        return current([&] {
            int found = 0;
            int status = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &found, plain(function), threads, shared_nbytes);
            if (!status) *blocks = found;
            return status;
        });
    }
    int function_attribute(uint64_t function, int attribute, int* value) {
        if (!function) return INVALID_HANDLE;
        return current([&] {
            int found = 0;
            int status = api.cuFuncGetAttribute(&found, attribute, plain(function));
            if (!status) *value = found;
            return status;
        });
    }
    int function_attribute_set(uint64_t function, int attribute, int value) {
        if (!function) return INVALID_HANDLE;
        return current([&] { return api.cuFuncSetAttribute(plain(function), attribute, value); });
    }

private:
    static constexpr unsigned PORTABLE = 1;        // CU_MEMHOSTALLOC_, CU_MEMHOSTREGISTER_PORTABLE
    static constexpr int POSIX_DESCRIPTOR = 1;     // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    static constexpr int MINIMUM = 0;              // CU_MEM_ALLOC_GRANULARITY_MINIMUM
    static constexpr int MAX_DYNAMIC_SHARED = 8;   // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_...
    static constexpr int WIDE_CLUSTERS = 14;       // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_...
    static constexpr int PROGRAMMATIC_SERIALIZATION = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_...
    static constexpr int RELEASE_THRESHOLD = 4;    // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    static constexpr int CAPABILITY_MAJOR = 75;
    static constexpr int VIRTUAL_MEMORY_SUPPORTED = 102;

    // Set in the handle of a kernel that starts early (_kernels/cuda/chain/early.cuh): the kernel
    // itself waits for the work before it. The caller of module_function sets it in the handle of
    // the module. Handles of the driver are addresses and so even.
    static constexpr uint64_t EARLY = 1;
    static void* plain(uint64_t marked) { return handle(marked & ~EARLY); }
    // Captures of such launches have edges that only the newer functions report.
    static bool can_start_early(const CudaApi& api) {
        const char* text = getenv("GPUTENSOR_EARLY_START");
        return !(text && !strcmp(text, "0")) && api.cuLaunchKernelEx &&
               api.cuStreamGetCaptureInfoWithEdges && api.cuGraphNodeGetDependenciesWithEdges;
    }

    // By default the driver's pool releases all free memory at every synchronisation. A driver that
    // refuses to change this is slower but works.
    void keep_freed() {
        relaxed([&] {
            void* pool = nullptr;
            uint64_t threshold = UINT64_MAX;
            int status = api.cuDeviceGetMemPool(&pool, device);
            return status ? status
                          : api.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &threshold);
        });
    }

    int add_dependencies(uint64_t node, std::vector<uint64_t>& nodes) {
        size_t size = 0;
        int status = dependencies(node, nullptr, nullptr, &size);
        if (status || !size) return status;
        std::vector<void*> found(size);
        std::vector<EdgeData> edges(size);
        status = dependencies(node, found.data(), edges.data(), &size);
        if (status) return status;
        for (size_t i = 0; i < size; i++) nodes.push_back(number(found[i]));
        return OK;
    }

    int dependencies(uint64_t node, void** found, EdgeData* edges, size_t* size) {
        return api.cuGraphNodeGetDependenciesWithEdges
                   ? api.cuGraphNodeGetDependenciesWithEdges(handle(node), found, edges, size)
                   : api.cuGraphNodeGetDependencies(handle(node), found, size);
    }

    template <class Call> int work(uint64_t stream, Call call) {
        int status = current(call);
        if (status || !blocking) return status;
        int active = 0;
        uint64_t id = 0;
        status = capture_info(stream, &active, &id);
        return status || active ? status : stream_synchronize(stream);
    }

    const int device;  // the CUdevice
    const bool blocking;
    const bool may_start_early;
    static CudaDevice* find_peer(int ordinal) {
        return ordinal >= 0 && ordinal < MOST_DEVICES ? opened[ordinal].load() : nullptr;
    }

    int refuse_capture(uint64_t stream) {
        int active = 0;
        uint64_t id = 0;
        int status = capture_info(stream, &active, &id);
        return status ? status : active ? CAPTURE_UNSUPPORTED : OK;
    }

    // At the first copy to a peer, where the hardware has a direct path: gives this device access
    // to the peer's memory, both plain allocations and all pages, present and future. A driver that
    // refuses still copies, through the host.
    void reach(CudaDevice& peer) {
        if (peer.reached_by[device].exchange(true)) return;
        relaxed([&] {
            int can = 0;
            if (api.cuDeviceCanAccessPeer(&can, device, peer.device) || !can) return OK;
            int status = api.cuCtxEnablePeerAccess(peer.context, 0);
            if (!status || status == PEER_ACCESS_ALREADY_ENABLED) peer.let_in(device);
            return OK;
        });
    }

    void let_in(int other) {
        MemAccessDesc desc{{1, other}, READ_WRITE};
        relaxed([&] {
            std::lock_guard<std::mutex> guard(mapping);
            access.push_back(desc);
            for (auto& range : mapped) api.cuMemSetAccess(range.first, range.second, &desc, 1);
            return OK;
        });
    }

    static constexpr int MOST_DEVICES = 32;
    static constexpr int READ_WRITE = 3;                     // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    static constexpr int PEER_ACCESS_ALREADY_ENABLED = 704;
    static inline std::atomic<CudaDevice*> opened[MOST_DEVICES] = {};

    std::atomic<bool> is_kept{false};    // whether the driver's pool keeps freed memory
    MemAllocationProp property{};
    std::mutex mapping;  // guards the next two
    std::vector<MemAccessDesc> access;   // devices that access pages: this one, then its peers
    std::map<uint64_t, size_t> mapped;   // pages by address
    std::atomic<bool> reached_by[MOST_DEVICES] = {};
};

}  // namespace gputensor

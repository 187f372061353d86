// The embedded host device: the entries of the driver table in host memory.
#pragma once

#include <chrono>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "gputensor/_driver/host_memory.h"

namespace gputensor {

class HostDevice {
public:
    HostDevice(size_t capacity, bool phantom, bool deferred, uint64_t seed)
        : memory(capacity, phantom, deferred) {}

    int mem_alloc(uint64_t* ptr, size_t nbytes) { Guard g(lock); return memory.mem_alloc(ptr, nbytes, false); }
    int mem_free(uint64_t ptr) { Guard g(lock); return memory.mem_free(ptr, false); }
    int mem_info(size_t* free, size_t* total) {
        Guard g(lock); *free = memory.capacity - memory.used; *total = memory.capacity; return OK; }
    int pinned_alloc(uint64_t* ptr, size_t nbytes) { Guard g(lock); return memory.mem_alloc(ptr, nbytes, true); }
    int pinned_free(uint64_t ptr) { Guard g(lock); return memory.mem_free(ptr, true); }
    int pinned_register(uint64_t ptr, size_t nbytes) { Guard g(lock); return memory.pinned_register(ptr, nbytes); }
    int pinned_unregister(uint64_t ptr) { Guard g(lock); return memory.pinned_unregister(ptr); }
    int async_alloc(uint64_t* ptr, size_t nbytes, uint64_t) { return mem_alloc(ptr, nbytes); }
    int async_free(uint64_t ptr, uint64_t) { return mem_free(ptr); }
    int async_trim(size_t) { return OK; }
    int va_reserve(uint64_t* va, size_t nbytes, size_t alignment) { Guard g(lock); return memory.va_reserve(va, nbytes, alignment); }
    int va_release(uint64_t va, size_t nbytes) { Guard g(lock); return memory.va_release(va, nbytes); }
    int page_create(uint64_t* page, size_t nbytes) { Guard g(lock); return memory.page_create(page, nbytes); }
    int page_destroy(uint64_t page) { Guard g(lock); return memory.page_destroy(page); }
    int page_map(uint64_t va, size_t nbytes, uint64_t page) { Guard g(lock); return memory.page_map(va, nbytes, page); }
    int page_unmap(uint64_t va, size_t nbytes) { Guard g(lock); return memory.page_unmap(va, nbytes); }

    int stream_create(uint64_t* stream, int) { Guard g(lock); *stream = ++last; streams.insert(last); return OK; }
    int stream_destroy(uint64_t stream) { Guard g(lock); return streams.erase(stream) ? OK : INVALID_HANDLE; }
    int stream_query(uint64_t stream) { return known(stream); }
    int stream_synchronize(uint64_t stream) { return known(stream); }
    int stream_wait_event(uint64_t stream, uint64_t) { return known(stream); }
    int stream_priority_range(int* least, int* greatest) { *least = 0; *greatest = -5; return OK; }
    int event_create(uint64_t* event, uint32_t) { Guard g(lock); *event = ++last; events[last] = 0; return OK; }
    int event_destroy(uint64_t event) { Guard g(lock); return events.erase(event) ? OK : INVALID_HANDLE; }
    int event_record(uint64_t event, uint64_t stream) {
        Guard g(lock);
        if (!events.count(event) || (stream && !streams.count(stream))) return INVALID_HANDLE;
        events[event] = std::chrono::duration<double, std::milli>(
            std::chrono::steady_clock::now().time_since_epoch()).count();
        return OK; }
    int event_query(uint64_t event) { Guard g(lock); return events.count(event) ? OK : INVALID_HANDLE; }
    int event_synchronize(uint64_t event) { return event_query(event); }
    int event_elapsed(float* milliseconds, uint64_t start, uint64_t end) {
        Guard g(lock);
        if (!events.count(start) || !events.count(end)) return INVALID_HANDLE;
        *milliseconds = float(events[end] - events[start]); return OK; }
    int synchronize() { return OK; }
    int capture_begin(uint64_t, int) { return NOT_SUPPORTED; }
    int capture_end(uint64_t, uint64_t*) { return NOT_SUPPORTED; }
    int capture_info(uint64_t, int* active, uint64_t* id) { *active = 0; *id = 0; return OK; }
    int graph_instantiate(uint64_t, uint64_t*) { return NOT_SUPPORTED; }
    int graph_launch(uint64_t, uint64_t) { return NOT_SUPPORTED; }
    int graph_destroy(uint64_t) { return NOT_SUPPORTED; }
    int graph_executable_destroy(uint64_t) { return NOT_SUPPORTED; }
    int copy_async(uint64_t dst, uint64_t src, size_t nbytes, uint64_t stream) {
        int status = known(stream);
        if (!status && !memory.phantom) memmove((void*)dst, (const void*)src, nbytes);
        return status; }
    int fill_async(uint64_t dst, uint32_t value, int width, size_t count, uint64_t stream) {
        if (width != 1 && width != 2 && width != 4) return INVALID_VALUE;
        int status = known(stream);
        if (status || memory.phantom) return status;
        for (size_t i = 0; i < count; i++) memcpy((char*)dst + i * width, &value, width);
        return OK; }
    int host_launch(void (*function)(void*), void* argument, uint64_t stream) {
        int status = known(stream);
        if (!status) function(argument);
        return status; }
    int kernel_launch(uint64_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                      uint32_t, uint64_t, void**) { return NOT_SUPPORTED; }

    HostMemory memory;

private:
    using Guard = std::lock_guard<std::mutex>;
    int known(uint64_t stream) { Guard g(lock); return !stream || streams.count(stream) ? OK : INVALID_HANDLE; }
    std::mutex lock;
    std::unordered_set<uint64_t> streams;
    std::unordered_map<uint64_t, double> events;
    uint64_t last = 0;
};

}  // namespace gputensor

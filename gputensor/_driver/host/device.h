// One embedded host device: the entries of the driver table other than those of captures
// (capture.h), over its memory (memory.h) and the schedule of its work (schedule.h).
//
// Every entry takes the device's one mutex. Handles of streams, events, graphs and executables are
// numbers that are never used twice, so that a stale handle is always recognised.
#pragma once

#include "gputensor/_driver/host/capture.h"
#include "gputensor/_driver/user_call.h"

namespace gputensor {

class HostDevice : public HostCapture {
public:
    // `number`: the device's number, below 0, by which peers find it; 0: it has no peers.
    HostDevice(size_t capacity, bool phantom, bool deferred, uint64_t seed, int number = 0)
        : HostCapture(capacity, phantom, deferred, seed), number(number) {
        if (number < 0) opened[-number - 1] = this;
    }
    ~HostDevice() {
        if (number < 0) opened[-number - 1] = nullptr;
    }

    // ---- memory --------------------------------------------------------------------------------

    int mem_alloc(uint64_t* ptr, size_t nbytes) {
        Lock guard(mutex);
        return memory.mem_alloc(ptr, nbytes, false);
    }
    // Freeing waits for all pending work, as cuMemFree does.
    int mem_free(uint64_t ptr) { return free_after_all(ptr, false); }
    int mem_info(size_t* free, size_t* total) {
        Lock guard(mutex);
        *free = memory.capacity - memory.used;
        *total = memory.capacity;
        return OK;
    }
    int pinned_alloc(uint64_t* ptr, size_t nbytes) {
        Lock guard(mutex);
        return memory.mem_alloc(ptr, nbytes, true);
    }
    int pinned_free(uint64_t ptr) { return free_after_all(ptr, true); }
    int pinned_register(uint64_t ptr, size_t nbytes) {
        Lock guard(mutex);
        return memory.pinned_register(ptr, nbytes);
    }
    int pinned_unregister(uint64_t ptr) {
        Lock guard(mutex);
        int status = schedule.finish_all(guard);
        return status ? status : memory.pinned_unregister(ptr);
    }
    int async_alloc(uint64_t* ptr, size_t nbytes, uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (found->capture) return NOT_SUPPORTED;
        return memory.mem_alloc(ptr, nbytes, false);
    }
    int async_free(uint64_t ptr, uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (found->capture) return NOT_SUPPORTED;
        if (!memory.is_allocation(ptr) || !freeing.insert(ptr).second) return INVALID_VALUE;
        Work work{Work::FREE};
        work.dst = ptr;
        work.freeing = &freeing;
        return schedule.enqueue(guard, found, work);
    }
    int async_trim(size_t) { return OK; }
    int va_reserve(uint64_t* va, size_t nbytes, size_t alignment) {
        Lock guard(mutex);
        return memory.va_reserve(va, nbytes, alignment);
    }
    int va_release(uint64_t va, size_t nbytes) {
        Lock guard(mutex);
        return memory.va_release(va, nbytes);
    }
    int page_create(uint64_t* page, size_t nbytes) {
        Lock guard(mutex);
        return memory.page_create(page, nbytes);
    }
    int page_create_shared(uint64_t* page, size_t nbytes, int* descriptor) {
        Lock guard(mutex);
        return memory.page_create_shared(page, nbytes, descriptor);
    }
    int page_import(uint64_t* page, size_t nbytes, int descriptor) {
        Lock guard(mutex);
        return memory.page_import(page, nbytes, descriptor);
    }
    int page_destroy(uint64_t page) {
        Lock guard(mutex);
        return memory.page_destroy(page);
    }
    int page_map(uint64_t va, size_t nbytes, uint64_t page) {
        Lock guard(mutex);
        return memory.page_map(va, nbytes, page);
    }
    int page_unmap(uint64_t va, size_t nbytes) {
        Lock guard(mutex);
        return memory.page_unmap(va, nbytes);
    }

    // ---- streams and events --------------------------------------------------------------------

    int stream_create(uint64_t* stream, int) {
        Lock guard(mutex);
        schedule.create(++last_handle);
        *stream = last_handle;
        return OK;
    }
    int stream_destroy(uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found || !stream) return INVALID_HANDLE;
        if (found->capture) invalidate(*found->capture);
        schedule.destroy(found);
        return OK;
    }
    int stream_query(uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (found->capture) return invalidate(*found->capture);
        schedule.advance(guard);
        if (schedule.fault) return schedule.fault;
        return schedule.is_done(*found) ? OK : NOT_READY;
    }
    int stream_synchronize(uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (found->capture) return invalidate(*found->capture);
        int status = schedule.finish_stream(guard, found);
        return status ? status : schedule.fault;
    }
    int stream_priority_range(int* least, int* greatest) {
        *least = 0;
        *greatest = -5;
        return OK;
    }
    int stream_wait_event(uint64_t stream, uint64_t event) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        auto recorded = events.find(event);
        if (!found || recorded == events.end()) return INVALID_HANDLE;
        auto mark = recorded->second.mark;
        if (found->capture || (mark && mark->capture)) return capture_wait(found, mark);
        if (!mark || mark->done) return OK;
        Work work{Work::WAIT};
        work.mark = mark;
        return schedule.enqueue(guard, found, work);
    }
    int event_create(uint64_t* event, uint32_t flags) {
        if (flags & ~(EVENT_TIMING | EVENT_INTERPROCESS)) return INVALID_VALUE;
        if (flags == (EVENT_TIMING | EVENT_INTERPROCESS)) return INVALID_VALUE;
        Lock guard(mutex);
        events[++last_handle].timed = flags & EVENT_TIMING;
        *event = last_handle;
        return OK;
    }
    int event_destroy(uint64_t event) {
        Lock guard(mutex);
        return events.erase(event) ? OK : INVALID_HANDLE;
    }
    int event_record(uint64_t event, uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        auto recorded = events.find(event);
        if (!found || recorded == events.end()) return INVALID_HANDLE;
        auto mark = std::make_shared<Mark>();
        mark->stream = stream;
        mark->timed = recorded->second.timed;
        if (found->capture) {
            if (found->capture->invalidated) return CAPTURE_INVALIDATED;
            mark->capture = found->capture;
            mark->frontier = found->frontier;
            recorded->second.mark = mark;
            return OK;
        }
        recorded->second.mark = mark;
        Work work{Work::RECORD};
        work.mark = mark;
        return schedule.enqueue(guard, found, work);
    }
    int event_record_external(uint64_t event, uint64_t stream) {
        {
            Lock guard(mutex);
            auto found = schedule.find(stream);
            if (!found || !events.count(event)) return INVALID_HANDLE;
            if (found->capture) return add_event(*found, Work::RECORD, event);
        }
        return event_record(event, stream);
    }
    int stream_wait_external(uint64_t stream, uint64_t event) {
        {
            Lock guard(mutex);
            auto found = schedule.find(stream);
            if (!found || !events.count(event)) return INVALID_HANDLE;
            if (found->capture) return add_event(*found, Work::WAIT, event);
        }
        return stream_wait_event(stream, event);
    }
    // Marks are in the memory of their process.
    int event_export(uint64_t, void*) { return NOT_SUPPORTED; }
    int event_import(uint64_t*, const void*) { return NOT_SUPPORTED; }
    int event_query(uint64_t event) { return event_state(event, false); }
    int event_synchronize(uint64_t event) { return event_state(event, true); }
    int event_elapsed(float* milliseconds, uint64_t start, uint64_t end) {
        Lock guard(mutex);
        auto first = events.find(start), second = events.find(end);
        if (first == events.end() || second == events.end()) return INVALID_HANDLE;
        auto from = first->second.mark, to = second->second.mark;
        if (!from || !to || !from->timed || !to->timed) return INVALID_HANDLE;
        if (from->capture || to->capture) return CAPTURED_EVENT;
        schedule.advance(guard);
        if (!from->done || !to->done) return NOT_READY;
        *milliseconds = float(to->milliseconds - from->milliseconds);
        return OK;
    }
    int synchronize() {
        Lock guard(mutex);
        if (invalidate_all()) return CAPTURE_UNSUPPORTED;
        int status = schedule.finish_all(guard);
        return status ? status : schedule.fault;
    }

    // ---- work ----------------------------------------------------------------------------------

    int copy_async(uint64_t dst, uint64_t src, size_t nbytes, uint64_t stream) {
        if (nbytes && (!dst || !src)) return INVALID_VALUE;
        Work work{Work::COPY};
        work.dst = dst;
        work.src = src;
        work.nbytes = nbytes;
        return submit(work, stream, nbytes != 0);
    }
    int fill_async(uint64_t dst, uint32_t value, int width, size_t count, uint64_t stream) {
        if (width != 1 && width != 2 && width != 4) return INVALID_VALUE;
        if (dst % uint64_t(width) || (count && !dst)) return INVALID_VALUE;
        Work work{Work::FILL};
        work.dst = dst;
        work.value = value;
        work.width = width;
        work.nbytes = count * size_t(width);
        return submit(work, stream, count != 0);
    }
    int host_launch(HostFunction function, void* argument, uint64_t stream) {
        if (!function) return INVALID_VALUE;
        Work work{Work::FUNCTION};
        work.function = function;
        work.argument = argument;
        return submit(work, stream, true);
    }
    int kernel_launch(uint64_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                      uint32_t, uint64_t, const void*, size_t) {
        return NOT_SUPPORTED;
    }

    int call_apart(HostFunction function, void* argument) {
        if (!function) return INVALID_VALUE;
        call_users(function, argument);
        return OK;
    }

    // ---- peers ---------------------------------------------------------------------------------
    //
    // Two devices' mutexes are never held together; a copy holds only the target's mutex while the
    // bytes move.

    int wait_for_peer(uint64_t stream, int peer, uint64_t event) {
        HostDevice* other = find_peer(peer);
        if (!other) return INVALID_DEVICE;
        std::shared_ptr<Mark> mark;
        {
            Lock guard(other->mutex);
            auto recorded = other->events.find(event);
            if (recorded == other->events.end()) return INVALID_HANDLE;
            mark = recorded->second.mark;
        }
        auto finish = [other, mark] {
            Lock guard(other->mutex);
            return other->schedule.finish_mark(guard, mark);
        };
        {
            Lock guard(mutex);
            auto found = schedule.find(stream);
            if (!found) return INVALID_HANDLE;
            if (found->capture || (mark && mark->capture)) return CAPTURE_UNSUPPORTED;
            if (!mark || mark->done) return OK;
            if (schedule.deferred) {
                Work work{Work::WAIT};
                work.mark = mark;
                if (other != this) work.peer = finish;
                return schedule.enqueue(guard, found, work);
            }
        }
        return finish();
    }

    int copy_to_peer(uint64_t dst, int peer, uint64_t src, size_t nbytes, uint64_t stream) {
        if (nbytes && (!dst || !src)) return INVALID_VALUE;
        HostDevice* other = find_peer(peer);
        if (!other) return INVALID_DEVICE;
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (found->capture) return CAPTURE_UNSUPPORTED;
        if (!nbytes) return OK;
        Work work{Work::PEER_COPY};
        work.src = src;
        work.nbytes = nbytes;
        work.peer = [other, dst, src, nbytes] {
            Lock guard(other->mutex);
            if (other->memory.phantom) return OK;
            if (other->memory.place(dst, nbytes) != HostMemory::Place::ACCESSIBLE)
                return ILLEGAL_ADDRESS;
            memmove(reinterpret_cast<void*>(dst), reinterpret_cast<void*>(src), nbytes);
            return OK;
        };
        return schedule.enqueue(guard, found, work);
    }

    // ---- the device, its context and its code --------------------------------------------------
    //
    // A host device has none of a GPU's facts, no contexts, and no device code: its kernels are host
    // functions.

    int device_attribute(int, int*) { return NOT_SUPPORTED; }
    int context_enter(uint64_t* before) {
        *before = 0;
        return OK;
    }
    int context_leave(uint64_t) { return OK; }
    int module_load(const void*, uint64_t*) { return NOT_SUPPORTED; }
    int module_unload(uint64_t) { return NOT_SUPPORTED; }
    int module_function(uint64_t, const char*, uint64_t*) { return NOT_SUPPORTED; }
    int function_allow_shared(uint64_t, int) { return NOT_SUPPORTED; }
    int function_occupancy(uint64_t, int, size_t, int*) { return NOT_SUPPORTED; }
    int function_attribute(uint64_t, int, int*) { return NOT_SUPPORTED; }
    int function_attribute_set(uint64_t, int, int) { return NOT_SUPPORTED; }

    // ---- forks ---------------------------------------------------------------------------------
    //
    // A process forks with the mutexes of all its devices held, so that the child finds consistent
    // records. A thread that holds one never waits for the GIL, which the forking thread may have.

    static void before_fork() {
        for (int i = 0; i < MOST_DEVICES; i++) {
            HostDevice* device = opened[i];
            if (!device) continue;
            device->mutex.lock();
            held[i] = device;
        }
    }
    static void after_fork(bool is_child) {
        for (HostDevice*& device : held) {
            HostDevice* mine = device;
            if (!mine) continue;
            device = nullptr;
            if (is_child) mine->renew();
            mine->mutex.unlock();
        }
        if (!is_child) return;
        Section::renew();
        HostSchedule::forget_owed();
    }

    // ---- for tests -----------------------------------------------------------------------------

    int run_all() {
        Lock guard(mutex);
        return schedule.finish_all(guard);
    }

    // Counts of live objects, in the order of LIVE_NAMES in host.pxi.
    void live(uint64_t* counts) {
        Lock guard(mutex);
        uint64_t found[] = {memory.allocation_count, memory.page_count, memory.mapping_count(),
                            memory.reservation_count, memory.pinned_count,
                            memory.registered_count(), schedule.live_streams, events.size(),
                            graphs.size(), executables.size(), memory.used};
        std::copy(std::begin(found), std::end(found), counts);
    }

private:
    static constexpr uint32_t EVENT_TIMING = 1, EVENT_INTERPROCESS = 2;

    static HostDevice* find_peer(int peer) {
        return peer < 0 && peer >= -MOST_DEVICES ? opened[-peer - 1].load() : nullptr;
    }

    // Removes all but the device itself. Handle numbers continue: the parent's handles are stale.
    void renew() {
        memory.renew();
        schedule.renew();
        events.clear();
        graphs.clear();
        executables.clear();
        freeing.clear();
    }

    int free_after_all(uint64_t ptr, bool pinned) {
        Lock guard(mutex);
        if (freeing.count(ptr)) return INVALID_VALUE;
        int status = schedule.finish_all(guard);
        return status ? status : memory.mem_free(ptr, pinned);
    }

    int submit(const Work& work, uint64_t stream, bool some) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (found->capture) return some ? capture_add(*found, work) : OK;
        return some ? schedule.enqueue(guard, found, work) : OK;
    }

    int event_state(uint64_t event, bool finish) {
        Lock guard(mutex);
        auto found = events.find(event);
        if (found == events.end()) return INVALID_HANDLE;
        auto mark = found->second.mark;
        if (!mark) return OK;
        if (mark->capture) {
            invalidate(*mark->capture);
            return CAPTURED_EVENT;
        }
        int status = OK;
        if (finish) {
            status = schedule.finish_mark(guard, mark);
        } else {
            schedule.advance(guard);
        }
        if (!status) status = schedule.fault;
        return status ? status : mark->done ? OK : NOT_READY;
    }

    static constexpr int MOST_DEVICES = 32;
    static inline std::atomic<HostDevice*> opened[MOST_DEVICES] = {};
    static inline HostDevice* held[MOST_DEVICES] = {};  // during a fork; each guarded by its mutex

    const int number;
    std::set<uint64_t> freeing;  // given to async_free, and not yet free
};

}  // namespace gputensor

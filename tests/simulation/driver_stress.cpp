// Stress program for the sanitizers: eight threads use streams, events, captures, pages and pinned
// memory of one host device, which is immediate or deferred; six threads copy between two devices.
// Prints the number of objects left at the end of each run.
//
// Replaces the Python functions that the device calls when it waits: there is no interpreter here.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gputensor/_driver/host/device.h"

extern "C" {
int Py_IsInitialized(void) { return 0; }
int PyGILState_Check(void) { return 0; }
PyThreadState* PyEval_SaveThread(void) { return nullptr; }
void PyEval_RestoreThread(PyThreadState*) {}
}

using gputensor::HostDevice;

#define MUST(call)                                              \
    do {                                                        \
        int status = (call);                                    \
        if (status) {                                           \
            fprintf(stderr, "%s gave %d\n", #call, status);     \
            exit(1);                                            \
        }                                                       \
    } while (0)

namespace {

std::atomic<long> ran{0};

void count(void*) { ran++; }

void capture_once(HostDevice& device, uint64_t stream, uint64_t ptr) {
    uint64_t graph = 0, executable = 0;
    MUST(device.stream_synchronize(stream));
    MUST(device.capture_begin(stream, 0));
    MUST(device.fill_async(ptr, 7, 4, 1024, stream));
    MUST(device.host_launch(count, nullptr, stream));
    MUST(device.capture_end(stream, &graph));
    MUST(device.graph_instantiate(graph, &executable));
    MUST(device.graph_launch(executable, stream));
    MUST(device.graph_launch(executable, stream));
    MUST(device.graph_destroy(graph));
    MUST(device.graph_executable_destroy(executable));
}

void map_once(HostDevice& device, uint64_t stream, uint64_t at) {
    constexpr size_t unit = gputensor::HostMemory::GRANULARITY;
    uint64_t page = 0;
    MUST(device.page_create(&page, unit));
    MUST(device.page_map(at, unit, page));
    MUST(device.fill_async(at, 1, 4, 16, stream));
    MUST(device.stream_synchronize(stream));
    MUST(device.page_unmap(at, unit));
    MUST(device.page_destroy(page));
}

void worker(HostDevice& device, uint32_t index, uint64_t va, uint64_t shared) {
    uint64_t stream = 0, event = 0;
    MUST(device.stream_create(&stream, 0));
    MUST(device.event_create(&event, index & 1));
    for (uint32_t round = 0; round < 40; round++) {
        uint64_t ptr = 0, pinned = 0;
        MUST(device.mem_alloc(&ptr, 4096));
        MUST(device.pinned_alloc(&pinned, 4096));
        MUST(device.fill_async(ptr, index * 1000 + round, 4, 1024, stream));
        MUST(device.host_launch(count, nullptr, round % 3 ? stream : shared));
        MUST(device.event_record(event, stream));
        MUST(device.stream_wait_event(shared, event));
        device.event_query(event);
        device.stream_query(shared);
        MUST(device.copy_async(pinned, ptr, 4096, stream));
        if (round % 5 == 0) capture_once(device, stream, ptr);
        MUST(device.stream_synchronize(stream));
        MUST(reinterpret_cast<uint32_t*>(pinned)[1023] != index * 1000 + round);
        if (round % 10 == 0)
            map_once(device, stream, va + index * gputensor::HostMemory::GRANULARITY);
        MUST(device.mem_free(ptr));
        MUST(device.pinned_free(pinned));
    }
    MUST(device.event_destroy(event));
    MUST(device.stream_destroy(stream));
}

// Copies to the peer and back, ordered by events across devices, and checks what came back.
void exchange(HostDevice& here, HostDevice& there, int own, int other, uint32_t index) {
    uint64_t stream = 0, back = 0, done = 0, returned = 0;
    MUST(here.stream_create(&stream, 0));
    MUST(there.stream_create(&back, 0));
    MUST(here.event_create(&done, 0));
    MUST(there.event_create(&returned, 0));
    for (uint32_t round = 0; round < 40; round++) {
        uint64_t ptr = 0, far = 0;
        MUST(here.mem_alloc(&ptr, 4096));
        MUST(there.mem_alloc(&far, 4096));
        MUST(here.fill_async(ptr, index * 1000 + round, 4, 1024, stream));
        MUST(here.copy_to_peer(far, other, ptr, 4096, stream));
        MUST(here.fill_async(ptr, 0, 4, 1024, stream));
        MUST(here.event_record(done, stream));
        MUST(there.wait_for_peer(back, own, done));
        MUST(there.copy_to_peer(ptr, own, far, 4096, back));
        MUST(there.event_record(returned, back));
        MUST(here.wait_for_peer(stream, other, returned));
        MUST(here.stream_synchronize(stream));
        MUST(reinterpret_cast<uint32_t*>(ptr)[1023] != index * 1000 + round);
        MUST(here.mem_free(ptr));
        MUST(there.mem_free(far));
    }
    MUST(here.event_destroy(done));
    MUST(there.event_destroy(returned));
    MUST(here.stream_destroy(stream));
    MUST(there.stream_destroy(back));
}

void run_peers(uint64_t seed) {
    HostDevice one(size_t(1) << 32, false, seed > 0, seed, -2);
    HostDevice two(size_t(1) << 32, false, seed > 1, seed + 7, -3);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 6; i++)
        threads.emplace_back([&, i] {
            i % 2 ? exchange(one, two, -2, -3, i) : exchange(two, one, -3, -2, i);
        });
    for (auto& thread : threads) thread.join();
    uint64_t sum = 0;
    for (HostDevice* device : {&one, &two}) {
        MUST(device->synchronize());
        uint64_t left[16] = {};
        device->live(left);
        for (uint64_t each : left) sum += each;
    }
    printf("peers left %lu\n", static_cast<unsigned long>(sum));
}

}  // namespace

int main() {
    for (uint64_t seed = 0; seed < 3; seed++) run_peers(seed);
    constexpr size_t range = 8 * gputensor::HostMemory::GRANULARITY;
    for (uint64_t seed = 0; seed < 3; seed++) {
        HostDevice device(size_t(1) << 32, false, seed > 0, seed);
        uint64_t va = 0, shared = 0;
        MUST(device.va_reserve(&va, range, 0));
        MUST(device.stream_create(&shared, 0));
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < 8; i++)
            threads.emplace_back([&, i] { worker(device, i, va, shared); });
        for (auto& thread : threads) thread.join();
        MUST(device.synchronize());
        MUST(device.stream_destroy(shared));
        MUST(device.va_release(va, range));
        uint64_t left[16] = {};
        device.live(left);
        uint64_t sum = 0;
        for (uint64_t each : left) sum += each;
        printf("left %lu ran %ld\n", static_cast<unsigned long>(sum), ran.exchange(0));
    }
}

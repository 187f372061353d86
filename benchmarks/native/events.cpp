// Runs the events of a recorded trace through C function pointers and times them.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

typedef void* (*malloc_function)(size_t, int, void*);
typedef void (*free_function)(void*, size_t, int, void*);

// Returns the wall time in seconds, or -1 when a request failed. The remaining blocks are freed
// after the timing.
extern "C" double time_events(void* allocate, void* release, int device, void** streams,
                              const int8_t* op, const int32_t* id, const int64_t* size,
                              const int16_t* stream, int64_t events, int64_t ids) {
    malloc_function malloc_call = (malloc_function)allocate;
    free_function free_call = (free_function)release;
    std::vector<void*> held(ids);
    std::vector<int64_t> born(ids, -1);
    bool failed = false;
    auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < events; i++) {
        if (op[i] > 0) {
            held[id[i]] = malloc_call(size[i], device, streams[stream[i]]);
            failed |= !held[id[i]];
            born[id[i]] = i;
        } else {
            int64_t made = born[id[i]];
            free_call(held[id[i]], size[made], device, streams[stream[made]]);
            held[id[i]] = nullptr;
        }
    }
    auto stop = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < ids; i++) {
        if (held[i]) { free_call(held[i], size[born[i]], device, streams[stream[born[i]]]); }
    }
    return failed ? -1.0 : std::chrono::duration<double>(stop - start).count();
}

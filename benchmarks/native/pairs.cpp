// Malloc + free pairs through C function pointers, on several threads at once.
//
// Each thread first warms up: it holds `live` blocks of its sizes at a time, so that the timed loop
// finds every size cached. Then it frees and allocates `pairs` times, keeping `live` blocks in a
// ring. The result is the mean wall time of a pair on a thread, in nanoseconds.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

typedef void* (*malloc_function)(size_t, int, void*);
typedef void (*free_function)(void*, size_t, int, void*);

static double run_thread(malloc_function allocate, free_function release, int device, void* stream,
                         const uint64_t* sizes, int size_count, int live, int64_t pairs,
                         std::atomic<int>* waiting, std::atomic<int>* failed) {
    std::vector<void*> held(live);
    std::vector<size_t> held_size(live);
    int next_size = 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < live; i++) {
            held_size[i] = sizes[next_size];
            next_size = (next_size + 1) % size_count;
            held[i] = allocate(held_size[i], device, stream);
            if (!held[i]) { failed->fetch_add(1); }
        }
        if (round < 3) {
            for (int i = 0; i < live; i++) { release(held[i], held_size[i], device, stream); }
        }
    }
    waiting->fetch_sub(1);
    while (waiting->load() > 0) { std::this_thread::yield(); }
    auto start = std::chrono::steady_clock::now();
    int slot = 0;
    for (int64_t i = 0; i < pairs; i++) {
        release(held[slot], held_size[slot], device, stream);
        held[slot] = allocate(held_size[slot], device, stream);
        slot = slot + 1 == live ? 0 : slot + 1;
    }
    auto stop = std::chrono::steady_clock::now();
    for (int i = 0; i < live; i++) { release(held[i], held_size[i], device, stream); }
    return std::chrono::duration<double, std::nano>(stop - start).count() / pairs;
}

// `streams` has one handle for each thread. Returns nanoseconds for a pair (mean over threads), or
// -1 when a request failed.
extern "C" double time_pairs(void* allocate, void* release, int device, void** streams, int threads,
                             const uint64_t* sizes, int size_count, int live, int64_t pairs) {
    std::atomic<int> waiting(threads), failed(0);
    std::vector<double> ns(threads);
    std::vector<std::thread> running;
    for (int t = 0; t < threads; t++) {
        running.emplace_back([&, t] {
            ns[t] = run_thread((malloc_function)allocate, (free_function)release, device, streams[t],
                               sizes, size_count, live, pairs, &waiting, &failed);
        });
    }
    double total = 0;
    for (int t = 0; t < threads; t++) {
        running[t].join();
        total += ns[t];
    }
    return failed.load() ? -1.0 : total / threads;
}

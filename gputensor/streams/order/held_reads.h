// Reads whose work is queued in parts, and the threads that wait for their end in order to write.
//
// Each log has a count of such reads, and there is one for all. A waiting thread has the section
// (_driver/section.h) and releases the GIL; the reader needs neither to continue.
#pragma once

#include <Python.h>

#include <condition_variable>
#include <mutex>
#include <new>

namespace gputensor {

struct HeldReads {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
};

inline HeldReads& held_reads() {
    static auto& reads = *new HeldReads;  // never destroyed: threads may wait when the process exits
    return reads;
}

inline const int* held_anywhere() { return &held_reads().count; }

inline void held_change(int* held, int by) {
    HeldReads& reads = held_reads();
    std::lock_guard<std::mutex> guard(reads.mutex);
    __atomic_fetch_add(held, by, __ATOMIC_RELAXED);
    __atomic_fetch_add(&reads.count, by, __ATOMIC_RELAXED);
    reads.changed.notify_all();
}

inline void held_wait(const int* held) {
    if (!__atomic_load_n(held, __ATOMIC_ACQUIRE)) return;
    PyThreadState* python = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
    {
        HeldReads& reads = held_reads();
        std::unique_lock<std::mutex> guard(reads.mutex);
        reads.changed.wait(guard, [&] { return !__atomic_load_n(held, __ATOMIC_RELAXED); });
    }
    if (python) PyEval_RestoreThread(python);
}

// In the child of a fork: the reading threads do not exist.
inline void held_renew() {
    HeldReads& reads = held_reads();
    new (&reads) HeldReads;
}

}  // namespace gputensor

// The section in which a call orders its uses of memory and queues its work, on any device.
//
// One lock for the process, held for microseconds. The GIL alone does not keep the two together:
// Python code, a compilation or a driver call in between may let other threads in. Who has to wait
// for the section gives up the GIL meanwhile. Sections nest: a finalizer that Python runs inside of
// one is part of it. Nobody waits for device work inside, so the order of locks is: section, GIL,
// then the locks of allocator, logs and devices, whose holders never wait for the former two.
//
// A host device queues the work that comes inside, and runs what it owes at the end, after the lock
// is given back: a host function may need whatever other threads hold. Inside of a host function the
// lock is not taken, since the thread that has it may wait for that very function.
#pragma once

#include <Python.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>

namespace gputensor {

class Section {
public:
    static void begin() {
        Thread& own = thread();
        if (own.depth++ || own.functions) return;
        own.locked = true;
        int expected = FREE;
        if (!state.compare_exchange_strong(expected, HELD, std::memory_order_acquire)) wait();
    }

    // Whether that was the outermost, after which the thread does what it owes.
    static bool end() {
        Thread& own = thread();
        if (--own.depth) return false;
        if (own.locked) {
            own.locked = false;
            if (state.exchange(FREE, std::memory_order_release) == AWAITED) {
                std::lock_guard<std::mutex> guard(waiting);
                changed.notify_one();
            }
        }
        return !own.functions;
    }

    // Whether work that comes now waits for the end of the section.
    static bool entered() {
        Thread& own = thread();
        return own.depth && !own.functions;
    }

    // How deep the thread is in host functions. Such a function is itself a piece of work, and
    // waits for no other.
    static int& functions() { return thread().functions; }

    // In the child of a fork: the thread that had the lock may not be there.
    static void renew() {
        state = FREE;
        thread().locked = false;
        new (&waiting) std::mutex;
        new (&changed) std::condition_variable;
    }

private:
    enum { FREE = 0, HELD = 1, AWAITED = 2 };

    struct Thread {
        int depth;
        int functions;
        bool locked;
    };

    static Thread& thread() {
        static thread_local Thread own = {0, 0, false};
        return own;
    }

    static void wait() {
        PyThreadState* python =
            Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr;
        {
            std::unique_lock<std::mutex> guard(waiting);
            while (state.exchange(AWAITED, std::memory_order_acquire) != FREE) changed.wait(guard);
        }
        if (python) PyEval_RestoreThread(python);
    }

    static inline std::atomic<int> state{FREE};
    static inline std::mutex waiting;
    static inline std::condition_variable changed;
};

}  // namespace gputensor

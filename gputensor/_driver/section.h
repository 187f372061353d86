// The section in which a call orders its uses of memory and queues its work, on any device.
//
// One lock for the process, held for microseconds. The GIL alone does not keep the two together:
// Python code, a compilation or a driver call in between may let other threads run. A thread that
// waits for the section releases the GIL meanwhile. Sections nest: a finalizer that Python runs
// inside one is part of it. No thread waits for device work inside, so the order of locks is:
// section, GIL, then the locks of allocator, logs and devices, whose holders never wait for the
// former two.
//
// A host device queues the work of a section and runs it at the section's end, after the lock is
// released: a host function may need locks that other threads hold. Inside a host function the lock
// is not taken, since the thread that has it may be waiting for that very function.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>
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

    // Returns whether this was the outermost section, after which the thread runs its queued work.
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

    // Whether work queued now waits for the end of the section.
    static bool entered() {
        Thread& own = thread();
        return own.depth && !own.functions;
    }

    // How many host functions this thread is inside. A host function is itself a piece of work and
    // waits for no other.
    static int& functions() { return thread().functions; }

    // In the child of a fork: the thread that had the lock may not exist here.
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
            bool is_over = false;
            while (state.exchange(AWAITED, std::memory_order_acquire) != FREE && !is_over) {
                if (Py_IsInitialized()) {
                    changed.wait(guard);
                } else {
                    is_over = changed.wait_for(guard, FINAL_WAIT) == std::cv_status::timeout;
                }
            }
        }
        if (python) PyEval_RestoreThread(python);
    }

    static inline std::atomic<int> state{FREE};
    static inline std::mutex waiting;
    // Never destroyed: the destructor would wait for threads that wait when the process exits.
    static inline std::condition_variable& changed = *new std::condition_variable;

    // When the interpreter ends, a thread that asks for the GIL is ended, possibly in its section.
    // After this time a finalizer takes the section over.
    static constexpr std::chrono::milliseconds FINAL_WAIT{200};
};

}  // namespace gputensor

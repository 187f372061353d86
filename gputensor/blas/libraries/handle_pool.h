// cuBLAS handles of threads. Making one takes milliseconds and device memory, so a thread that ends
// gives its handles to a pool, from which the next new thread takes them. The pool is never
// destroyed: at process exit the CUDA driver may be gone before the destructors of this library
// run.
#pragma once

#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

struct PooledHandle {
    void* handle;
    uint64_t stream;
    uint64_t workspace;
    int math;
    int is_bound;
};

enum { HANDLE_DEVICES = 64 };

struct HandlePool {
    std::mutex mutex;
    std::vector<PooledHandle> free[HANDLE_DEVICES];
};

static inline HandlePool* handle_pool() {
    static HandlePool* pool = new HandlePool();
    return pool;
}

// Called in the child of a fork: the handles are the parent's, and a change of the pool may be
// half done.
static inline void handle_pool_after_fork() { new (handle_pool()) HandlePool; }

struct ThreadHandles {
    PooledHandle handles[HANDLE_DEVICES] = {};

    ~ThreadHandles() {
        HandlePool* pool = handle_pool();
        std::lock_guard<std::mutex> guard(pool->mutex);
        for (int index = 0; index < HANDLE_DEVICES; ++index) {
            if (handles[index].handle) pool->free[index].push_back(handles[index]);
        }
    }
};

// The thread's record for a device; its handle is NULL if the thread and the pool have none.
static inline PooledHandle* thread_handle(int index) {
    static thread_local ThreadHandles own;
    PooledHandle* mine = &own.handles[index];
    if (!mine->handle) {
        HandlePool* pool = handle_pool();
        std::lock_guard<std::mutex> guard(pool->mutex);
        if (!pool->free[index].empty()) {
            *mine = pool->free[index].back();
            pool->free[index].pop_back();
        }
    }
    return mine;
}

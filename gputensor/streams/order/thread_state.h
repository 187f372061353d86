// The choices of one thread: its device, its stream on every device, and its tracer.
//
// Plain data, so that reading it costs one address of thread-local storage. `owner` is a borrowed
// pointer to the Python object that keeps the streams named here alive (see current.pxi); it is
// cleared by that object's deallocation, which runs in the thread that ends.
#ifndef GPUTENSOR_STREAMS_THREAD_STATE_H
#define GPUTENSOR_STREAMS_THREAD_STATE_H

#include <cstdint>

struct ThreadState {
    int device;                 // NO_DEVICE (-1000): the process default
    uint64_t streams[64];       // current stream of device d at [d + 32]; 0 is the default stream
    void* owner;
    void* tracer;               // borrowed; the thread's tracer, see traces.pxi
};

static thread_local ThreadState gputensor_thread_state = {-1000, {0}, nullptr, nullptr};

static inline ThreadState* thread_state() { return &gputensor_thread_state; }

#endif

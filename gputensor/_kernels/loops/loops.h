// Element-wise operations of floats on a host device, as loops over the C++ expression of a row of
// operations.py. build/generated/host_loops.pxi has the table of the loops.
//
// Operands are contiguous or one number; a result may be written over an operand of the same
// address. A queued loop is one record, which run_queued_loop frees.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "gputensor/_kernels/cuda/special/activations.h"
#include "gputensor/_kernels/cuda/special/bessel.h"
#include "gputensor/_kernels/cuda/special/gammas.h"
#include "gputensor/_kernels/cuda/special/normal.h"

namespace gputensor {

// Functions that CUDA has and C does not.
template <class T> inline T erfinv(T a) { return (T)normal::erfinv(a); }

struct LoopCall {
    int64_t count;
    void* out;
    const void* inputs[3];
    int64_t steps[3];           // 1, or 0 for one number
};

typedef void (*Loop)(const LoopCall&);

struct LoopRow {
    const char* name;
    int arity;
    Loop single, wide;          // of float and of double
};

template <class Of, class T> void loop_of_one(const LoopCall& call) {
    T* out = static_cast<T*>(call.out);
    const T* a = static_cast<const T*>(call.inputs[0]);
    if (call.steps[0])
        for (int64_t i = 0; i < call.count; ++i) out[i] = Of::of(a[i]);
    else
        for (int64_t i = 0; i < call.count; ++i) out[i] = Of::of(*a);
}

template <class Of, class T> void loop_of_two(const LoopCall& call) {
    T* out = static_cast<T*>(call.out);
    const T *a = static_cast<const T*>(call.inputs[0]), *b = static_cast<const T*>(call.inputs[1]);
    if (call.steps[0] && call.steps[1])
        for (int64_t i = 0; i < call.count; ++i) out[i] = Of::of(a[i], b[i]);
    else if (call.steps[0])
        for (int64_t i = 0; i < call.count; ++i) out[i] = Of::of(a[i], *b);
    else
        for (int64_t i = 0; i < call.count; ++i) out[i] = Of::of(*a, b[i * call.steps[1]]);
}

// A row of one or two inputs: the expression of `a` and `b`, numbers of type C.
#define GPUTENSOR_LOOP_1(name, expression) \
    struct Loop_##name { template <class C> static C of(C a) { return (C)(expression); } };
#define GPUTENSOR_LOOP_2(name, expression) \
    struct Loop_##name { template <class C> static C of(C a, C b) { return (C)(expression); } };
#define GPUTENSOR_ROW_1(name) {#name, 1, loop_of_one<Loop_##name, float>, loop_of_one<Loop_##name, double>}
#define GPUTENSOR_ROW_2(name) {#name, 2, loop_of_two<Loop_##name, float>, loop_of_two<Loop_##name, double>}

union LoopNumber {
    float single;
    double wide;
};

struct QueuedLoop {
    Loop loop;
    LoopCall call;
    LoopNumber numbers[3];      // the operands that are numbers
};

inline void run_queued_loop(void* argument) {
    QueuedLoop* queued = static_cast<QueuedLoop*>(argument);
    queued->loop(queued->call);
    std::free(queued);
}

}  // namespace gputensor

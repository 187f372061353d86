// Element-wise operations on a host device, as loops over the C++ expression of a row of
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

enum LoopType : int { LOOP_FLOAT, LOOP_DOUBLE, LOOP_INT32, LOOP_INT64, LOOP_BOOL, LOOP_TYPES };

struct LoopRow {
    const char* name;
    int arity;
    int gives_bool;             // otherwise the result has the type of the operands
    int has_ufunc;              // NumPy's own loop is as fast for many elements
    Loop loops[LOOP_TYPES];     // by the type of the operands; NULL: none
};

// A bool in memory of any library: every byte but 0 is true.
struct Truth {
    uint8_t byte;
    operator bool() const { return byte != 0; }
};

// Loops over one to three operands of type T, with results of type R.
#define GPUTENSOR_LOOPS(prefix, attribute)                                                    \
    template <class Of, class T, class R = T> attribute void prefix##_1(const LoopCall& call) { \
        const int64_t count = call.count, step = call.steps[0];                               \
        R* out = static_cast<R*>(call.out);                                                   \
        const T* a = static_cast<const T*>(call.inputs[0]);                                   \
        if (step) for (int64_t i = 0; i < count; ++i) out[i] = Of::of(a[i]);                  \
        else for (int64_t i = 0; i < count; ++i) out[i] = Of::of(*a);                         \
    }                                                                                         \
    template <class Of, class T, class R = T> attribute void prefix##_2(const LoopCall& call) { \
        const int64_t count = call.count;                                                     \
        R* out = static_cast<R*>(call.out);                                                   \
        const T* a = static_cast<const T*>(call.inputs[0]);                                   \
        const T* b = static_cast<const T*>(call.inputs[1]);                                   \
        const T one = *a, other = *b;                                                         \
        if (call.steps[0] && call.steps[1])                                                   \
            for (int64_t i = 0; i < count; ++i) out[i] = Of::of(a[i], b[i]);                  \
        else if (call.steps[0])                                                               \
            for (int64_t i = 0; i < count; ++i) out[i] = Of::of(a[i], other);                 \
        else                                                                                  \
            for (int64_t i = 0; i < count; ++i) out[i] = Of::of(one, b[i * call.steps[1]]);   \
    }                                                                                         \
    template <class Of, class T> attribute void prefix##_3(const LoopCall& call) {            \
        const int64_t count = call.count, *steps = call.steps;                                \
        T* out = static_cast<T*>(call.out);                                                   \
        const T* a = static_cast<const T*>(call.inputs[0]);                                   \
        const T* b = static_cast<const T*>(call.inputs[1]);                                   \
        const T* c = static_cast<const T*>(call.inputs[2]);                                   \
        const T low = *b, high = *c;                                                          \
        if (steps[0] && !steps[1] && !steps[2])                                               \
            for (int64_t i = 0; i < count; ++i) out[i] = Of::of(a[i], low, high);             \
        else                                                                                  \
            for (int64_t i = 0; i < count; ++i)                                               \
                out[i] = Of::of(a[i * steps[0]], b[i * steps[1]], c[i * steps[2]]);           \
    }

// Of long expressions, and of short ones, which are compiled for several sets of instructions.
GPUTENSOR_LOOPS(loop, )
GPUTENSOR_LOOPS(vector_loop, GPUTENSOR_CLONES GPUTENSOR_FAST)

// Elements chosen by a condition: copied as words, so that every NaN keeps its bits.
template <class T, class F, class G>
GPUTENSOR_FLAT void choose(int64_t count, T* out, const Truth* condition, F first, G second) {
    for (int64_t i = 0; i < count; ++i) {
        const T one = first(i), other = second(i);
        out[i] = condition[i] ? one : other;
    }
}
template <class T> GPUTENSOR_CLONES GPUTENSOR_FAST void where_loop(const LoopCall& call) {
    const int64_t count = call.count, step = call.steps[0];
    T* out = static_cast<T*>(call.out);
    const Truth* condition = static_cast<const Truth*>(call.inputs[0]);
    const T* a = static_cast<const T*>(call.inputs[1]);
    const T* b = static_cast<const T*>(call.inputs[2]);
    const T one = *a, other = *b;
    const auto each = [](const T* from) { return [from](int64_t i) { return from[i]; }; };
    const auto same = [](T number) { return [number](int64_t) { return number; }; };
    if (!step)
        for (int64_t i = 0; i < count; ++i)
            out[i] = *condition ? a[i * call.steps[1]] : b[i * call.steps[2]];
    else if (call.steps[1] && call.steps[2])
        choose(count, out, condition, each(a), each(b));
    else if (call.steps[1])
        choose(count, out, condition, each(a), same(other));
    else if (call.steps[2])
        choose(count, out, condition, same(one), each(b));
    else
        choose(count, out, condition, same(one), same(other));
}

// NaN wins: each step is a choice between two numbers, which needs no branch.
template <class T> GPUTENSOR_FLAT T larger(T a, T b) {
    const T number = a < b ? b : a;
    return b == b ? number : b;
}
template <class T> GPUTENSOR_FLAT T smaller(T a, T b) {
    const T number = a > b ? b : a;
    return b == b ? number : b;
}

// A row of one to three inputs: the expression of `a`, `b` and `c`, numbers of type C.
#define GPUTENSOR_EXPRESSION_1(name, expression) \
    struct Loop_##name { template <class C> static GPUTENSOR_FLAT C of(C a) { return (C)(expression); } };
#define GPUTENSOR_EXPRESSION_2(name, expression)              \
    struct Loop_##name {                                      \
        template <class C> static GPUTENSOR_FLAT C of(C a, C b) { return (C)(expression); } \
    };
#define GPUTENSOR_EXPRESSION_3(name, expression)              \
    struct Loop_##name {                                      \
        template <class C> static GPUTENSOR_FLAT C of(C a, C b, C c) { return (C)(expression); } \
    };
#define GPUTENSOR_TEST_1(name, expression) \
    struct Loop_##name { template <class C> static GPUTENSOR_FLAT bool of(C a) { return (expression); } };
#define GPUTENSOR_TEST_2(name, expression)                    \
    struct Loop_##name {                                      \
        template <class C> static GPUTENSOR_FLAT bool of(C a, C b) { return (expression); } \
    };
union LoopNumber {
    float single;
    double wide;
    int32_t int32;
    int64_t int64;
    uint8_t byte;
};

struct QueuedLoop {
    Loop loop;
    LoopCall call;              // of the first line
    int64_t lines, out_line, input_lines[3];  // bytes from one line to the next
    LoopNumber numbers[3];      // the operands that are numbers
};

inline void run_queued_loop(void* argument) {
    QueuedLoop* queued = static_cast<QueuedLoop*>(argument);
    LoopCall& call = queued->call;
    for (int64_t line = 0; line < queued->lines; ++line) {
        queued->loop(call);
        call.out = static_cast<char*>(call.out) + queued->out_line;
        for (int i = 0; i < 3; ++i)
            call.inputs[i] = static_cast<const char*>(call.inputs[i]) + queued->input_lines[i];
    }
    std::free(queued);
}

}  // namespace gputensor

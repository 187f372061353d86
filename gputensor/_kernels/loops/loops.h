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
#include "gputensor/_kernels/cuda/special/digits.h"
#include "gputensor/_kernels/cuda/special/gammas.h"
#include "gputensor/_kernels/cuda/special/integrals.h"
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

// NaN wins: each step is a choice between two numbers, which needs no branch. Of 0 and -0 the result
// is b, as in kernels.
template <class T> GPUTENSOR_FLAT T larger(T a, T b) {
    const T number = !(a <= b) ? a : b;
    return b == b ? number : b;
}
template <class T> GPUTENSOR_FLAT T smaller(T a, T b) {
    const T number = !(a >= b) ? a : b;
    return b == b ? number : b;
}

// Shifts by the width or more give 0, or -1 for negative numbers shifted right.
template <class T> GPUTENSOR_FLAT T shift_left(T a, T b) {
    const bool is_inside = b >= 0 && b < T(8 * sizeof(T));
    return is_inside ? static_cast<T>(a << b) : T(0);
}
template <class T> GPUTENSOR_FLAT T shift_right(T a, T b) {
    const T most = 8 * sizeof(T) - 1;
    return a >> (b >= 0 && b < most ? b : most);
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

// An operand of a queued loop. `step` is 0 or 1, or the line is packed before the loop reads it and
// unpacked after it was written.
struct LoopOperand {
    char* place;                // of the first element
    char* packed;               // room for a line; NULL: none
    int64_t step;               // elements from one to the next of a line
    int64_t line_steps[15];     // bytes along the further axes
    int itemsize;
};

struct QueuedLoop {
    Loop loop;
    int arity, axes;            // axes beside that of the lines
    int64_t count, shape[15];   // elements of a line; lines along each axis
    LoopOperand operands[4];    // the inputs, then the result
    LoopNumber numbers[3];      // the inputs that are numbers
};

template <class T>
void move_line(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count) {
    T* out = reinterpret_cast<T*>(to);
    const T* in = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < count; ++i) out[i * to_step] = in[i * from_step];
}

inline void move_line(int itemsize, char* to, int64_t to_step, const char* from, int64_t from_step,
                      int64_t count) {
    switch (itemsize) {
        case 1: return move_line<uint8_t>(to, to_step, from, from_step, count);
        case 4: return move_line<uint32_t>(to, to_step, from, from_step, count);
        default: return move_line<uint64_t>(to, to_step, from, from_step, count);
    }
}

inline void run_lines(const QueuedLoop& queued, int axis, char* const* places) {
    if (axis == queued.axes) {
        LoopCall call;
        call.count = queued.count;
        for (int i = 0; i < queued.arity; ++i) {
            const LoopOperand& input = queued.operands[i];
            if (input.packed)
                move_line(input.itemsize, input.packed, 1, places[i], input.step, call.count);
            call.inputs[i] = input.packed ? input.packed : places[i];
            call.steps[i] = input.step != 0;
        }
        const LoopOperand& result = queued.operands[3];
        call.out = result.packed ? result.packed : places[3];
        queued.loop(call);
        if (result.packed)
            move_line(result.itemsize, places[3], result.step, result.packed, 1, call.count);
        return;
    }
    char* moved[4];
    for (int64_t line = 0; line < queued.shape[axis]; ++line) {
        for (int i = 0; i < 4; ++i)
            moved[i] = places[i] + line * queued.operands[i].line_steps[axis];
        run_lines(queued, axis + 1, moved);
    }
}

inline void run_queued_loop(void* argument) {
    const QueuedLoop* queued = static_cast<QueuedLoop*>(argument);
    char* places[4];
    for (int i = 0; i < 4; ++i) places[i] = queued->operands[i].place;
    run_lines(*queued, 0, places);
    std::free(argument);
}

}  // namespace gputensor

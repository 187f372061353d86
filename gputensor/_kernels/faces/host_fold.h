// Reductions of few elements on a host device.
//
// The results are those of host/reduction.py, bit by bit, without the cost of making views and of
// calling NumPy: sums of rows add eight accumulators in halves, sums of columns add row after row.
// A queued fold is one record, which run_host_fold frees.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "gputensor/_kernels/loops/host_functions.h"

namespace gputensor {

// RED_* of faces/__init__.pxd, in the same order.
enum FoldOperation : int {
    FOLD_SUM, FOLD_PROD, FOLD_MAX, FOLD_MIN, FOLD_ARGMAX, FOLD_ARGMIN, FOLD_ANY, FOLD_ALL,
    FOLD_MEAN, FOLD_VAR
};

struct HostFold {
    int operation;              // a FoldOperation
    int is_column;              // the elements of one output are not neighbours
    int64_t kept, kept_stride;  // outputs, and elements from one's first element to the next's
    int64_t reduced, stride;    // elements of one output, and the distance of two
    const void* input;
    void* out;
    void (*run)(const HostFold&);
};

// A bool in memory of any library: every byte but 0 is true.
struct FoldTruth {
    uint8_t byte;
    operator bool() const { return byte != 0; }
};
// What is in memory for elements of type T.
template <class T>
using FoldStored = typename std::conditional<std::is_same<T, bool>::value, FoldTruth, T>::type;

enum : int { FOLD_HALF = 128 };  // NumPy halves longer runs

// The sum of value(0) ... value(n - 1), associated as NumPy's pairwise sum.
template <class A, class F>
A fold_run(int64_t n, int64_t first, F value) {
    if (n < 8) {
        A sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += value(first + i);
        return sum;
    }
    if (n > FOLD_HALF) {
        const int64_t half = n / 2 - n / 2 % 8;
        const A left = fold_run<A>(half, first, value);
        return left + fold_run<A>(n - half, first + half, value);
    }
    A lanes[8];
    for (int k = 0; k < 8; ++k) lanes[k] = value(first + k);
    int64_t i = 8;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) lanes[k] += value(first + i + k);
    A sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
            ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (; i < n; ++i) sum += value(first + i);
    return sum;
}

// The sum of one output's values: neighbours in halves, others one by one.
template <class A, class F>
A fold_sum(const HostFold& fold, F value) {
    if (!fold.is_column) return A(0) + fold_run<A>(fold.reduced, 0, value);
    A sum = 0;
    for (int64_t i = 0; i < fold.reduced; ++i) sum += value(i);
    return sum;
}

// A NaN if there is one, otherwise the greatest or least value; of two zeros, +0 is the greater.
template <class T, class F>
T fold_extreme(int64_t count, F value, bool is_least) {
    T lanes[8], held = value(0);
    bool has_nan = held != held;
    for (int k = 0; k < 8; ++k) lanes[k] = held;
    int64_t i = 0;
    if (is_least)
        for (; i + 8 <= count; i += 8)
            for (int k = 0; k < 8; ++k) {
                const T one = value(i + k);
                has_nan |= one != one;
                lanes[k] = one < lanes[k] ? one : lanes[k];
            }
    else
        for (; i + 8 <= count; i += 8)
            for (int k = 0; k < 8; ++k) {
                const T one = value(i + k);
                has_nan |= one != one;
                lanes[k] = one > lanes[k] ? one : lanes[k];
            }
    for (int k = 0; k < 8; ++k) held = (is_least ? lanes[k] < held : lanes[k] > held) ? lanes[k] : held;
    for (; i < count; ++i) {
        const T one = value(i);
        has_nan |= one != one;
        held = (is_least ? one < held : one > held) ? one : held;
    }
    if (has_nan || held == 0)
        for (i = 0; i < count; ++i) {
            const T one = value(i);
            if (one != one) return one;
            if (one == held) held = is_least ? -(-held + -one) : held + one;  // of zeros
        }
    return held;
}

// Whether an element of a block is NaN, greater than `held`, or less than it if `is_least`.
enum : int64_t { FOLD_BLOCK = 64 };
template <class T>
GPUTENSOR_CLONES GPUTENSOR_FAST bool block_is_beyond(const T* block, T held, bool is_least) {
    int is_beyond = 0;
    if (is_least)
        for (int i = 0; i < FOLD_BLOCK; ++i) is_beyond |= !(block[i] >= held);
    else
        for (int i = 0; i < FOLD_BLOCK; ++i) is_beyond |= !(block[i] <= held);
    return is_beyond;
}

// The index of the first NaN, otherwise of the first greatest or least value. `dense` has the
// elements if they follow each other.
template <class T, class F>
int64_t fold_place(int64_t count, F value, bool is_least, const T* dense) {
    int64_t best = 0;
    T held = value(0);
    for (int64_t i = 0; i < count && held == held;) {
        const int64_t end = i + FOLD_BLOCK < count ? i + FOLD_BLOCK : count;
        if (dense && end - i == FOLD_BLOCK && !block_is_beyond(dense + i, held, is_least)) {
            i = end;
            continue;
        }
        for (; i < end && held == held; ++i) {
            const T one = value(i);
            if ((is_least ? one < held : one > held) || one != one) best = i, held = one;
        }
    }
    return best;
}

template <class F>
bool fold_any(int64_t count, F is_found) {
    for (int64_t i = 0; i < count; ++i)
        if (is_found(i)) return true;
    return false;
}

// Integers wrap, so their sums and products are those of unsigned numbers.
template <class T>
using FoldSum = typename std::conditional<std::is_floating_point<T>::value, T, uint64_t>::type;

template <class T, class F>
void fold_one(const HostFold& fold, int64_t at, F value, const T* dense) {
    typedef FoldSum<T> Sum;
    Sum* out = static_cast<Sum*>(fold.out) + at;
    const int operation = fold.operation;
    switch (operation) {
        case FOLD_SUM:
            *out = fold_sum<Sum>(fold, value);
            return;
        case FOLD_PROD:
            *out = 1;
            for (int64_t i = 0; i < fold.reduced; ++i) *out *= static_cast<Sum>(value(i));
            return;
        case FOLD_MAX:
        case FOLD_MIN:
            static_cast<T*>(fold.out)[at] =
                fold_extreme<T>(fold.reduced, value, operation == FOLD_MIN);
            return;
        case FOLD_ARGMAX:
        case FOLD_ARGMIN:
            static_cast<int64_t*>(fold.out)[at] =
                fold_place<T>(fold.reduced, value, operation == FOLD_ARGMIN, dense);
            return;
        case FOLD_ANY:
        case FOLD_ALL: {
            const bool wanted = operation == FOLD_ANY;
            const auto is_found = [&](int64_t i) { return wanted == (value(i) != 0); };
            static_cast<bool*>(fold.out)[at] = wanted == fold_any(fold.reduced, is_found);
            return;
        }
        default: {
            const Sum mean = fold_sum<Sum>(fold, value) / static_cast<Sum>(fold.reduced);
            if (operation == FOLD_MEAN) {
                *out = mean;
                return;
            }
            const auto square = [&](int64_t i) {
                const Sum away = static_cast<Sum>(value(i)) - mean;
                return away * away;
            };
            *out = fold_sum<Sum>(fold, square) / static_cast<Sum>(fold.reduced);
        }
    }
}

// Sums and means of columns, a row at a time, so that the additions of a row overlap.
template <class T>
void fold_columns(const HostFold& fold) {
    FoldSum<T>* out = static_cast<FoldSum<T>*>(fold.out);
    const auto* row = static_cast<const FoldStored<T>*>(fold.input);
    for (int64_t at = 0; at < fold.kept; ++at) out[at] = 0;
    for (int64_t i = 0; i < fold.reduced; ++i, row += fold.stride)
        for (int64_t at = 0; at < fold.kept; ++at) out[at] += static_cast<FoldSum<T>>(T(row[at]));
    if (fold.operation == FOLD_MEAN)
        for (int64_t at = 0; at < fold.kept; ++at) out[at] /= static_cast<FoldSum<T>>(fold.reduced);
}

template <class T>
void fold_of(const HostFold& fold) {
    if (fold.is_column && (fold.operation == FOLD_SUM || fold.operation == FOLD_MEAN))
        return fold_columns<T>(fold);
    for (int64_t at = 0; at < fold.kept; ++at) {
        const auto* first = static_cast<const FoldStored<T>*>(fold.input) + at * fold.kept_stride;
        if (fold.stride == 1)
            fold_one<T>(fold, at, [first](int64_t i) { return T(first[i]); },
                        std::is_same<T, bool>::value ? nullptr : reinterpret_cast<const T*>(first));
        else
            fold_one<T>(fold, at,
                        [first, &fold](int64_t i) { return T(first[i * fold.stride]); }, nullptr);
    }
}

inline void run_host_fold(void* argument) {
    HostFold* fold = static_cast<HostFold*>(argument);
    fold->run(*fold);
    std::free(fold);
}

}  // namespace gputensor

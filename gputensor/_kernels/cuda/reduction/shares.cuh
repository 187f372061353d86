// A thread's share of a reduction: what it keeps of the units of VECTOR elements that it reads.
//
//     begin(unit)             before the first unit
//     add(x, unit, step)      units unit, unit + step, ...: all of a round at once
//     of(v, step)             the accumulator of element v of all units (column layout)
//     total(step)             the accumulator of all elements (row layout)
//     IS_WHOLE                whether the last two are right without a unit, too
//
// There are four kinds, by what costs the least for an element: accumulators, one for each element
// of a unit; the value and unit of an extreme; both of them in one word; and moments of a round.
// reduction.cuh lists the definitions before this text.
#pragma once

#include "gputensor/_kernels/cuda/vector.cuh"

#if FROM_PARTIAL
typedef A T;
__device__ __forceinline__ A with(A a, A x, long long) { return combine(a, x); }
#else
typedef INPUT T;
__device__ __forceinline__ C value_of(T x) { return wide(convert<STORED>(x)); }
#endif

// The index of element v of a unit.
__device__ __forceinline__ INDEX index_of(INDEX unit, int v) {
    return COLUMN ? unit : unit * VECTOR + v;
}

#if FROM_PARTIAL || !defined(BETTER) && !defined(MOMENTS)

typedef Vector<T, VECTOR> Unit;

#if !FROM_PARTIAL
__device__ __forceinline__ A with(A a, T x, long long index) {
    return absorb(a, value_of(x), index);
}
#endif

struct Shares {
    static const bool IS_WHOLE = true;
    A parts[VECTOR];

    __device__ __forceinline__ void begin(INDEX) {
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) parts[v] = identity();
    }
    template <int N> __device__ __forceinline__ void add(const Unit (&x)[N], INDEX, INDEX) {
#pragma unroll
        for (int u = 0; u < N; ++u)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) parts[v] = with(parts[v], x[u].item[v], 0);
    }
    __device__ __forceinline__ A of(int v, INDEX) const { return parts[v]; }
    __device__ __forceinline__ A total(INDEX) const {
        A all = parts[0];
#pragma unroll
        for (int v = 1; v < VECTOR; ++v) all = combine(all, parts[v]);
        return all;
    }
};

#elif defined(MOMENTS)

__device__ __forceinline__ A with(A a, T x, long long index) {
    return absorb(a, value_of(x), index);
}

// The elements of a round that belong to one result are joined to it as one: their distances from
// the mean so far give their own mean, and the distances from that one their squares. All results
// of a thread have the same count, so one division serves all of them. Distances are from the first
// element at the beginning, so that equal elements have none.
typedef UnitOf<T, VECTOR> Units;
typedef Units::Type Unit;

struct Shares {
    static const bool IS_WHOLE = true;
    static const int RESULTS = COLUMN ? VECTOR : 1;
    C count, means[RESULTS], squares[RESULTS];

    __device__ __forceinline__ void begin(INDEX) {
        count = 0;
#pragma unroll
        for (int r = 0; r < RESULTS; ++r) means[r] = squares[r] = 0;
    }
    template <int N> __device__ __forceinline__ void add(const Unit (&x)[N], INDEX, INDEX) {
        const int LANES = VECTOR / RESULTS;         // elements of a unit that belong to one result
        const C part = (C)(1.0 / (N * LANES));
        const C share = N * LANES * inverse(count + N * LANES), weight = count * share;
#pragma unroll
        for (int r = 0; r < RESULTS; ++r) {
            C away[N], all_away = 0, added = 0;
            C distance[N][LANES];
            if (count == 0) means[r] = value_of(Units::item(x[0], r));
#pragma unroll
            for (int u = 0; u < N; ++u) {
                away[u] = 0;
#pragma unroll
                for (int i = 0; i < LANES; ++i) {
                    distance[u][i] = value_of(Units::item(x[u], r + i)) - means[r];
                    away[u] += distance[u][i] * part;
                }
                all_away += away[u];
            }
#pragma unroll
            for (int u = 0; u < N; ++u)
#pragma unroll
                for (int i = 0; i < LANES; ++i) {
                    const C rest = distance[u][i] - all_away;
                    added += rest * rest;
                }
            means[r] += all_away * share;
            squares[r] += all_away * all_away * weight + added;
        }
        count += N * LANES;
    }
    __device__ __forceinline__ A of(int v, INDEX) const {
        A a = no_moments();
        a.count = count; a.mean = means[v]; a.squares = squares[v];
        return a;
    }
    __device__ __forceinline__ A total(INDEX step) const { return of(0, step); }
};

#elif PACKED

// Elements of at most 16 bits, for the argument of an extreme: a key of 32 bits has the element's
// place in the order above 12 bits for the unit and 4 for the element of a unit, each greater for
// an earlier one. So the greatest key is that of the first extreme, in three instructions or fewer
// for an element. A thread has at most 4,096 units (MOST_PACKED_STEPS of the launcher).
typedef UnitOf<T, VECTOR> Units;
typedef Units::Type Unit;

__device__ __forceinline__ A with(A a, T x, long long index) {
    const uint32 bits = reinterpret_cast<const Word<sizeof(T)>::type&>(x);
    return combine(a, accumulator(key_of<T>(Ordered<T>::of(bits), 0, 0), index));
}

struct Shares {
    static const bool IS_WHOLE = false;
    int32 keys[VECTOR];
    uint32 left;
    INDEX first;

    __device__ __forceinline__ void begin(INDEX unit) {
        first = unit;
        left = 0xfff0;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) keys[v] = WORST;
    }
    template <int N> __device__ __forceinline__ void add(const Unit (&x)[N], INDEX, INDEX) {
        const int EACH = sizeof(x[0].item[0]) / sizeof(T);
#pragma unroll
        for (int u = 0; u < N; ++u) {
#pragma unroll
            for (int v = 0; v < VECTOR; v += EACH) {
                const uint32 word = Ordered<T>::of(x[u].item[v / EACH]);
#pragma unroll
                for (int i = 0; i < EACH; ++i) {
                    const int32 key = key_of<T>(word, i, left);
                    keys[v + i] = keys[v + i] > key ? keys[v + i] : key;
                }
            }
            left -= 16;
        }
    }
    __device__ __forceinline__ A whole(int32 key, INDEX step) const {
        const uint32 place = ~(uint32)key & 0xffff;
        const INDEX unit = first + (INDEX)(place >> 4) * step;
        return accumulator(key >> 16 << 16, (long long)index_of(unit, place & 15));
    }
    __device__ __forceinline__ A of(int v, INDEX step) const { return whole(keys[v] | 15, step); }
    __device__ __forceinline__ A total(INDEX step) const {
        int32 best = keys[0] | 15;
#pragma unroll
        for (int v = 1; v < VECTOR; ++v) {
            const int32 key = keys[v] | (15 - v);
            best = best > key ? best : key;
        }
        return whole(best, step);
    }
};

#else

__device__ __forceinline__ A with(A a, T x, long long index) {
    return absorb(a, value_of(x), index);
}

// The argument of an extreme: elements come in the order of their indices, so only one that is
// better than all before, or the first NaN, replaces the former one.
typedef Vector<T, VECTOR> Unit;

// By halves, since the compiler makes a minimum of 64 bits of the whole, which compares again.
template <class V> __device__ __forceinline__ V chosen(bool is_first, V a, V b) {
    return is_first ? a : b;
}
__device__ __forceinline__ int64 chosen(bool is_first, int64 a, int64 b) {
    union { int64 value; uint32 words[2]; } x = {a}, y = {b};
    x.words[0] = is_first ? x.words[0] : y.words[0];
    x.words[1] = is_first ? x.words[1] : y.words[1];
    return x.value;
}
__device__ __forceinline__ uint64 chosen(bool is_first, uint64 a, uint64 b) {
    return (uint64)chosen(is_first, (int64)a, (int64)b);
}

struct Shares {
    static const bool IS_WHOLE = false;
    C values[VECTOR];
    INDEX units[VECTOR];

    __device__ __forceinline__ void begin(INDEX unit) {
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) values[v] = (C)(WORST), units[v] = unit;
    }
    static __device__ __forceinline__ bool is_better(C value, C than) {
        if ((C)0.5f == (C)0) return value BETTER than;
        const bool is_as_bad = 1 BETTER 0 ? value <= than : value >= than;
        return !is_as_bad && than == than;
    }
    template <int N> __device__ __forceinline__ void add(const Unit (&x)[N], INDEX unit,
                                                         INDEX step) {
#pragma unroll
        for (int u = 0; u < N; ++u)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                const C value = value_of(x[u].item[v]);
                const bool is_new = is_better(value, values[v]);
                values[v] = chosen(is_new, value, values[v]);
                units[v] = is_new ? unit + u * step : units[v];
            }
    }
    __device__ __forceinline__ A of(int v, INDEX) const {
        return accumulator(values[v], (long long)index_of(units[v], v));
    }
    __device__ __forceinline__ A total(INDEX step) const {
        A all = of(0, step);
#pragma unroll
        for (int v = 1; v < VECTOR; ++v) all = combine(all, of(v, step));
        return all;
    }
};

#endif

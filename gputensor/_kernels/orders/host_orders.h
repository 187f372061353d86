// Search, selection, counts and choices on a host device, as loops over row-major memory.
//
// The results are those of host/orders.py. A loop is found by the kind and size of its elements;
// other dtypes have none, and the call goes to NumPy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "gputensor/_kernels/loops/host_functions.h"

namespace gputensor {

enum HostOrderKind : int {
    ORDER_INT, ORDER_UINT, ORDER_FLOAT, ORDER_HALF, ORDER_BFLOAT, ORDER_BOOL
};

struct HostOrder;
// Returns -1, the place of an index out of range, or ORDER_NO_MEMORY.
typedef int64_t (*HostOrderRun)(const HostOrder&);

enum : int64_t { ORDER_NO_MEMORY = -2 };

struct HostOrder {
    HostOrderRun run;
    int device;
    int flag;                   // is_right, is_largest, is_own, or whether equal NaN are one
    int ndim;                   // axes of a mask, and their extents; or the width of rows
    int64_t shape[16];
    int64_t rows, columns;      // of the first input
    int64_t count;              // values, results of a row, or indices
    const void *input, *other;
    void *out, *places;
};

// ---- search

template <class T> constexpr bool has_nan() { return std::is_floating_point<T>::value; }

// The places among ascending numbers without NaN: a loop without branches, several at a time, so
// that vector instructions read for all of them and their reads of memory overlap.
template <class T, bool IS_RIGHT, int AT_ONCE>
GPUTENSOR_FLAT void search_numbers(const T* sorted, int64_t length, const T* values, int64_t* out) {
    int64_t places[AT_ONCE];
    T wanted[AT_ONCE];
    for (int k = 0; k < AT_ONCE; ++k) places[k] = 0, wanted[k] = values[k];
    int64_t left = length;
    while (left > 1) {
        const int64_t half = left / 2;
        for (int k = 0; k < AT_ONCE; ++k) {
            const T middle = sorted[places[k] + half - 1];
            places[k] += (IS_RIGHT ? middle <= wanted[k] : middle < wanted[k]) ? half : 0;
        }
        left -= half;
    }
    for (int k = 0; k < AT_ONCE && left; ++k) {
        const T last = sorted[places[k]];
        places[k] += IS_RIGHT ? last <= wanted[k] : last < wanted[k];
    }
    for (int k = 0; k < AT_ONCE; ++k) out[k] = places[k];
}

template <class T, bool IS_RIGHT>
GPUTENSOR_CLONES GPUTENSOR_FAST void search_all(const HostOrder& order) {
    enum { AT_ONCE = 16 };
    const T* sorted = static_cast<const T*>(order.input);
    const T* values = static_cast<const T*>(order.other);
    int64_t* out = static_cast<int64_t*>(order.out);
    // NaN is the greatest.
    const int64_t numbers = std::partition_point(sorted, sorted + order.columns, [](T x) {
        return x == x; }) - sorted;
    int64_t i = 0;
    for (; i + AT_ONCE <= order.count; i += AT_ONCE)
        search_numbers<T, IS_RIGHT, AT_ONCE>(sorted, numbers, values + i, out + i);
    for (; i < order.count; ++i)
        search_numbers<T, IS_RIGHT, 1>(sorted, numbers, values + i, out + i);
    if (has_nan<T>())
        for (i = 0; i < order.count; ++i)
            if (values[i] != values[i]) out[i] = IS_RIGHT ? order.columns : numbers;
}

template <class T>
int64_t run_search(const HostOrder& order) {
    if (order.flag)
        search_all<T, true>(order);
    else
        search_all<T, false>(order);
    return -1;
}

// ---- selection

// Unsigned numbers in the order of the elements: NaN is the greatest, both zeros are equal.
template <class T, class Enable = void> struct OrderKey {
    typedef typename std::make_unsigned<T>::type Key;
    static Key of(T value) {
        return std::is_signed<T>::value
            ? static_cast<Key>(value) ^ (Key(1) << (8 * sizeof(T) - 1)) : static_cast<Key>(value);
    }
};
template <class T>
struct OrderKey<T, typename std::enable_if<std::is_floating_point<T>::value>::type> {
    typedef typename std::conditional<sizeof(T) == 4, uint32_t, uint64_t>::type Key;
    static Key of(T value) {
        const Key sign = Key(1) << (8 * sizeof(T) - 1);
        Key bits;
        value += T(0);
        std::memcpy(&bits, &value, sizeof(T));
        bits = bits & sign ? ~bits : bits | sign;
        return value == value ? bits : ~Key(0);
    }
};

// The first `count` elements of each sorted row: a heap of the first ones so far, the last on top.
template <class T>
int64_t run_select(const HostOrder& order) {
    typedef typename OrderKey<T>::Key Key;
    struct Chosen {
        Key key;
        int64_t place;
        bool operator<(const Chosen& other) const {
            return key < other.key || (key == other.key && place < other.place);
        }
    };
    const Key turned = order.flag ? ~Key(0) : 0;
    const T* row = static_cast<const T*>(order.input);
    T* values = static_cast<T*>(order.out);
    int64_t* places = static_cast<int64_t*>(order.places);
    std::vector<Chosen> heap(order.count);
    for (int64_t r = 0; r < order.rows; ++r, row += order.columns) {
        for (int64_t i = 0; i < order.count; ++i)
            heap[i] = Chosen{static_cast<Key>(OrderKey<T>::of(row[i]) ^ turned), i};
        std::make_heap(heap.begin(), heap.end());
        for (int64_t i = order.count; i < order.columns; ++i) {
            const Key key = static_cast<Key>(OrderKey<T>::of(row[i]) ^ turned);
            if (key >= heap[0].key) continue;  // of equal elements the first is chosen
            // The new one sinks from the top.
            const Chosen sinking{key, i};
            int64_t at = 0;
            for (;;) {
                int64_t below = 2 * at + 1;
                if (below >= order.count) break;
                if (below + 1 < order.count && heap[below] < heap[below + 1]) ++below;
                if (heap[below] < sinking) break;
                heap[at] = heap[below];
                at = below;
            }
            heap[at] = sinking;
        }
        std::sort_heap(heap.begin(), heap.end());
        for (int64_t i = 0; i < order.count; ++i) {
            *places++ = heap[i].place;
            *values++ = row[heap[i].place];
        }
    }
    return -1;
}

// ---- counts and sums by number

template <class T>
int64_t run_count(const HostOrder& order) {
    const T* x = static_cast<const T*>(order.input);
    int64_t* counts = static_cast<int64_t*>(order.out);
    const uint64_t length = order.count;
    for (int64_t i = 0; i < order.columns; ++i) {
        const uint64_t number = static_cast<uint64_t>(x[i]);  // a negative one becomes too large
        if (number < length) ++counts[number];
    }
    return -1;
}

// Adds `rows` x `count` x `width` elements to `rows` x `columns` x `width` ones. The index has a place
// among the columns for each of the `count`, or for each element.
template <class T>
int64_t run_add(const HostOrder& order) {
    const int64_t* index = static_cast<const int64_t*>(order.other);
    const T* source = static_cast<const T*>(order.input);
    T* target = static_cast<T*>(order.out);
    const int64_t extent = order.columns, width = order.shape[0];
    const bool is_own = order.flag;
    const int64_t indices = order.count * (is_own ? order.rows * width : 1);
    for (int64_t i = 0; i < indices; ++i)
        if (static_cast<uint64_t>(index[i]) + extent >= 2 * static_cast<uint64_t>(extent)) return i;
    const auto place = [extent](int64_t i) { return i < 0 ? i + extent : i; };
    for (int64_t r = 0; r < order.rows; ++r, target += extent * width)
        for (int64_t i = 0; i < order.count; ++i, source += width) {
            if (is_own) {
                for (int64_t w = 0; w < width; ++w) target[place(*index++) * width + w] += source[w];
            } else {
                T* const line = target + place(index[i]) * width;
                for (int64_t w = 0; w < width; ++w) line[w] += source[w];
            }
        }
    return -1;
}

// ---- choices: a bit for each element, and the number of chosen ones before each tile

enum : int64_t { HOST_MARK_TILE = 1 << 15 };

// Of a function that is part of a loop for several sets of instructions.
#if defined(__GNUC__)
#define GPUTENSOR_LAMBDA __attribute__((always_inline))
#else
#define GPUTENSOR_LAMBDA
#endif

// Eight bytes that are 0 or 1 as the bits of one.
inline uint32_t packed_flags(const uint8_t* flags) {
    uint64_t word;
    std::memcpy(&word, flags, 8);
    return static_cast<uint32_t>(word * 0x0102040810204080u >> 56);
}

// The first element is chosen if `first` is set; `is_chosen` tells it for the others, or for all.
template <class F>
GPUTENSOR_FLAT void mark_all(const HostOrder& order, bool first, F is_chosen) {
    uint32_t* bits = static_cast<uint32_t*>(order.out);
    int64_t* starts = static_cast<int64_t*>(order.places);
    int64_t total = 0, word = 0;
    uint8_t flags[32];
    for (; word < order.columns; word += 32) {
        if (word % HOST_MARK_TILE == 0) *starts++ = total;
        if (word + 32 <= order.columns && !(first && word == 0)) {
            for (int k = 0; k < 32; ++k) flags[k] = is_chosen(word + k);
        } else {
            std::memset(flags, 0, 32);
            flags[0] = first && word == 0 ? 1 : is_chosen(word);
            for (int k = 1; k < 32 && word + k < order.columns; ++k) flags[k] = is_chosen(word + k);
        }
        const uint32_t found = packed_flags(flags) | packed_flags(flags + 8) << 8 |
                               packed_flags(flags + 16) << 16 | packed_flags(flags + 24) << 24;
        *bits++ = found;
        total += __builtin_popcount(found);
    }
    *starts = total;
}

GPUTENSOR_CLONES GPUTENSOR_FAST static int64_t run_mark_true(const HostOrder& order) {
    const uint8_t* x = static_cast<const uint8_t*>(order.input);
    mark_all(order, false, [x](int64_t i) GPUTENSOR_LAMBDA { return x[i] != 0; });
    return -1;
}

template <class T>
GPUTENSOR_CLONES GPUTENSOR_FAST int64_t run_mark_firsts(const HostOrder& order) {
    const T* x = static_cast<const T*>(order.input);
    if (order.flag && std::is_floating_point<T>::value)
        mark_all(order, true, [x](int64_t i) GPUTENSOR_LAMBDA {
            const bool are_nan = (x[i] != x[i]) & (x[i - 1] != x[i - 1]);
            return (x[i] != x[i - 1]) & !are_nan;
        });
    else
        mark_all(order, true, [x](int64_t i) GPUTENSOR_LAMBDA { return x[i] != x[i - 1]; });
    return -1;
}

template <class T, class F>
void each_chosen(const HostOrder& order, F value) {
    const uint32_t* bits = static_cast<const uint32_t*>(order.other);
    T* out = static_cast<T*>(order.out);
    for (int64_t word = 0; word < order.columns; word += 32) {
        uint32_t left = bits[word / 32];
        if (left == ~uint32_t(0)) {
            for (int k = 0; k < 32; ++k) out[k] = value(word + k);
            out += 32;
        } else {
            for (; left; left &= left - 1) *out++ = value(word + __builtin_ctz(left));
        }
    }
}

template <class T>
int64_t run_pick(const HostOrder& order) {
    const T* x = static_cast<const T*>(order.input);
    each_chosen<T>(order, [x](int64_t i) { return x[i]; });
    return -1;
}

// The places along each of `ndim` axes, from the flat ones that the last row of `out` has first.
inline int64_t run_places(const HostOrder& order) {
    int64_t* last = static_cast<int64_t*>(order.out) + (order.ndim - 1) * order.count;
    HostOrder flat = order;
    flat.out = last;
    each_chosen<int64_t>(flat, [](int64_t i) { return i; });
    for (int axis = order.ndim - 1; axis > 0; --axis) {
        const int64_t extent = order.shape[axis];
        int64_t *place = last, *outer = last - order.count, row = 0, start = 0;
        for (int64_t i = 0; i < order.count; ++i) {
            const int64_t beyond = place[i] - start;  // the places ascend
            if (beyond >= extent) {
                row = beyond < 2 * extent ? row + 1 : place[i] / extent;
                start = row * extent;
            }
            place[i] -= start;
            outer[i] = row;
        }
        last = outer;
    }
    return -1;
}

// ---- the loops by type; NULL: there is none

#define GPUTENSOR_ORDER_NUMBERS(name, run)                               \
    inline HostOrderRun name(int kind, int itemsize) {                   \
        if (kind == ORDER_FLOAT)                                         \
            return itemsize == 4 ? run<float> : itemsize == 8 ? run<double> : nullptr; \
        if (kind == ORDER_INT)                                           \
            return itemsize == 4 ? run<int32_t> : itemsize == 8 ? run<int64_t> : nullptr; \
        return kind != ORDER_UINT ? nullptr                              \
            : itemsize == 4 ? run<uint32_t> : itemsize == 8 ? run<uint64_t> : nullptr; \
    }
GPUTENSOR_ORDER_NUMBERS(search_loop, run_search)
GPUTENSOR_ORDER_NUMBERS(select_loop, run_select)
GPUTENSOR_ORDER_NUMBERS(firsts_loop, run_mark_firsts)
GPUTENSOR_ORDER_NUMBERS(add_loop, run_add)

inline HostOrderRun count_loop(int kind, int itemsize) {
    if (kind != ORDER_INT && kind != ORDER_UINT) return nullptr;
    const bool is_signed = kind == ORDER_INT;
    switch (itemsize) {
        case 1: return is_signed ? run_count<int8_t> : run_count<uint8_t>;
        case 2: return is_signed ? run_count<int16_t> : run_count<uint16_t>;
        case 4: return is_signed ? run_count<int32_t> : run_count<uint32_t>;
        default: return is_signed ? run_count<int64_t> : run_count<uint64_t>;
    }
}

inline HostOrderRun pick_loop(int itemsize) {
    switch (itemsize) {
        case 1: return run_pick<uint8_t>;
        case 2: return run_pick<uint16_t>;
        case 4: return run_pick<uint32_t>;
        case 8: return run_pick<uint64_t>;
        default: return nullptr;
    }
}

}  // namespace gputensor

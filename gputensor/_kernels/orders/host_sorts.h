// Stable sorts of rows on a host device, by passes over digits of 8 bits from the lowest on.
//
// A digit that is the same in all elements of a row takes no pass. Keys of integers are distances
// from the least one, so that integers of a small range are sorted in one pass or two. For short
// rows the counts cost more than NumPy's sorts.
#pragma once

#include <cstdlib>

#include "gputensor/_kernels/orders/host_orders.h"

namespace gputensor {

// 16-bit floats: their bits, and the greatest ones that are no NaN.
template <uint16_t INFINITY_BITS> struct ShortFloat { uint16_t bits; };
typedef ShortFloat<0x7C00> HalfBits;
typedef ShortFloat<0x7F80> BfloatBits;

template <uint16_t INFINITY_BITS> struct OrderKey<ShortFloat<INFINITY_BITS>, void> {
    typedef uint16_t Key;
    static Key of(ShortFloat<INFINITY_BITS> value) {
        const Key size = value.bits & 0x7FFF;
        if (size > INFINITY_BITS) return 0xFFFF;
        return static_cast<Key>(value.bits != size && size ? ~value.bits : size | 0x8000);
    }
};

enum : int { SORT_BITS = 8, SORT_DIGITS = 1 << SORT_BITS };

// The places at which the elements of each digit begin, for the digits that differ.
template <class Key> struct SortPasses {
    int count;
    int shifts[sizeof(Key)];
    uint32_t* starts[sizeof(Key)];
    uint32_t counts[sizeof(Key)][SORT_DIGITS];

    static int digit(Key key, int shift) { return (key >> shift) & (SORT_DIGITS - 1); }

    template <class F> SortPasses(int64_t columns, const F& key_of) {
        std::memset(counts, 0, sizeof(counts));
        for (int64_t i = 0; i < columns; ++i) {
            const Key key = key_of(i);
            for (size_t k = 0; k < sizeof(Key); ++k) ++counts[k][digit(key, SORT_BITS * k)];
        }
        count = 0;
        const Key first = key_of(0);
        for (size_t k = 0; k < sizeof(Key); ++k) {
            if (counts[k][digit(first, SORT_BITS * k)] == columns) continue;
            uint32_t sum = 0;
            for (uint32_t& number : counts[k]) {
                const uint32_t before = sum;
                sum += number;
                number = before;
            }
            shifts[count] = SORT_BITS * k;
            starts[count++] = counts[k];
        }
    }
};

// The keys of a row: those of its elements, in the opposite order if `is_descending`.
template <class T> struct RowKeys {
    typedef typename OrderKey<T>::Key Key;
    const T* row;
    Key turned, least;

    RowKeys(const T* row, int64_t columns, bool is_descending)
        : row(row), turned(static_cast<Key>(is_descending ? ~Key(0) : 0)), least(0) {
        if (!std::is_integral<T>::value) return;
        Key found = of(row[0]);
        for (int64_t i = 1; i < columns; ++i) found = std::min(found, of(row[i]));
        least = found;
    }
    Key of(T value) const { return static_cast<Key>((OrderKey<T>::of(value) ^ turned) - least); }
    Key operator()(int64_t i) const { return of(row[i]); }
};

// Elements are moved as they are: zeros keep their signs, and NaN its bits.
template <class T>
int64_t run_sort(const HostOrder& order) {
    typedef typename OrderKey<T>::Key Key;
    const T* row = static_cast<const T*>(order.input);
    T* out = static_cast<T*>(order.out);
    T* other = static_cast<T*>(std::malloc(order.columns * sizeof(T)));
    if (!other) return ORDER_NO_MEMORY;
    for (int64_t r = 0; r < order.rows; ++r, row += order.columns, out += order.columns) {
        const RowKeys<T> keys(row, order.columns, order.flag);
        SortPasses<Key> passes(order.columns, keys);
        const T* from = row;
        for (int pass = 0; pass < passes.count; ++pass) {
            T* to = (passes.count - pass) % 2 ? out : other;
            uint32_t* starts = passes.starts[pass];
            const int shift = passes.shifts[pass];
            for (int64_t i = 0; i < order.columns; ++i) {
                const T value = from[i];
                to[starts[passes.digit(keys.of(value), shift)]++] = value;
            }
            from = to;
        }
        if (!passes.count) std::memcpy(out, row, order.columns * sizeof(T));
    }
    std::free(other);
    return -1;
}

template <class T>
int64_t run_argsort(const HostOrder& order) {
    typedef typename OrderKey<T>::Key Key;
    struct Placed {
        Key key;
        uint32_t place;
    };
    const T* row = static_cast<const T*>(order.input);
    int64_t* out = static_cast<int64_t*>(order.out);
    const int64_t columns = order.columns;
    Placed* memory = static_cast<Placed*>(std::malloc(2 * columns * sizeof(Placed)));
    if (!memory) return ORDER_NO_MEMORY;
    for (int64_t r = 0; r < order.rows; ++r, row += columns, out += columns) {
        const RowKeys<T> keys(row, columns, order.flag);
        SortPasses<Key> passes(columns, keys);
        Placed *from = memory, *to = memory + columns;
        for (int pass = 0; pass < passes.count; ++pass, std::swap(from, to)) {
            uint32_t* starts = passes.starts[pass];
            const int shift = passes.shifts[pass];
            // The first pass reads the row, the last one writes places alone.
            const auto placed = [&](int64_t i) {
                return pass ? from[i] : Placed{keys(i), static_cast<uint32_t>(i)};
            };
            if (pass + 1 == passes.count) {
                for (int64_t i = 0; i < columns; ++i) {
                    const Placed one = placed(i);
                    out[starts[passes.digit(one.key, shift)]++] = one.place;
                }
            } else {
                for (int64_t i = 0; i < columns; ++i) {
                    const Placed one = placed(i);
                    to[starts[passes.digit(one.key, shift)]++] = one;
                }
            }
        }
        for (int64_t i = 0; !passes.count && i < columns; ++i) out[i] = i;
    }
    std::free(memory);
    return -1;
}

// Short rows: the place of an element is the number of those before it, which vector instructions
// count for a block of elements at a time, without a branch.
enum : int64_t { SHORT_SORT = 128, SHORT_BLOCK = 16 };

// Counts keys from `j` up to `end` that are less than those of a block, or equal if TIES.
template <bool TIES, class Key>
GPUTENSOR_FLAT void count_before(const Key* keys, int64_t j, int64_t end, const Key* block,
                                 Key* before) {
    for (; j < end; j += 4)
        for (int k = 0; k < SHORT_BLOCK; ++k) {
            const Key one = block[k];
            if (TIES)
                before[k] += (keys[j] <= one) + (keys[j + 1] <= one) + (keys[j + 2] <= one) +
                             (keys[j + 3] <= one);
            else
                before[k] += (keys[j] < one) + (keys[j + 1] < one) + (keys[j + 2] < one) +
                             (keys[j + 3] < one);
        }
}

// Calls `put(place, column)` for the elements of a row.
template <class T, class F>
GPUTENSOR_FLAT void place_short(const T* row, int64_t columns, bool is_descending, F put) {
    typedef typename OrderKey<T>::Key Key;
    const int64_t padded = (columns + SHORT_BLOCK - 1) / SHORT_BLOCK * SHORT_BLOCK;
    const Key turned = static_cast<Key>(is_descending ? ~Key(0) : 0);
    Key keys[SHORT_SORT];
    // No key is after those of the padding, so they are never counted.
    for (int64_t i = 0; i < padded; ++i)
        keys[i] = i < columns ? static_cast<Key>(OrderKey<T>::of(row[i]) ^ turned) : ~Key(0);
    for (int64_t start = 0; start < columns; start += SHORT_BLOCK) {
        const Key* block = keys + start;
        Key before[SHORT_BLOCK] = {};
        count_before<true>(keys, 0, start, block, before);
        count_before<false>(keys, start, padded, block, before);
        for (int k = 0; k < SHORT_BLOCK && start + k < columns; ++k) {
            int64_t place = before[k];
            for (int j = 0; j < k; ++j) place += block[j] == block[k];
            put(place, start + k);
        }
    }
}

template <class T>
GPUTENSOR_CLONES GPUTENSOR_FAST int64_t run_short_argsort(const HostOrder& order) {
    const T* row = static_cast<const T*>(order.input);
    int64_t* out = static_cast<int64_t*>(order.out);
    for (int64_t r = 0; r < order.rows; ++r, row += order.columns, out += order.columns)
        place_short(row, order.columns, order.flag,
                    [out](int64_t place, int64_t i) GPUTENSOR_LAMBDA { out[place] = i; });
    return -1;
}

template <class T>
GPUTENSOR_CLONES GPUTENSOR_FAST int64_t run_short_sort(const HostOrder& order) {
    const T* row = static_cast<const T*>(order.input);
    T* out = static_cast<T*>(order.out);
    for (int64_t r = 0; r < order.rows; ++r, row += order.columns, out += order.columns)
        place_short(row, order.columns, order.flag, [row, out](int64_t place, int64_t i)
                    GPUTENSOR_LAMBDA { out[place] = row[i]; });
    return -1;
}

// ---- the loops by type; NULL: there is none

#define GPUTENSOR_ORDER_TYPES(name, run, wide)                                    \
    inline HostOrderRun name(int kind, int itemsize) {                            \
        if (itemsize <= 2 && kind == ORDER_INT)                                   \
            return itemsize == 1 ? run<int8_t> : run<int16_t>;                    \
        if (itemsize <= 2 && kind == ORDER_UINT)                                  \
            return itemsize == 1 ? run<uint8_t> : run<uint16_t>;                  \
        if (kind == ORDER_HALF) return run<HalfBits>;                             \
        return kind == ORDER_BFLOAT ? run<BfloatBits> : wide(kind, itemsize);     \
    }
GPUTENSOR_ORDER_NUMBERS(wide_sort_loop, run_sort)
GPUTENSOR_ORDER_NUMBERS(wide_argsort_loop, run_argsort)
GPUTENSOR_ORDER_NUMBERS(wide_short_argsort_loop, run_short_argsort)
GPUTENSOR_ORDER_NUMBERS(wide_short_sort_loop, run_short_sort)
GPUTENSOR_ORDER_TYPES(sort_loop, run_sort, wide_sort_loop)
GPUTENSOR_ORDER_TYPES(argsort_loop, run_argsort, wide_argsort_loop)
GPUTENSOR_ORDER_TYPES(short_argsort_loop, run_short_argsort, wide_short_argsort_loop)
GPUTENSOR_ORDER_TYPES(short_sort_loop, run_short_sort, wide_short_sort_loop)

}  // namespace gputensor

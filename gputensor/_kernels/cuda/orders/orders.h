// The parameters of sorting, selection, search, counting, scans and choices by masks.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct SortParameters {                     // sort.cuh, topk.cuh
    GPUTENSOR_POINTER(const char) input;    // rows of columns
    GPUTENSOR_POINTER(char) values;         // sorted elements; null: not written
    GPUTENSOR_POINTER(int64) order;         // their columns; null: not written
    int64 rows, columns;
    int64 width;                            // of a selection: k
    int64 is_descending;
};
static_assert(sizeof(SortParameters) == 56, "both sides of a launch lay the parameters out alike");

struct RadixParameters {                    // radix.cuh
    GPUTENSOR_POINTER(const char) input;    // rows of columns: elements, in later passes keys
    GPUTENSOR_POINTER(char) out;            // keys
    GPUTENSOR_POINTER(char) result;         // elements or columns
    GPUTENSOR_POINTER(const uint32) places; // of the keys of input; null: there are none
    GPUTENSOR_POINTER(uint32) next_places;
    GPUTENSOR_POINTER(uint64) counts;       // of rows, passes and digits; then their starts
    GPUTENSOR_POINTER(uint64) words;        // of tiles and digits; zero before the launch
    GPUTENSOR_POINTER(uint32) counter;      // zero before the launch
    int64 rows, columns, tiles;
    int64 pass;
    int64 is_descending;
};
static_assert(sizeof(RadixParameters) == 104, "both sides of a launch lay the parameters out alike");

struct SearchParameters {                   // search.cuh
    GPUTENSOR_POINTER(const char) sorted;
    GPUTENSOR_POINTER(const char) wanted;
    GPUTENSOR_POINTER(int64) out;
    int64 columns, count, is_right;
};
static_assert(sizeof(SearchParameters) == 48,
              "both sides of a launch lay the parameters out alike");

struct CountParameters {                    // count.cuh
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(const char) edges;    // null: the elements are the numbers of the kinds
    GPUTENSOR_POINTER(uint64) counts;
    int64 count, length;
};
static_assert(sizeof(CountParameters) == 40, "both sides of a launch lay the parameters out alike");

struct ScanParameters {                     // scan.cuh
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(char) out;
    GPUTENSOR_POINTER(char) totals;         // of each chunk; null: there is one chunk
    GPUTENSOR_POINTER(uint64) words;        // of one pass (prefix.cuh): tiles, then groups of them
    GPUTENSOR_POINTER(uint32) counter;
    int64 outer, length, inner;
    int64 chunks, chunk;                    // their number, and the elements of each
};
static_assert(sizeof(ScanParameters) == 80, "both sides of a launch lay the parameters out alike");

struct MarkParameters {                     // mark.cuh
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(uint32) bits;         // a word for 32 elements
    GPUTENSOR_POINTER(int64) starts;        // of each tile, then the end of the last one
    GPUTENSOR_POINTER(uint64) words;        // as in ScanParameters
    GPUTENSOR_POINTER(uint32) counter;
    int64 count, tiles;
};
static_assert(sizeof(MarkParameters) == 56, "both sides of a launch lay the parameters out alike");

struct SeenParameters {                     // seen.cuh
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(const char) least;    // an element, for which the first bit is
    GPUTENSOR_POINTER(uint32) bits;         // zero before the launch
    int64 count, words;                     // elements, and words of bits
};
static_assert(sizeof(SeenParameters) == 40, "both sides of a launch lay the parameters out alike");

struct PickParameters {                     // pick.cuh
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(const uint32) bits;
    GPUTENSOR_POINTER(const int64) starts;
    GPUTENSOR_POINTER(char) out;
    int64 count, total;                     // elements, and chosen ones
    int64 extents[16];                      // of the axes of places
};
static_assert(sizeof(PickParameters) == 176, "both sides of a launch lay the parameters out alike");

struct AddParameters {                      // add.cuh
    GPUTENSOR_POINTER(char) target;         // outer, length, inner
    GPUTENSOR_POINTER(const char) index;
    GPUTENSOR_POINTER(const char) source;   // outer, count, inner
    int64 outer, length, inner, count;
};
static_assert(sizeof(AddParameters) == 56, "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

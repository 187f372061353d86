// The parameters of sorting, selection, search, counting and scans.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct SortParameters {                     // sort.cuh, topk.cuh
    GPUTENSOR_POINTER(const char) input;    // rows of columns
    GPUTENSOR_POINTER(char) values;         // sorted elements; null: not wanted
    GPUTENSOR_POINTER(int64) order;         // their columns; null: not wanted
    GPUTENSOR_POINTER(char) keys;           // between the launches of a long sort
    GPUTENSOR_POINTER(char) next_keys;
    GPUTENSOR_POINTER(uint32) places;
    GPUTENSOR_POINTER(uint32) next_places;
    int64 rows, columns;
    int64 width;                            // of runs that are sorted; of a selection: k
    int64 is_descending;
};
static_assert(sizeof(SortParameters) == 88, "both sides of a launch lay the parameters out alike");

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
    GPUTENSOR_POINTER(uint64) counts;
    int64 count, length;
};
static_assert(sizeof(CountParameters) == 32, "both sides of a launch lay the parameters out alike");

struct ScanParameters {                     // scan.cuh
    GPUTENSOR_POINTER(const char) input;
    GPUTENSOR_POINTER(char) out;
    GPUTENSOR_POINTER(char) totals;         // of each chunk; null: there is one chunk
    int64 outer, length, inner;
    int64 chunks, chunk;                    // how many, and elements of each
};
static_assert(sizeof(ScanParameters) == 64, "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

// The parameters of the programs that write tables of addresses (strided.cuh, listed.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

enum { LISTED_PRODUCTS = 96 };    // products of one launch of listed.cuh, at most

struct StridedParameters {
    uint64 a, b, d;
    GPUTENSOR_POINTER(uint64) table;
    int64 total;
    int64 ndim;
    int64 count[17];                    // the fastest dimension first
    int64 step_a[17], step_b[17], step_d[17];   // bytes
};
struct ListedParameters {
    GPUTENSOR_POINTER(uint64) table;
    int64 total, first, count;
    uint64 addresses[3 * LISTED_PRODUCTS];      // a, b and d of each product
};
static_assert(sizeof(StridedParameters) == 48 + 4 * 17 * 8,
              "both sides of a launch lay the parameters out alike");
static_assert(sizeof(ListedParameters) == 32 + 3 * 96 * 8,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

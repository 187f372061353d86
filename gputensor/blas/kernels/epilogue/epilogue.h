// The parameters of the end of a product (epilogue.cuh). A kernel of RANK axes reads a prefix of
// the struct that the host has.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

#ifdef GPUTENSOR_KERNEL
enum { EPILOGUE_AXES = RANK };
#else
enum { EPILOGUE_AXES = 16 };
#endif

struct EpilogueAxis {
    uint64 size;
    int64 strides[7];
};
struct EpilogueParameters {
    // source, scale, scale2, bias, residual, result_scale
    GPUTENSOR_POINTER(const char) inputs[6];
    GPUTENSOR_POINTER(char) out;
    uint64 units;
    EpilogueAxis axes[EPILOGUE_AXES];       // innermost first
};
static_assert(sizeof(EpilogueParameters) == 64 + 64 * EPILOGUE_AXES,
              "both sides of a launch lay the parameters out alike");

#ifndef GPUTENSOR_KERNEL
// The length of the prefix that a kernel of `rank` axes reads.
inline unsigned epilogue_nbytes(int rank) { return 64 + 64 * rank; }
#endif

}  // namespace gputensor

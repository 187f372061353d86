// The parameters of the program that fills operands for tuning (random.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct RandomParameters {
    uint64 ptr;
    uint64 count;       // 8-byte words
    uint64 keep;        // bits of a word that are random
    uint64 set;         // bits that are 1: the exponent of 0.5
    uint64 seed;
};
static_assert(sizeof(RandomParameters) == 40,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

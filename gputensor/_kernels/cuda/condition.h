// The parameters of the kernel that sets conditions of a graph (condition.cuh).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

// The value that a condition gets: none (there is no condition), the flag, its opposite, or false.
enum ConditionRule { CONDITION_NONE = 0, CONDITION_IS = 1, CONDITION_IS_NOT = 2, CONDITION_OFF = 3 };

struct ConditionParameters {
    GPUTENSOR_POINTER(const bool) flag;
    uint64 conditions[3];
    uint32 rules[3];
    uint32 padding;
};
static_assert(sizeof(ConditionParameters) == 48,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

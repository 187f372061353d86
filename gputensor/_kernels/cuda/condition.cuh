// Sets conditions of the graph that the kernel is a node of, from a flag in memory.
#pragma once

#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/condition.h"

typedef ConditionParameters Parameters;

// A function of the driver: resolved when the module is loaded, without another library.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long condition, unsigned value);

extern "C" __global__ void kernel(const Parameters p) {
    const bool flag = *reinterpret_cast<const bool*>(p.flag);
    for (int i = 0; i < 3; i++)
        if (p.rules[i] != CONDITION_NONE)
            cudaGraphSetConditional(p.conditions[i], p.rules[i] == CONDITION_IS       ? flag
                                                     : p.rules[i] == CONDITION_IS_NOT ? !flag
                                                                                      : false);
}

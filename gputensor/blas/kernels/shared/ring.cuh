// A place in a ring of stages in shared memory, and the phase of the stage's barriers.
//
// Defined before this text: STAGES.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

struct Ring {
    int stage;
    uint32 phase;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// Starting early: a kernel's blocks may come to the device while the work before it still runs.
//
// A kernel that includes this text has to call `start_early` before anything else: it waits until all
// earlier work has ended and its writes are seen, and then lets the next kernel of the stream come.
// Every thread that reads or writes memory calls it, and every kernel of a chain does, so that the wait
// for the one before is a wait for all. The driver knows such a kernel by the symbol (cuda/device.h).
#pragma once

#include "gputensor/_kernels/cuda/words.h"

#if __CUDA_ARCH__ >= 900
extern "C" __device__ int gputensor_starts_early = 1;
#endif

// In this order: next kernels that come earlier take room without gain (an H200, decoding by int4).
__device__ __forceinline__ void start_early() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

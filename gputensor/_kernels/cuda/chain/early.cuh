// Starting early: a kernel's blocks may come to the device while the work before it still runs.
//
// A kernel that includes this text has to call `start_early` as its first statement: it waits until
// all earlier work has ended and its writes are visible, and then lets the next kernel of the stream
// come to the device. A kernel may first prepare barriers and fetch its tensor maps; a product may
// read what no kernel writes, and fetch its weights into the second cache. Every thread that reads
// or writes memory calls it, and so does every kernel of a chain, so that the wait for the kernel
// before is a wait for all earlier ones. The library recognises such a kernel by the name of the
// symbol below in its image.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

#if __CUDA_ARCH__ >= 900
extern "C" __device__ int gputensor_starts_early = 1;
#endif

// In this order: next kernels that came earlier took room on the device and brought no gain (H200,
// decoding with int4 weights).
__device__ __forceinline__ void start_early() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The same for a short kernel with small blocks: the next kernel may come to the device before
// earlier work has ended, so that its reads of memory which no kernel writes overlap with this one.
__device__ __forceinline__ void start_together() {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

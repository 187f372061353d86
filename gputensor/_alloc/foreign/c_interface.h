// The allocator for callers that are not Python code: C symbols of this extension's shared object.
//
//   void* gputensor_malloc(size_t size, int device, void* stream);
//   void  gputensor_free(void* ptr, size_t size, int device, void* stream);
//   void* gputensor_malloc_or_throw(size_t size, int device, void* stream);
//   int   gputensor_record_stream(void* ptr, void* stream);
//
// `device` is a CUDA ordinal, or -1 for the embedded host device; `stream` is a CUstream or
// cudaStream_t, NULL the default stream. No call needs the GIL and all may be made from any thread.
// When there is no memory, gputensor_malloc gives NULL, as C programs expect, and
// gputensor_malloc_or_throw throws std::bad_alloc, as C++ callers such as PyTorch's
// CUDAPluggableAllocator expect, which do not check the pointer. A size of 0 gives NULL.
// gputensor_free accepts NULL; when `stream` is not the stream of the allocation, the memory is
// reused only after the work queued on it so far.
//
// The shared object can be loaded into a process that runs Python, and serves once gputensor.memory
// is imported there. Before that, allocations fail, gputensor_free does nothing, and
// gputensor_record_stream gives CUDA_ERROR_NOT_INITIALIZED.
#pragma once
#include <new>
#include <stddef.h>

typedef void* (*gt_malloc_function)(size_t, int, void*);
typedef void (*gt_free_function)(void*, size_t, int, void*);
typedef int (*gt_record_function)(void*, void*);

// Set when the extension is imported.
static gt_malloc_function gt_malloc_entry;
static gt_free_function gt_free_entry;
static gt_record_function gt_record_entry;

static const int GT_NOT_INITIALIZED = 3;  // CUDA_ERROR_NOT_INITIALIZED

#define GT_PUBLIC extern "C" __attribute__((visibility("default")))

GT_PUBLIC void* gputensor_malloc(size_t size, int device, void* stream) {
    return gt_malloc_entry ? gt_malloc_entry(size, device, stream) : nullptr;
}

GT_PUBLIC void* gputensor_malloc_or_throw(size_t size, int device, void* stream) {
    void* ptr = gputensor_malloc(size, device, stream);
    if (!ptr && size > 0) { throw std::bad_alloc(); }
    return ptr;
}

GT_PUBLIC void gputensor_free(void* ptr, size_t size, int device, void* stream) {
    if (gt_free_entry) gt_free_entry(ptr, size, device, stream);
}

GT_PUBLIC int gputensor_record_stream(void* ptr, void* stream) {
    return gt_record_entry ? gt_record_entry(ptr, stream) : GT_NOT_INITIALIZED;
}

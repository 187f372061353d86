// torch's caching allocator behind C functions.
#include <c10/cuda/CUDACachingAllocator.h>

extern "C" void* peer_malloc(size_t nbytes, int, void* stream) {
    return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(nbytes, (cudaStream_t)stream);
}

extern "C" void peer_free(void* ptr, size_t, int, void*) {
    c10::cuda::CUDACachingAllocator::raw_delete(ptr);
}

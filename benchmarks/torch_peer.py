"""torch's caching allocator as C function pointers, for benchmarks that run it beside ours.

Its options are those of ``PYTORCH_CUDA_ALLOC_CONF``, which must be set before torch is imported.
"""

SOURCE = """
#include <c10/cuda/CUDACachingAllocator.h>
#include <cstdint>
static void* peer_malloc(size_t n, int, void* stream) {
    return c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(n, (cudaStream_t)stream);
}
static void peer_free(void* p, size_t, int, void*) {
    c10::cuda::CUDACachingAllocator::raw_delete(p);
}
int64_t malloc_address() { return (int64_t)&peer_malloc; }
int64_t free_address() { return (int64_t)&peer_free; }
"""


def torch_functions():
    """Return the addresses of torch's malloc and free, or None without torch or a GPU."""
    try:
        import torch
        from torch.utils.cpp_extension import load_inline
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.empty(1, device="cuda")
    module = load_inline(
        "gputensor_torch_peer",
        cpp_sources=SOURCE,
        functions=["malloc_address", "free_address"],
        with_cuda=True,
    )
    return [module.malloc_address(), module.free_address()]

"""torch's caching allocator as C function pointers, for benchmarks that run it beside ours.

Its options are those of ``PYTORCH_CUDA_ALLOC_CONF``, which must be set before torch is imported.
"""

import ctypes
from pathlib import Path

from native.build import load


def torch_functions():
    """Return the addresses of torch's malloc and free, or None without torch or a GPU."""
    try:
        import torch
        from torch.utils.cpp_extension import include_paths
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.empty(1, device="cuda")
    flags = [f"-I{path}" for path in include_paths(device_type="cuda")]
    flags += [f"-L{Path(torch.__file__).parent / 'lib'}", "-lc10_cuda", "-lc10"]
    library = load("torch_peer", *flags)
    return [
        ctypes.cast(function, ctypes.c_void_p).value
        for function in (library.peer_malloc, library.peer_free)
    ]

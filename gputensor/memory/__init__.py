"""The public memory functions: amounts in use, events, and the allocator's settings.

Names and meanings are those of ``torch.cuda.memory`` where PyTorch has the function; those that are
private there (``_record_memory_history``, ``_snapshot``, ``_dump_snapshot``) are public here. A
`device` is None for the current device, or what names one: ``"cuda:1"``, ``"host"``, a Device, a
number. Amounts are bytes, as ints. This package holds no lock and makes no decision: the
allocator is in ``_alloc``.
"""

from gputensor.memory.amounts import (
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
)
from gputensor.memory.control import (
    c_library,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    empty_cache,
    empty_host_cache,
    get_allocator_backend,
    get_allocator_settings,
    get_per_process_memory_fraction,
    pinned_buffer,
    record_stream,
    register_pinned,
    set_allocator_settings,
    set_per_process_memory_fraction,
)
from gputensor.memory.events import (
    attach_allocator_tracker,
    attach_out_of_memory_observer,
    detach_allocator_tracker,
    detach_out_of_memory_observer,
    dump_snapshot,
    get_memory_metadata,
    memory_snapshot,
    record_memory_history,
    set_memory_metadata,
    snapshot,
    top_call_sites,
    where_allocated,
)
from gputensor.memory.pools import (
    CUDAPluggableAllocator,
    MemPool,
    use_mem_pool,
)

__all__ = [
    "CUDAPluggableAllocator",
    "MemPool",
    "attach_allocator_tracker",
    "attach_out_of_memory_observer",
    "c_library",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "detach_allocator_tracker",
    "detach_out_of_memory_observer",
    "dump_snapshot",
    "empty_cache",
    "empty_host_cache",
    "get_allocator_backend",
    "get_allocator_settings",
    "get_memory_metadata",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "pinned_buffer",
    "record_memory_history",
    "record_stream",
    "register_pinned",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_allocator_settings",
    "set_memory_metadata",
    "set_per_process_memory_fraction",
    "snapshot",
    "top_call_sites",
    "use_mem_pool",
    "where_allocated",
]


def __dir__():
    return sorted(__all__)

"""gt.memory has every name of torch.cuda.memory, or a reason why not.

PYTORCH is the public list of PyTorch 2.11 (its documentation's page on CUDA memory management and
the module's __all__), each with its parameters.
"""

import inspect

import pytest

from gputensor import memory
from gputensor._driver import registry

MIB = 1 << 20
PYTORCH = {
    "CUDAPluggableAllocator": ["path_to_so_file", "alloc_fn_name", "free_fn_name"],
    "MemPool": ["allocator", "use_on_oom", "no_split"],
    "caching_allocator_alloc": ["size", "device", "stream"],
    "caching_allocator_delete": ["mem_ptr"],
    "caching_allocator_enable": ["value"],
    "change_current_allocator": ["allocator"],
    "empty_cache": [],
    "get_allocator_backend": [],
    "get_per_process_memory_fraction": ["device"],
    "host_memory_stats": [],
    "host_memory_stats_as_nested_dict": [],
    "list_gpu_processes": ["device"],
    "max_memory_allocated": ["device"],
    "max_memory_cached": ["device"],
    "max_memory_reserved": ["device"],
    "mem_get_info": ["device"],
    "memory_allocated": ["device"],
    "memory_cached": ["device"],
    "memory_reserved": ["device"],
    "memory_snapshot": ["mempool_id", "include_traces"],
    "memory_stats": ["device"],
    "memory_stats_as_nested_dict": ["device"],
    "memory_summary": ["device", "abbreviated"],
    "reset_accumulated_host_memory_stats": [],
    "reset_accumulated_memory_stats": ["device"],
    "reset_max_memory_allocated": ["device"],
    "reset_max_memory_cached": ["device"],
    "reset_peak_host_memory_stats": [],
    "reset_peak_memory_stats": ["device"],
    "set_per_process_memory_fraction": ["fraction", "device"],
    "use_mem_pool": ["pool", "device"],
}
# Private in PyTorch and widely used: public here, without the underscore.
PRIVATE_IN_PYTORCH = {
    "_record_memory_history": ["enabled", "context", "stacks", "max_entries"],
    "_snapshot": ["device"],
    "_dump_snapshot": [],
    "_set_allocator_settings": [],
}
ABSENT = {
    "change_current_allocator": "there is one allocator; its back end is chosen by the option "
    "`backend`, its caching by caching_allocator_enable()",
}
# Parameters that are absent, and why.
ABSENT_PARAMETERS = {
    # A pool belongs to a device; the two options are keyword-only.
}


@pytest.mark.parametrize("name", sorted(set(PYTORCH) - set(ABSENT)))
def test_a_public_name_of_pytorch_is_here_with_its_parameters(name):
    found = getattr(memory, name)
    assert name in memory.__all__
    parameters = list(inspect.signature(found).parameters)
    wanted = [part for part in PYTORCH[name] if (name, part) not in ABSENT_PARAMETERS]
    if name == "MemPool":
        assert set(wanted) <= set(parameters)
    else:
        assert parameters[: len(wanted)] == wanted


@pytest.mark.parametrize("name", PRIVATE_IN_PYTORCH)
def test_widely_used_private_names_of_pytorch_are_public_here(name):
    found = getattr(memory, name.lstrip("_"))
    parameters = list(inspect.signature(found).parameters)
    wanted = PRIVATE_IN_PYTORCH[name]
    assert parameters[: len(wanted)] == wanted


def test_a_name_that_is_absent_has_a_reason_and_is_absent():
    assert set(ABSENT) <= set(PYTORCH)
    for name, reason in ABSENT.items():
        assert not hasattr(memory, name) and len(reason) > 30
    assert all(part in PYTORCH[name] for name, part in ABSENT_PARAMETERS)


def test_every_public_name_is_documented_and_exported_once():
    assert len(set(memory.__all__)) == len(memory.__all__)
    for name in memory.__all__:
        assert inspect.getdoc(getattr(memory, name)), name


def test_values_have_pytorchs_types():
    """Scripts written for PyTorch rely on ints, sorted flat dicts and pairs of amounts."""
    device = registry.open_host(capacity=64 * MIB)
    ptr = memory.caching_allocator_alloc(3 * MIB, device)
    try:
        for name in ("memory_allocated", "max_memory_allocated", "memory_reserved",
                     "max_memory_reserved"):  # fmt: skip
            assert type(getattr(memory, name)(device)) is int
        free, total = memory.mem_get_info(device)
        assert free + memory.memory_reserved(device) == total == 64 * MIB
        for stats in (memory.memory_stats(device), memory.host_memory_stats()):
            assert list(stats) == sorted(stats)
            assert all(type(value) is int for value in stats.values())
        assert isinstance(memory.memory_snapshot(device=device), list)
        assert memory.get_allocator_backend() == "native"
        assert type(memory.get_per_process_memory_fraction(device)) is float
        assert "allocated" in memory.memory_summary(device)
    finally:
        memory.caching_allocator_delete(ptr)
        registry.close_host(device)

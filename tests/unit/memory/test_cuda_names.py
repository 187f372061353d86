"""CuPy's names of the device: pools as allocators, graphs with a launch, products by gemm."""

import re
import threading
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt
from gputensor import cuda
from gputensor._driver import registry
from gputensor.cublas import gemm

# The names of PyTorch's modules and classes, apart from those of element types (FloatTensor, ...).
TORCH = {
    "": """
        CUDAGraph CudaError DeferredCudaCallError Event ExternalStream OutOfMemoryError Stream
        AcceleratorError StreamContext GreenContext amp caching_allocator_alloc cudart nvtx nccl
        caching_allocator_delete caching_allocator_enable caching_allocator_disabled comm gds
        can_device_access_peer check_error cudaStatus current_blas_handle current_solver_handle
        current_device current_stream default_generators default_stream device device_count
        device_memory_used device_of empty_cache get_allocator_backend CUDAPluggableAllocator
        change_current_allocator get_arch_list get_device_capability get_device_name sparse
        get_device_properties get_gencode_flags get_per_process_memory_fraction get_rng_state
        get_rng_state_all get_stream_from_external get_sync_debug_mode graph graph_pool_handle
        graphs has_half has_magma host_memory_stats host_memory_stats_as_nested_dict init
        initial_seed ipc_collect is_available is_bf16_supported is_current_stream_capturing
        is_initialized is_tf32_supported jiterator list_gpu_processes make_graphed_callables
        manual_seed manual_seed_all max_memory_allocated max_memory_cached max_memory_reserved
        mem_get_info memory memory_allocated memory_cached memory_reserved memory_snapshot
        memory_stats memory_stats_as_nested_dict memory_summary memory_usage MemPool profiler
        use_mem_pool temperature power_draw clock_rate random reset_accumulated_host_memory_stats
        reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached seed
        reset_peak_host_memory_stats reset_peak_memory_stats seed_all set_device set_stream
        set_per_process_memory_fraction set_rng_state set_rng_state_all set_sync_debug_mode stream
        streams synchronize tunable utilization green_contexts""",
    "memory": """
        empty_cache memory_stats memory_snapshot memory_summary _snapshot _dump_snapshot
        _record_memory_history _set_memory_metadata _get_memory_metadata _annotate_memory
        _memory_metadata_supported _annotate_tensor _allocation_traceback _save_segment_usage
        _save_memory_usage _set_allocator_settings _get_current_allocator _use_uvm _host_allocator
        change_current_allocator CUDAPluggableAllocator MemPool use_mem_pool list_gpu_processes""",
    "graphs": """
        is_current_stream_capturing graph_pool_handle CUDAGraph graph make_graphed_callables
        export_dot export_graph_data register_graph_instantiate_hook run_graph_instantiate_hooks
        register_graph_destroy_hook run_graph_destroy_hooks graph_destroy_hooks_active""",
    "CUDAGraph": """
        capture_begin capture_end capture_end_pre capture_end_post instantiate replay reset pool
        pools enable_debug_mode debug_dump raw_cuda_graph raw_cuda_graph_exec get_graph_data
        register_capture_end_hook register_post_instantiate_hook register_replay_start_hook
        register_replay_end_hook register_destroy_callback retain_object begin_capture_to_if_node
        get_currently_capturing_graph""",
    "Stream": """
        wait_event wait_stream record_event query synchronize cuda_stream device priority
        is_capturing _as_parameter_ priority_range stream_id native_handle device_index
        device_type __cuda_stream__ __enter__ __exit__""",
    "Event": """
        from_ipc_handle record wait query elapsed_time synchronize ipc_handle _as_parameter_
        cuda_event device event_id""",
    "tunable": """
        enable is_enabled tuning_enable tuning_is_enabled record_untuned_enable write_file_on_exit
        record_untuned_is_enabled set_max_tuning_duration get_max_tuning_duration write_file
        set_max_tuning_iterations get_max_tuning_iterations set_filename get_filename read_file
        get_results get_validators tune_gemm_in_file mgpu_tune_gemm_in_file
        set_rotating_buffer_size get_rotating_buffer_size set_numerical_check_tolerances""",
}


@pytest.mark.parametrize("part", TORCH)
def test_each_name_of_torch_is_here_or_listed_with_a_reason(part):
    text = (Path(__file__).parents[3] / "docs/streams.md").read_text()
    tables = text.split("## PyTorch names that are not here")[1].split("## On the host")[0]
    listed = {name.split(".")[-1] for name in re.findall(r"`([\w.*]+)`", tables)}
    where = getattr(cuda, part) if part else cuda
    absent = [name for name in TORCH[part].split() if not hasattr(where, name)]
    missing = [name for name in absent if not any(fnmatch(name, known) for known in listed)]
    assert not missing


def test_a_pool_counts_its_allocations(device):
    with gt.Device(device):
        pool = cuda.MemoryPool()
        assert (pool.used_bytes(), pool.total_bytes(), pool.n_free_blocks()) == (0, 0, 0)
        memory = [pool.malloc(n) for n in (1000, 3000)]
        assert pool.used_bytes() == 1024 + 3072 and memory[0].ptr != memory[1].ptr
        assert int(memory[1]) == memory[1].ptr and memory[1].size == 3000
        assert pool.total_bytes() == pool.used_bytes() + pool.free_bytes()
        del memory[:]
        assert pool.used_bytes() == 0 and pool.n_free_blocks() > 0
        assert pool.malloc(0).ptr == 0


def test_tensors_come_from_the_pool_that_is_set(device):
    with gt.Device(device):
        pool = cuda.MemoryPool()
        cuda.set_allocator(pool.malloc)
        try:
            assert cuda.get_allocator() == pool.malloc
            x = gt.ones(1000)
            assert pool.used_bytes() == 4096
            seen = []
            one = threading.Thread(target=lambda: seen.append(cuda.get_allocator()))
            one.start()
            one.join()
            assert seen == [None]
            other = cuda.MemoryPool()
            cuda.set_allocator(other.malloc)
            y = gt.ones(1000)
            assert (pool.used_bytes(), other.used_bytes()) == (4096, 4096)
        finally:
            cuda.set_allocator(None)
        assert cuda.get_allocator() is None
        z = gt.ones(1000)
        assert (pool.used_bytes(), other.used_bytes()) == (4096, 4096)
        assert (x + y + z).sum().item() == 3000


def test_running_out_of_memory_is_torchs_runtime_error(device):
    with pytest.raises(RuntimeError, match="out of memory") as caught, gt.Device(device):
        gt.empty(1 << 50, dtype=gt.int8)
    assert isinstance(caught.value, (cuda.OutOfMemoryError, MemoryError))
    assert type(caught.value) is cuda.OutOfMemoryError is gt.OutOfMemoryError


def test_torchs_names_of_the_default_generator(device):
    with gt.Device(device):
        cuda.manual_seed_all(5)
        state = cuda.get_rng_state()
        first = gt.random.rand(4).tolist()
        assert cuda.initial_seed() == cuda.initial_seed(device) == 5
        cuda.set_rng_state(state)
        assert gt.random.rand(4).tolist() == first
    cuda.seed_all()


def test_a_seed_is_for_devices_that_are_open():
    number = registry.open_host(capacity=16 << 20)
    gt.random.rand(3, device=number)
    registry.close_host(number)
    cuda.manual_seed(5)
    assert cuda.initial_seed("host") == 5
    cuda.seed_all()


def test_copies_take_torchs_arguments(device):
    with gt.Device(device):
        x, y = gt.ones(3), gt.zeros(3)
        assert x.to("cpu", gt.float64, non_blocking=True).dtype == gt.float64
        assert x.cpu(non_blocking=True).get_device() == x.get_device() == -1
        assert y.copy_(x, True) is y and y.tolist() == [1.0] * 3


def test_an_allocator_that_is_not_a_pool_is_refused():
    for wrong in (len, 3, cuda.MemoryPool, cuda.MemoryPool().free_all_blocks):
        with pytest.raises(TypeError, match="allocator: got .*; expected the malloc of a Memory"):
            cuda.set_allocator(wrong)
    assert cuda.get_allocator() is None


def test_a_graph_launches_on_a_stream(device):
    with gt.Device(device):
        x, stream = gt.zeros(5), gt.Stream()
        graph = cuda.Graph()
        with gt.graphs.graph(graph):
            x += 1
        graph.launch()
        graph.launch(stream)
        assert x.tolist() == [2] * 5
        assert cuda.get_device_id() == gt.Device(device).number
        assert cuda.get_current_stream() == gt.current_stream()


def test_every_name_of_the_module_exists():
    assert dir(cuda) == sorted(cuda.__all__)
    assert all(getattr(gt.cuda, name) is not None for name in dir(cuda))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_gemm(device, rng, dtype):
    def made(*shape):
        values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        return (values if dtype[0] == "c" else values.real).astype(dtype)

    forms = {"N": lambda x: x, "T": lambda x: x.T, "H": lambda x: x.conj().T}
    for transa, left in forms.items():
        for transb, right in forms.items():
            a = made(3, 4) if transa == "N" else made(4, 3)
            b = made(4, 5) if transb == "N" else made(5, 4)
            c = made(3, 5)
            x, y, out = (gt.asarray(one, device=device) for one in (a, b, c))
            want = left(a) @ right(b)
            np.testing.assert_allclose(gemm(transa, transb, x, y).numpy(), want, rtol=1e-4,
                                       atol=1e-4)  # fmt: skip
            twice = gemm("NTH".index(transa), "NTH".index(transb), x, y, alpha=2.0)
            np.testing.assert_allclose(twice.numpy(), 2 * want, rtol=1e-4, atol=1e-4)
            assert gemm(transa, transb, x, y, out, alpha=0.5, beta=2.0) is out
            np.testing.assert_allclose(out.numpy(), 0.5 * want + 2 * c, rtol=1e-4, atol=1e-4)


def test_wrong_arguments_of_gemm_are_named(device):
    x = gt.ones((2, 3), device=device)
    for call, error, message in (
        (lambda: gemm("X", "N", x, x), ValueError, "gemm: transa: got 'X'"),
        (lambda: gemm("N", True, x, x), ValueError, "gemm: transb: got True"),
        (lambda: gemm("N", "N", x, x), ValueError, r"gemm: a, b: got shapes \(2, 3\) and \(2, 3\)"),
        (lambda: gemm("N", "N", x, 3), TypeError, "gemm: b: got int"),
        (lambda: gemm("N", "N", x[0], x), TypeError, "gemm: a: got 1 dimensions"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_the_module_of_arrays(device):
    x = gt.ones(2, device=device)
    assert gt.get_array_module(np.ones(2), x) is gt
    assert gt.get_array_module(np.ones(2), 3) is np


def test_keywords_of_torchs_functions_of_random_numbers(device):
    with gt.Device(device):
        cuda.manual_seed(seed=5)
        state = cuda.get_rng_state(device=device)
        first = gt.rand(9).tolist()
        cuda.manual_seed_all(seed=6)
        cuda.set_rng_state(new_state=state, device=device)
        assert gt.rand(9).tolist() == first
        gt.manual_seed(-3)
        assert cuda.initial_seed() == 2**64 - 3
        for seed in (-(2**63) - 1, 2**64):
            with pytest.raises(ValueError, match="seed"):
                gt.manual_seed(seed)
        cuda.manual_seed(5)


def test_keywords_of_torchs_tunable():
    tunable = cuda.tunable
    switches = {
        tunable.enable: tunable.is_enabled,
        tunable.tuning_enable: tunable.tuning_is_enabled,
        tunable.record_untuned_enable: tunable.record_untuned_is_enabled,
    }
    for switch, is_on in switches.items():
        before = is_on()
        switch(val=not before)
        assert is_on() is not before
        switch(before)
    numbers = {
        (tunable.set_max_tuning_duration, "duration"): tunable.get_max_tuning_duration,
        (tunable.set_max_tuning_iterations, "iterations"): tunable.get_max_tuning_iterations,
        (tunable.set_rotating_buffer_size, "buffer_size"): tunable.get_rotating_buffer_size,
    }
    for (change, name), value in numbers.items():
        before = value()
        change(**{name: before + 7})
        assert value() == before + 7
        change(before)


def test_bfloat16_is_a_fact_of_the_hardware():
    assert cuda.is_bf16_supported("host", including_emulation=False)

"""What a forked child sees and does, and that it does not affect its parent.

Each case is a program of its own, because a test process has threads and state that a fork copies.
In it, `child(function)` forks, runs the function in the child and asserts that it succeeds.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow
PRELUDE = """
import gc, os, signal, sys, threading, time, traceback, warnings
import numpy as np
import gputensor as gt
from gputensor import graphs, memory
from gputensor._alloc import check as checker
from gputensor._driver import registry
from gputensor.errors import DeviceError
warnings.simplefilter("ignore", DeprecationWarning)     # newer Pythons warn of forks with threads

def fork(function, end=os._exit, seconds=60):
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        try:
            function()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        end(0)
    return pid

def child(function, **how):
    _, status = os.waitpid(fork(function, **how), 0)
    assert status == 0, f"the child ended with {status}"

def refused(function, what):
    try:
        function()
    except DeviceError as error:
        assert what in str(error), error
    else:
        raise AssertionError("a use of the parent's was not refused")

def whole(device=-1):
    assert checker.check(device) == [], checker.check(device)
"""


def run(program, *arguments, **settings):
    environment = {**os.environ, "GPUTENSOR_DEVICE": "host", "PYTHONPATH": str(ROOT), **settings}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program), *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr


SIZES = "for n in (1, 300, 70_000, 3_000_000):"


def test_child_has_memory_of_its_own_and_parent_keeps_its_values():
    run(f"""
        expected = {{}}
        {SIZES}
            expected[n] = np.random.default_rng().random(n).astype(np.float32)
        tensors = {{n: gt.asarray(values) for n, values in expected.items()}}

        def work():
            for n, values in expected.items():
                refused(lambda: tensors[n].fill(-1), "made before this process was forked")
                refused(tensors[n].numpy, "host of this tensor is closed")
                mine = gt.full(n, -1.0)
                assert float(gt.sum(mine)) == -n
                assert np.array_equal((gt.asarray(values) + 1).numpy(), values + 1)
            whole()

        child(work)
        for n, values in expected.items():
            assert np.array_equal(tensors[n].numpy(), values)
            assert float(gt.sum(gt.full(n, 2.0))) == 2 * n
        whole()
    """)


def test_every_use_of_a_tensor_of_the_parent_is_refused():
    run("""
        from tests.unit.tensor.test_closed_device import USES, tensors
        made = tensors(-1)
        shared = gt.asarray(np.ones(5), copy=False)

        def work():
            for name, use in USES.items():
                try:
                    use(*made)
                except DeviceError as error:
                    assert "host of this tensor is closed: it was made before" in str(error)
                else:
                    assert name.startswith("another device")      # it is there already
            refused(lambda: shared + 1, "made before this process was forked")
            assert made[0].shape == (3, 4) and made[0][1:].device == "host"

        child(work)
        assert np.array_equal((made[0] + 1).numpy(), np.arange(12).reshape(3, 4) + 1.0)
    """)


def test_freeing_in_the_child_takes_nothing_from_the_parent():
    run("""
        expected = [np.random.default_rng().random(n) for n in (10, 70_000, 5_000_000)]
        tensors = [gt.asarray(values) for values in expected]
        cycle = [tensors[0]]
        cycle.append(cycle)

        def work():
            global cycle
            tensors.clear()
            cycle = None
            gc.collect()
            memory.empty_cache()
            gt.full(5_000_000, 7.0)
            memory.empty_cache()

        # Ends like a program: with atexit functions, and destructors of what the module holds.
        child(work, end=sys.exit)
        for tensor, values in zip(tensors, expected):
            assert np.array_equal(tensor.numpy(), values)
        whole()
    """)


@pytest.mark.parametrize("end", ["os._exit", "sys.exit"])
def test_statistics_of_parent_and_child_are_their_own(end):
    run(f"""
        kept = gt.ones(100_000)
        before = memory.memory_stats()

        def work():
            assert memory.memory_allocated() == 0 and memory.memory_reserved() == 0
            mine = gt.ones(5)
            assert memory.memory_allocated() == 512
            assert memory.memory_stats()["allocation.all.allocated"] == 1
            del mine
            assert memory.memory_allocated() == 0

        child(work, end={end})
        assert memory.memory_stats() == before
    """)


def test_pool_of_forked_workers_computes_what_one_process_does():
    run("""
        import multiprocessing
        base = gt.ones(1)

        def job(i):
            return float(gt.sum(gt.full(1000, float(i)))), float(gt.matmul(
                gt.full((5, 7), float(i)), gt.ones((7, 3)))[4, 2])

        with multiprocessing.get_context("fork").Pool(4) as pool:
            results = pool.map(job, range(400))
        assert results == [(1000.0 * i, 7.0 * i) for i in range(400)]
        assert float(base[0]) == 1
    """)


def test_arrays_of_other_libraries_are_copies_in_the_child():
    run("""
        small, large = gt.full(3, 2.0), gt.full(3_000_000, 2.0)
        views = [np.from_dlpack(small), np.from_dlpack(large)]

        def work():
            for view in views:
                assert (view == 2).all()
            shared = np.from_dlpack(gt.ones(4))
            assert (shared == 1).all()

        def write():
            for view in views:
                view.flags.writeable and view.__setitem__(Ellipsis, -1)

        child(work)
        child(write)
        assert (small.numpy() == 2).all() and (large.numpy() == 2).all()
    """)


@pytest.mark.parametrize("seed", [None, 3])
def test_streams_events_and_graphs_of_the_parent_are_refused_in_the_child(seed):
    run(f"""
        seed = {seed}
        device = -1 if seed is None else registry.open_host(seed=seed)
        stream, event = gt.Stream(device), gt.Event()
        with gt.stream(stream):
            x = gt.ones(1000, device=device)
            event.record(stream)
            graph = graphs.CUDAGraph()
            with graphs.graph(graph):
                y = x + 1

        def work():
            refused(stream.synchronize, "of this stream is closed: it was made before")
            refused(event.query, "of this event is closed: it was made before")
            refused(graph.replay, "of this graph is closed: it was made before")
            refused(lambda: gt.set_stream(stream), "of this stream is closed")
            other = gt.Stream(device)
            assert other.cuda_stream not in (0, stream.cuda_stream)
            with gt.stream(other):
                z = gt.full(1000, 3.0, device=device)
            assert float(gt.sum(z)) == 3000
            assert gt.current_stream(device) == gt.default_stream(device)
            again = graphs.CUDAGraph()
            with gt.Device(device), graphs.graph(again):
                w = z + 1
            again.replay()
            gt.synchronize(device)
            assert float(w[5]) == 4

        child(work, end=sys.exit)
        graph.replay()
        gt.synchronize(device)
        assert float(y[7]) == 2 and event.query()
    """)


def test_work_that_waits_at_the_fork_is_done_by_the_parent_alone(tmp_path):
    run(
        """
        device = registry.open_host(seed=5)
        side = gt.Stream(device)
        values = np.random.default_rng().random(1000)
        x = gt.asarray(values, device=device)
        with gt.stream(side):
            results = [x + i for i in range(50)]

        def work():
            registry.host_run_all(device)
            assert registry.leaks(device)["used_bytes"] == 0
            y = gt.full(1000, 2.0, device=device)
            with gt.stream(gt.Stream(device)):
                assert float(gt.sum(y * y)) == 4000
            whole(device)

        child(work)
        for i, result in enumerate(results):
            assert np.array_equal(result.numpy(), values + i)
        whole(device)
    """
    )


def test_child_of_a_child():
    run("""
        a = gt.full(100_000, 1.0)

        def grandchild():
            refused(b.numpy, "before this process was forked")
            assert float(gt.sum(gt.full(100_000, 3.0))) == 300_000

        def work():
            global b
            b = gt.full(100_000, 2.0)
            child(grandchild)
            assert float(gt.sum(b)) == 200_000

        child(work)
        assert float(gt.sum(a)) == 100_000
    """)


def test_errors_of_a_device_closed_in_the_child_do_not_mention_the_fork():
    run("""
        old = registry.open_host(capacity=1 << 26)
        kept = gt.ones(3, device=old)

        def work():
            refused(kept.numpy, "before this process was forked")
            mine = gt.ones(3, device=old)
            registry.close_host(old)
            try:
                mine.numpy()
            except DeviceError as error:
                assert "fork" not in str(error)
            number = registry.open_host(capacity=1 << 26)
            assert number == old and float(gt.sum(gt.ones(3, device=number))) == 3

        child(work)
        assert float(gt.sum(kept)) == 3
    """)


def test_memory_by_address_pools_and_pinned_memory_of_the_parent_are_not_the_childs():
    run("""
        from gputensor._alloc.pinned import PinnedMemory
        address = memory.caching_allocator_alloc(1 << 20)
        pool = memory.MemPool(no_split=True)
        with memory.use_mem_pool(pool):
            inside = gt.ones(1000)
        pinned = PinnedMemory(-1, 1 << 20)
        memoryview(pinned)[:5] = b"hello"

        def work():
            global pinned, pool
            try:
                memory.caching_allocator_delete(address)
            except ValueError:
                pass
            else:
                raise AssertionError("the parent's address was taken")
            with memory.use_mem_pool(pool):
                mine = gt.ones(1000)
            assert pool.use_count() == 1 and pool.snapshot()
            assert bytes(memoryview(pinned)[:5]) == b"hello"
            memoryview(pinned)[:5] = b"child"
            other = PinnedMemory(-1, 1 << 20)
            pinned = pool = mine = None
            gc.collect()
            whole()

        child(work, end=sys.exit)
        assert bytes(memoryview(pinned)[:5]) == b"hello"
        memory.caching_allocator_delete(address)
        assert float(gt.sum(inside)) == 1000
        whole()
    """)


# What the parent's threads do at the moment of the fork, without the GIL where possible.
BUSY = {
    "tensors": """
        def busy():
            i = 0
            while not over:
                i += 1
                x = gt.full(1 + 7919 * i % 300_000, float(i))
                with gt.stream(streams[i % 4]):
                    assert float(gt.max(x + 1)) == i + 1
                if i % 9 == 0:
                    memory.empty_cache()
    """,
    "addresses without the GIL": """
        import ctypes
        library = ctypes.CDLL(memory.c_library())
        library.gputensor_malloc.restype = ctypes.c_void_p
        library.gputensor_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        library.gputensor_free.argtypes = [
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]

        def busy():
            i = 0
            while not over:
                i += 1
                nbytes = 1 + 104729 * i % 3_000_000
                ptr = library.gputensor_malloc(nbytes, -1, None)
                assert ptr
                library.gputensor_free(ptr, nbytes, -1, streams[i % 4].cuda_stream)
    """,
    "work that is deferred": """
        device = registry.open_host(seed=11)
        local = threading.local()

        def busy():
            local.kept, local.stream = gt.ones(100, device=device), gt.Stream(device)
            gt.set_stream(local.stream)
            i = 0
            while not over:
                i += 1
                x = gt.full(1000, float(i), device=device)
                with gt.stream(gt.Stream(device)):
                    y = x + 1
                assert float(gt.max(y)) == i + 1
    """,
    "threads that end": """
        def once():
            x = gt.ones(1000)
            assert float(gt.sum(x)) == 1000

        def busy():
            while not over:
                thread = threading.Thread(target=once)
                thread.start()
                thread.join()
    """,
}


@pytest.mark.parametrize("what", BUSY)
def test_locks_that_other_threads_held_do_not_hang_the_child(what):
    run(
        "streams = [gt.Stream('host') for _ in range(4)]\nover = False\ngt.ones(1)\n"
        + textwrap.dedent(BUSY[what])
        + textwrap.dedent("""
        def work():
            assert float(gt.sum(gt.full(100_000, 2.0))) == 200_000
            with gt.stream(gt.Stream("host")):
                x = gt.ones((40, 30))
                assert float((x @ x.T)[3, 4]) == 30
            memory.set_per_process_memory_fraction(0.5)
            memory.snapshot()
            memory.empty_cache()
            thread = threading.Thread(target=lambda: gt.ones(10))
            thread.start()
            thread.join()
            whole()

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for i in range(16):
                child(work, end=(os._exit, sys.exit)[i % 2], seconds=30)
        finally:
            over = True
            for thread in threads:
                thread.join()
        whole()
        """)
    )


def test_fork_from_another_thread_that_ends_in_the_child():
    run("""
        kept = gt.ones(1000)
        main = os.getpid()
        local = threading.local()

        def body():
            local.kept = gt.ones(500)
            x = gt.ones(2000)
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                refused(x.numpy, "before this process was forked")
                assert float(gt.sum(gt.ones(2000))) == 2000
                return
            pids.append(pid)

        pids = []
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        # The child goes on in what is its main thread now, ends it, and with it the process.
        assert os.waitpid(pids[0], 0)[1] == 0
        assert float(gt.sum(kept)) == 1000
        whole()
    """)

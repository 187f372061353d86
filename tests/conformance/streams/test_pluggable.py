"""Pools whose memory comes from a user's functions."""

import ctypes
import subprocess

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory

SOURCE = r"""
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <stdexcept>
static std::mutex mutex;
static std::map<void*, size_t> live;
static std::atomic<long> given{0}, wrong{0}, refuse{0}, shift{0};
static void* symbol(const char* name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }
static void* make(size_t nbytes, int device) {
    if (device < 0) return aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
    uint64_t found = 0;
    auto allocate = reinterpret_cast<int (*)(uint64_t*, size_t)>(symbol("cuMemAlloc_v2"));
    return allocate(&found, nbytes) ? nullptr : reinterpret_cast<void*>(found);
}
static void unmake(void* ptr, int device) {
    if (device < 0) return free(ptr);
    auto release = reinterpret_cast<int (*)(uint64_t)>(symbol("cuMemFree_v2"));
    if (release(uint64_t(ptr))) wrong++;
}
extern "C" void* take(size_t nbytes, int device, void*) {
    if (refuse == 1) return nullptr;
    if (refuse == 2) throw std::runtime_error("refused");
    void* made = make(nbytes, device);
    if (!made) return nullptr;
    if (shift) return (char*)made + shift;
    std::lock_guard<std::mutex> guard(mutex);
    live[made] = nbytes;
    given++;
    return made;
}
extern "C" void give(void* ptr, size_t nbytes, int device, void*) {
    std::lock_guard<std::mutex> guard(mutex);
    if (shift) { unmake((char*)ptr - shift, device); return; }
    auto found = live.find(ptr);
    if (found == live.end() || found->second != nbytes) { wrong++; return; }
    live.erase(found);
    unmake(ptr, device);
    if (refuse == 2) throw std::runtime_error("refused");
}
extern "C" long count(int which) {
    std::lock_guard<std::mutex> guard(mutex);
    return which == 0 ? given.load() : which == 1 ? long(live.size()) : wrong.load();
}
extern "C" int holds(void* ptr) {
    std::lock_guard<std::mutex> guard(mutex);
    auto next = live.upper_bound(ptr);
    if (next == live.begin()) return 0;
    --next;
    return ptr < (char*)next->first + next->second;
}
extern "C" void refuse_all(int value) { refuse = value; }
extern "C" void shift_all(int value) { shift = value; }
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pluggable")
    (folder / "source.cpp").write_text(SOURCE)
    library = folder / "source.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-std=c++17", "-o", library, folder / "source.cpp", "-ldl"],
        check=True,
        timeout=300,
    )
    return str(library)


@pytest.fixture
def source(path):
    """The library's own counters: (given, live, wrong), `holds` and `refuse_all`."""
    library = ctypes.CDLL(path)
    library.count.restype = ctypes.c_long
    library.holds.argtypes = [ctypes.c_void_p]
    library.refuse_all(0)
    library.shift_all(0)
    return library


def counts(library):
    return tuple(library.count(i) for i in range(3))


def test_an_allocator_may_be_the_first_argument_as_in_pytorch(path):
    allocator = memory.CUDAPluggableAllocator(path, "take", "give")
    assert memory.MemPool(allocator.allocator(), True, False).allocator is allocator
    with pytest.raises(TypeError, match="^device: got CUDAPluggableAllocator"):
        memory.MemPool(allocator, allocator=allocator)


def test_a_pool_takes_its_memory_from_the_functions(path, source, device, rng):
    given = counts(source)[0]
    pool = memory.MemPool(device, allocator=memory.CUDAPluggableAllocator(path, "take", "give"))
    assert isinstance(pool.allocator, memory.CUDAPluggableAllocator)
    with gt.Device(device):
        with memory.use_mem_pool(pool, device):
            kept = [gt.asarray(rng.random(n, np.float32)) for n in (10, 3000, 4_000_000, 70)]
            x = gt.zeros(100) + 1
        assert all(source.holds(x.data_ptr()) for x in kept)
        assert not source.holds((x * 2 + gt.ones(5)[0]).data_ptr())
        first, live, wrong = counts(source)
        assert given < first and live == first - given and wrong == 0
        addresses = {segment["address"] for segment in pool.snapshot()}
        assert len(addresses) == live and all(source.holds(a) for a in addresses)
        # Freed blocks are cached.
        del kept[2]
        with memory.use_mem_pool(pool, device):
            again = gt.zeros(4_000_000)
        assert source.holds(again.data_ptr()) and counts(source)[0] == first
        del kept, again, x
        gt.synchronize()
        del pool
        memory.empty_cache(device)
        assert counts(source)[1:] == (0, 0)
        reserved = memory.memory_reserved(device)
        gt.zeros(1000)
        assert counts(source)[0] == first and memory.memory_reserved(device) >= reserved


@pytest.mark.parametrize("how", [1, 2], ids=["null", "throws"])
def test_functions_without_memory_raise_out_of_memory(path, source, device, how):
    pool = memory.MemPool(device, allocator=memory.CUDAPluggableAllocator(path, "take", "give"))
    gt.zeros(1000, device=device)  # leaves memory in the cache, which the pool may not use
    source.refuse_all(how)
    with gt.Device(device), memory.use_mem_pool(pool, device):
        with pytest.raises(gt.OutOfMemoryError, match="the pool's own allocator refused"):
            gt.zeros(1000)
        source.refuse_all(0)
        np.testing.assert_array_equal(gt.ones(7).numpy(), 1)
        source.refuse_all(how)
        gt.synchronize()
        del pool
    memory.empty_cache(device)
    assert counts(source)[1:] == (0, 0)


def test_an_address_that_is_not_aligned_is_refused_and_freed(path, source, device):
    pool = memory.MemPool(device, allocator=memory.CUDAPluggableAllocator(path, "take", "give"))
    with gt.Device(device), memory.use_mem_pool(pool, device):
        source.shift_all(8)
        with pytest.raises(gt.DriverError, match="misaligned address"):
            gt.zeros(1000)
        source.shift_all(0)
        assert pool.snapshot() == []
        np.testing.assert_array_equal(gt.ones(7).numpy(), 1)
        gt.synchronize()
        del pool
    memory.empty_cache(device)
    assert counts(source)[1:] == (0, 0)


def test_a_graph_keeps_memory_of_the_functions(path, source, device):
    pool = memory.MemPool(device, allocator=memory.CUDAPluggableAllocator(path, "take", "give"))
    with gt.Device(device):
        x, g = gt.zeros(1000), gt.graphs.CUDAGraph()
        with gt.graphs.graph(g), memory.use_mem_pool(pool, device):
            y = x + 1
        assert source.holds(y.data_ptr())
        del pool
        memory.empty_cache(device)
        x += 5
        g.replay()
        np.testing.assert_array_equal(y.numpy(), 6)
        del y
        g.reset()
        gt.synchronize()
        memory.empty_cache(device)
    assert counts(source)[1:] == (0, 0)


def test_wrong_arguments_are_named(path):
    with pytest.raises(TypeError, match="^allocator: got int; expected CUDAPluggableAllocator"):
        memory.MemPool("host", allocator=3)
    with pytest.raises(AttributeError):
        memory.CUDAPluggableAllocator(path, "take", "no_such_function")
    with pytest.raises(OSError):
        memory.CUDAPluggableAllocator("/no/such/library.so", "take", "give")
    assert memory.CUDAPluggableAllocator(path, "take", "give").allocator().addresses[0] > 0

// Ordinary pages for pinned_use_cuda_host_register: mapped, and touched by several threads, because
// making the pages takes most of the time of registering them, and one thread makes about 4 GB/s.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace gputensor {

// Gives 0 when the system has no memory. `nbytes` is a multiple of 4096.
inline uint64_t touched_pages(size_t nbytes, int threads) {
    constexpr size_t page = 4096;
    void* range = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED) { return 0; }
    auto touch = [range, nbytes](size_t begin, size_t end) {
        for (; begin < std::min(end, nbytes); begin += page) {
            static_cast<volatile char*>(range)[begin] = 0;
        }
    };
    size_t share = (nbytes / page + threads - 1) / threads * page;
    std::vector<std::thread> others;
    size_t at = share;  // the first part is this thread's own
    try {
        for (; at < nbytes; at += share) { others.emplace_back(touch, at, at + share); }
    } catch (const std::exception&) {
        touch(at, nbytes);
    }
    touch(0, share);
    for (auto& thread : others) { thread.join(); }
    return reinterpret_cast<uint64_t>(range);
}

inline void drop_pages(uint64_t ptr, size_t nbytes) {
    munmap(reinterpret_cast<void*>(ptr), nbytes);
}

}  // namespace gputensor

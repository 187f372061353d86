// Filling memory of the host device with one element.
//
// Holds no lock: the caller knows that nothing else uses the range.
#pragma once

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

#include "gputensor/_driver/host/work.h"

namespace gputensor {

inline void* bytes_at(uint64_t ptr) { return reinterpret_cast<void*>(ptr); }

// Writes zeros to a large range of the device's pages that seems untouched, by dropping the pages
// that it has: an untouched page is zero already, and faulting one in costs ten times as much as
// writing zeros to a resident page. Returns false when a sampled page is resident.
inline bool drop_pages(const Work& work) {
    constexpr uint64_t PAGE = 4096, LEAST = uint64_t(1) << 20, SAMPLES = 16;
    if (work.value || work.nbytes < LEAST) return false;
    const uint64_t first = (work.dst + PAGE - 1) / PAGE * PAGE;
    const uint64_t end = (work.dst + work.nbytes) / PAGE * PAGE;
    for (uint64_t i = 0; i < SAMPLES; ++i) {
        const uint64_t page = first + (end - first) / PAGE * i / SAMPLES * PAGE;
        unsigned char is_there = 1;
        if (mincore(bytes_at(page), PAGE, &is_there) != 0 || is_there & 1) return false;
    }
    // MADV_REMOVE works only for shared memory of files; the call fails for other memory.
    if (madvise(bytes_at(first), end - first, MADV_REMOVE) != 0) return false;
    memset(bytes_at(work.dst), 0, first - work.dst);
    memset(bytes_at(end), 0, work.dst + work.nbytes - end);
    return true;
}

inline void fill_memory(const Work& work) {
    if (drop_pages(work)) return;
    const uint32_t byte = work.value & 0xFF;
    const uint32_t mask = uint32_t(0xFFFFFFFFu) >> (32 - 8 * work.width);
    if ((work.value & mask) == (byte * 0x01010101u & mask)) {  // zeros, most of all
        memset(bytes_at(work.dst), int(byte), work.nbytes);
    } else if (work.width == 2) {
        std::fill_n(static_cast<uint16_t*>(bytes_at(work.dst)), work.nbytes / 2,
                    uint16_t(work.value));
    } else {
        std::fill_n(static_cast<uint32_t*>(bytes_at(work.dst)), work.nbytes / 4, work.value);
    }
}

}  // namespace gputensor

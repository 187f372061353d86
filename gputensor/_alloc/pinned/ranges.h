// The pinned memory that programs hold by name: buffers of the pinned allocator, and memory of theirs
// that was registered. A copy in a capture reads such memory at each replay.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <new>

namespace gputensor {

class PinnedRanges {
public:
    void add(uint64_t ptr, size_t nbytes, void* block) {
        std::lock_guard<std::mutex> guard(mutex);
        ranges[ptr] = {nbytes, block};
    }
    void remove(uint64_t ptr) {
        std::lock_guard<std::mutex> guard(mutex);
        ranges.erase(ptr);
    }
    // Whether one range holds all of it; `block`: the allocator's block, null for registered memory.
    bool find(uint64_t ptr, size_t nbytes, void** block) {
        std::lock_guard<std::mutex> guard(mutex);
        auto range = ranges.upper_bound(ptr);
        if (range == ranges.begin()) return false;
        --range;
        if (ptr + nbytes > range->first + range->second.nbytes) return false;
        *block = range->second.block;
        return true;
    }
    // In the child of a fork: another thread may have held the mutex, in the middle of a change.
    void renew() {
        new (&mutex) std::mutex;
        new (&ranges) decltype(ranges);
    }

private:
    struct Range {
        size_t nbytes;
        void* block;
    };
    std::mutex mutex;
    std::map<uint64_t, Range> ranges;
};

}  // namespace gputensor

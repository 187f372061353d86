// Distinct call stacks by number, which blocks and records of the history hold: the table never
// shrinks. The GIL guards it.
#pragma once
#include <cstdint>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "gputensor/_alloc/history/frames.h"

namespace gputensor {

class StackTable {
public:
    // The number of a stack, above 0; 0 when it is new and the table is full or memory is short.
    uint32_t number_of(const gt_frame* walked, uint32_t depth) {
        uint64_t key = hash(walked, depth);
        auto found = numbers.find(key);
        while (found != numbers.end() && !is_same(found->second, walked, depth)) {
            found = numbers.find(++key);  // another stack has this hash
        }
        return found != numbers.end() ? found->second : add(key, walked, depth);
    }
    uint32_t depth(uint32_t stack) const { return starts[stack + 1] - starts[stack]; }
    gt_frame frame(uint32_t stack, uint32_t index) const { return frames[starts[stack] + index]; }
    // One more than the largest number.
    uint32_t size() const { return static_cast<uint32_t>(starts.size() - 1); }

private:
    static constexpr size_t most_frames = 8 << 20;  // over all stacks

    // Each frame is mixed on its own, so that the multiplications overlap; the position enters
    // through the rotation.
    static uint64_t hash(const gt_frame* walked, uint32_t depth) {
        constexpr uint64_t factor = 0x9E3779B97F4A7C15;
        uint64_t value = depth;
        for (uint32_t i = 0; i < depth; i++) {
            uint64_t frame = reinterpret_cast<uintptr_t>(walked[i].code) + walked[i].offset;
            value = ((value << 7) | (value >> 57)) ^ (frame * factor);
        }
        value = (value ^ (value >> 32)) * factor;
        return value ^ (value >> 29);
    }
    bool is_same(uint32_t stack, const gt_frame* walked, uint32_t count) const {
        return depth(stack) == count &&
               memcmp(&frames[starts[stack]], walked, count * sizeof(gt_frame)) == 0;
    }
    uint32_t add(uint64_t key, const gt_frame* walked, uint32_t depth) {
        if (frames.size() + depth > most_frames) { return 0; }
        uint32_t stack = size();
        try {
            numbers.emplace(key, stack);
            frames.insert(frames.end(), walked, walked + depth);
            starts.push_back(static_cast<uint32_t>(frames.size()));
        } catch (const std::bad_alloc&) {
            numbers.erase(key);
            frames.resize(starts.back());
            return 0;
        }
        // Kept alive, so that an address in the table always means the same code.
        for (uint32_t i = 0; i < depth; i++) { Py_XINCREF(walked[i].code); }
        return stack;
    }

    std::unordered_map<uint64_t, uint32_t> numbers;  // by hash
    std::vector<gt_frame> frames;                    // of all stacks, one after the other
    std::vector<uint32_t> starts{0, 0};              // where each stack begins; 0 is never used
};

}  // namespace gputensor

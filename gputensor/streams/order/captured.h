// The result of one capture.
#pragma once

#include <cstdint>
#include <vector>

namespace gputensor {

// The graph, then the bodies of its conditions and theirs, in the order of their capture; and the
// conditions, in the order in which they were made. Two captures of the same work differ in the
// conditions, too.
struct Captured {
    std::vector<uint64_t> graphs, conditions;
    std::vector<uint64_t> inner;  // the streams of the graphs that were replayed in it
    // Names (graph_memory.h) of the memory that belongs to it, and of memory of other graphs of
    // which it uses a part.
    std::vector<uint64_t> own, shared;
};

}  // namespace gputensor

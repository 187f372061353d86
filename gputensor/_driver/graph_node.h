// The parameters of a graph's node, as graph_node_get returns and graph_node_set takes them: 8-byte
// words, the kind of the node first. The layout of the other words is private to each filler,
// except for host functions (HostNode). Addresses of device memory are whole words, so that a
// comparison of two captures of the same work finds the addresses that moved. Unused words are 0.
#pragma once

#include <cstdint>

namespace gputensor {

// OTHER has no further words and cannot be set.
enum NodeKind : uint64_t {
    NODE_OTHER = 0, NODE_KERNEL = 1, NODE_COPY = 2, NODE_FILL = 3, NODE_HOST = 4
};

struct HostNode {
    uint64_t kind, function, argument;
};

}  // namespace gputensor

// Finds the words of a graph's nodes that are addresses in given memory, and replaces them.
//
// A *span* is memory that may be elsewhere in later launches. Its words are found by comparing two
// captures of the same work, between which each span has moved by a different distance: a word that
// differs by the distance of a span holds an address in it. A node that differs in any other way is
// *opaque*: only another capture can give its parameters for other addresses. Where only one
// capture exists, a word counts as an address in a span when its value lies in the span.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gputensor/_driver/graph_node.h"
#include "gputensor/streams/order/captured.h"

namespace gputensor {

struct Span {
    uint64_t first, second;  // its address in each of the two captures
    uint64_t nbytes;
};

class NodePatches {
public:
    // Both return the status of a driver call that failed, or 0; after a failure there are no
    // nodes.
    template <class Driver>
    int compare(Driver* driver, const Captured& graph, const Captured& other,
                const std::vector<Span>& spans) {
        std::vector<Node> second;
        clear(spans);
        int status = read(driver, graph, nodes);
        if (!status) status = read(driver, other, second);
        if (status) return nodes.clear(), status;
        bool alike = nodes.size() == second.size() &&
                     graph.conditions.size() == other.conditions.size();
        if (!alike) opaque = std::max(nodes.size(), second.size());
        for (size_t i = 0; i < nodes.size() && alike; i++)
            opaque += !explain(nodes[i], second[i].words, spans, graph, other);
        return index(spans.size()), 0;
    }
    template <class Driver>
    int find(Driver* driver, const Captured& graph, const std::vector<Span>& spans) {
        clear(spans);
        int status = read(driver, graph, nodes);
        if (status) return nodes.clear(), status;
        for (Node& node : nodes)
            for (size_t word = 1; word < node.words.size(); word++)
                for (size_t s = 0; s < spans.size(); s++)
                    if (node.words[word] - spans[s].first < spans[s].nbytes)
                        node.patches.push_back({word, s, node.words[word] - spans[s].first});
        return index(spans.size()), 0;
    }

    // Gives the nodes of an executable the addresses of the spans. A failure leaves some nodes with
    // old addresses; the next call sets every node.
    template <class Driver>
    int apply(Driver* driver, uint64_t executable, const uint64_t* addresses) {
        bool moved = stale;
        for (size_t s = 0; s < current.size(); s++) {
            if (addresses[s] == current[s]) continue;
            moved = true;
            for (size_t node : nodes_of[s]) nodes[node].is_due = true;
        }
        if (!moved) return 0;
        for (Node& node : nodes) {
            if (!(node.is_due || (stale && !node.patches.empty()))) continue;
            for (const Patch& patch : node.patches)
                node.words[patch.word] = addresses[patch.span] + patch.offset;
            int status = driver->graph_node_set(driver->self, executable, node.handle,
                                                node.words.data(), node.words.size() * 8);
            if (status) return stale = true, status;
            node.is_due = false;
            set_count++;
        }
        stale = false;
        std::copy(addresses, addresses + current.size(), current.begin());
        return 0;
    }

    // Begins with a graph that was captured at these addresses and whose nodes were not read.
    void start(const std::vector<uint64_t>& addresses) {
        clear({});
        current = addresses;
    }

    // Notes that the executable was updated from another graph, captured at these addresses.
    void follow(const uint64_t* addresses) {
        std::copy(addresses, addresses + current.size(), current.begin());
        for (Node& node : nodes) {
            for (const Patch& patch : node.patches)
                node.words[patch.word] = addresses[patch.span] + patch.offset;
            node.is_due = false;
        }
        stale = false;
    }

    bool is_current(const uint64_t* addresses) const {
        return !stale && std::equal(current.begin(), current.end(), addresses);
    }
    size_t node_count() const { return nodes.size(); }
    size_t patched_count() const {
        return size_t(std::count_if(nodes.begin(), nodes.end(),
                                    [](const Node& node) { return !node.patches.empty(); }));
    }
    size_t patched_count(size_t span) const { return nodes_of[span].size(); }

    size_t opaque = 0;     // nodes that only another capture can move
    size_t set_count = 0;  // nodes set so far

private:
    struct Patch {
        size_t word, span;
        uint64_t offset;
    };
    struct Node {
        uint64_t handle = 0;
        bool is_due = false;
        std::vector<uint64_t> words;
        std::vector<Patch> patches;
    };

    void clear(const std::vector<Span>& spans) {
        nodes.clear();
        nodes_of.assign(spans.size(), {});
        current.clear();
        for (const Span& span : spans) current.push_back(span.first);
        opaque = 0;
        stale = false;
    }

    template <class Driver>
    static int read(Driver* driver, const Captured& captured, std::vector<Node>& found) {
        int status = 0;
        found.clear();
        for (size_t i = 0; i < captured.graphs.size() && !status; i++)
            status = read(driver, captured.graphs[i], found);
        return status;
    }

    template <class Driver>
    static int read(Driver* driver, uint64_t graph, std::vector<Node>& found) {
        int count = 0;
        int status = driver->graph_nodes(driver->self, graph, nullptr, 0, &count);
        std::vector<uint64_t> handles(size_t(count), 0);
        if (!status && count)
            status = driver->graph_nodes(driver->self, graph, handles.data(), count, &count);
        size_t first = found.size();
        found.resize(first + handles.size());
        std::vector<uint64_t> words(64);
        for (size_t i = first; i < found.size() && !status; i++) {
            size_t nbytes = 0;
            uint64_t handle = found[i].handle = handles[i - first];
            status = driver->graph_node_get(driver->self, graph, handle, words.data(),
                                            words.size() * 8, &nbytes);
            if (!status && nbytes > words.size() * 8) {
                words.resize(nbytes / 8);
                status = driver->graph_node_get(driver->self, graph, handle, words.data(),
                                                nbytes, &nbytes);
            }
            if (!status) found[i].words.assign(words.begin(), words.begin() + long(nbytes / 8));
        }
        return status;
    }

    // Whether patches explain all differences between a node and its other form.
    static bool explain(Node& node, const std::vector<uint64_t>& other,
                        const std::vector<Span>& spans, const Captured& first,
                        const Captured& second) {
        bool explained = node.words.size() == other.size() && node.words[0] == other[0] &&
                         node.words[0] != NODE_HOST;  // whose argument may hold addresses
        for (size_t word = 0; explained && word < other.size(); word++) {
            if (node.words[word] == other[word]) continue;
            explained = false;
            for (size_t c = 0; c < first.conditions.size() && !explained; c++)
                explained = node.words[word] == first.conditions[c] &&
                            other[word] == second.conditions[c];
            for (size_t s = 0; s < spans.size() && !explained; s++) {
                uint64_t offset = node.words[word] - spans[s].first;
                explained = offset <= spans[s].nbytes && other[word] - spans[s].second == offset;
                if (explained) node.patches.push_back({word, s, offset});
            }
        }
        if (!explained) node.patches.clear();
        return explained;
    }

    void index(size_t count) {
        nodes_of.assign(count, {});
        for (size_t i = 0; i < nodes.size(); i++)
            for (const Patch& patch : nodes[i].patches)
                if (nodes_of[patch.span].empty() || nodes_of[patch.span].back() != i)
                    nodes_of[patch.span].push_back(i);
    }

    std::vector<Node> nodes;
    std::vector<std::vector<size_t>> nodes_of;  // by span
    std::vector<uint64_t> current;              // addresses that the executable has now
    bool stale = false;
};

}  // namespace gputensor

// The contents of a host device's streams: pieces of work, marks, and graphs of captured work.
//
// A mark is one recording of an event. Recording again makes a new mark, so a wait keeps the
// recording that was the latest when the wait was called, as in CUDA. A mark recorded while
// capturing stands for places in the graph instead of a moment.
//
// A graph holds work and, for each piece, the pieces that come before it. Work is appended in call
// order, so the order of the nodes is always one that respects the dependencies.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "gputensor/_driver/entries.h"

namespace gputensor {

using HostFunction = void (*)(void*);

struct Capture;
struct Graph;
struct GraphRun;

struct Mark {
    uint64_t stream = 0;
    std::atomic<bool> done{false};     // read by devices that wait for this one, without its mutex
    bool timed = false;
    double milliseconds = 0;           // the time at which it was reached, if timed
    std::shared_ptr<Capture> capture;  // recorded while capturing: never done
    std::set<int> frontier;            // the nodes that it stands for in that capture
};

struct Work {
    enum Kind { COPY, FILL, FUNCTION, FREE, RECORD, WAIT, GRAPH, PEER_COPY, IF, WHILE };
    Kind kind;
    uint64_t dst = 0, src = 0;  // FREE: dst is what to free
    size_t nbytes = 0;
    uint32_t value = 0;         // FILL
    int width = 0;              // FILL: bytes of one element
    HostFunction function = nullptr;
    void* argument = nullptr;
    std::shared_ptr<Mark> mark;     // RECORD, WAIT; null in a graph, until it is launched
    uint64_t event = 0;             // RECORD and WAIT in a graph: the event
    std::shared_ptr<GraphRun> run;  // GRAPH
    std::shared_ptr<const uint32_t> condition;  // IF, WHILE
    std::shared_ptr<Graph> body;                // IF, WHILE
    // Takes another device's mutex. PEER_COPY: does the copy. WAIT for a mark of another device: runs
    // that device until the mark is done.
    std::function<int()> peer;
    std::set<uint64_t>* freeing = nullptr;  // FREE: the device's list of addresses being freed
    std::thread::id owner;  // the thread that runs this and whose call returns when this is done

    bool has_function() const;  // whether running this may run a host function
};

struct Graph {
    uint64_t number = 0;  // part of its nodes' handles; a copy keeps it
    std::vector<Work> nodes;
    std::vector<std::set<int>> before;  // for each node, the nodes it depends on
    bool has_event = false;
    std::vector<std::shared_ptr<uint32_t>> conditions;  // launches of copies share them
    std::vector<uint64_t> bodies;                       // their handles

    int add(const Work& work, const std::set<int>& after) {
        has_event |= work.event != 0;
        nodes.push_back(work);
        before.push_back(after);
        return int(nodes.size()) - 1;
    }

    bool has_function() const {
        for (auto& work : nodes)
            if (work.has_function()) return true;
        return false;
    }

    // A copy whose bodies are its own.
    std::shared_ptr<Graph> copy() const {
        auto made = std::make_shared<Graph>(*this);
        for (auto& work : made->nodes)
            if (work.body) work.body = work.body->copy();
        return made;
    }

    // The graph with this number: this one, or one of its bodies.
    Graph* find(uint64_t wanted) {
        if (number == wanted) return this;
        for (auto& work : nodes)
            if (Graph* found = work.body ? work.body->find(wanted) : nullptr) return found;
        return nullptr;
    }

    // The nodes of `from` and all nodes that they depend on, directly or not.
    std::set<int> closure(const std::set<int>& from) const {
        std::set<int> found;
        std::vector<int> left(from.begin(), from.end());
        while (!left.empty()) {
            int node = left.back();
            left.pop_back();
            if (found.insert(node).second)
                left.insert(left.end(), before[size_t(node)].begin(), before[size_t(node)].end());
        }
        return found;
    }

    // The nodes that no other node depends on.
    std::set<int> ends() const {
        std::set<int> found;
        for (size_t i = 0; i < nodes.size(); i++) found.insert(int(i));
        for (auto& edges : before)
            for (int node : edges) found.erase(node);
        return found;
    }
};

// One launch of a graph in progress: the nodes that may run next.
struct GraphRun {
    explicit GraphRun(std::shared_ptr<const Graph> source) : graph(std::move(source)) {
        for (size_t i = 0; i < graph->nodes.size(); i++) {
            missing.push_back(graph->before[i].size());
            if (!missing[i]) ready.push_back(int(i));
        }
        left = missing.size();
        has_function = graph->has_function();
    }

    int take(size_t choice) {
        int node = ready[choice];
        ready.erase(ready.begin() + long(choice));
        return node;
    }

    void finish(int node) {
        left--;
        for (size_t i = 0; i < missing.size(); i++)
            if (graph->before[i].count(node) && --missing[i] == 0) ready.push_back(int(i));
    }

    std::shared_ptr<const Graph> graph;
    std::vector<size_t> missing;  // for each node, the number of nodes that it still waits for
    std::vector<int> ready;
    size_t left;
    bool has_function;
};

inline bool Work::has_function() const {
    return kind == FUNCTION || (kind == GRAPH && run->has_function) ||
           (body && body->has_function());
}

struct Executable {
    std::shared_ptr<Graph> graph;  // changed only while this is the only reference to it
    std::shared_ptr<Mark> last;  // the end of its latest launch: launches do not overlap
};

struct Capture {
    uint64_t id = 0;
    uint64_t origin = 0;
    int mode = 0;
    std::thread::id thread;
    bool ended = false;
    bool invalidated = false;
    uint64_t body = 0;  // the handle of the graph, when it is the body of a condition
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
};

struct Stream {
    uint64_t handle = 0;
    bool live = true;        // false: destroyed, and kept until its work is done
    bool busy = false;       // a thread runs a piece of its work
    std::thread::id runner;  // that thread, while the stream is busy
    uint64_t queued = 0;     // pieces ever enqueued
    uint64_t finished = 0;   // pieces done
    std::deque<Work> queue;
    std::shared_ptr<Capture> capture;  // set while the stream captures
    std::set<int> frontier;            // capturing: the nodes that its next node comes after
};

struct Event {
    bool timed = false;
    std::shared_ptr<Mark> mark;  // the latest recording; empty: never recorded
};

}  // namespace gputensor

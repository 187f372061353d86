// Captures and graphs of a host device: work recorded instead of run, and launched later.
//
// A stream that captures keeps a frontier: the nodes that its next node comes after. Recording an
// event copies the frontier; waiting for the event merges that copy into another stream's frontier,
// and this stream joins the same capture. Mistakes get the status that CUDA gives for them; most
// invalidate the capture, which then ends with CAPTURE_INVALIDATED and no graph.
//
// Memory entries are allowed during any capture; on CUDA the filler relaxes the thread's capture
// mode around them.
#pragma once

#include <cstdio>

#include "gputensor/_driver/graph_node.h"
#include "gputensor/_driver/host/schedule.h"

namespace gputensor {

class HostCapture {
public:
    int capture_begin(uint64_t stream, int mode) {
        Lock guard(mutex);
        auto capture = std::make_shared<Capture>();
        capture->graph->number = ++last_graph;
        return begin(capture, stream, mode);
    }

    int capture_begin_body(uint64_t stream, uint64_t body, int mode) {
        Lock guard(mutex);
        auto named = graphs.find(body);
        if (named == graphs.end() || !named->second->nodes.empty()) return INVALID_HANDLE;
        auto capture = std::make_shared<Capture>();
        capture->graph = named->second;
        capture->body = body;
        return begin(capture, stream, mode);
    }

    int capture_end(uint64_t stream, uint64_t* graph) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        auto capture = found->capture;
        if (!capture) return ILLEGAL_STATE;
        if (capture->origin != stream) {
            invalidate(*capture);
            return CAPTURE_UNMATCHED;
        }
        auto ends = capture->graph->ends();
        bool joined = std::includes(found->frontier.begin(), found->frontier.end(), ends.begin(),
                                    ends.end());
        capture->ended = true;
        for (auto& entry : schedule.streams)
            if (entry.second->capture == capture) entry.second->capture = nullptr;
        if (capture->invalidated) return CAPTURE_INVALIDATED;
        // The capture is over even so, as on CUDA.
        if (capture->mode != RELAXED && capture->thread != std::this_thread::get_id())
            return CAPTURE_WRONG_THREAD;
        if (!joined) return CAPTURE_UNJOINED;
        *graph = capture->body ? capture->body : ++last_handle;
        graphs[*graph] = capture->graph;
        return OK;
    }

    int condition_create(uint64_t stream, uint64_t* condition) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (!found->capture) return ILLEGAL_STATE;
        if (found->capture->invalidated) return CAPTURE_INVALIDATED;
        auto made = std::make_shared<uint32_t>(0);
        found->capture->graph->conditions.push_back(made);
        *condition = reinterpret_cast<uint64_t>(made.get());
        return OK;
    }

    int condition_add(uint64_t stream, uint64_t condition, int kind, uint64_t* body) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (!found->capture) return ILLEGAL_STATE;
        if (found->capture->invalidated) return CAPTURE_INVALIDATED;
        Work work;
        int status = make_condition(*found->capture->graph, condition, kind, work);
        if (status) return status;
        *body = found->capture->graph->bodies.back();
        return capture_add(*found, work);
    }

    int capture_info(uint64_t stream, int* active, uint64_t* capture_id) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        *active = !found->capture ? 0 : found->capture->invalidated ? 2 : 1;
        *capture_id = found->capture ? found->capture->id : 0;
        return OK;
    }

    int capture_nodes(uint64_t stream, uint64_t* nodes, int capacity, int* count) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (!found->capture) return ILLEGAL_STATE;
        if (found->capture->invalidated) return CAPTURE_INVALIDATED;
        int written = 0;
        for (int node : found->frontier)
            if (written < capacity) nodes[written++] = name_of(*found->capture->graph, node);
        *count = int(found->frontier.size());
        return OK;
    }

    int capture_follows(uint64_t stream, const uint64_t* nodes, int count, uint8_t* follows) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (!found->capture) return ILLEGAL_STATE;
        if (found->capture->invalidated) return CAPTURE_INVALIDATED;
        auto before = found->capture->graph->closure(found->frontier);
        Graph& graph = *found->capture->graph;
        for (int i = 0; i < count; i++) {
            int index = index_of(nodes[i]);
            follows[i] = nodes[i] == name_of(graph, index) && before.count(index) != 0;
        }
        return OK;
    }

    int graph_instantiate(uint64_t graph, uint64_t* executable) {
        Lock guard(mutex);
        auto found = graphs.find(graph);
        if (found == graphs.end()) return INVALID_HANDLE;
        executables[++last_handle].graph = found->second;
        *executable = last_handle;
        return OK;
    }

    int graph_launch(uint64_t executable, uint64_t stream) {
        Lock guard(mutex);
        auto found = schedule.find(stream);
        auto launched = executables.find(executable);
        if (!found || launched == executables.end()) return INVALID_HANDLE;
        auto graph = launched->second.graph;
        if (found->capture) return capture_append(*found, *graph);
        // All pieces are queued at once: a launch by another thread waits for a queued mark.
        std::vector<Work> pieces;
        auto wait_for = [&](const std::shared_ptr<Mark>& mark) {
            if (!mark || mark->done) return;
            pieces.push_back({Work::WAIT});
            pieces.back().mark = mark;
        };
        wait_for(launched->second.last);
        if (graph->has_event) graph = with_marks(*graph, stream, wait_for);
        pieces.push_back({Work::GRAPH});
        pieces.back().run = std::make_shared<GraphRun>(graph);
        pieces.push_back({Work::RECORD});
        pieces.back().mark = std::make_shared<Mark>();
        pieces.back().mark->stream = stream;
        launched->second.last = pieces.back().mark;
        return schedule.enqueue(guard, found, pieces.data(), pieces.size());
    }

    int graph_destroy(uint64_t graph) {
        Lock guard(mutex);
        return destroy(graph) ? OK : INVALID_HANDLE;
    }

    int graph_executable_destroy(uint64_t executable) {
        Lock guard(mutex);
        return executables.erase(executable) ? OK : INVALID_HANDLE;
    }

    int graph_nodes(uint64_t graph, uint64_t* nodes, int capacity, int* count) {
        Lock guard(mutex);
        auto found = graphs.find(graph);
        if (found == graphs.end()) return INVALID_HANDLE;
        int size = int(found->second->nodes.size());
        for (int i = 0; i < size && i < capacity; i++) nodes[i] = name_of(*found->second, i);
        *count = size;
        return OK;
    }

    int graph_dump(uint64_t graph, const char* path) {
        static const char* const names[] = {"copy", "fill", "function", "free", "event record",
                                            "event wait", "graph", "copy to peer", "if",
                                            "while"};
        Lock guard(mutex);
        auto found = graphs.find(graph);
        if (found == graphs.end()) return INVALID_HANDLE;
        FILE* file = fopen(path, "w");
        if (!file) return INVALID_VALUE;
        fprintf(file, "digraph graph_%llu {\n", (unsigned long long)graph);
        for (size_t i = 0; i < found->second->nodes.size(); i++) {
            const Work& work = found->second->nodes[i];
            fprintf(file, "  n%zu [label=\"%s\\n%zu bytes to 0x%llx\"];\n", i, names[work.kind],
                    work.nbytes, (unsigned long long)work.dst);
            for (int before : found->second->before[i])
                fprintf(file, "  n%d -> n%zu;\n", before, i);
        }
        fprintf(file, "}\n");
        return fclose(file) ? INVALID_VALUE : OK;
    }

    int graph_node_get(uint64_t graph, uint64_t node, void* words, size_t capacity,
                       size_t* nbytes) {
        Lock guard(mutex);
        auto found = graphs.find(graph);
        Work* named = found == graphs.end() ? nullptr : node_of(*found->second, node);
        if (!named) return INVALID_HANDLE;
        NodeWords given = words_of(*named);
        if (sizeof(given) <= capacity) memcpy(words, &given, sizeof(given));
        *nbytes = sizeof(given);
        return OK;
    }

    // Launches under way keep the graph that they began with.
    int graph_node_set(uint64_t executable, uint64_t node, const void* words, size_t nbytes) {
        Lock guard(mutex);
        auto found = executables.find(executable);
        if (found == executables.end() || !node_of(*found->second.graph, node))
            return INVALID_HANDLE;
        NodeWords given;
        if (!words || nbytes != sizeof(given)) return INVALID_VALUE;
        memcpy(&given, words, sizeof(given));
        const Work& before = *node_of(*found->second.graph, node);
        if (given.kind != kind_of(before)) return INVALID_VALUE;
        if (given.kind == NODE_OTHER) return NOT_SUPPORTED;
        Work after = before;
        if (given.kind == NODE_HOST) {
            if (!given.words[0]) return INVALID_VALUE;
            after.function = reinterpret_cast<HostFunction>(given.words[0]);
            after.argument = reinterpret_cast<void*>(given.words[1]);
        } else {
            after.dst = given.words[0];
            after.src = given.words[1];
            after.nbytes = given.words[2];
            after.value = uint32_t(given.words[3]);
            after.width = int(given.words[4]);
            if (!after.dst || !after.nbytes || (given.kind == NODE_COPY && !after.src))
                return INVALID_VALUE;
        }
        if (found->second.graph.use_count() > 1) found->second.graph = found->second.graph->copy();
        *node_of(*found->second.graph, node) = after;
        return OK;
    }

    int graph_update(uint64_t executable, uint64_t graph) {
        Lock guard(mutex);
        auto target = executables.find(executable);
        auto source = graphs.find(graph);
        if (target == executables.end() || source == graphs.end()) return INVALID_HANDLE;
        if (!are_alike(*target->second.graph, *source->second)) return GRAPH_UPDATE_FAILED;
        auto after = source->second->copy();
        take_numbers(*after, *target->second.graph);
        target->second.graph = after;
        return OK;
    }

protected:
    // Words of a copy or a fill: dst, src, nbytes, value, width; of a host function as in HostNode.
    struct NodeWords {
        uint64_t kind, words[5];
    };

    static NodeKind kind_of(const Work& work) {
        return work.kind == Work::COPY       ? NODE_COPY
               : work.kind == Work::FILL     ? NODE_FILL
               : work.kind == Work::FUNCTION ? NODE_HOST
                                             : NODE_OTHER;
    }

    static NodeWords words_of(const Work& work) {
        NodeKind kind = kind_of(work);
        if (kind == NODE_HOST)
            return {kind, {reinterpret_cast<uint64_t>(work.function),
                           reinterpret_cast<uint64_t>(work.argument)}};
        return {kind, {work.dst, work.src, work.nbytes, work.value, uint64_t(work.width)}};
    }

    enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

    HostCapture(size_t capacity, bool phantom, bool deferred, uint64_t seed)
        : memory(capacity, phantom, deferred), schedule(memory, deferred, seed) {}

    static int invalidate(Capture& capture) {
        capture.invalidated = true;
        return CAPTURE_UNSUPPORTED;
    }

    // Returns whether there was a capture to invalidate.
    bool invalidate_all() {
        bool any = false;
        for (auto& entry : schedule.streams) {
            if (!entry.second->capture) continue;
            invalidate(*entry.second->capture);
            any = true;
        }
        return any;
    }

    int begin(const std::shared_ptr<Capture>& capture, uint64_t stream, int mode) {
        auto found = schedule.find(stream);
        if (!found) return INVALID_HANDLE;
        if (mode < GLOBAL || mode > RELAXED) return INVALID_VALUE;
        if (!stream) return CAPTURE_UNSUPPORTED;
        if (found->capture) return ILLEGAL_STATE;
        capture->id = ++last_capture;
        capture->origin = stream;
        capture->mode = mode;
        capture->thread = std::this_thread::get_id();
        found->capture = capture;
        found->frontier.clear();
        return OK;
    }

    // Makes a node with a body that is to be added to the graph; its body is the graph's last one.
    int make_condition(Graph& graph, uint64_t condition, int kind, Work& work) {
        work.kind = kind ? Work::WHILE : Work::IF;
        for (auto& one : graph.conditions)
            if (reinterpret_cast<uint64_t>(one.get()) == condition) work.condition = one;
        if (!work.condition || kind < 0 || kind > 1) return INVALID_VALUE;
        work.body = std::make_shared<Graph>();
        work.body->number = ++last_graph;
        graphs[++last_handle] = work.body;
        graph.bodies.push_back(last_handle);
        return OK;
    }

    // A node's handle is the graph's number and the node's position, counted from 1: 0 is none.
    static uint64_t name_of(const Graph& graph, int index) {
        return graph.number << 32 | uint64_t(index + 1);
    }
    static int index_of(uint64_t node) { return int(uint32_t(node)) - 1; }

    // A node of the graph or of a body in it, or null.
    static Work* node_of(Graph& graph, uint64_t node) {
        Graph* found = graph.find(node >> 32);
        size_t index = size_t(index_of(node));
        return found && index < found->nodes.size() ? &found->nodes[index] : nullptr;
    }

    static bool are_alike(const Graph& one, const Graph& other) {
        if (one.before != other.before) return false;
        for (size_t i = 0; i < one.nodes.size(); i++) {
            const Work &before = one.nodes[i], &after = other.nodes[i];
            if (kind_of(before) != kind_of(after) || !before.body != !after.body) return false;
            if (before.body && !(before.kind == after.kind && are_alike(*before.body, *after.body)))
                return false;
        }
        return true;
    }

    // The nodes of an executable keep the numbers of the graph that it was made from.
    static void take_numbers(Graph& after, const Graph& before) {
        after.number = before.number;
        for (size_t i = 0; i < after.nodes.size(); i++)
            if (after.nodes[i].body) take_numbers(*after.nodes[i].body, *before.nodes[i].body);
    }

    bool destroy(uint64_t handle) {
        auto found = graphs.find(handle);
        if (found == graphs.end()) return false;
        for (uint64_t body : found->second->bodies) destroy(body);
        return graphs.erase(handle);
    }

    static int capture_add(Stream& stream, const Work& work) {
        if (stream.capture->invalidated) return CAPTURE_INVALIDATED;
        stream.frontier = {stream.capture->graph->add(work, stream.frontier)};
        return OK;
    }

    static int add_event(Stream& stream, Work::Kind kind, uint64_t event) {
        Work work{kind};
        work.event = event;
        return capture_add(stream, work);
    }

    // A launch's own copy of a graph that records events or waits for them. Waits for events
    // recorded outside come before the whole graph; events recorded inside order its nodes.
    template <class WaitFor>
    std::shared_ptr<Graph> with_marks(const Graph& source, uint64_t stream, WaitFor wait_for) {
        auto graph = std::make_shared<Graph>(source);
        std::map<uint64_t, int> recorded;
        for (size_t i = 0; i < graph->nodes.size(); i++) {
            Work& work = graph->nodes[i];
            auto event = events.find(work.event);
            if (!work.event) continue;
            work.mark = std::make_shared<Mark>();
            if (work.kind == Work::RECORD) {
                work.mark->stream = stream;
                if (event == events.end()) continue;
                work.mark->timed = event->second.timed;
                event->second.mark = work.mark;
                recorded[work.event] = int(i);
            } else if (recorded.count(work.event)) {
                graph->before[i].insert(recorded[work.event]);
            } else if (event != events.end()) {
                wait_for(event->second.mark);
            }
        }
        return graph;
    }

    // A graph launched while capturing becomes part of the capture.
    static int capture_append(Stream& stream, const Graph& graph) {
        if (stream.capture->invalidated) return CAPTURE_INVALIDATED;
        if (graph.nodes.empty()) return OK;
        Graph& target = *stream.capture->graph;
        int base = int(target.nodes.size());
        for (size_t i = 0; i < graph.nodes.size(); i++) {
            std::set<int> after;
            for (int node : graph.before[i]) after.insert(base + node);
            target.add(graph.nodes[i], after.empty() ? stream.frontier : after);
        }
        stream.frontier.clear();
        for (int node : graph.ends()) stream.frontier.insert(base + node);
        return OK;
    }

    // stream_wait_event for a stream that captures, or an event that was recorded in a capture.
    static int capture_wait(const std::shared_ptr<Stream>& stream,
                            const std::shared_ptr<Mark>& mark) {
        if (stream->capture && stream->capture->invalidated) return CAPTURE_INVALIDATED;
        if (!mark) return OK;
        if (!mark->capture) {
            invalidate(*stream->capture);
            return CAPTURE_ISOLATION;
        }
        if (mark->capture->ended) return CAPTURED_EVENT;
        if (mark->capture->invalidated) return CAPTURE_INVALIDATED;
        if (!stream->handle) return CAPTURE_UNSUPPORTED;
        if (stream->capture && stream->capture != mark->capture) {
            invalidate(*stream->capture);
            invalidate(*mark->capture);
            return CAPTURE_MERGE;
        }
        if (!stream->capture) stream->frontier.clear();
        stream->capture = mark->capture;
        stream->frontier.insert(mark->frontier.begin(), mark->frontier.end());
        return OK;
    }

    std::mutex mutex;
    HostMemory memory;
    HostSchedule schedule;
    uint64_t last_handle = 0;
    uint64_t last_capture = 0;
    uint64_t last_graph = 0;
    std::unordered_map<uint64_t, Event> events;
    std::unordered_map<uint64_t, std::shared_ptr<Graph>> graphs;
    std::unordered_map<uint64_t, Executable> executables;
};

}  // namespace gputensor

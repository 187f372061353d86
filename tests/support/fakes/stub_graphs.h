// Streams and graphs of the stub driver, which runs no kernels; included by stub_libcuda.cpp.
//
// A kernel has one parameter of PARAMETERS bytes. The body of each condition runs exactly once.
#pragma once

#include "gputensor/_driver/cuda/api.h"

using gputensor::CopyParameters;
using gputensor::FillParameters;
using gputensor::KernelParameters;
using gputensor::NodeParameters;

enum { KERNEL = 0, COPY = 1, FILL = 2, CONDITION = 13, PARAMETERS = 512 };
static bool are_refused = false;  // graphs: captures return NOT_SUPPORTED

struct Graph;
struct Node {
    int type;
    CopyParameters copied{};
    FillParameters filled{};
    void* function = nullptr;
    std::vector<char> bytes;
    std::unique_ptr<Graph> body;
    void* body_handle = nullptr;
    void* pointer = nullptr;  // to the bytes

    static Node copy(uint64_t dst, uint64_t src, size_t nbytes) {
        Node made{COPY};
        made.copied.words[0] = dst, made.copied.words[1] = src, made.copied.words[2] = nbytes;
        return made;
    }
    static Node fill(uint64_t dst, unsigned value, unsigned width, size_t count) {
        Node made{FILL};
        made.filled = {dst, 0, value, width, count, 1};
        return made;
    }
    static Node kernel(void* function, const void* parameters) {
        Node made{KERNEL};
        auto* first = static_cast<const char*>(parameters);
        made.function = function;
        made.bytes.assign(first, first + PARAMETERS);
        return made;
    }
    void run() const {
        if (type == COPY && copied.words[2])
            memmove(reinterpret_cast<void*>(copied.words[0]), reinterpret_cast<void*>(copied.words[1]),
                    copied.words[2]);
        for (size_t i = 0; type == FILL && i < filled.count; i++)
            memcpy(reinterpret_cast<char*>(filled.dst) + filled.width * i, &filled.value, filled.width);
    }
};
struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;
};
struct Stream {
    Graph* capturing = nullptr;
    bool owns = false;  // the graph is not the body of a condition
};
// An executable graph: its own copy of each node of a graph.
struct Executable {
    Graph* graph;
    std::map<const Node*, Node> nodes;

    void add(const Graph& from) {
        for (auto& one : from.nodes) {
            Node made{one->type, one->copied, one->filled, one->function, one->bytes};
            nodes.emplace(one.get(), std::move(made));
            if (one->body) add(*one->body);
        }
    }
    void run(const Graph& from) const {
        for (auto& one : from.nodes) {
            nodes.at(one.get()).run();
            if (one->body) run(*one->body);
        }
    }
};

static Stream* stream_of(void* stream) { return static_cast<Stream*>(stream); }
static Node* node_of(void* node) { return static_cast<Node*>(node); }

// Runs work at once, or adds it to the stream's capture.
static int queue(void* stream, Node node) {
    Graph* graph = stream ? stream_of(stream)->capturing : nullptr;
    if (graph) {
        graph->nodes.push_back(std::make_unique<Node>(std::move(node)));
    } else {
        launches += node.type == KERNEL;
        node.run();
    }
    return 0;
}

EXPORT void stub_refuse_graphs(int are) { are_refused = are; }

EXPORT int cuStreamCreateWithPriority(void** stream, unsigned, int) {
    CALL;
    live++;
    return *stream = new Stream, 0;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
    if (stream_of(stream)->owns) delete stream_of(stream)->capturing;
    delete stream_of(stream);
    live--;
    return 0;
}
EXPORT int cuStreamBeginCapture_v2(void* stream, int) {
    CALL;
    if (are_refused) return NOT_SUPPORTED;
    *stream_of(stream) = {new Graph, true};
    return 0;
}
// A capture whose end fails is over, and its graph is deleted.
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
    bool has_failed = fails(), owns = stream_of(stream)->owns;
    Graph* found = stream_of(stream)->capturing;
    *stream_of(stream) = {};
    if (!found) return 401;
    if (has_failed && owns) delete found;
    if (has_failed) return FAILED;
    live += owns;
    return *graph = found, 0;
}
EXPORT int cuStreamBeginCaptureToGraph(void* stream, void* graph, const void**, const void*, size_t,
                                       int) {
    CALL;
    *stream_of(stream) = {static_cast<Graph*>(graph), false};
    return 0;
}
EXPORT int cuStreamGetCaptureInfo_v2(void* stream, int* state, uint64_t* id, void** graph,
                                     const void*** nodes, size_t* count) {
    Graph* found = stream_of(stream)->capturing;
    *state = found != nullptr;
    *id = 1;
    if (!graph) return 0;
    *graph = found;
    *nodes = nullptr;
    return *count = 0, 0;
}
EXPORT int cuStreamUpdateCaptureDependencies(void*, void**, size_t, unsigned) { CALL; return 0; }
EXPORT int cuGraphDestroy(void* graph) {
    delete static_cast<Graph*>(graph);
    live--;
    return 0;
}
EXPORT int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
    CALL;
    auto* made = new Executable{static_cast<Graph*>(graph), {}};
    made->add(*made->graph);
    live++;
    return *executable = made, 0;
}
EXPORT int cuGraphExecDestroy(void* executable) {
    delete static_cast<Executable*>(executable);
    live--;
    return 0;
}
EXPORT int cuGraphLaunch(void* executable, void*) {
    CALL;
    auto* made = static_cast<Executable*>(executable);
    made->run(*made->graph);
    graph_launches++;
    return 0;
}
EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
    CALL;
    auto& all = static_cast<Graph*>(graph)->nodes;
    for (size_t i = 0; nodes && i < all.size(); i++) nodes[i] = all[i].get();
    return *count = all.size(), 0;
}
EXPORT int cuGraphNodeGetType(void* node, int* type) { return *type = node_of(node)->type, 0; }
EXPORT int cuGraphKernelNodeGetParams_v2(void* node, KernelParameters* found) {
    CALL;
    node_of(node)->pointer = node_of(node)->bytes.data();
    found->function = node_of(node)->function;
    found->parameters = &node_of(node)->pointer;
    return 0;
}
EXPORT int cuFuncGetParamInfo(void*, size_t index, size_t* offset, size_t* nbytes) {
    if (index) return INVALID_VALUE;
    *offset = 0;
    return *nbytes = PARAMETERS, 0;
}
EXPORT int cuGraphMemcpyNodeGetParams(void* node, CopyParameters* found) {
    CALL;
    return *found = node_of(node)->copied, 0;
}
EXPORT int cuGraphMemsetNodeGetParams(void* node, FillParameters* found) {
    CALL;
    return *found = node_of(node)->filled, 0;
}
EXPORT int cuGraphExecKernelNodeSetParams_v2(void* executable, void* node,
                                             const KernelParameters* given) {
    CALL;
    auto* first = static_cast<const char*>(given->parameters[0]);
    static_cast<Executable*>(executable)->nodes.at(node_of(node)).bytes.assign(first, first + PARAMETERS);
    return 0;
}
EXPORT int cuGraphExecMemcpyNodeSetParams(void* executable, void* node, const CopyParameters* given,
                                          void*) {
    CALL;
    static_cast<Executable*>(executable)->nodes.at(node_of(node)).copied = *given;
    return 0;
}
EXPORT int cuGraphExecMemsetNodeSetParams(void* executable, void* node, const FillParameters* given,
                                          void*) {
    CALL;
    static_cast<Executable*>(executable)->nodes.at(node_of(node)).filled = *given;
    return 0;
}
EXPORT int cuGraphConditionalHandleCreate(uint64_t* condition, void*, void*, unsigned, unsigned) {
    static std::atomic<uint64_t> last{1000};
    CALL;
    return *condition = ++last, 0;
}
EXPORT int cuGraphAddNode(void** node, void* graph, const void**, size_t, NodeParameters* given) {
    CALL;
    auto made = std::make_unique<Node>(Node{CONDITION});
    made->body = std::make_unique<Graph>();
    made->body_handle = made->body.get();
    given->bodies = &made->body_handle;
    *node = made.get();
    static_cast<Graph*>(graph)->nodes.push_back(std::move(made));
    return 0;
}

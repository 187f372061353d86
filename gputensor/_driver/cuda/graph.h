// Graphs of a CUDA device after their capture: executables, and the parameters of their nodes.
//
// cuGraphKernelNodeGetParams returns one pointer for each of a kernel's parameters. Their offsets
// and lengths come from cuFuncGetParamInfo, which drivers before CUDA 12.4 lack; on such a driver
// the parameters of kernel nodes cannot be read.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gputensor/_driver/cuda/context.h"
#include "gputensor/_driver/graph_node.h"

namespace gputensor {

class CudaGraphs : protected CudaContext {
public:
    int graph_instantiate(uint64_t graph, uint64_t* executable) {
        if (!graph) return INVALID_HANDLE;
        int status = relaxed([&] {
            return give(executable, api.cuGraphInstantiateWithFlags, handle(graph), 0ull);
        });
        if (!status) {
            std::lock_guard<std::mutex> guard(templates_mutex);
            templates[*executable] = graph;
        }
        return status;
    }
    int graph_destroy(uint64_t graph) {
        if (!graph) return INVALID_HANDLE;
        {
            std::lock_guard<std::mutex> guard(templates_mutex);
            for (auto one = templates.begin(); one != templates.end();)
                one = one->second == graph ? templates.erase(one) : std::next(one);
        }
        return relaxed([&] { return api.cuGraphDestroy(handle(graph)); });
    }
    int graph_executable_destroy(uint64_t executable) {
        if (!executable) return INVALID_HANDLE;
        {
            std::lock_guard<std::mutex> guard(templates_mutex);
            templates.erase(executable);
        }
        return relaxed([&] { return api.cuGraphExecDestroy(handle(executable)); });
    }
    int graph_dump(uint64_t graph, const char* path) {
        if (!api.cuGraphDebugDotPrint) return NOT_SUPPORTED;
        if (!graph) return INVALID_HANDLE;
        return relaxed([&] { return api.cuGraphDebugDotPrint(handle(graph), path, VERBOSE); });
    }
    int graph_nodes(uint64_t graph, uint64_t* nodes, int capacity, int* count) {
        if (!graph) return INVALID_HANDLE;
        return current([&] {
            size_t size = 0;
            int status = api.cuGraphGetNodes(handle(graph), nullptr, &size);
            if (status) return status;
            std::vector<void*> found(size);
            if (size) status = api.cuGraphGetNodes(handle(graph), found.data(), &size);
            if (status) return status;
            for (size_t i = 0; i < size && i < size_t(std::max(capacity, 0)); i++)
                nodes[i] = number(found[i]);
            *count = int(size);
            return OK;
        });
    }
    int graph_node_get(uint64_t graph, uint64_t node, void* words, size_t capacity,
                       size_t* nbytes) {
        if (!graph || !node) return INVALID_HANDLE;
        return current([&] {
            std::vector<uint64_t> found;
            int status = read(handle(node), found);
            if (status) return status;
            if (found.size() * 8 <= capacity) memcpy(words, found.data(), found.size() * 8);
            *nbytes = found.size() * 8;
            return OK;
        });
    }
    int graph_node_set(uint64_t executable, uint64_t node, const void* words, size_t nbytes) {
        if (!executable || !node) return INVALID_HANDLE;
        if (!words || nbytes < 8 || nbytes % 8) return INVALID_VALUE;
        auto* given = static_cast<const uint64_t*>(words);
        return current([&] { return write(handle(executable), handle(node), given, nbytes / 8); });
    }
    int graph_update(uint64_t executable, uint64_t graph) {
        if (!executable || !graph) return INVALID_HANDLE;
        return relaxed([&] {
            UpdateResult result{};
            return api.cuGraphExecUpdate(handle(executable), handle(graph), &result);
        });
    }

    // ---- conditions: CUDA 12.3

    int condition_create(uint64_t stream, uint64_t* condition) {
        void* graph = nullptr;
        const void** before = nullptr;
        size_t count = 0;
        if (!api.cuGraphConditionalHandleCreate) return NOT_SUPPORTED;
        int status = capture_frontier(stream, &graph, &before, &count);
        if (status) return status;
        return relaxed([&] {
            return give(condition, api.cuGraphConditionalHandleCreate, graph, context, 0u, 0u);
        });
    }
    int condition_add(uint64_t stream, uint64_t condition, int kind, uint64_t* body) {
        if (!api.cuGraphAddNode) return NOT_SUPPORTED;
        if (!condition || kind < 0 || kind > 1) return INVALID_VALUE;
        NodeParameters given{};
        given.type = CONDITION;
        given.condition = condition;
        given.kind = kind;
        given.size = 1;
        given.context = context;
        int status = capture_node(stream, [&](void** node, void* graph, const void** before,
                                              size_t count) {
            return int(api.cuGraphAddNode(node, graph, before, count, &given));
        });
        if (!status) *body = number(given.bodies[0]);
        return status;
    }
    int capture_begin_body(uint64_t stream, uint64_t body, int mode) {
        if (!api.cuStreamBeginCaptureToGraph) return NOT_SUPPORTED;
        if (!body) return INVALID_HANDLE;
        return current([&] {
            return api.cuStreamBeginCaptureToGraph(handle(stream), handle(body), nullptr, nullptr,
                                                   0, mode);
        });
    }

protected:
    using CudaContext::CudaContext;

    // The graph of a capturing stream, and the nodes that the stream's next work comes after. The
    // list is CUDA's, valid until the next call about the stream.
    int capture_frontier(uint64_t stream, void** graph, const void*** nodes, size_t* size) {
        int state = 0;
        uint64_t id = 0;
        if (!stream) return ILLEGAL_STATE;
        int status = current([&] {
            const void* edges = nullptr;
            return api.cuStreamGetCaptureInfoWithEdges
                       ? api.cuStreamGetCaptureInfoWithEdges(handle(stream), &state, &id, graph,
                                                             nodes, &edges, size)
                       : api.cuStreamGetCaptureInfo(handle(stream), &state, &id, graph, nodes,
                                                    size);
        });
        if (status) return status;
        return state == 1 ? OK : state == 2 ? CAPTURE_INVALIDATED : ILLEGAL_STATE;
    }

    // Adds a node to the capture of a stream, after its work so far and before its later work.
    template <class F>
    int capture_node(uint64_t stream, F add) {
        void *graph = nullptr, *node = nullptr;
        const void** before = nullptr;
        size_t count = 0;
        if (!api.cuStreamUpdateCaptureDependencies) return NOT_SUPPORTED;
        int status = capture_frontier(stream, &graph, &before, &count);
        if (status) return status;
        return relaxed([&] {
            int status = add(&node, graph, before, count);
            // 1: the node replaces the dependencies of the stream's next work.
            return status ? status
                          : int(api.cuStreamUpdateCaptureDependencies(handle(stream), &node, 1, 1));
        });
    }
    // CUDA launches no executable into a capture (error 900). The graph that it was made of becomes a
    // node of the capture instead, with the parameters that it was captured with.
    int capture_child(uint64_t stream, uint64_t executable) {
        uint64_t child = 0;
        {
            std::lock_guard<std::mutex> guard(templates_mutex);
            auto found = templates.find(executable);
            if (found != templates.end()) child = found->second;
        }
        if (!child) return INVALID_HANDLE;
        if (!api.cuGraphAddChildGraphNode) return NOT_SUPPORTED;
        return capture_node(stream, [&](void** node, void* graph, const void** before,
                                        size_t count) {
            return int(api.cuGraphAddChildGraphNode(node, graph, before, count, handle(child)));
        });
    }

private:
    std::mutex templates_mutex;
    std::unordered_map<uint64_t, uint64_t> templates;   // the graph of each executable

    static constexpr unsigned VERBOSE = 1;  // CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE
    enum { KERNEL = 0, MEMCPY = 1, MEMSET = 2, HOST = 3, CONDITION = 13 };  // CUgraphNodeType

    // The first words of a kernel node. The offsets of its parameters follow, two to a word, then
    // the parameters. A kernel that was launched with one buffer has no offsets.
    struct KernelWords {
        uint64_t kind, function, kernel;
        uint32_t grid[3], block[3], shared_nbytes, count;
        uint64_t nbytes;
    };
    static constexpr size_t HEAD = sizeof(KernelWords) / 8;
    static_assert(sizeof(KernelWords) % 8 == 0, "parameters begin with a word");

    template <class Struct> static void keep(std::vector<uint64_t>& words, NodeKind kind,
                                             const Struct& value) {
        words.assign(1 + (sizeof(Struct) + 7) / 8, 0);
        words[0] = kind;
        memcpy(&words[1], &value, sizeof(Struct));
    }
    template <class Struct> static bool take(const uint64_t* words, size_t count, Struct& value) {
        if (count != 1 + (sizeof(Struct) + 7) / 8) return false;
        memcpy(&value, words + 1, sizeof(Struct));
        return true;
    }

    int read(void* node, std::vector<uint64_t>& words) {
        int type = 0;
        int status = api.cuGraphNodeGetType(node, &type);
        if (status) return status;
        if (type == KERNEL) return read_kernel(node, words);
        if (type == MEMCPY) {
            CopyParameters copy{};
            status = api.cuGraphMemcpyNodeGetParams(node, &copy);
            if (!status) keep(words, NODE_COPY, copy);
        } else if (type == MEMSET) {
            FillParameters fill{};
            status = api.cuGraphMemsetNodeGetParams(node, &fill);
            if (!status) keep(words, NODE_FILL, fill);
        } else if (type == HOST) {
            HostParameters host{};
            status = api.cuGraphHostNodeGetParams(node, &host);
            if (!status) keep(words, NODE_HOST, host);
        } else {
            words.assign(1, NODE_OTHER);
        }
        return status;
    }

    // Reads the parameters' offsets and bytes. NOT_SUPPORTED when the driver cannot report them, or
    // reports no parameter.
    int read_parameters(const KernelParameters& kernel, std::vector<uint32_t>& offsets,
                        std::vector<char>& bytes) {
        auto info = kernel.function ? api.cuFuncGetParamInfo : api.cuKernelGetParamInfo;
        void* named = kernel.function ? kernel.function : kernel.kernel;
        size_t offset = 0, nbytes = 0;
        if (!info || !named) return NOT_SUPPORTED;
        int status = info(named, 0, &offset, &nbytes);
        if (status) return NOT_SUPPORTED;
        for (; !status; status = info(named, offsets.size(), &offset, &nbytes)) {
            if (bytes.size() < offset + nbytes) bytes.resize(offset + nbytes);
            memcpy(&bytes[offset], kernel.parameters[offsets.size()], nbytes);
            offsets.push_back(uint32_t(offset));
        }
        return status == INVALID_VALUE ? OK : status;  // INVALID_VALUE: there is no such parameter
    }

    int read_kernel(void* node, std::vector<uint64_t>& words) {
        KernelParameters kernel{};
        int status = api.cuGraphKernelNodeGetParams(node, &kernel);
        if (status) return status;
        std::vector<uint32_t> offsets;
        std::vector<char> bytes;
        if (kernel.parameters) {
            status = read_parameters(kernel, offsets, bytes);
            if (status) return status;
        } else if (kernel.extra) {
            status = read_buffer(kernel.extra, bytes);
            if (status) return status;
        } else {
            return NOT_SUPPORTED;
        }
        KernelWords head{NODE_KERNEL, number(kernel.function), number(kernel.kernel), {}, {},
                         kernel.shared_nbytes, uint32_t(offsets.size()), bytes.size()};
        memcpy(head.grid, kernel.grid, sizeof(head.grid));
        memcpy(head.block, kernel.block, sizeof(head.block));
        size_t first = HEAD + (offsets.size() + 1) / 2;
        words.assign(first + (bytes.size() + 7) / 8, 0);
        memcpy(words.data(), &head, sizeof(head));
        std::copy(offsets.begin(), offsets.end(), reinterpret_cast<uint32_t*>(&words[HEAD]));
        std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data() + first));
        return OK;
    }

    // `extra` holds pairs: CU_LAUNCH_PARAM_BUFFER_POINTER (1) and the address,
    // CU_LAUNCH_PARAM_BUFFER_SIZE (2) and the size's address; CU_LAUNCH_PARAM_END (0) ends it.
    static int read_buffer(void** extra, std::vector<char>& bytes) {
        const char* buffer = nullptr;
        size_t nbytes = 0;
        for (; number(*extra); extra += 2) {
            if (number(*extra) == 1) buffer = static_cast<const char*>(extra[1]);
            else if (number(*extra) == 2) nbytes = *static_cast<size_t*>(extra[1]);
            else return NOT_SUPPORTED;
        }
        bytes.assign(buffer, buffer + nbytes);
        return OK;
    }

    int write(void* executable, void* node, const uint64_t* words, size_t count) {
        CopyParameters copy{};
        FillParameters fill{};
        HostParameters host{};
        if (words[0] == NODE_KERNEL) return write_kernel(executable, node, words, count);
        if (words[0] == NODE_COPY && take(words, count, copy))
            return api.cuGraphExecMemcpyNodeSetParams(executable, node, &copy, context);
        if (words[0] == NODE_FILL && take(words, count, fill))
            return api.cuGraphExecMemsetNodeSetParams(executable, node, &fill, context);
        if (words[0] == NODE_HOST && take(words, count, host))
            return api.cuGraphExecHostNodeSetParams(executable, node, &host);
        return words[0] == NODE_OTHER ? NOT_SUPPORTED : INVALID_VALUE;
    }

    int write_kernel(void* executable, void* node, const uint64_t* words, size_t count) {
        KernelWords head;
        if (count < HEAD) return INVALID_VALUE;
        memcpy(&head, words, sizeof(head));
        size_t first = HEAD + (size_t(head.count) + 1) / 2;
        if (count != first + (head.nbytes + 7) / 8) return INVALID_VALUE;
        auto* offsets = reinterpret_cast<const uint32_t*>(words + HEAD);
        char* bytes = reinterpret_cast<char*>(const_cast<uint64_t*>(words + first));
        size_t nbytes = head.nbytes;
        void* few[16];
        std::vector<void*> many;
        void** pointers = few;
        if (head.count > 16) {
            many.resize(head.count);
            pointers = many.data();
        }
        for (uint32_t i = 0; i < head.count; i++) pointers[i] = bytes + offsets[i];
        void* extra[] = {handle(1), bytes, handle(2), &nbytes, nullptr};
        KernelParameters kernel{};
        kernel.function = handle(head.function);
        kernel.kernel = handle(head.kernel);
        memcpy(kernel.grid, head.grid, sizeof(head.grid));
        memcpy(kernel.block, head.block, sizeof(head.block));
        kernel.shared_nbytes = head.shared_nbytes;
        if (head.count || !nbytes) kernel.parameters = pointers;
        else kernel.extra = extra;
        return api.cuGraphExecKernelNodeSetParams(executable, node, &kernel);
    }
};

}  // namespace gputensor

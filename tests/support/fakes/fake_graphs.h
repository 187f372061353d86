// Functions of the driver library for tests on captured graphs; included by fake_libcuda.cpp.
//
// A captured kernel (only fake_gpu.cpp has them) is a host function whose argument is a Launch.
#pragma once

struct KernelNodeParams {
    void* function;
    unsigned grid[3], block[3], shared;
    void** parameters;
    void** extra;
    void* kernel;
    void* context;
};
struct Memcpy3d {
    size_t src_x, src_y, src_z, src_lod;
    unsigned src_type;
    void* src_host;
    uint64_t src_device;
    void *src_array, *src_reserved;
    size_t src_pitch, src_height, dst_x, dst_y, dst_z, dst_lod;
    unsigned dst_type;
    void* dst_host;
    uint64_t dst_device;
    void *dst_array, *dst_reserved;
    size_t dst_pitch, dst_height, width, height, depth;
};
struct MemsetNodeParams {
    uint64_t dst;
    size_t pitch;
    unsigned value, element_size;
    size_t width, height;
};
struct HostNodeParams {
    void (*function)(void*);
    void* argument;
};
struct UpdateResultInfo {
    int result;
    void *node, *from_node;
};
static_assert(sizeof(KernelNodeParams) == 72 && sizeof(Memcpy3d) == 200, "CUDA's layouts");

struct Launch {
    void (*run)(const unsigned*, const unsigned*, const void*);
    unsigned grid[3], block[4];     // and the bytes of shared memory
    std::vector<char> parameters;
    void* function;
    void* pointer;  // to the parameters, for cuGraphKernelNodeGetParams
};

namespace {

constexpr unsigned UNIFIED = 4;  // CU_MEMORYTYPE_UNIFIED
constexpr uint64_t COPY_WORDS = gputensor::NODE_COPY, FILL_WORDS = gputensor::NODE_FILL,
                   HOST_WORDS = gputensor::NODE_HOST;

void run_launch(void* argument) {
    auto* queued = static_cast<Launch*>(argument);
    queued->run(queued->grid, queued->block, queued->parameters.data());
}

using Words = FakeDevice::NodeWords;

// Reads the words of a node from the host device, if the node has this kind and `is_kernel`.
int words_of(void* node, uint64_t kind, bool is_kernel, Words& words) {
    auto* named = static_cast<FakeDevice::Node*>(node);
    if (!named) return INVALID_VALUE;
    words = device().words(*named);
    bool launches = words.kind == HOST_WORDS && words.words[0] == uint64_t(&run_launch);
    return words.kind == kind && launches == is_kernel ? 0 : INVALID_VALUE;
}
int set(void* executable, void* node, const Words& words) {
    auto* named = static_cast<FakeDevice::Node*>(node);
    return safe_call([&] {
        return device().graph_node_set(number(executable), device().id_of(*named), &words,
                                       sizeof(words));
    });
}

}  // namespace

EXPORT int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
    if (flags) return INVALID_VALUE;
    return safe_call([=] {
        return make(executable, [=](uint64_t* out) {
            return device().graph_instantiate(number(graph), out);
        });
    });
}
// As CUDA, it launches nothing into a capture.
EXPORT int cuGraphLaunch(void* executable, void* stream) {
    return safe_call([=] {
        int active = 0;
        uint64_t id = 0;
        int status = stream ? device().capture_info(number(stream), &active, &id) : 0;
        if (status || active) return status ? status : 900;
        return device().graph_launch(number(executable), number(stream));
    });
}
EXPORT int cuGraphDestroy(void* graph) { return device().graph_destroy(number(graph)); }
EXPORT int cuGraphExecDestroy(void* executable) {
    return device().graph_executable_destroy(number(executable));
}
EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
    std::vector<void*> names;
    if (!device().names(number(graph), names)) return 400;
    for (size_t i = 0; nodes && i < names.size() && i < *count; i++) nodes[i] = names[i];
    *count = names.size();
    return 0;
}
EXPORT int cuGraphNodeGetType(void* node, int* type) {
    Words words;
    *type = !words_of(node, HOST_WORDS, true, words)    ? 0
            : !words_of(node, COPY_WORDS, false, words) ? 1
            : !words_of(node, FILL_WORDS, false, words) ? 2
            : !words_of(node, HOST_WORDS, false, words) ? 3
            : device().is_condition(*static_cast<FakeDevice::Node*>(node)) ? 13
                                                                           : 5;
    return 0;
}
EXPORT int cuGraphKernelNodeGetParams_v2(void* node, KernelNodeParams* found) {
    Words words;
    int status = words_of(node, HOST_WORDS, true, words);
    if (status) return status;
    auto* launch = reinterpret_cast<Launch*>(words.words[1]);
    *found = {};
    found->function = launch->function;
    memcpy(found->grid, launch->grid, sizeof(launch->grid));
    memcpy(found->block, launch->block, sizeof(found->block));
    found->shared = launch->block[3];
    launch->pointer = launch->parameters.data();
    found->parameters = &launch->pointer;
    return 0;
}
EXPORT int cuGraphExecKernelNodeSetParams_v2(void* executable, void* node,
                                             const KernelNodeParams* given) {
    Words words;
    int status = words_of(node, HOST_WORDS, true, words);
    if (status) return status;
    auto* launch = new Launch(*reinterpret_cast<Launch*>(words.words[1]));
    if (given->function != launch->function || given->extra || given->kernel) return INVALID_VALUE;
    memcpy(launch->grid, given->grid, sizeof(launch->grid));
    memcpy(launch->block, given->block, sizeof(given->block));
    launch->block[3] = given->shared;
    memcpy(launch->parameters.data(), given->parameters[0], launch->parameters.size());
    words.words[1] = reinterpret_cast<uint64_t>(launch);
    return set(executable, node, words);
}
EXPORT int cuGraphMemcpyNodeGetParams(void* node, Memcpy3d* found) {
    Words words;
    int status = words_of(node, COPY_WORDS, false, words);
    if (status) return status;
    *found = {};
    found->src_type = found->dst_type = UNIFIED;
    found->dst_device = words.words[0];
    found->src_device = words.words[1];
    found->width = words.words[2];
    found->height = found->depth = 1;
    return 0;
}
EXPORT int cuGraphExecMemcpyNodeSetParams(void* executable, void* node, const Memcpy3d* given,
                                          void* context) {
    if (given->src_type != UNIFIED || given->dst_type != UNIFIED || given->height != 1 ||
        context != &primary_context)
        return INVALID_VALUE;
    return set(executable, node,
               {COPY_WORDS, {given->dst_device, given->src_device, given->width}});
}
EXPORT int cuGraphMemsetNodeGetParams(void* node, MemsetNodeParams* found) {
    Words words;
    int status = words_of(node, FILL_WORDS, false, words);
    if (status) return status;
    size_t width = words.words[4];
    *found = {words.words[0], 0, unsigned(words.words[3]), unsigned(width), words.words[2] / width, 1};
    return 0;
}
EXPORT int cuGraphExecMemsetNodeSetParams(void* executable, void* node,
                                          const MemsetNodeParams* given, void* context) {
    if (given->height != 1 || context != &primary_context) return INVALID_VALUE;
    size_t width = given->element_size;
    return set(executable, node, {FILL_WORDS, {given->dst, 0, given->width * width, given->value,
                                               width}});
}
EXPORT int cuGraphHostNodeGetParams(void* node, HostNodeParams* found) {
    Words words;
    int status = words_of(node, HOST_WORDS, false, words);
    if (status) return status;
    *found = {reinterpret_cast<void (*)(void*)>(words.words[0]),
              reinterpret_cast<void*>(words.words[1])};
    return 0;
}
EXPORT int cuGraphExecHostNodeSetParams(void* executable, void* node, const HostNodeParams* given) {
    return set(executable, node, {HOST_WORDS, {reinterpret_cast<uint64_t>(given->function),
                                               reinterpret_cast<uint64_t>(given->argument)}});
}
EXPORT int cuGraphExecUpdate_v2(void* executable, void* graph, UpdateResultInfo* result) {
    *result = {};
    return safe_call([=] { return device().graph_update(number(executable), number(graph)); });
}
#ifndef NO_CONDITIONS
struct ConditionParams {
    int type, reserved[3];
    uint64_t handle;
    int kind;
    unsigned size;
    void** bodies;
    void* context;
    uint64_t rest[26];
};
static_assert(sizeof(ConditionParams) == 256, "CUDA's layout");

static std::set<int> indices_of(const void* const* nodes, size_t count) {
    std::set<int> found;
    for (size_t i = 0; i < count; i++)
        found.insert(static_cast<const FakeDevice::Node*>(nodes[i])->index);
    return found;
}
EXPORT int cuGraphConditionalHandleCreate(uint64_t* handle, void* graph, void* context,
                                          unsigned value, unsigned flags) {
    if (value || flags || context != &primary_context) return INVALID_VALUE;
    return safe_call([=] {
        auto made = std::make_shared<uint32_t>(0);
        static_cast<gputensor::Graph*>(graph)->conditions.push_back(made);
        *handle = reinterpret_cast<uint64_t>(made.get());
        return 0;
    });
}
EXPORT int cuGraphAddNode(void** node, void* graph, const void** before, size_t count,
                          ConditionParams* given) {
    if (given->type != 13 || given->size != 1 || given->context != &primary_context)
        return INVALID_VALUE;
    return safe_call([=] {
        auto* bodies = new uint64_t(0);  // never freed; CUDA's lives as long as the graph
        FakeDevice::Node* made = nullptr;
        int status = device().add_condition(graph, indices_of(before, count), given->handle,
                                            given->kind, &made, bodies);
        if (status) return status;
        *node = made;
        given->bodies = reinterpret_cast<void**>(bodies);
        return 0;
    });
}
EXPORT int cuGraphAddChildGraphNode(void** node, void* graph, const void** before, size_t count,
                                    void* child) {
    return safe_call([=] {
        FakeDevice::Node* made = nullptr;
        int status = device().add_child(graph, indices_of(before, count), number(child), &made);
        if (!status) *node = made;
        return status;
    });
}
EXPORT int cuStreamUpdateCaptureDependencies(void* stream, void** nodes, size_t count,
                                             unsigned flags) {
    if (flags != 1) return INVALID_VALUE;
    device().stand_at(number(stream), indices_of(nodes, count));
    return 0;
}
EXPORT int cuStreamBeginCaptureToGraph(void* stream, void* graph, const void** before,
                                       const void* edges, size_t count, int mode) {
    if (before || edges || count) return INVALID_VALUE;
    return safe_call([=] {
        int status = device().capture_begin_body(number(stream), number(graph), mode);
        captures += !status;
        return status;
    });
}
#endif
#ifndef NO_PARAM_INFO
// A kernel of fake_gpu.cpp has one parameter.
EXPORT int cuFuncGetParamInfo(void* function, size_t index, size_t* offset, size_t* nbytes) {
    size_t size = parameters_nbytes(function);
    if (index || !size) return INVALID_VALUE;
    *offset = 0;
    *nbytes = size;
    return 0;
}
#endif

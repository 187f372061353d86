// A function at one size as a CUDA graph: its steps, captured once and replayed.
//
// The steps are captured twice, with inputs and outputs at other addresses, each moved by another
// distance. Words that differ between the captures contain these addresses
// (streams/capture/node_patches.h), and a run at new addresses sets their nodes. Conditions are nodes
// with bodies, whose flags the GPU reads. A capture runs no work, so the memory for the two sets of
// addresses is freed afterwards. If the driver refuses a call, or a difference is not an address, there
// is no graph, and the session launches the steps one by one.
#pragma once

#include "gputensor/programs/c_library/machine.h"
#include "gputensor/streams/capture/node_patches.h"

namespace gputensor {

// Streams for captures: of the function, then of bodies by depth. The session destroys them.
struct CaptureStreams {
    explicit CaptureStreams(const Gpu& gpu) : gpu(gpu) {}
    ~CaptureStreams() {
        for (uint64_t stream : all) gpu->stream_destroy(stream);
    }
    CaptureStreams(const CaptureStreams&) = delete;

    int at(size_t depth, uint64_t* stream) {
        while (all.size() <= depth) {
            uint64_t made = 0;
            int status = gpu->stream_create(&made, 0);
            if (status) return status;
            all.push_back(made);
        }
        *stream = all[depth];
        return 0;
    }

    const Gpu& gpu;
    std::vector<uint64_t> all;
};

// The machine of a capture: work goes to the stream of the open body.
struct NativeCapture : NativeMachine {
    static constexpr bool CAPTURES = true;
    static constexpr int RELAXED = 2, TOO_LARGE = -2;
    static constexpr size_t MOST_LAUNCHES = 1 << 16;  // functions with more are not captured

    NativeCapture(NativeTools& tools, CaptureStreams& streams)
        : NativeMachine{tools, 0}, streams(streams) {}

    // Captures a whole function; a capture that fails leaves no graph.
    int run(const Steps& steps, const uint64_t* addresses) {
        int status = streams.at(0, &stream);
        if (!status) status = gpu()->capture_begin(stream, RELAXED);
        if (status) return status;
        try {
            status = steps.run(*this, addresses);
        } catch (...) {
            end(-1);
            throw;
        }
        return end(status);
    }

    int launch(size_t number, const uint64_t* spans) {
        count += tools.program.lists[number].list.records.size();
        return count > MOST_LAUNCHES ? TOO_LARGE : NativeMachine::launch(number, spans);
    }
    int copy(uint64_t dst, uint64_t src, uint64_t nbytes) {
        return ++count > MOST_LAUNCHES ? TOO_LARGE : NativeMachine::copy(dst, src, nbytes);
    }
    int create(uint64_t* condition) {
        if (!tools.program.setter) return NOT_SUPPORTED;
        int status = gpu()->condition_create(stream, condition);
        if (!status) made.conditions.push_back(*condition);
        return status;
    }
    int set(uint64_t flag, std::initializer_list<std::pair<uint64_t, ConditionRule>> rules) {
        ConditionParameters given{};
        size_t at = 0;
        given.flag = flag;
        for (auto [condition, rule] : rules) {
            given.conditions[at] = condition;
            given.rules[at++] = rule;
        }
        uint64_t* words = tools.parameters(sizeof(given) / 8);
        memcpy(words, &given, sizeof(given));
        return gpu()->kernel_launch(tools.program.setter, 1, 1, 1, 1, 1, 1, 0, stream, words,
                                    sizeof(given));
    }
    template <class Work> int body(uint64_t condition, bool is_loop, Work work) {
        uint64_t around = stream, inner = 0, graph = 0;
        int status = gpu()->condition_add(stream, condition, is_loop, &graph);
        if (!status) status = streams.at(depth + 1, &inner);
        if (!status) status = gpu()->capture_begin_body(inner, graph, RELAXED);
        if (status) return status;
        made.graphs.push_back(graph);
        stream = inner;
        depth++;
        auto leave = [&] {
            uint64_t ended = 0;
            int found = gpu()->capture_end(inner, &ended);
            stream = around;
            depth--;
            return found;
        };
        try {
            status = work();
        } catch (...) {
            leave();
            throw;
        }
        int ended = leave();
        return status ? status : ended;
    }

    Captured made{{0}, {}};  // the first graph is the caller's to destroy

private:
    int end(int status) {
        uint64_t graph = 0;
        int ended = gpu()->capture_end(stream, &graph);
        if (!status) status = ended;
        if (status && graph) gpu()->graph_destroy(graph);
        if (!status) made.graphs[0] = graph;
        return status;
    }

    CaptureStreams& streams;
    size_t depth = 0, count = 0;
};

class NativeGraph {
public:
    NativeGraph(const Gpu& gpu, uint64_t arena) : arena(arena), gpu(gpu), driver{gpu.cuda.device} {}
    ~NativeGraph() {
        if (executable) gpu->graph_executable_destroy(executable);
        if (captured.graphs[0]) gpu->graph_destroy(captured.graphs[0]);
    }
    NativeGraph(const NativeGraph&) = delete;

    // Captures a function; `addresses` are those of its pieces, and inputs and outputs are replaced.
    void make(NativeTools& tools, CaptureStreams& streams, const NativeBinding& binding,
              std::vector<uint64_t> addresses) {
        size_t count = binding.inputs.size() + binding.outputs.size();
        std::vector<Span> spans;
        uint64_t nbytes = PLACE * (count + 1);
        for (size_t i = 0; i < count; i++) nbytes += spaced(size_of(binding, i));
        GpuMemory memory(gpu, nbytes, "finding addresses in a graph");
        uint64_t place = memory.ptr;
        for (size_t i = 0; i < count; i++) {
            uint64_t first = place + (i < binding.inputs.size() ? ALIGNMENT : 0);
            spans.push_back({first, first + PLACE * (i + 1), size_of(binding, i)});
            place += spaced(size_of(binding, i));
        }
        NativeCapture two(tools, streams), one(tools, streams);
        for (size_t i = 0; i < count; i++) addresses[1 + i] = spans[i].second;
        int status = two.run(binding.steps, addresses.data());
        for (size_t i = 0; i < count; i++) addresses[1 + i] = spans[i].first;
        if (!status) status = one.run(binding.steps, addresses.data());
        captured = one.made;
        if (!status) status = patches.compare(&driver, captured, two.made, spans);
        if (two.made.graphs[0]) gpu->graph_destroy(two.made.graphs[0]);
        if (!status && !patches.opaque) status = gpu->graph_instantiate(captured.graphs[0], &executable);
    }

    bool is_made() const { return executable && !is_refused; }

    // Queues a run with inputs and outputs at these addresses. False if the driver refuses to set a node.
    bool launch(const uint64_t* moving, uint64_t stream) {
        int status = patches.apply(&driver, executable, moving);
        if (status == NOT_SUPPORTED || status == INVALID_VALUE || status == GRAPH_UPDATE_FAILED) {
            is_refused = true;
            return false;
        }
        gpu.check(status, "setting a node of a graph");
        gpu.check(gpu->graph_launch(executable, stream), "launching a graph");
        return true;
    }

    const uint64_t arena;  // address at the capture

private:
    // Inputs have only the guaranteed alignment, because the library's choices may depend on it.
    static constexpr uint64_t ALIGNMENT = 16, PLACE = 512;

    // The driver as NodePatches calls it.
    struct Driver {
        CudaDevice* self;
        int graph_nodes(CudaDevice* device, uint64_t graph, uint64_t* nodes, int capacity, int* count) {
            return device->graph_nodes(graph, nodes, capacity, count);
        }
        int graph_node_get(CudaDevice* device, uint64_t graph, uint64_t node, void* words,
                           size_t capacity, size_t* nbytes) {
            return device->graph_node_get(graph, node, words, capacity, nbytes);
        }
        int graph_node_set(CudaDevice* device, uint64_t executable, uint64_t node, const void* words,
                           size_t nbytes) {
            return device->graph_node_set(executable, node, words, nbytes);
        }
    };

    static uint64_t spaced(uint64_t nbytes) { return (nbytes / PLACE + 2) * PLACE; }
    static uint64_t size_of(const NativeBinding& binding, size_t number) {
        size_t inputs = binding.inputs.size();
        return uint64_t(NativeProgram::nbytes_of(number < inputs ? binding.inputs[number]
                                                                 : binding.outputs[number - inputs]));
    }

    const Gpu& gpu;
    Driver driver;
    NodePatches patches;
    Captured captured{{0}, {}};
    uint64_t executable = 0;
    bool is_refused = false;
};

}  // namespace gputensor

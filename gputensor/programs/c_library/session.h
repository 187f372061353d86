// A session: the states, the arena, the library's plans and the graphs of one caller. It runs a function
// as a graph (graph.h), or launch by launch if there is none.
#pragma once

#include "gputensor/programs/c_library/graph.h"

namespace gputensor {

class NativeSession {
public:
    explicit NativeSession(std::shared_ptr<NativeProgram> given)
        : program(std::move(given)), gpu(program->gpu), tools(*program), streams(gpu) {
        uint64_t total = 0;
        for (auto& [name, spec] : program->states) {
            state_ptrs[name] = total;
            total += (uint64_t(NativeProgram::nbytes_of(spec)) + 255) / 256 * 256;
        }
        states.take(gpu, total, "states");
        for (auto& [name, spec] : program->states) {
            uint64_t& ptr = state_ptrs[name];
            ptr += states.ptr;
            auto first = program->arrays.find("state." + name);
            auto nbytes = size_t(NativeProgram::nbytes_of(spec));
            int status = first == program->arrays.end()
                             ? gpu->fill_async(ptr, 0, 1, nbytes, 0)
                             : gpu->copy_async(ptr, uint64_t(first->second.entry->data), nbytes, 0);
            gpu.check(status, "writing the state " + MappedFile::shown(name));
        }
        gpu.check(gpu->stream_synchronize(0), "writing states");
    }
    ~NativeSession() {
        uint64_t before = 0;
        gpu->synchronize();
        // The libraries' handles must be destroyed in the context that they were made in.
        bool is_inside = !gpu->context_enter(&before);
        graphs.clear();
        tools.products.reset();
        if (is_inside) gpu->context_leave(before);
    }

    void wait() { gpu.check(gpu->synchronize(), "waiting for the GPU"); }

    void run(const char* function, size_t input_count, const gputensor_tensor* inputs,
             size_t output_count, gputensor_tensor* outputs, uint64_t stream) {
        NativeBinding& binding = find(function, input_count, inputs);
        if (output_count != binding.outputs.size())
            refuse("outputs of " + binding.function, std::to_string(output_count),
                   std::to_string(binding.outputs.size()));
        for (size_t i = 0; i < output_count; i++)
            if (!fits(binding.outputs[i], outputs[i]))
                refuse("output " + std::to_string(i) + " of " + binding.function, text_of(outputs[i]),
                       binding.outputs[i].text() + ", row-major, on the program's GPU");
        check_addresses("input", binding.inputs, inputs, 16);
        check_addresses("output", binding.outputs, outputs, 256);
        program->prepare(binding);
        if (uint64_t(binding.arena_nbytes) > arena.size) {
            wait();
            arena.take(gpu, uint64_t(binding.arena_nbytes), "temporaries");
        }
        addresses.assign(1, arena.ptr);
        for (size_t i = 0; i < input_count; i++) addresses.push_back(address_of(inputs[i]));
        for (size_t i = 0; i < output_count; i++) addresses.push_back(address_of(outputs[i]));
        for (const NativeFixed& one : *binding.fixed)
            addresses.push_back(one.is_state ? state_ptrs.at(one.name)
                                             : program->arrays.at(one.name).ptr);
        uint64_t before = 0;
        gpu.check(gpu->context_enter(&before), "entering the context");
        try {
            queue(binding, stream);
        } catch (...) {
            gpu->context_leave(before);
            throw;
        }
        gpu->context_leave(before);
    }

private:
    static constexpr int DL_CUDA = 2;

    // Queues a run at `addresses`.
    void queue(const NativeBinding& binding, uint64_t stream) {
        int is_capturing = 0;
        uint64_t id = 0;
        gpu.check(gpu->capture_info(stream, &is_capturing, &id), "querying the stream");
        if (!is_capturing) {
            NativeGraph& graph = graph_of(binding);
            if (graph.is_made() && graph.launch(addresses.data() + 1, stream)) return;
        }
        NativeMachine machine{tools, stream};
        int status = binding.steps.run(machine, addresses.data());
        if (!machine.problem.empty()) throw ProgramFault(GPUTENSOR_PROGRAM_FAILED, machine.problem);
        gpu.check(status, "running " + binding.function);
    }

    // The graph for the current arena, made at the first run; empty if that fails.
    NativeGraph& graph_of(const NativeBinding& binding) {
        std::unique_ptr<NativeGraph>& graph = graphs[&binding];
        if (graph && graph->arena == arena.ptr) return *graph;
        graph = std::make_unique<NativeGraph>(gpu, arena.ptr);
        try {
            graph->make(tools, streams, binding, addresses);
        } catch (const ProgramFault&) {
        }
        return *graph;
    }

    // ---- tensors

    static uint64_t address_of(const gputensor_tensor& one) {
        return reinterpret_cast<uint64_t>(one.data) + one.byte_offset;
    }

    // Whether a tensor is on the GPU, has this dtype and these extents, and is row-major.
    bool fits(const NativeSpec& wanted, const gputensor_tensor& given) const {
        const NativeType* type = native_type(wanted.dtype);
        if (given.device.type != DL_CUDA || given.device.id != gpu.ordinal ||
            given.ndim != int(wanted.shape.size()) || given.dtype.code != type->code ||
            given.dtype.bits != type->bits || given.dtype.lanes != 1 || (given.ndim && !given.shape))
            return false;
        int64_t step = 1;
        for (int axis = given.ndim - 1; axis >= 0; axis--) {
            int64_t extent = wanted.shape[size_t(axis)];
            if (given.shape[axis] != extent) return false;
            if (given.strides && extent > 1 && given.strides[axis] != step) return false;
            step *= extent;
        }
        return true;
    }

    std::string text_of(const gputensor_tensor& given) const {
        NativeSpec found{"an unknown dtype", {}};
        for (const char* name : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                 "uint64", "float16", "bfloat16", "float32", "float64", "complex64",
                                 "complex128", "float8_e4m3", "float8_e5m2"}) {
            const NativeType* type = native_type(name);
            if (given.dtype.code == type->code && given.dtype.bits == type->bits) found.dtype = name;
        }
        if (given.dtype.lanes != 1)
            found.dtype += " of " + std::to_string(given.dtype.lanes) + " lanes";
        if (given.ndim >= 0 && given.ndim <= 16 && (given.shape || !given.ndim))
            found.shape.assign(given.shape, given.shape + given.ndim);
        bool is_there = given.device.type == DL_CUDA && given.device.id == gpu.ordinal;
        return found.text() + (is_there ? "" : " of another device");
    }

    static void check_addresses(const char* what, const std::vector<NativeSpec>& specs,
                                const gputensor_tensor* all, uint64_t alignment) {
        for (size_t i = 0; i < specs.size(); i++) {
            if (!all[i].data && NativeProgram::nbytes_of(specs[i]))
                refuse(what + (" " + std::to_string(i)), "NULL", "the address of memory of the GPU");
            if (address_of(all[i]) % alignment)
                refuse(what + (" " + std::to_string(i)), "an unaligned address",
                       "a multiple of " + std::to_string(alignment));
        }
    }

    NativeBinding& find(const char* function, size_t count, const gputensor_tensor* inputs) {
        std::string known, sizes;
        const NativeBinding* same = nullptr;
        for (auto& one : program->bindings) {
            if (one->function != function) {
                if (known.find(one->function) == std::string::npos)
                    known += (known.empty() ? "" : ", ") + one->function;
                continue;
            }
            same = one.get();
            bool does_fit = one->inputs.size() == count;
            for (size_t i = 0; does_fit && i < count; i++) does_fit = fits(one->inputs[i], inputs[i]);
            if (does_fit) return *one;
            sizes += (sizes.empty() ? "(" : "; (") + text_of(one->inputs) + ")";
        }
        if (known.empty()) known = "a function whose calls all have launches";
        if (!same) refuse("function", MappedFile::shown(function), known);
        std::string what = std::string("inputs of ") + function;
        if (same->inputs.size() != count)
            refuse(what, std::to_string(count), std::to_string(same->inputs.size()));
        std::string got;
        for (size_t i = 0; i < count; i++) got += (i ? ", " : "") + text_of(inputs[i]);
        refuse(what, "(" + got + ")", "row-major tensors of a compiled size: " + sizes);
    }

    static std::string text_of(const std::vector<NativeSpec>& specs) {
        std::string found;
        for (size_t i = 0; i < specs.size(); i++) found += (i ? ", " : "") + specs[i].text();
        return found;
    }

    std::shared_ptr<NativeProgram> program;
    const Gpu& gpu;
    NativeTools tools;
    CaptureStreams streams;
    std::map<std::string, uint64_t> state_ptrs;
    GpuMemory states, arena;
    std::map<const NativeBinding*, std::unique_ptr<NativeGraph>> graphs;
    std::vector<uint64_t> addresses;
};

}  // namespace gputensor

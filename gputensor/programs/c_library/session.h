// A session: the states, the arena and the library's plans of one caller, and how a function runs.
#pragma once

#include "gputensor/programs/c_library/program.h"

namespace gputensor {

class NativeSession {
public:
    explicit NativeSession(std::shared_ptr<NativeProgram> given)
        : program(std::move(given)), gpu(program->gpu),
          products(std::make_unique<NativeProducts>(gpu.capability)) {
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
        // The libraries' handles go with the context that they were made in.
        bool is_inside = !gpu->context_enter(&before);
        products.reset();
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
        check_aligned("input", input_count, inputs, 16);
        check_aligned("output", output_count, outputs, 256);
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
        Machine machine{*this, stream, {}};
        uint64_t before = 0;
        gpu.check(gpu->context_enter(&before), "entering the context");
        int status;
        try {
            status = binding.steps.run(machine, addresses.data());
        } catch (...) {
            gpu->context_leave(before);
            throw;
        }
        gpu->context_leave(before);
        if (!machine.problem.empty()) throw ProgramFault(GPUTENSOR_PROGRAM_FAILED, machine.problem);
        gpu.check(status, "running " + binding.function);
    }

private:
    static constexpr size_t BUFFER_WORDS = 4096;  // LaunchList::MOST_PARAMETERS and a little more
    static constexpr int DL_CUDA = 2;

    // What steps are run by (ahead/launches/steps.h).
    struct Machine {
        NativeSession& session;
        uint64_t stream;
        std::string problem;

        int launch(size_t number, const uint64_t* spans) {
            const NativeList& one = session.program->lists[number];
            uint64_t* words = session.words.data();
            for (size_t i = 0; i < one.list.records.size(); i++) {
                const LaunchRecord& record = one.list.records[i];
                one.list.fill(record, spans, words);
                int status = launch_one(record, one.functions[i], words);
                if (status) return status;
            }
            return 0;
        }

        int launch_one(const LaunchRecord& record, uint64_t function, const uint64_t* words) {
            const Gpu& gpu = session.gpu;
            const uint32_t *grid = record.grid, *block = record.block;
            switch (record.kind) {
                case LAUNCH_COPY: return gpu->copy_async(words[0], words[1], words[2], stream);
                case LAUNCH_FILL:
                    return gpu->fill_async(words[0], uint32_t(words[1]), int(words[2]), words[3], stream);
                case LAUNCH_PRODUCT: return product(record, words);
                default:
                    return gpu->kernel_launch(function, grid[0], grid[1], grid[2], block[0], block[1],
                                              block[2], record.shared_nbytes, stream, words,
                                              record.nbytes);
            }
        }

        int product(const LaunchRecord& record, const uint64_t* words) {
            gt_product given;
            memcpy(&given, words, sizeof(given));
            auto memory = [&](size_t nbytes) {
                if (session.workspace.size < nbytes)
                    session.workspace.take(session.gpu, nbytes, "matrix products");
                return session.workspace.ptr;
            };
            int status = session.products->queue(given, &record, stream, memory, &problem);
            if (status > 0)
                problem = "a matrix product failed: status " + std::to_string(status) + " of cuBLAS";
            return status;
        }

        int copy(uint64_t dst, uint64_t src, uint64_t nbytes) {
            return session.gpu->copy_async(dst, src, nbytes, stream);
        }
        int write_index(uint64_t dst, int64_t value) {
            int status = session.gpu->fill_async(dst, uint32_t(value), 4, 1, stream);
            if (status) return status;
            return session.gpu->fill_async(dst + 4, uint32_t(uint64_t(value) >> 32), 4, 1, stream);
        }
        int read_flag(uint64_t address, bool* flag) {
            unsigned char found = 0;
            int status = session.gpu->copy_async(uint64_t(&found), address, 1, stream);
            if (!status) status = session.gpu->stream_synchronize(stream);
            *flag = found;
            return status;
        }
    };

    // ---- tensors

    static uint64_t address_of(const gputensor_tensor& one) {
        return reinterpret_cast<uint64_t>(one.data) + one.byte_offset;
    }

    // Whether a tensor is on the GPU, of these extents, and row-major.
    bool fits(const NativeSpec& wanted, const gputensor_tensor& given) const {
        const NativeType* type = native_type(wanted.dtype);
        if (given.device.type != DL_CUDA || given.device.id != gpu.ordinal ||
            given.ndim != int(wanted.shape.size()) || given.dtype.code != type->code ||
            given.dtype.bits != type->bits || given.dtype.lanes != 1)
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
        if (given.ndim >= 0 && given.ndim <= 16 && (given.shape || !given.ndim))
            found.shape.assign(given.shape, given.shape + given.ndim);
        bool is_there = given.device.type == DL_CUDA && given.device.id == gpu.ordinal;
        return found.text() + (is_there ? "" : " of another device");
    }

    static void check_aligned(const char* what, size_t count, const gputensor_tensor* all,
                              uint64_t alignment) {
        for (size_t i = 0; i < count; i++)
            if (address_of(all[i]) % alignment)
                refuse(what + (" " + std::to_string(i)), "another address",
                       "a multiple of " + std::to_string(alignment));
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
        if (known.empty()) known = "one whose calls all have launches";
        if (!same) refuse("function", MappedFile::shown(function), known);
        std::string what = std::string("inputs of ") + function;
        if (same->inputs.size() != count)
            refuse(what, std::to_string(count), std::to_string(same->inputs.size()));
        std::string got;
        for (size_t i = 0; i < count; i++) got += (i ? ", " : "") + text_of(inputs[i]);
        refuse(what, "(" + got + ")", "row-major tensors of a size that it was compiled for: " + sizes);
    }

    static std::string text_of(const std::vector<NativeSpec>& specs) {
        std::string found;
        for (size_t i = 0; i < specs.size(); i++) found += (i ? ", " : "") + specs[i].text();
        return found;
    }

    std::shared_ptr<NativeProgram> program;
    const Gpu& gpu;
    std::unique_ptr<NativeProducts> products;
    std::map<std::string, uint64_t> state_ptrs;
    GpuMemory states, arena, workspace;
    std::vector<uint64_t> addresses, words = std::vector<uint64_t>(BUFFER_WORDS);
};

}  // namespace gputensor

// The machine that runs steps (ahead/launches/steps.h): it queues work on a stream of a GPU.
#pragma once

#include "gputensor/programs/c_library/program.h"

namespace gputensor {

// Resources of one session: the library's plans, their workspace, and a buffer for parameters.
struct NativeTools {
    explicit NativeTools(NativeProgram& given)
        : program(given), products(std::make_unique<NativeProducts>(given.gpu.capability)) {}

    // A buffer for `count` words of parameters, with zeros after them: a launch may read more words than
    // its record has, because the kernel's own parameters may be longer.
    uint64_t* parameters(size_t count) {
        if (count < filled) memset(words.data() + count, 0, (filled - count) * 8);
        filled = count;
        return words.data();
    }

    NativeProgram& program;
    std::unique_ptr<NativeProducts> products;
    GpuMemory workspace;

private:
    size_t filled = 0;
    // LaunchList::MOST_PARAMETERS and a little more.
    std::vector<uint64_t> words = std::vector<uint64_t>(4096);
};

struct NativeMachine {
    static constexpr bool CAPTURES = false;

    NativeTools& tools;
    uint64_t stream;
    std::string problem = {};  // why a product failed

    const Gpu& gpu() const { return tools.program.gpu; }

    int launch(size_t number, const uint64_t* spans) {
        const NativeList& one = tools.program.lists[number];
        for (size_t i = 0; i < one.list.records.size(); i++) {
            const LaunchRecord& record = one.list.records[i];
            uint64_t* words = tools.parameters(LaunchList::word_count(record));
            one.list.fill(record, spans, words);
            int status = launch_one(record, one.functions[i], words);
            if (status) return status;
        }
        return 0;
    }
    int copy(uint64_t dst, uint64_t src, uint64_t nbytes) {
        return gpu()->copy_async(dst, src, nbytes, stream);
    }
    int write_index(uint64_t dst, int64_t value) {
        int status = gpu()->fill_async(dst, uint32_t(value), 4, 1, stream);
        if (status) return status;
        return gpu()->fill_async(dst + 4, uint32_t(uint64_t(value) >> 32), 4, 1, stream);
    }
    int read_flag(uint64_t address, bool* flag) {
        unsigned char found = 0;
        int status = gpu()->copy_async(uint64_t(&found), address, 1, stream);
        if (!status) status = gpu()->stream_synchronize(stream);
        *flag = found;
        return status;
    }

private:
    int launch_one(const LaunchRecord& record, uint64_t function, const uint64_t* words) {
        const uint32_t *grid = record.grid, *block = record.block;
        switch (record.kind) {
            case LAUNCH_COPY: return copy(words[0], words[1], words[2]);
            case LAUNCH_FILL:
                return gpu()->fill_async(words[0], uint32_t(words[1]), int(words[2]), words[3], stream);
            case LAUNCH_PRODUCT: return product(record, words);
            default:
                return gpu()->kernel_launch(function, grid[0], grid[1], grid[2], block[0], block[1],
                                            block[2], record.shared_nbytes, stream, words,
                                            record.nbytes);
        }
    }

    int product(const LaunchRecord& record, const uint64_t* words) {
        gt_product given;
        memcpy(&given, words, sizeof(given));
        auto memory = [&](size_t nbytes) {
            if (tools.workspace.size < nbytes)
                tools.workspace.take(gpu(), nbytes, "matrix products");
            return tools.workspace.ptr;
        };
        int status = tools.products->queue(given, &record, stream, memory, &problem);
        if (status > 0)
            problem = "a matrix product failed: status " + std::to_string(status) + " of cuBLAS";
        return status;
    }
};

}  // namespace gputensor

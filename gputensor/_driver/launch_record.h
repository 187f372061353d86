// Work of a stream in binary form: the records of launches, copies, fills and library products that
// a program keeps and a phantom GPU makes. The layout is that of files: little-endian, 64 bytes a
// record, 16 a patch; parameters are 8-byte words.
#pragma once

#include <cstdint>

namespace gputensor {

enum LaunchKind : uint32_t {
    LAUNCH_KERNEL = 0,   // parameters: the kernel's one struct
    LAUNCH_COPY = 1,     // parameters: CopyWork
    LAUNCH_FILL = 2,     // parameters: FillWork
    LAUNCH_PRODUCT = 3,  // parameters: struct Product of blas/plan, for a library
    LAUNCH_KINDS = 4
};

struct LaunchRecord {
    uint32_t kind;
    uint32_t kernel;  // a number that the owner of the records gives to the kernel
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_nbytes;
    uint32_t most_shared_nbytes;  // the most that launches of the kernel may use
    uint32_t first_word;          // of its parameters, among those of all records
    uint32_t nbytes;              // of its parameters
    uint32_t first_patch, patch_count;
    uint32_t reserved[2];
};

struct CopyWork {
    uint64_t dst, src, nbytes;
};

struct FillWork {
    uint64_t dst, value, width, count;
};

// The word `word` (among those of all records) is the address of span `span` plus `offset`.
struct LaunchPatch {
    uint32_t word, span;
    int64_t offset;
};

static_assert(sizeof(LaunchRecord) == 64 && sizeof(LaunchPatch) == 16, "files have this layout");

}  // namespace gputensor

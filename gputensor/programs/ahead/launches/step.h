// One call of a bound function: a launch list at places in memory, or control flow around regions of
// further steps. Its numbers are as they were read: `Steps::check` (steps.h) says whether they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gputensor {

enum StepKind : int64_t {
    STEP_LAUNCH = 0,
    STEP_COND = 1,
    STEP_WHILE_LOOP = 2,
    STEP_FORI_LOOP = 3,  // numbers: lower, upper
    STEP_SCAN = 4,       // numbers: length, carried values, whether from the end
    STEP_KINDS = 5
};

// Bytes of a piece of memory. A piece of -1 is no memory.
struct StepPlace {
    int64_t piece, offset, nbytes;
};

struct Region;

struct Step {
    int64_t kind = STEP_LAUNCH;
    size_t list = 0;                // of a launch, its number among the lists of the program
    std::vector<StepPlace> places;  // of a launch, for each span of its list
    int64_t numbers[3] = {};
    std::vector<StepPlace> reads, writes;
    std::vector<int64_t> scratch;  // offsets in the arena: spare carried values, then flag or index
    std::vector<Region> regions;
};

// Its pieces are its arena, inputs, outputs, and then pieces of the function, which `fixed` names.
struct Region {
    int64_t arena = 0;  // where its arena begins in the one around it
    std::vector<int64_t> inputs, outputs;  // bytes of each
    std::vector<size_t> fixed;
    std::vector<Step> steps;
};

}  // namespace gputensor

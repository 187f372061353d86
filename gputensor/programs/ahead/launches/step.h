// One call of a bound function: a launch list at places in memory, or control flow around regions of
// further steps. Its numbers are not validated when it is read: `Steps::check` (steps.h) does that.
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
    STEP_SCAN = 4,       // numbers: length, count of carried values, whether reversed
    STEP_KINDS = 5
};

// A range of bytes in a piece of memory. Piece -1 stands for no memory.
struct StepPlace {
    int64_t piece, offset, nbytes;
};

struct Region;

struct Step {
    int64_t kind = STEP_LAUNCH;
    size_t list = 0;                // for a launch: the number of its list in the program
    std::vector<StepPlace> places;  // for a launch: the place of each span of its list
    int64_t numbers[3] = {};
    std::vector<StepPlace> reads, writes;
    std::vector<int64_t> scratch;  // offsets in the arena: spare carried values, then flag or index
    std::vector<Region> regions;
};

// A region's pieces are its arena, inputs, outputs, and the pieces of the function listed in `fixed`.
struct Region {
    int64_t arena = 0;  // offset of its arena in the enclosing one
    std::vector<int64_t> inputs, outputs;  // bytes of each
    std::vector<size_t> fixed;
    std::vector<Step> steps;
};

}  // namespace gputensor

// The parameters of copies between row pitches of any alignment (relayout.cuh), in bytes.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

struct RelayoutPiece {
    uint64 source, target;
    int64 source_pitch, target_pitch;   // from row to row
    int64 source_batch, target_batch;   // from matrix to matrix
    int64 row_nbytes;                   // of the target
    int64 source_nbytes;                // of a row of the source; zeros follow
    uint64 rows;                        // of one matrix
    uint64 source_rows;                 // rows of zeros follow
    uint64 blocks;                      // of 16 bytes that one row may touch
    uint64 last;                        // one past the index of the piece's last block
};
struct RelayoutParameters {
    RelayoutPiece pieces[3];
    uint64 total;
    uint32 count;
    uint32 step;                        // bytes of one copy at the ends of rows: 1, 2, 4 or 8
};
static_assert(sizeof(RelayoutParameters) == 3 * 96 + 16,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

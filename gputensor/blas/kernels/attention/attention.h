// The parameters of attention (attention.cuh) and of the kernel that joins its parts (join.cuh).
#pragma once

#include "gputensor/_kernels/cuda/axis.h"
#include "gputensor/_kernels/cuda/words.h"
#include "gputensor/_kernels/cuda/copies/tensor_map.h"

namespace gputensor {

struct AttentionOperand {
    GPUTENSOR_POINTER(char) ptr;
    int64 batch, head, row;             // strides, in elements; the last axis has stride 1
};
struct AttentionParameters {
    AttentionOperand query, key, value, out;
    GPUTENSOR_POINTER(const char) mask;
    int64 mask_batch, mask_head, mask_row, mask_column;
    GPUTENSOR_POINTER(const char) length;   // of the keys; null: `keys`
    int64 length_batch;
    GPUTENSOR_POINTER(float) partial;       // of each split: sums, then maximum and total of a row
    int32 queries, keys, kept, shared;      // heads are kept * shared
    int32 tiles, splits, size, window;      // window 0: none
    int32 is_causal, is_long, units;        // lengths are int64; tiles of all heads
    float scale, cap;                       // cap 0: none
};
static_assert(sizeof(AttentionParameters) == 4 * 32 + 8 + 32 + 8 + 8 + 8 + 11 * 4 + 3 * 4,
              "both sides of a launch lay the parameters out alike");

// Of attention_wgmma.cuh, where `number_of` explains the numbers. The axes have no strides.
struct TiledAttentionParameters : AttentionParameters {
    int32 run, paired, rest, begun, earlier, head;
    LaunchAxis by_queries, by_tiles, by_kept, by_half, by_whole, by_more;
};
static_assert(sizeof(TiledAttentionParameters) == sizeof(AttentionParameters) + 6 * 4 + 6 * 28,
              "both sides of a launch lay the parameters out alike");

// Of few_mapped.cuh.
struct MappedAttentionParameters {
    TensorMap key, value;
    AttentionParameters common;
    int32 zero[2];
};
static_assert(sizeof(MappedAttentionParameters) == 2 * 128 + sizeof(AttentionParameters) + 2 * 4
                  && sizeof(MappedAttentionParameters) % 64 == 0,
              "both sides of a launch lay the parameters out alike");

struct JoinParameters {
    GPUTENSOR_POINTER(const float) partial;
    AttentionOperand out;
    int32 queries, kept, shared, splits, size, rows;    // rows of a tile times tiles
};
static_assert(sizeof(JoinParameters) == 8 + 32 + 6 * 4,
              "both sides of a launch lay the parameters out alike");

}  // namespace gputensor

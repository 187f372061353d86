// Attention of few rows and many keys, as in decoding: at most 16 rows of queries share their keys.
//
// The keys are cut among blocks, and those of a block among its warps, 16 at a time. Each warp has
// copies of its own next keys and values under way, so that no warp waits for another before the
// end. At the end, the warps of a block join their sums in a fixed order; with several splits,
// join.cuh does the rest.
//
// Defined before this text: STAGES of a warp, and what few_rows.cuh needs.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/attention/few_rows.cuh"

typedef AttentionParameters Parameters;

const int THREADS = 32 * WARPS, STEP = 16;
const int PITCH = 2 * HEAD + 16;                // bytes; an odd multiple of 16: no bank conflicts
const int CHUNKS = HEAD / 8;                    // of 16 bytes, in a row
const int STAGE = 2 * STEP * PITCH;             // keys and values of a step
const int RING = STAGES * STAGE;                // of a warp
static_assert(BM * LINE * 4 <= RING, "the sums of a warp fit in the place of its keys");

// Where matrices of 16 keys and values are, for this lane.
struct Step {
    uint32 key_at, value_at;
    DEVICE uint32 key(int c) const { return key_at + c * 32; }
    DEVICE uint32 value(int c) const { return value_at + c * 32; }
};
DEVICE Step step_at(uint32 stage) {
    const int lane = threadIdx.x % 32;
    return {stage + lane % 16 * PITCH + lane / 16 * 16,
            stage + (STEP + lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 16};
}
// Copies 16 rows of a matrix from row `first` on; rows from `end` on are 0.
DEVICE void fetch(uint32 to, const char* from, int64 row_bytes, int first, int end, int size) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = lane; i < STEP * CHUNKS; i += 32) {
        const int row = i / CHUNKS, chunk = i % CHUNKS;
        const bool is_valid = first + row < end && chunk * 8 < size;
        copy_16(to + row * PITCH + chunk * 16,
                from + (is_valid ? (first + row) * row_bytes + chunk * 16 : 0), is_valid);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) kernel(const Parameters p) {
    start_together();
    extern __shared__ __align__(16) char memory[];
    const int warp = threadIdx.x / 32;
    const uint32 ring = shared_address(memory) + warp * RING;
    const int split = blockIdx.x % p.splits;
    const uint32 place = blockIdx.x / p.splits;
    const int kept = place % p.kept;
    const int64 batch = place / p.kept;
    const Range range = range_of(p, batch);
    const int keys = range.end;
    // The steps of this block and of this warp.
    const int steps = (range.count() + STEP - 1) / STEP;
    const int own = (int)((int64)steps * split / p.splits) + warp;
    const int stop = (int)((int64)steps * (split + 1) / p.splits);
    const char* key = p.key.ptr + 2 * (batch * p.key.batch + kept * p.key.head);
    const char* value = p.value.ptr + 2 * (batch * p.value.batch + kept * p.value.head);
#pragma unroll
    for (int i = 0; i < STAGES; ++i) {
        if (own + i * WARPS < stop) {
            const int from = range.begin + (own + i * WARPS) * STEP;
            fetch(ring + i * STAGE, key, 2 * p.key.row, from, keys, p.size);
            fetch(ring + i * STAGE + STEP * PITCH, value, 2 * p.value.row, from, keys, p.size);
        }
        copies_commit();
    }

    Rows rows;
    rows.begin(p, batch, kept, keys);
    int stage = 0;
    for (int step = own; step < stop; step += WARPS) {
        copies_wait<STAGES - 1>();
        __syncwarp();
        const uint32 at = ring + stage * STAGE;
        rows.add(p, step_at(at), range.begin + step * STEP, keys);
        __syncwarp();
        const int next = range.begin + (step + STAGES * WARPS) * STEP;
        if (step + STAGES * WARPS < stop) {
            fetch(at, key, 2 * p.key.row, next, keys, p.size);
            fetch(at + STEP * PITCH, value, 2 * p.value.row, next, keys, p.size);
        }
        copies_commit();
        if (++stage == STAGES) stage = 0;
    }

    // The sums of the warp, in the place of its keys.
    rows.put(reinterpret_cast<float*>(memory + warp * RING));
    __syncthreads();
    finish<RING / 4>(p, reinterpret_cast<const float*>(memory), part_of(p), batch, kept);
}

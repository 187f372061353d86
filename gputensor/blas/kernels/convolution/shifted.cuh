// Convolution on the tensor cores of Hopper (sm_90a): taps read shifted patches of x.
//
// Results of an output are numbered as positions: rows of `pitch` and images of `image` positions,
// which are more than the results where taps read beyond the ends. A block has BM outputs and BN
// positions. For 64 channels (a chunk) it loads a patch: for each position, and those around it
// that taps reach, a row of 128 bytes in the order of wgmma's swizzle. The same patch serves all
// taps whose places differ by whole strides. Each tap multiplies the patch from its own row on: the
// swizzle follows from the bits of an address, so a matrix may begin at any row. So x is read from
// memory once, not once for each tap. Beyond x a patch is zeros; positions without results separate
// the taps of one row or image from the next.
//
// Sums are transposed: outputs are the rows of wgmma, positions its columns, whose number can be
// any multiple of 8, so that tiles fill the multiprocessors evenly. Two warpgroups multiply (BM 64:
// each has half of the positions; BM 128: half of the outputs), one copies. Weights have a ring of
// STAGES chunks of a tap, patches one of PLACES; copies run ahead of the products, even into the
// next tile of the block. SPLIT blocks of a cluster share the terms of a tile; each finishes its
// part of the positions from the shared memory of all, in the order of the blocks.
//
// Defined before this text: the names that pixel.cuh needs; BM; COLUMNS, positions of a warpgroup;
// STAGES and PLACES; SPLIT; VECTORED, whether 8 outputs are 16 bytes that one instruction may write
// and, with an addend, read; PACK, the types of a pair of elements; MULTIPLY, the instruction that
// multiplies 16 terms from the descriptors a and b and adds them to the sums d, or overwrites d if
// `adds` is 0.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/convolution/pixel.cuh"
#include "gputensor/blas/kernels/convolution/shifted.h"
#include "gputensor/blas/kernels/shared/mma.cuh"

const int MULTIPLYING = 256, COPYING = 128, THREADS = COPYING + MULTIPLYING;
const int LINES = COPYING / 8;                  // rows copied at once
const int ACROSS = BM == 64 ? 2 : 1;            // warpgroups along the positions
const int BN = COLUMNS * ACROSS;
const int SUMS = COLUMNS / 2;                   // of a thread
const int STAGE = BM * 128;                     // bytes
const int PART = COLUMNS / SPLIT;               // positions of a warpgroup that a block finishes
// Whether places are filled while the first products run. With 64 outputs copies are slower than
// products, and places are filled while the first copies are on their way.
const bool FILLS_LATE = BM == 128;
const int SPAN = 32;                            // positions staged at once,
const int OUT_PITCH = 144;                      // 64 outputs each: an odd multiple of 16 bytes

struct alignas(8) Row { int32 place; int16 y, x; };  // place: of the pixel, in 8 elements of x
struct Place { int64 out, added; };             // out below 0: no result

#include "gputensor/blas/kernels/convolution/sums.cuh"

DEVICE void load_turned(uint32 from, uint32* x) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x[0]), "=r"(x[1]) : "r"(from) : "memory");
}
DEVICE void copying_sync() { asm volatile("bar.sync 3, %0;" :: "n"(COPYING) : "memory"); }

struct Barriers { uint64 full[STAGES], empty[STAGES], left[PLACES]; };

// The place of a loop in the rings and among the steps of a tile: all taps of a chunk, then the
// next.
struct Walk {
    int tap, chunk, stage, patch;
    uint32 phase, patch_phase;
    DEVICE void begin(const ShiftedParameters& p, int step) {
        chunk = step / p.taps;
        tap = step - chunk * p.taps;
    }
    DEVICE void next(const ShiftedParameters& p) {
        if (++tap == p.taps) {
            tap = 0;
            ++chunk;
        }
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    DEVICE void next_patch() {
        if (++patch == PLACES) {
            patch = 0;
            patch_phase ^= 1;
        }
    }
};

struct Tile { int column, group; int64 first; };    // first output, its group, first position
DEVICE Tile tile_of(const ShiftedParameters& p, uint32 number) {
    const uint32 rest = number / p.common.column_tiles;
    Tile tile;
    tile.column = (int)(number - rest * p.common.column_tiles) * BM;
    tile.group = (int)(rest % p.common.groups);
    tile.first = (int64)(rest / p.common.groups) * BN;
    return tile;
}

DEVICE void fill_rows(const ShiftedParameters& p, int64 first, Row* rows) {
    const ConvolutionParameters& c = p.common;
    for (int i = threadIdx.x - MULTIPLYING; i < p.rows + 8 * LINES; i += COPYING) {
        const int64 position = first + i - p.lead;
        Row row = {0, -30000, 0};
        if (i < p.rows && position >= 0 && position < p.positions) {
            const uint32 image = (uint32)position / p.image, rest = (uint32)position % p.image;
            row.y = (int16)(rest / p.pitch * c.axes[1].stride);
            row.x = (int16)(rest % p.pitch * c.axes[2].stride);
            row.place = (int32)((image * c.x.batch + row.y * c.x.axes[1] + row.x * c.x.axes[2])
                                / 8);
        }
        rows[i] = row;
    }
}
DEVICE void fill_places(const ShiftedParameters& p, int64 first, Place* places) {
    const ConvolutionParameters& c = p.common;
    for (int i = threadIdx.x % 128; i < PART; i += 128) {
        const int64 position = first + i;
        Place place = {-1, 0};
        if (position < p.positions) {
            const uint32 image = (uint32)position / p.image, rest = (uint32)position % p.image;
            const int y = rest / p.pitch, x = rest % p.pitch;
            if (y < c.axes[1].out && x < c.axes[2].out) {
                place.out = image * c.out.batch + y * c.out.axes[1] + x * c.out.axes[2];
                place.added = image * c.addend.batch + y * c.addend.axes[1]
                    + x * c.addend.axes[2];
            }
        }
        places[i] = place;
    }
}

struct Shared { uint32 ring, patches; };

// Copies 16 bytes, or writes zeros if not valid; in that case the address is not read.
DEVICE void copy_or_clear(uint32 to, const char* from, bool is_valid) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(is_valid ? 16 : 0) : "memory");
}
DEVICE void load_patch(const ShiftedParameters& p, const Row* rows, const ShiftedTap& tap,
                       const char* x, uint32 to, int line, bool is_inside) {
    const int AHEAD = 8;            // entries of the table in flight
    const uint32 height = p.common.axes[1].x, width = is_inside ? p.common.axes[2].x : 0;
    for (int i = line; i < p.rows; i += AHEAD * LINES, to += 128 * AHEAD * LINES) {
        Row row[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; ++j)
            row[j] = rows[i + j * LINES];
#pragma unroll
        for (int j = 0; j < AHEAD; ++j) {
            if (i + j * LINES >= p.rows) break;
            copy_or_clear(to + 128 * j * LINES, x + row[j].place * 16ll,
                          (uint32)(row[j].y + tap.y) < height
                              && (uint32)(row[j].x + tap.x) < width);
        }
    }
}
DEVICE void load(const ShiftedParameters& p, const Shared& shared, Barriers& barriers, Walk& walk,
                 const Row* rows, const Tile& tile, int begin, int end) {
    const ConvolutionParameters& c = p.common;
    const int thread = threadIdx.x - MULTIPLYING;
    const int line = thread / 8, piece = thread % 8, outputs = c.outputs - tile.column;
    const char* x = c.x.ptr + 2 * ((int64)tile.group * c.channels + piece * 8);
    const char* weights = c.weight.ptr
        + 2 * (((int64)tile.group * c.outputs + tile.column + line) * c.weight.batch + piece * 8);
    const int64 down = 2 * LINES * c.weight.batch;
    const uint32 inside = line * 128 + ((piece ^ line & 7) << 4);   // the place of the piece
    walk.begin(p, begin);
    for (int step = begin; step < end; ++step, walk.next(p)) {
        const ShiftedTap tap = p.tap[walk.tap];
        const bool is_inside = walk.chunk * 64 + piece * 8 < c.channels;
        const char* from = weights + 2 * ((int64)tap.number * c.channels + walk.chunk * 64);
        barrier_wait(shared_address(&barriers.empty[walk.stage]), walk.phase ^ 1);
        if (step == begin || tap.is_first) {
            barrier_wait(shared_address(&barriers.left[walk.patch]), walk.patch_phase ^ 1);
            load_patch(p, rows, tap,
                       x + 2 * (tap.y * c.x.axes[1] + tap.x * c.x.axes[2] + walk.chunk * 64),
                       shared.patches + walk.patch * p.patch + inside, line, is_inside);
            walk.next_patch();
        }
#pragma unroll
        for (int i = 0; i < BM / LINES; ++i)
            copy_or_clear(shared.ring + walk.stage * STAGE + inside + i * LINES * 128,
                          from + i * down, is_inside && line + LINES * i < outputs);
        arrive_with_copies(shared_address(&barriers.full[walk.stage]));
    }
}

// Calls `meanwhile` while the first products run.
template <class Meanwhile>
DEVICE void multiply_all(const ShiftedParameters& p, const Shared& shared, Barriers& barriers,
                         Walk& walk, float* d, int group, int begin, int end,
                         Meanwhile meanwhile) {
    uint32 last = 0, last_patch = 0;
    const bool is_one = threadIdx.x % 32 == 0;
    const uint32 beside = ACROSS == 2 ? group * COLUMNS : 0;
    walk.begin(p, begin);
    for (int step = begin; step < end; ++step, walk.next(p)) {
        const ShiftedTap& tap = p.tap[walk.tap];
        const bool is_new = step == begin || tap.is_first;
        if (is_new) walk.next_patch();
        barrier_wait(shared_address(&barriers.full[walk.stage]), walk.phase);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        // The upper bits of an address name the block of a cluster.
        const uint32 from_a = shared.ring + walk.stage * STAGE + (BM == 128 ? group * 8192 : 0);
        const uint32 from_b = shared.patches + walk.patch * p.patch + (tap.shift + beside) * 128;
        const uint64 a = (uint64)((from_a & 0x3ffff) >> 4) | 0x4000004000010000ull;
        const uint64 b = (uint64)((from_b & 0x3ffff) >> 4) | 0x4000004000010000ull;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            multiply(d, a + 2 * k, b + 2 * k, step - begin | k);
        wgmma_commit();
        if (step == begin) meanwhile();
        wgmma_wait<1>();
        if (is_one && step > begin) {
            arrive(last);
            if (is_new) arrive(last_patch);
        }
        last = shared_address(&barriers.empty[walk.stage]);
        last_patch = shared_address(&barriers.left[walk.patch]);
    }
    wgmma_wait<0>();
    settle<SUMS>(d);
    if (is_one && begin < end) {
        arrive(last);
        arrive(last_patch);
    }
}

#if VECTORED
// Loads the addend of SPAN positions, from `from` on: the pieces of 8 outputs of this thread.
DEVICE void load_added(const char* addend, const Place* places, int from, int outputs,
                       Words* held) {
    const int thread = threadIdx.x % 128, o = thread % 8 * 8;
#pragma unroll
    for (int k = 0; k < SPAN / 16; ++k) {
        const int inside = from + k * 16 + thread / 8;
        held[k] = Words();
        if (inside < PART && o < outputs && places[inside].out >= 0)
            held[k] = *reinterpret_cast<const Words*>(addend + 2 * (places[inside].added + o));
    }
}
#endif

// Writes 64 outputs of a warpgroup's positions, with an addend if ADDS; `places` has the positions,
// `column` is the first output.
template <bool ADDS>
DEVICE void write(const ShiftedParameters& p, const float* d, char* staged, const Place* places,
                  int column, int conv_group, int group) {
    const ConvolutionParameters& c = p.common;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, thread = threadIdx.x % 128;
    const int outputs = c.outputs - column;
    const E* bias = reinterpret_cast<const E*>(c.bias);
    float added[2] = {0, 0};
    int64 output[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int inside = warp * 16 + lane / 4 + 8 * h;
        output[h] = (int64)conv_group * c.outputs + column + (inside < outputs ? inside : 0);
        if (bias && outputs > 0) added[h] = wide(bias[output[h] * c.bias_stride]);
    }
    const uint32 to = shared_address(staged) + lane % 8 * OUT_PITCH
        + (warp * 16 + lane / 8 % 2 * 8) * 2;
    E* out = reinterpret_cast<E*>(c.out.ptr) + ((int64)conv_group * c.outputs + column)
        * c.out.channel;
#if VECTORED
    const char* const addend = c.addend.ptr + 2 * ((int64)conv_group * c.outputs + column);
    Words held[SPAN / 16];
    if (ADDS) load_added(addend, places, 0, outputs, held);
#endif
#pragma unroll
    for (int from = 0; from < PART; from += SPAN) {
        const int buffer = from / SPAN % 2 * SPAN;
#if VECTORED
        if (ADDS) {         // transposed like the results, in the same shared memory
#pragma unroll
            for (int k = 0; k < SPAN / 16; ++k)
                *reinterpret_cast<Words*>(staged + (buffer + k * 16 + thread / 8) * OUT_PITCH
                                          + thread % 8 * 16) = held[k];
            group_sync(group);
            if (from + SPAN < PART) load_added(addend, places, from + SPAN, outputs, held);
        }
#endif
#pragma unroll
        for (int j = from / 8; j < (from + SPAN) / 8 && j < PART / 8; ++j) {
            uint32 both[2];
#if VECTORED
            uint32 beside[2] = {0, 0};
            if (ADDS) load_turned(to + (buffer + 8 * j - from) * OUT_PITCH, beside);
#endif
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float value[2];
#pragma unroll
                for (int v = 0; v < 2; ++v) {
                    float a = d[4 * j + 2 * h + v] + added[h];
#if VECTORED
                    const E part = {(uint16)(beside[h] >> 16 * v)};
                    if (ADDS) a += wide(part);
#else
                    if (ADDS && outputs > 0) {
                        const Place& place = places[8 * j + lane % 4 * 2 + v];
                        if (place.out >= 0)
                            a += wide(reinterpret_cast<const E*>(c.addend.ptr)[
                                place.added + output[h] * c.addend.channel]);
                    }
#endif
                    value[v] = ACTIVATION;
                }
                both[h] = pack(value[0], value[1]);
            }
            store_turned(to + (buffer + 8 * j - from) * OUT_PITCH, both[0], both[1]);
        }
        group_sync(group);
        const char* const stage = staged + buffer * OUT_PITCH;
#if VECTORED
#pragma unroll
        for (int k = 0; k < SPAN / 16; ++k) {
            const int inside = k * 16 + thread / 8, o = thread % 8 * 8;
            if (from + inside >= PART) break;
            const int64 at = places[from + inside].out;
            if (at >= 0 && o < outputs)
                *reinterpret_cast<Words*>(out + at + o) =
                    *reinterpret_cast<const Words*>(stage + inside * OUT_PITCH + o * 2);
        }
#else
        for (int i = thread; i < SPAN * 64; i += 128) {
            const int inside = i % SPAN, o = i / SPAN;
            if (from + inside >= PART) continue;
            const int64 at = places[from + inside].out;
            if (at >= 0 && o < outputs)
                out[at + o * c.out.channel] =
                    *reinterpret_cast<const E*>(stage + inside * OUT_PITCH + o * 2);
        }
#endif
    }
}

extern "C" __global__ void BY_CLUSTER __launch_bounds__(THREADS, 1)
kernel(const __grid_constant__ ShiftedParameters p) {
    start_early();
    extern __shared__ __align__(1024) char memory[];
    __shared__ Barriers barriers;
    const Shared shared = {shared_address(memory), shared_address(memory) + STAGES * STAGE};
    char* const tables = memory + STAGES * STAGE + PLACES * p.patch;
    Row* const rows = reinterpret_cast<Row*>(tables + 4 * SPAN * OUT_PITCH + 2 * PART * 16);
    const int split = blockIdx.x % SPLIT;
    const int begin = min(split * p.common.steps, p.steps);
    const int end = min(begin + p.common.steps, p.steps);
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(shared_address(&barriers.full[i]), COPYING);
            barrier_init(shared_address(&barriers.empty[i]), MULTIPLYING / 32);
        }
        for (int i = 0; i < PLACES; ++i)
            barrier_init(shared_address(&barriers.left[i]), MULTIPLYING / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (group >= 2) {
        Walk walk = {0, 0, 0, 0, 0, 0};
        for (uint32 i = blockIdx.x / SPLIT; i < p.tiles; i += gridDim.x / SPLIT) {
            const Tile tile = tile_of(p, i);
            copying_sync();             // all have read the old values
            fill_rows(p, tile.first, rows);
            copying_sync();
            load(p, shared, barriers, walk, rows, tile, begin, end);
        }
        __syncwarp();
#if SPLIT > 1
        cluster_sync();
        cluster_sync();
#endif
    } else {
        char* const staged = tables + group * 2 * SPAN * OUT_PITCH;
        Place* const places = reinterpret_cast<Place*>(tables + 4 * SPAN * OUT_PITCH)
            + group * PART;
        Walk walk = {0, 0, 0, PLACES - 1, 0, 0};
        for (uint32 i = blockIdx.x / SPLIT; i < p.tiles; i += gridDim.x / SPLIT) {
            const Tile tile = tile_of(p, i);
            float d[SUMS];
#pragma unroll
            for (int j = 0; j < SUMS; ++j) d[j] = 0;
            auto fill = [&]() {
                group_sync(group);      // all have read the old values
                fill_places(p, tile.first + (ACROSS == 2 ? group * COLUMNS : 0) + split * PART,
                            places);
            };
            if (!FILLS_LATE || begin >= end) fill();
            multiply_all(p, shared, barriers, walk, d, group, begin, end, [&]() {
                if (FILLS_LATE) fill();
            });
#if SPLIT > 1
            asm volatile("bar.sync 4, 256;" ::: "memory");  // sums overwrite the last steps
            unite(d, memory, split);
#endif
            const int column = tile.column + (BM == 128 ? group * 64 : 0);
            if (p.common.addend.ptr) {
                group_sync(group);      // all places are there
                write<true>(p, d, staged, places, column, tile.group, group);
            } else
                write<false>(p, d, staged, places, column, tile.group, group);
        }
    }
}

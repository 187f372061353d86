"""The CUDA program of packed products on Hopper: D = alpha A B^T + beta C from packed tiles.

A and B are tiles of 128 rows and 128 bytes of K (packed_tiles_source.py). D is row-major here, with
any distance between rows and any address that its elements allow. Two blocks form a cluster, which
computes 256 x BN elements of D at a time: each block 128 rows, and both share the BN rows of B, of
which each loads a half for both. In a block one thread keeps a ring of stages filled by bulk
copies; two groups of four warps multiply 64 rows each.

Sizes are seldom whole tiles. What is left over on a side, when it is 32 or less, is a *strip*: a
tile of 256 x 32, for the rows left over with A and B in each other's place. Tiles, or strips, or
both may be *divided*: all clusters share their steps along K equally (packed_result_source.py says
how the sums come together). Which, the host decides (packed_schedule.pyx). A cluster first does its
share of what is divided, then its whole tiles, then whole strips.

Blocks wait for sums of blocks that were started before them only, so the grid need not fit on the
device at once.
"""

from gputensor.blas.packed_primitives import PRIMITIVES, wgmma
from gputensor.blas.packed_result_source import RESULT

__all__ = ["product_source", "shared_nbytes"]

STAGES = {256: 4, 128: 6}

_PARAMETERS = r"""
struct Parameters {
    u64 a, b, c, d;
    u64 sums, flags;        // of divided tiles
    i64 ldc, ldd;           // elements
    i64 m, n;
    i64 units_tiles, units; // work in the divided tiles, and with the divided strips
    int steps;              // tiles along K that hold any of it
    int line;               // tiles along K in memory
    int main_m, main_n;     // whole tiles
    int edge_m, edge_n;     // tiles of the last, incomplete row and column of tiles
    int whole, divided;     // of these tiles
    int strips_n, strips_m; // of the columns and of the rows left over
    int strips_from;        // the first cluster that does whole strips; -1: strips are divided
    int weight_tile, weight_strip;  // of one step
    float alpha, beta;
};
"""

_WORK = r"""
// Tiles go down groups of rows of tiles, so that what runs at one time shares rows of A and B.
#define GROUP 8

DEVICE void tile_at(const Parameters& p, int index, int* tile_m, int* tile_n) {
    const int inner = p.main_m * p.main_n;
    if (index < inner) {
        const int span = GROUP * p.main_n;
        const int group = index / span;
        const int rest = index - group * span;
        const int rows = min(GROUP, p.main_m - group * GROUP);
        *tile_n = rest / rows;
        *tile_m = group * GROUP + rest - *tile_n * rows;
        return;
    }
    index -= inner;
    *tile_m = index < p.edge_m ? p.main_m : index - p.edge_m;
    *tile_n = index < p.edge_m ? index : p.main_n;
}

// Where the share of a cluster begins in what is divided: tiles, then strips.
struct Place { int item, step; };
DEVICE Place place_at(const Parameters& p, int cluster, int clusters) {
    i64 units = p.units * cluster / clusters;
    const bool is_strip = units >= p.units_tiles;
    if (is_strip) units -= p.units_tiles;
    const i64 steps = units / (is_strip ? p.weight_strip : p.weight_tile);
    Place place;
    place.item = (int)(steps / p.steps);
    place.step = (int)(steps - (i64)place.item * p.steps);
    if (is_strip) {
        place.item += p.divided;
        place.step -= place.step % STRIP_STEPS;     // the last, odd step goes with a tile of zeros
    }
    return place;
}

struct Work {
    bool is_strip;
    int index;          // among the tiles or among the strips
    int first, last;    // steps
};
struct Walk {
    Place here, end;
    int cluster, clusters, tile, strip, strips;
    DEVICE Walk(const Parameters& p, int own, int count) {
        cluster = own;
        clusters = count;
        tile = cluster;
        strips = p.strips_from < 0 ? 0 : p.strips_n + p.strips_m;
        strip = cluster < p.strips_from ? strips : cluster - p.strips_from;
        here.item = here.step = 0;
        end = here;
        if (p.units) {
            here = place_at(p, cluster, clusters);
            end = place_at(p, cluster + 1, clusters);
        }
    }
    DEVICE bool next(const Parameters& p, Work& work) {
        while (here.item < end.item || (here.item == end.item && here.step < end.step)) {
            work.is_strip = here.item >= p.divided;
            work.index = work.is_strip ? here.item - p.divided : p.whole + here.item;
            work.first = here.step;
            work.last = here.item == end.item ? end.step : p.steps;
            ++here.item;
            here.step = 0;
            if (work.first < work.last) return true;
        }
        work.first = 0;
        work.last = p.steps;
        work.is_strip = tile >= p.whole;
        if (!work.is_strip) {
            work.index = tile;
            tile += clusters;
            return true;
        }
        work.index = strip;
        strip += clusters - p.strips_from;
        return work.index < strips;
    }
};

// A strip: 128 rows of A (or of B) for each block, times 32 rows of B (or of A).
struct Strip {
    bool is_across;     // rows left over
    i64 wide, narrow;   // first rows
    i64 limit;          // rows of the wide side
    DEVICE Strip(const Parameters& p, int index, u32 rank) {
        is_across = index >= p.strips_n;
        wide = ((i64)(is_across ? index - p.strips_n : index) * 2 + rank) * 128;
        narrow = is_across ? (i64)p.main_m * 256 : (i64)p.main_n * BN;
        limit = is_across ? (p.strips_n ? (i64)p.main_n * BN : p.n) : p.m;
    }
};
"""

_PRODUCT = r"""
#define TILE_NBYTES 16384
#define STAGE_NBYTES (TILE_NBYTES + BN * 128)
#define NARROW_AT (STRIP_STEPS * TILE_NBYTES)   // of a stage that holds steps of a strip
#define NARROW_NBYTES 4096
#define STAGED_AT (STAGES * STAGE_NBYTES)
#define BARRIERS_AT (STAGED_AT + 8 * STAGED_NBYTES)

DEVICE int columns_of(i64 left) { return BN > 128 && left > 128 ? 256 : 128; }

struct Ring {
    u32 shared, stage, phase;
    DEVICE u32 at() const { return shared + stage * STAGE_NBYTES; }
    DEVICE u32 full() const { return shared + BARRIERS_AT + 8 * stage; }
    DEVICE u32 empty() const { return full() + 8 * STAGES; }
    DEVICE void next() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// ---- the thread that loads

DEVICE void load_tile(const Parameters& p, const Work& work, Ring& ring, u32 rank) {
    int tile_m, tile_n;
    tile_at(p, work.index, &tile_m, &tile_n);
    const u32 part = columns_of(p.n - (i64)tile_n * BN) / 2;    // rows of B that this block loads
    const i64 above = (i64)tile_m * 2 + rank;
    const i64 line = (i64)tile_n * BN + rank * part;
    const bool has_rows = above * 128 < p.m;
    u64 from_a = p.a + (above * p.line + work.first) * TILE_NBYTES;
    u64 from_b = p.b + ((line >> 7) * p.line + work.first) * TILE_NBYTES + (line & 127) * 128;
    const u32 nbytes = part * 256 + (has_rows ? TILE_NBYTES : 0);
    for (int step = work.first; step < work.last; ++step) {
        barrier_wait(ring.empty(), ring.phase);
        barrier_expect(ring.full(), nbytes);
        if (has_rows) bulk_load(ring.at(), from_a, TILE_NBYTES, ring.full());
        bulk_load_to_both(ring.at() + TILE_NBYTES + rank * part * 128, from_b, part * 128,
                          ring.full());
        from_a += TILE_NBYTES;
        from_b += TILE_NBYTES;
        ring.next();
    }
}
DEVICE void load_strip(const Parameters& p, const Work& work, Ring& ring, u32 rank) {
    const Strip strip(p, work.index, rank);
    const u64 wide = (strip.is_across ? p.b : p.a) + (strip.wide >> 7) * p.line * TILE_NBYTES;
    const u64 narrow = (strip.is_across ? p.a : p.b) + (strip.narrow >> 7) * p.line * TILE_NBYTES;
    const bool has_rows = strip.wide < strip.limit;
    for (int step = work.first; step < work.last; step += STRIP_STEPS) {
        const u64 offset = (u64)step * TILE_NBYTES;
        barrier_wait(ring.empty(), ring.phase);
        barrier_expect(ring.full(), STRIP_STEPS * (NARROW_NBYTES + (has_rows ? TILE_NBYTES : 0)));
        if (has_rows) bulk_load(ring.at(), wide + offset, STRIP_STEPS * TILE_NBYTES, ring.full());
#pragma unroll
        for (int i = 0; i < STRIP_STEPS; ++i)
            bulk_load(ring.at() + NARROW_AT + i * NARROW_NBYTES, narrow + offset + i * TILE_NBYTES,
                      NARROW_NBYTES, ring.full());
        ring.next();
    }
}

// ---- the groups that multiply

// A stage is given back to both blocks, since both load into it, one stage after it was read.
DEVICE void release(u32 barrier, int lane) {
    if (lane < 2) barrier_arrive_at(barrier, lane);
}
template <int N, int STEPS, int B_AT, int B_NBYTES>
DEVICE void multiply(float* d, Ring& ring, int steps, int group, bool is_idle, int lane) {
    u32 last = 0;
    for (int step = 0; step < steps; step += STEPS) {
        barrier_wait(ring.full(), ring.phase);
        if (!is_idle) {
            // The middle of the lower half of a descriptor says 1, which wgmma does not read here.
            const u32 a = 0x10000 | ((ring.at() + group * 8192) >> 4);
            const u32 b = 0x10000 | ((ring.at() + B_AT) >> 4);
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < STEPS; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    Wgmma<N>::run(d, a + i * (TILE_NBYTES >> 4) + 2 * j,
                                  b + i * (B_NBYTES >> 4) + 2 * j, step | i | j);
            }
            wgmma_commit();
            wgmma_wait<1>();
        }
        if (step > 0) release(last, lane);
        last = ring.empty();
        ring.next();
    }
    wgmma_wait<0>();
    settle<N / 2>(d);
    release(last, lane);
}

// Whether the sums are complete here; else they were left for the one who has the beginning.
template <int N> DEVICE bool unite(const Parameters& p, float* d, const Walk& walk,
                                   const Work& work, u32 rank, int warp, int lane) {
    if (work.first > 0) {
        leave_sums<N>(p, d, (walk.cluster * 2 + rank) * 8 + warp, lane);
        return false;
    }
    if (work.last == p.steps) return true;
    Place begin = walk.end;
    const int item = begin.item;
    for (int c = walk.cluster + 1; begin.item == item && begin.step > 0; ++c) {
        const Place end = place_at(p, c + 1, walk.clusters);
        if (begin.item != end.item || begin.step != end.step)
            add_sums<N>(p, d, (c * 2 + rank) * 8 + warp, lane);
        begin = end;
    }
    return true;
}
template <int N> DEVICE void compute_tile(const Parameters& p, float* d, Ring& ring, char* staged,
                                          const Walk& walk, const Work& work, u32 rank, i64 row0,
                                          i64 column0, int group, int warp, int lane) {
    multiply<N, 1, TILE_NBYTES, 0>(d, ring, work.last - work.first, group, row0 >= p.m, lane);
    if (row0 < p.m && unite<N>(p, d, walk, work, rank, warp, lane))
        write_tile<N>(p, d, staged, row0 + (warp & 3) * 16, column0, lane);
}
DEVICE void compute_strip(const Parameters& p, float* d, Ring& ring, char* staged, const Walk& walk,
                          const Work& work, u32 rank, int group, int warp, int lane) {
    const Strip strip(p, work.index, rank);
    const i64 row0 = strip.wide + group * 64;
    multiply<32, STRIP_STEPS, NARROW_AT, NARROW_NBYTES>(d, ring, work.last - work.first, group,
                                                        row0 >= strip.limit, lane);
    if (row0 >= strip.limit || !unite<32>(p, d, walk, work, rank, warp, lane)) return;
    if (strip.is_across)
        write_across<32>(p, d, row0 + (warp & 3) * 16, strip.limit, strip.narrow, lane);
    else
        write_tile<32>(p, d, staged, row0 + (warp & 3) * 16, strip.narrow, lane);
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
kernel(const __grid_constant__ Parameters p) {
    extern __shared__ __align__(1024) char memory[];
    const u32 rank = cluster_rank();
    const int clusters = gridDim.x / 2, cluster = clusters - 1 - blockIdx.x / 2;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    Ring ring = {shared_address(memory), 0, 0};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(ring.full() + 8 * i, 1);
            barrier_init(ring.empty() + 8 * i, 16);     // eight warps of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();
    Work work;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        ring.phase = 1;
        if (threadIdx.x == 0) {
            Walk walk(p, cluster, clusters);
            while (walk.next(p, work)) {
                if (work.is_strip) load_strip(p, work, ring, rank);
                else load_tile(p, work, ring, rank);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[BN / 2];
        const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) - 4;
        char* staged = memory + STAGED_AT + warp * STAGED_NBYTES;
        Walk walk(p, cluster, clusters);
        while (walk.next(p, work)) {
            if (work.is_strip) {
                compute_strip(p, d, ring, staged, walk, work, rank, group - 1, warp, lane);
                continue;
            }
            int tile_m, tile_n;
            tile_at(p, work.index, &tile_m, &tile_n);
            const i64 row0 = ((i64)tile_m * 2 + rank) * 128 + (group - 1) * 64;
            const i64 column0 = (i64)tile_n * BN;
#if BN > 128
            if (columns_of(p.n - column0) == 256) {
                compute_tile<256>(p, d, ring, staged, walk, work, rank, row0, column0, group - 1,
                                  warp, lane);
                continue;
            }
#endif
            compute_tile<128>(p, d, ring, staged, walk, work, rank, row0, column0, group - 1, warp,
                              lane);
        }
    }
    // A block's shared memory must last until it is stored, and the other block has given its last
    // stage back.
    bulk_wait_read();
    cluster_sync();
}
"""


def shared_nbytes(columns):
    """Return the shared memory of a block, for tiles of `columns` columns (256 or 128).

    What lies past the barriers is read, and not used, with the last row's end.
    """
    stages = STAGES[columns]
    return stages * (16384 + columns * 128) + 8 * 8 * 544 + 16 * stages + 128


def product_source(dtype, out_dtype, columns, has_addend):
    """Return the program for operands and a result of these types and tiles of `columns` columns.

    >>> "#define BN 256" in product_source("bfloat16", "bfloat16", 256, False)
    True
    """
    constants = {
        "HAS_ADDEND": int(has_addend),
        "BN": columns,
        "STAGES": STAGES[columns],
        "STRIP_STEPS": 2 if columns == 256 else 1,
        "OUT_NBYTES": 4 if out_dtype == "float32" else 2,
        "OUT_IS_HALF": int(out_dtype == "float16"),
    }
    head = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    instructions = "".join(wgmma(n, dtype) for n in (256, 128, 32) if n <= columns)
    return head + PRIMITIVES + instructions + _PARAMETERS + RESULT + _WORK + _PRODUCT

"""The CUDA program of grouped products whose row offsets are on the device.

Rows `offsets[g - 1]` to `offsets[g]` of A are multiplied by matrix `g` of B. The host does not know
the sizes of the groups, so the grid does not depend on them: each block reads the offsets, counts
the tiles of all groups and takes every `gridDim.x`-th of them. Rows after the last offset are a
group of their own that becomes zero. Offsets that decrease or leave the tokens are clamped, so
nothing outside of the operands is touched whatever they say.

Elements are read one by one: any strides, any alignment. A thread computes 4 x 4 or 8 x 8 results
in float32, adding its terms in their order.
"""

from gputensor._kernels.cuda_source_types import TYPES_SOURCE

__all__ = ["MAX_GROUPS", "TILES_SOURCE", "source"]

#: Groups that one launch takes.
MAX_GROUPS = 1024

#: The search for tiles, which every program of grouped products shares. MAX_GROUPS is defined
#: before it.
TILES_SOURCE = r"""
struct Tiles {
    int ends[MAX_GROUPS + 1];           // the row after each group
    int tiles[MAX_GROUPS + 1];          // tiles of rows up to and with each group
    int start;                          // the first row of the first group
    int groups;                         // with that of the rows of zeros
};

// One tile of the result: rows [row, end) of group `group`, from column `column`.
struct Tile { int group, row, end, column; };

__device__ __forceinline__ int clamped(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

// By all threads of the block, once. `first` and `count` are the groups of this launch; with
// `is_last`, the rows after them are one more.
__device__ __forceinline__ void tiles_read(Tiles& all, const int* offsets, int first, int count,
                                           int is_last, int tokens, int tile_rows) {
    for (int g = threadIdx.x; g < count; g += blockDim.x) all.ends[g] = offsets[first + g];
    __syncthreads();
    if (threadIdx.x == 0) {
        int end = 0, tiles = 0;
        for (int g = 0; g < first; ++g) end = clamped(offsets[g], end, tokens);
        all.start = end;
        all.groups = count + is_last;
        for (int g = 0; g < all.groups; ++g) {
            const int next = g < count ? clamped(all.ends[g], end, tokens) : tokens;
            tiles += (next - end + tile_rows - 1) / tile_rows;
            all.ends[g] = end = next;
            all.tiles[g] = tiles;
        }
    }
    __syncthreads();
}

__device__ __forceinline__ int64 tiles_total(const Tiles& all, int columns) {
    return (int64)all.tiles[all.groups - 1] * columns;
}

// Tiles of one group go down the rows first, so that neighbours share the matrix of B.
__device__ __forceinline__ Tile tile_at(const Tiles& all, int64 index, int columns, int tile_rows,
                                        int tile_columns) {
    int low = 0, high = all.groups - 1;     // the first group with tiles[group] * columns > index
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((int64)all.tiles[middle] * columns > index) high = middle; else low = middle + 1;
    }
    const int before = low ? all.tiles[low - 1] : 0, rows = all.tiles[low] - before;
    const int local = (int)(index - (int64)before * columns);
    Tile tile;
    tile.group = low;
    tile.row = (low ? all.ends[low - 1] : all.start) + local % rows * tile_rows;
    tile.end = all.ends[low];
    tile.column = local / rows * tile_columns;
    return tile;
}
"""

#: The parameters of both grouped kernels, as in grouped_offsets.pyx.
PARAMETERS_SOURCE = r"""
typedef INPUT input_t;
typedef OUTPUT output_t;

struct Parameters {
    const input_t* a;
    const input_t* b;
    output_t* d;
    const int* offsets;
    int64 tokens, n, k;
    int64 row_a, term_a;                // strides in elements; for tensor cores, term_a is 1
    int64 group_b, term_b, column_b;    // and so is term_b or column_b
    int64 row_d, column_d;
    int first, count;                   // the groups of this launch
    int is_last;
    int columns;                        // tiles across
    int has_pairs;                      // two neighbours of a row of D may be written at once
};
"""

_PROGRAM = r"""
// Terms in shared memory at once; small tiles have little to do while the next terms come.
const int DEPTH = QUAD == 4 ? 32 : 16;
const int TILE = 16 * QUAD;             // rows and columns; 16 x 16 threads
const int PITCH = TILE + 4;
const int LOADS = TILE * DEPTH / 256;

// Where a thread reads an operand: it follows the unit stride.
struct Place { int line, term, line_step, term_step; };

__device__ __forceinline__ Place place_of(int64 term_stride) {
    const int t = threadIdx.x;
    Place place;
    if (term_stride == 1) {
        place.line = t / DEPTH, place.term = t % DEPTH;
        place.line_step = 256 / DEPTH, place.term_step = 0;
    } else {
        place.line = t % TILE, place.term = t / TILE;
        place.line_step = 0, place.term_step = 256 / TILE;
    }
    return place;
}

__device__ __forceinline__ void fetch(float* kept, const input_t* from, Place place, int lines,
                                      int terms, int64 line_stride, int64 term_stride) {
    const input_t* at = from + place.line * line_stride + place.term * term_stride;
    const int64 step = place.line_step * line_stride + place.term_step * term_stride;
    int line = place.line, term = place.term;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        kept[i] = line < lines && term < terms ? wide(*at) : 0.0f;
        at += step, line += place.line_step, term += place.term_step;
    }
}

__device__ __forceinline__ void keep(float* shared, const float* kept, Place place) {
    float* at = shared + place.term * PITCH + place.line;
    const int step = place.term_step * PITCH + place.line_step;
#pragma unroll
    for (int i = 0; i < LOADS; ++i, at += step) *at = kept[i];
}

extern "C" __global__ void __launch_bounds__(256, QUAD == 4 ? 3 : 2) kernel(const Parameters p) {
    __shared__ Tiles all;
    __shared__ float left[DEPTH * PITCH], right[DEPTH * PITCH];
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    const Place place_a = place_of(p.term_a), place_b = place_of(p.term_b);
    tiles_read(all, p.offsets, p.first, p.count, p.is_last, (int)p.tokens, TILE);
    const int64 total = tiles_total(all, p.columns);
    for (int64 index = blockIdx.x; index < total; index += gridDim.x) {
        const Tile tile = tile_at(all, index, p.columns, TILE, TILE);
        const int k = tile.group < p.count ? (int)p.k : 0;
        const int rows = tile.end - tile.row, columns = (int)p.n - tile.column;
        const input_t* a = p.a + tile.row * p.row_a;
        const input_t* b = p.b + (int64)(p.first + tile.group) * p.group_b
            + tile.column * p.column_b;
        float kept_a[LOADS], kept_b[LOADS], sums[QUAD][QUAD];
#pragma unroll
        for (int i = 0; i < QUAD; ++i)
#pragma unroll
            for (int j = 0; j < QUAD; ++j) sums[i][j] = 0.0f;
        fetch(kept_a, a, place_a, rows, k, p.row_a, p.term_a);
        fetch(kept_b, b, place_b, columns, k, p.column_b, p.term_b);
        for (int rest = k; rest > 0; rest -= DEPTH) {
            keep(left, kept_a, place_a);
            keep(right, kept_b, place_b);
            __syncthreads();
            a += DEPTH * p.term_a;
            b += DEPTH * p.term_b;
            if (rest > DEPTH) {
                fetch(kept_a, a, place_a, rows, rest - DEPTH, p.row_a, p.term_a);
                fetch(kept_b, b, place_b, columns, rest - DEPTH, p.column_b, p.term_b);
            }
#pragma unroll 8
            for (int i = 0; i < DEPTH; ++i) {
                float own_a[QUAD], own_b[QUAD];
#pragma unroll
                for (int j = 0; j < QUAD; ++j) {
                    own_a[j] = left[i * PITCH + y + 16 * j];
                    own_b[j] = right[i * PITCH + x + 16 * j];
                }
#pragma unroll
                for (int r = 0; r < QUAD; ++r) {
                    // Small groups leave most of a small tile empty.
                    if (QUAD == 4 && 16 * r >= rows) break;
#pragma unroll
                    for (int c = 0; c < QUAD; ++c)
                        sums[r][c] = fmaf(own_a[r], own_b[c], sums[r][c]);
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int r = 0; r < QUAD; ++r)
#pragma unroll
            for (int c = 0; c < QUAD; ++c)
                if (y + 16 * r < rows && x + 16 * c < columns)
                    p.d[(int64)(tile.row + y + 16 * r) * p.row_d
                        + (int64)(tile.column + x + 16 * c) * p.column_d]
                        = narrow<output_t>(sums[r][c]);
    }
}
"""

_TYPES = {"float16": "half_t", "bfloat16": "bfloat_t", "float32": "float"}


def source(input_name, output_name, quad):
    """Return the program, whose kernel is named ``kernel``.

    Parameters
    ----------
    input_name, output_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    quad : {4, 8}
        Results of a thread in each direction: tiles of 64 x 64 or 128 x 128.

    Examples
    --------
    >>> "#define QUAD 8" in source("float16", "float32", 8)
    True
    """
    names = {
        "INPUT": _TYPES[input_name],
        "OUTPUT": _TYPES[output_name],
        "QUAD": quad,
        "MAX_GROUPS": MAX_GROUPS,
    }
    defines = "".join(f"#define {key} {value}\n" for key, value in names.items())
    return defines + TYPES_SOURCE + TILES_SOURCE + PARAMETERS_SOURCE + _PROGRAM

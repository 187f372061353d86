"""CUDA C++ text of the tiled transposition: a copy whose input is contiguous along another axis.

A block moves one square tile through shared memory, so that both the reads (along the input's unit
axis) and the writes (along the output's) are whole lines. Rows of the tile are one bank longer than
a power of two, so that its columns meet no bank conflict. Further axes are walked by blocks. The
parameter struct mirrors `TransposeParameters` of ``cuda_transpose.pyx``.
"""

from gputensor._kernels.cuda_source_types import TYPES_SOURCE
from gputensor._kernels.dtypes import DTYPES

__all__ = ["tile_of", "transpose_source"]

_KERNEL = r"""
struct Batch { uint32 size; int32 in_stride, out_stride; };
struct Parameters {
    char* out;
    const char* in;
    uint32 out_size, in_size;           // lengths of the output's and the input's unit axis
    uint32 out_tiles, in_tiles;
    int32 in_stride, out_stride;        // of the input along the output's unit axis, and reversed
    Batch batch[16];
};
extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    __shared__ TO tile[TILE][TILE + PAD];
    uint32 rest = blockIdx.x;
    const uint32 out_begin = rest % p.out_tiles * TILE;
    rest /= p.out_tiles;
    const uint32 in_begin = rest % p.in_tiles * TILE;
    rest /= p.in_tiles;
    long long in_offset = 0, out_offset = 0;
#pragma unroll
    for (int d = 0; d < BATCH; ++d) {
        const uint32 index = rest % p.batch[d].size;
        rest /= p.batch[d].size;
        in_offset += (long long)index * p.batch[d].in_stride;
        out_offset += (long long)index * p.batch[d].out_stride;
    }
    const TI* in = reinterpret_cast<const TI*>(p.in) + in_offset;
    TO* out = reinterpret_cast<TO*>(p.out) + out_offset;
#pragma unroll
    for (uint32 row = threadIdx.y; row < TILE; row += 8)
#pragma unroll
        for (uint32 column = threadIdx.x; column < TILE; column += 32)
            if (out_begin + row < p.out_size && in_begin + column < p.in_size)
                tile[row][column] = convert<TO>(
                    in[(long long)(out_begin + row) * p.in_stride + (in_begin + column)]);
    __syncthreads();
#pragma unroll
    for (uint32 row = threadIdx.y; row < TILE; row += 8)
#pragma unroll
        for (uint32 column = threadIdx.x; column < TILE; column += 32)
            if (in_begin + row < p.in_size && out_begin + column < p.out_size)
                out[(long long)(in_begin + row) * p.out_stride + (out_begin + column)] =
                    tile[column][row];
}
"""


def tile_of(itemsize):
    """Return the edge of a tile for elements of `itemsize` bytes.

    >>> tile_of(4), tile_of(2)
    (32, 64)
    """
    return 32 if itemsize >= 4 else 64


def transpose_source(out, dtype, batch):
    """Return the CUDA C++ text of the transposition with `batch` further axes.

    >>> "#define TILE 64" in transpose_source(9, 9, 1)
    True
    """
    element = DTYPES[out]
    defines = {
        "TILE": tile_of(element.itemsize),
        "PAD": max(1, 4 // element.itemsize),
        "BATCH": batch,
    }
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    lines.append(TYPES_SOURCE)
    lines.append(f"typedef {element.cuda} TO;\ntypedef {DTYPES[dtype].cuda} TI;")
    return "\n".join([*lines, _KERNEL])

"""The CUDA program for integer products that no library has: 16 x 16 tiles in shared memory.

Sums wrap in two's complement, as the element type of the result does: they are taken in unsigned
words at least as wide, and the low bits are kept. The matrices may have any strides.
"""

__all__ = ["source"]

_PROGRAM = r"""
typedef long long i64;
typedef INPUT input_t;
typedef OUTPUT output_t;
typedef SUM sum_t;

struct Parameters {
    const input_t* a;
    const input_t* b;
    const output_t* c;
    output_t* d;
    i64 m, n, k, batch;
    i64 row_a, column_a, row_b, column_b;     // strides in elements
    i64 ldc, ldd;
    i64 stride_a, stride_b, stride_c, stride_d;
    i64 alpha, beta;
};

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    __shared__ sum_t left[16][17], right[16][17];
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    i64 down = (p.m + 15) / 16, tiles = down * ((p.n + 15) / 16);
    for (i64 tile = blockIdx.x; tile < tiles * p.batch; tile += gridDim.x) {
        i64 item = tile / tiles, place = tile - item * tiles;
        i64 row = place % down * 16 + x;
        i64 column = place / down * 16 + y;
        const input_t* a = p.a + item * p.stride_a;
        const input_t* b = p.b + item * p.stride_b;
        sum_t sum = 0;
        for (i64 first = 0; first < p.k; first += 16) {
            i64 inner = first + y;
            left[y][x] = row < p.m && inner < p.k
                ? (sum_t)a[row * p.row_a + inner * p.column_a] : (sum_t)0;
            inner = first + x;
            right[x][y] = column < p.n && inner < p.k
                ? (sum_t)b[inner * p.row_b + column * p.column_b] : (sum_t)0;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < 16; ++i) sum += left[i][x] * right[i][y];
            __syncthreads();
        }
        if (row < p.m && column < p.n) {
            sum *= (sum_t)p.alpha;
            if (p.beta)
                sum += (sum_t)p.beta * (sum_t)p.c[item * p.stride_c + column * p.ldc + row];
            p.d[item * p.stride_d + column * p.ldd + row] = (output_t)sum;
        }
    }
}
"""

_TYPES = {
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
}


def source(input_name, output_name):
    """Return the program for two element types, by their names.

    >>> "#define INPUT short" in source("int16", "int16")
    True
    """
    wide = output_name in ("int64", "uint64")
    names = {
        "INPUT": _TYPES[input_name],
        "OUTPUT": _TYPES[output_name],
        "SUM": "unsigned long long" if wide else "unsigned int",
    }
    return "".join(f"#define {key} {value}\n" for key, value in names.items()) + _PROGRAM

"""The CUDA programs that write the tables of addresses which pointer-array calls read.

A table is three arrays of `total` addresses: of the matrices A, B and D. One program computes them
from the strides of a batch of any number of dimensions; the other takes them from its parameters,
which a graph keeps, so that both may be captured.
"""

__all__ = ["LISTED", "LISTED_SOURCE", "STRIDED_SOURCE"]

#: Products that one launch of the second program takes.
LISTED = 96

STRIDED_SOURCE = r"""
typedef long long i64;
typedef unsigned long long u64;

struct Parameters {
    u64 a, b, d;
    u64* table;
    i64 total;
    i64 ndim;
    i64 count[17];                  // the fastest dimension first
    i64 step_a[17], step_b[17], step_d[17];   // bytes
};

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    i64 stride = (i64)gridDim.x * blockDim.x;
    for (i64 item = (i64)blockIdx.x * blockDim.x + threadIdx.x; item < p.total; item += stride) {
        u64 a = p.a, b = p.b, d = p.d;
        i64 rest = item;
        for (int axis = 0; axis < p.ndim; ++axis) {
            i64 next = rest / p.count[axis];
            i64 index = rest - next * p.count[axis];
            a += (u64)(index * p.step_a[axis]);
            b += (u64)(index * p.step_b[axis]);
            d += (u64)(index * p.step_d[axis]);
            rest = next;
        }
        p.table[item] = a;
        p.table[p.total + item] = b;
        p.table[2 * p.total + item] = d;
    }
}
"""

LISTED_SOURCE = r"""
typedef long long i64;
typedef unsigned long long u64;

struct Parameters {
    u64* table;
    i64 total, first, count;
    u64 addresses[3 * 96];          // a, b and d of each product
};

extern "C" __global__ void __launch_bounds__(96) kernel(const Parameters p) {
    if (threadIdx.x >= p.count) return;
    for (int which = 0; which < 3; ++which)
        p.table[which * p.total + p.first + threadIdx.x] = p.addresses[3 * threadIdx.x + which];
}
"""

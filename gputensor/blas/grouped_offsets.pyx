"""Grouped products whose row offsets are on the device: one launch that reads them there.

The host neither waits for the offsets nor checks them. On a GPU the work goes to a kernel of ours
(grouped_offsets_source.py), which clamps them; on a host device to NumPy, which does the same.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._kernels.creation cimport fill
from gputensor._kernels.dtypes cimport dtype_is_half
from gputensor._kernels.host_call cimport host_call, host_view, is_host
from gputensor._kernels.module_cache cimport compile_kernel, launch_kernel
from gputensor._kernels.operand cimport DT_FLOAT32, Operand
from gputensor.blas.check cimport check_extents, raise_for_types

from gputensor._kernels.dtypes import DTYPES
from gputensor.blas.grouped_host import offset_products
from gputensor.blas.grouped_offsets_source import MAX_GROUPS, source

cdef enum:
    BLOCK = 256
    BLOCKS = 264                # two for each multiprocessor of an H100 or H200
    LARGE = 8                   # results of a thread in each direction
    SMALL = 4

cdef struct Parameters:         # as in grouped_offsets_source.py
    uint64_t a
    uint64_t b
    uint64_t d
    uint64_t offsets
    int64_t tokens
    int64_t n
    int64_t k
    int64_t row_a
    int64_t term_a
    int64_t group_b
    int64_t term_b
    int64_t column_b
    int64_t row_d
    int64_t column_d
    int first
    int count
    int is_last
    int columns

cdef dict functions = {}        # (device, input code, output code, quad) -> compiled kernel


cdef int offsets_check(const Operand* a, const Operand* b, const Operand* out,
                       const Operand* offsets) except -1:
    cdef int axis
    if a.ndim != 2 or b.ndim != 3 or a.shape[1] != b.shape[1]:
        raise ValueError(
            f"grouped_matmul: tokens of shape {shape_of(a)} do not go with weights of shape "
            f"{shape_of(b)}; (tokens, k) and (groups, k, n) are needed")
    if offsets is not NULL and (offsets.ndim != 1 or offsets.shape[0] != b.shape[0]):
        raise ValueError(f"grouped_matmul: offsets has shape {shape_of(offsets)}; one for each of "
                         f"the {b.shape[0]} groups is needed")
    if out.ndim != 2 or out.shape[0] != a.shape[0] or out.shape[1] != b.shape[2]:
        raise ValueError(f"grouped_matmul: out has shape {shape_of(out)}; the result has "
                         f"({a.shape[0]}, {b.shape[2]})")
    for axis in range(2):
        if out.shape[axis] > 1 and out.strides[axis] == 0 and out.shape[1 - axis]:
            raise ValueError("grouped_matmul: out has elements with more than one index (a stride "
                             "of 0)")
    if a.shape[0] > 0x7FFFFFFF:
        raise ValueError(f"grouped_matmul: {a.shape[0]} tokens; int32 offsets reach 2**31 - 1")
    if a.dtype != b.dtype or not (a.dtype == DT_FLOAT32 or dtype_is_half(a.dtype)):
        raise_for_types(a, b, out)
    if out.dtype != a.dtype and out.dtype != DT_FLOAT32:
        raise_for_types(a, b, out)
    check_extents(out, a, "the tokens")
    check_extents(out, b, "the weights")
    if offsets is not NULL:
        check_extents(out, offsets, "the offsets")
    return 0


cdef tuple shape_of(const Operand* operand):
    cdef int axis
    return tuple([operand.shape[axis] for axis in range(operand.ndim)])


cdef int offsets_launch(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                        Operand* offsets) except -1:
    if is_host(device):
        return host_call(device, stream, offset_products, (
            host_view(out), host_view(a), host_view(b), host_view(offsets)))
    if out.shape[0] == 0 or out.shape[1] == 0:
        return 0
    if a.shape[1] == 0 or b.shape[0] == 0:
        return fill_zeros(device, stream, out)
    return run_any_layout(device, stream, a, b, out, offsets)


cdef int fill_zeros(int device, uint64_t stream, Operand* out) except -1:
    cdef Operand zero
    zero.is_scalar = 1
    zero.ndim = 0
    zero.ptr = 0
    zero.integer = 0
    zero.dtype = out.dtype
    zero.real = zero.imag = 0
    return fill(device, stream, out, &zero)


cdef int run_any_layout(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                        Operand* offsets) except -1:
    cdef Parameters p
    cdef int64_t groups = b.shape[0]
    cdef int64_t tiles
    # Large tiles where a group fills them on average.
    cdef int quad = LARGE if a.shape[0] >= 96 * groups and b.shape[2] >= 96 else SMALL
    cdef int tile = 16 * quad
    cdef uint64_t function = function_for(device, a.dtype, out.dtype, quad)
    p.a, p.b, p.d, p.offsets = a.ptr, b.ptr, out.ptr, offsets.ptr
    p.tokens, p.n, p.k = a.shape[0], b.shape[2], a.shape[1]
    p.row_a, p.term_a = a.strides[0], a.strides[1]
    p.group_b, p.term_b, p.column_b = b.strides[0], b.strides[1], b.strides[2]
    p.row_d, p.column_d = out.strides[0], out.strides[1]
    p.columns = <int>((p.n + tile - 1) // tile)
    p.first = 0
    while p.first < groups:
        p.count = <int>(groups - p.first if groups - p.first < MAX_GROUPS else MAX_GROUPS)
        p.is_last = p.first + p.count == groups
        # Each group, and the rows after the last, may end with a partial tile.
        tiles = (p.tokens // tile + p.count + 1) * p.columns
        launch_kernel(device, stream, function, <uint32_t>(tiles if tiles < BLOCKS else BLOCKS),
                      BLOCK, 0, &p)
        p.first += p.count
    return 0


cdef uint64_t function_for(int device, int dtype, int result, int quad) except 0:
    key = (device, dtype, result, quad)
    found = functions.get(key)
    if found is None:
        text = source(DTYPES[dtype].name, DTYPES[result].name, quad)
        found = functions[key] = compile_kernel(device, text, "kernel", ())
    return found

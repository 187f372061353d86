// The element-wise kernels: one choice of operation, types, vector width and layout each.
//
// A thread computes UNROLL units; a unit is VECTOR neighbouring elements along the innermost axis.
// Each of up to three operands is read in one MODE:
//
//     UNIT     neighbouring elements are neighbours in memory: one load of VECTOR elements
//     STRIDED  one element a unit (VECTOR is 1, or the innermost stride is 0: one for the unit)
//     SPACED   neighbouring elements are STEPi apart, 2 to 4 or backwards: the unit is read with
//              all between, by loads of PIECEi; its lowest is SHIFTi elements into the first load
//     SCALAR   the value travels in the parameters, already of the arithmetic type
//     ABSENT   the operation has fewer operands
//
// RANK 0 means that every operand is UNIT or SCALAR over the whole index space, so that no index
// arithmetic remains, and single threads take the last elements that do not fill a vector.
// Otherwise RANK is the number of axes left after merging; axes come innermost first, and all
// offsets fit 32 bits (the launcher cuts larger arrays).
//
// Defined before this text: VECTOR, RANK, UNROLL, BLOCK; OUTPUT, the stored type of the result; for
// each operand i: MODEi (if SPACED, also STEPi, SHIFTi and PIECEi), INPUTi (its stored type), STOREDi
// (the type to which it is converted) and ARITHMETICi (the arithmetic type of STOREDi); ARITHMETIC,
// the type of the operation; EXPRESSION of the values a, b and c, and RESULT, the type of its value
// (RESULT_IS_BOOLEAN: narrowed directly).
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/_kernels/cuda/types.cuh"
#include "gputensor/_kernels/cuda/math.cuh"
#include "gputensor/_kernels/cuda/divide.cuh"
#include "gputensor/_kernels/cuda/elementwise.h"
#include "gputensor/_kernels/cuda/vector.cuh"

typedef ElementwiseParameters Parameters;
typedef OUTPUT TO;
typedef ARITHMETIC C;

// FOR_INPUTS(WHAT) is WHAT_<mode>(number, name) for each operand. Operand 0 always exists.
#define PASTE(what, mode) what##_##mode
#define DO(what, mode, i, name) PASTE(what, mode)(i, name)
#define FOR_INPUTS(what) DO(what, MODE0, 0, a) DO(what, MODE1, 1, b) DO(what, MODE2, 2, c)
#define FOR_LATER_INPUTS(what) DO(what, MODE1, 1, b) DO(what, MODE2, 2, c)

#define TYPES_UNIT(i, name) typedef INPUT##i T##i; typedef ARITHMETIC##i C##i;
#define TYPES_STRIDED TYPES_UNIT
#define TYPES_SPACED TYPES_UNIT
#define TYPES_SCALAR TYPES_UNIT
#define TYPES_ABSENT(i, name)
FOR_INPUTS(TYPES)

// The parameters of compute: stored elements, or scalars.
#define TAKE_UNIT(i, name) T##i stored_##name
#define TAKE_STRIDED TAKE_UNIT
#define TAKE_SPACED TAKE_UNIT
#define TAKE_SCALAR(i, name) C##i name
#define AND_TAKE_UNIT(i, name) , T##i stored_##name
#define AND_TAKE_STRIDED AND_TAKE_UNIT
#define AND_TAKE_SPACED AND_TAKE_UNIT
#define AND_TAKE_SCALAR(i, name) , C##i name
#define AND_TAKE_ABSENT(i, name)
#define VALUE_UNIT(i, name) const C##i name = wide(convert<STORED##i>(stored_##name));
#define VALUE_STRIDED VALUE_UNIT
#define VALUE_SPACED VALUE_UNIT
#define VALUE_SCALAR(i, name)
#define VALUE_ABSENT(i, name)

__device__ __forceinline__ TO compute(DO(TAKE, MODE0, 0, a) FOR_LATER_INPUTS(AND_TAKE)) {
    FOR_INPUTS(VALUE)
#if RESULT_IS_BOOLEAN
    return narrow<TO>(EXPRESSION);
#else
    return convert<TO>(narrow<RESULT>(EXPRESSION));
#endif
}

// A thread's part of an operand: the elements of its units, or the scalar.
#define DECLARE_UNIT(i, name) Vector<T##i, VECTOR> x##i[UNROLL];
#define DECLARE_STRIDED(i, name) Vector<T##i, 1> x##i[UNROLL];
#define DECLARE_SPACED(i, name) \
    Spaced<T##i, VECTOR, STEP##i, SHIFT##i, PIECE##i> x##i[UNROLL];
#define DECLARE_SCALAR(i, name) const C##i s##i = *reinterpret_cast<const C##i*>(&p.scalars[i]);
#define DECLARE_ABSENT(i, name)
#define OFFSET_UNIT(i, name) int32 offset##i = 0;
#define OFFSET_STRIDED OFFSET_UNIT
#define OFFSET_SPACED OFFSET_UNIT
#define OFFSET_SCALAR(i, name)
#define OFFSET_ABSENT(i, name)
#define STEP_UNIT(i, name) offset##i += index * p.axes[d].strides[i];
#define STEP_STRIDED STEP_UNIT
#define STEP_SPACED STEP_UNIT
#define STEP_SCALAR(i, name)
#define STEP_ABSENT(i, name)
#if RANK
#define BYTES_AT(i) (long long)offset##i * (long long)sizeof(T##i)
#else
#define BYTES_AT(i) (long long)unit * (VECTOR * sizeof(T##i))
#endif
#define LOAD_UNIT(i, name) \
    x##i[u] = *reinterpret_cast<const Vector<T##i, VECTOR>*>(p.inputs[i] + BYTES_AT(i));
#define LOAD_STRIDED(i, name) \
    x##i[u].item[0] = reinterpret_cast<const T##i*>(p.inputs[i])[(long long)offset##i];
#define LOAD_SPACED(i, name) \
    x##i[u].load(reinterpret_cast<const T##i*>(p.inputs[i]) + (long long)offset##i);
#define LOAD_SCALAR(i, name)
#define LOAD_ABSENT(i, name)
#define ITEM_UNIT(i, name) x##i[u].item[v]
#define ITEM_STRIDED(i, name) x##i[u].item[0]
#define ITEM_SPACED(i, name) x##i[u].item(v)
#define ITEM_SCALAR(i, name) s##i
#define AND_ITEM_UNIT(i, name) , x##i[u].item[v]
#define AND_ITEM_STRIDED(i, name) , x##i[u].item[0]
#define AND_ITEM_SPACED(i, name) , x##i[u].item(v)
#define AND_ITEM_SCALAR(i, name) , s##i
#define AND_ITEM_ABSENT(i, name)
#define LAST_UNIT(i, name) reinterpret_cast<const T##i*>(p.inputs[i])[element]
#define LAST_SCALAR(i, name) s##i
#define AND_LAST_UNIT(i, name) , reinterpret_cast<const T##i*>(p.inputs[i])[element]
#define AND_LAST_SCALAR(i, name) , s##i
#define AND_LAST_ABSENT(i, name)

extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const Parameters p) {
    start_early();
    const uint32 first = blockIdx.x * (BLOCK * UNROLL) + threadIdx.x;
    FOR_INPUTS(DECLARE)
#if RANK
    int32 out_offset[UNROLL];
#endif
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const uint32 unit = first + u * BLOCK;
        if (unit < p.units) {
#if RANK
            uint32 rest = unit;
            FOR_INPUTS(OFFSET)
            out_offset[u] = 0;
#pragma unroll
            for (int d = 0; d < RANK; ++d) {
#if RANK > 1
                uint32 next = d + 1 < RANK ? divide(rest, p.axes[d]) : 0;
                int32 index = (int32)(rest - next * p.axes[d].size);
                rest = next;
#else
                int32 index = (int32)rest;
#endif
                FOR_INPUTS(STEP)
                out_offset[u] += index * p.axes[d].strides[3];
            }
#endif
            FOR_INPUTS(LOAD)
        }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const uint32 unit = first + u * BLOCK;
        if (unit < p.units) {
            Vector<TO, VECTOR> result;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                result.item[v] = compute(DO(ITEM, MODE0, 0, a) FOR_LATER_INPUTS(AND_ITEM));
#if RANK
            *reinterpret_cast<Vector<TO, VECTOR>*>(
                p.out + (long long)out_offset[u] * (long long)sizeof(TO)) = result;
        }
#else
            *reinterpret_cast<Vector<TO, VECTOR>*>(
                p.out + (long long)unit * (VECTOR * sizeof(TO))) = result;
        } else if (unit - p.units < p.tail) {
            const long long element = (long long)p.units * VECTOR + (unit - p.units);
            reinterpret_cast<TO*>(p.out)[element] =
                compute(DO(LAST, MODE0, 0, a) FOR_LATER_INPUTS(AND_LAST));
        }
#endif
    }
}

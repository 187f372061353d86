// Copies of matrices between row pitches of any alignment.
//
// One launch takes up to three matrices (A, B and, when it is added to, C), so the operands of a
// product are padded by one kernel. Rows and row ends that the source lacks are written as zeros. A
// thread writes 16 bytes that are aligned in the target. Their source starts at any byte, so the
// thread reads the five aligned words around it and shifts them. The blocks at the two ends of a
// row, which may also belong to its neighbours, are written element by element. The kernel copies
// bytes and needs no element types.
#pragma once

#include "gputensor/_kernels/cuda/chain/early.cuh"
#include "gputensor/blas/kernels/padding/relayout.h"

typedef RelayoutParameters Parameters;

__device__ inline void copy_ends(char* to, const char* from, int64 nbytes, uint32 step) {
    if (step == 2) {
        for (int64 i = 0; i < nbytes; i += 2) *(short*)(to + i) = *(const short*)(from + i);
    } else if (step == 4) {
        for (int64 i = 0; i < nbytes; i += 4) *(int*)(to + i) = *(const int*)(from + i);
    } else if (step == 8) {
        for (int64 i = 0; i < nbytes; i += 8) *(int64*)(to + i) = *(const int64*)(from + i);
    } else {
        for (int64 i = 0; i < nbytes; ++i) to[i] = from[i];
    }
}

__device__ inline void zero_ends(char* to, int64 nbytes, uint32 step) {
    if (step == 2) {
        for (int64 i = 0; i < nbytes; i += 2) *(short*)(to + i) = 0;
    } else if (step == 4) {
        for (int64 i = 0; i < nbytes; i += 4) *(int*)(to + i) = 0;
    } else if (step == 8) {
        for (int64 i = 0; i < nbytes; i += 8) *(int64*)(to + i) = 0;
    } else {
        for (int64 i = 0; i < nbytes; ++i) to[i] = 0;
    }
}

__device__ inline void copy_block(const RelayoutPiece& piece, uint64 row, uint64 block,
                                  uint32 step) {
    uint64 matrix = row / piece.rows;
    uint64 line = row - matrix * piece.rows;
    uint64 target = piece.target + matrix * piece.target_batch + line * piece.target_pitch;
    uint64 source = piece.source + matrix * piece.source_batch + line * piece.source_pitch;
    uint64 start = (target & ~15ull) + 16 * block;
    uint64 low = start > target ? start : target;
    uint64 end = target + piece.row_nbytes;
    uint64 high = start + 16 < end ? start + 16 : end;
    if (low >= high) return;
    int64 have = line < piece.source_rows ? piece.source_nbytes - (int64)(low - target) : 0;
    if (high - low != 16 || have < 16) {
        int64 nbytes = (int64)(high - low);
        int64 copied = have < 0 ? 0 : have < nbytes ? have : nbytes;
        copy_ends((char*)low, (const char*)(source + (low - target)), copied, step);
        zero_ends((char*)low + copied, nbytes - copied, step);
        return;
    }
    uint64 from = source + (start - target);
    uint32 shift = (uint32)(from & 3) * 8;
    const uint32* words = (const uint32*)(from & ~3ull);
    uint32 w0 = words[0], w1 = words[1], w2 = words[2], w3 = words[3];
    uint32 w4 = shift ? words[4] : 0;
    uint4 value;
    value.x = __funnelshift_r(w0, w1, shift);
    value.y = __funnelshift_r(w1, w2, shift);
    value.z = __funnelshift_r(w2, w3, shift);
    value.w = __funnelshift_r(w3, w4, shift);
    *(uint4*)start = value;
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    start_early();
    uint64 stride = (uint64)gridDim.x * blockDim.x;
    for (uint64 index = (uint64)blockIdx.x * blockDim.x + threadIdx.x; index < p.total;
         index += stride) {
        uint32 which = 0;
        uint64 first = 0;
        if (index >= p.pieces[0].last) { which = 1; first = p.pieces[0].last; }
        if (p.count > 2 && index >= p.pieces[1].last) { which = 2; first = p.pieces[1].last; }
        const RelayoutPiece& piece = p.pieces[which];
        uint64 own = index - first;
        uint64 row;
        if ((own >> 32) == 0 && (piece.blocks >> 32) == 0)
            row = (uint32)own / (uint32)piece.blocks;
        else
            row = own / piece.blocks;
        copy_block(piece, row, own - row * piece.blocks, p.step);
    }
}

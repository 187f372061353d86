"""The CUDA program that copies matrices between row pitches of any alignment.

One launch takes up to three matrices (A, B and, when it is added to, C), so the operands of a
product are padded by one kernel. Rows and row ends that the source lacks are written as zeros. A
thread writes 16 bytes that are aligned in the target; their source starts at any byte, so it reads
the five aligned words around them and shifts. The blocks at the two ends of a row, which may belong
to its neighbours too, are written element by element. It knows bytes only, no element types.
"""

__all__ = ["SOURCE"]

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct Piece {
    u64 source, target;
    i64 source_pitch, target_pitch;   // bytes from row to row
    i64 source_batch, target_batch;   // bytes from matrix to matrix
    i64 row_nbytes;                   // of the target
    i64 source_nbytes;                // of a row of the source; zeros follow
    u64 rows;                         // of one matrix
    u64 source_rows;                  // rows of zeros follow
    u64 blocks;                       // of 16 bytes that one row may touch
    u64 last;                         // one past the index of the piece's last block
};

struct Parameters {
    Piece pieces[3];
    u64 total;
    u32 count;
    u32 step;                         // bytes that rows' ends are copied by: 1, 2, 4 or 8
};

__device__ inline void copy_ends(char* to, const char* from, i64 nbytes, u32 step) {
    if (step == 2) {
        for (i64 i = 0; i < nbytes; i += 2) *(short*)(to + i) = *(const short*)(from + i);
    } else if (step == 4) {
        for (i64 i = 0; i < nbytes; i += 4) *(int*)(to + i) = *(const int*)(from + i);
    } else if (step == 8) {
        for (i64 i = 0; i < nbytes; i += 8) *(i64*)(to + i) = *(const i64*)(from + i);
    } else {
        for (i64 i = 0; i < nbytes; ++i) to[i] = from[i];
    }
}

__device__ inline void zero_ends(char* to, i64 nbytes, u32 step) {
    if (step == 2) {
        for (i64 i = 0; i < nbytes; i += 2) *(short*)(to + i) = 0;
    } else if (step == 4) {
        for (i64 i = 0; i < nbytes; i += 4) *(int*)(to + i) = 0;
    } else if (step == 8) {
        for (i64 i = 0; i < nbytes; i += 8) *(i64*)(to + i) = 0;
    } else {
        for (i64 i = 0; i < nbytes; ++i) to[i] = 0;
    }
}

__device__ inline void copy_block(const Piece& piece, u64 row, u64 block, u32 step) {
    u64 matrix = row / piece.rows;
    u64 line = row - matrix * piece.rows;
    u64 target = piece.target + matrix * piece.target_batch + line * piece.target_pitch;
    u64 source = piece.source + matrix * piece.source_batch + line * piece.source_pitch;
    u64 start = (target & ~15ull) + 16 * block;
    u64 low = start > target ? start : target;
    u64 end = target + piece.row_nbytes;
    u64 high = start + 16 < end ? start + 16 : end;
    if (low >= high) return;
    i64 have = line < piece.source_rows ? piece.source_nbytes - (i64)(low - target) : 0;
    if (high - low != 16 || have < 16) {
        i64 nbytes = (i64)(high - low);
        i64 copied = have < 0 ? 0 : have < nbytes ? have : nbytes;
        copy_ends((char*)low, (const char*)(source + (low - target)), copied, step);
        zero_ends((char*)low + copied, nbytes - copied, step);
        return;
    }
    u64 from = source + (start - target);
    u32 shift = (u32)(from & 3) * 8;
    const u32* words = (const u32*)(from & ~3ull);
    u32 w0 = words[0], w1 = words[1], w2 = words[2], w3 = words[3];
    u32 w4 = shift ? words[4] : 0;
    uint4 value;
    value.x = __funnelshift_r(w0, w1, shift);
    value.y = __funnelshift_r(w1, w2, shift);
    value.z = __funnelshift_r(w2, w3, shift);
    value.w = __funnelshift_r(w3, w4, shift);
    *(uint4*)start = value;
}

extern "C" __global__ void __launch_bounds__(256) kernel(const Parameters p) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x; index < p.total;
         index += stride) {
        u32 which = 0;
        u64 first = 0;
        if (index >= p.pieces[0].last) { which = 1; first = p.pieces[0].last; }
        if (p.count > 2 && index >= p.pieces[1].last) { which = 2; first = p.pieces[1].last; }
        const Piece& piece = p.pieces[which];
        u64 own = index - first;
        u64 row;
        if ((own >> 32) == 0 && (piece.blocks >> 32) == 0)
            row = (u32)own / (u32)piece.blocks;
        else
            row = own / piece.blocks;
        copy_block(piece, row, own - row * piece.blocks, p.step);
    }
}
"""

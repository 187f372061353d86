// Warps, asynchronous copies, barriers in shared memory and tensor cores, for kernels on the CPU.
//
// Included after cuda_on_cpu.h, whose fibers know only barriers of a whole block. Here a thread
// that waits lets the others run until its barrier opens, in an order that follows from a seed and
// is another in each pass; some warps run only when no other can. What a GPU may do late is done
// late or at once, as the seed says: copies when their thread waits for them or at any time before
// they arrive at a barrier, products of warpgroups at their wait. So a kernel that reads too early
// reads NaN, and one that overwrites too early changes its result. A block's shared memory begins
// as NaN, as does that behind its end, which has to stay so. Products are computed from fragments
// and descriptors as the PTX manual draws them.
//
// Defined before: KIND, 0 for float16, 1 for bfloat16, 2 for float32 as TF32; CPU_BLOCKS, the
// blocks of a cluster.
#pragma once
#include <stdio.h>
#include "tensor_map.h"

#define __align__(n)
#define __cluster_dims__(...)
#define __grid_constant__
#define __cvta_generic_to_shared(at) (unsigned)((const char*)(at) - cpu_shared)

struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T> static T __ldg(const T* at) { return *at; }
template <class T> static T __ldcg(const T* at) { return *at; }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static long long min(long long a, long long b) { return a < b ? a : b; }

static unsigned long long cpu_state = 1;
static unsigned cpu_random(unsigned count) {
    cpu_state ^= cpu_state << 13;
    cpu_state ^= cpu_state >> 7;
    cpu_state ^= cpu_state << 17;
    return (unsigned)(cpu_state >> 32) % count;
}
static void cpu_fault(const char* text) {
    fprintf(stderr, "kernel on the CPU: %s\n", text);
    abort();
}

struct CpuCopy {                    // size 0: arrive at `to` when the copies before it are done
    unsigned to;
    const char* from;
    int size, nbytes, group;
    unsigned blocks, barrier;       // of a bulk copy: to which blocks, and what counts its bytes
    int place[4];                   // of a box; `from` is its tensor map
    bool is_box;
};
struct CpuStore { char* to; unsigned from, nbytes; };
struct CpuProduct {                 // d[64][columns] (+)= a b; `held`: a is in registers
    float* d;
    const unsigned* held;
    unsigned long long a, b;
    int columns, group;
    bool adds, is_along;
};
static const size_t CPU_STACK = CpuStacks::NBYTES;       // a kernel may define NBYTES
enum { CPU_COPIES = 512, CPU_PRODUCTS = 64, CPU_STORES = 8 };
struct CpuBlock;
struct CpuThread {
    jmp_buf turn;
    const short* generation;        // it waits until this is no longer `last`
    short last;
    bool is_begun, is_done;
    unsigned number;
    CpuBlock* block;
    CpuCopy* copies;                // a ring of CPU_COPIES
    CpuProduct* products;
    CpuStore stores[CPU_STORES];    // bulk copies to global memory
    int copies_done, copies_all, arrivals, copy_groups, product_count, product_groups;
    int store_count;
};
static jmp_buf cpu_turns;
static CpuThread *cpu_threads, *cpu_self;
static void cpu_wait_for(const short* generation) {
    cpu_self->generation = generation;
    cpu_self->last = *generation;
    if (_setjmp(cpu_self->turn) == 0) _longjmp(cpu_turns, 1);
}
struct CpuBarrier {
    int came;
    short generation;
    bool arrive(int count) {
        if (++came < count) return false;
        came = 0;
        ++generation;
        return true;
    }
    void wait(int count) {
        if (!arrive(count)) cpu_wait_for(&generation);
    }
};
struct CpuWarp {
    CpuBarrier barrier;
    unsigned lanes[32], fragments[32][6];
    float left[16][16], right[16][256];
};
enum { CPU_SHARED = 234 << 10, CPU_FIXED = 233 << 10, CPU_GUARD = 4096 };
struct CpuBlock {
    char memory[CPU_SHARED + 1024];
    char* shared;
    CpuBarrier all, named[16];
    CpuWarp warps[32];
};
static CpuBlock cpu_cluster[CPU_BLOCKS];
static CpuBarrier cpu_whole;
static char* cpu_shared;
static unsigned cpu_asked;          // bytes of shared memory of the launch
static bool cpu_late;

static CpuWarp& cpu_warp() { return cpu_self->block->warps[threadIdx.x / 32]; }
#define __syncthreads() cpu_self->block->all.wait(blockDim.x)
#define __syncwarp() cpu_warp().barrier.wait(32)
static char* cpu_at(unsigned at, unsigned nbytes, unsigned multiple) {
    if (at % multiple) cpu_fault("an address in shared memory is not aligned");
    if (at + nbytes > cpu_asked) cpu_fault("an address is behind the end of shared memory");
    return cpu_shared + at;
}
template <class T> static T cpu_from_lane(T value, int lane) {
    CpuWarp& warp = cpu_warp();
    memcpy(&warp.lanes[threadIdx.x % 32], &value, 4);
    __syncwarp();
    memcpy(&value, &warp.lanes[lane], 4);
    __syncwarp();
    return value;
}
#define __shfl_sync(mask, value, lane) cpu_from_lane(value, lane)
#define __shfl_down_sync(mask, value, distance) \
    cpu_from_lane(value, min(threadIdx.x % 32 + (distance), 31))
#define __shfl_xor_sync(mask, value, bits) cpu_from_lane(value, threadIdx.x % 32 ^ (bits))

// ---- barriers in shared memory

// 8 bytes, as on a GPU: arrivals of a phase, those left, and bytes announced that did not come.
struct CpuPhases {
    short generation;
    unsigned char count, left;
    int nbytes;
};
static CpuPhases& cpu_phases(unsigned at, CpuBlock* block = cpu_self->block) {
    if (at % 8 || at >= CPU_SHARED) cpu_fault("a barrier has no place");
    return *(CpuPhases*)(block->shared + at);
}
static void cpu_begin(unsigned at, int count) {
    cpu_phases(at) = {0, (unsigned char)count, (unsigned char)count, 0};
}
static void cpu_count(CpuPhases& phases, int arrivals, int nbytes) {
    if (phases.count == 0 || phases.nbytes == -1) cpu_fault("a barrier was not initialised");
    if (arrivals > phases.left) cpu_fault("more arrivals at a barrier than it counts");
    phases.left -= arrivals;
    phases.nbytes += nbytes;
    if (phases.left || phases.nbytes) return;
    phases.left = phases.count;
    ++phases.generation;
}
static void cpu_arrive(unsigned at, int nbytes = 0) { cpu_count(cpu_phases(at), 1, nbytes); }
static void cpu_arrive_at(unsigned at, int rank) {
    cpu_count(cpu_phases(at, &cpu_cluster[rank]), 1, 0);
}
static bool cpu_try(unsigned at, int parity) {
    const CpuPhases& phases = cpu_phases(at);
    if (phases.count == 0 || phases.nbytes == -1) cpu_fault("a barrier was not initialised");
    if ((phases.generation & 1) != parity) return true;
    cpu_wait_for(&phases.generation);
    return true;
}

// ---- asynchronous copies

static void cpu_do_box(const CpuCopy& copy) {
    const CpuTensorMap& map = *(const CpuTensorMap*)copy.from;
    for (int i = 0; i < copy.size / 2; ++i) {
        int64_t place[4];
        for (int axis = 0, rest = i; axis < 4; rest /= map.box[axis++])
            place[axis] = copy.place[axis] + rest % map.box[axis];
        const unsigned to = copy.to + 2 * i;
        char* const there = cpu_at(to ^ (to >> 7 & 7) << 4, 2, 2);
        if (const char* from = map.at(place)) memcpy(there, from, 2); else memset(there, 0, 2);
    }
    cpu_count(cpu_phases(copy.barrier), 0, -copy.size);
}
static void cpu_do(const CpuCopy& copy) {
    if (copy.is_box) return cpu_do_box(copy);
    if (!copy.size) return cpu_arrive(copy.to);
    for (int i = 0; i < CPU_BLOCKS; ++i)
        if (copy.blocks >> i & 1) {
            cpu_at(copy.to, copy.size, 16);
            memcpy(cpu_cluster[i].shared + copy.to, copy.from, copy.size);
            cpu_count(cpu_phases(copy.barrier, &cpu_cluster[i]), 0, -copy.size);
        }
    if (copy.blocks) return;
    char* const to = cpu_at(copy.to, copy.size, copy.size);
    memset(to, 0, copy.size);
    memcpy(to, copy.from, copy.nbytes);
}
// Does the copies of a thread up to group `group`.
static void cpu_copy_up_to(CpuThread& thread, int group) {
    while (thread.copies_done < thread.copies_all
           && thread.copies[thread.copies_done % CPU_COPIES].group <= group)
        cpu_do(thread.copies[thread.copies_done++ % CPU_COPIES]);
}
static void cpu_queue(const CpuCopy& copy) {
    CpuThread& self = *cpu_self;
    if (self.copies_all - self.copies_done == CPU_COPIES) cpu_fault("too many copies at once");
    if (!cpu_late && self.copies_all == self.copies_done) return cpu_do(copy);
    self.arrivals += !copy.size || copy.blocks;
    self.copies[self.copies_all++ % CPU_COPIES] = copy;
}
static void cpu_copy(unsigned to, const char* from, int size, int nbytes) {
    if (size && ((size_t)from % size || nbytes > size)) cpu_fault("a copy is not aligned");
    cpu_queue({to, from, size, nbytes, cpu_self->copy_groups});
}
static void cpu_bulk(unsigned to, unsigned long long from, int size, unsigned barrier,
                     unsigned blocks) {
    if (from % 16 || size % 16) cpu_fault("a bulk copy is not aligned");
    cpu_queue({to, (const char*)from, size, size, cpu_self->copy_groups, blocks, barrier});
}
// A box of four axes, to this block.
static void cpu_box(unsigned to, const void* words, int a, int b, int c, int d, unsigned barrier) {
    const CpuTensorMap& map = *(const CpuTensorMap*)words;
    if (to % 1024 || map.is_pixels || map.axes != 4 || map.box[0] != 64)
        cpu_fault("a box has another form");
    const int size = 128 * map.box[1] * map.box[2] * map.box[3];
    cpu_queue({to, (const char*)words, size, size, cpu_self->copy_groups,
               1u << (cpu_self->block - cpu_cluster), barrier, {a, b, c, d}, true});
}
static void cpu_do(const CpuStore& store) {
    memcpy(store.to, cpu_at(store.from, store.nbytes, 16), store.nbytes);
}
static void cpu_store(unsigned long long to, unsigned from, unsigned nbytes) {
    CpuThread& self = *cpu_self;
    const CpuStore store = {(char*)to, from, nbytes};
    if (to % 16 || nbytes % 16) cpu_fault("a bulk copy is not aligned");
    if (self.store_count == CPU_STORES) cpu_fault("too many bulk copies at once");
    if (cpu_late) self.stores[self.store_count++] = store; else cpu_do(store);
}
static void cpu_stores_wait() {
    for (int i = 0; i < cpu_self->store_count; ++i) cpu_do(cpu_self->stores[i]);
    cpu_self->store_count = 0;
}
static void cpu_copies_wait(int pending) {
    cpu_copy_up_to(*cpu_self, cpu_self->copy_groups - pending - 1);
}

// ---- elements, fragments, products of warps

// Elements have 2 bytes, or 4 with KIND 2; those of a row of a fragment have 32.
enum { CPU_NBYTES = KIND == 2 ? 4 : 2, CPU_TERMS = 32 / CPU_NBYTES };
static float cpu_wide(unsigned bits) {
    return KIND == 2 ? __uint_as_float(bits & 0xffffe000u)
         : KIND == 1 ? __uint_as_float(bits << 16) : cpu_half_to_float((unsigned short)bits);
}
static unsigned short cpu_narrow(float x) {
    return KIND == 1 ? cpu_float_to_bfloat(x) : cpu_float_to_half(x);
}
static unsigned cpu_pack(float low, float high) {
    return (unsigned)cpu_narrow(high) << 16 | cpu_narrow(low);
}
// Lane 8 i + r gives the address of row r of matrix i; each lane gets two elements of each, which
// are neighbours in a row, or with `is_turned` in a column.
static void cpu_matrices(unsigned* x, unsigned at, bool is_turned) {
    CpuWarp& warp = cpu_warp();
    const int lane = threadIdx.x % 32;
    warp.lanes[lane] = at;
    __syncwarp();
    for (int i = 0; i < 4; ++i)
        for (int v = 0; v < 2; ++v) {
            const int row = is_turned ? lane % 4 * 2 + v : lane / 4;
            const int column = is_turned ? lane / 4 : lane % 4 * 2 + v;
            memcpy((char*)&x[i] + 2 * v,
                   cpu_at(warp.lanes[8 * i + row], 16, 16) + 2 * column, 2);
        }
    __syncwarp();
}
// The inverse of cpu_matrices without `is_turned`.
static void cpu_store_matrices(unsigned at, const unsigned* x) {
    CpuWarp& warp = cpu_warp();
    const int lane = threadIdx.x % 32;
    warp.lanes[lane] = at;
    __syncwarp();
    for (int i = 0; i < 4; ++i)
        memcpy(cpu_at(warp.lanes[8 * i + lane / 4], 16, 16) + lane % 4 * 4, &x[i], 4);
    __syncwarp();
}
// Transposes a matrix of 8 rows, of which each lane has two neighbours of one row.
static unsigned cpu_turned(unsigned x) {
    CpuWarp& warp = cpu_warp();
    const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
    warp.lanes[lane] = x;
    __syncwarp();
    const unsigned first = warp.lanes[column * 4 + row / 2] >> row % 2 * 16 & 0xffff;
    const unsigned second = warp.lanes[(column + 1) * 4 + row / 2] >> row % 2 * 16 & 0xffff;
    __syncwarp();
    return second << 16 | first;
}
// Rounds a float32 to the nearest TF32: ties to even, or away from 0.
static unsigned cpu_tf32(unsigned x, bool is_away) {
    if ((x & 0x7f800000u) == 0x7f800000u) return x & 0x7fffffu ? 0x7fffffffu : x;
    return x + (is_away ? 0x1000u : 0xfffu + (x >> 13 & 1)) & 0xffffe000u;
}
// The elements of a word of a fragment.
static float cpu_part(unsigned word, int i) {
    return cpu_wide(KIND == 2 ? word : word >> 16 * i & 0xffff);
}
// Puts the elements of a of this lane, four words, where the warp's lanes find them.
static void cpu_spread_left(CpuWarp& warp, const unsigned* a) {
    const int lane = threadIdx.x % 32, each = 4 / CPU_NBYTES;
    for (int i = 0; i < 4; ++i)
        for (int v = 0; v < each; ++v)
            warp.left[lane / 4 + i % 2 * 8][(lane % 4 + i / 2 * 4) * each + v] = cpu_part(a[i], v);
}
// mma m16n8k16 of 16-bit floats and m16n8k8 of TF32: d += a b.
static void cpu_multiply(float* d, const unsigned* a, unsigned b0, unsigned b1) {
    CpuWarp& warp = cpu_warp();
    const int lane = threadIdx.x % 32, each = 4 / CPU_NBYTES;
    const unsigned b[2] = {b0, b1};
    cpu_spread_left(warp, a);
    for (int i = 0; i < 2; ++i)
        for (int v = 0; v < each; ++v)
            warp.right[(lane % 4 + i * 4) * each + v][lane / 4] = cpu_part(b[i], v);
    __syncwarp();
    for (int e = 0; e < 4; ++e)
        for (int k = 0; k < CPU_TERMS; ++k)
            d[e] += warp.left[lane / 4 + e / 2 * 8][k] * warp.right[k][lane % 4 * 2 + e % 2];
    __syncwarp();
}

// ---- products of warpgroups

// Rows of 128 bytes, whose pieces of 16 are exchanged by the number of the row mod 8; or of 64, by
// half of that number mod 4.
static float cpu_element(unsigned at, int row) {
    unsigned bits = 0;
    at ^= (at >> 7 & (row == 128 ? 7 : 3)) << 4;
    memcpy(&bits, cpu_at(at, CPU_NBYTES, CPU_NBYTES), CPU_NBYTES);
    return cpu_wide(bits);
}
static void cpu_do(const CpuProduct& p) {
    CpuWarp& warp = cpu_warp();
    const int lane = threadIdx.x % 32;
    const unsigned left = (p.a & 0x3fff) << 4, right = (p.b & 0x3fff) << 4;
    const unsigned rows = (p.a >> 32 & 0x3fff) << 4, lines = (p.b >> 32 & 0x3fff) << 4;
    const unsigned panels = (p.b >> 16 & 0x3fff) << 4;
    const int mode = (int)(p.b >> 62), row_nbytes = mode == 1 ? 128 : 64, wide = row_nbytes / 2;
    if ((mode != 1 && mode != 2) || (!p.held && (int)(p.a >> 62) != mode))
        cpu_fault("a matrix is not swizzled");
    if (!p.is_along && p.columns > wide && panels == 0) cpu_fault("panels have no distance");
    if (p.held) cpu_spread_left(warp, p.held);
    else
        for (int i = lane; i < 16 * CPU_TERMS; i += 32) {
            const int row = threadIdx.x / 32 % 4 * 16 + i / CPU_TERMS, k = i % CPU_TERMS;
            warp.left[i / CPU_TERMS][k] = cpu_element(
                left + row / 8 * rows + row % 8 * row_nbytes + k * CPU_NBYTES, row_nbytes);
        }
    for (int i = lane; i < CPU_TERMS * p.columns; i += 32) {
        const int k = i % CPU_TERMS, column = i / CPU_TERMS;
        warp.right[k][column] = cpu_element(
            right + (p.is_along ? column / 8 * lines + column % 8 * row_nbytes + k * CPU_NBYTES
                                : column / wide * panels + k / 8 * lines + k % 8 * row_nbytes
                                      + column % wide * 2), row_nbytes);
    }
    __syncwarp();
    for (int i = 0; i < p.columns / 2; ++i) {
        const int row = lane / 4 + 8 * (i % 4 / 2), column = i / 4 * 8 + 2 * (lane % 4) + i % 2;
        float sum = p.adds ? p.d[i] : 0;
        for (int k = 0; k < CPU_TERMS; ++k) sum += warp.left[row][k] * warp.right[k][column];
        p.d[i] = sum;
    }
    __syncwarp();
}
static void cpu_multiply_group(float* d, const unsigned* held, unsigned long long a,
                               unsigned long long b, int columns, bool adds, bool is_along) {
    CpuThread& self = *cpu_self;
    const CpuProduct product = {d, held, a, b, columns, self.product_groups, adds, is_along};
    if (!cpu_late) return cpu_do(product);
    if (self.product_count == CPU_PRODUCTS) cpu_fault("too many products without a wait");
    self.products[self.product_count++] = product;
}
static void cpu_products_wait(int pending) {
    CpuThread& self = *cpu_self;
    int done = 0;
    while (done < self.product_count
           && self.products[done].group < self.product_groups - pending)
        cpu_do(self.products[done++]);
    self.product_count -= done;
    memmove(self.products, self.products + done, self.product_count * sizeof(CpuProduct));
}
// Both matrices along k, by the lower halves of their descriptors.
static void cpu_multiply_lower(float* d, unsigned a, unsigned b, int columns, bool adds) {
    const unsigned long long upper = 0x40000040ull << 32;
    cpu_multiply_group(d, nullptr, upper | a, upper | b, columns, adds, true);
}

// ---- clusters; an address of another block has its number above bit 24

static void cpu_meet() { cpu_whole.wait(CPU_BLOCKS * blockDim.x); }
static char* cpu_there(unsigned at, unsigned nbytes) {
    cpu_at(at & 0xffffff, nbytes, nbytes);
    return cpu_cluster[at >> 24].shared + (at & 0xffffff);
}

// Enough of CUDA C++ to compile the library's kernels for the CPU and run them thread by thread.
//
// The tests put this before a generated source and CUDA_ON_CPU_RUN after it. The threads of a block
// are fibers that run in turn from one barrier to the next, so barriers and shuffles work as on a
// GPU, and a kernel that relies on concurrent threads without a barrier goes wrong. The PTX
// conversions are replaced by functions of this file.
// Each kernel is compiled with this header, so it includes only C's small headers: loading the
// precompiled form of <cmath> and <mutex> took two thirds of the compilation time. Its functions are
// inline, because a function of a precompiled header that is only static is compiled even if unused.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __CUDA_ARCH__ 900
#define GPUTENSOR_ON_CPU

// CUDA overloads each of these for float.
#define CPU_FLOAT(name) static inline float name(float x) { return name##f(x); }
CPU_FLOAT(acos) CPU_FLOAT(acosh) CPU_FLOAT(asin) CPU_FLOAT(asinh) CPU_FLOAT(atan) CPU_FLOAT(atanh)
CPU_FLOAT(cbrt) CPU_FLOAT(ceil) CPU_FLOAT(cos) CPU_FLOAT(cosh) CPU_FLOAT(erf) CPU_FLOAT(erfc)
CPU_FLOAT(exp) CPU_FLOAT(exp2) CPU_FLOAT(expm1) CPU_FLOAT(fabs) CPU_FLOAT(floor) CPU_FLOAT(lgamma)
CPU_FLOAT(log) CPU_FLOAT(log10) CPU_FLOAT(log1p) CPU_FLOAT(log2) CPU_FLOAT(nearbyint)
CPU_FLOAT(rint) CPU_FLOAT(round) CPU_FLOAT(sin) CPU_FLOAT(sinh) CPU_FLOAT(sqrt) CPU_FLOAT(tan)
CPU_FLOAT(tanh) CPU_FLOAT(tgamma) CPU_FLOAT(trunc)
#define CPU_FLOATS(name) static inline float name(float x, float y) { return name##f(x, y); }
CPU_FLOATS(atan2) CPU_FLOATS(copysign) CPU_FLOATS(fmax) CPU_FLOATS(fmin) CPU_FLOATS(fmod)
CPU_FLOATS(hypot) CPU_FLOATS(nextafter) CPU_FLOATS(pow) CPU_FLOATS(remainder)
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long abs(long x) { return labs(x); }
static inline long long abs(long long x) { return llabs(x); }
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float ldexp(float x, int exponent) { return ldexpf(x, exponent); }

struct Dim3 { unsigned x, y, z; };
struct alignas(16) double2 { double x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static Dim3 threadIdx, blockIdx, blockDim, gridDim;

#define __expf expf  // glibc has a function of that name
static inline float __fdividef(float x, float y) { return x / y; }
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)(((unsigned long long)a * b) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
// The compiler's options keep it from contracting these.
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
static inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
static inline void __threadfence() {}
template <class T> static inline T atomicAdd(T* place, T value) {
    T old = *place;
    *place += value;
    return old;
}
static inline unsigned atomicOr(unsigned* place, unsigned value) {
    unsigned old = *place;
    *place |= value;
    return old;
}
static inline unsigned atomicInc(unsigned* place, unsigned most) {
    unsigned old = *place;
    *place = old >= most ? 0 : old + 1;
    return old;
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) out |= (unsigned)(both >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return out;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((unsigned long long)high << 32) | low) >> (shift & 31));
}
static inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
static inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
static inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
static inline float __double2float_rz(double x) {
    float y = (float)x;
    return fabs((double)y) > fabs(x) ? nextafterf(y, 0.0f) : y;
}
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
// Halley's method; the starting value has the right magnitude near 0 and near 1.
static inline double erfinv(double x) {
    const double size = fabs(x), last = log1p(-size * size);
    if (!(size < 1)) return size == 1 ? copysign(INFINITY, x) : NAN;
    double y = size < 0.7 ? size * 0.886226925452758 : sqrt(-last - 0.5 * log(1 - last));
    for (int i = 0; i < 12; ++i) {
        const double error = size < 0.5 ? erf(y) - size : (1 - size) - erfc(y);
        const double step = error / (1.1283791670955126 * exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}
static inline float erfinv(float x) { return (float)erfinv((double)x); }
// IEEE half, written out: not every compiler of C++17 has _Float16.
static inline float cpu_half_to_float(unsigned short bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent == 0  ? ldexpf((float)mantissa, -24)
                                : ldexpf((float)(mantissa | 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
}
static inline unsigned short cpu_float_to_half(float x) {
    unsigned short sign = (unsigned short)(__float_as_uint(x) >> 16 & 0x8000);
    float size = fabsf(x);
    if (x != x) return sign | 0x7e00;
    if (size >= 65520.0f) return sign | 0x7c00;
    int exponent = size == 0 ? -14 : ilogbf(size);
    if (exponent < -14) exponent = -14;
    // In units of the last place; a carry goes into the exponent, as it should.
    int units = (int)nearbyintf(ldexpf(size, 10 - exponent));
    return sign | (unsigned short)(units + (exponent + 14 << 10));
}
static inline unsigned short cpu_float_to_bfloat(float x) {
    unsigned a = __float_as_uint(x);
    return x != x ? 0x7fff : (unsigned short)((a + 0x7fff + ((a >> 16) & 1)) >> 16);
}
// fma of pairs, with 0 as its addend.
static inline unsigned cpu_f16_pair_times(unsigned x, unsigned factor) {
    unsigned both = 0;
    for (int i = 0; i < 32; i += 16) {
        const float y = cpu_half_to_float(x >> i) * cpu_half_to_float(factor >> i) + 0.0f;
        both |= (unsigned)(y != y ? 0x7fff : cpu_float_to_half(y)) << i;
    }
    return both;
}
static inline unsigned cpu_bf16_pair_times(unsigned x, unsigned factor) {
    unsigned both = 0;
    for (int i = 0; i < 32; i += 16) {
        const float y = __uint_as_float(x >> i << 16) * __uint_as_float(factor >> i << 16) + 0.0f;
        both |= (unsigned)cpu_float_to_bfloat(y) << i;
    }
    return both;
}

// On the simulated GPU a condition's handle is the address of its value.
extern "C" inline void cudaGraphSetConditional(unsigned long long condition, unsigned value) {
    *(unsigned*)condition = value;
}

// A fiber begins in its own context and then switches by jumps, which need no system call.
static jmp_buf cpu_scheduler, cpu_fibers[1024];
static unsigned cpu_lanes[1024];
// The blocks of a cluster run at once: the rank of this one, and the first of its threads.
#define CPU_CLUSTER 1
static unsigned cpu_rank, cpu_first;
static inline unsigned cpu_thread() {
    return cpu_first + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
static inline void __syncthreads() {
    if (_setjmp(cpu_fibers[cpu_thread()]) == 0) _longjmp(cpu_scheduler, 1);
}
static inline unsigned __shfl_down_sync(unsigned, unsigned value, int distance, int width) {
    unsigned thread = cpu_thread(), lane = thread % width;
    cpu_lanes[thread] = value;
    __syncthreads();
    unsigned found = lane + distance < (unsigned)width ? cpu_lanes[thread + distance] : value;
    __syncthreads();
    return found;
}
static inline unsigned __shfl_up_sync(unsigned, unsigned value, int distance) {
    unsigned thread = cpu_thread();
    cpu_lanes[thread] = value;
    __syncthreads();
    unsigned found = (int)(thread % 32) >= distance ? cpu_lanes[thread - distance] : value;
    __syncthreads();
    return found;
}
static inline unsigned __ballot_sync(unsigned, bool is_set) {
    unsigned thread = cpu_thread(), first = thread - thread % 32, found = 0;
    cpu_lanes[thread] = is_set;
    __syncthreads();
    for (unsigned lane = 0; lane < 32; ++lane) found |= cpu_lanes[first + lane] << lane;
    __syncthreads();
    return found;
}
static inline void __syncwarp() { __syncthreads(); }

// A barrier in shared memory that waits for bytes: their number in the lower half, which is negative
// if they come before they are announced; bit 32: they are announced; bit 33: the phase. A shared
// variable is an array of those of all blocks; these are the distances of two neighbours.
static long cpu_row_nbytes[2];
#define CPU_SHARED(number, type, name, length)           \
    static type name##_of[CPU_CLUSTER] length;           \
    cpu_row_nbytes[number] = sizeof(name##_of[0]);       \
    type* name = name##_of[cpu_rank];
static inline void cpu_barrier_count(unsigned long long* barrier, unsigned change, bool is_announced) {
    if (is_announced && *barrier >> 32 & 1) abort();
    const unsigned left = (unsigned)*barrier + change;
    *barrier = (*barrier >> 32 | is_announced) << 32 | left;
    if (left == 0 && *barrier >> 32 & 1) *barrier ^= 3ull << 32;
}
static inline void cpu_barrier_send(const void* to, unsigned long long* barrier, unsigned rank,
                             unsigned word) {
    const long distance = (long)rank - (long)cpu_rank;
    memcpy((char*)to + distance * cpu_row_nbytes[0], &word, 4);
    barrier = (unsigned long long*)((char*)barrier + distance * cpu_row_nbytes[1]);
    cpu_barrier_count(barrier, -4u, false);
}
// A warp stays together.
static inline unsigned cpu_barrier_wait(const unsigned long long* barrier, unsigned parity) {
    for (int i = 0; i < 100000; ++i)
        if (__ballot_sync(~0u, (*barrier >> 33 & 1) != parity) == ~0u) return 1;
    abort();
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __shfl_xor_sync(unsigned, unsigned value, int mask) {
    unsigned thread = cpu_thread();
    cpu_lanes[thread] = value;
    __syncthreads();
    unsigned found = cpu_lanes[thread ^ mask];
    __syncthreads();
    return found;
}

// Stacks of fibers. A page takes memory only once it is used.
struct CpuStacks {
    static constexpr size_t NBYTES = 65536;
    const size_t nbytes;
    char* const memory;
    explicit CpuStacks(size_t count)
        : nbytes(count * NBYTES),
          memory(static_cast<char*>(mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        if (memory == MAP_FAILED) abort();
        madvise(memory, nbytes, MADV_NOHUGEPAGE);
    }
    ~CpuStacks() { munmap(memory, nbytes); }
    char* at(size_t i) const { return memory + i * NBYTES; }
};

#define CUDA_ON_CPU_RUN                                                                         \
    static const Parameters* cpu_parameters;                                                    \
    static bool cpu_begun[1024], cpu_done[1024];                                                \
    static void cpu_entry() {                                                                   \
        for (;;) {                                                                              \
            kernel(*cpu_parameters);                                                            \
            cpu_done[cpu_thread()] = true;                                                      \
            __syncthreads();        /* until a block with this thread begins */                 \
        }                                                                                       \
    }                                                                                           \
    static void cpu_begin(unsigned t) {                                                         \
        static CpuStacks stacks(1024);                                                          \
        ucontext_t fiber, nobody;                                                               \
        cpu_begun[t] = true;                                                                    \
        getcontext(&fiber);                                                                     \
        fiber.uc_stack.ss_sp = stacks.at(t);                                                    \
        fiber.uc_stack.ss_size = CpuStacks::NBYTES;                                             \
        fiber.uc_link = nullptr;                                                                \
        makecontext(&fiber, cpu_entry, 0);                                                      \
        swapcontext(&nobody, &fiber);                                                           \
    }                                                                                           \
    extern "C" size_t parameters_nbytes() { return sizeof(Parameters); }                        \
    extern "C" void run(const unsigned* grid, const unsigned* block, const void* parameters) {  \
        static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;                       \
        pthread_mutex_lock(&one_at_a_time);    /* the indices of the threads are globals */     \
        static volatile unsigned b, t;      /* keep their values across jumps */                \
        static volatile bool is_running;                                                        \
        cpu_parameters = static_cast<const Parameters*>(parameters);                            \
        gridDim = {grid[0], grid[1], grid[2]};                                                  \
        const bool is_same = blockDim.x == block[0] && blockDim.y == block[1]                   \
            && blockDim.z == block[2];                                                          \
        blockDim = {block[0], block[1], block[2]};                                              \
        const unsigned plane = block[0] * block[1], blocks = grid[0] * grid[1] * grid[2];       \
        const unsigned threads = plane * block[2], all = threads * CPU_CLUSTER;                 \
        for (t = 0; t < 1024 && !is_same; ++t) cpu_begun[t] = false;                            \
        for (b = 0; b < blocks; b += CPU_CLUSTER) {                                             \
            for (t = 0; t < all; ++t) cpu_done[t] = false;                                      \
            for (is_running = true; is_running;) {                                              \
                is_running = false;                                                             \
                for (t = 0; t < all; ++t) {                                                     \
                    if (cpu_done[t]) continue;                                                  \
                    cpu_rank = CPU_CLUSTER > 1 ? t / threads : 0;                               \
                    cpu_first = cpu_rank * threads;                                             \
                    const unsigned one = t - cpu_first, here = b + cpu_rank;                    \
                    threadIdx = {one % block[0], one / block[0] % block[1], one / plane};       \
                    blockIdx = {here % grid[0], here / grid[0] % grid[1],                       \
                                here / (grid[0] * grid[1])};                                    \
                    is_running = true;                                                          \
                    if (_setjmp(cpu_scheduler)) continue;                                       \
                    if (cpu_begun[t]) _longjmp(cpu_fibers[t], 1);                               \
                    cpu_begin(t);                                                               \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
        pthread_mutex_unlock(&one_at_a_time);                                                   \
    }

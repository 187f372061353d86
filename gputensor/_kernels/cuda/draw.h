// Random numbers from a seed and a counter: Philox 4x32 with 10 rounds, and distributions from its
// words.
//
// The kernel (draw.cuh) and the host device (draw_host.h) compile this one text. Every step is an
// operation on integers, or one whose result IEEE 754 fixes, and no two steps are contracted into
// one. So all devices give the same bits, also for logarithms and sines, which are polynomials
// here.
//
// A *block* is 128 bits: four elements of one word of 32 bits each, or two of two words.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

#ifdef GPUTENSOR_KERNEL
#define GPUTENSOR_BOTH __device__ __forceinline__
#else
#include <cmath>
#include <cstring>
#define GPUTENSOR_BOTH inline
#endif

namespace gputensor {

struct DrawParameters {
    GPUTENSOR_POINTER(char) out;
    GPUTENSOR_POINTER(uint64) state;    // seed, counter (low, high), a word for the last to finish
    int64 count;                        // elements
    uint64 blocks;                      // number of blocks that the draw uses
    double first, second, most;         // a and b of the distribution; the greatest uniform number
    uint64 least, range;                // least integer; their number (0: 2**64), or odds of 2**32
};
static_assert(sizeof(DrawParameters) == 72, "both sides of a launch lay the parameters out alike");

// Distributions, in the order of call_rules.DISTRIBUTIONS.
enum Distribution {
    UNIFORM, NORMAL, EXPONENTIAL, GUMBEL, BERNOULLI, INTEGERS, PERMUTATION
};

struct RandomBlock { uint32 words[4]; };

GPUTENSOR_BOTH RandomBlock philox(RandomBlock counter, uint64 seed) {
    uint32 low = (uint32)seed, high = (uint32)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64 a = (uint64)counter.words[0] * 0xD2511F53u;
        const uint64 b = (uint64)counter.words[2] * 0xCD9E8D57u;
        const RandomBlock next = {{
            (uint32)(b >> 32) ^ counter.words[1] ^ low, (uint32)b,
            (uint32)(a >> 32) ^ counter.words[3] ^ high, (uint32)a}};
        counter = next;
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
    return counter;
}

// Block number `index` after the counter (low, high).
GPUTENSOR_BOTH RandomBlock random_block(uint64 seed, uint64 low, uint64 high, uint64 index) {
    const uint64 place = low + index;
    high += place < low;
    const RandomBlock counter = {{(uint32)place, (uint32)(place >> 32), (uint32)high,
                                  (uint32)(high >> 32)}};
    return philox(counter, seed);
}

GPUTENSOR_BOTH uint64 wide_word(const RandomBlock& block, int lane) {
    return block.words[2 * lane] | (uint64)block.words[2 * lane + 1] << 32;
}

// ---- arithmetic that rounds once in each step

#ifdef GPUTENSOR_KERNEL
GPUTENSOR_BOTH float times(float a, float b) { return __fmul_rn(a, b); }
GPUTENSOR_BOTH float plus(float a, float b) { return __fadd_rn(a, b); }
GPUTENSOR_BOTH float root(float a) { return __fsqrt_rn(a); }
GPUTENSOR_BOTH uint32 bits_of(float a) { return __float_as_uint(a); }
GPUTENSOR_BOTH float float_of(uint32 a) { return __uint_as_float(a); }
GPUTENSOR_BOTH double times(double a, double b) { return __dmul_rn(a, b); }
GPUTENSOR_BOTH double plus(double a, double b) { return __dadd_rn(a, b); }
GPUTENSOR_BOTH double over(double a, double b) { return __ddiv_rn(a, b); }
GPUTENSOR_BOTH double root(double a) { return __dsqrt_rn(a); }
GPUTENSOR_BOTH uint64 bits_of(double a) { return (uint64)__double_as_longlong(a); }
GPUTENSOR_BOTH double float_of(uint64 a) { return __longlong_as_double((int64)a); }
GPUTENSOR_BOTH uint64 high_product(uint64 a, uint64 b) { return __umul64hi(a, b); }
#else
inline float times(float a, float b) { return a * b; }
inline float plus(float a, float b) { return a + b; }
inline float root(float a) { return std::sqrt(a); }
inline uint32 bits_of(float a) { uint32 b; std::memcpy(&b, &a, 4); return b; }
inline float float_of(uint32 a) { float b; std::memcpy(&b, &a, 4); return b; }
inline double times(double a, double b) { return a * b; }
inline double plus(double a, double b) { return a + b; }
inline double over(double a, double b) { return a / b; }
inline double root(double a) { return std::sqrt(a); }
inline uint64 bits_of(double a) { uint64 b; std::memcpy(&b, &a, 8); return b; }
inline double float_of(uint64 a) { double b; std::memcpy(&b, &a, 8); return b; }
inline uint64 high_product(uint64 a, uint64 b) {
    return (uint64)((unsigned __int128)a * b >> 64);
}
#endif

// x * y + c, rounded twice: a step of a polynomial.
template <class T> GPUTENSOR_BOTH T step(T x, T y, T c) { return plus(times(x, y), c); }

// The natural logarithm of a normal number above 0, within 2 units in the last place (the
// coefficients of Cephes' logf and of FreeBSD's log).
GPUTENSOR_BOTH float logarithm(float x) {
    const uint32 bits = bits_of(x);
    int32 exponent = (int32)(bits >> 23) - 126;
    float f = float_of((bits & 0x7fffffu) | 0x3f000000u);
    if (f < 0.70710678f) {
        exponent -= 1;
        f = plus(f, f);
    }
    f = plus(f, -1.0f);
    const float z = times(f, f), e = (float)exponent;
    float y = step(7.0376836292e-2f, f, -1.1514610310e-1f);
    y = step(y, f, 1.1676998740e-1f);
    y = step(y, f, -1.2420140846e-1f);
    y = step(y, f, 1.4249322787e-1f);
    y = step(y, f, -1.6668057665e-1f);
    y = step(y, f, 2.0000714765e-1f);
    y = step(y, f, -2.4999993993e-1f);
    y = step(y, f, 3.3333331174e-1f);
    y = times(times(y, f), z);
    y = step(e, -2.12194440e-4f, y);
    y = step(z, -0.5f, y);
    return step(e, 0.693359375f, plus(f, y));
}
GPUTENSOR_BOTH double logarithm(double x) {
    const uint64 bits = bits_of(x);
    int32 exponent = (int32)(bits >> 52) - 1022;
    double f = float_of((bits & 0xfffffffffffffull) | 0x3fe0000000000000ull);
    if (f < 0.70710678118654752) {
        exponent -= 1;
        f = plus(f, f);
    }
    f = plus(f, -1.0);
    const double s = over(f, plus(2.0, f)), z = times(s, s), w = times(z, z), e = exponent;
    double a = step(w, 1.531383769920937332e-01, 2.222219843214978396e-01);
    a = times(w, step(w, a, 3.999999999940941908e-01));
    double b = step(w, 1.479819860511658591e-01, 1.818357216161805012e-01);
    b = step(w, b, 2.857142874366239149e-01);
    b = times(z, step(w, b, 6.666666666666735130e-01));
    const double half = times(0.5, times(f, f));
    const double low = step(e, 1.90821492927058770002e-10, times(s, plus(half, plus(a, b))));
    return plus(times(e, 6.93147180369123816490e-01), -plus(plus(half, -low), -f));
}

// Sine and cosine of x in [-pi/4, pi/4].
GPUTENSOR_BOTH void circle(float x, float* sine, float* cosine) {
    const float z = times(x, x);
    const float s = step(step(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
    *sine = step(times(s, z), x, x);
    float c = step(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    c = step(c, z, 4.166664568298827e-2f);
    *cosine = plus(step(times(c, z), z, times(-0.5f, z)), 1.0f);
}
GPUTENSOR_BOTH void circle(double x, double* sine, double* cosine) {
    const double z = times(x, x);
    double s = step(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
    s = step(z, s, 2.75573137070700676789e-06);
    s = step(z, s, -1.98412698298579493134e-04);
    s = step(z, s, 8.33333333332248946124e-03);
    s = step(z, s, -1.66666666666666324348e-01);
    *sine = step(times(s, z), x, x);
    double c = step(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
    c = step(z, c, -2.75573143513906633035e-07);
    c = step(z, c, 2.48015872894767294178e-05);
    c = step(z, c, -1.38888888888741095749e-03);
    c = step(z, c, 4.16666666666666019037e-02);
    *cosine = plus(step(times(c, z), z, times(-0.5, z)), 1.0);
}

// ---- from words to numbers

// A number above 0 and at most 1.
GPUTENSOR_BOTH float above_zero(uint32 word) {
    return step((float)word, 2.3283064365386963e-10f, 1.1641532182693481e-10f);
}
GPUTENSOR_BOTH double above_zero(uint64 word) {
    return step((double)(word >> 11), 1.1102230246251565e-16, 5.551115123125783e-17);
}

// The angle of -pi/4 to pi/4 from a word without its two highest bits, which are the quarter turn.
GPUTENSOR_BOTH float angle(uint32 word) {
    return times((float)(int32)(word << 2), 3.6572952e-10f);
}
GPUTENSOR_BOTH double angle(uint64 word) {
    return times((double)(int64)(word << 2), 8.515303950216386e-20);
}

// Two normal numbers from two words (Box and Muller).
template <class T, class Word>
GPUTENSOR_BOTH void normal_pair(Word length, Word turn, T* first, T* second) {
    const T radius = root(times((T)-2, logarithm(above_zero(length))));
    const int quarter = (int)(turn >> (8 * sizeof(Word) - 2));
    T sine, cosine;
    circle(angle(turn), &sine, &cosine);
    const T x = quarter & 1 ? sine : cosine, y = quarter & 1 ? cosine : sine;
    *first = times(radius, quarter == 1 || quarter == 2 ? -x : x);
    *second = times(radius, quarter >= 2 ? -y : y);
}

// -log of a number above 0: exponentially distributed, at least 0.
template <class Word> GPUTENSOR_BOTH auto waiting(Word word) {
    const auto x = logarithm(above_zero(word));
    return plus(0 * x, -x);
}

GPUTENSOR_BOTH float gumbel(uint32 word) {
    const float x = waiting(word);
    return -logarithm(x < 2.9802322e-8f ? 2.9802322e-8f : x);
}
GPUTENSOR_BOTH double gumbel(uint64 word) {
    const double x = waiting(word);
    return -logarithm(x < 5.551115123125783e-17 ? 5.551115123125783e-17 : x);
}

// Bits of a word: a multiple of 2**-Bits in [0, 1).
template <int Bits> GPUTENSOR_BOTH float fraction(uint32 word) {
    return times((float)(word >> (32 - Bits)), 1.0f / (float)(1 << Bits));
}
template <int Bits> GPUTENSOR_BOTH double fraction(uint64 word) {
    return times((double)(word >> (64 - Bits)), 1.0 / (double)(1ull << Bits));
}

template <int Kind, int Bits, class T, class Word>
GPUTENSOR_BOTH T number(Word word, const DrawParameters& p) {
    if constexpr (Kind == UNIFORM) return step(fraction<Bits>(word), (T)p.second, (T)p.first);
    else if constexpr (Kind == EXPONENTIAL) return times(waiting(word), (T)p.second);
    else return step(gumbel(word), (T)p.second, (T)p.first);
}

// The numbers of a block: four float, or two double.
template <int Kind, int Bits>
GPUTENSOR_BOTH void numbers(const RandomBlock& block, const DrawParameters& p, float* out) {
    for (int pair = 0; pair < 4; pair += 2) {
        const uint32 one = block.words[pair], two = block.words[pair + 1];
        if constexpr (Kind == NORMAL) {
            normal_pair(one, two, &out[pair], &out[pair + 1]);
            out[pair] = step(out[pair], (float)p.second, (float)p.first);
            out[pair + 1] = step(out[pair + 1], (float)p.second, (float)p.first);
        } else {
            out[pair] = number<Kind, Bits, float>(one, p);
            out[pair + 1] = number<Kind, Bits, float>(two, p);
        }
    }
}
template <int Kind, int Bits>
GPUTENSOR_BOTH void numbers(const RandomBlock& block, const DrawParameters& p, double* out) {
    const uint64 one = wide_word(block, 0), two = wide_word(block, 1);
    if constexpr (Kind == NORMAL) {
        normal_pair(one, two, &out[0], &out[1]);
        out[0] = step(out[0], p.second, p.first);
        out[1] = step(out[1], p.second, p.first);
    } else {
        out[0] = number<Kind, Bits, double>(one, p);
        out[1] = number<Kind, Bits, double>(two, p);
    }
}

// A uniform integer below `range` from lane `lane` of a block: the high word of a product with the
// range (Lemire's method). If the low word shows that the number would be too likely, the same lane
// of the block that Philox makes with this block as its counter is tried next.
GPUTENSOR_BOTH uint64 narrow_below(uint64 range, RandomBlock block, int lane, uint64 seed) {
    const uint32 few = (uint32)range;
    uint64 product = block.words[lane] * range;
    if ((uint32)product < few) {
        const uint32 favoured = (0u - few) % few;
        while ((uint32)product < favoured) {
            block = philox(block, seed);
            product = block.words[lane] * range;
        }
    }
    return product >> 32;
}
GPUTENSOR_BOTH uint64 wide_below(uint64 range, RandomBlock block, int lane, uint64 seed) {
    uint64 word = wide_word(block, lane);
    if (range == 0) return word;
    if (word * range < range) {
        const uint64 favoured = (0ull - range) % range;
        while (word * range < favoured) {
            block = philox(block, seed);
            word = wide_word(block, lane);
        }
    }
    return high_product(word, range);
}

// ---- permutations

// Up to this many elements get a key of 64 bits each and are ranked; more go through a network.
#define RANKED 1024
#define NETWORK_ROUNDS 16

GPUTENSOR_BOTH uint32 mixed(uint32 x, uint32 key) {
    x = x * 0xCC9E2D51u + key;
    x = (x ^ x >> 16) * 0x21F0AAADu;
    x = (x ^ x >> 15) * 0xD35A2D97u;
    return x ^ x >> 15;
}

// The new place of element `x` of `count`: a Feistel network over the next power of two, repeated
// until the result is below `count`. `bits` is the number of bits of count - 1.
GPUTENSOR_BOTH uint64 network(uint64 x, uint64 count, int bits, const uint32* keys) {
    const int below = bits / 2;
    const uint32 high_mask = (uint32)((1ull << (bits - below)) - 1);
    const uint32 low_mask = (uint32)((1ull << below) - 1);
    do {
        uint32 high = (uint32)(x >> below), low = (uint32)x & low_mask;
        for (int round = 0; round < NETWORK_ROUNDS; round += 2) {
            high ^= mixed(low, keys[round]) & high_mask;
            low ^= mixed(high, keys[round + 1]) & low_mask;
        }
        x = (uint64)high << below | low;
    } while (x >= count);
    return x;
}

GPUTENSOR_BOTH void network_keys(uint64 seed, uint64 low, uint64 high, uint32* keys) {
    for (int b = 0; b < NETWORK_ROUNDS / 4; ++b) {
        const RandomBlock block = random_block(seed, low, high, b);
        for (int k = 0; k < 4; ++k) keys[4 * b + k] = block.words[k];
    }
}

GPUTENSOR_BOTH int bit_length(uint64 x) {
    int bits = 0;
    for (; x; x >>= 1) ++bits;
    return bits;
}

}  // namespace gputensor

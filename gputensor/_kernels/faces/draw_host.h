// Draws on the host device: the text of draw.h, block by block.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "gputensor/_kernels/cuda/draw.h"

namespace gputensor {

struct DrawPlace { uint64 seed, low, high; };

template <int Kind, int Bits, class T>
void draw_each(const DrawPlace& place, const DrawParameters& p, T* out) {
    const int lanes = 16 / sizeof(T);
    T made[4];
    for (int64 b = 0; b * lanes < p.count; ++b) {
        numbers<Kind, Bits>(random_block(place.seed, place.low, place.high, b), p, made);
        for (int k = 0; k < lanes && b * lanes + k < p.count; ++k) out[b * lanes + k] = made[k];
    }
}

// The numbers of a distribution, in float or double; `bits` is the number of bits of a uniform
// number.
template <class T>
void draw_numbers(int kind, int bits, const DrawPlace& place, const DrawParameters& p, T* out) {
    if (kind == NORMAL) draw_each<NORMAL, 24>(place, p, out);
    else if (kind == EXPONENTIAL) draw_each<EXPONENTIAL, 24>(place, p, out);
    else if (kind == GUMBEL) draw_each<GUMBEL, 24>(place, p, out);
    else if constexpr (sizeof(T) == 8) draw_each<UNIFORM, 53>(place, p, out);
    else if (bits == 8) draw_each<UNIFORM, 8>(place, p, out);
    else if (bits == 11) draw_each<UNIFORM, 11>(place, p, out);
    else draw_each<UNIFORM, 24>(place, p, out);
    if (kind == UNIFORM)
        for (int64 i = 0; i < p.count; ++i) out[i] = std::min(out[i], static_cast<T>(p.most));
}

inline void draw_integers(int kind, int lanes, const DrawPlace& place, const DrawParameters& p,
                          uint64* out) {
    for (int64 b = 0; b * lanes < p.count; ++b) {
        const RandomBlock block = random_block(place.seed, place.low, place.high, b);
        for (int k = 0; k < lanes && b * lanes + k < p.count; ++k)
            out[b * lanes + k] =
                kind == BERNOULLI ? block.words[k] < p.range
                : p.least + (lanes == 4 ? narrow_below(p.range, block, k, place.seed)
                                        : wide_below(p.range, block, k, place.seed));
    }
}

inline void draw_permutation(const DrawPlace& place, const DrawParameters& p, uint64* out) {
    if (p.count > RANKED) {
        uint32 keys[NETWORK_ROUNDS];
        network_keys(place.seed, place.low, place.high, keys);
        const int bits = bit_length((uint64)p.count - 1);
        for (int64 i = 0; i < p.count; ++i) out[i] = network(i, p.count, bits, keys);
        return;
    }
    std::vector<std::pair<uint64, int64>> keys(p.count);
    for (int64 i = 0; i < p.count; ++i)
        keys[i] = {wide_word(random_block(place.seed, place.low, place.high, i / 2), i % 2), i};
    std::sort(keys.begin(), keys.end());
    for (int64 rank = 0; rank < p.count; ++rank) out[keys[rank].second] = rank;
}

}  // namespace gputensor

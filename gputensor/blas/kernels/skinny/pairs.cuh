// The end of a skinny product whose features belong together in pairs.
//
// The first features of 16 pairs form a tile, and their second features the next tile, so one block
// has both sums of a pair. With PAIRS 1 the result is activation(first) * second, with the
// activation GATE; the weights have the first features of all pairs before the second ones. With
// PAIRS 2 a pair is elements i and i + half of a head: queries and keys are rotated, values are not.
// Queries are the result; keys and values go to the places of their tokens, in other memory.
#pragma once

// Returns the first row of the tile at `row`, counted from p.w or, for second features, p.second_w.
__device__ __forceinline__ int tile_begin(const Parameters& p, int row) {
    const int tile = row / 32;
    return 16 * (tile + tile / p.group_tiles * p.group_tiles);
}

#if PAIRS == 2
// Stores both elements of a pair; `index` is the position of the low one in its head.
__device__ __forceinline__ void put_pair(const Parameters& p, int token, int head, int index,
                                         float low, float high) {
    const int half = 16 * p.group_tiles;
    if (head < p.heads + p.kept) {
        const float c = p.cosines[token * half + index], s = p.sines[token * half + index];
        const float rotated = low * c - high * s;
        high = high * c + low * s;
        low = rotated;
    }
    if (head < p.heads) {
        const int64 to = ((int64)head * p.m + token) * (2 * half) + index;
        store_y(p.y, to, low);
        store_y(p.y, to + half, high);
        return;
    }
    int64 place = p.long_places ? reinterpret_cast<const int64*>(p.places)[token]
                                : reinterpret_cast<const int*>(p.places)[token];
    if (place < 0) place += p.length;
    if (place < 0 || place >= p.length) return;
    const bool is_key = head < p.heads + p.kept;
    const int64 to = (head - p.heads - (is_key ? 0 : p.kept)) * (is_key ? p.key_head : p.value_head)
                   + place * (is_key ? p.key_row : p.value_row) + index;
    store_y(is_key ? p.keys : p.values, to, low);
    store_y(is_key ? p.keys : p.values, to + half, high);
}
#endif

// Applies scales and bias to the sums of a pair, and stores the pair.
__device__ __forceinline__ void finish_pair(const Parameters& p, int token, int pair, float first,
                                            float second) {
    if (pair >= p.n) return;
    const int tile = pair / 16, row = tile_begin(p, 2 * 16 * tile) + pair % 16;
#if FORM && !GROUP
    first *= wide(reinterpret_cast<const uint16*>(p.scales)[row], X_KIND);
    second *= wide(reinterpret_cast<const uint16*>(p.second_scales)[row], X_KIND);
#endif
    if (p.bias) {
        first += load_y(p.bias, row);
        second += load_y(p.second_bias, row);
    }
#if PAIRS == 2
    put_pair(p, token, tile / p.group_tiles, tile % p.group_tiles * 16 + pair % 16, first, second);
#else
    store_y(p.y, token * p.y_pitch + pair, activated(first) * second);
#endif
}

// The request on which cuBLASLt proposes an algorithm, the choice between two proposals, and the
// time that one takes. Python's plans (gemm/cublaslt.pxi) and programs without Python
// (native_products.h) make the same request and choice, so that both get the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace gputensor {

// cuBLASLt is asked twice, with all of the workspace and with this much. With much it cuts sums in
// parts, which costs a second kernel; with little it cuts fewer.
const size_t LITTLE_WORKSPACE = size_t(1) << 20;

// What two proposals for one product are compared by.
struct Proposal {
    int id, tile, split, stages;        // of the algorithm's configuration
    size_t workspace;                   // bytes; 0: the sum is not cut, or joined in place
    float waves;                        // of blocks, as the library counts them
};

// The terms of a sum of k with those that the last step of an algorithm adds in vain; 0: unknown.
inline int64_t terms_of(const Proposal& one, int64_t k) {
    const int stages = one.stages;      // 1 to 6: steps of 16 terms, 7 to 12: 32, and so on
    if (stages > 24) return 0;
    const int64_t step = stages > 0 ? int64_t(16) << ((stages - 1) / 6) : 32;
    return (k + step - 1) / step * step;
}

// The share of the multiprocessors that a kernel keeps busy; one wave that is nearly full is best,
// and the rest of several waves counts most.
inline float use_of(const Proposal& one) {
    return one.waves <= 1.0f ? one.waves : 0.3f - 0.001f * one.waves;
}

struct Tile {
    short rows, columns;                // 0: unknown
};

inline Tile tile_of(const Proposal& one) {
    static const Tile tiles[] = {       // by their numbers in cublasLtMatmulTile_t
        {0, 0}, {8, 8}, {8, 16}, {16, 8}, {8, 32}, {16, 16}, {32, 8}, {8, 64}, {16, 32}, {32, 16},
        {64, 8}, {32, 32}, {32, 64}, {64, 32}, {32, 128}, {64, 64}, {128, 32}, {64, 128},
        {128, 64}, {64, 256}, {128, 128}, {256, 64}, {64, 512}, {128, 256}, {256, 128}, {512, 64},
        {64, 96}, {96, 64}, {96, 128}, {128, 160}, {160, 128}, {192, 128}, {128, 192}, {128, 96},
        {32, 256}, {256, 32}};
    const int count = sizeof tiles / sizeof *tiles;
    return one.tile >= 0 && one.tile < count ? tiles[one.tile] : tiles[0];
}

inline double tile_count(const Tile& tile, int64_t m, int64_t n) {
    return (double)((m + tile.rows - 1) / tile.rows) *
           (double)((n + tile.columns - 1) / tile.columns);
}

// The results that the tiles of an algorithm have in all; 0: an unknown tile. Beside a narrow
// result (one with few rows or columns) most of a wide tile is in vain.
inline double tiled_results(const Proposal& one, int64_t m, int64_t n) {
    const Tile tile = tile_of(one);
    return tile.rows ? tile_count(tile, m, n) * tile.rows * tile.columns : 0;
}

// The seconds that a proposal for matrices that are not aligned takes, in 16 bits or TF32; 0:
// unknown. A tile loads its sides for each term, in pieces of a few bytes, and multiplies them.
// Fitted to 929 proposals for 578 products of random shapes on an H200: rms error 14 % for the
// first proposals, 20 % for the others.
inline double unaligned_seconds(const Proposal& one, int64_t m, int64_t n, int64_t k,
                                int64_t batch, int itemsize) {
    const int by_elements = 24;         // the algorithm whose loads have the shortest pieces
    const double multiprocessors = 132, launch = 2.8e-6, join = 2.7e-6;
    const double side = itemsize == 4 ? 161e-12 : one.id == by_elements ? 118e-12 : 66e-12;
    const double product = 0.166e-12, latency = 6.9e-9, result_rate = 2.24e12, join_rate = 2e12;
    const Tile tile = tile_of(one);
    if (!tile.rows) return 0;
    const double parts = std::max(1, std::abs(one.split));
    const double each = tile_count(tile, m, n) * parts * batch / multiprocessors;
    // A multiprocessor runs several blocks at once, and the last wave takes as long as the others.
    const double beside = std::max(1.0, std::round(each / std::max(one.waves, 1e-3f)));
    const double rounds = std::max(1.0, one.waves > 1 ? std::ceil(one.waves) * beside
                                                      : std::ceil(each));
    const double terms = k / parts + 1.2;
    const double step = side * (tile.rows + tile.columns) + product * tile.rows * tile.columns;
    return launch + terms * std::max(latency, rounds * step) +
           (double)m * n * batch * itemsize / result_rate +
           (parts > 1 ? join + one.workspace / join_rate : 0);
}

inline bool second_of_vector_is_better(int64_t rows, int64_t k, const Proposal& first,
                                       const Proposal& second) {
    const int by_dots = 14;             // the library's kernel for few and long sums
    if (!first.workspace && !second.workspace)
        return second.waves <= 1 && use_of(second) >= use_of(first);
    if (first.workspace && !second.workspace && rows >= 1024) return true;
    return first.id != by_dots && k >= 5000 && use_of(second) >= 1.5f * use_of(first);
}

// Whether the proposal with little workspace is better than that with much. Measured for 1,573
// products of random shapes on an H200 for which they differ: these rules take 2 % longer than the
// better proposal in the mean, and 61 products over 1.1 times as long (always the first proposal:
// 5 %, and 184 products). Boosted trees of all facts of both proposals, fitted to nine tenths of
// the products, do no better for the rest: 1.6 %, and 60 products.
//
// A short sum should not be cut (270x576x25 in float32: 3.0 us instead of 8.4), a long one should
// (4x3200x1675 in float16: 13 us instead of 48). Narrow results of the kernels that use Hopper's
// copying unit take a whole sum (11240x48x9856 in bfloat16: 53 us instead of 62). In exact float32
// two parts stay (13888x24x5605: 168 us instead of 252), unless the tiles of the whole sum hold
// less in vain. Of two whole sums of a narrow result, the one whose tiles hold less in vain is
// taken (10007x64x10000 in tf32: 102 us instead of 129).
inline bool second_is_better(int64_t m, int64_t n, int64_t k, const Proposal& first,
                             const Proposal& second) {
    const int wide = 24, square = 20;   // 256x128 and 128x128, the best tiles of large results
    const int without_tensor_cores = 55, by_threads = 11, by_copying_unit = 66;
    if (m == 1 || n == 1) return second_of_vector_is_better(m * n, k, first, second);
    const double tiled = tiled_results(first, m, n), others = tiled_results(second, m, n);
    const bool is_less = others && others * 1.2 < tiled, is_narrow = std::min(m, n) <= 64;
    if (first.workspace) {
        if (second.workspace) return false;
        return k < 200 || (first.id == by_copying_unit && is_narrow)
            || (first.id == without_tensor_cores && first.split == 2 && is_less);
    }
    if (second.workspace) return k >= 1024;
    if (is_narrow && (is_less || (tiled && tiled * 1.2 < others))) return is_less;
    const int64_t terms = terms_of(first, k), others_terms = terms_of(second, k);
    if (terms && others_terms && terms != others_terms)
        if (others_terms > terms || others_terms * 5 <= terms * 4) return others_terms < terms;
    if (use_of(first) > 1.15f * use_of(second)) return false;
    if (use_of(second) > 1.15f * use_of(first))
        return first.id == without_tensor_cores || first.id == by_threads;
    if (first.tile == wide) return second.tile == wide;
    return second.tile == wide || second.tile == square || first.tile != square;
}

// How parts of a sum may be joined (CUBLASLT_REDUCTION_SCHEME). Results of 32 bits and more hold a
// partial sum exactly, so any scheme is allowed: 249 us instead of 2,190 for 7x12250x11570 in
// float32. Version 12.4 rounds a sum of parts to the type of the result before it adds a bias;
// 12.9 does not.
inline uint32_t proposal_reductions(bool may_split, bool may_round, int type_d, bool has_bias,
                                    size_t version) {
    const int float32 = 11, complex128 = 14;    // codes of dtypes
    if (may_round || (type_d >= float32 && type_d <= complex128)) return may_split ? 7 : 0;
    return may_split && !(has_bias && version < 120900) ? 2 : 0;
}

}  // namespace gputensor

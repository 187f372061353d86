// The request on which cuBLASLt proposes an algorithm. Python's plans (gemm/cublaslt.pxi) and
// programs without Python (native_products.h) make the same request, so that both get the same
// bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

// The results that the tiles of an algorithm have in all; 0: an unknown tile. Beside a narrow result
// (one with few rows or columns) most of a wide tile is in vain.
inline double tiled_results(const Proposal& one, int64_t m, int64_t n) {
    static const short sides[][2] = {       // CUBLASLT_MATMUL_TILE_32x32 and the next ones
        {32, 32}, {32, 64}, {64, 32}, {32, 128}, {64, 64}, {128, 32}, {64, 128}, {128, 64},
        {64, 256}, {128, 128}, {256, 64}, {64, 512}, {128, 256}, {256, 128}, {512, 64}};
    const int place = one.tile - 11;
    if (place < 0 || place >= (int)(sizeof sides / sizeof *sides)) return 0;
    const int64_t rows = sides[place][0], columns = sides[place][1];
    return (double)((m + rows - 1) / rows * rows) * (double)((n + columns - 1) / columns * columns);
}

inline bool second_of_vector_is_better(int64_t rows, int64_t k, const Proposal& first,
                                       const Proposal& second) {
    const int by_dots = 14;             // the library's kernel for few and long sums
    if (!first.workspace && !second.workspace) return use_of(second) >= use_of(first);
    if (first.workspace && !second.workspace && rows >= 1024) return true;
    return first.id != by_dots && k >= 5000 && use_of(second) >= 1.5f * use_of(first);
}

// Whether the proposal with little workspace is better than that with much. The rules are fitted to
// 549 products of random shapes on an H200, timed with both: .995 of the better one's speed in the
// geometric mean, and of those with more than three terms 3 below .9. A short sum should not be cut
// (270x576x25 in float32: 3.0 us instead of 8.4), a long one should (4x3200x1675 in float16: 13 us
// instead of 48). Of 526 other products that no kernel of ours takes, 36 are below .9. Trees and
// forests fitted to these facts of seven eighths of them leave 33 to 46.
//
// Where float32 is exact or the result is narrow, two parts are no worse than a whole sum
// (13888x24x5605 in float32: 168 us instead of 252). Of two whole sums of a narrow result, the one
// whose tiles hold less in vain is taken (10007x64x10000 in tf32: 102 us instead of 129). 132 random
// products with 9 to 73 rows or columns take .8 % longer than by the better proposal.
inline bool second_is_better(int64_t m, int64_t n, int64_t k, const Proposal& first,
                             const Proposal& second) {
    const int wide = 24, square = 20;   // 256x128 and 128x128, the best tiles of large results
    const int without_tensor_cores = 55;
    if (m == 1 || n == 1) return second_of_vector_is_better(m * n, k, first, second);
    const double tiled = tiled_results(first, m, n), others = tiled_results(second, m, n);
    const bool is_less = others && others * 1.2 < tiled, is_narrow = std::min(m, n) <= 64;
    if (first.workspace) {
        if (second.workspace) return false;
        return k < 200 || (first.split == 2
            && (is_less || !(is_narrow || first.id == without_tensor_cores)));
    }
    if (second.workspace) return k >= 1024;
    if (is_narrow && (is_less || (tiled && tiled * 1.2 < others))) return is_less;
    const int64_t terms = terms_of(first, k), others_terms = terms_of(second, k);
    if (terms && others_terms && terms != others_terms) return others_terms < terms;
    if (use_of(first) > 1.15f * use_of(second)) return false;
    if (use_of(second) > 1.15f * use_of(first)) return true;
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

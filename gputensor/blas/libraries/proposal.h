// The request on which cuBLASLt proposes an algorithm. Python's plans (gemm/cublaslt.pxi) and
// programs without Python (native_products.h) make the same request, so that both get the same
// bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gputensor {

const size_t LITTLE_WORKSPACE = size_t(1) << 20;

// Bytes of workspace that a proposal may take. With a large workspace the library cuts sums of
// small products on tensor cores in parts, which costs a second kernel: 13.8 us instead of 9.8 for
// 8x3840x1560 in TF32, 8.2 instead of 3.7 for 40x6708x2 in bfloat16 (H200). Few tiles with long
// sums need parts, and so do all float32 products: with a small workspace, 15.4 us instead of 7.2
// for 720x2x343, 8.4 instead of 3.6 for 1x1x768 in float16. So do matrices times vectors with sums
// of less than 1,024 terms: 5.4 us instead of 2.0 for 116x1x108 in bfloat16, 7.9 instead of 5.1 for
// 6866x1x184 in float16. Longer ones of many rows do not: 14.2 us instead of 12.9 for 2240x1x3744
// in TF32.
inline size_t proposal_workspace(int type_a, int compute, int64_t m, int64_t n, int64_t k,
                                 int64_t batch, size_t most) {
    const int float32 = 11, compute_32f = 68;   // a dtype, and cublasComputeType_t
    const bool on_tensor_cores = type_a < float32 || (type_a == float32 && compute != compute_32f);
    const double few = double(1 << 27), work = double(m) * double(n) * double(k) * double(batch);
    const double tiles = double((m + 63) / 64) * double((n + 63) / 64) * double(batch);
    if (!on_tensor_cores || work > few || most < LITTLE_WORKSPACE) return most;
    if ((m == 1 || n == 1) && k < 1024) return most;
    return (tiles <= 32 && k >= 512) || double(k) >= 128 * tiles ? most : LITTLE_WORKSPACE;
}

// Whether to ask once more, with little workspace, after a proposal that needs none: it cuts no
// sum, and the second one, if it cuts none either, has the better tile: 8.1 us instead of 8.9 for
// 252x9216x104 in bfloat16, 7.4 instead of 8.1 for 48x10328x80 in float32.
inline bool proposal_is_repeated(size_t allowed, size_t needed) {
    return allowed > LITTLE_WORKSPACE && needed == 0;
}

// How parts of a sum may be joined (CUBLASLT_REDUCTION_SCHEME). Results of 32 bits and more hold a
// partial sum exactly, so any scheme is allowed: 249 us instead of 2,190 for 7x12250x11570 in
// float32.
inline uint32_t proposal_reductions(bool may_split, bool may_round, int type_d) {
    const int float32 = 11, complex128 = 14;    // codes of dtypes
    const bool holds_sums = type_d >= float32 && type_d <= complex128;
    return !may_split ? 0 : may_round || holds_sums ? 7 : 2;
}

}  // namespace gputensor

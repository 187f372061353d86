// Product: one call of a library in the library's own terms. The words are in __init__.pxd.
#pragma once

#include <cstdint>

enum { GT_MAX_OUTER = 16, GT_CONFIG_COUNT = 9 };

// An algorithm of cuBLASLt, for one version of the library; version 0: none.
struct gt_pinned {
    uint64_t version;
    int32_t config[GT_CONFIG_COUNT];
    int32_t unused;
};

struct gt_product {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc, ldd;
    int64_t stride_a, stride_b, stride_c, stride_d;
    int op_a, op_b;
    int type_a, type_b, type_d;
    int compute;
    int device;
    int is_swapped;
    uint32_t flags;
    int activation;
    uint64_t a, b, c, d;
    uint64_t bias;
    uint64_t scale_a, scale_b;
    int scale_mode_a, scale_mode_b;
    double alpha, beta;
    double alpha_imag, beta_imag;
    int outer_ndim;
    union {
        int64_t outer_count[GT_MAX_OUTER];
        struct gt_pinned pinned;    // of a described product, which has no outer dimensions
    };
    int64_t outer_a[GT_MAX_OUTER];
    int64_t outer_b[GT_MAX_OUTER];
    int64_t outer_c[GT_MAX_OUTER];
    int64_t outer_d[GT_MAX_OUTER];
};

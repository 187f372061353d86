// Products of the libraries for programs without Python: cuBLASLt, and cuBLAS for other products,
// through tables of functions that are found at run time. This does the same as described.pxi and
// gemm/ with PLAN_PLAIN, so that a program gives the same bits either way. The words and numbers
// are those of __init__.pxd.
//
// One thread at a time uses a NativeProducts, with the context of its device current.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "gputensor/blas/libraries/gemm/half.h"
#include "gputensor/blas/libraries/proposal.h"
#include "gputensor/blas/plan/product.h"

namespace gputensor {

struct NativeAlgo {
    uint64_t data[8];
};
struct NativeHeuristic {
    NativeAlgo algo;
    size_t workspace_nbytes;
    int state;
    float waves;
    int reserved[4];
};

#define GPUTENSOR_LT_SYMBOLS(X)                                                                   \
    X(cublasLtGetVersion, size_t, ())                                                             \
    X(cublasLtCreate, int, (void**))                                                              \
    X(cublasLtDestroy, int, (void*))                                                              \
    X(cublasLtMatmulDescCreate, int, (void**, int, int))                                          \
    X(cublasLtMatmulDescDestroy, int, (void*))                                                    \
    X(cublasLtMatmulDescSetAttribute, int, (void*, int, const void*, size_t))                     \
    X(cublasLtMatrixLayoutCreate, int, (void**, int, uint64_t, uint64_t, int64_t))                \
    X(cublasLtMatrixLayoutDestroy, int, (void*))                                                  \
    X(cublasLtMatrixLayoutSetAttribute, int, (void*, int, const void*, size_t))                   \
    X(cublasLtMatmulPreferenceCreate, int, (void**))                                              \
    X(cublasLtMatmulPreferenceDestroy, int, (void*))                                              \
    X(cublasLtMatmulPreferenceSetAttribute, int, (void*, int, const void*, size_t))               \
    X(cublasLtMatmulAlgoInit, int, (void*, int, int, int, int, int, int, int, NativeAlgo*))       \
    X(cublasLtMatmulAlgoConfigSetAttribute, int, (NativeAlgo*, int, const void*, size_t))         \
    X(cublasLtMatmulAlgoConfigGetAttribute, int,                                                  \
      (const NativeAlgo*, int, void*, size_t, size_t*))                                           \
    X(cublasLtMatmulAlgoCheck, int,                                                               \
      (void*, void*, void*, void*, void*, void*, const NativeAlgo*, NativeHeuristic*))            \
    X(cublasLtMatmulAlgoGetHeuristic, int,                                                        \
      (void*, void*, void*, void*, void*, void*, void*, int, NativeHeuristic*, int*))             \
    X(cublasLtMatmul, int,                                                                        \
      (void*, void*, const void*, const void*, void*, const void*, void*, const void*,            \
       const void*, void*, void*, void*, const NativeAlgo*, void*, size_t, void*))
#define GPUTENSOR_CUBLAS_SYMBOLS(X)                                                               \
    X(cublasCreate_v2, int, (void**))                                                             \
    X(cublasDestroy_v2, int, (void*))                                                             \
    X(cublasSetStream_v2, int, (void*, void*))                                                    \
    X(cublasSetWorkspace_v2, int, (void*, void*, size_t))                                         \
    X(cublasSetMathMode, int, (void*, int))                                                       \
    X(cublasGemmStridedBatchedEx_64, int,                                                         \
      (void*, int, int, int64_t, int64_t, int64_t, const void*, const void*, int, int64_t,        \
       long long, const void*, int, int64_t, long long, const void*, void*, int, int64_t,         \
       long long, int64_t, int, int))                                                             \
    X(cublasGemmEx_64, int,                                                                       \
      (void*, int, int, int64_t, int64_t, int64_t, const void*, const void*, int, int64_t,        \
       const void*, int, int64_t, const void*, void*, int, int64_t, int, int))

struct NativeBlas {
#define X(name, result, parameters) result(*name) parameters = nullptr;
    GPUTENSOR_LT_SYMBOLS(X)
    GPUTENSOR_CUBLAS_SYMBOLS(X)
#undef X

    // The libraries, or null and the reason why they are missing.
    static const NativeBlas* get(std::string* problem) {
        static std::mutex mutex;
        static NativeBlas loaded;
        static bool is_loaded = false;
        std::lock_guard<std::mutex> guard(mutex);
        if (is_loaded) return &loaded;
        void* lt = library({"libcublasLt.so.13", "libcublasLt.so.12"});
        void* cublas = lt ? library({"libcublas.so.13", "libcublas.so.12"}) : nullptr;
        if (!lt || !cublas) {
            *problem = std::string("the CUDA library ") + (lt ? "cublas" : "cublasLt") +
                       " was not found; the program needs it for its matrix products";
            return nullptr;
        }
        const char* missing = nullptr;
#define X(name, result, parameters)                                            \
    loaded.name = reinterpret_cast<decltype(loaded.name)>(dlsym(lt, #name));   \
    if (!loaded.name) missing = #name;
        GPUTENSOR_LT_SYMBOLS(X)
#undef X
#define X(name, result, parameters)                                              \
    loaded.name = reinterpret_cast<decltype(loaded.name)>(dlsym(cublas, #name)); \
    if (!loaded.name) missing = #name;
        GPUTENSOR_CUBLAS_SYMBOLS(X)
#undef X
        if (missing) {
            *problem = std::string("cuBLAS lacks ") + missing + "; CUDA 12.0 or newer is needed";
            return nullptr;
        }
        is_loaded = true;
        return &loaded;
    }

private:
    static void* library(std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
        return nullptr;
    }
};

// Whether the numbers of a product from a file are valid (described.pxi).
inline bool native_product_is_sound(const gt_product& given) {
    constexpr int64_t MOST = int64_t(1) << 40;
    constexpr int INT8 = 1, INT32 = 3, DTYPES = 17;
    static const unsigned char kinds[DTYPES] = {0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5};
    enum { INTEGER = 1, FLOAT = 3, COMPLEX = 4, SMALL = 5 };
    if (given.outer_ndim || given.device || (given.flags & 8) || given.batch <= 0 || given.batch > 65535)
        return false;
    for (int64_t extent : {given.m, given.n, given.k})
        if (extent <= 0 || extent > MOST) return false;
    for (int type : {given.type_a, given.type_b, given.type_d})
        if (type < 0 || type >= DTYPES) return false;
    int kind = kinds[given.type_a], result = kinds[given.type_d], other = kinds[given.type_b];
    if (kind == INTEGER) {
        if (given.type_a != INT8 || given.type_b != INT8 || given.type_d != INT32 || (given.flags & 32))
            return false;
    } else if (kind == FLOAT || kind == COMPLEX) {
        if (other != kind || result != kind) return false;
    } else if (kind != SMALL || other != SMALL || (result != FLOAT && result != SMALL)) {
        return false;
    }
    return given.op_a >= 0 && given.op_a <= 2 && given.op_b >= 0 && given.op_b <= 2 &&
           given.activation >= 0 && given.activation <= 2;
}

class NativeProducts {
public:
    struct Workspace {
        uint64_t ptr;
        size_t nbytes;
    };

    explicit NativeProducts(int capability)
        : most_workspace(capability >= 90 ? size_t(32) << 20 : size_t(8519680)) {}
    ~NativeProducts() {
        for (auto& one : plans)
            for (Plan& plan : one.second) drop(plan);
        if (lt) blas->cublasLtDestroy(lt);
        if (cublas) blas->cublasDestroy_v2(cublas);
    }
    NativeProducts(const NativeProducts&) = delete;
    NativeProducts& operator=(const NativeProducts&) = delete;

    // Queues a product; `site` is equal for products that differ only in addresses.
    // `memory(nbytes)` gives the address of the workspace. Returns a cuBLAS status, or -1 with a
    // problem.
    template <class Memory>
    int queue(gt_product product, const void* site, uint64_t stream, Memory memory,
              std::string* problem) {
        if (!blas) blas = NativeBlas::get(problem);
        if (!blas) return -1;
        if (product.compute == EMULATED && blas->cublasLtGetVersion() < 120900)
            product.compute = COMPUTE_32F;
        Plan* plan = nullptr;
        int status = plan_of(product, site, &plan);
        if (status) return status;
        uint64_t workspace = 0;
        if (plan->workspace_nbytes && !(workspace = memory(most_workspace))) return ALLOC_FAILED;
        return plan->is_lt ? run_lt(*plan, product, workspace, stream)
                           : run_cublas(product, workspace, stream);
    }

private:
    enum {
        ALLOC_FAILED = 3, NOT_SUPPORTED = 15, COMPUTE_16F = 64, COMPUTE_32F = 68, COMPUTE_64F = 70,
        COMPUTE_32I = 72, EMULATED = 78
    };
    enum { R_32F = 0, R_64F = 1, R_16F = 2, C_32F = 4, C_64F = 5, R_32I = 10 };
    enum { REDUCED_REDUCTION = 1, FAST_ACCUMULATION = 4, NO_SPLIT = 64 };

    struct Plan {
        int alignments[4] = {};
        bool is_lt = true;
        void *desc = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
        NativeAlgo algo{};
        size_t workspace_nbytes = 0;
    };

    static int library_type(int dtype) {
        static const int types[17] = {-1, 3, -1, 10, -1, -1, -1, -1, -1, 2, 14, 0, 1, 4, 5, 28, 29};
        return types[dtype];
    }
    static bool is_complex(const gt_product& p) { return p.type_a == 13 || p.type_a == 14; }
    static bool is_small(const gt_product& p) { return p.type_a >= 15; }
    static int scale_type(const gt_product& p) {
        if (p.compute == COMPUTE_64F) return is_complex(p) ? C_64F : R_64F;
        if (p.compute == COMPUTE_16F) return R_16F;
        if (p.compute == COMPUTE_32I) return R_32I;
        return is_complex(p) ? C_32F : R_32F;
    }
    struct Factor {
        alignas(16) unsigned char bytes[16];

        Factor(int type, double real, double imag) {
            memset(bytes, 0, sizeof(bytes));
            double wide[] = {real, imag};
            float narrow[] = {float(real), float(imag)};
            uint16_t half = gt_half_of(real);
            auto whole = int32_t(real);
            if (type == R_64F || type == C_64F) memcpy(bytes, wide, sizeof(wide));
            else if (type == R_16F) memcpy(bytes, &half, sizeof(half));
            else if (type == R_32I) memcpy(bytes, &whole, sizeof(whole));
            else memcpy(bytes, narrow, sizeof(narrow));
        }
    };

    // ---- planning

    int plan_of(const gt_product& p, const void* site, Plan** out) {
        Plan wanted;
        const uint64_t addresses[] = {p.a, p.b, p.c, p.d};
        for (int i = 0; i < 4; i++) {
            uint64_t bits = addresses[i] | 256;
            wanted.alignments[i] = int(bits & (~bits + 1));
        }
        std::vector<Plan>& known = plans[site];
        for (Plan& one : known)
            if (!memcmp(one.alignments, wanted.alignments, sizeof(wanted.alignments)))
                return *out = &one, 0;
        int status = lt_build(p, &wanted);
        if (status) {
            drop(wanted);
            if (is_small(p) || (p.flags & NO_SPLIT)) return status;
            wanted.is_lt = false;
            wanted.workspace_nbytes = most_workspace;
        }
        known.push_back(wanted);
        *out = &known.back();
        return 0;
    }

    int epilogue_of(const gt_product& p) {
        int found = p.activation == 1 ? 2 : p.activation == 2 ? 32 : p.bias ? 0 : 1;
        return found | (p.bias ? 4 : 0);
    }

    template <class Value> int set(Plan* plan, int attribute, Value value) {
        return blas->cublasLtMatmulDescSetAttribute(plan->desc, attribute, &value, sizeof(value));
    }

    int set_pointers(Plan* plan, const gt_product& p) {
        int status = p.bias ? set(plan, 8, p.bias) : 0;
        if (!status && p.scale_a) status = set(plan, 17, p.scale_a);
        if (!status && p.scale_b) status = set(plan, 18, p.scale_b);
        return status;
    }

    int make_layout(void** layout, int dtype, int64_t rows, int64_t columns, int64_t ld,
                    int64_t batch, int64_t stride) {
        auto count = int32_t(batch);
        int status = blas->cublasLtMatrixLayoutCreate(layout, library_type(dtype), uint64_t(rows),
                                                      uint64_t(columns), ld);
        if (status || batch <= 1) return status;
        status = blas->cublasLtMatrixLayoutSetAttribute(*layout, 5, &count, sizeof(count));
        if (status) return status;
        return blas->cublasLtMatrixLayoutSetAttribute(*layout, 6, &stride, sizeof(stride));
    }

    int lt_build(const gt_product& p, Plan* plan) {
        int status = lt ? 0 : blas->cublasLtCreate(&lt);
        if (status) return status;
        status = blas->cublasLtMatmulDescCreate(&plan->desc, p.compute, scale_type(p));
        if (!status) status = set(plan, 3, int32_t(p.op_a));
        if (!status) status = set(plan, 4, int32_t(p.op_b));
        int epilogue = epilogue_of(p);
        if (!status && epilogue != 1) status = set(plan, 7, int32_t(epilogue));
        if (!status && (p.flags & FAST_ACCUMULATION)) status = set(plan, 25, int8_t(1));
        if (!status && p.scale_mode_a) status = set(plan, 31, int32_t(p.scale_mode_a));
        if (!status && p.scale_mode_b) status = set(plan, 32, int32_t(p.scale_mode_b));
        if (!status) status = set_pointers(plan, p);
        if (!status)
            status = make_layout(&plan->a, p.type_a, p.op_a ? p.k : p.m, p.op_a ? p.m : p.k, p.lda,
                                 p.batch, p.stride_a);
        if (!status)
            status = make_layout(&plan->b, p.type_b, p.op_b ? p.n : p.k, p.op_b ? p.k : p.n, p.ldb,
                                 p.batch, p.stride_b);
        if (!status)
            status = make_layout(&plan->c, p.type_d, p.m, p.n, p.ldc, p.batch, p.stride_c);
        if (!status)
            status = make_layout(&plan->d, p.type_d, p.m, p.n, p.ldd, p.batch, p.stride_d);
        if (status || pinned(p, plan)) return status;
        return propose(p, plan);
    }

    // Takes the pinned algorithm, if it is one of this version of the library, which accepts it.
    bool pinned(const gt_product& p, Plan* plan) {
        const gt_pinned& given = p.pinned;
        NativeHeuristic result{};
        NativeAlgo algo{};
        if (!given.version || given.version != blas->cublasLtGetVersion()) return false;
        int type_d = library_type(p.type_d);
        int status = blas->cublasLtMatmulAlgoInit(lt, p.compute, scale_type(p),
                                                  library_type(p.type_a), library_type(p.type_b),
                                                  type_d, type_d, given.config[0], &algo);
        for (int i = 1; i < GT_CONFIG_COUNT && !status; i++)
            status = blas->cublasLtMatmulAlgoConfigSetAttribute(&algo, i, &given.config[i],
                                                                i > 6 ? 2 : 4);
        if (!status)
            status = blas->cublasLtMatmulAlgoCheck(lt, plan->desc, plan->a, plan->b, plan->c,
                                                   plan->d, &algo, &result);
        if (status || result.workspace_nbytes > most_workspace) return false;
        plan->algo = algo;
        plan->workspace_nbytes = result.workspace_nbytes;
        return true;
    }

    int propose(const gt_product& p, Plan* plan) {
        NativeHeuristic result{}, second{};
        int count = 0, found = 0, status = ask(p, plan, most_workspace, &result, &count);
        if (!status && !count) status = NOT_SUPPORTED;
        if (!status && most_workspace > LITTLE_WORKSPACE &&
            !ask(p, plan, LITTLE_WORKSPACE, &second, &found) && found &&
            second_is_better(p.m, p.n, p.k, proposal_of(result), proposal_of(second)))
            result = second;
        plan->algo = result.algo;
        plan->workspace_nbytes = result.workspace_nbytes;
        return status;
    }

    Proposal proposal_of(const NativeHeuristic& result) {
        Proposal found{0, 0, 0, 0, result.workspace_nbytes, result.waves};
        size_t written = 0;
        int* const places[] = {&found.id, &found.tile, &found.split};
        for (int i = 0; i < 3; i++)
            blas->cublasLtMatmulAlgoConfigGetAttribute(&result.algo, i, places[i], 4, &written);
        blas->cublasLtMatmulAlgoConfigGetAttribute(&result.algo, 6, &found.stages, 4, &written);
        return found;
    }

    int ask(const gt_product& p, Plan* plan, size_t allowed, NativeHeuristic* result, int* count) {
        void* preference = nullptr;
        int status = blas->cublasLtMatmulPreferenceCreate(&preference);
        if (status) return status;
        auto prefer = [&](int attribute, auto value) {
            if (!status)
                status = blas->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                                                    sizeof(value));
        };
        prefer(1, uint64_t(allowed));
        prefer(3, proposal_reductions(!(p.flags & NO_SPLIT), p.flags & REDUCED_REDUCTION, p.type_d,
                                      p.bias != 0, blas->cublasLtGetVersion()));
        for (int i = 0; i < 4; i++) prefer(5 + i, uint32_t(plan->alignments[i]));
        if (!status)
            status = blas->cublasLtMatmulAlgoGetHeuristic(lt, plan->desc, plan->a, plan->b, plan->c,
                                                          plan->d, preference, 1, result, count);
        blas->cublasLtMatmulPreferenceDestroy(preference);
        return status;
    }

    void drop(Plan& plan) {
        if (plan.desc) blas->cublasLtMatmulDescDestroy(plan.desc);
        for (void** layout : {&plan.a, &plan.b, &plan.c, &plan.d})
            if (*layout) blas->cublasLtMatrixLayoutDestroy(*layout);
        plan.desc = plan.a = plan.b = plan.c = plan.d = nullptr;
    }

    // ---- running

    static void* at(uint64_t address) { return reinterpret_cast<void*>(address); }

    int run_lt(Plan& plan, const gt_product& p, uint64_t workspace, uint64_t stream) {
        Factor alpha(scale_type(p), p.alpha, p.alpha_imag), beta(scale_type(p), p.beta, p.beta_imag);
        int status = p.bias || p.scale_a ? set_pointers(&plan, p) : 0;
        if (status) return status;
        return blas->cublasLtMatmul(lt, plan.desc, alpha.bytes, at(p.a), plan.a, at(p.b), plan.b,
                                    beta.bytes, at(p.c), plan.c, at(p.d), plan.d, &plan.algo,
                                    at(workspace), workspace ? most_workspace : 0, at(stream));
    }

    int run_cublas(const gt_product& p, uint64_t workspace, uint64_t stream) {
        if (p.activation || p.bias || p.scale_a || p.c != p.d || p.ldc != p.ldd) return NOT_SUPPORTED;
        int status = cublas ? 0 : blas->cublasCreate_v2(&cublas);
        // Setting the stream drops the workspace.
        if (!status) status = blas->cublasSetStream_v2(cublas, at(stream));
        if (!status) status = blas->cublasSetWorkspace_v2(cublas, at(workspace), most_workspace);
        if (!status) status = blas->cublasSetMathMode(cublas, p.flags & REDUCED_REDUCTION ? 0 : 16);
        if (status) return status;
        Factor alpha(scale_type(p), p.alpha, p.alpha_imag), beta(scale_type(p), p.beta, p.beta_imag);
        int a = library_type(p.type_a), b = library_type(p.type_b), d = library_type(p.type_d);
        if (p.batch == 1)
            return blas->cublasGemmEx_64(cublas, p.op_a, p.op_b, p.m, p.n, p.k, alpha.bytes, at(p.a),
                                         a, p.lda, at(p.b), b, p.ldb, beta.bytes, at(p.d), d, p.ldd,
                                         p.compute, -1);
        return blas->cublasGemmStridedBatchedEx_64(
            cublas, p.op_a, p.op_b, p.m, p.n, p.k, alpha.bytes, at(p.a), a, p.lda, p.stride_a,
            at(p.b), b, p.ldb, p.stride_b, beta.bytes, at(p.d), d, p.ldd, p.stride_d, p.batch,
            p.compute, -1);
    }

    const size_t most_workspace;
    const NativeBlas* blas = nullptr;
    void *lt = nullptr, *cublas = nullptr;
    std::map<const void*, std::vector<Plan>> plans;
};

}  // namespace gputensor

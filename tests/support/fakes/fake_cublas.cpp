// cuBLAS and cuBLASLt for tests: the functions of library.pxd over the fake driver (fake_gpu.cpp).
//
// A product runs when its stream reaches it. Calls check what the real libraries require: leading
// dimensions, a current context, an algorithm of the library, and its workspace. A product first
// fills its workspace with 0xFF, so a workspace that was released too early spoils other numbers.
// Built as libcublasLt.so.13 and as libcublas.so.13.
#include <dlfcn.h>

#include <complex>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { R32F = 0, R64F = 1, R16F = 2, R8I = 3, C32F = 4, C64F = 5, R32I = 10, R16BF = 14, E4M3 = 28, E5M2 = 29 };
enum { SCALE_TENSOR = 0, SCALE_OUTER = 3, SCALE_VECTOR = 4, SCALE_BLOCK = 5 };
using Number = std::complex<double>;

void* driver(const char* name) {
    static void* library = dlopen(getenv("GPUTENSOR_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}
bool has_context() {
    void* context = nullptr;
    reinterpret_cast<int (*)(void**)>(driver("cuCtxGetCurrent"))(&context);
    return context;
}
int enqueue(void* stream, void (*function)(void*), void* argument) {
    using Launch = int (*)(void*, void (*)(void*), void*);
    return reinterpret_cast<Launch>(driver("cuLaunchHostFunc"))(stream, function, argument);
}

float half_to_float(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent == 0  ? ldexpf(float(mantissa), -24)
                                : ldexpf(float(mantissa | 1024), exponent - 25);
    return bits & 0x8000 ? -size : size;
}
uint16_t float_to_half(float x) {
    uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    float size = fabsf(x);
    if (x != x) return sign | 0x7e00;
    if (size >= 65520.0f) return sign | 0x7c00;
    int exponent = size == 0 ? -14 : ilogbf(size);
    if (exponent < -14) exponent = -14;
    return uint16_t(sign | (int(nearbyintf(ldexpf(size, 10 - exponent))) + ((exponent + 14) << 10)));
}
size_t size_of(int type) {
    switch (type) {
        case R8I: case E4M3: case E5M2: return 1;
        case R16F: case R16BF: return 2;
        case R64F: case C32F: return 8;
        case C64F: return 16;
        default: return 4;
    }
}
Number load(const char* base, int64_t index, int type) {
    const char* at = base + index * int64_t(size_of(type));
    switch (type) {
        case R32F: { float x; memcpy(&x, at, 4); return x; }
        case R64F: { double x; memcpy(&x, at, 8); return x; }
        case R16F: { uint16_t x; memcpy(&x, at, 2); return half_to_float(x); }
        case R16BF: { uint16_t x; memcpy(&x, at, 2); uint32_t y = uint32_t(x) << 16; float z; memcpy(&z, &y, 4); return z; }
        case R8I: return *reinterpret_cast<const int8_t*>(at);
        case E5M2: return half_to_float(uint16_t(uint8_t(*at) << 8));
        case E4M3: {
            uint8_t bits = uint8_t(*at);
            if ((bits & 0x7f) == 0x7f) return NAN;
            return half_to_float(uint16_t((bits & 0x80) << 8 | (bits & 0x7f) << 7)) * 256;
        }
        case R32I: { int32_t x; memcpy(&x, at, 4); return x; }
        case C32F: { float x[2]; memcpy(x, at, 8); return {x[0], x[1]}; }
        default: { double x[2]; memcpy(x, at, 16); return {x[0], x[1]}; }
    }
}
void store(char* base, int64_t index, int type, Number value) {
    char* at = base + index * int64_t(size_of(type));
    float real = float(value.real());
    switch (type) {
        case R32F: memcpy(at, &real, 4); break;
        case R64F: { double x = value.real(); memcpy(at, &x, 8); break; }
        case R16F: { uint16_t x = float_to_half(real); memcpy(at, &x, 2); break; }
        case R16BF: {
            uint32_t y; memcpy(&y, &real, 4);
            uint16_t x = real != real ? 0x7fff : uint16_t((y + 0x7fff + ((y >> 16) & 1)) >> 16);
            memcpy(at, &x, 2); break;
        }
        case R32I: { int32_t x = int32_t(value.real()); memcpy(at, &x, 4); break; }
        case C32F: { float x[2] = {real, float(value.imag())}; memcpy(at, x, 8); break; }
        default: { double x[2] = {value.real(), value.imag()}; memcpy(at, x, 16); }
    }
}

struct Matrix { int type = 0; int64_t rows = 0, columns = 0, ld = 0, batch = 1, stride = 0; };
struct Call {
    int op_a = 0, op_b = 0, epilogue = 1; Matrix a, b, c, d;
    const char *pa, *pb, *pc, *bias = nullptr;
    char *pd, *workspace = nullptr;
    size_t workspace_nbytes = 0;
    Number alpha, beta;
    int mode_a = SCALE_TENSOR, mode_b = SCALE_TENSOR, bias_type = 0, compute = 0;
    bool is_fast = false;
    const float *scale_a = nullptr, *scale_b = nullptr;
};
// The scale of element (line, i) of an fp8 matrix of `lines` lines of k terms, according to the
// documentation of cublasLtMatmulMatrixScale_t.
double scale_at(const float* scales, int mode, int64_t lines, int64_t k, int64_t line, int64_t i) {
    int64_t blocks = (k + 127) / 128;
    if (!scales) return 1;
    if (mode == SCALE_OUTER) return scales[line];
    if (mode == SCALE_VECTOR) return scales[i / 128 * lines + line];
    if (mode == SCALE_BLOCK) return scales[line / 128 * ((blocks + 3) / 4 * 4) + i / 128];
    return scales[0];
}
bool is_fp8(int type) { return type == E4M3 || type == E5M2; }
// Whether Hopper's fp8 kernels support a call, as found on an H200 with cuBLAS 13.1.
bool fp8_fits(const Call& call, int64_t k) {
    int64_t step = 16 / int64_t(size_of(call.d.type));
    bool a_blocks = call.mode_a > SCALE_OUTER, b_blocks = call.mode_b > SCALE_OUTER;
    if (call.op_a != 1 || call.op_b != 0 || (call.a.type == E5M2 && call.b.type == E5M2)) return false;
    if (k % 16 || call.a.ld % 16 || call.b.ld % 16 || call.d.rows % step || call.d.ld % step) return false;
    if ((call.mode_a == SCALE_OUTER) != (call.mode_b == SCALE_OUTER) || a_blocks != b_blocks) return false;
    if (call.mode_a == SCALE_BLOCK && call.mode_b == SCALE_BLOCK) return false;
    if (call.mode_b == SCALE_VECTOR && call.d.columns % 4) return false;
    if (a_blocks && call.is_fast) return false;
    if (call.mode_a != SCALE_TENSOR && call.d.batch > 1) return false;
    if (call.d.type != R32F && call.d.type != R16F && call.d.type != R16BF) return false;
    return !(call.epilogue & 4) || call.bias_type == (call.d.type == R32F ? int(R16BF) : call.d.type);
}

Number element(const char* base, const Matrix& x, int op, int64_t row, int64_t column, int64_t item) {
    if (op) std::swap(row, column);
    Number value = load(base, item * x.stride + column * x.ld + row, x.type);
    return op == 2 ? std::conj(value) : value;
}
bool is_complex(int type) { return type == C32F || type == C64F; }
void set(double& to, Number value) { to = value.real(); }
void set(Number& to, Number value) { to = value; }
double activation(int epilogue, double x) {
    if (epilogue & 32) return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return epilogue & 2 ? (x > 0 || x != x ? x : 0) : x;
}
// Reads each row of a and each column of b once, converted and scaled, and multiplies 8 rows at once.
template <typename T>
void multiply(const Call& call) {
    const int64_t m = call.d.rows, n = call.d.columns, k = call.op_a ? call.a.rows : call.a.columns;
    std::vector<T> a(size_t((m + 7) / 8 * 8 * k)), b(size_t(n * k));
    T terms[8];
    for (int64_t item = 0; item < call.d.batch; ++item) {
        for (int64_t row = 0; row < m; ++row)
            for (int64_t i = 0; i < k; ++i)
                set(a[size_t((row / 8 * k + i) * 8 + row % 8)],
                    element(call.pa, call.a, call.op_a, row, i, item) *
                        scale_at(call.scale_a, call.mode_a, m, k, row, i));
        for (int64_t column = 0; column < n; ++column)
            for (int64_t i = 0; i < k; ++i)
                set(b[size_t(column * k + i)], element(call.pb, call.b, call.op_b, i, column, item) *
                                                   scale_at(call.scale_b, call.mode_b, n, k, column, i));
        for (int64_t column = 0; column < n; ++column)
            for (int64_t row = 0; row < m; ++row) {
                for (int r = 0; row % 8 == 0 && r < 8; ++r) terms[r] = 0;
                for (int64_t i = 0; row % 8 == 0 && i < k; ++i)
                    #pragma GCC unroll 8
                    for (int r = 0; r < 8; ++r)
                        terms[r] += a[size_t(row * k + i * 8 + r)] * b[size_t(column * k + i)];
                Number sum = call.alpha * terms[row % 8];
                if (call.beta != 0.0) sum += call.beta * element(call.pc, call.c, 0, row, column, item);
                if (call.bias) sum += load(call.bias, row, call.d.type);
                if (call.epilogue & 34) sum = activation(call.epilogue, sum.real());
                store(call.pd, item * call.d.stride + column * call.d.ld + row, call.d.type, sum);
            }
    }
}
void run(void* argument) {
    const Call& call = *static_cast<Call*>(argument);  // kept: a captured call runs at each replay
    if (call.workspace_nbytes) memset(call.workspace, 0xff, call.workspace_nbytes);
    is_complex(call.d.type) ? multiply<Number>(call) : multiply<double>(call);
}
Number factor(const void* at, int scale_type) {
    return load(static_cast<const char*>(at), 0, scale_type);
}
bool is_sound(const Matrix& x) { return x.rows > 0 && x.columns > 0 && x.ld >= x.rows && x.batch > 0; }
int check(const Call& call) {
    int64_t m = call.op_a ? call.a.columns : call.a.rows, k = call.op_a ? call.a.rows : call.a.columns;
    int64_t n = call.op_b ? call.b.rows : call.b.columns, l = call.op_b ? call.b.columns : call.b.rows;
    if (!is_sound(call.a) || !is_sound(call.b) || !is_sound(call.c) || !is_sound(call.d))
        return INVALID_VALUE;
    if (call.d.rows != m || call.d.columns != n || k != l || call.c.rows != m || call.c.columns != n)
        return INVALID_VALUE;
    if (call.a.batch != call.d.batch || call.b.batch != call.d.batch) return INVALID_VALUE;
    if (is_fp8(call.a.type) != is_fp8(call.b.type)) return NOT_SUPPORTED;
    if (is_fp8(call.a.type) && !fp8_fits(call, k)) return NOT_SUPPORTED;
    if (call.compute == 64 && call.d.type != R16F) return NOT_SUPPORTED;
    return call.d.batch > 65535 ? NOT_SUPPORTED : OK;
}
int queue(const Call& call, void* stream) {
    if (!has_context()) return NOT_INITIALIZED;
    int status = check(call);
    if (status) return status;
    return enqueue(stream, run, new Call(call)) ? 13 : OK;
}

struct Desc { int compute, scale; std::map<int, int64_t> attributes; };
struct Preference { std::map<int, int64_t> attributes; };
struct Algo { int32_t config[9]; uint32_t mark; uint64_t unused[3]; };
static_assert(sizeof(Algo) == 64, "cublasLtMatmulAlgo_t");
struct Result { Algo algo; size_t workspace_nbytes; int state; float waves; int reserved[4]; };
size_t workspace_of(const Algo& algo) { return algo.config[2] > 1 ? size_t(algo.config[2]) * 4096 : 0; }
int64_t attribute(const std::map<int, int64_t>& all, int key, int64_t otherwise) {
    auto found = all.find(key);
    return found == all.end() ? otherwise : found->second;
}
int64_t read_value(const void* value, size_t nbytes) {
    int64_t number = 0;
    memcpy(&number, value, nbytes);
    return number;
}
// Appends one line per call of cublasLtMatmul to the file that FAKE_CUBLAS_LOG names.
void log_call(const Call& call, const Algo& algo, int compute) {
    const char* path = getenv("FAKE_CUBLAS_LOG");
    FILE* file = path ? fopen(path, "a") : nullptr;
    if (!file) return;
    fprintf(file, "%d %d %d  op %d%d  m %ld n %ld k %ld  scales %d%d modes %d %d  fast %d  epilogue %d  algo",
            call.a.type, call.b.type, call.d.type, call.op_a, call.op_b, long(call.d.rows),
            long(call.d.columns), long(call.op_a ? call.a.rows : call.a.columns), call.scale_a != nullptr,
            call.scale_b != nullptr, call.mode_a, call.mode_b, int(call.is_fast), call.epilogue);
    for (int32_t number : algo.config) fprintf(file, " %d", number);
    fprintf(file, "  compute %d\n", compute);
    fclose(file);
}
Call call_of(const Desc& desc, const void* a, const void* b, const void* c, const void* d) {
    Call call{};
    call.compute = desc.compute;
    call.op_a = int(attribute(desc.attributes, 3, 0));
    call.op_b = int(attribute(desc.attributes, 4, 0));
    call.epilogue = int(attribute(desc.attributes, 7, 1));
    call.a = *static_cast<const Matrix*>(a);
    call.b = *static_cast<const Matrix*>(b);
    call.c = *static_cast<const Matrix*>(c);
    call.d = *static_cast<const Matrix*>(d);
    call.is_fast = attribute(desc.attributes, 25, 0);
    call.mode_a = int(attribute(desc.attributes, 31, SCALE_TENSOR));
    call.mode_b = int(attribute(desc.attributes, 32, SCALE_TENSOR));
    call.scale_a = reinterpret_cast<const float*>(attribute(desc.attributes, 17, 0));
    call.scale_b = reinterpret_cast<const float*>(attribute(desc.attributes, 18, 0));
    call.bias_type = int(attribute(desc.attributes, 26, call.d.type));
    if (call.epilogue & 4) call.bias = reinterpret_cast<const char*>(attribute(desc.attributes, 8, 0));
    return call;
}

}  // namespace

EXPORT size_t cublasLtGetVersion() { return getenv("FAKE_CUBLAS_OLD") ? 120600 : 130101; }
EXPORT int cublasLtCreate(void** handle) {
    if (!has_context()) return NOT_INITIALIZED;
    *handle = new int(1);
    return OK;
}
EXPORT int cublasLtDestroy(void*) { return OK; }
EXPORT int cublasLtMatmulDescCreate(void** desc, int compute, int scale) {
    if (compute == 78 && getenv("FAKE_CUBLAS_OLD")) return INVALID_VALUE;
    *desc = new Desc{compute, scale, {}};
    return OK;
}
EXPORT int cublasLtMatmulDescDestroy(void* desc) { delete static_cast<Desc*>(desc); return OK; }
EXPORT int cublasLtMatmulDescSetAttribute(void* desc, int key, const void* value, size_t nbytes) {
    if (nbytes != (key == 8 || key == 17 || key == 18 ? 8u : key == 25 ? 1u : 4u)) return INVALID_VALUE;
    if ((key == 31 || key == 32) && getenv("FAKE_CUBLAS_OLD")) return INVALID_VALUE;
    static_cast<Desc*>(desc)->attributes[key] = read_value(value, nbytes);
    return OK;
}
EXPORT int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
    auto* matrix = new Matrix{};
    matrix->type = type;
    matrix->rows = int64_t(rows);
    matrix->columns = int64_t(columns);
    matrix->ld = ld;
    *layout = matrix;
    return OK;
}
EXPORT int cublasLtMatrixLayoutDestroy(void* layout) { delete static_cast<Matrix*>(layout); return OK; }
EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int key, const void* value, size_t nbytes) {
    auto* matrix = static_cast<Matrix*>(layout);
    if (key == 5 && nbytes == 4) matrix->batch = read_value(value, 4);
    else if (key == 6 && nbytes == 8) matrix->stride = read_value(value, 8);
    else return INVALID_VALUE;
    return OK;
}
EXPORT int cublasLtMatmulPreferenceCreate(void** preference) { *preference = new Preference; return OK; }
EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
    delete static_cast<Preference*>(preference);
    return OK;
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(void* preference, int key, const void* value, size_t nbytes) {
    if (nbytes != (key == 1 ? 8u : 4u)) return INVALID_VALUE;
    static_cast<Preference*>(preference)->attributes[key] = read_value(value, nbytes);
    return OK;
}
EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void* desc, void* a, void* b, void* c, void* d,
                                          void* preference, int requested, Result* results, int* returned) {
    const auto& wishes = static_cast<Preference*>(preference)->attributes;
    *returned = 0;
    for (int key : {5, 6, 7, 8})
        if (!wishes.count(key)) return INVALID_VALUE;
    int status = check(call_of(*static_cast<Desc*>(desc), a, b, c, d));
    if (status) return status;
    const bool is_whole = getenv("FAKE_CUBLAS_WHOLE");      // first proposes not to cut the sum
    const int tile = is_whole && attribute(wishes, 1, 0) > 1 << 20 ? 24 : 20;
    for (int split : {is_whole ? 1 : 4, 1, 2}) {
        Result& result = results[*returned];
        if (*returned == requested) break;
        result = {};
        result.algo = {{7, tile, split, split > 1 ? 2 : 0, 0, 0, 11, 0, 2}, 0xA160, {}};
        result.workspace_nbytes = workspace_of(result.algo);
        if (result.workspace_nbytes <= size_t(attribute(wishes, 1, 0))) ++*returned;
    }
    return OK;
}
EXPORT int cublasLtMatmulAlgoGetIds(void*, int, int, int, int, int, int, int requested, int* ids, int* returned) {
    *returned = requested < 2 ? requested : 2;
    for (int i = 0; i < *returned; ++i) ids[i] = 7 + i;
    return OK;
}
EXPORT int cublasLtMatmulAlgoInit(void*, int, int, int, int, int, int, int id, Algo* algo) {
    if (id < 0) return INVALID_VALUE;
    *algo = {{id, 0, 1, 0, 0, 0, 0, 0, 0}, 0xA160, {}};
    return OK;
}
EXPORT int cublasLtMatmulAlgoCheck(void*, void* desc, void* a, void* b, void* c, void* d, const Algo* algo,
                                   Result* result) {
    if (algo->mark != 0xA160 || algo->config[0] == 8) return NOT_SUPPORTED;
    result->algo = *algo;
    result->workspace_nbytes = workspace_of(*algo);
    return check(call_of(*static_cast<Desc*>(desc), a, b, c, d));
}
EXPORT int cublasLtMatmulAlgoCapGetAttribute(const Algo*, int key, void* value, size_t nbytes, size_t* written) {
    uint32_t tiles[] = {20, 24}, one = 1;
    *written = key == 6 ? sizeof(tiles) : 4;
    if (key == 13 || key == 7) return INVALID_VALUE;
    if (nbytes < *written) return INVALID_VALUE;
    memcpy(value, key == 6 ? tiles : &one, *written);
    return OK;
}
EXPORT int cublasLtMatmulAlgoConfigSetAttribute(Algo* algo, int key, const void* value, size_t nbytes) {
    if (key < 1 || key > 8 || nbytes != (key > 6 ? 2u : 4u)) return INVALID_VALUE;
    algo->config[key] = int32_t(read_value(value, nbytes));
    return OK;
}
EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const Algo* algo, int key, void* value, size_t nbytes, size_t* written) {
    if (key < 0 || key > 8 || nbytes != (key > 6 ? 2u : 4u)) return INVALID_VALUE;
    memcpy(value, &algo->config[key], nbytes);
    *written = nbytes;
    return OK;
}
EXPORT int cublasLtMatmul(void*, void* desc, const void* alpha, const void* pa, void* a, const void* pb, void* b,
                          const void* beta, const void* pc, void* c, void* pd, void* d, const Algo* algo,
                          void* workspace, size_t nbytes, void* stream) {
    const auto& own = *static_cast<Desc*>(desc);
    if (!algo || algo->mark != 0xA160 || workspace_of(*algo) > nbytes) return INVALID_VALUE;
    Call call = call_of(own, a, b, c, d);
    if ((call.epilogue & 4) && !call.bias) return INVALID_VALUE;
    call.pa = static_cast<const char*>(pa);
    call.pb = static_cast<const char*>(pb);
    call.pc = static_cast<const char*>(pc);
    call.pd = static_cast<char*>(pd);
    call.alpha = factor(alpha, own.scale);
    call.beta = factor(beta, own.scale);
    call.workspace = static_cast<char*>(workspace);
    call.workspace_nbytes = workspace_of(*algo);
    log_call(call, *algo, own.compute);
    return queue(call, stream);
}

struct Handle { void* stream; void* workspace; size_t nbytes; int math; };

EXPORT int cublasCreate_v2(void** handle) {
    if (!has_context()) return NOT_INITIALIZED;
    *handle = new Handle{};
    return OK;
}
EXPORT int cublasDestroy_v2(void* handle) { delete static_cast<Handle*>(handle); return OK; }
EXPORT int cublasGetVersion_v2(void*, int* version) { *version = 130101; return OK; }
EXPORT int cublasSetStream_v2(void* handle, void* stream) {
    *static_cast<Handle*>(handle) = {stream, nullptr, 0, static_cast<Handle*>(handle)->math};
    return OK;
}
EXPORT int cublasSetWorkspace_v2(void* handle, void* workspace, size_t nbytes) {
    static_cast<Handle*>(handle)->workspace = workspace;
    static_cast<Handle*>(handle)->nbytes = nbytes;
    return reinterpret_cast<uintptr_t>(workspace) % 256 ? INVALID_VALUE : OK;
}
EXPORT int cublasSetMathMode(void* handle, int mode) { static_cast<Handle*>(handle)->math = mode; return OK; }

static int scale_of(int compute, int type) {
    if (compute == 70) return type == C64F ? C64F : R64F;
    if (compute == 64) return R16F;
    if (compute == 72) return R32I;
    return type == C32F ? C32F : R32F;
}
EXPORT int cublasGemmStridedBatchedEx_64(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                                         const void* alpha, const void* pa, int type_a, int64_t lda,
                                         long long stride_a, const void* pb, int type_b, int64_t ldb,
                                         long long stride_b, const void* beta, void* pc, int type_c,
                                         int64_t ldc, long long stride_c, int64_t batch, int compute, int) {
    const auto& own = *static_cast<Handle*>(handle);
    Call call{};
    call.compute = compute;
    call.op_a = op_a;
    call.op_b = op_b;
    call.a = {type_a, op_a ? k : m, op_a ? m : k, lda, batch, stride_a};
    call.b = {type_b, op_b ? n : k, op_b ? k : n, ldb, batch, stride_b};
    call.c = call.d = {type_c, m, n, ldc, batch, stride_c};
    call.pa = static_cast<const char*>(pa);
    call.pb = static_cast<const char*>(pb);
    call.pc = call.pd = static_cast<char*>(pc);
    call.alpha = factor(alpha, scale_of(compute, type_c));
    call.beta = factor(beta, scale_of(compute, type_c));
    call.workspace = static_cast<char*>(own.workspace);
    call.workspace_nbytes = own.nbytes < 4096 ? own.nbytes : 4096;
    return queue(call, own.stream);
}
EXPORT int cublasGemmEx_64(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k, const void* alpha,
                           const void* pa, int type_a, int64_t lda, const void* pb, int type_b, int64_t ldb,
                           const void* beta, void* pc, int type_c, int64_t ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx_64(handle, op_a, op_b, m, n, k, alpha, pa, type_a, lda, 0, pb, type_b,
                                         ldb, 0, beta, pc, type_c, ldc, 0, 1, compute, algorithm);
}

// The addresses are read when the stream reaches the call, as the library's kernels do.
struct PointerCall {
    Call call;
    const uint64_t *a, *b, *c;
    int64_t batch;
};
static void run_pointers(void* argument) {
    const PointerCall& all = *static_cast<PointerCall*>(argument);
    for (int64_t item = 0; item < all.batch; ++item) {
        Call call = all.call;
        call.pa = reinterpret_cast<const char*>(all.a[item]);
        call.pb = reinterpret_cast<const char*>(all.b[item]);
        call.pc = call.pd = reinterpret_cast<char*>(all.c[item]);
        run(&call);
    }
}
EXPORT int cublasGemmBatchedEx_64(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                                  const void* alpha, const void* a, int type_a, int64_t lda, const void* b,
                                  int type_b, int64_t ldb, const void* beta, void* c, int type_c, int64_t ldc,
                                  int64_t batch, int compute, int) {
    const auto& own = *static_cast<Handle*>(handle);
    PointerCall all{};
    all.call.compute = compute;
    all.call.op_a = op_a;
    all.call.op_b = op_b;
    all.call.a = {type_a, op_a ? k : m, op_a ? m : k, lda, 1, 0};
    all.call.b = {type_b, op_b ? n : k, op_b ? k : n, ldb, 1, 0};
    all.call.c = all.call.d = {type_c, m, n, ldc, 1, 0};
    all.call.alpha = factor(alpha, scale_of(compute, type_c));
    all.call.beta = factor(beta, scale_of(compute, type_c));
    all.call.workspace = static_cast<char*>(own.workspace);
    all.call.workspace_nbytes = own.nbytes < 4096 ? own.nbytes : 4096;
    all.a = static_cast<const uint64_t*>(a);
    all.b = static_cast<const uint64_t*>(b);
    all.c = static_cast<const uint64_t*>(c);
    all.batch = batch;
    if (!has_context()) return NOT_INITIALIZED;
    int status = batch > 65535 ? NOT_SUPPORTED : check(all.call);
    if (status) return status;
    return enqueue(own.stream, run_pointers, new PointerCall(all)) ? 13 : OK;
}
EXPORT int cublasGemmGroupedBatchedEx_64(void* handle, const int* op_a, const int* op_b, const int64_t* m,
                                         const int64_t* n, const int64_t* k, const void* alpha, const void* a,
                                         int type_a, const int64_t* lda, const void* b, int type_b,
                                         const int64_t* ldb, const void* beta, void* c, int type_c,
                                         const int64_t* ldc, int64_t groups, const int64_t* sizes, int compute) {
    int64_t first = 0;
    int scale = scale_of(compute, type_c);
    if (compute == 64) return INVALID_VALUE;
    if (type_c != type_a || (type_a != R32F && type_a != R16F && type_a != R16BF)) return NOT_SUPPORTED;
    for (int64_t i = 0; i < groups; ++i) {
        int status = cublasGemmBatchedEx_64(
            handle, op_a[i], op_b[i], m[i], n[i], k[i],
            static_cast<const char*>(alpha) + i * int64_t(size_of(scale)),
            static_cast<const uint64_t*>(a) + first, type_a, lda[i],
            static_cast<const uint64_t*>(b) + first, type_b, ldb[i],
            static_cast<const char*>(beta) + i * int64_t(size_of(scale)),
            static_cast<uint64_t*>(c) + first, type_c, ldc[i], sizes[i], compute, -1);
        if (status) return status;
        first += sizes[i];
    }
    return OK;
}

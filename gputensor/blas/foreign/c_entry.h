// The C interface of products for compiled programs, without Python objects and libtorch types.
//
//   int gputensor_mm_out(DLTensor* out, const DLTensor* self, const DLTensor* mat2, void* stream);
//   const char* gputensor_last_error(void);
//
// out = self @ mat2, queued on `stream` (a CUDA stream handle; NULL is the default stream). All
// three are two-dimensional, on one device, of one type of float32, float16 and bfloat16, with one
// unit stride each and, unless empty, an address that is a multiple of its element's size; out may
// not overlap an operand. Sums, partial ones too, are float32 whatever the process allows for
// 16-bit products. The inputs of float32 products are rounded only where
// gputensor.blas.float32_matmul_precision (allow_tf32) of the calling thread or the process allows
// it, which is not the default. Returns 0 or a GPUTENSOR_* number below; gputensor_last_error() is
// the text of this thread's last failure, "" when there was none. Any number of threads and streams
// may call at once. The process must run Python: products are refused until gputensor.blas.foreign
// is imported there.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" {

typedef struct {
    int32_t device_type;  // 1: host memory, 2: CUDA
    int32_t device_id;
} GtDLDevice;

typedef struct {
    uint8_t code;  // 2: float, 4: bfloat
    uint8_t bits;
    uint16_t lanes;
} GtDLDataType;

// DLTensor of DLPack 0.8 and 1.x (dlpack.h); strides may be NULL for row-major.
typedef struct {
    void* data;
    GtDLDevice device;
    int32_t ndim;
    GtDLDataType dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
} GtDLTensor;

enum {
    GPUTENSOR_OK = 0,
    GPUTENSOR_INVALID = 1,      // an argument does not meet the contract
    GPUTENSOR_NO_MEMORY = 2,
    GPUTENSOR_LIBRARY = 3,      // cuBLAS, cuBLASLt or the driver refused
};

}  // extern "C"

typedef int (*gt_mm_out_t)(GtDLTensor*, const GtDLTensor*, const GtDLTensor*, void*);
static gt_mm_out_t gt_mm_out = nullptr;
static thread_local char gt_last_error[512] = "";

static inline void gt_set_error(const char* text) {
    std::snprintf(gt_last_error, sizeof gt_last_error, "%s", text);
}

static inline void gt_set_argument_error(const char* name, const char* problem) {
    std::snprintf(gt_last_error, sizeof gt_last_error, "%s: %s", name, problem);
}

static inline void gt_set_error_number(const char* text, int64_t number) {
    std::snprintf(gt_last_error, sizeof gt_last_error, text, (long long)number);
}

#define GT_EXPORT extern "C" __attribute__((visibility("default")))

GT_EXPORT int gputensor_mm_out(GtDLTensor* out, const GtDLTensor* self, const GtDLTensor* mat2,
                               void* stream) {
    gt_last_error[0] = 0;
    if (!gt_mm_out) {
        gt_set_error("gputensor.blas.foreign has not been imported in this process");
        return GPUTENSOR_LIBRARY;
    }
    return gt_mm_out(out, self, mat2, stream);
}

GT_EXPORT const char* gputensor_last_error(void) { return gt_last_error; }

// The structures of DLPack 1.3 (and of the unversioned form before it). DLPack is an exchange
// format between libraries, so its specification fixes names and layout.
#ifndef GPUTENSOR_TENSOR_DLPACK_H
#define GPUTENSOR_TENSOR_DLPACK_H

#include <cstdint>

struct DLDevice {
    int32_t device_type;   // 1 CPU, 2 CUDA, 3 pinned host memory of CUDA, 13 managed memory
    int32_t device_id;
};

struct DLDataType {
    uint8_t code;          // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 10.. float8
    uint8_t bits;
    uint16_t lanes;
};

struct DLTensor {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;      // in elements; NULL: row-major
    uint64_t byte_offset;
};

struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
};

struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned* self);
    uint64_t flags;        // 1 read-only, 2 copied for this export
    DLTensor dl_tensor;
};

// The table of functions behind __dlpack_c_exchange_api__ (DLPack 1.3). Each returns 0, or -1 with a
// Python error set; the allocator reports through `set_error` instead.
struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    DLPackExchangeAPIHeader* prev_api;
};

struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out,
                                    void* error_context,
                                    void (*set_error)(void* context, const char* kind,
                                                      const char* message));
    int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** out);
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** out);
    int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);
    int (*current_work_stream)(int device_type, int32_t device_id, void** out_stream);
};

#endif

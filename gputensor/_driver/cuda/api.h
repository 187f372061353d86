// The part of the CUDA driver's binary interface that the library calls, declared by us.
//
// No CUDA header is needed to build. Every signature is the one of CUDA 12.0 (ABI_VERSION), which
// the driver keeps forever: a CUDA 13 driver returns the 12.0 form of a function on request.
// Handles are void*, device addresses uint64_t, enumerations int.
//
// Each line of the list: the name that cuGetProcAddress knows, the name that the library exports
// for the same form (for drivers or tests without cuGetProcAddress), and the parameters.
#pragma once

#include <cstddef>
#include <cstdint>

#define GPUTENSOR_CUDA_SYMBOLS(X)                                                               \
    X(cuGetErrorName, cuGetErrorName, (int, const char**))                                      \
    X(cuInit, cuInit, (unsigned))                                                               \
    X(cuDriverGetVersion, cuDriverGetVersion, (int*))                                           \
    X(cuDeviceGet, cuDeviceGet, (int*, int))                                                    \
    X(cuDeviceGetCount, cuDeviceGetCount, (int*))                                               \
    X(cuDeviceGetName, cuDeviceGetName, (char*, int, int))                                      \
    X(cuDeviceGetUuid, cuDeviceGetUuid_v2, (void*, int))                                        \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char*, int, int))                              \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t*, int))                                    \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int*, int, int))                             \
    X(cuDeviceGetMemPool, cuDeviceGetMemPool, (void**, int))                                    \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void**, int))                        \
    X(cuCtxGetCurrent, cuCtxGetCurrent, (void**))                                               \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (void*))                                                \
    X(cuCtxSynchronize, cuCtxSynchronize, ())                                                   \
    X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int*, int*))                   \
    X(cuMemAlloc, cuMemAlloc_v2, (uint64_t*, size_t))                                           \
    X(cuMemFree, cuMemFree_v2, (uint64_t))                                                      \
    X(cuMemGetInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                        \
    X(cuMemHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                               \
    X(cuMemFreeHost, cuMemFreeHost, (void*))                                                    \
    X(cuMemHostRegister, cuMemHostRegister_v2, (void*, size_t, unsigned))                       \
    X(cuMemHostUnregister, cuMemHostUnregister, (void*))                                        \
    X(cuMemAllocAsync, cuMemAllocAsync, (uint64_t*, size_t, void*))                             \
    X(cuMemFreeAsync, cuMemFreeAsync, (uint64_t, void*))                                        \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, (void*, size_t))                                        \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, (void*, int, void*))                        \
    X(cuMemAddressReserve, cuMemAddressReserve,                                                 \
      (uint64_t*, size_t, size_t, uint64_t, unsigned long long))                                \
    X(cuMemAddressFree, cuMemAddressFree, (uint64_t, size_t))                                   \
    X(cuMemCreate, cuMemCreate,                                                                 \
      (uint64_t*, size_t, const MemAllocationProp*, unsigned long long))                        \
    X(cuMemRelease, cuMemRelease, (uint64_t))                                                   \
    X(cuMemMap, cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long))             \
    X(cuMemUnmap, cuMemUnmap, (uint64_t, size_t))                                               \
    X(cuMemSetAccess, cuMemSetAccess, (uint64_t, size_t, const MemAccessDesc*, size_t))         \
    X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity,                             \
      (size_t*, const MemAllocationProp*, int))                                                 \
    X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, (void**, unsigned, int))          \
    X(cuStreamDestroy, cuStreamDestroy_v2, (void*))                                             \
    X(cuStreamQuery, cuStreamQuery, (void*))                                                    \
    X(cuStreamSynchronize, cuStreamSynchronize, (void*))                                        \
    X(cuStreamWaitEvent, cuStreamWaitEvent, (void*, void*, unsigned))                           \
    X(cuEventCreate, cuEventCreate, (void**, unsigned))                                         \
    X(cuEventDestroy, cuEventDestroy_v2, (void*))                                               \
    X(cuEventRecord, cuEventRecord, (void*, void*))                                             \
    X(cuEventQuery, cuEventQuery, (void*))                                                      \
    X(cuEventSynchronize, cuEventSynchronize, (void*))                                          \
    X(cuEventElapsedTime, cuEventElapsedTime, (float*, void*, void*))                           \
    X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int*))             \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (void*, int))                              \
    X(cuStreamEndCapture, cuStreamEndCapture, (void*, void**))                                  \
    X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2,                                        \
      (void*, int*, uint64_t*, void**, const void***, size_t*))                                 \
    X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies, (void*, void**, size_t*))         \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,                                 \
      (void**, void*, unsigned long long))                                                      \
    X(cuGraphGetNodes, cuGraphGetNodes, (void*, void**, size_t*))                               \
    X(cuGraphNodeGetType, cuGraphNodeGetType, (void*, int*))                                    \
    X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2, (void*, KernelParameters*))    \
    X(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams, (void*, CopyParameters*))         \
    X(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, (void*, FillParameters*))         \
    X(cuGraphHostNodeGetParams, cuGraphHostNodeGetParams, (void*, HostParameters*))             \
    X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2,                        \
      (void*, void*, const KernelParameters*))                                                  \
    X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams,                           \
      (void*, void*, const CopyParameters*, void*))                                             \
    X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,                           \
      (void*, void*, const FillParameters*, void*))                                             \
    X(cuGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams,                               \
      (void*, void*, const HostParameters*))                                                    \
    X(cuGraphExecUpdate, cuGraphExecUpdate_v2, (void*, void*, UpdateResult*))                   \
    X(cuGraphLaunch, cuGraphLaunch, (void*, void*))                                             \
    X(cuGraphDestroy, cuGraphDestroy, (void*))                                                  \
    X(cuGraphExecDestroy, cuGraphExecDestroy, (void*))                                          \
    X(cuMemcpyAsync, cuMemcpyAsync, (uint64_t, uint64_t, size_t, void*))                        \
    X(cuMemcpyPeerAsync, cuMemcpyPeerAsync, (uint64_t, void*, uint64_t, void*, size_t, void*))  \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int*, int, int))                           \
    X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, (void*, unsigned))                          \
    X(cuMemsetD8Async, cuMemsetD8Async, (uint64_t, unsigned char, size_t, void*))               \
    X(cuMemsetD16Async, cuMemsetD16Async, (uint64_t, unsigned short, size_t, void*))            \
    X(cuMemsetD32Async, cuMemsetD32Async, (uint64_t, unsigned, size_t, void*))                  \
    X(cuLaunchHostFunc, cuLaunchHostFunc, (void*, void (*)(void*), void*))                      \
    X(cuLaunchKernel, cuLaunchKernel,                                                           \
      (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,      \
       void**, void**))                                                                         \
    X(cuModuleLoadData, cuModuleLoadData, (void**, const void*))                                \
    X(cuModuleUnload, cuModuleUnload, (void*))                                                  \
    X(cuModuleGetFunction, cuModuleGetFunction, (void**, void*, const char*))                   \
    X(cuFuncSetAttribute, cuFuncSetAttribute, (void*, int, int))                                \
    X(cuFuncGetAttribute, cuFuncGetAttribute, (int*, int, void*))                               \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, \
      (int*, void*, int, size_t))

// Functions that a driver may lack: those that came after CUDA 12.0, and those of single features.
#define GPUTENSOR_CUDA_NEWER_SYMBOLS(X)                                                         \
    X(cuLaunchKernelEx, cuLaunchKernelEx, (const LaunchConfig*, void*, void**, void**))         \
    X(cuStreamGetCaptureInfoWithEdges, cuStreamGetCaptureInfo_v3,                               \
      (void*, int*, uint64_t*, void**, const void***, const void**, size_t*))                   \
    X(cuGraphNodeGetDependenciesWithEdges, cuGraphNodeGetDependencies_v2,                       \
      (void*, void**, EdgeData*, size_t*))                                                      \
    X(cuFuncGetParamInfo, cuFuncGetParamInfo, (void*, size_t, size_t*, size_t*))                \
    X(cuKernelGetParamInfo, cuKernelGetParamInfo, (void*, size_t, size_t*, size_t*))            \
    X(cuGraphDebugDotPrint, cuGraphDebugDotPrint, (void*, const char*, unsigned))               \
    X(cuEventRecordWithFlags, cuEventRecordWithFlags, (void*, void*, unsigned))                 \
    X(cuIpcGetEventHandle, cuIpcGetEventHandle, (IpcHandle*, void*))                            \
    X(cuIpcOpenEventHandle, cuIpcOpenEventHandle, (void**, IpcHandle))                          \
    X(cuMemExportToShareableHandle, cuMemExportToShareableHandle,                               \
      (void*, uint64_t, int, unsigned long long))                                               \
    X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, (uint64_t*, void*, int))\
    X(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate,                           \
      (uint64_t*, void*, void*, unsigned, unsigned))                                            \
    X(cuGraphAddNode, cuGraphAddNode, (void**, void*, const void**, size_t, NodeParameters*))   \
    X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode,                                       \
      (void**, void*, const void**, size_t, void*))                                             \
    X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies,                     \
      (void*, void**, size_t, unsigned))                                                        \
    X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph,                                 \
      (void*, void*, const void**, const void*, size_t, int))                                   \
    X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled,                                           \
      (void*, int, unsigned, uint64_t, const uint64_t*, const uint64_t*, const unsigned*,       \
       const unsigned*, int, int, int, int))                                                    \
    X(cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2col,                                         \
      (void*, int, unsigned, uint64_t, const uint64_t*, const uint64_t*, const int*,            \
       const int*, unsigned, unsigned, const unsigned*, int, int, int, int))

namespace gputensor {

// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc, field by field.
struct MemLocation {
    int type;  // 1: a device
    int id;
};
struct MemAllocationProp {
    int type;                  // 1: pinned
    int requested_handle_types;  // 0: not exportable
    MemLocation location;
    void* win32_handle_metadata;
    unsigned char compression_type;
    unsigned char gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
};
struct MemAccessDesc {
    MemLocation location;
    int flags;  // 3: read and write
};
static_assert(sizeof(MemAllocationProp) == 32 && sizeof(MemAccessDesc) == 12,
              "the layout of CUmemAllocationProp or CUmemAccessDesc is not the driver's");

// CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2, CUDA_MEMSET_NODE_PARAMS_v1, CUDA_HOST_NODE_PARAMS_v1
// and CUgraphExecUpdateResultInfo_v1. Our code reads only the first words of a copy's parameters.
struct KernelParameters {
    void* function;  // null: `kernel` is launched
    uint32_t grid[3], block[3], shared_nbytes;
    void** parameters;
    void** extra;
    void* kernel;
    void* context;
};
struct CopyParameters {
    uint64_t words[25];
};
struct FillParameters {
    uint64_t dst;
    size_t pitch;
    uint32_t value, width;
    size_t count, height;
};
struct HostParameters {
    void (*function)(void*);
    void* argument;
};
// CUlaunchConfig with CUlaunchAttribute, and CUgraphEdgeData.
struct LaunchAttribute {
    int id, pad;
    int value, rest[15];
};
struct LaunchConfig {
    uint32_t grid[3], block[3], shared_nbytes;
    void* stream;
    LaunchAttribute* attributes;
    uint32_t attribute_count;
};
struct EdgeData {
    unsigned char bytes[8];
};
struct IpcHandle {  // CUipcEventHandle
    char bytes[64];
};
struct UpdateResult {
    int result;
    void *node, *from_node;
};
// CUgraphNodeParams with the member of a conditional node.
struct NodeParameters {
    int type, reserved[3];
    uint64_t condition;
    int kind;       // 0: if, 1: while
    unsigned size;  // bodies
    void** bodies;  // given by the driver
    void* context;
    uint64_t rest[26];
};
static_assert(sizeof(KernelParameters) == 72 && sizeof(CopyParameters) == 200 &&
                  sizeof(FillParameters) == 40 && sizeof(HostParameters) == 16 &&
                  sizeof(UpdateResult) == 24 && sizeof(NodeParameters) == 256 &&
                  sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56,
              "the layout of a node's parameters is not the driver's");

struct CudaApi {
#define X(name, exported, parameters) int(*name) parameters;
    GPUTENSOR_CUDA_SYMBOLS(X)
    GPUTENSOR_CUDA_NEWER_SYMBOLS(X)  // null where the driver lacks them
#undef X

    static constexpr int ABI_VERSION = 12000;

    // Fills the struct from a library, with its dlsym. Returns the name of the first symbol that
    // the library lacks, or null.
    const char* resolve(void* library, void* (*symbol_of)(void*, const char*)) {
        get_v2 = reinterpret_cast<decltype(get_v2)>(symbol_of(library, "cuGetProcAddress_v2"));
        get_v1 = reinterpret_cast<decltype(get_v1)>(symbol_of(library, "cuGetProcAddress"));
#define X(name, exported, parameters)                                                     \
    name = reinterpret_cast<decltype(name)>(find(library, symbol_of, #name, #exported)); \
    if (!name) return #exported;
        GPUTENSOR_CUDA_SYMBOLS(X)
#undef X
#define X(name, exported, parameters) \
    name = reinterpret_cast<decltype(name)>(symbol_of(library, #exported));
        GPUTENSOR_CUDA_NEWER_SYMBOLS(X)
#undef X
        return nullptr;
    }

private:
    static constexpr uint64_t LEGACY_STREAM = 1;  // stream 0 is the legacy default stream

    void* find(void* library, void* (*symbol_of)(void*, const char*), const char* name,
               const char* exported) {
        void* found = nullptr;
        int answer = 0;
        if (get_v2 && !get_v2(name, &found, ABI_VERSION, LEGACY_STREAM, &answer) && found)
            return found;
        if (!get_v2 && get_v1 && !get_v1(name, &found, ABI_VERSION, LEGACY_STREAM) && found)
            return found;
        return symbol_of(library, exported);
    }

    int (*get_v2)(const char*, void**, int, uint64_t, int*);
    int (*get_v1)(const char*, void**, int, uint64_t);
};

}  // namespace gputensor

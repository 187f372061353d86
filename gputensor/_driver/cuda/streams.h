// Streams and events of a CUDA device, and the capture state of its streams.
#pragma once

#include "gputensor/_driver/cuda/graph.h"

namespace gputensor {

class CudaStreams : public CudaGraphs {
public:
    int stream_create(uint64_t* stream, int priority) {
        return relaxed([&] {
            return give(stream, api.cuStreamCreateWithPriority, NON_BLOCKING, priority);
        });
    }
    int stream_destroy(uint64_t stream) {
        if (!stream) return INVALID_HANDLE;
        return relaxed([&] { return api.cuStreamDestroy(handle(stream)); });
    }
    int stream_query(uint64_t stream) {
        return relaxed([&] { return api.cuStreamQuery(handle(stream)); });
    }
    int stream_synchronize(uint64_t stream) {
        return relaxed([&] { return api.cuStreamSynchronize(handle(stream)); });
    }
    int stream_wait_event(uint64_t stream, uint64_t event) {
        if (!event) return INVALID_HANDLE;
        return current([&] { return api.cuStreamWaitEvent(handle(stream), handle(event), 0); });
    }
    int stream_priority_range(int* least, int* greatest) {
        return current([&] {
            int low = 0, high = 0;
            int status = api.cuCtxGetStreamPriorityRange(&low, &high);
            if (status) return status;
            *least = low;
            *greatest = high;
            return OK;
        });
    }
    int event_create(uint64_t* event, uint32_t flags) {
        if (flags & ~(EVENT_TIMING | EVENT_INTERPROCESS)) return INVALID_VALUE;
        if (flags == (EVENT_TIMING | EVENT_INTERPROCESS)) return INVALID_VALUE;
        unsigned kind = flags & EVENT_TIMING ? 0u : DISABLE_TIMING;
        if (flags & EVENT_INTERPROCESS) kind |= INTERPROCESS;
        return relaxed([&] { return give(event, api.cuEventCreate, kind); });
    }
    int event_record_external(uint64_t event, uint64_t stream) {
        int active = 0;
        uint64_t id = 0;
        int status = capture_info(stream, &active, &id);
        if (status) return status;
        if (!active) return event_record(event, stream);
        if (!api.cuEventRecordWithFlags) return NOT_SUPPORTED;
        if (!event) return INVALID_HANDLE;
        return current([&] {
            return api.cuEventRecordWithFlags(handle(event), handle(stream), EXTERNAL);
        });
    }
    int stream_wait_external(uint64_t stream, uint64_t event) {
        int active = 0;
        uint64_t id = 0;
        int status = capture_info(stream, &active, &id);
        if (status) return status;
        if (!event) return INVALID_HANDLE;
        return current([&] {
            return api.cuStreamWaitEvent(handle(stream), handle(event), active ? EXTERNAL : 0u);
        });
    }
    int event_export(uint64_t event, void* bytes) {
        if (!api.cuIpcGetEventHandle) return NOT_SUPPORTED;
        if (!event) return INVALID_HANDLE;
        return relaxed([&] {
            IpcHandle found{};
            int status = api.cuIpcGetEventHandle(&found, handle(event));
            if (!status) memcpy(bytes, &found, sizeof(found));
            return status;
        });
    }
    int event_import(uint64_t* event, const void* bytes) {
        if (!api.cuIpcOpenEventHandle) return NOT_SUPPORTED;
        IpcHandle given;
        memcpy(&given, bytes, sizeof(given));
        return relaxed([&] { return give(event, api.cuIpcOpenEventHandle, given); });
    }
    int event_destroy(uint64_t event) {
        if (!event) return INVALID_HANDLE;
        return relaxed([&] { return api.cuEventDestroy(handle(event)); });
    }
    int event_record(uint64_t event, uint64_t stream) {
        if (!event) return INVALID_HANDLE;
        return current([&] { return api.cuEventRecord(handle(event), handle(stream)); });
    }
    int event_query(uint64_t event) {
        if (!event) return INVALID_HANDLE;
        return relaxed([&] { return api.cuEventQuery(handle(event)); });
    }
    int event_synchronize(uint64_t event) {
        if (!event) return INVALID_HANDLE;
        return relaxed([&] { return api.cuEventSynchronize(handle(event)); });
    }
    int event_elapsed(float* milliseconds, uint64_t start, uint64_t end) {
        if (!start || !end) return INVALID_HANDLE;
        return relaxed([&] {
            float found = 0;
            int status = api.cuEventElapsedTime(&found, handle(start), handle(end));
            if (!status) *milliseconds = found;
            return status;
        });
    }
    int synchronize() {
        return current([&] { return api.cuCtxSynchronize(); });
    }

    // Stream 0 never captures, and a query about it disturbs captures of other streams on CUDA.
    int capture_info(uint64_t stream, int* active, uint64_t* capture_id) {
        int state = 0;
        uint64_t id = 0;
        if (stream) {
            int status = current([&] {
                return api.cuStreamGetCaptureInfo(handle(stream), &state, &id, nullptr, nullptr,
                                                  nullptr);
            });
            if (status) return status;
        }
        *active = state;
        *capture_id = state ? id : 0;
        return OK;
    }

protected:
    using CudaGraphs::CudaGraphs;

private:
    static constexpr unsigned NON_BLOCKING = 1;    // CU_STREAM_NON_BLOCKING
    static constexpr unsigned DISABLE_TIMING = 2;  // CU_EVENT_DISABLE_TIMING
    static constexpr uint32_t EVENT_TIMING = 1, EVENT_INTERPROCESS = 2;  // table.pxd
    static constexpr unsigned INTERPROCESS = 4;    // CU_EVENT_INTERPROCESS
    static constexpr unsigned EXTERNAL = 1;        // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_...
};

}  // namespace gputensor

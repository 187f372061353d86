// Calling the CUDA driver inside one device's primary context.
//
// A call makes the context current when another one is, and restores that one afterwards, so that
// torch or CuPy in the same thread keep their current device. A thread that had none keeps ours.
// If ours is current already, which is nearly always so, this costs one cuCtxGetCurrent.
#pragma once

#include "gputensor/_driver/cuda/api.h"
#include "gputensor/_driver/entries.h"

namespace gputensor {

class CudaContext {
protected:
    CudaContext(const CudaApi& api, void* context) : api(api), context(context) {}

    static void* handle(uint64_t number) { return reinterpret_cast<void*>(number); }
    static uint64_t number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
    static uint64_t number(uint64_t value) { return value; }

    // Calls `function(&out, arguments...)` and sets `*output` only when the call succeeds.
    template <class Out, class... Parameters, class... Arguments>
    static int give(uint64_t* output, int (*function)(Out*, Parameters...),
                    Arguments... arguments) {
        Out found{};
        int status = function(&found, arguments...);
        if (!status) *output = number(found);
        return status;
    }

    template <class Call> int current(Call call) {
        void* before = nullptr;
        int status = api.cuCtxGetCurrent(&before);
        if (status) return status;
        if (before == context) return call();
        status = api.cuCtxSetCurrent(context);
        if (status) return status;
        status = call();
        if (before) api.cuCtxSetCurrent(before);
        return status;
    }

    // The same with the thread's capture mode relaxed, for calls that a capture would forbid.
    template <class Call> int relaxed(Call call) {
        return current([&] {
            int mode = CAPTURE_RELAXED;
            int status = api.cuThreadExchangeStreamCaptureMode(&mode);
            if (status) return status;
            status = call();
            api.cuThreadExchangeStreamCaptureMode(&mode);
            return status;
        });
    }

    const CudaApi& api;
    void* const context;

private:
    static constexpr int CAPTURE_RELAXED = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

}  // namespace gputensor

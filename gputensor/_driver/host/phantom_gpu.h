// A phantom GPU: the driver table of a GPU that need not exist.
//
// It has the facts that executors query and phantom memory, accepts any module unread, and keeps
// launches, copies, fills and library products as records instead of doing them. It refuses work
// that no record can hold (host functions, graphs, copies between devices). Memory that is
// allocated while records are kept is noted as scratch of the calls made meanwhile. Streams, events
// and address space are those of a deferred phantom host device, which never reuses an address.
#pragma once

#include "gputensor/_driver/host/device.h"
#include "gputensor/_driver/phantom_recorder.h"

namespace gputensor {

class PhantomGpu : public HostDevice {
public:
    static constexpr size_t CAPACITY = size_t(1) << 43;

    PhantomGpu(int capability, int multiprocessors, int shared_nbytes)
        : HostDevice(CAPACITY, true, true, 0),
          capability(capability), multiprocessors(multiprocessors), shared_nbytes(shared_nbytes) {}

    int device_attribute(int attribute, int* value) {
        switch (attribute) {
            case 16: return *value = multiprocessors, OK;
            case 75: return *value = capability / 10, OK;
            case 76: return *value = capability % 10, OK;
            case 81: return *value = shared_nbytes, OK;
            default: return NOT_SUPPORTED;
        }
    }
    int module_load(const void*, uint64_t* module) {
        return *module = recorder.new_handle(), OK;
    }
    int module_unload(uint64_t) { return OK; }
    int module_function(uint64_t, const char*, uint64_t* function) {
        return *function = recorder.new_handle(), OK;
    }
    int function_allow_shared(uint64_t function, int nbytes) {
        if (nbytes < 0) return INVALID_VALUE;
        return recorder.allow_shared(function, uint32_t(nbytes)), OK;
    }

    int mem_alloc(uint64_t* ptr, size_t nbytes) {
        int status = HostDevice::mem_alloc(ptr, nbytes);
        if (!status) recorder.give(*ptr, nbytes);
        return status;
    }

    int kernel_launch(uint64_t function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z,
                      uint32_t launch_shared, uint64_t, const void* parameters, size_t nbytes) {
        if (!function) return INVALID_VALUE;
        LaunchRecord record{LAUNCH_KERNEL, 0, {grid_x, grid_y, grid_z},
                            {block_x, block_y, block_z}};
        record.shared_nbytes = launch_shared;
        return recorder.add(record, function, parameters, nbytes);
    }
    int copy_async(uint64_t dst, uint64_t src, size_t nbytes, uint64_t) {
        if (nbytes && (!dst || !src)) return INVALID_VALUE;
        CopyWork work{dst, src, nbytes};
        return nbytes ? recorder.add({LAUNCH_COPY}, 0, &work, sizeof(work)) : OK;
    }
    int fill_async(uint64_t dst, uint32_t value, int width, size_t count, uint64_t) {
        if ((width != 1 && width != 2 && width != 4) || dst % uint64_t(width)) return INVALID_VALUE;
        FillWork work{dst, value, uint64_t(width), count};
        return count ? recorder.add({LAUNCH_FILL}, 0, &work, sizeof(work)) : OK;
    }
    int host_launch(HostFunction, void*, uint64_t) { return recorder.refuse(); }
    int graph_launch(uint64_t, uint64_t) { return recorder.refuse(); }
    int wait_for_peer(uint64_t, int, uint64_t) { return recorder.refuse(); }
    int copy_to_peer(uint64_t, int, uint64_t, size_t, uint64_t) { return recorder.refuse(); }

    PhantomRecorder recorder;

private:
    const int capability, multiprocessors, shared_nbytes;
};

}  // namespace gputensor

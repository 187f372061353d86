// Copies and gathers of few elements on a host device.
//
// They move bytes, so one loop serves all types of a size. Making views and calling NumPy would cost
// more than the work. A queued move is one record, which the function that runs it frees.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace gputensor {

struct Wide { uint64_t halves[2]; };  // complex128

struct HostCopy {
    int ndim, itemsize;
    int64_t shape[16];          // innermost first
    int64_t out_steps[16], in_steps[16];  // in elements; 0: one number
    void* out;
    const void* input;
    uint64_t number;            // what `input` points to if it is a number
};

template <class T>
void copy_line(T* out, const T* in, int64_t count, int64_t out_step, int64_t in_step) {
    if (out_step == 1 && in_step == 1)
        std::memcpy(out, in, count * sizeof(T));
    else if (out_step == 1 && in_step == 0)
        for (int64_t i = 0; i < count; ++i) out[i] = *in;
    else
        for (int64_t i = 0; i < count; ++i) out[i * out_step] = in[i * in_step];
}

template <class T>
void copy_axes(const HostCopy& copy, int axis, T* out, const T* in) {
    if (axis <= 0) {
        const bool is_one = copy.ndim == 0;
        copy_line(out, in, is_one ? 1 : copy.shape[0], is_one ? 1 : copy.out_steps[0],
                  is_one ? 1 : copy.in_steps[0]);
        return;
    }
    for (int64_t i = 0; i < copy.shape[axis]; ++i)
        copy_axes(copy, axis - 1, out + i * copy.out_steps[axis], in + i * copy.in_steps[axis]);
}

template <class T>
void copy_of(const HostCopy& copy) {
    copy_axes(copy, copy.ndim - 1, static_cast<T*>(copy.out), static_cast<const T*>(copy.input));
}

inline void run_host_copy(void* argument) {
    HostCopy* copy = static_cast<HostCopy*>(argument);
    switch (copy->itemsize) {
        case 1: copy_of<uint8_t>(*copy); break;
        case 2: copy_of<uint16_t>(*copy); break;
        case 4: copy_of<uint32_t>(*copy); break;
        case 8: copy_of<uint64_t>(*copy); break;
        default: copy_of<Wide>(*copy);
    }
    std::free(copy);
}

// Runs of `inner` elements of `outer` x `extent` runs: for each number of `index`, one of `extent`.
struct HostGather {
    int itemsize, axis, device;
    int64_t outer, extent, inner, count;
    const int64_t* index;
    const void* source;
    void* out;
};

// The place of the first number out of range; -1: there is none.
inline int64_t index_outside(const HostGather& gather) {
    uint64_t is_wrong = 0;
    const uint64_t extent = gather.extent;
    for (int64_t i = 0; i < gather.count; ++i)
        is_wrong |= static_cast<uint64_t>(gather.index[i]) + extent >= 2 * extent;
    if (!is_wrong) return -1;
    for (int64_t i = 0;; ++i)
        if (static_cast<uint64_t>(gather.index[i]) + extent >= 2 * extent) return i;
}

template <class T>
void gather_of(const HostGather& gather) {
    const T* source = static_cast<const T*>(gather.source);
    T* out = static_cast<T*>(gather.out);
    const int64_t inner = gather.inner, extent = gather.extent;
    for (int64_t outer = 0; outer < gather.outer; ++outer, source += extent * inner)
        for (int64_t i = 0; i < gather.count; ++i, out += inner) {
            const int64_t at = gather.index[i], place = at < 0 ? at + extent : at;
            if (inner == 1)
                *out = source[place];
            else
                std::memcpy(out, source + place * inner, inner * sizeof(T));
        }
}

inline void run_gather(const HostGather& gather) {
    switch (gather.itemsize) {
        case 1: return gather_of<uint8_t>(gather);
        case 2: return gather_of<uint16_t>(gather);
        case 4: return gather_of<uint32_t>(gather);
        case 8: return gather_of<uint64_t>(gather);
        default: return gather_of<Wide>(gather);
    }
}

}  // namespace gputensor

// Tensor maps of the simulated GPU: what the driver encodes (fake_gpu.cpp) and kernels compiled for
// the CPU read (shifted_on_cpu.py). Elements have 16 bits; the first axis is dense.
#pragma once

#include <stdint.h>

struct CpuTensorMap {
    uint64_t address;
    uint64_t strides[3];        // of the axes after the first, in bytes
    uint32_t extents[4];
    uint16_t box[4];            // or channels and pixels
    int16_t lower[2], upper[2];
    uint8_t axes, steps[4], is_pixels, is_plain;
    uint64_t copy;              // of the address, in a driver whose maps cannot be moved

    // The element at these places, or null where they are outside.
    char* at(const int64_t* place) const {
        char* found = reinterpret_cast<char*>(address);
        for (int axis = 0; axis < axes; ++axis) {
            if (place[axis] < 0 || place[axis] >= int64_t(extents[axis])) return nullptr;
            found += place[axis] * int64_t(axis ? strides[axis - 1] : 2);
        }
        return found;
    }
};
static_assert(sizeof(CpuTensorMap) <= 128, "a tensor map has 128 bytes");

// Copies and gathers of few elements on a host device.
//
// They move bytes, so one loop serves all types of a size. Making views and calling NumPy would cost
// more than the work. A queued move is one record, which the function that runs it frees.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "gputensor/_kernels/loops/host_functions.h"

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

// start + i * step: of doubles, rounded once more for floats, or of 64-bit integers, which wrap.
struct HostRange {
    int is_float, itemsize;
    int64_t count, out_step;
    void* out;
    double start, step;
    uint64_t whole_start, whole_step;
};

template <class T>
GPUTENSOR_EXACT void range_of(const HostRange& range) {
    T* out = static_cast<T*>(range.out);
    for (int64_t i = 0; i < range.count; ++i) {
        const double product = static_cast<double>(i) * range.step;
        out[i * range.out_step] = static_cast<T>(range.start + product);
    }
}
template <class T>
void whole_range_of(const HostRange& range) {
    T* out = static_cast<T*>(range.out);
    for (int64_t i = 0; i < range.count; ++i)
        out[i * range.out_step] =
            static_cast<T>(range.whole_start + static_cast<uint64_t>(i) * range.whole_step);
}

inline void run_host_range(void* argument) {
    const HostRange& range = *static_cast<HostRange*>(argument);
    if (range.is_float)
        range.itemsize == 4 ? range_of<float>(range) : range_of<double>(range);
    else
        switch (range.itemsize) {
            case 1: whole_range_of<uint8_t>(range); break;
            case 2: whole_range_of<uint16_t>(range); break;
            case 4: whole_range_of<uint32_t>(range); break;
            default: whole_range_of<uint64_t>(range);
        }
    std::free(argument);
}

enum : int { GATHER_INDICES = 4 };

// Numbers of an index that ascend by 1 name neighbours in memory, which one copy moves.
struct GatherPiece {
    int64_t first, count;
};

// Runs of `inner` elements, `outer` times: for each place of the indices, the run that they name.
struct HostGather {
    int itemsize, device, first_axis;
    int count, ndim;            // indices, and the axes that they share, outermost first
    int64_t shape[16];
    const int64_t* index[GATHER_INDICES];
    int64_t index_steps[GATHER_INDICES][16];
    int64_t extents[GATHER_INDICES], steps[GATHER_INDICES];  // of the indexed axes, in runs
    int64_t outer, inner, outer_runs;
    const void* source;
    void* out;
    GatherPiece* pieces;        // of the last axis; NULL: single elements
    int64_t piece_count;
    int wrong_index;            // which index has a number out of range, and the number
    int64_t wrong;
};

// Finds the first number out of range of an index; axes along which it repeats are read once.
inline bool index_is_inside(HostGather& gather, int k, int axis, const int64_t* index) {
    const int64_t step = gather.index_steps[k][axis];
    const int64_t length = step ? gather.shape[axis] : 1;
    const uint64_t extent = gather.extents[k];
    if (axis + 1 < gather.ndim) {
        for (int64_t i = 0; i < length; ++i)
            if (!index_is_inside(gather, k, axis + 1, index + i * step)) return false;
        return true;
    }
    uint64_t is_wrong = 0;
    for (int64_t i = 0; i < length; ++i)
        is_wrong |= static_cast<uint64_t>(index[i * step]) + extent >= 2 * extent;
    if (!is_wrong) return true;
    while (static_cast<uint64_t>(*index) + extent < 2 * extent) index += step;
    gather.wrong_index = k, gather.wrong = *index;
    return false;
}

template <class T>
inline void gather_run(T*& out, const T* source, int64_t run, int64_t inner) {
    if (inner == 1)
        *out = source[run];
    else
        std::memcpy(out, source + run * inner, inner * sizeof(T));
    out += inner;
}

// Finds the pieces of the last axis if one index varies along it, the same for all other axes.
inline void find_pieces(HostGather& gather) {
    const int last = gather.ndim - 1;
    int varying = -1;
    gather.pieces = NULL;
    for (int k = 0; k < gather.count; ++k) {
        if (gather.index_steps[k][last] == 0) continue;
        if (varying >= 0 || gather.steps[k] != 1) return;
        for (int axis = 0; axis < last; ++axis)
            if (gather.index_steps[k][axis] != 0) return;
        varying = k;
    }
    const int64_t length = gather.shape[last];
    if (varying < 0 || last == 0 || gather.shape[0] < 2 || length < 2) return;
    const int64_t *index = gather.index[varying], step = gather.index_steps[varying][last];
    const int64_t extent = gather.extents[varying];
    GatherPiece* pieces = static_cast<GatherPiece*>(std::malloc(length * sizeof(GatherPiece)));
    if (!pieces) return;
    gather.piece_count = 0;
    for (int64_t i = 0; i < length; ++i) {
        const int64_t at = index[i * step] < 0 ? index[i * step] + extent : index[i * step];
        GatherPiece* piece = pieces + gather.piece_count;
        if (i && piece[-1].first + piece[-1].count == at) {
            ++piece[-1].count;
        } else {
            piece->first = at, piece->count = 1;
            ++gather.piece_count;
        }
    }
    // Single elements are faster without pieces.
    if (gather.piece_count * 4 <= length)
        gather.pieces = pieces;
    else
        std::free(pieces);
}

template <class T>
void gather_pieces(const HostGather& gather, const T* source, T*& out) {
    const int64_t inner = gather.inner;
    for (int64_t i = 0; i < gather.piece_count; ++i) {
        const GatherPiece piece = gather.pieces[i];
        const T* from = source + piece.first * inner;
        const int64_t count = piece.count * inner;
        if (count == 1)
            *out = *from;
        else
            std::memcpy(out, from, count * sizeof(T));
        out += count;
    }
}

template <class T>
void gather_axes(const HostGather& gather, int axis, const int64_t* const* places, int64_t run,
                 const T* source, T*& out) {
    const int64_t* moved[GATHER_INDICES];
    const int64_t length = gather.shape[axis];
    if (axis + 1 < gather.ndim) {
        for (int64_t i = 0; i < length; ++i) {
            for (int k = 0; k < gather.count; ++k)
                moved[k] = places[k] + i * gather.index_steps[k][axis];
            gather_axes(gather, axis + 1, moved, run, source, out);
        }
        return;
    }
    // An index that repeats one number along the innermost axis is read once.
    int varying = 0, which[GATHER_INDICES];
    for (int k = 0; k < gather.count; ++k) {
        const int64_t extent = gather.extents[k], at = *places[k];
        if (gather.index_steps[k][axis] == 0)
            run += (at < 0 ? at + extent : at) * gather.steps[k];
        else
            which[varying++] = k;
    }
    if (gather.pieces) {
        gather_pieces(gather, source + run * gather.inner, out);
        return;
    }
    for (int64_t i = 0; i < length; ++i) {
        int64_t place = run;
        for (int v = 0; v < varying; ++v) {
            const int k = which[v];
            const int64_t at = places[k][i * gather.index_steps[k][axis]];
            place += (at < 0 ? at + gather.extents[k] : at) * gather.steps[k];
        }
        gather_run(out, source, place, gather.inner);
    }
}

// One dense index; returns whether all numbers are inside.
template <class T>
bool gather_elements(const T* source, int64_t extent, const int64_t* index, int64_t count, T* out) {
    const uint64_t size = extent;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = index[i] + (index[i] >> 63 & extent);
        if (__builtin_expect(static_cast<uint64_t>(at) >= size, 0)) return false;
        out[i] = source[at];
    }
    return true;
}

template <class T>
bool gather_runs(const HostGather& gather, const T* source, const int64_t* index, int64_t count,
                 T* out) {
    const int64_t inner = gather.inner, extent = gather.extents[0];
    for (int64_t i = 0; i < count; ++i, out += inner) {
        const int64_t at = index[i] < 0 ? index[i] + extent : index[i];
        if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(extent)) return false;
        std::memcpy(out, source + at * inner, inner * sizeof(T));
    }
    return true;
}

template <class T>
bool gather_line(HostGather& gather) {
    const int64_t count = gather.shape[0], extent = gather.extents[0], inner = gather.inner;
    const uint64_t size = extent;
    const T* source = static_cast<const T*>(gather.source);
    T* out = static_cast<T*>(gather.out);
    for (int64_t outer = 0; outer < gather.outer; ++outer) {
        const int64_t* index = gather.index[0];
        if (!(inner == 1 ? gather_elements(source, extent, index, count, out)
                         : gather_runs(gather, source, index, count, out))) {
            while (static_cast<uint64_t>(*index) + size < 2 * size) ++index;
            gather.wrong_index = 0, gather.wrong = *index;
            return false;
        }
        source += extent * inner;
        out += count * inner;
    }
    return true;
}

template <class T>
bool gather_of(HostGather& gather) {
    if (gather.count == 1 && gather.ndim == 1 && gather.index_steps[0][0] == 1 &&
        gather.steps[0] == 1)
        return gather_line<T>(gather);
    for (int k = 0; k < gather.count; ++k)
        if (!index_is_inside(gather, k, 0, gather.index[k])) return false;
    const T* source = static_cast<const T*>(gather.source);
    T* out = static_cast<T*>(gather.out);
    find_pieces(gather);
    for (int64_t outer = 0; outer < gather.outer; ++outer)
        gather_axes(gather, 0, gather.index, outer * gather.outer_runs, source, out);
    std::free(gather.pieces);
    return true;
}

// Returns whether all numbers of the indices were inside.
inline bool run_gather(HostGather& gather) {
    switch (gather.itemsize) {
        case 1: return gather_of<uint8_t>(gather);
        case 2: return gather_of<uint16_t>(gather);
        case 4: return gather_of<uint32_t>(gather);
        case 8: return gather_of<uint64_t>(gather);
        default: return gather_of<Wide>(gather);
    }
}

}  // namespace gputensor

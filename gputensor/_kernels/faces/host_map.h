// Sums, differences, products and quotients of short runs of floats on a host device.
//
// NumPy's loops give the same bits, but making views and calling NumPy cost more than the work on a
// few thousand elements. A queued map is one record, which run_host_map frees.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gputensor {

struct HostMap {
    int operation;              // 0 to 3: a + b, a - b, a * b, a / b
    int is_double;
    int64_t count;
    void* out;
    void* inputs[2];      // null: the number of the same index
    double numbers[2];
};

template <class T, class F>
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3")))
#endif
inline void map_pairs(const HostMap& map, F join) {
    T* out = static_cast<T*>(map.out);
    const T *a = static_cast<const T*>(map.inputs[0]), *b = static_cast<const T*>(map.inputs[1]);
    const T x = static_cast<T>(map.numbers[0]), y = static_cast<T>(map.numbers[1]);
    if (a && b)
        for (int64_t i = 0; i < map.count; ++i) out[i] = join(a[i], b[i]);
    else if (a)
        for (int64_t i = 0; i < map.count; ++i) out[i] = join(a[i], y);
    else
        for (int64_t i = 0; i < map.count; ++i) out[i] = join(x, b[i]);
}

template <class T>
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3")))
#endif
inline void map_of(const HostMap& map) {
    switch (map.operation) {
        case 0: return map_pairs<T>(map, [](T a, T b) { return a + b; });
        case 1: return map_pairs<T>(map, [](T a, T b) { return a - b; });
        case 2: return map_pairs<T>(map, [](T a, T b) { return a * b; });
        default: return map_pairs<T>(map, [](T a, T b) { return a / b; });
    }
}

inline void run_host_map(void* argument) {
    HostMap* map = static_cast<HostMap*>(argument);
    if (map->is_double)
        map_of<double>(*map);
    else
        map_of<float>(*map);
    std::free(map);
}

}  // namespace gputensor

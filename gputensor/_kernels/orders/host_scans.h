// Cumulative sums, products, maxima and minima on a host device, one element after the other as in
// NumPy, so the bits are NumPy's. An order's rows, columns and count are the three extents.
#pragma once

#include "gputensor/_kernels/orders/host_orders.h"

namespace gputensor {

// A bool in memory: every byte but 0 is true.
struct ScanTruth {
    uint8_t byte;
    explicit operator uint64_t() const { return byte != 0; }
};

struct ScanSum { template <class T> static GPUTENSOR_FLAT T of(T a, T b) { return a + b; } };
struct ScanProduct { template <class T> static GPUTENSOR_FLAT T of(T a, T b) { return a * b; } };
struct ScanMaximum {
    template <class T> static GPUTENSOR_FLAT T of(T a, T b) { return a > b || a != a ? a : b; }
};
struct ScanMinimum {
    template <class T> static GPUTENSOR_FLAT T of(T a, T b) { return a < b || a != a ? a : b; }
};

// Scans of several rows at a time, since each step waits for the one before it.
template <class Op, int ROWS, class From, class T>
GPUTENSOR_FLAT void scan_rows(const From* x, T* out, int64_t columns) {
    T made[ROWS];
    for (int r = 0; r < ROWS; ++r) out[r * columns] = made[r] = static_cast<T>(x[r * columns]);
    for (int64_t i = 1; i < columns; ++i)
        for (int r = 0; r < ROWS; ++r)
            out[r * columns + i] = made[r] = Op::of(made[r], static_cast<T>(x[r * columns + i]));
}

template <class Op, class From, class T>
GPUTENSOR_CLONES GPUTENSOR_FAST int64_t run_scan_of(const HostOrder& order) {
    enum { AT_ONCE = 4 };
    const From* x = static_cast<const From*>(order.input);
    T* out = static_cast<T*>(order.out);
    const int64_t columns = order.columns, inner = order.count;
    int64_t row = 0;
    if (inner == 1) {
        for (; row + AT_ONCE <= order.rows; row += AT_ONCE)
            scan_rows<Op, AT_ONCE>(x + row * columns, out + row * columns, columns);
        for (; row < order.rows; ++row)
            scan_rows<Op, 1>(x + row * columns, out + row * columns, columns);
        return -1;
    }
    for (; row < order.rows; ++row) {
        for (int64_t k = 0; k < inner; ++k) out[k] = static_cast<T>(x[k]);
        for (int64_t i = 1; i < columns; ++i) {
            x += inner;
            out += inner;
            for (int64_t k = 0; k < inner; ++k)
                out[k] = Op::of(out[k - inner], static_cast<T>(x[k]));
        }
        x += inner;
        out += inner;
    }
    return -1;
}

// ---- the loops by type; NULL: there is none

template <class From, class T>
HostOrderRun scan_of(int op) {
    switch (op) {
        case 0: return run_scan_of<ScanSum, From, T>;
        case 1: return run_scan_of<ScanProduct, From, T>;
        case 2: return run_scan_of<ScanMaximum, From, T>;
        case 3: return run_scan_of<ScanMinimum, From, T>;
        default: return nullptr;
    }
}

// `op` is a number of order_rules.SCANS. Sums and products of signed integers wrap.
inline HostOrderRun scan_loop(int op, int kind, int itemsize, int from_kind, int from_itemsize) {
    const bool has_sign = kind == ORDER_INT, is_wrapped = has_sign && op < 2;
    if (from_kind == kind && from_itemsize == itemsize && itemsize >= 4) {
        if (kind == ORDER_FLOAT)
            return itemsize == 4 ? scan_of<float, float>(op) : scan_of<double, double>(op);
        if (has_sign && !is_wrapped)
            return itemsize == 4 ? scan_of<int32_t, int32_t>(op) : scan_of<int64_t, int64_t>(op);
        if (has_sign || kind == ORDER_UINT)
            return itemsize == 4 ? scan_of<uint32_t, uint32_t>(op) : scan_of<uint64_t, uint64_t>(op);
    }
    if (is_wrapped && itemsize == 8 && from_kind == ORDER_INT && from_itemsize == 4)
        return scan_of<int32_t, uint64_t>(op);
    if (is_wrapped && itemsize == 8 && from_kind == ORDER_BOOL)
        return scan_of<ScanTruth, uint64_t>(op);
    return nullptr;
}

}  // namespace gputensor

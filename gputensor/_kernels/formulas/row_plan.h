// Launches of formulas that a thread has made lately, by the layout of their operands.
//
// A launch depends on the formula, on facts of the device, and on all of its operands but their
// addresses, of which the alignment decides. So a call with a layout that is still here needs no
// choice of axes and lanes. A plan is the thread's own: it is read and replaced without a lock.
#pragma once

#include <cstdint>

#include "gputensor/_kernels/cuda/row.h"

namespace gputensor {

enum { PLANS = 32, PLAN_OPERANDS = 6, PLAN_AXES = 4 };

struct RowPlan {
    uint64_t formula;           // its number; 0: no plan
    int row_ndim, ndim;
    int multiprocessors, can_cluster, device_shared_nbytes;
    unsigned char dtypes[PLAN_OPERANDS];
    unsigned char low[PLAN_OPERANDS];       // the last four bits of the addresses
    int64_t shape[PLAN_AXES];
    int64_t strides[PLAN_OPERANDS][PLAN_AXES];
    void* kernel;               // borrowed; a kernel is never freed
    uint32_t grid, block[2], shared_nbytes, nbytes;
    alignas(8) unsigned char parameters[sizeof(RowParameters)
                                        - (ROW_MOST_AXES - PLAN_AXES) * sizeof(RowAxis)];
};

inline RowPlan* row_plans() {
    static thread_local RowPlan plans[PLANS];
    return plans;
}

}  // namespace gputensor

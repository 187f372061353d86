// The parameters of a row formula (row.cuh). A kernel of fewer axes reads a prefix of the host's
// struct.
#pragma once

#include "gputensor/_kernels/cuda/words.h"

namespace gputensor {

enum { ROW_OPERANDS = 12, ROW_MOST_AXES = 16 };
#ifdef GPUTENSOR_KERNEL
enum { ROW_AXES = COLUMN_AXES + KEPT_AXES };
#else
enum { ROW_AXES = ROW_MOST_AXES };
#endif

struct RowAxis {
    int64 size;
    int64 strides[ROW_OPERANDS];        // in elements
};
struct RowParameters {
    GPUTENSOR_POINTER(char) operands[ROW_OPERANDS];     // operands that are read, then the results
    int64 rows, columns;
    int64 period;                       // rows of the axis before the columns; map: parts of a row
    RowAxis axes[ROW_AXES];             // of the columns, then of the rows; innermost first
};
static_assert(sizeof(RowParameters) == 8 * ROW_OPERANDS + 24 + ROW_AXES * 8 * (1 + ROW_OPERANDS),
              "both sides of a launch lay the parameters out alike");

#ifndef GPUTENSOR_KERNEL
// The length of the prefix that a kernel of `axes` axes reads.
inline unsigned row_nbytes(int axes) {
    return sizeof(RowParameters) - (ROW_MOST_AXES - axes) * sizeof(RowAxis);
}
#endif

}  // namespace gputensor

# An array without a tensor, and the kernels as Python functions. No wheel has it.

from libc.stdint cimport int64_t, uint32_t, uint64_t

import numpy as np

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._alloc.core cimport Block
from gputensor._arrays cimport (
    DT_BOOL, DT_COMPLEX128, DT_FLOAT64, DT_INT64, MAX_NDIM, Operand, dtype_itemsize, dtype_kind,
)
from gputensor._driver.registry cimport device_generation, driver_open
from gputensor._driver.table cimport Driver, status_t
from gputensor._kernels.faces cimport (
    arange as c_arange, elementwise as c_elementwise, elementwise_check, fill as c_fill,
    gather as c_gather, reduce as c_reduce, reduction_check, scatter as c_scatter,
)
from gputensor._kernels.launch cimport raise_pending

from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor.errors import raise_for_status

include "device_array.pxi"

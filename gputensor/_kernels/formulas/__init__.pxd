# The functions of _kernels/formulas that other rooms may call.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._arrays cimport Operand
from gputensor._kernels.launch cimport KernelTable

# A formula along rows (formula.py) and its compiled variants. The caller keeps it forever.
cdef class RowFormula:
    cdef readonly object formula
    cdef readonly int loads
    cdef readonly int results
    cdef int folds
    cdef int levels                 # phases that end in folds
    cdef uint32_t folded            # a bit for each operand that a fold needs
    cdef bint is_map                # it has no folds and uses no places of elements
    cdef bint has_row               # rows are in the order of their axes
    cdef uint32_t row_results       # a bit for each result without columns
    cdef uint64_t number            # of no other formula of the process
    cdef KernelTable tables         # by dtypes: the KernelTable of the variants

# Queues the formula on operands of one shape: the operands that it loads, then its results. The
# last `row_ndim` axes are the columns, along which a result without columns has extent 1 and stride
# 0. No operand is a scalar, and the shape has elements. Values are float64 if an operand is,
# otherwise float32. A result may be an operand with the same layout; the caller avoids any other
# overlap. Needs no GIL, and takes it on a host device and for a new variant.
cdef int run_formula(RowFormula formula, int device, uint64_t stream, Operand* operands,
                     int row_ndim) except -1 nogil

# The parts of blas/libraries/gemm that other rooms may call; each section is named after its file.

from libc.stdint cimport int64_t, uint64_t

from gputensor.blas.libraries cimport LtAlgo, LtHeuristic
from gputensor.blas.plan cimport Choice, Plan, Product

# ---- scale_factor

# alpha and beta in the type that the library takes for a compute type.
#
# A factor is two doubles, the real and the imaginary part. For a product of integers it is an
# integer modulo 2**64, the sum of both, because one double holds only 53 bits.

cdef struct ScaleFactor:
    double parts[2]             # up to a complex128; narrower types start at the first byte

# The factor of integer products. Complex products use real and imag, real products only real.
cdef inline int64_t integer_factor(double real, double imag) noexcept nogil:
    return <int64_t>real + <int64_t>imag

# The two parts of the low 64 bits of a Python integer.
cdef int split_integer(object value, double* real, double* imag) except -1
# A factor of a product whose result has this DType code, as a Python number.
cdef object factor_object(int dtype, double real, double imag)


# ---- cublas

# Products by cuBLAS, where cuBLASLt has no algorithm or the user prefers cuBLAS. C and D are one
# matrix.

# Loads the library, with the GIL; must be called before the functions below.
cdef int bind_cublas() except -1
# Queues the product on `stream`; returns a cuBLAS status.
cdef int cublas_run(const Product* product, uint64_t workspace, size_t workspace_nbytes,
                    uint64_t stream) noexcept nogil
# The same for `total` products of one geometry whose addresses are on the device: `total` of A,
# then of B, then of D.
cdef int cublas_run_pointers(const Product* product, int64_t total, uint64_t table,
                             uint64_t workspace, size_t workspace_nbytes,
                             uint64_t stream) noexcept nogil
# The same for `total` products of one type and precision, each of its own geometry.
# Returns BLAS_NOT_SUPPORTED when the library lacks the function.
cdef int cublas_run_grouped(const Product* products, int64_t total, uint64_t table,
                            uint64_t workspace, size_t workspace_nbytes,
                            uint64_t stream) noexcept nogil


# ---- cublaslt

# Products by cuBLASLt. Only bind_table needs the GIL; load_libraries() was called before.

# Loads the library, with the GIL; must be called before the functions below.
cdef int bind_table() except -1
# The library's version number: 120900 is 12.9.
cdef size_t lt_version() noexcept nogil
# The estimated seconds of the library's first proposal for a product of unaligned matrices; 0 where
# nothing is known.
cdef double lt_unaligned_seconds(const Product* product, size_t workspace_nbytes) noexcept nogil
# Builds the descriptors of `plan` and takes the algorithm of `choice`, or the library's first one
# when there is no choice or it does not fit. Returns a cuBLAS status; on failure no descriptor is
# left.
cdef int lt_plan_build(const Product* product, size_t workspace_nbytes, const Choice* choice,
                       Plan* plan) noexcept nogil
# Writes the configuration of an algorithm into a choice.
cdef int lt_config_of(const LtAlgo* algo, Choice* choice) noexcept nogil
# Frees what lt_plan_build made.
cdef void lt_plan_destroy(Plan* plan) noexcept nogil
# Queues the product on `stream` with the plan.
cdef int lt_run(Plan* plan, const Product* product, uint64_t workspace, size_t workspace_nbytes,
                uint64_t stream) noexcept nogil


# ---- search

# Searching cuBLASLt's algorithms for the tuner. Everything here needs the GIL.

# The configurations, as tuples, that the library proposes with a large, a small and no workspace,
# its best first.
cdef list lt_proposals(Plan* plan, const Product* product, size_t workspace_nbytes)
# The configurations of every algorithm with every tile, stage count and split that fit the product,
# as many as are found before `deadline` (of time.monotonic).
cdef list lt_enumerate(Plan* plan, const Product* product, size_t workspace_nbytes,
                       double deadline)
# Those that differ from a configuration in one attribute and fit.
cdef list lt_neighbours(Plan* plan, const Product* product, size_t workspace_nbytes, tuple config,
                        double deadline)

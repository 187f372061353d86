"""The keys of plans and the table that finds them (plan_table.h).

A key holds exactly the facts on which a library's choice depends: the alignment of addresses, but
not the addresses, alpha and beta, or the stream. Products with equal keys run with one plan, from
any thread.
"""

cdef extern from "gputensor/blas/plan/plan_table.h":
    uint64_t plan_table_hash(const void* key) noexcept nogil
    void* plan_table_find(const void* key, uint64_t hash) noexcept nogil
    bint plan_table_insert(void* plan) noexcept nogil
    size_t plan_table_count(int (*counts)(const void*, int) noexcept nogil,
                            int argument) noexcept nogil
    void plan_table_forget() noexcept nogil
    void plan_table_after_fork() noexcept nogil


cdef uint64_t plan_hash(const PlanKey* key) noexcept nogil:
    return plan_table_hash(key)


cdef Plan* plan_find(const PlanKey* key, uint64_t hash) noexcept nogil:
    return <Plan*>plan_table_find(key, hash)


cdef bint plan_insert(Plan* plan) noexcept nogil:
    return plan_table_insert(plan)


cdef inline int log2_of(int power) noexcept nogil:
    """Return the exponent of a power of two up to 256."""
    cdef int exponent = 0
    while power > 1:
        power >>= 1
        exponent += 1
    return exponent


cdef void product_alignments(const Product* product, int* a, int* b, int* c,
                             int* d) noexcept nogil:
    cdef int64_t size_a = dtype_itemsize(product.type_a)
    cdef int64_t size_b = dtype_itemsize(product.type_b)
    cdef int64_t size_d = dtype_itemsize(product.type_d)
    cdef uint64_t steps_a = 0
    cdef uint64_t steps_b = 0
    cdef uint64_t steps_c = 0
    cdef uint64_t steps_d = 0
    cdef int index
    for index in range(product.outer_ndim):
        steps_a |= <uint64_t>(product.outer_a[index] * size_a)
        steps_b |= <uint64_t>(product.outer_b[index] * size_b)
        steps_c |= <uint64_t>(product.outer_c[index] * size_d)
        steps_d |= <uint64_t>(product.outer_d[index] * size_d)
    a[0] = alignment_of(product.a, <int64_t>steps_a)
    b[0] = alignment_of(product.b, <int64_t>steps_b)
    c[0] = alignment_of(product.c, <int64_t>steps_c)
    d[0] = alignment_of(product.d, <int64_t>steps_d)


cdef void plan_key(const Product* product, int preference, PlanKey* key) noexcept nogil:
    cdef int a, b, c, d
    cdef uint64_t types, facts
    product_alignments(product, &a, &b, &c, &d)
    key.words[0] = product.m
    key.words[1] = product.n
    key.words[2] = product.k
    key.words[3] = product.batch
    key.words[4] = product.lda
    key.words[5] = product.ldb
    key.words[6] = product.ldc
    key.words[7] = product.ldd
    key.words[8] = product.stride_a
    key.words[9] = product.stride_b
    key.words[10] = product.stride_c
    key.words[11] = product.stride_d
    types = <uint64_t>product.op_a
    types = types << 2 | <uint64_t>product.op_b
    types = types << 6 | <uint64_t>product.type_a
    types = types << 6 | <uint64_t>product.type_b
    types = types << 6 | <uint64_t>product.type_d
    types = types << 8 | <uint64_t>product.compute
    types = types << 8 | <uint64_t>(product.device + HOST_DEVICES)
    types = types << 8 | <uint64_t>product.flags
    key.words[12] = <int64_t>types
    facts = <uint64_t>log2_of(a)
    facts = facts << 4 | <uint64_t>log2_of(b)
    facts = facts << 4 | <uint64_t>log2_of(c)
    facts = facts << 4 | <uint64_t>log2_of(d)
    facts = facts << 4 | (<uint64_t>log2_of(alignment_of(product.bias, 0)) + 1
                          if product.bias else 0)
    facts = facts << 4 | <uint64_t>product.activation
    facts = facts << 4 | <uint64_t>preference
    facts = facts << 4 | <uint64_t>product.scale_mode_a
    facts = facts << 4 | <uint64_t>product.scale_mode_b
    facts = facts << 1 | <uint64_t>(product.scale_a != 0)
    key.words[13] = <int64_t>facts


cdef int is_of(const void* plan, int backend) noexcept nogil:
    return backend < 0 or (<const Plan*>plan).backend == backend


def plan_count(int backend=-1):
    """Return how many plans are cached.

    Parameters
    ----------
    backend : int, optional
        Count only the plans of the backend with this number; -1, the default, counts all.

    Examples
    --------

    >>> plan_count() >= plan_count(0) >= 0
    True
    """
    return plan_table_count(is_of, backend)


def forget_plans():
    """Forget every cached plan; each product is planned again at its next call.

    Planning then also reads the results of tuning and the measured algorithms again. The memory of
    forgotten plans is not freed, because a thread may be using one.

    Examples
    --------
    >>> forget_plans()
    >>> plan_count()
    0
    """
    tuned.forget()
    measured.forget()
    plan_table_forget()

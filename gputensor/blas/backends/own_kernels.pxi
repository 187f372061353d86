"""Our own kernels behind one door, for planning and for the tuner.

Each kernel's module says for which products it is expected to win, by sizes, types and alignment;
here stands only which there are. The integer kernel is not among them: it takes what no library
does, and competes with none.
"""

cdef bint is_own(int backend) noexcept nogil:
    return (backend == BACKEND_TINY or backend == BACKEND_SMALL_M or backend == BACKEND_DIRECT
            or backend == BACKEND_PACKED)


cdef Plan* own_plan(int backend, const Product* product, const PlanKey* key,
                    uint64_t hash_value) except? NULL:
    if backend == BACKEND_TINY:
        return tiny_plan(product, key, hash_value)
    if backend == BACKEND_SMALL_M:
        return skinny_product_plan(product, key, hash_value)
    if backend == BACKEND_DIRECT:
        return direct_plan(product, key, hash_value)
    if backend == BACKEND_PACKED:
        return packed_plan(product, key, hash_value)
    return NULL


cdef size_t own_scratch_nbytes(const Plan* plan, const Product* product) noexcept nogil:
    return packed_nbytes(product) if plan.backend == BACKEND_PACKED else 0

"""The table of backends, in the order in which planning tries them.

To add one, add a folder below blas/kernels with the kernel, its parameters and the functions of its
row, an `include` of its part to `__init__.pyx`, and the row here. No other code names a backend of
ours.
"""

cdef enum:
    MAX_BACKENDS = 32

cdef Backend[MAX_BACKENDS] rows
cdef int row_count = 0
cdef const Backend* by_number[MAX_BACKENDS]


cdef int add(Backend row) except -1:
    global row_count
    if by_number[row.number] is not NULL:
        raise ValueError(f"backend {row.name.decode()}: got number {row.number}; expected one that "
                         "no other row has")
    rows[row_count] = row
    by_number[row.number] = &rows[row_count]
    row_count += 1
    return 0


cdef const Backend* backend_of(int number) noexcept nogil:
    return by_number[number] if 0 <= number < MAX_BACKENDS else NULL


cdef bint is_own(int number) noexcept nogil:
    cdef const Backend* row = backend_of(number)
    return row is not NULL and (row.role == ROLE_OWN or row.role == ROLE_OWN_FIRST)


cdef bint always(const Product* product) except -1 nogil:
    return True


cdef bint never(const Product* product) except -1 nogil:
    return False


cdef size_t no_scratch(const Plan* plan, const Product* product) noexcept nogil:
    return 0


cdef size_t scratch_nbytes(const Plan* plan, const Product* product) noexcept nogil:
    return backend_of(plan.backend).scratch(plan, product)


# ---- our own kernels

add(Backend(name=b"tiny", call=b"cuLaunchKernel", number=3, role=ROLE_OWN_FIRST, epilogues=DOES_ALL,
            can=tiny_can, wins=always, build=tiny_build, scratch=no_scratch,
            launch=tiny_launch))

add(Backend(name=b"skinny", call=b"cuLaunchKernel", number=4, role=ROLE_OWN,
            epilogues=DOES_BIAS | DOES_ADDEND, can=skinny_can, wins=skinny_wins, build=skinny_build,
            scratch=no_scratch, launch=skinny_launch))

add(Backend(name=b"few_rows", call=b"cuLaunchKernel", number=10, role=ROLE_OWN,
            epilogues=DOES_BIAS | DOES_ADDEND, can=few_rows_can, wins=few_rows_wins,
            build=few_rows_build, scratch=no_scratch, launch=few_rows_launch))

add(Backend(name=b"narrow", call=b"cuLaunchKernel", number=11, role=ROLE_OWN,
            epilogues=DOES_BIAS | DOES_ADDEND, can=narrow_can, wins=narrow_wins, build=narrow_build,
            scratch=no_scratch, launch=narrow_launch))

add(Backend(name=b"held", call=b"cuLaunchKernel", number=9, role=ROLE_OWN, epilogues=DOES_ALL,
            can=held_can, wins=held_wins, build=held_build, scratch=no_scratch,
            launch=held_launch))

add(Backend(name=b"unaligned", call=b"cuLaunchKernel", number=6, role=ROLE_OWN, epilogues=DOES_ALL,
            can=unaligned_can, wins=unaligned_wins, build=unaligned_build, scratch=no_scratch,
            launch=unaligned_launch))

add(Backend(name=b"packed", call=b"cuLaunchKernel", number=5, role=ROLE_OWN, epilogues=0,
            can=packed_can, wins=packed_wins, build=packed_build, scratch=packed_scratch,
            launch=packed_launch))

# ---- libraries, and kernels that stand in for them

add(Backend(name=b"pointers", call=b"cublasGemmBatchedEx", number=7, role=ROLE_LIBRARY, epilogues=0,
            can=pointers_can, wins=always, build=cublas_build, scratch=pointers_scratch,
            launch=pointers_launch))

add(Backend(name=b"cublaslt", call=b"cublasLtMatmul", number=BACKEND_LT, role=ROLE_LIBRARY,
            epilogues=DOES_ALL, can=lt_can, wins=always, build=lt_build, scratch=no_scratch,
            launch=lt_launch))

add(Backend(name=b"integer", call=b"cuLaunchKernel", number=2, role=ROLE_LIBRARY, epilogues=0,
            can=integer_can, wins=always, build=integer_build, scratch=no_scratch,
            launch=integer_launch))

add(Backend(name=b"cublas", call=b"cublasGemmEx", number=BACKEND_CUBLAS, role=ROLE_LIBRARY,
            epilogues=0, can=cublas_can, wins=always, build=cublas_build, scratch=no_scratch,
            launch=cublas_launch))

add(Backend(name=b"grouped", call=b"cublasGemmGroupedBatchedEx", number=BACKEND_GROUPED,
            role=ROLE_GROUP, epilogues=0, can=never, wins=never, build=cublas_build,
            scratch=no_scratch, launch=grouped_launch_all))


def backend_table():
    """Return the rows as dicts, in the order in which planning tries them.

    Examples
    --------
    >>> [row["number"] for row in backend_table() if row["name"] == "cublaslt"]
    [0]
    """
    return [
        {
            "name": rows[index].name.decode(),
            "number": rows[index].number,
            "is_own": is_own(rows[index].number),
            "epilogues": rows[index].epilogues,
            "is_complete": (
                rows[index].can is not NULL and rows[index].wins is not NULL
                and rows[index].build is not NULL and rows[index].scratch is not NULL
                and rows[index].launch is not NULL and rows[index].call is not NULL
            ),
        }
        for index in range(row_count)
    ]

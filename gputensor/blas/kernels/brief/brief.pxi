"""Brief products: the shape of a block, and the launch; brief_programs.py has the rules."""

cdef enum:
    BRIEF_ALIGNMENT = 16        # bytes
    BRIEF_PIECE_NBYTES = 512    # of a piece of all lanes
    MOST_BRIEF_PIECES = 4
    MOST_BRIEF_TOGETHER = 4
    MOST_BRIEF_ROWS = 8         # of a block
    BRIEF_WARPS = 4
    MOST_BRIEF_WARPS = 16       # where a block has whole rows
    MOST_BRIEF_UNITS = 8        # columns of a row for each lane

cdef extern from "gputensor/blas/kernels/brief/brief.h" namespace "gputensor" nogil:
    cdef struct BriefParameters:
        uint64_t x
        uint64_t w
        uint64_t bias
        uint64_t addend
        uint64_t y
        int rows
        int columns
        int k
        int parts


@cython.final
cdef class BriefEnding:
    """A formula of a brief product, and the kernels that compute it."""
    cdef object formula
    cdef KernelTable kernels


cdef struct BriefVariant:       # what a kernel is compiled for
    void* ending                # a BriefEnding
    int type_x
    int type_y
    int rows
    int warps
    int together
    int pieces
    int units
    int is_steady

cdef dict brief_endings = {}    # formula -> BriefEnding


cdef inline int power_from(int64_t least, int most) noexcept nogil:
    """Return the smallest power of 2 that is not below a number, or `most`."""
    cdef int power = 1
    while power < least and power < most:
        power *= 2
    return power


cdef inline int64_t brief_count(int64_t size, int64_t part) noexcept nogil:
    return (size + part - 1) // part


cdef bint brief_choose(const BriefParameters* p, bint is_whole, BriefVariant* shape) noexcept nogil:
    """Choose the shape of a block; return False where the kernel cannot compute the product."""
    cdef int64_t row_nbytes = p.k * <int64_t>dtype_itemsize(shape.type_x)
    if (p.x | p.w | <uint64_t>row_nbytes) % BRIEF_ALIGNMENT or p.k < 1 or p.rows < 1:
        return False
    shape.pieces = power_from(brief_count(row_nbytes, BRIEF_PIECE_NBYTES), MOST_BRIEF_PIECES)
    if is_whole:
        shape.units = power_from(brief_count(p.columns, 32), 2 * MOST_BRIEF_UNITS)
        shape.rows, shape.warps = 1, power_from(p.columns, MOST_BRIEF_WARPS)
        shape.together = power_from(brief_count(p.columns, shape.warps), MOST_BRIEF_TOGETHER)
        return shape.units <= MOST_BRIEF_UNITS
    # A row of x is read once for all features of a warp.
    shape.units, shape.rows = 0, power_from(p.rows, MOST_BRIEF_ROWS)
    shape.warps, shape.together = BRIEF_WARPS, 1 if shape.rows <= 2 else 2
    return True


cdef object brief_program(const void* variant):
    cdef const BriefVariant* given = <const BriefVariant*>variant
    return brief_programs.brief(
        DTYPES[given.type_x].name, DTYPES[given.type_y].name, (<BriefEnding>given.ending).formula,
        rows=given.rows, warps=given.warps, together=given.together, pieces=given.pieces,
        units=given.units, steady=bool(given.is_steady))


cdef uint64_t brief_key(const BriefVariant* variant) noexcept nogil:
    cdef uint64_t key = variant.type_x << 5 | variant.type_y
    key = (key << 4 | <uint64_t>variant.rows) << 5 | <uint64_t>variant.warps
    key = (key << 3 | <uint64_t>variant.together) << 3 | <uint64_t>variant.pieces
    return (key << 5 | <uint64_t>variant.units) << 1 | <uint64_t>variant.is_steady


cdef BriefEnding brief_ending(object formula):
    cdef BriefEnding found = brief_endings.get(formula)
    if found is None:
        found = BriefEnding()
        found.formula = formula
        found = brief_endings.setdefault(formula, found)
    return found


cdef bint run_brief(int device, uint64_t stream, object formula, bint is_steady,
                    tuple operands) except -1:
    """Queue a product with a formula; return False where the kernel cannot compute it."""
    cdef CallOperand out, x, weight, bias, addend
    cdef BriefEnding ending
    cdef BriefParameters p
    cdef BriefVariant variant
    cdef Launch launch
    cdef bint is_whole = not formula.is_map
    out, x, weight, bias, addend = operands
    if not (dtype_is_half(x.c.dtype) or x.c.dtype == DT_FLOAT32) or weight.c.dtype != x.c.dtype:
        return False
    memset(&p, 0, sizeof(p))
    memset(&variant, 0, sizeof(variant))
    p.x, p.w, p.y = x.c.ptr, weight.c.ptr, out.c.ptr
    p.bias, p.addend = address_or_0(bias), address_or_0(addend)
    p.rows, p.columns, p.k = <int>x.c.shape[0], <int>out.c.shape[1], <int>x.c.shape[1]
    variant.type_x, variant.type_y = x.c.dtype, out.c.dtype
    if (is_whole and not brief_programs.fits(formula)) or not brief_choose(&p, is_whole, &variant):
        return False
    ending = brief_ending(formula)
    variant.ending, variant.is_steady = <void*>ending, is_steady
    p.parts = 1
    if not is_whole:
        p.parts = <int>brief_count(p.columns, variant.warps * variant.together)
    launch_init(&launch, device, stream,
                <uint32_t>(brief_count(p.rows, variant.rows) * p.parts), 32 * variant.warps, &p,
                sizeof(p))
    launch_kernel(kernel_of(&ending.kernels, brief_key(&variant), brief_program, &variant), &launch)
    return True

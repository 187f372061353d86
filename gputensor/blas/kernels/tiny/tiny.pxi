"""Tiny products, whose time on the host is longer than on the GPU.

A call of cuBLASLt takes 5 to 7 us of the host however well it is prepared, and a launch of our own
2 us, while a GPU multiplies 64 x 64 matrices in 2.4 us. So with the library, the GPU waits for the
host. A product goes to our own kernel as long as that kernel takes about as long on the GPU as the
library's: when its tiles are one wave of blocks, and the multiply-adds of one block take a small
part of the time that any kernel takes. The kernel does not use tensor cores, because at these sizes
the time goes into the launch and the first loads, not into arithmetic.

Why not a larger limit: host time matters only while calls follow each other; in a captured graph
or behind a long kernel, the time on the GPU is all there is.

Products of up to three terms go to a second kernel, however many results they have: their time is
that of writing the results. So is that of float32 products of up to 12 terms and large results, for
which a third kernel keeps the terms of its rows in registers.

The sums are in float32, even where the precision flags allow less, and do not depend on the stream
or on other work.
"""

cdef enum:
    TINY_BLOCK = 256
    BLOCKS = 132                # one wave on an H100 or H200
    SMALL_TILE = 16
    LARGE_TILE = 32
    TINY_MAX_OFFSET = 0x7FFFFFFF     # elements that the kernel's 32-bit offsets reach

# Terms up to which a tile keeps up with the library: it has tensor cores for the 16-bit types.
cdef enum:
    SMALL_TERMS = 256
    LARGE_TERMS = 128
    SMALL_TERMS_HALF = 128
    LARGE_TERMS_HALF = 16       # 256x256x64 in bf16 takes 3.3 us, the library 2.2 (H200)
    # Of a matrix times a vector, for which a tile has few threads, and few_rows/ has a kernel.
    VECTOR_TERMS = 23
    VECTOR_LINES = 2048

# Products of few terms, for any number of results (few_terms.cuh). On an H200, 49 random ones of 1
# and 2 terms are .96 to 4.1 times as fast as by the better library, 1.68 in the geometric mean.
# With three terms that holds where A is read by 16 bytes or D has few rows.
# Four columns for a thread: 13 products of 12 to 437 MB are 1.6 to 2.9 times as fast.
cdef enum:
    FEW_TERMS = 2
    MORE_TERMS = 3
    FEW_ROWS = 64
    FEW_NBYTES = 16             # of results of a thread, in a column
    FEW_COLUMNS = 4             # of a thread of a large product
    FEW_RESULTS = 2147483392
    MOST_GRID_Y = 65535
    MOST_RESIDENT = 2048        # threads of a multiprocessor
    COLUMNS_STEP = 8            # of a form's number: -(terms * this + columns)

# Products of some more terms (low_rank.cuh). On an H200, of 253 random ones, those of up to 4 terms
# are 1.30 times as fast as by the better library in the geometric mean; those of up to 8 whose
# columns begin at multiples of 16 bytes 1.26 times, and 1.08 times those of up to 12 without TF32,
# where a part is slower (.81 at the least).
cdef enum:
    LOW_RANK_TILE = 128
    LOW_RANK_UNALIGNED = 4      # terms, at most
    LOW_RANK_ALIGNED = 8
    LOW_RANK_EXACT = 12         # where TF32 is not allowed
    LOW_RANK_STEP = 4           # a program has so many terms or a multiple
    LOW_RANK_RESULTS = 1 << 21  # at least: a block for each multiprocessor
    LOW_RANK = 64               # of a form's number: + 2 * (terms / 4) + whether it writes fours

cdef extern from "gputensor/blas/kernels/tiny/tiny.h" namespace "gputensor" nogil:
    cdef struct TinyParameters:
        uint64_t a
        uint64_t b
        uint64_t c
        uint64_t d
        uint64_t bias
        int64_t stride_a
        int64_t stride_b
        int64_t stride_c
        int64_t stride_d
        int64_t ldc
        int64_t ldd
        int m
        int n
        int k
        int line_a
        int term_a
        int line_b
        int term_b
        int across
        int activation
        float alpha
        float beta

cdef KernelTable tiny_kernels


cdef inline bint is_one_wave(int64_t m, int64_t n, int64_t batch, int tile) noexcept nogil:
    return m * n * batch <= BLOCKS * tile * tile and (
        tiles_of(m, tile) * tiles_of(n, tile) * batch <= BLOCKS)


cdef int tiny_tile(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch) noexcept nogil:
    """Return the tile for a product of float types, or 0 when it is not tiny."""
    cdef bint is_half = dtype != DT_FLOAT32
    if min(m, n) == 1 and (k > VECTOR_TERMS or max(m, n) > VECTOR_LINES):
        return 0
    # Also keeps the products of sizes below from overflowing.
    if m > BLOCKS * LARGE_TILE or n > BLOCKS * LARGE_TILE or batch > BLOCKS or k > SMALL_TERMS:
        return 0
    if is_one_wave(m, n, batch, SMALL_TILE):
        return SMALL_TILE if k <= (SMALL_TERMS_HALF if is_half else SMALL_TERMS) else 0
    if is_one_wave(m, n, batch, LARGE_TILE):
        return LARGE_TILE if k <= (LARGE_TERMS_HALF if is_half else LARGE_TERMS) else 0
    return 0


cdef inline bint reads_vectors(const Product* product) noexcept nogil:
    """Return whether the rows of A that a thread needs are neighbours and aligned."""
    cdef int64_t steps = product.m
    if product.k > 1:
        steps |= product.lda
    if product.batch > 1:
        steps |= product.stride_a
    return ((product.op_a == OP_N or (product.k == 1 and product.lda == 1))
            and product.a % FEW_NBYTES == 0
            and steps % (FEW_NBYTES // dtype_itemsize(product.type_d)) == 0)


cdef int columns_of_few(const Product* product) noexcept nogil:
    """Return the columns of a thread: several if the threads of one wave have them."""
    cdef int itemsize = dtype_itemsize(product.type_d)
    cdef int64_t nbytes = product.m * product.n * product.batch * itemsize
    if (product.m * itemsize % FEW_NBYTES == 0
            and nbytes >= FEW_COLUMNS * FEW_NBYTES * BLOCKS * MOST_RESIDENT):
        return FEW_COLUMNS
    return 1


cdef bint is_few(const Product* product) noexcept nogil:
    """Return whether terms are few and D is without gaps."""
    cdef int64_t nbytes = product.stride_d * dtype_itemsize(product.type_d)
    if product.k < 1 or product.k > MORE_TERMS or product.m > FEW_RESULTS // product.n:
        return False
    if product.k > FEW_TERMS and product.m > FEW_ROWS and not reads_vectors(product):
        return False
    if product.batch > 1 and (product.batch > MOST_GRID_Y or nbytes % FEW_NBYTES):
        return False
    return (product.ldd == product.m or product.n == 1) and product.d % FEW_NBYTES == 0


cdef inline bint writes_fours(const Product* product) noexcept nogil:
    """Return whether four rows of each column of D are aligned together."""
    cdef int itemsize = dtype_itemsize(product.type_d)
    return ((product.m | product.ldd | product.stride_d) % 4 == 0
            and product.d % (4 * itemsize) == 0)


cdef inline bint is_low_rank(const Product* product) noexcept nogil:
    """Return whether D is large and some more terms make it; is_few comes first."""
    cdef int64_t most = LOW_RANK_UNALIGNED
    if product.type_a != DT_FLOAT32 or min(product.m, product.n) < LOW_RANK_TILE // 2:
        return False
    if writes_fours(product):
        most = LOW_RANK_EXACT if product.compute == COMPUTE_32F else LOW_RANK_ALIGNED
    return (2 < product.k <= most
            and product.m * product.n >= ceil_divide(LOW_RANK_RESULTS, product.batch)
            and product.batch <= MOST_GRID_Y
            and product.n <= <int64_t>MOST_GRID_Y * LOW_RANK_TILE)


cdef inline bint is_float(int dtype) noexcept nogil:
    return dtype == DT_FLOAT32 or dtype == DT_FLOAT16 or dtype == DT_BFLOAT16


cdef int tile_of_product(const Product* product) noexcept nogil:
    return tiny_tile(product.type_a, product.m, product.n, product.k, product.batch)


cdef int form_of(const Product* product) noexcept nogil:
    """Return the form's number: a tile; below 0: of few terms; from LOW_RANK on: of some more."""
    cdef int tile = tile_of_product(product)
    if tile:
        return tile
    if is_few(product):
        return -<int>(product.k * COLUMNS_STEP + columns_of_few(product))
    return (LOW_RANK + 2 * <int>ceil_divide(product.k, LOW_RANK_STEP)
            + <int>writes_fours(product))


cdef bint tiny_can(const Product* product) except -1 nogil:
    cdef int64_t length = SMALL_TERMS
    if not is_float(product.type_a) or product.type_b != product.type_a or product.scale_a != 0:
        return False
    if product.type_d != product.type_a and product.type_d != DT_FLOAT32:
        return False
    if (product.activation != ACT_NONE and product.activation != ACT_RELU
            and product.activation != ACT_GELU_TANH):
        return False
    if product.m > length:
        length = product.m
    if product.n > length:
        length = product.n
    if tile_of_product(product) == 0:
        return ((is_few(product) or is_low_rank(product)) and product.lda <= TINY_MAX_OFFSET
                and product.ldb <= TINY_MAX_OFFSET)
    # Both the lines and the terms of an operand are fewer than `length`.
    return product.lda <= TINY_MAX_OFFSET // length and product.ldb <= TINY_MAX_OFFSET // length


cdef int tiny_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef int[3] variant
    variant[0], variant[1], variant[2] = product.type_a, product.type_d, form_of(product)
    plan.shape[0] = variant[2]
    plan.handle = kernel_of(
        &tiny_kernels, <uint64_t>((variant[0] << 5 | variant[1]) << 7 | (variant[2] & 127)),
        program_of_variant, variant)
    return compiled(plan.handle, product.device, 0)


cdef object program_of_variant(const void* variant):
    cdef const int* given = <const int*>variant
    if given[2] < 0:
        terms, columns = divmod(-given[2], <int>COLUMNS_STEP)
        return few_terms_program(DTYPES[given[0]].name, DTYPES[given[1]].name, terms, columns)
    if given[2] >= LOW_RANK:
        terms, is_aligned = divmod(given[2] - <int>LOW_RANK, 2)
        return low_rank_program(terms * <int>LOW_RANK_STEP, bool(is_aligned))
    return tiny_program(DTYPES[given[0]].name, DTYPES[given[1]].name, given[2])


cdef int tiny_launch(const Work* work) except -1 nogil:
    cdef const Product* product = work.products
    cdef Grid grid
    cdef TinyParameters p
    cdef int64_t nbytes, columns
    cdef int form = work.plan.shape[0]
    memset(&p, 0, sizeof(p))
    p.a, p.b, p.c, p.d = product.a, product.b, product.c, product.d
    p.bias = product.bias
    p.stride_a, p.stride_b = product.stride_a, product.stride_b
    p.stride_c, p.stride_d = product.stride_c, product.stride_d
    p.ldc, p.ldd = product.ldc, product.ldd
    p.m, p.n, p.k = <int>product.m, <int>product.n, <int>product.k
    p.line_a = 1 if product.op_a == OP_N else <int>product.lda
    p.term_a = <int>product.lda if product.op_a == OP_N else 1
    p.line_b = <int>product.ldb if product.op_b == OP_N else 1
    p.term_b = 1 if product.op_b == OP_N else <int>product.ldb
    p.activation = product.activation
    p.alpha, p.beta = <float>product.alpha, <float>product.beta
    grid.z, grid.block, grid.shared_nbytes = 1, TINY_BLOCK, 0
    if form >= LOW_RANK:
        grid.x = ceil_divide(product.m, LOW_RANK_TILE)
        grid.y, grid.z = ceil_divide(product.n, LOW_RANK_TILE), product.batch
    elif form < 0:
        p.across = reads_vectors(product)
        columns = -form % COLUMNS_STEP
        nbytes = product.m * ceil_divide(product.n, columns) * dtype_itemsize(product.type_d)
        grid.x, grid.y = ceil_divide(nbytes, TINY_BLOCK * FEW_NBYTES), product.batch
    else:
        p.across = <int>tiles_of(product.n, form)
        grid.x, grid.y = tiles_of(product.m, form), p.across * product.batch
    return queue_kernel(work, work.plan.handle, &grid, &p, sizeof(p))


def tiny_program(input_name, output_name, tile):
    """Return the program of tiny products.

    Parameters
    ----------
    input_name, output_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    tile : {16, 32}
        Rows and columns of the result that one block of 256 threads computes.

    Examples
    --------
    >>> ("TILE", 16) in tiny_program("float16", "float32", 16).defines
    True
    """
    types = programs.types_of(input_name, output_name)
    return programs.program_of("tiny/tiny.cuh", types | {"TILE": tile})


def few_terms_program(input_name, output_name, terms, columns=1):
    """Return the program of products of few terms.

    Parameters
    ----------
    input_name, output_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    terms : int
        Terms of each sum, up to 3.
    columns : int
        Columns of the result of a thread; above 1 only if A is read by 16 bytes.

    Examples
    --------
    >>> ("TERMS", 2) in few_terms_program("float16", "float32", 2).defines
    True
    """
    defines = programs.types_of(input_name, output_name) | {"TERMS": terms, "COLUMNS": columns}
    return programs.program_of("tiny/few_terms.cuh", defines)


def low_rank_program(terms, aligned):
    """Return the program of products of some more terms and large results, in float32.

    Parameters
    ----------
    terms : int
        Terms of each sum at most, a multiple of 4 up to 12.
    aligned : bool
        Whether four neighbouring rows of each column of the result are written in one piece.

    Examples
    --------
    >>> ("TERMS", 12) in low_rank_program(12, False).defines
    True
    """
    defines = {"TERMS": terms, "ALIGNED": int(aligned)}
    types = programs.types_of("float32", "float32")
    return programs.program_of("tiny/low_rank.cuh", types | defines)

"""Padding: when it pays, and the copies that it needs.

The fast kernels need more than aligned addresses and leading dimensions: every size that is the
contiguous one of some matrix must be a multiple of 16 bytes too. On an H200, bf16 8191x8191x8191
takes 8.05 ms with padded leading dimensions alone, no better than without padding, and 1.33 ms with
padded sizes. So those sizes are rounded up and the copies of the inputs are filled with zeros: k
changes A and B, m changes A and D, n changes B and D. A size that is contiguous in no matrix stays.

The library's own proposal for the product as it is tells how long that takes
(libraries/proposal.h); the model below estimates the time of copies and padded product, and the
shorter way is taken. Constants were measured on an H200; on another GPU they shift the point where
padding begins to pay, not the result.
"""

cdef enum:
    PADDING_ALIGNMENT = 16              # bytes; the fast load paths need it
    PITCH = 128                 # bytes; long rows are padded to whole cache lines
    PADDING_TILE = 64                   # rows and columns of the small tiles of odd products
    NARROW_TILE = 32                    # along a side of D that is no longer than this
    LEAST_PADDED = 9                    # rows, columns, terms: fewer are read once and gain nothing
    MULTIPROCESSORS = 132
    PART_TERMS = 512                    # of the sum of an odd product, for one part of it
    PADDED_PART_TERMS = 288             # the same, once padded
    PADDING_BLOCK = 256

cdef enum Padding:
    PADDING_AUTO = 0
    PADDING_NEVER = 1
    PADDING_INPUTS = 2
    PADDING_ALL = 3

cdef struct Lying:              # the place of a matrix of a batch, in elements
    uint64_t ptr
    int64_t ld
    int64_t stride

cdef struct Rates:              # per second; 0 when alignment does not matter
    double aligned
    double odd

cdef double PADDING_COPY_RATE = 3.8e12  # bytes read and written in a second
cdef double PADDED_RATE = 3.7e12        # bytes of a padded product in a second
cdef double PADDING_LAUNCH = 1.75e-6    # seconds that one more kernel in a stream takes
cdef double PRODUCT_LAUNCH = 3e-6       # seconds of a library's product without terms
cdef double PARTS_JOINED = 1.6e-6       # seconds to add the parts of a sum
cdef double PADDING_GAIN = 1.15         # the least for which copies are worth their memory
cdef int padding_mode = PADDING_AUTO

PADDING_MODES = {"auto": PADDING_AUTO, "never": PADDING_NEVER, "inputs": PADDING_INPUTS,
                 "all": PADDING_ALL}


cdef bint padding_is_auto() noexcept nogil:
    return padding_mode == PADDING_AUTO


cdef Rates rates_of(const Product* product) noexcept nogil:
    cdef Rates rates
    rates.aligned = rates.odd = 0
    if product.type_a == DT_FLOAT16 or product.type_a == DT_BFLOAT16:
        rates.aligned, rates.odd = 730e12, 130e12
    elif product.type_a == DT_FLOAT32 and (product.compute == COMPUTE_32F_FAST_TF32
                                           or product.compute == COMPUTE_32F_FAST_16BF):
        rates.aligned, rates.odd = 180e12, 130e12
    elif product.type_a == DT_INT8:
        rates.aligned, rates.odd = 1200e12, 60e12
    return rates


cdef inline bint is_odd(uint64_t ptr, int64_t ld, int64_t stride, int64_t itemsize) noexcept nogil:
    cdef uint64_t steps = <uint64_t>(ld * itemsize) | <uint64_t>(stride * itemsize)
    return (ptr | steps) & (PADDING_ALIGNMENT - 1) != 0


cdef inline int64_t rounded(int64_t size, int64_t itemsize) noexcept nogil:
    cdef int64_t step = PADDING_ALIGNMENT // itemsize if itemsize < PADDING_ALIGNMENT else 1
    return (size + step - 1) // step * step


# The sizes of a product, rounded up to multiples that the fast kernels take.
cdef void padded_sizes(const Product* product, int64_t* m, int64_t* n, int64_t* k) noexcept nogil:
    cdef int64_t size_a = dtype_itemsize(product.type_a)
    cdef int64_t size_b = dtype_itemsize(product.type_b)
    m[0] = rounded(product.m, dtype_itemsize(product.type_d))
    n[0] = product.n
    k[0] = product.k
    if product.op_a == OP_N:
        m[0] = rounded(m[0], size_a)
    else:
        k[0] = rounded(k[0], size_a)
    if product.op_b == OP_N:
        k[0] = rounded(k[0], size_b)
    else:
        n[0] = rounded(n[0], size_b)


cdef int odd_matrices(const Product* product) noexcept nogil:
    cdef int odd = PAD_NONE
    cdef int64_t m, n, k
    if is_odd(product.a, product.lda, product.stride_a, dtype_itemsize(product.type_a)):
        odd |= PAD_A
    if is_odd(product.b, product.ldb, product.stride_b, dtype_itemsize(product.type_b)):
        odd |= PAD_B
    if is_odd(product.d, product.ldd, product.stride_d, dtype_itemsize(product.type_d)):
        odd |= PAD_D
    padded_sizes(product, &m, &n, &k)
    if m != product.m:
        odd |= PAD_A | PAD_D
    if n != product.n:
        odd |= PAD_B | PAD_D
    if k != product.k:
        odd |= PAD_A | PAD_B
    return odd


# The product with the sizes that copies of the `padded` matrices have.
cdef Product widened(const Product* product, int padded) noexcept nogil:
    cdef Product wide = product[0]
    cdef int64_t m, n, k
    padded_sizes(product, &m, &n, &k)
    if padded & PAD_A and padded & PAD_D:
        wide.m = m
    if padded & PAD_B and padded & PAD_D:
        wide.n = n
    if padded & PAD_A and padded & PAD_B:
        wide.k = k
    return wide


cdef void shape_of(const Product* product, int which, int64_t* length, int64_t* lines,
                   int64_t* itemsize) noexcept nogil:
    """Find the length of a matrix's contiguous columns, their number, and the element's bytes."""
    if which == PAD_A:
        itemsize[0] = dtype_itemsize(product.type_a)
        length[0] = product.m if product.op_a == OP_N else product.k
        lines[0] = product.k if product.op_a == OP_N else product.m
    elif which == PAD_B:
        itemsize[0] = dtype_itemsize(product.type_b)
        length[0] = product.k if product.op_b == OP_N else product.n
        lines[0] = product.n if product.op_b == OP_N else product.k
    else:
        itemsize[0] = dtype_itemsize(product.type_d)
        length[0] = product.m
        lines[0] = product.n


cdef double copy_time(const Product* product, int which) noexcept nogil:
    cdef int64_t length, lines, itemsize
    cdef int64_t batch = product.batch
    shape_of(product, which, &length, &lines, &itemsize)
    # A matrix that the whole batch shares is copied once.
    if (which == PAD_A and product.stride_a == 0) or (which == PAD_B and product.stride_b == 0):
        batch = 1
    return 2.0 * length * lines * itemsize * batch / PADDING_COPY_RATE


cdef inline int64_t small_tiles(const Product* product, int64_t side) noexcept nogil:
    """Return how many tiles of PADDING_TILE by `side` D has, `side` along its shorter side."""
    cdef int64_t shorter = min(product.m, product.n), longer = max(product.m, product.n)
    return ((longer + PADDING_TILE - 1) // PADDING_TILE * ((shorter + side - 1) // side)
            * product.batch)


cdef double odd_time(const Product* product, double rate) noexcept nogil:
    """Estimate the seconds of an odd product for which no library has said how it computes it.

    It is the larger of the time of the arithmetic and that of small tiles. If there are few, the
    libraries cut long sums into parts, to use the idle multiprocessors. Tiles of a narrow result
    run side by side on a multiprocessor.
    """
    cdef double arithmetic = 2.0 * product.m * product.n * product.k * product.batch / rate
    cdef int64_t tiles = small_tiles(product, PADDING_TILE)
    cdef int64_t parts = max(1, min(MULTIPROCESSORS // max(1, tiles), product.k // PART_TERMS))
    cdef double waves = (tiles + MULTIPROCESSORS - 1) // MULTIPROCESSORS
    if min(product.m, product.n) <= PADDING_TILE:
        waves = max(1.0, tiles / <double>MULTIPROCESSORS)
    return PRODUCT_LAUNCH + max(arithmetic, 2.0 * PADDING_TILE * PADDING_TILE * product.k / parts
                                * waves * MULTIPROCESSORS / rate)


cdef double padded_time(const Product* product, double rate) noexcept nogil:
    """Estimate the seconds of a padded product; rms error 11 % for 578 of random shapes.

    Bytes and arithmetic overlap in part. Parts of long sums use the multiprocessors that few tiles
    leave idle, and half of what the last wave of tiles leaves idle is lost.
    """
    cdef int itemsize = dtype_itemsize(product.type_a)
    cdef int64_t m = product.m, n = product.n, k = product.k
    cdef int64_t side = NARROW_TILE if min(m, n) <= NARROW_TILE else PADDING_TILE
    cdef int64_t tiles = small_tiles(product, side)
    cdef double parts = max(1.0, min(MULTIPROCESSORS / <double>tiles,
                                     k / <double>PADDED_PART_TERMS))
    cdef double busy = min(1.0, tiles * parts / MULTIPROCESSORS)
    cdef double idle = (tiles + MULTIPROCESSORS - 1) // MULTIPROCESSORS * MULTIPROCESSORS
    cdef double memory = <double>(m * k + k * n + m * n) * product.batch * itemsize / PADDED_RATE
    cdef double arithmetic = 2.0 * tiles * PADDING_TILE * side * k / rate / busy
    if tiles > MULTIPROCESSORS:
        arithmetic *= 0.5 + 0.5 * idle / tiles
    return (PRODUCT_LAUNCH + (memory * memory + arithmetic * arithmetic) ** 0.5
            + (PARTS_JOINED if parts > 1.5 else 0))


cdef double copies_time(const Product* product, int odd) noexcept nogil:
    """Return the seconds of copies of odd matrices, the result's after the product."""
    cdef double seconds = 0
    if odd & (PAD_A | PAD_B):
        seconds += PADDING_LAUNCH
    if odd & PAD_A:
        seconds += copy_time(product, PAD_A)
    if odd & PAD_B:
        seconds += copy_time(product, PAD_B)
    if odd & PAD_D:
        seconds += PADDING_LAUNCH + copy_time(product, PAD_D)
        if product.beta != 0 or product.beta_imag != 0:
            seconds += copy_time(product, PAD_D)
    return seconds


cdef int pad_choose(const Product* product, SecondsAsItIs seconds_of) noexcept nogil:
    """Return the matrices to pad. `seconds_of` estimates the product as it is; 0: it cannot.

    Of 578 random products with odd matrices, padding the right ones would make products 1.17 times
    as fast in the geometric mean; this makes them 1.15, and 4 take over 1.1 times as long.
    """
    cdef Rates rates
    cdef int odd = odd_matrices(product)
    cdef double as_it_is = 0
    if (odd == PAD_NONE or padding_mode == PADDING_NEVER or product.outer_ndim
            or product.flags & PRODUCT_AS_IT_IS):
        return PAD_NONE
    if min(product.m, product.n, product.k) < LEAST_PADDED:
        return PAD_NONE
    rates = rates_of(product)
    if rates.aligned == 0:
        return PAD_NONE
    if padding_mode == PADDING_INPUTS:
        return odd & (PAD_A | PAD_B)
    if padding_mode == PADDING_ALL:
        return odd
    if product.type_a != DT_INT8:
        as_it_is = seconds_of(product)
    if as_it_is == 0:
        as_it_is = odd_time(product, rates.odd)
    return odd if PADDING_GAIN * (
        copies_time(product, odd) + padded_time(product, rates.aligned)) < as_it_is else PAD_NONE


cdef size_t pad_nbytes(const Product* product, int which, int64_t* ld,
                       int64_t* stride) noexcept nogil:
    cdef int64_t length, lines, itemsize
    cdef int64_t nbytes
    cdef int64_t batch = product.batch
    cdef Product wide = widened(product, PAD_A | PAD_B | PAD_D)
    shape_of(&wide, which, &length, &lines, &itemsize)
    nbytes = length * itemsize
    nbytes = (nbytes + PITCH - 1) & ~<int64_t>(PITCH - 1) if nbytes >= 1024 else (
        (nbytes + PADDING_ALIGNMENT - 1) & ~<int64_t>(PADDING_ALIGNMENT - 1))
    ld[0] = nbytes // itemsize
    stride[0] = ld[0] * lines
    if (which == PAD_A and product.stride_a == 0) or (which == PAD_B and product.stride_b == 0):
        stride[0] = 0
        batch = 1
    return <size_t>(nbytes * lines * batch)


cdef void pad_bind(Product* product, int padded, uint64_t a, uint64_t b, uint64_t d,
                   Relayout* before, Relayout* after) noexcept nogil:
    cdef Product bare = product[0]
    cdef Product wide = widened(product, padded)
    cdef int64_t ld, stride
    cdef Lying plain, copy
    relayout_init(before)
    relayout_init(after)
    product.m, product.n, product.k = wide.m, wide.n, wide.k
    if wide.m != bare.m and bare.bias:
        # The library would read past the end of the bias; the caller adds it afterwards.
        product.bias = 0
        product.activation = ACT_NONE
    if padded & PAD_A:
        pad_nbytes(&bare, PAD_A, &ld, &stride)
        copy = Lying(a, ld, stride)
        if a:
            plain = Lying(bare.a, bare.lda, bare.stride_a)
            relayout_add(before, PAD_A, &bare, &plain, &wide, &copy)
        product.a, product.lda, product.stride_a = a, ld, stride
    if padded & PAD_B:
        pad_nbytes(&bare, PAD_B, &ld, &stride)
        copy = Lying(b, ld, stride)
        if b:
            plain = Lying(bare.b, bare.ldb, bare.stride_b)
            relayout_add(before, PAD_B, &bare, &plain, &wide, &copy)
        product.b, product.ldb, product.stride_b = b, ld, stride
    if padded & PAD_D:
        pad_nbytes(&bare, PAD_D, &ld, &stride)
        copy = Lying(d, ld, stride)
        if d:
            if bare.beta != 0 or bare.beta_imag != 0:
                plain = Lying(bare.c, bare.ldc, bare.stride_c)
                relayout_add(before, PAD_D, &bare, &plain, &wide, &copy)
            plain = Lying(bare.d, bare.ldd, bare.stride_d)
            relayout_add(after, PAD_D, &wide, &copy, &bare, &plain)
        product.c = product.d = d
        product.ldc = product.ldd = ld
        product.stride_c = product.stride_d = stride


cdef void relayout_init(Relayout* relayout) noexcept nogil:
    memset(relayout, 0, sizeof(relayout[0]))
    relayout.step = 8


# Adds the copy of a matrix from `source`, with its sizes in `source_of`, to `target`, with its
# sizes in `target_of`.
cdef void relayout_add(Relayout* relayout, int which, const Product* source_of,
                       const Lying* source, const Product* target_of,
                       const Lying* target) noexcept nogil:
    cdef int64_t length, lines, itemsize
    cdef Piece* piece = &relayout.pieces[relayout.count]
    cdef int64_t batch = target_of.batch
    shape_of(source_of, which, &length, &lines, &itemsize)
    piece.source_nbytes = length * itemsize
    piece.source_rows = <uint64_t>lines
    shape_of(target_of, which, &length, &lines, &itemsize)
    piece.source, piece.target = source.ptr, target.ptr
    piece.source_pitch, piece.target_pitch = source.ld * itemsize, target.ld * itemsize
    piece.source_batch, piece.target_batch = source.stride * itemsize, target.stride * itemsize
    piece.row_nbytes = length * itemsize
    piece.rows = <uint64_t>lines
    piece.blocks = <uint64_t>((piece.row_nbytes + PADDING_ALIGNMENT - 1) // PADDING_ALIGNMENT)
    if is_odd(target.ptr, target.ld, target.stride, itemsize):
        piece.blocks += 1
    if batch > 1 and source.stride == 0 and which != PAD_D:
        batch = 1
    relayout.total += piece.blocks * piece.rows * <uint64_t>batch
    piece.last = relayout.total
    relayout.count += 1
    if itemsize < relayout.step:
        relayout.step = <unsigned int>itemsize


cdef Kernel relayout_kernel = Kernel(programs.relayout())
cdef void* relayout_loaded = <void*>relayout_kernel


cdef int relayout_launch(const Relayout* relayout, int device, uint64_t stream) except -1 nogil:
    cdef Launch launch
    cdef uint64_t grid = (relayout.total + PADDING_BLOCK - 1) // PADDING_BLOCK
    if grid > 1 << 30:
        grid = 1 << 30
    launch_init(&launch, device, stream, <uint32_t>grid, PADDING_BLOCK, relayout,
                sizeof(relayout[0]))
    return launch_kernel(relayout_loaded, &launch)


def padding(setting=None):
    """Set when products are padded, or return the setting when called without an argument.

    Parameters
    ----------
    setting : {"auto", "never", "inputs", "all"}, optional
        ``"auto"``, the default, decides by a cost model. The others serve to measure that model:
        ``"never"`` pads nothing, ``"inputs"`` only the operands, ``"all"`` the result too.

    Returns
    -------
    str
        The setting now in effect. It holds for the whole process.

    Raises
    ------
    ValueError
        If `setting` is another value.

    Examples
    --------
    >>> padding()
    'auto'
    """
    global padding_mode
    if setting is not None:
        if not isinstance(setting, str) or setting not in PADDING_MODES:
            raise ValueError(f"padding: got {setting!r}; expected one of {sorted(PADDING_MODES)}")
        padding_mode = PADDING_MODES[setting]
    return {code: name for name, code in PADDING_MODES.items()}[padding_mode]

"""The rules that select kernels for products, without a device, and settings that force them."""

cdef enum:
    H200_CLUSTERS = 66          # of two blocks, one on each multiprocessor

PACKED_MODES = {"auto": PACKING_AUTO, "never": PACKING_NEVER, "always": PACKING_ALWAYS}


def tile_of(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch=1):
    """Return the tile of a product in the kernel for tiny products, or 0 if it does not use it.

    Parameters
    ----------
    dtype : int
        The code of the operands' element type: 9 float16, 10 bfloat16, 11 float32.
    m, n, k, batch : int
        Sizes: `batch` products of m x k and k x n.

    Examples
    --------
    >>> tile_of(11, 64, 64, 64), tile_of(11, 256, 256, 64), tile_of(10, 512, 512, 512)
    (16, 32, 0)
    """
    if min(m, n, k, batch) < 1:
        raise ValueError(f"sizes: got {m}, {n}, {k}, {batch}; expected 1 or more")
    if dtype not in (DT_FLOAT16, DT_BFLOAT16, DT_FLOAT32):
        return 0
    return tiny_tile(dtype, m, n, k, batch)


def unaligned_run(int device, uint64_t stream, types, operations, sizes, addresses, steps, *,
                  int split=1, double alpha=1.0, double beta=0.0, int activation=0):
    """Queue one product in the library's column-major terms, given by addresses.

    Parameters
    ----------
    device, stream : int
        A CUDA ordinal of compute capability 9.0 and a stream handle on it.
    types : (int, int)
        Element type codes of the operands and of the result.
    operations : (int, int)
        Of A and B: 0 unchanged, 1 transposed.
    sizes : (int, int, int, int)
        m, n, k, batch.
    addresses : (int, int, int, int, int)
        A, B, C, D, and a bias for each row or 0.
    steps : ((int, int, int, int), (int, int, int, int))
        Elements from column to column, and from item to item, of A, B, C, D.
    split : int
        Blocks of a cluster, 1 to 8.
    """
    cdef Product product
    cdef Work work
    product.device = device
    product.type_a = product.type_b = types[0]
    product.type_d = types[1]
    product.op_a, product.op_b = operations
    product.m, product.n, product.k, product.batch = sizes
    product.a, product.b, product.c, product.d, product.bias = addresses
    product.lda, product.ldb, product.ldc, product.ldd = steps[0]
    product.stride_a, product.stride_b, product.stride_c, product.stride_d = steps[1]
    product.activation = activation
    product.alpha, product.beta = alpha, beta
    work_init(&work, NULL, &product, stream)
    unaligned_launch_split(&work, unaligned_kernel(&product, split), split)


def split_of(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch=1):
    """Return how many blocks share k of an unaligned product, or 0 if the kernel does not take it.

    The layout is that of row-major x[m, k] @ y[k, n].

    Parameters
    ----------
    dtype : int
        The code of the operands' element type: 9 float16, 10 bfloat16, 11 float32 (as TF32).
    m, n, k, batch : int
        Sizes: `batch` products of m x k and k x n.

    Examples
    --------
    >>> split_of(11, 777, 333, 1555), split_of(10, 511, 513, 515), split_of(11, 4095, 4097, 4099)
    (5, 5, 0)
    """
    if min(m, n, k, batch) < 1:
        raise ValueError(f"sizes: got {m}, {n}, {k}, {batch}; expected 1 or more")
    return unaligned_split(dtype, False, True, m, n, k, batch)


def schedule_of(int64_t m, int64_t n, int64_t k, int itemsize, int clusters=66):
    """Return the schedule of a row-major m x n result with k terms, as a dict.

    >>> schedule_of(4096, 4096, 4096, 2)["whole"]
    256
    >>> schedule_of(4097, 4096, 4096, 2)["strips_m"]
    16
    """
    cdef Schedule schedule
    if min(m, n, k) < 1:
        raise ValueError(f"sizes: got {m}, {n}, {k}; expected 1 or more")
    schedule_choose(m, n, k, itemsize, clusters, &schedule)
    return schedule


def packing(setting=None):
    """Choose when products are packed; return the choice.

    Parameters
    ----------
    setting : {"auto", "never", "always"}, optional
        ``"auto"`` packs large products of unaligned matrices; the others are for tests and
        measurements. Existing plans do not change.

    Examples
    --------
    >>> packing()
    'auto'
    """
    if setting is not None:
        if setting not in PACKED_MODES:
            raise ValueError(f"packing: got {setting!r}; expected one of {sorted(PACKED_MODES)}")
        (&packed_mode)[0] = PACKED_MODES[setting]
    return {code: name for name, code in PACKED_MODES.items()}[packed_mode]


def is_packed(int dtype, int compute, int64_t m, int64_t n, int64_t k, *, lda, ldb, ldd, out=None,
              a=0, b=0, d=0, op_a=0, op_b=0):
    """Return whether a single product uses the packed kernels on Hopper.

    Arguments are the fields of a product in the library's column-major terms.

    >>> is_packed(10, 68, 4096, 4096, 4096, lda=4096, ldb=4096, ldd=4096)
    False
    >>> is_packed(10, 68, 4095, 4097, 4099, lda=4095, ldb=4099, ldd=4095)
    True
    """
    cdef Product product
    memset(&product, 0, sizeof(product))
    product.type_a = product.type_b = dtype
    product.type_d = dtype if out is None else out
    product.compute = compute
    product.m, product.n, product.k, product.batch = m, n, k, 1
    product.lda, product.ldb, product.ldd = lda, ldb, ldd
    product.a, product.b, product.d = a, b, d
    product.op_a, product.op_b = op_a, op_b
    return packed_can(&product) and packed_is_worthwhile(&product, H200_CLUSTERS)


def goes_by_pointers(int dtype, int compute, int64_t m, int64_t n, int64_t k, *, batch=1,
                     outer=(), a=0, b=0, d=0, stride_a=0, stride_b=0, stride_d=0):
    """Return whether a repeated product uses one pointer-array call.

    Arguments are the fields of a product; `outer` is a list of ``(count, a, b, d)`` with steps in
    elements.

    >>> goes_by_pointers(11, 68, 16, 16, 16, batch=8, outer=[(4, 0, 256, 2048)])
    True
    >>> goes_by_pointers(11, 68, 16, 16, 16, batch=8)
    False
    """
    cdef Product product
    cdef int axis
    product.type_a = product.type_b = product.type_d = dtype
    product.compute = compute
    product.m, product.n, product.k, product.batch = m, n, k, batch
    product.stride_a, product.stride_b, product.stride_d = stride_a, stride_b, stride_d
    product.a, product.b, product.d = a, b, d
    product.c, product.stride_c = product.d, product.stride_d
    product.scale_a = 0
    product.outer_ndim = len(outer)
    for axis in range(product.outer_ndim):
        (product.outer_count[axis], product.outer_a[axis], product.outer_b[axis],
         product.outer_d[axis]) = outer[axis]
        product.outer_c[axis] = product.outer_d[axis]
    return pointer_batch_wins(&product)


cdef double seconds_given = 0


cdef double given_seconds(const Product* product) noexcept nogil:
    return seconds_given


def padded(int dtype, int compute, int64_t m, int64_t n, int64_t k, *, lda, ldb, ldd, batch=1,
           stride_a=0, stride_b=0, stride_d=0, a=0, b=0, d=0, op_a=0, op_b=0, beta=0.0, us=0.0):
    """Return which matrices of a product the cost model would pad: a subset of ``"abd"``.

    Arguments are the fields of a product in the library's column-major terms. `us` is the time of
    the product as it is; 0: unknown.

    >>> padded(10, 68, 4096, 4096, 4096, lda=4096, ldb=4096, ldd=4096)
    ''
    """
    global seconds_given
    cdef Product product
    seconds_given = 1e-6 * us
    product.type_a = product.type_b = product.type_d = dtype
    product.compute = compute
    product.m, product.n, product.k, product.batch = m, n, k, batch
    product.lda, product.ldb, product.ldd = lda, ldb, ldd
    product.stride_a, product.stride_b, product.stride_d = stride_a, stride_b, stride_d
    product.a, product.b, product.d = a, b, d
    product.op_a, product.op_b = op_a, op_b
    product.beta, product.beta_imag = beta, 0
    product.outer_ndim = product.flags = 0
    picked = pad_choose(&product, given_seconds)
    return "".join(
        name for name, bit in (("a", PAD_A), ("b", PAD_B), ("d", PAD_D)) if picked & bit)


def panel_configure(*, int rows=0, int columns=0, int held=0):
    """Force parts of the shape of blocks of panel products; the rules choose a part of 0.

    `held`: the columns of blocks that hold their weights; -1 for none.

    >>> panel_configure(rows=32, columns=64)
    >>> panel_configure()
    """
    panel_forced.rows, panel_forced.columns, held_forced.columns = rows, columns, held


def narrow_configure(*, int rows=0, int features=0, int warps=0, int splits=0):
    """Force parts of the shape of blocks of products of some rows; the rules choose a part of 0.

    `rows` below 0: other kernels and the libraries take all products.

    >>> narrow_configure(rows=16, features=32)
    >>> narrow_configure()
    """
    narrow_forced.rows, narrow_forced.features = rows, features
    narrow_forced.warps, narrow_forced.splits = warps, splits


def panel_shape(int64_t m, int64_t k, int64_t n, *, bint is_normed=False, int device=0):
    """Return the rows and columns of the blocks of a panel product, or None if none fits."""
    cdef PanelProduct product
    cdef PanelShape shape
    memset(&product, 0, sizeof(product))
    product.m, product.n, product.k, product.along_terms = m, n, k, True
    product.gain = product.shift = 16 if is_normed else 0
    if not panel_choose(&product, known_facts(device), &shape):
        return None
    return shape.rows, shape.columns


def held_columns(int64_t m, int64_t k, int64_t n, *, int device=0):
    """Return the columns of blocks that hold their weights, and their modelled microseconds."""
    cdef PanelProduct product
    cdef HeldShape shape
    memset(&product, 0, sizeof(product))
    product.m, product.n, product.k, product.along_terms = m, n, k, True
    if not held_choose(&product, known_facts(device), &shape):
        return None
    return shape.columns, shape.cost / 1e3

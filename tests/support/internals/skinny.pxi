"""Skinny products by addresses, and shapes of their blocks."""

cdef enum:
    MAX_WARPS = 16              # of a block of skinny_mma.cuh
    MAX_STAGES = 12


def skinny_configure(*, int tiles=0, int warps=0, int stages=0, int splits=0):
    """Force parts of the shape of blocks in float32, to measure them; the rules choose a part of 0.

    >>> skinny_configure(stages=4)
    >>> skinny_configure()
    """
    if splits not in (0, 1, 2, 4, 8):
        raise ValueError(f"splits: got {splits}; expected 0, 1, 2, 4 or 8")
    if stages and not 2 <= stages <= 31:
        raise ValueError(f"stages: got {stages}; expected 0 or 2 to 31")
    skinny_forced.tiles, skinny_forced.warps = tiles, warps
    skinny_forced.stages, skinny_forced.splits = stages, splits


def skinny_block_shape(sizes, *, int multiprocessors=132, bint can_cluster=True,
                       int shared_nbytes=233472):
    """Return the shape of blocks that the rules choose for float32 on a device, as a dict.

    >>> shape = skinny_block_shape((16, 8192, 8192))
    >>> shape["warps"], shape["tiles"], shape["splits"]
    (4, 2, 4)
    """
    cdef SkinnyProduct small
    cdef SkinnyDevice device
    cdef SkinnyBlockShape shape
    memset(&small, 0, sizeof(SkinnyProduct))
    small.form, small.type_x, small.type_y = FORM_PLAIN, DT_FLOAT32, DT_FLOAT32
    small.m, small.n, small.k = sizes
    device.multiprocessors, device.can_cluster = multiprocessors, can_cluster
    device.shared_nbytes = shared_nbytes
    skinny_choose_shape(&small, &device, &shape)
    return shape


def skinny_run(int device, uint64_t stream, int form, types, sizes, addresses, pitches, *, group=0,
               alpha=1.0, beta=0.0, is_steady=False):
    """Queue one product given by addresses; return False if the kernel cannot compute it.

    Parameters
    ----------
    device, stream : int
        A CUDA ordinal and a stream handle on it.
    form : int
        The storage of the weights; see ``skinny_mma.cuh``.
    types : (int, int)
        Element type codes of x and of the result.
    sizes : (int, int, int)
        m, n, k.
    addresses : tuple of int
        x, weights, result, scales, bias, addend; the last three may be 0.
    pitches : tuple of int
        Elements from row to row of x, weights, result, addend.
    is_steady : bool
        Whether earlier work writes neither weights nor scales.
    """
    cdef SkinnyProduct small
    memset(&small, 0, sizeof(SkinnyProduct))
    small.device, small.form, small.group = device, form, group
    small.type_x, small.type_y = types
    small.m, small.n, small.k = sizes
    small.x, small.w, small.y, small.scales, small.bias, small.addend = addresses
    small.x_pitch, small.w_pitch, small.y_pitch, small.addend_pitch = pitches
    small.alpha, small.beta, small.is_steady = alpha, beta, is_steady
    if not skinny_product_fits(&small):
        return False
    skinny_product_run(&small, stream)
    return True


def skinny_mma_configure(*, int tiles=0, int row_warps=0, int k_warps=0, int stages=0,
                         int splits=0):
    """Force parts of the shape of blocks, to measure them; the rules choose a part of 0.

    >>> skinny_mma_configure(stages=4)
    >>> skinny_mma_configure()
    """
    cdef SkinnyForced forced = SkinnyForced(tiles, row_warps, k_warps, stages, splits)
    if splits not in (0, 1, 2):
        raise ValueError(f"splits: got {splits}; expected 0, 1 or 2")
    if stages and not 2 <= stages <= MAX_STAGES:
        raise ValueError(f"stages: got {stages}; expected 0 or 2 to {MAX_STAGES}")
    if tiles not in (0, 1, 2, 4):
        raise ValueError(f"tiles: got {tiles}; expected 0, 1, 2 or 4")
    if not (0 <= row_warps and 0 <= k_warps and row_warps * k_warps <= MAX_WARPS):
        raise ValueError(f"warps: got {row_warps} times {k_warps}; expected at most {MAX_WARPS} "
                         "in a block")
    skinny_mma_force(&forced)


def skinny_mma_block_shape(int form, int type_x, sizes, *, int group=0, int multiprocessors=132,
                           bint can_cluster=True, int shared_nbytes=233472):
    """Return the shape of blocks that the rules choose on a device, as a dict.

    >>> shape = skinny_mma_block_shape(2, 10, (1, 8192, 8192), group=128)
    >>> shape["tiles"] * shape["row_warps"], shape["k_warps"], shape["stages"], shape["splits"]
    (4, 8, 3, 1)
    """
    cdef SkinnyProduct product
    cdef SkinnyDevice device
    cdef SkinnyMmaBlockShape shape
    memset(&product, 0, sizeof(product))
    product.form, product.type_x, product.type_y, product.group = form, type_x, type_x, group
    product.m, product.n, product.k = sizes
    device.multiprocessors, device.can_cluster = multiprocessors, can_cluster
    device.shared_nbytes = shared_nbytes
    skinny_mma_shape(&product, &device, &shape)
    return shape


def quantized_tile_configure(*, has_wgmma=None, int rows=0, int tokens=0, int splits=0,
                             int parts=0, int least_rows=17, int most_rows=2048):
    """Force parts of the blocks of quantized tiles, and the rows of x that they take.

    >>> quantized_tile_configure(rows=128, most_rows=0)
    >>> quantized_tile_configure()
    """
    cdef TileShape forced
    memset(&forced, 0, sizeof(forced))
    forced.has_wgmma = 0 if has_wgmma is None else 1 + bool(has_wgmma)
    forced.rows, forced.tokens, forced.splits, forced.parts = rows, tokens, splits, parts
    tile_force(&forced, least_rows, most_rows)

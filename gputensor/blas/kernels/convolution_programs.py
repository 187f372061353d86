"""The programs of convolutions: the definitions that precede each ``.cuh`` file, by variant."""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.programs import FINISHES
from gputensor.blas.kernels.programs import PTX, multiplied, program_of

__all__ = [
    "SHAPES",
    "SHIFTED_TABLES",
    "few",
    "few_shared_nbytes",
    "join",
    "mapped",
    "mapped_shared_nbytes",
    "plain",
    "shifted",
    "tile",
    "tile_depth",
    "tile_shared_nbytes",
]

#: Tiles of `tile`: pixels, outputs, and the number of warps along each.
SHAPES = ((256, 128, 4, 4), (128, 128, 2, 4), (128, 64, 4, 2), (64, 64, 2, 2), (128, 32, 4, 1))
#: Shared memory in which `shifted` stages results, besides its rings and tables.
SHIFTED_TABLES = 4 * 32 * 144


def _types(dtype, activation):
    element = DTYPES[dtype]
    return {
        "ELEMENT": element.cuda,
        "ARITHMETIC": element.compute,
        "ACTIVATION": FINISHES[activation],
    }


def _instruction(kind, depth):
    return f'"m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"'


def plain(dtype, activation, columns, along_pixels):
    """Return the program of convolution in plain arithmetic.

    `dtype` is a code, `activation` a number; a thread has `columns` outputs of four pixels.

    >>> ("TN", 4) in plain(11, 0, 4, False).defines
    True
    """
    defines = _types(dtype, activation) | {"TN": columns, "ALONG_PIXELS": int(along_pixels)}
    return program_of("convolution/plain.cuh", defines)


def tile_depth(is_deep):
    """Return the bytes of a step's terms and the number of steps in flight.

    >>> tile_depth(True)
    (128, 3)
    """
    return (128, 3) if is_deep else (64, 4)


def tile_shared_nbytes(shape, is_deep, size):
    """Return the shared memory of a block of `tile`, for elements of `size` bytes.

    >>> tile_shared_nbytes(1, True, 2)
    110592
    """
    (rows, columns, *_warps), (depth, stages) = SHAPES[shape], tile_depth(is_deep)
    return max(stages * (rows + columns) * (depth + 16), rows * (columns * size + 16))


def tile(dtype, activation, shape, *, is_deep, is_split, is_vectored, spatial, is_wide):
    """Return the program of convolution on tensor cores.

    Parameters
    ----------
    dtype : int
        Code of a 16-bit float, or of float32, which is multiplied as TF32.
    activation : int
    shape : int
        A place in `SHAPES`.
    is_deep : bool
        Longer steps, for devices with 160 KiB of shared memory or more.
    is_split : bool
        Sums are left for `join`.
    is_vectored : bool
        Outputs of a pixel are written by 16 bytes.
    spatial : {2, 3}
        Axes; 2 where there is no depth.
    is_wide : bool
        Places in x need 64 bits.

    >>> program = tile(9, 0, 0, is_deep=True, is_split=False, is_vectored=True, spatial=2,
    ...                is_wide=False)
    >>> ("BM", 256) in program.defines
    True
    """
    kind, size = PTX[DTYPES[dtype].name], DTYPES[dtype].itemsize
    depth, stages = tile_depth(is_deep)
    sizes = dict(zip(("BM", "BN", "WARPS_M", "WARPS_N"), SHAPES[shape], strict=True))
    sizes |= {"BK": depth // size, "STAGES": stages, "SPLIT": int(is_split)}
    sizes |= {"SPATIAL": spatial, "OFFSET": "int64" if is_wide else "int32"}
    sizes |= {"VECTORED": int(is_vectored), "INSTRUCTION": _instruction(kind, 32 // size)}
    if size == 2:
        sizes["PACK"] = f'"{kind}x2"'
    defines = _types(dtype, activation) | sizes
    return program_of("convolution/tile.cuh", defines, minimum=80)


def join(dtype, activation):
    """Return the program that adds the parts of sums whose terms were cut among blocks.

    >>> join(9, 1).path.rpartition("/")[2]
    'join.cuh'
    """
    return program_of("convolution/join.cuh", _types(dtype, activation))


def few_shared_nbytes(outputs, pixel, kernel):
    """Return the shared memory of the weights of a block of `few`.

    >>> few_shared_nbytes(64, 4, (7, 7))
    29696
    """
    height, width = kernel
    return outputs * (height * ((width * pixel + 15) // 16 * 16) + 8) * 2


def few(
    dtype,
    activation,
    *,
    channels,
    pixel,
    kernel,
    stride,
    outputs,
    warps,
    has_addend,
    is_vectored,
    is_dense,
):
    """Return the program of convolution of few channels on tensor cores.

    Parameters
    ----------
    dtype : int
        Code of a 16-bit float.
    activation, channels : int
    pixel : {1, 2, 4, 8}
        Elements of a pixel in shared memory; stride times as many are a multiple of 8.
    kernel : (int, int)
    stride : int
        Along the width.
    outputs : {32, 64}
        Outputs of a block.
    warps : int
    has_addend : bool
    is_vectored : bool
        Eight outputs of a pixel are 16 bytes that one instruction may write.
    is_dense : bool
        Pixels of x lie one after the other, an even number in a row, each pair at a multiple of 4
        bytes.

    >>> program = few(9, 0, channels=3, pixel=4, kernel=(7, 7), stride=2, outputs=64, warps=7,
    ...               has_addend=False, is_vectored=True, is_dense=True)
    >>> ("PIXEL", 4) in program.defines
    True
    """
    kind = PTX[DTYPES[dtype].name]
    sizes = {"CHANNELS": channels, "PIXEL": pixel, "HEIGHT": kernel[0], "WIDTH": kernel[1]}
    sizes |= {"STRIDE": stride, "BN": outputs, "WARPS": warps, "ADDEND": int(has_addend)}
    sizes |= {
        "VECTORED": int(is_vectored),
        "DENSE": int(is_dense),
        "PACK": f'"{kind}x2"',
        "INSTRUCTION": _instruction(kind, 16),
    }
    return program_of("convolution/few.cuh", _types(dtype, activation) | sizes, minimum=80)


def shifted(dtype, activation, tile, *, stages, places, splits, is_vectored):
    """Return the program of convolution by shifted patches on the tensor cores of Hopper.

    Parameters
    ----------
    dtype : int
        Code of a 16-bit float.
    activation : int
    tile : (int, int)
        Outputs of a block, 64 or 128, and positions of a warpgroup, a multiple of 16 up to 256.
    stages, places : int
        Chunks of weights and patches that shared memory holds.
    splits : {1, 2, 4, 8}
        Blocks of a cluster, among which the terms are cut; a divisor of positions / 8.
    is_vectored : bool
        Eight outputs of a pixel are 16 bytes that one instruction may write and, with an addend,
        read.

    >>> program = shifted(9, 0, (128, 208), stages=6, places=2, splits=1, is_vectored=True)
    >>> ("COLUMNS", 208) in program.defines
    True
    """
    outputs, columns = tile
    sizes = {"BM": outputs, "COLUMNS": columns, "STAGES": stages, "PLACES": places}
    sizes |= {"SPLIT": splits, "VECTORED": int(is_vectored)}
    defines = _types(dtype, activation) | sizes | multiplied(DTYPES[dtype].name, columns)
    return program_of("convolution/shifted.cuh", defines, minimum=90, architecture="sm_90a")


def mapped(dtype, activation, tile, *, stages, splits, blocks):
    """Return the program of convolution by tensor maps on the tensor cores of Hopper.

    Parameters
    ----------
    dtype : int
        Code of a 16-bit float.
    activation : int
    tile : (int, int)
        Outputs of a block, 64 or 128, and positions of a warpgroup, a multiple of 16 up to 256.
    stages : int
        Steps that shared memory holds.
    splits : {1, 2, 4, 8}
        Blocks of a cluster, among which the terms are cut; a divisor of positions / 8.
    blocks : {1, 2}
        Blocks that a multiprocessor runs at once.

    >>> program = mapped(9, 0, (128, 208), stages=5, splits=1, blocks=1)
    >>> ("COLUMNS", 208) in program.defines
    True
    """
    outputs, columns = tile
    sizes = {"BM": outputs, "COLUMNS": columns, "STAGES": stages, "SPLIT": splits}
    sizes |= multiplied(DTYPES[dtype].name, columns) | {"BLOCKS": blocks}
    defines = _types(dtype, activation) | sizes
    return program_of("convolution/mapped.cuh", defines, minimum=90, architecture="sm_90a")


def mapped_shared_nbytes(tile, stages):
    """Return the shared memory of a block of `mapped`.

    >>> mapped_shared_nbytes((128, 256), 4)
    213056
    """
    outputs, columns = tile
    rows = outputs + columns * (2 if outputs == 64 else 1)
    return stages * (rows * 128 + 16) + 4 * 32 * 128

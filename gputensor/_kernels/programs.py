"""The programs of this package: the definitions before each ``.cuh`` file, by variant.

Element types are codes of ``element_types.py``, operations codes of ``operations.py``. The files
explain the names.
"""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor._kernels.program import Program

__all__ = [
    "FINISHES",
    "FOLD",
    "GATHER",
    "SCALAR",
    "SCATTER",
    "SPACED",
    "STRIDED",
    "UNIT",
    "accumulator_nbytes",
    "arange",
    "condition",
    "depthwise_boxes",
    "depthwise_tiles",
    "draw",
    "elementwise",
    "index",
    "is_packed",
    "reduction",
    "transpose",
    "window",
]

_FOLDER = "gputensor/_kernels/cuda/"
UNIT, STRIDED, SCALAR, SPACED = range(4)
_MODES = ("UNIT", "STRIDED", "SCALAR", "SPACED")
GATHER, SCATTER, FOLD = range(3)
_FORMS = ("GATHER", "SCATTER", "FOLD", "FOLDED_GATHER", "FOLDED_SCATTER")
# kind -> the values below and above every other, as accumulators
_RANGES = {
    "int": ("(-1ll << (8 * sizeof(C) - 1))", "(~(-1ll << (8 * sizeof(C) - 1)))"),
    "uint": ("0", "~0ull"),
    "float": ("-__int_as_float(0x7f800000)", "__int_as_float(0x7f800000)"),
    "bool": ("0", "1"),
}
#: The C++ expressions of CONVOLUTION_ACTIVATIONS, of a value `a` of type C.
FINISHES = (
    "a",
    "a <= 0 ? (C)0 : a",
    "gelu_tanh<C>(a)",
    "gelu<C>(a)",
    "a * sigmoid<C>(a)",
    "a <= 0 ? (C)0 : a > 6 ? (C)6 : a",
    "a * (a < -3 ? (C)0 : a > 3 ? (C)6 : a + 3) / 6",
)
_MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex_t<double>"}


def elementwise(op, compute, out, inputs, vector, rank, unroll):
    """Return the program of one element-wise kernel.

    Parameters
    ----------
    op, compute, out : int
        Codes of the operation, of the compute dtype and of the output's dtype.
    inputs : sequence of tuple of int
        Code of the dtype and reading mode (`UNIT`, `STRIDED`, `SCALAR`, `SPACED`) of each input;
        with `SPACED` also the step, the shift and the elements of a load.
    vector : int
        Elements of a unit; 1 if any operand's innermost stride is none that a mode can vectorize.
    rank, unroll : int
        Number of axes (0: contiguous), units of a thread.

    Examples
    --------
    >>> program = elementwise(4, 11, 11, ((11, 0), (11, 2)), 4, 0, 1)
    >>> ("EXPRESSION", "a + b") in program.defines
    True
    """
    row = ELEMENTWISE[op]
    element = DTYPES[compute]
    result = element.cuda
    if element.kind == "complex" and row.rule == "magnitude":
        result = "float" if element.itemsize == 8 else "double"
    defines = [("VECTOR", vector), ("RANK", rank), ("UNROLL", unroll), ("BLOCK", 256)]
    defines += [("OUTPUT", DTYPES[out].cuda), ("ARITHMETIC", element.compute)]
    for i, (dtype, mode, *spacing) in enumerate(inputs):
        is_condition = row.rule == "where" and i == 0
        defines.append((f"MODE{i}", _MODES[mode]))
        defines.append((f"INPUT{i}", DTYPES[dtype].cuda))
        defines.append((f"STORED{i}", "bool" if is_condition else element.cuda))
        defines.append((f"ARITHMETIC{i}", "bool" if is_condition else element.compute))
        defines += zip((f"STEP{i}", f"SHIFT{i}", f"PIECE{i}"), spacing, strict=False)
    defines += [(f"MODE{i}", "ABSENT") for i in range(len(inputs), 3)]
    defines += [("EXPRESSION", row.cuda[element.kind]), ("RESULT", result)]
    defines.append(("RESULT_IS_BOOLEAN", int(row.gives_bool)))
    return Program(_FOLDER + "elementwise.cuh", tuple(defines))


def transpose(out, dtype, batch, edge=0):
    """Return the program of the transposition with `batch` further axes.

    Parameters
    ----------
    out, dtype : int
        Codes of the dtypes of the output and the input.
    edge : int
        Bytes of a row of the tile, 128 or 256, in chunks of 16 aligned bytes; 0: single elements.

    Examples
    --------
    >>> ("ROWS", 64) in transpose(9, 9, 1).defines
    True
    >>> [row for row in transpose(7, 7, 1, 256).defines if row[0] in ("ROWS", "COLUMNS")]
    [('ROWS', 64), ('COLUMNS', 64)]
    """
    element = DTYPES[out]
    columns = edge // element.itemsize if edge else 32 if element.itemsize >= 4 else 64
    defines = [("IN_CHUNKS", int(edge > 0)), ("ROWS", min(128, columns)), ("COLUMNS", columns)]
    defines += [("PAD", max(1, 4 // element.itemsize)), ("BATCH", batch)]
    defines += [("OUTPUT", element.cuda), ("INPUT", DTYPES[dtype].cuda)]
    return Program(_FOLDER + "transpose.cuh", tuple(defines))


def index(form, itemsize, index, rank):
    """Return the program of one gather, scatter or fold kernel.

    Parameters
    ----------
    form : int
        ``GATHER``, ``SCATTER``, ``FOLD``, or 3 and 4 for the first two with folded offsets.
    itemsize : int
        Bytes of an element; elements are moved as bits.
    index : int
        Code of the dtype of the index array.
    rank : int
        Number of axes after merging.

    Examples
    --------
    >>> ("ELEMENT", "uint32") in index(SCATTER, 4, 4, 1).defines
    True
    """
    defines = [("FORM", _FORMS[form]), ("RANK", rank)]
    defines += [("ELEMENT", _MOVED[itemsize]), ("INDEX", DTYPES[index].cuda)]
    defines += [("UNITS", "GATHER_UNITS" if _FORMS[form].endswith("GATHER") else 1)]
    return Program(_FOLDER + "index.cuh", tuple(defines))


def arange(out):
    """Return the program of an arithmetic progression of dtype `out`.

    >>> ("IS_INTEGER", 1) in arange(3).defines
    True
    """
    is_integer = DTYPES[out].kind in ("bool", "int", "uint")
    defines = (("OUTPUT", DTYPES[out].cuda), ("IS_INTEGER", int(is_integer)))
    return Program(_FOLDER + "arange.cuh", defines)


def condition():
    """Return the program that sets conditions of a graph.

    >>> condition().defines
    ()
    """
    return Program(_FOLDER + "condition.cuh", ())


def draw(kind, out, bits, lanes):
    """Return the program of a draw of random numbers.

    Parameters
    ----------
    kind : int
        Position in ``call_rules.DISTRIBUTIONS``.
    out : int
        Code of the dtype.
    bits : int
        Bits of a uniform number; 0 for integers and permutations.
    lanes : int
        Elements of a block of 128 bits.

    Examples
    --------
    >>> ("OUTPUT", "half_t") in draw(1, 9, 11, 4).defines
    True
    """
    element = DTYPES[out]
    defines = [("KIND", kind), ("OUTPUT", element.cuda), ("BITS", bits), ("LANES", lanes)]
    defines += [("IS_NUMBER", int(bits > 0)), ("ARITHMETIC", element.compute)]
    defines.append(("WIDE_OUTPUT", int(element.itemsize == 8)))
    return Program(_FOLDER + "draw.cuh", tuple(defines))


def _accumulator(row, element):
    """Return the C++ type and the size in bytes of an accumulator."""
    if row.rule == "index":
        return "A", 16
    if row.name == "var":
        return "Moments", 4 * (4 if element.compute == "float" else element.itemsize)
    if row.rule == "truth" or element.kind == "bool":
        return "int32", 4
    if element.kind in ("int", "uint"):
        return ("int64" if element.kind == "int" else "uint64"), 8
    return element.compute, 4 if element.compute == "float" else element.itemsize


def accumulator_nbytes(op, compute):
    """Return the size of one accumulator of an operation.

    >>> accumulator_nbytes(0, 9), accumulator_nbytes(4, 11)
    (4, 16)
    """
    return _accumulator(REDUCTIONS[op], DTYPES[compute])[1]


def is_packed(op, dtype, compute):
    """Return whether a reduction finds the argument of an extreme by keys (ordered.cuh).

    >>> is_packed(4, 9, 9), is_packed(4, 9, 11), is_packed(0, 9, 9)
    (True, False, False)
    """
    return REDUCTIONS[op].rule == "index" and dtype == compute and DTYPES[dtype].itemsize <= 2


def _accumulation(row, element, packed):
    """Return the definitions of accumulator.cuh for a reduction computed as `element`."""
    texts = row.cuda[element.kind]
    low, high = _RANGES.get(element.kind, ("0", "0"))
    if packed:
        defines = [("BETTER", ">"), ("WORST", "(-0x7fffffff - 1)"), ("VALUE", "int32")]
        return [*defines, ("PACKED", 1), ("DESCENDS", int(texts[0] == "<"))]
    if row.rule == "index":
        return [("BETTER", *texts), ("WORST", low if texts[0] == ">" else high), ("VALUE", "C")]
    defines = [("ACCUMULATOR", _accumulator(row, element)[0]), ("LOWEST", low), ("HIGHEST", high)]
    defines += zip(("IDENTITY", "LIFT", "COMBINE", "FINISH"), texts, strict=True)
    if row.name == "var":
        defines.append(("MOMENTS", 1))
    defines.append(("RESULT", "bool" if row.rule == "truth" else element.cuda))
    return defines


def reduction(
    op, dtype, compute, out, *, column, vector, kept, reduced, wide, partial, from_partial
):
    """Return the program of one reduction kernel.

    Parameters
    ----------
    op, dtype, compute, out : int
        Codes of the operation and of the dtypes of input, computation and output.
    column : bool
        Column layout; otherwise row layout.
    vector, kept, reduced : int
        Elements of a load; numbers of kept and of reduced axes after merging.
    wide : bool
        64-bit indices.
    partial, from_partial : bool
        The kernel writes, or reads, accumulators.

    Examples
    --------
    >>> program = reduction(0, 11, 11, 11, column=False, vector=4, kept=1, reduced=1,
    ...                     wide=False, partial=False, from_partial=False)
    >>> ("COMBINE", "a + b") in program.defines
    True
    """
    element = DTYPES[compute]
    defines = [("VECTOR", vector), ("KEPT", kept), ("REDUCED", reduced)]
    defines += [("INDEX", "unsigned long long" if wide else "unsigned")]
    defines += [("PARTIAL", int(partial)), ("FROM_PARTIAL", int(from_partial))]
    defines += [("COLUMN", int(column)), ("OUTPUT", DTYPES[out].cuda)]
    defines += [("INPUT", DTYPES[dtype].cuda), ("STORED", element.cuda)]
    defines += [("ARITHMETIC", element.compute)]
    defines += _accumulation(REDUCTIONS[op], element, is_packed(op, dtype, compute))
    return Program(_FOLDER + "reduction.cuh", tuple(defines))


def window(dtype, pooling, activation, *, channels_last, vector, pixels, width, is_wide):
    """Return the program of a fold over windows.

    Parameters
    ----------
    dtype : int
        Code of the elements.
    pooling, activation : int
        The fold of a window (4: the weighted sum), and the activation of its result.
    channels_last : bool
    vector, pixels : int
        Channels and neighbours along the width that a thread has.
    width : (int, int, int)
        Kernel, stride and dilation along the width; ones if a thread has one result.
    is_wide : bool
        64-bit indices.

    >>> program = window(11, 0, 0, channels_last=True, vector=4, pixels=4, width=(3, 2, 1),
    ...                  is_wide=False)
    >>> ("KERNEL", 3) in program.defines
    True
    """
    element = DTYPES[dtype]
    defines = [("ELEMENT", element.cuda), ("ARITHMETIC", element.compute), ("POOLING", pooling)]
    defines += [("LOWEST", _RANGES[element.kind][0]), ("ACTIVATION", FINISHES[activation])]
    defines += [("CHANNELS_LAST", int(channels_last)), ("VECTOR", vector), ("PIXELS", pixels)]
    defines += zip(("KERNEL", "STRIDE", "DILATION"), width, strict=True)
    defines.append(("INDEX", "uint64" if is_wide else "uint32"))
    return Program(_FOLDER + "window.cuh", tuple(defines))


def depthwise_tiles(dtype, activation, *, tile, has, kernel, stride, dilation):
    """Return the program of depthwise convolution, with neighbouring channels.

    Parameters
    ----------
    dtype, activation : int
        Code of the elements, and the activation of a sum.
    tile : (int, int, int)
        Results of a thread along the width and the height; lines of x in registers at a time,
        which are fewer if windows are wide.
    has : (bool, bool)
        Whether there are a bias and an addend.
    kernel, stride, dilation : (int, int)
        Values along the height and the width.

    >>> program = depthwise_tiles(10, 0, tile=(4, 2, 5), has=(False, False), kernel=(3, 3),
    ...                           stride=(1, 1), dilation=(1, 1))
    >>> ("PIXELS", 4) in program.defines
    True
    """
    element = DTYPES[dtype]
    defines = [("ELEMENT", element.cuda), ("ARITHMETIC", element.compute), ("VECTOR", 4)]
    defines += [("ACTIVATION", FINISHES[activation])]
    pixels, rows, depth = tile
    columns = (pixels - 1) * stride[1] + (kernel[1] - 1) * dilation[1] + 1
    depth = min(depth, 1 + max(1, 108 // (columns * element.itemsize)))
    defines += [("PIXELS", pixels), ("ROWS", rows), ("DEPTH", depth)]
    defines += zip(("BIAS", "ADDEND"), map(int, has), strict=True)
    defines += zip(("HEIGHT", "WIDTH"), kernel, strict=True)
    defines += zip(("STRIDE_Y", "STRIDE_X"), stride, strict=True)
    defines += zip(("DILATION_Y", "DILATION_X"), dilation, strict=True)
    defines += [("MOST_LANES", 16), ("MOST_THREADS", 256)]
    return Program(_FOLDER + "depthwise/depthwise_tiles.cuh", tuple(defines))


def depthwise_boxes(dtype, activation, *, lanes, tile, has_bias, kernel, dilation):
    """Return the program of depthwise convolution of 16-bit floats by boxes, without a stride.

    Parameters
    ----------
    dtype, activation : int
        Code of the elements, and the activation of a sum.
    lanes : int
        Threads of a block that have different channels.
    tile : (int, int)
        Results of a thread along the width and the height.
    has_bias : bool
    kernel, dilation : (int, int)
        Values along the height and the width.

    >>> depthwise_boxes(10, 0, lanes=32, tile=(2, 7), has_bias=False, kernel=(3, 3),
    ...                 dilation=(1, 1)).minimum
    90
    """
    element = DTYPES[dtype]
    defines = [("ELEMENT", element.cuda), ("ARITHMETIC", element.compute), ("VECTOR", 2)]
    defines += [("ACTIVATION", FINISHES[activation]), ("LANES", lanes)]
    defines += zip(("PIXELS", "ROWS"), tile, strict=True)
    defines += [("BIAS", int(has_bias)), ("ADDEND", 0), ("STRIDE_Y", 1), ("STRIDE_X", 1)]
    defines += zip(("HEIGHT", "WIDTH"), kernel, strict=True)
    defines += zip(("DILATION_Y", "DILATION_X"), dilation, strict=True)
    defines += [("MOST_THREADS", 224)]
    return Program(_FOLDER + "depthwise/depthwise_boxes.cuh", tuple(defines), minimum=90)

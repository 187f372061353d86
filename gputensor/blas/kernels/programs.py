"""The programs of matrix products: the definitions that precede each ``.cuh`` file, by variant.

Element types are given by name, as in ``dtypes.py``. The files explain the defined names. Sizes
that the host shares with a program (stages, groups of a launch, shared memory) are here too.
"""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.program import Program

__all__ = [
    "ACTIVATIONS",
    "INT4",
    "INT8",
    "KINDS",
    "PLAIN",
    "PTX",
    "dequantize",
    "epilogue",
    "grouped",
    "grouped_groups",
    "grouped_shared_nbytes",
    "grouped_wgmma",
    "held",
    "integer",
    "listed",
    "multiplied",
    "packed",
    "packed_shared_nbytes",
    "packing",
    "program_of",
    "random",
    "relayout",
    "skinny",
    "skinny_mma",
    "strided",
    "types_of",
    "unaligned",
    "weighted",
]

_FOLDER = "gputensor/blas/kernels/"
#: wgmma exists only for this architecture.
_WGMMA = {"minimum": 90, "architecture": "sm_90a"}
_FLOATS = {"float16": "half_t", "bfloat16": "bfloat_t", "float32": "float"}
KINDS = {"float16": 0, "bfloat16": 1, "float32": 2}
PTX = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}

#: How the weights of a skinny product lie.
PLAIN, INT8, INT4 = range(3)

#: C++ expressions of a value `a` for the ACT_* numbers of blas/plan.
ACTIVATIONS = (
    "a",
    "a <= 0 ? (C)0 : a",
    "logistic(a, (C)1.5957691216057307118 * (a + (C)0.044715 * a * a * a))",
    "exact_gelu(a)",
    "logistic(a, a)",
)

_INTEGERS = {
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
}

#: Groups that one launch of a grouped product takes, at most.
MAX_GROUPS = 1024
_GROUPED_STAGES = 4
_PACKED_STAGES = {256: 4, 128: 6}


def program_of(path, defines=(), **needs):
    """Return the program of a file below blas/kernels."""
    return Program(_FOLDER + path, tuple(dict(defines).items()), **needs)


def weighted(form, x_name, y_name):
    """Return the defines of a product with weights of a form (`PLAIN`, `INT8` or `INT4`).

    >>> weighted(INT4, "float16", "float32")
    {'FORM': 2, 'X_KIND': 0, 'X_TYPE': '"f16"', 'Y_KIND': 2}
    """
    kinds = {"X_KIND": KINDS[x_name], "X_TYPE": f'"{PTX[x_name]}"', "Y_KIND": KINDS[y_name]}
    return {"FORM": form, **kinds}


def types_of(input_name, output_name):
    """Return the defines of element types that are given by name."""
    return {"INPUT": _FLOATS[input_name], "OUTPUT": _FLOATS[output_name]}


def multiplied(name, columns, *, along_terms=True):
    """Return the defines of the instruction that multiplies 64 rows and `columns` on sm_90a.

    Both operands are in shared memory, the left one along its terms, and so is the right one unless
    `along_terms` is false.

    >>> multiplied("bfloat16", 64)["PACK"]
    '"bf16x2"'
    """
    kind, count = PTX[name], columns // 2
    registers = ", ".join(f"%{i}" for i in range(count))
    sums = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    multiply = (
        f'asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{count + 2}, 0;\\n'
        f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} "
        f'{{{registers}}}, %{count}, %{count + 1}, p, 1, 1, 0, {1 - along_terms};\\n}}"'
        f' : {sums} : "l"(a), "l"(b), "r"(adds))'
    )
    return {"PACK": f'"{kind}x2"', "MULTIPLY": multiply}


def integer(input_name, output_name):
    """Return the program of integer products for two element types."""
    wide = output_name in ("int64", "uint64")
    types = {"INPUT": _INTEGERS[input_name], "OUTPUT": _INTEGERS[output_name]}
    sums = {"SUM": "unsigned long long" if wide else "unsigned int"}
    return program_of("integer/integer.cuh", types | sums)


def strided():
    """Return the program that writes a table of addresses from strides."""
    return program_of("pointers/strided.cuh")


def listed():
    """Return the program that writes a table of addresses from a list."""
    return program_of("pointers/listed.cuh")


def relayout():
    """Return the program that copies matrices between row pitches."""
    return program_of("padding/relayout.cuh")


def random():
    """Return the program that fills operands for tuning."""
    return program_of("random/random.cuh")


def dequantize(name, bits):
    """Return the program that converts integers of 4 or 8 bits to floats of the named type."""
    # bfloat16 is rounded by an instruction.
    needs = {"minimum": 80} if name == "bfloat16" else {}
    return program_of("quantized/dequantize.cuh", {"KIND": KINDS[name], "BITS": bits}, **needs)


def epilogue(types, activation, rank, vector, is_scaled, is_plain, is_wide):
    """Return the program that finishes a product.

    Parameters
    ----------
    types : (int, int, int, int)
        Codes of the source, the bias, the residual and the target.
    activation : int
        An ``ACT_*`` number.
    rank, vector : int
        Axes, at least 1, and elements a thread takes at once.
    is_scaled, is_plain, is_wide : bool
        Whether scales are supported; whether there is neither a bias nor a residual; whether
        indices need 64 bits.

    Examples
    --------
    >>> program = epilogue((11, 11, 11, 10), 3, 2, 4, False, True, False)
    >>> ("TARGET", "bfloat_t") in program.defines
    True
    """
    target = DTYPES[types[3]]
    defines = {
        "RANK": rank,
        "VECTOR": vector,
        "UNROLL": 2,
        "SCALED": int(is_scaled),
        "PLAIN": int(is_plain),
        "QUICK": int(target.itemsize <= 2),
        "INDEX": "int64" if is_wide else "int32",
        "UNSIGNED": "uint64" if is_wide else "uint32",
    }
    for code, name in zip(types, ("SOURCE", "BIAS", "RESIDUAL", "TARGET"), strict=True):
        defines[name] = DTYPES[code].cuda
    defines["ARITHMETIC"] = "double" if target.name == "float64" else "float"
    defines["ACTIVATION"] = ACTIVATIONS[activation]
    return program_of("epilogue/epilogue.cuh", defines)


def grouped(input_name, output_name, quad):
    """Return the program of grouped products with offsets on the device.

    Parameters
    ----------
    input_name, output_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    quad : {4, 8}
        Results of a thread in each direction: tiles of 64 x 64 or 128 x 128.
    """
    sizes = {"QUAD": quad, "MAX_GROUPS": MAX_GROUPS}
    return program_of("grouped/grouped.cuh", types_of(input_name, output_name) | sizes)


def grouped_shared_nbytes(quartets, columns):
    """Return the dynamic shared memory of a block of `grouped_wgmma`.

    >>> grouped_shared_nbytes(1, 64)
    66560
    """
    return _GROUPED_STAGES * (64 * quartets + columns) * 128 + 1024


def grouped_groups(quartets):
    """Return how many groups one launch of `grouped_wgmma` takes.

    It is fewer where the tiles leave little shared memory.

    >>> grouped_groups(2), grouped_groups(3)
    (1024, 128)
    """
    return MAX_GROUPS if quartets < 3 else 128


def grouped_wgmma(input_name, output_name, quartets, columns, is_along_terms):
    """Return the program of grouped products for the tensor cores of Hopper.

    Parameters
    ----------
    input_name : {"float16", "bfloat16"}
    output_name : {"float16", "bfloat16", "float32"}
    quartets : {1, 2, 3}
        Tiles of 64, 128 or 192 rows.
    columns : {64, 128, 256}
        Columns of a tile.
    is_along_terms : bool
        Whether weights are contiguous along their terms; otherwise they are along their columns.
    """
    sums = columns // 2
    listed_sums = ", ".join(f"%{i}" for i in range(sums))
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(sums))
    kind = PTX[input_name]
    multiply = (
        f'asm volatile("{{ wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} '
        f'{{{listed_sums}}}, %{sums}, %{sums + 1}, 1, 1, 1, 0, {0 if is_along_terms else 1}; }}"'
        f' : {outputs} : "l"(a), "l"(b))'
    )
    sizes = {
        "QUARTETS": quartets,
        "COLUMNS": columns,
        "STAGES": _GROUPED_STAGES,
        "MAX_GROUPS": grouped_groups(quartets),
        "IS_ALONG_TERMS": int(is_along_terms),
        "MULTIPLY": multiply,
    }
    types = types_of(input_name, output_name)
    return program_of("grouped/grouped_wgmma.cuh", types | sizes, **_WGMMA)


def unaligned(input_name, output_name, along_k, is_even, columns, split, stages):
    """Return the program of unaligned products in one launch.

    Parameters
    ----------
    input_name, output_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result; float32 is multiplied as TF32.
    along_k : (bool, bool)
        Whether k is the contiguous dimension of A and of B.
    is_even : (bool, bool)
        Whether the rows of A and B, where they are not along k, start a multiple of 16 bytes apart.
        This affects only the speed.
    columns : int
        Columns of the tile of D, of 128 rows, that a cluster computes: a multiple of 16, or of 32
        where 16-bit B is not along k.
    split : int
        Blocks of a cluster, among which k is cut: 1 to 8.
    stages : int
        Steps of 128 bytes along k that shared memory holds, at least 4.
    """
    (a_along_k, b_along_k), (a_is_even, b_is_even) = along_k, is_even
    far, near = (4, 1) if input_name == "float32" else (8, 2)
    kind = PTX[input_name]
    depth = 8 if input_name == "float32" else 16
    defines = types_of(input_name, output_name) | {
        "BN": columns,
        "SPLIT": split,
        "STAGES": stages,
        "A_ALONG_K": int(a_along_k),
        "B_ALONG_K": int(b_along_k),
        "A_UNIT": near if a_is_even and not a_along_k else far,
        "B_UNIT": near if b_is_even and not b_along_k else far,
        "INSTRUCTION": f'"m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"',
    }
    return program_of("unaligned/unaligned.cuh", defines, minimum=90, architecture="sm_90a")


def packing(nbytes):
    """Return the program that packs operands whose elements have 2 or 4 bytes."""
    return program_of("packed/packing.cuh", {"NBYTES": nbytes}, minimum=80 if nbytes == 4 else 0)


def packed_shared_nbytes(columns):
    """Return the shared memory of a block of `packed`, for tiles of 256 or 128 columns.

    Bytes past the barriers are read, but not used, with the end of the last row.
    """
    stages = _PACKED_STAGES[columns]
    return stages * (16384 + columns * 128) + 8 * 8 * 544 + 16 * stages + 128


def _wgmma(n, dtype):
    """Return the instruction for 64 x n sums of products, an expression of d, a, b and adds.

    `a` and `b` are the lower halves of descriptors of K-major tiles; `adds` is 0 to overwrite the
    sums `d` instead of adding to them. float32 is read as TF32.

    >>> "m64n32k8.f32.tf32.tf32" in _wgmma(32, "float32")
    True
    """
    count = n // 2
    kind = PTX[dtype]
    form, tail = ("k8", "1, 1") if dtype == "float32" else ("k16", "1, 1, 0, 0")
    registers = ", ".join(f"%{i}" for i in range(count))
    sums = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return (
        'asm volatile("{\\n.reg .pred p;\\n.reg .b64 from_a, from_b;\\n'
        f"setp.ne.b32 p, %{count + 2}, 0;\\n"
        f"mov.b64 from_a, {{%{count}, 0x40000040}};\\n"
        f"mov.b64 from_b, {{%{count + 1}, 0x40000040}};\\n"
        f"wgmma.mma_async.sync.aligned.m64n{n}{form}.f32.{kind}.{kind} "
        f'{{{registers}}}, from_a, from_b, p, {tail};\\n}}"'
        f' : {sums} : "r"(a), "r"(b), "r"(adds))'
    )


def packed(dtype, out_dtype, columns, has_addend):
    """Return the program of packed products for operands and a result of these types.

    >>> ("BN", 256) in packed("bfloat16", "bfloat16", 256, False).defines
    True
    """
    defines = {
        "HAS_ADDEND": int(has_addend),
        "BN": columns,
        "STAGES": _PACKED_STAGES[columns],
        "STRIP_STEPS": 2 if columns == 256 else 1,
        "OUT_NBYTES": 4 if out_dtype == "float32" else 2,
        "OUT_IS_HALF": int(out_dtype == "float16"),
    }
    for n in (256, 128, 32):
        if n <= columns:
            defines[f"WGMMA_{n}"] = _wgmma(n, dtype)
    return program_of("packed/packed.cuh", defines, **_WGMMA)


def _resident(tokens, warps):
    """Return the blocks of a multiprocessor that registers must allow; three without spills."""
    if warps > 8:
        return 1
    return 3 if tokens <= 4 else 2


def _skinny_minimum(splits):
    """Return the minimum: asynchronous copies need sm_80, clusters sm_90."""
    return 90 if splits > 1 else 80


def skinny(tokens, *, tiles, warps, stages, splits):
    """Return the program of skinny products in float32 for one shape of block.

    Parameters
    ----------
    tokens : int
        Rows of x at most: 1, 2, 4, 8 or 16.
    tiles, warps : int
        A warp has 16 * `tiles` outputs.
    stages : int
        Steps of k in the ring of copies, at least 2.
    splits : int
        Blocks of a cluster among which K is cut: 1, 2, 4 or 8. More than 1 needs sm_90.
    """
    defines = {
        "TOKENS": tokens,
        "TILES": tiles,
        "WARPS": warps,
        "STAGES": stages,
        "SPLITS": splits,
        "MIN_BLOCKS": _resident(tokens, warps),
        "Y_KIND": 2,
    }
    return program_of("skinny/skinny.cuh", defines, minimum=_skinny_minimum(splits))


def skinny_mma(
    form, x_name, y_name, tokens, *, tiles, step, row_warps, k_warps, stages, splits, group=0,
    norm=0, centered=False, pairs=0, gate=0, steady=False,
):  # fmt: skip
    """Return the program of skinny products on tensor cores for one shape of block.

    Parameters
    ----------
    form : int
        `PLAIN`, `INT8` or `INT4`.
    x_name, y_name : str
        Element types of x (``"float16"`` or ``"bfloat16"``) and of the result (also ``"float32"``).
    tokens : int
        Rows of x at most: 8 or 16.
    tiles, row_warps : int
        A block has 16 * `tiles` * `row_warps` features, a multiple of 2 * `splits`.
    step : int
        Columns of 64 k in a step; whole groups.
    k_warps, splits : int
        Warps of a block, and blocks of a cluster, among which K is cut. More than 1 split needs
        sm_90.
    stages : int
        Steps in the ring of copies, at least 2.
    group : int
        k that share a scale: 32, 64 or 128; 0 for all of K.
    norm : int
        Chunks of 8 elements of a row that each thread normalizes; 0 without a norm.
    centered : bool
        Whether the norm first subtracts the mean.
    pairs, gate : int
        Kind of pairs of features: 0 none, 1 gated, 2 elements of heads; and the activation.
    steady : bool
        Whether weights and their scales may be read before earlier work has ended.
    """
    defines = {
        **weighted(form, x_name, y_name),
        "TOKENS": tokens,
        "TILES": tiles,
        "STEP": step,
        "ROW_WARPS": row_warps,
        "K_WARPS": k_warps,
        "STAGES": stages,
        "SPLITS": splits,
        "GROUP": group,
        "NORM": norm,
        "CENTERED": int(centered),
        "PAIRS": pairs,
        "GATE": gate,
        "STEADY": int(steady),
    }
    return program_of("skinny/skinny_mma.cuh", defines, minimum=_skinny_minimum(splits))


def held(name, columns, stages, *, along_terms=True, gate=0, steady=False):
    """Return the program of products whose weights are held, for one shape of block.

    Parameters
    ----------
    name : {"float16", "bfloat16"}
        Element type of all operands.
    columns : int
        The columns of a block, a multiple of 16 up to 192; of 64 without `along_terms`.
    stages : int
        Chunks of 64 terms that the ring of a warpgroup holds.
    along_terms : bool
        Whether rows of the weights are contiguous along k; else they are along the columns of y.
    gate : int
        The activation.
    steady : bool
        Whether the weights may be read before earlier work has ended.

    Examples
    --------
    >>> ("STAGES", 4) in held("bfloat16", 192, 4).defines
    True
    """
    defines = {
        "X_KIND": KINDS[name],
        "COLUMNS": columns,
        "STAGES": stages,
        "ALONG_TERMS": int(along_terms),
        "GATE": gate,
        "STEADY": int(steady),
    }
    defines |= multiplied(name, columns, along_terms=along_terms)
    return program_of("held/held.cuh", defines, **_WGMMA)

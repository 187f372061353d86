"""The programs of tiles of products with weights of a form: definitions before each ``.cuh`` file.

Element types are given by name; the files explain the defined names.
"""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.row_program import point
from gputensor.blas.kernels.programs import KINDS, PTX, program_of, weighted

__all__ = ["NO_FORMULA", "ending", "join", "order", "tile", "wgmma"]

#: The definitions of a tile that ends with a bias alone.
NO_FORMULA = {"PAIRED": 0}
_FLOAT = next(row.code for row in DTYPES if row.name == "float32")


def ending(formula, is_paired, others):
    """Return the definitions of a tile that computes a formula of its sums.

    Parameters
    ----------
    formula : Formula
        A map with one result. Its first load is the product, or with `is_paired` its first two are
        the halves of the product's columns.
    is_paired : bool
    others : sequence of (str, bool)
        The element type of each other load, and whether it is the same for all rows.

    Examples
    --------
    >>> from gputensor._kernels.formula import formula
    >>> gate = formula([("mul", ("silu", ("load", 0)), ("load", 1))])
    >>> ending(gate, True, ())["PAIRED"]
    1
    """
    loads, held, hold = ["x0", "x1"] if is_paired else ["x0"], [], []
    for i, (name, is_held) in enumerate(others):
        one = f"p.others[{i}]"
        place = f"column * {one}.column" if is_held else f"row * {one}.row + column * {one}.column"
        read = f"element<{KINDS[name]}>({one}.at, {place})"
        if is_held:
            held.append(f"float other{i};")
            hold.append(f"held.other{i} = {read};")
        loads.append(f"held.other{i}" if is_held else read)
    functions, steps, result = point(formula, (_FLOAT,) * len(loads), tuple(loads))
    text = (
        f"{functions} struct Held {{ {' '.join(held)} }}; __device__ __forceinline__ Held "
        f"hold(const Parameters& p, int64 column) {{ Held held; {' '.join(hold)} return held; }} "
        "__device__ __forceinline__ float finished(const Parameters& p, const Held& held, "
        f"int64 row, int64 column, float x0, float x1) {{ {steps} return {result}; }}"
    )
    return {"PAIRED": int(is_paired), "FORMULA": text}


def tile(form, x_name, y_name, tokens, *, row_warps, k_warps, stages, group, end=NO_FORMULA):
    """Return the program of tiles of a product.

    Parameters
    ----------
    form : int
        `PLAIN`, `INT8` or `INT4`.
    x_name, y_name : str
        Element types of x (``"float16"`` or ``"bfloat16"``) and of the result (also ``"float32"``).
    tokens : int
        Rows of x of a block: 32, 64 or 128.
    row_warps, k_warps : int
        A block has 32 * `row_warps` features, and `k_warps` columns of 64 k in a step.
    stages : int
        Steps in the ring of copies, at least 2.
    group : int
        k that share a scale: 32, 64 or 128; 0 for all of K.
    end : dict
        `NO_FORMULA`, or the definitions of `ending`.
    """
    defines = {
        **weighted(form, x_name, y_name),
        **end,
        "TOKENS": tokens,
        "TILES": 2,
        "ROW_WARPS": row_warps,
        "K_WARPS": k_warps,
        "STAGES": stages,
        "GROUP": group,
    }
    return program_of("quantized/tile.cuh", defines, minimum=80)


def wgmma(form, x_name, y_name, tokens, *, tiles, stages, group, parts=1, end=NO_FORMULA):
    """Return the program of tiles of a product, on Hopper.

    Parameters
    ----------
    form, x_name, y_name, group, end
        As for `tile`; two features of a result need two `tiles`.
    tokens : int
        Rows of x of a block: a multiple of 8, at most 256.
    tiles : int
        A block has 128 * `tiles` features.
    stages : int
        Columns of 64 k, of weights and of x, in the rings of copies.
    parts : int
        Blocks of a cluster among which K is cut, a divisor of `tokens` / 8; or 1.
    """
    kind, count = PTX[x_name], tokens // 2
    sums = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    registers = ", ".join(f"%{i}" for i in range(count))
    held = ", ".join(f"%{count + i}" for i in range(4))
    multiply = (
        f'asm volatile("wgmma.mma_async.sync.aligned.m64n{tokens}k16.f32.{kind}.{kind} '
        f'{{{registers}}}, {{{held}}}, %{count + 4}, 1, 1, 1, 0;" : {sums} : '
        '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));'
    )
    defines = {
        **weighted(form, x_name, y_name),
        **end,
        "TOKENS": tokens,
        "TILES": tiles,
        "STAGES": stages,
        "PARTS": parts,
        "GROUP": group,
        "MULTIPLY": multiply,
    }
    return program_of("quantized/wgmma.cuh", defines, minimum=90, architecture="sm_90a")


def order(form):
    """Return the program that brings x into the order of `wgmma`."""
    return program_of("quantized/order.cuh", {"FORM": form})


def join(x_name, y_name, is_scaled, end=NO_FORMULA):
    """Return the program that adds the sums of blocks of `tile` among which K is cut."""
    defines = {"X_KIND": KINDS[x_name], "Y_KIND": KINDS[y_name], "IS_SCALED": int(is_scaled), **end}
    return program_of("quantized/join.cuh", defines)

"""The programs of tiles of products with quantized weights: definitions before each ``.cuh`` file.

Element types are given by name; the files explain the defined names.
"""

from gputensor.blas.kernels.programs import KINDS, PTX, program_of, weighted

__all__ = ["join", "order", "tile", "wgmma"]


def tile(form, x_name, y_name, tokens, *, row_warps, k_warps, stages, group):
    """Return the program of tiles of a product with quantized weights.

    Parameters
    ----------
    form : int
        `INT8` or `INT4`.
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
    """
    defines = {
        **weighted(form, x_name, y_name),
        "TOKENS": tokens,
        "TILES": 2,
        "ROW_WARPS": row_warps,
        "K_WARPS": k_warps,
        "STAGES": stages,
        "GROUP": group,
    }
    return program_of("quantized/tile.cuh", defines, minimum=80)


def wgmma(form, x_name, y_name, tokens, *, tiles, stages, x_stages, group):
    """Return the program of tiles of a product with quantized weights, on Hopper.

    Parameters
    ----------
    form, x_name, y_name, group
        As for `tile`.
    tokens : int
        Rows of x of a block: a multiple of 8, at most 256.
    tiles : int
        A block has 128 * `tiles` features.
    stages, x_stages : int
        Columns of 64 k of weights and of x in the rings of copies.
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
        "TOKENS": tokens,
        "TILES": tiles,
        "STAGES": stages,
        "X_STAGES": x_stages,
        "GROUP": group,
        "MULTIPLY": multiply,
    }
    return program_of("quantized/wgmma.cuh", defines, minimum=90, architecture="sm_90a")


def order(form):
    """Return the program that brings x into the order of `wgmma`."""
    return program_of("quantized/order.cuh", {"FORM": form})


def join(x_name, y_name, is_scaled):
    """Return the program that adds the sums of blocks of `tile` among which K is cut."""
    defines = {"X_KIND": KINDS[x_name], "Y_KIND": KINDS[y_name], "IS_SCALED": int(is_scaled)}
    needs = {"minimum": 80} if "bfloat16" in (x_name, y_name) else {}
    return program_of("quantized/join.cuh", defines, **needs)

"""The program of panel products: the definitions before `panel.cuh`."""

from gputensor.blas.kernels.programs import KINDS, PTX, program_of

__all__ = ["panel"]

# As in panel/panel.pxi.
_WARPS = 8
_SIDE = 32  # rows and columns of a warp's tile, at most


def panel(name, rows, columns, *, along_terms=True, norm=0, chunks=0, gate=0, steady=False):
    """Return the program of panel products for one shape of block.

    Parameters
    ----------
    name : {"float16", "bfloat16"}
        Element type of all operands.
    rows, columns : int
        The tile of a block: 16, 32 or 64 rows, and 32 or 64 columns.
    along_terms : bool
        Whether rows of the weights are contiguous along k; else they are along the columns of y.
    norm : {0, 1, 2}
        No norm of the rows of x, one by their root mean squares, or by those of their distances
        from the mean.
    chunks : int
        With a norm, the pieces of 8 elements of a row for each of 32 lanes: 1 to 4.
    gate : int
        The activation.
    steady : bool
        Whether the weights may be read before earlier work has ended.

    Examples
    --------
    >>> ("K_WARPS", 4) in panel("bfloat16", 64, 32).defines
    True
    """
    row_warps, column_warps = max(1, rows // _SIDE), columns // _SIDE
    kind = PTX[name]
    defines = {
        "X_KIND": KINDS[name],
        "INSTRUCTION": f'"m16n8k16.row.col.f32.{kind}.{kind}.f32"',
        "PACK": f'"{kind}x2"',
        "ROWS": rows,
        "COLUMNS": columns,
        "ROW_WARPS": row_warps,
        "COLUMN_WARPS": column_warps,
        "K_WARPS": _WARPS // (row_warps * column_warps),
        "ALONG_TERMS": int(along_terms),
        "NORM": norm,
        "CHUNKS": chunks,
        "GATE": gate,
        "STEADY": int(steady),
    }
    return program_of("panel/panel.cuh", defines, minimum=80)

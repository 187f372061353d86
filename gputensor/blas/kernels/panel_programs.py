"""The program of panel products: the definitions before `panel.cuh`."""

from gputensor.blas.kernels.programs import KINDS, PTX, program_of

__all__ = ["panel"]

_WARPS = 8
_SIDE = 32  # rows and columns of a warp's tile, at most


def panel(name, rows, columns, *, splits=1, along_terms=True, norm=0, gate=0, steady=False):
    """Return the program of panel products for one shape of block.

    Parameters
    ----------
    name : {"float16", "bfloat16"}
        Element type of all operands.
    rows : {16, 32, 64}
        Rows of a block's tile.
    columns : {32, 64}
        Columns of a block's tile.
    splits : int
        Blocks of a cluster among which K is cut: 1, 2 or 4. More than 1 needs sm_90.
    along_terms : bool
        Whether rows of the weights are contiguous along k; else they are along the columns of y.
    norm : {0, 1, 2}
        No norm of the rows of x, one by their root mean squares, or by those of their distances
        from the mean.
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
        "ROWS": rows,
        "COLUMNS": columns,
        "ROW_WARPS": row_warps,
        "COLUMN_WARPS": column_warps,
        "K_WARPS": _WARPS // (row_warps * column_warps),
        "SPLITS": splits,
        "ALONG_TERMS": int(along_terms),
        "NORM": norm,
        "GATE": gate,
        "STEADY": int(steady),
    }
    return program_of("panel/panel.cuh", defines, minimum=90 if splits > 1 else 80)

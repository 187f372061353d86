"""The programs of attention: the definitions that precede each ``.cuh`` file, by variant."""

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.kernels.programs import PTX, program_of

__all__ = [
    "attention",
    "attention_few",
    "attention_few_mapped",
    "attention_wgmma",
    "join",
    "join_rows",
]

#: Splits of the keys, and those of them that a thread of `join` takes, unless too few threads fit.
MOST_SPLITS, SPLITS_OF_THREAD = 64, 4

_HALVES = {"float16": "half_t", "bfloat16": "bfloat_t"}


def attention(name, head, warps, columns, mask, split):
    """Return the program of attention with heads of up to `head` elements, a multiple of 16.

    `mask` is the name of the mask's dtype, or None.

    >>> ("HEAD", 128) in attention("float16", 128, 8, 64, None, False).defines
    True
    """
    defines = _attention_defines(name, head, mask)
    defines |= {"WARPS": warps, "BN": columns, "SPLIT": int(split)}
    return program_of("attention/attention.cuh", defines, minimum=80)


def _attention_defines(name, head, mask):
    """Return the defines that both forms of attention by single warps have."""
    kind = PTX[name]
    defines = {"ELEMENT": _HALVES[name], "INSTRUCTION": f'"m16n8k16.row.col.f32.{kind}.{kind}.f32"'}
    defines |= {"PACK": f'"{kind}x2"', "HEAD": head}
    defines |= {"MASK": 0 if mask is None else 1 if mask == "bool" else 2}
    if defines["MASK"] == 2:
        defines["MASK_TYPE"] = next(row.cuda for row in DTYPES if row.name == mask)
    return defines


def attention_few(name, head, eights, mask, warps, stages):
    """Return the program of attention with at most 8 or 16 rows that share their keys.

    Parameters
    ----------
    name : {"float16", "bfloat16"}
    head : int
        The most elements of a head, a multiple of 16 up to 128.
    eights : {1, 2}
        Eights of rows.
    mask : str or None
        The mask's dtype.
    warps, stages : int
        Warps of a block, and steps of 16 keys that each has under way.

    >>> ("EIGHTS", 1) in attention_few("float16", 128, 1, None, 4, 3).defines
    True
    """
    defines = _attention_defines(name, head, mask)
    defines |= {"EIGHTS": eights, "WARPS": warps, "STAGES": stages}
    return program_of("attention/attention_few.cuh", defines, minimum=80)


def attention_few_mapped(name, head, eights, mask, stages, cluster, persistent):
    """Return the program of `attention_few` whose keys and values come by tensor maps.

    The parameters are those of `attention_few`, with heads of 64 or 128; a step has 16 keys for
    each warp that multiplies, and the stages are those of the block. A cluster joins as many
    splits of the keys as it has blocks; `persistent` blocks take all keys of unit after unit.

    >>> attention_few_mapped("float16", 128, 1, None, 3, 1, False).architecture
    'sm_90a'
    """
    defines = _attention_defines(name, head, mask)
    defines |= {"EIGHTS": eights, "WARPS": 4, "STAGES": stages, "CLUSTER": cluster}
    defines["PERSISTENT"] = int(persistent)
    return program_of("attention/few_mapped.cuh", defines, minimum=90, architecture="sm_90a")


#: Registers of a thread of `attention_wgmma` that multiplies and that copies, by warpgroups of a
#: block and blocks of a multiprocessor.
_ATTENTION_REGISTERS = {(1, 2): (184, 72), (1, 4): (96, 32),
                        (2, 1): (216, 72), (3, 1): (160, 32), (4, 1): (112, 32)}  # fmt: skip


def attention_wgmma(name, head, groups, columns):
    """Return the program of attention for the tensor cores of Hopper.

    Parameters
    ----------
    name : {"float16", "bfloat16"}
    head : {32, 64, 128}
        The head size.
    groups : {1, 2, 3, 4}
        Warpgroups that multiply, of 64 rows each.
    columns : int
        Keys of a step, a multiple of 16; 64 for one warpgroup or four, which have few registers.

    >>> ("GROUPS", 2) in attention_wgmma("float16", 128, 2, 128).defines
    True
    """
    kind = PTX[name]
    start = f"wgmma.mma_async.sync.aligned.m64n{{}}k16.f32.{kind}.{kind} {{{{{{}}}}}}, "

    def instruction(n, operands, tail):
        count = n // 2
        sums = ", ".join(f'"+f"(d[{i}])' for i in range(count))
        head = start.format(n, ", ".join(f"%{i}" for i in range(count)))
        return head + operands.format(*range(count, count + 5)) + tail, sums

    text, sums = instruction(columns, "%{0}, %{1}, p, ", "1, 1, 0, 0;")
    scores = (
        f'asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{columns // 2 + 2}, 0;\\n{text}\\n}}"'
        f' : {sums} : "l"(a), "l"(b), "r"(adds))'
    )
    text, sums = instruction(head, "{{%{0}, %{1}, %{2}, %{3}}}, %{4}, ", "1, 1, 1, 1;")
    held = ", ".join(f'"r"(a[{i}])' for i in range(4))
    blocks = 1 if groups > 1 else 4 if head == 32 else 2
    multiplying, copying = _ATTENTION_REGISTERS[groups, blocks]
    defines = {"ELEMENT": _HALVES[name], "PACK": f'"{kind}x2"', "HEAD": head, "GROUPS": groups}
    defines |= {"BLOCKS": blocks, "BN": columns, "SCORES": scores}
    # As many places as the shared memory of a block has (hopper_places of attention/fused.pxi).
    defines |= {"KEY_PLACES": 2 if head == 128 else 4}
    defines |= {"VALUE_PLACES": 3 if head == 128 else 4}
    defines |= {"HELD": multiplying, "COPYING": copying}
    defines["SUMS"] = f'asm volatile("{text}" : {sums} : {held}, "l"(b))'
    return program_of("attention/attention_wgmma.cuh", defines, minimum=90, architecture="sm_90a")


def join_rows(head, groups):
    """Return the rows of a block of `join`, and the threads of a row.

    `groups` of threads share the splits of a row.

    >>> join_rows(64, 1), join_rows(80, 6)
    ((8, 32), (1, 256))
    """
    width = -(-head // 2 * groups // 32) * 32
    return max(1, 256 // width), width


def join(name, head, rows, groups):
    """Return the program that joins the parts of attention whose keys were cut among blocks.

    `rows` are those of a tile; `groups` of threads share the splits of a row.

    >>> join("bfloat16", 64, 16, 8).minimum
    80
    """
    together, width = join_rows(head, groups)
    each = SPLITS_OF_THREAD if groups < 512 // max(head, 32) else -(-MOST_SPLITS // groups)
    defines = {"PACK": f'"{PTX[name]}x2"', "HEAD": head, "BM": rows, "PARTS": groups}
    defines |= {"EACH": each, "ROWS": together, "WIDTH": width}
    return program_of("attention/join.cuh", defines, minimum=80)

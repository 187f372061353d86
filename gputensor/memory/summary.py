"""The text table of a device's memory statistics.

The content is that of ``torch.cuda.memory_summary``: amounts and counts now, at the peak, and
over the life of the process, of all memory and of the two pools.
"""

from gputensor._alloc.observe.statistics_names import FIELDS, OVERSIZE, POOLS, SCALARS, TYPES
from gputensor.errors import amount

__all__ = ["format_summary"]

WIDTHS = (20, 12, 12, 12, 12)
RULE = "+" + "+".join("-" * (width + 2) for width in WIDTHS) + "+"


def count(value):
    """Return a count with a short unit once it has more than six digits.

    >>> count(999999), count(1234567)
    ('999999', '1.2 M')
    """
    return str(value) if value < 1_000_000 else f"{value / 1e6:.1f} M"


def row(label, cells):
    """Return one line of the table."""
    texts = [label.ljust(WIDTHS[0])]
    texts += [cell.rjust(width) for cell, width in zip(cells, WIDTHS[1:], strict=True)]
    return "| " + " | ".join(texts) + " |"


def section(stats, rows, show, pools):
    """Yield the lines of a group of statistics, one for each pool, and a rule."""
    for stat, label in rows:
        for pool, indented in pools.items():
            key = f"{stat}.{pool}" if pool else stat
            yield row(indented or label, [show(stats[f"{key}.{field}"]) for field in FIELDS])
    yield RULE


def format_summary(name, stats, free=None, total=None, abbreviated=False):
    """Return the table.

    Parameters
    ----------
    name : str
        The device, for the title.
    stats : dict
        The result of ``memory_stats``.
    free, total : int, optional
        Bytes of the device, for the title.
    abbreviated : bool
        Leave out the two pools.

    Examples
    --------
    >>> from gputensor._alloc.observe.statistics_names import STATISTICS_KEYS
    >>> table = format_summary("host", dict.fromkeys(STATISTICS_KEYS, 0), abbreviated=True)
    >>> print(" ".join(table.splitlines()[1].split()))
    | memory of host |
    """
    pools = {"all": ""} if abbreviated else POOLS
    width = len(RULE) - 4
    outer = "+" + "-" * (len(RULE) - 2) + "+"
    title = f"memory of {name}"
    if total is not None:
        title += f": {amount(free)} free of {amount(total)} on the device"
    events = "   ".join(
        f"{label}: {count(stats[key])}" for key, label in SCALARS.items() if label is not None
    )
    lines = [outer, "| " + title.ljust(width) + " |", "| " + events.ljust(width) + " |", RULE]
    lines += [row("", FIELDS.values()), RULE]
    amounts = [item for item in TYPES.items() if item[0].endswith("_bytes")]
    lines += section(stats, amounts, amount, pools)
    lines += section(stats, [item for item in TYPES.items() if item not in amounts], count, pools)
    lines += section(stats, OVERSIZE.items(), count, {"": ""})
    return "\n".join(lines)

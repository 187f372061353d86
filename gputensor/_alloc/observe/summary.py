"""The text table of a device's memory statistics.

The content is that of ``torch.cuda.memory_summary``: amounts and counts now, at the peak, and
over the life of the process, of all memory and of the two pools.
"""

__all__ = ["format_summary"]

AMOUNTS = (
    ("allocated", "allocated_bytes"),
    ("active", "active_bytes"),
    ("requested", "requested_bytes"),
    ("reserved", "reserved_bytes"),
    ("free, split", "inactive_split_bytes"),
)
COUNTS = (
    ("blocks allocated", "allocation"),
    ("blocks active", "active"),
    ("segments reserved", "segment"),
    ("free blocks, split", "inactive_split"),
)
OVERSIZE = (
    ("oversize blocks", "oversize_allocations"),
    ("oversize segments", "oversize_segments"),
)
POOLS = (("all", ""), ("large_pool", "  large"), ("small_pool", "  small"))
FIELDS = ("current", "peak", "allocated", "freed")
WIDTHS = (20, 12, 12, 12, 12)


def amount(nbytes):
    """Return bytes in the unit that leaves one to four digits before the point.

    >>> amount(512), amount(20 << 20), amount(150 << 30)
    ('512 B', '20.0 MiB', '150.0 GiB')
    """
    value = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("not reached: the last unit takes every value")


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
    """Yield the lines of a group of statistics, one for each pool."""
    for label, stat in rows:
        for pool, indented in pools:
            key = f"{stat}.{pool}" if pool else stat
            yield row(indented or label, [show(stats[f"{key}.{field}"]) for field in FIELDS])


def format_summary(name, stats, free=None, total=None, abbreviated=False):
    """Return the table.

    Parameters
    ----------
    name : str
        The device, for the title.
    stats : dict
        What ``memory_stats`` returns.
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
    pools = POOLS[:1] if abbreviated else POOLS
    rule = "+" + "+".join("-" * (width + 2) for width in WIDTHS) + "+"
    width = len(rule) - 4
    outer = "+" + "-" * (len(rule) - 2) + "+"
    title = f"memory of {name}"
    if total is not None:
        title += f": {amount(free)} free of {amount(total)} on the device"
    events = "   ".join(
        f"{label}: {count(stats[key])}"
        for label, key in (
            ("out of memory", "num_ooms"),
            ("retries", "num_alloc_retries"),
            ("made", "num_device_alloc"),
            ("freed", "num_device_free"),
        )
    )
    lines = [outer, "| " + title.ljust(width) + " |", "| " + events.ljust(width) + " |", rule]
    lines += [row("", ["now", "peak", "total in", "total out"]), rule]
    lines += section(stats, AMOUNTS, amount, pools)
    lines.append(rule)
    lines += section(stats, COUNTS, count, pools)
    lines.append(rule)
    lines += section(stats, OVERSIZE, count, (("", ""),))
    lines.append(rule)
    return "\n".join(lines)

"""The devices that CUDA_VISIBLE_DEVICES names, read as the CUDA driver reads it.

Only for queries that must not start CUDA: where CUDA is used, it reads the variable itself.
"""

import functools
import re

__all__ = ["parse_visible", "visible_ordinals"]


def parse_visible(text):
    """Return the entries of the variable, in order: ordinals, or the beginnings of UUIDs.

    The first entry decides which of the two. Reading stops at the first entry that is neither; text
    after a number in an entry is ignored. An entry that is named twice hides all devices.

    Examples
    --------
    >>> parse_visible("2, +3, 1gpu, -1, 0")
    [2, 3, 1]
    >>> parse_visible("GPU-9e8d35e3,GPU-47")
    ['GPU-9e8d35e3', 'GPU-47']
    >>> parse_visible("0,1,0"), parse_visible("none,1")
    ([], [])
    """
    for kind in ("GPU-", "MIG-"):
        if text.lstrip().startswith(kind):
            return _distinct(_leading(text, functools.partial(_uuid, kind)))
    return _distinct(_leading(text, _ordinal))


def visible_ordinals(text, uuids):
    """Return the positions in `uuids` of the devices that the variable shows, in CUDA's order.

    Parameters
    ----------
    text : str or None
        The value of the variable; None when it is not set.
    uuids : list of str
        The UUIDs of all GPUs.

    Returns
    -------
    list of int or None
        None for parts of a GPU (``MIG-``), which only CUDA resolves.

    Examples
    --------
    >>> visible_ordinals("GPU-47,GPU-9", ["GPU-9e8d", "GPU-472e"])
    [1, 0]
    >>> visible_ordinals("1,5,0", ["GPU-9e8d", "GPU-472e"])
    [1]
    """
    if text is None:
        return list(range(len(uuids)))
    entries = parse_visible(text)
    if entries and str(entries[0]).startswith("MIG-"):
        return None
    found = []
    for entry in entries:
        if isinstance(entry, int):
            fitting = [entry] if entry < len(uuids) else []
        else:
            fitting = [at for at, uuid in enumerate(uuids) if uuid.startswith(entry)]
        if len(fitting) != 1:  # no device, or several: this and later entries are not visible
            break
        found += fitting
    return _distinct(found)


def _leading(text, read):
    """The entries up to the first one that cannot be read."""
    found = []
    for entry in text.split(","):
        value = read(entry.strip())
        if value is None:
            break
        found.append(value)
    return found


def _uuid(kind, entry):
    return entry if entry.startswith(kind) else None


def _ordinal(entry):
    match = re.match(r"[+-]?\d+", entry, re.ASCII)
    number = int(match[0]) if match else -1
    return number if number >= 0 else None


def _distinct(entries):
    return entries if len(set(entries)) == len(entries) else []

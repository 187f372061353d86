"""Algorithms that were measured to be quicker than the library's own first choice.

cuBLASLt's heuristic chooses without measuring, and for some shapes its first choice is 5 to 15 %
slower than another of its algorithms. The file beside this module lists such shapes with the better
algorithm, measured by ``benchmarks/measured_algorithms.py`` over a grid of sizes that are common in
models. A row applies only to its kind of device and its series of library versions, and cuBLASLt
checks that the algorithm fits the product. A result of tuning
(:mod:`gputensor.blas.tuning.tunable`), a named library or explicit padding takes precedence. A file
that is missing or damaged counts as empty, since it could only have made products quicker.

Why not for near shapes too: with a tenth more rows of the result, the algorithm of a row was 0.55
to 1.46 times as fast as the library's first choice (geometric mean 0.93), because the way in which
tiles fill the multiprocessors decides, and that is not smooth.
"""

import contextlib
import json
from pathlib import Path

from gputensor.blas.libraries import library_versions
from gputensor.blas.plan import fill_measured

__all__ = ["FILE", "KEY", "fill", "read_rows"]

FILE = Path(__file__).with_name("measured_algorithms.json")
KEY = ("op_a", "op_b", "type_a", "type_b", "type_d", "compute", "m", "n", "k")
CONFIG_COUNT = 9  # numbers of a configuration, as in blas/plan; int32 each


def _algorithm(row):
    """Split a row into key and configuration; raise ValueError if it is malformed."""
    *key, config = row
    if len(key) != len(KEY) or len(config) != CONFIG_COUNT:
        raise ValueError(
            f"row: got {len(key)} numbers and {len(config)} in a list; expected {len(KEY)} and "
            f"{CONFIG_COUNT}"
        )
    if any(type(number) is not int or abs(number) >= 1 << 31 for number in (*key, *config)):
        raise ValueError(f"row: got {row!r:.60}; expected integers of 32 bits")
    return tuple(key), tuple(config)


def read_rows(text, device_name, library_version):
    """Return the rows of a file that apply to a device, as ``{key: configuration}``.

    Parameters
    ----------
    text : str
        JSON: ``sections``, each with ``device``, ``library`` (major version) and ``rows`` of
        ``[op_a, op_b, type_a, type_b, type_d, compute, m, n, k, configuration]``, with the
        library's names and numbers.
    device_name : str
        The driver's name of the device.
    library_version : int
        The version of cuBLASLt, such as 130100.

    Raises
    ------
    ValueError
        If the text has another form.

    Examples
    --------
    >>> text = ('{"sections": [{"device": "GPU X", "library": 13, "rows": '
    ...         '[[0, 0, 9, 9, 9, 68, 8192, 16, 8192, [66, 312, 1, 0, 0, 1, 35, 0, 3]]]}]}')
    >>> read_rows(text, "GPU X", 130100)
    {(0, 0, 9, 9, 9, 68, 8192, 16, 8192): (66, 312, 1, 0, 0, 1, 35, 0, 3)}
    >>> read_rows(text, "GPU X", 120900)
    {}
    """
    rows = {}
    try:
        for section in json.loads(text)["sections"]:
            if section["device"] == device_name and section["library"] == library_version // 10000:
                rows.update(_algorithm(row) for row in section["rows"])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"table: got {error!r}; expected rows of measured algorithms") from None
    return rows


def fill(device):
    """Copy the rows that apply to a device to the table that planning reads."""
    from gputensor._driver.registry import device_info

    name, version = device_info(device)["name"], library_versions().get("cublasLt", 0)
    rows = {}
    with contextlib.suppress(OSError, ValueError):
        rows = read_rows(FILE.read_text(encoding="utf-8"), name, version)
    fill_measured(device, rows)

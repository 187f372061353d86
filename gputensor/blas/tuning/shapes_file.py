"""Files that name products to tune: recorded ones as JSON, or a line of text for each.

A line is ``MxNxK KIND [LAYOUT]``, as in ``16x4096x8192 bf16 NT``: sizes of a row-major product of
contiguous matrices, one of fp64, fp32, tf32, fp16 and bf16, and whether each operand is stored
untransposed (N, the default) or transposed (T). Empty lines and comments after ``#`` are ignored.
"""

import json
from pathlib import Path

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.plan import FIELDS, KINDS, check_signature, signature_of_shape

__all__ = ["name_of_signature", "read_signatures"]


def read_signatures(path):
    """Return the signatures of the products that a file names.

    Raises
    ------
    ValueError
        If the file has neither form; the message names the file and the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("# a layer\\n16x4096x8192 bf16 NT\\n")
    ...     file.flush()
    ...     len(read_signatures(file.name))
    1
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: got {error}; expected a file of text") from None
    if text.lstrip().startswith("{"):
        return _recorded(path, text)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            found.append(_signature_of_words(words))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    return found


def _recorded(path, text):
    try:
        problems = json.loads(text)["problems"]
        return [check_signature([row[name] for name in FIELDS]) for row in problems]
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: got {error}; expected a file of untuned products") from None


def _signature_of_words(words):
    sizes = words[0].split("x")
    if not 2 <= len(words) <= 3 or len(sizes) != 3 or not all(map(str.isdecimal, sizes)):
        raise ValueError(f"shape: got {' '.join(words)!r}; expected the form 16x4096x8192 bf16 NT")
    layout = words[2] if len(words) == 3 else "NN"
    return check_signature(signature_of_shape(*map(int, sizes), words[1], layout))


def name_of_signature(signature):
    """Return a product's name: the line of a file that names it, if there is one.

    >>> name_of_signature(signature_of_shape(16, 4096, 8192, "bf16", "NT"))
    '16x4096x8192 bf16 NT'
    """
    row = dict(zip(FIELDS, signature, strict=True))
    kinds = {pair: kind for kind, pair in KINDS.items()}
    kind = kinds.get((row["type_a"], row["compute"]), DTYPES[row["type_a"]].name)
    # The library's product is the row-major one with operands and sizes swapped.
    layout = "".join("T" if row[name] else "N" for name in ("op_b", "op_a"))
    batch = f" batch {row['batch']}" if row["batch"] > 1 else ""
    return f"{row['n']}x{row['m']}x{row['k']} {kind} {layout}{batch}"

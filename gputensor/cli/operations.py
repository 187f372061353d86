"""`gputensor operations`: prints the element-wise functions and reductions as a Markdown table.

The lines are made from the rows of the table of operations.
"""

__all__ = ["register", "table"]

_HEAD = "| function | inputs | kinds | dtype of the result | returns |\n|---|---|---|---|---|"


def register(subparsers):
    """Add ``operations`` to the command line."""
    parser = subparsers.add_parser("operations", help="list element-wise functions and reductions")
    parser.set_defaults(run=run_operations)


def run_operations(options):
    """Print the table. Returns the exit code."""
    print(table())
    return 0


def table():
    """Return the table in Markdown, one line for each function.

    >>> [line for line in table().splitlines() if "`sin`" in line]
    ['| `sin` | 1 | float, complex | float | the sine of x, an angle in radians. |']
    """
    from gputensor._kernels.operations import ELEMENTWISE, LETTERS, REDUCTIONS

    lines = {}
    for row in (*ELEMENTWISE, *REDUCTIONS):
        name = "special." * row.is_special + row.public_name
        if row.name != "copy" and name not in lines:
            kinds = ", ".join(kind for kind in LETTERS.values() if kind in row.kinds)
            doc = row.doc.partition("\n")[0]
            lines[name] = f"| `{name}` | {row.arity} | {kinds} | {row.rule} | {doc} |"
    return "\n".join([_HEAD, *(lines[name] for name in sorted(lines))])

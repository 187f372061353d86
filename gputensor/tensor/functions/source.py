"""Source text of the element-wise functions: Cython and stub, one function for each row.

setup.py runs this before it builds, from the path of the file and without the library; the text
goes to the build folder and, the stub, beside the module. Each function is written out, so that its
name, signature and docstring are its own in messages, tracebacks and ``help``.
"""

import re
import textwrap

__all__ = ["cython_source", "docstring", "stub_source"]

_FUNCTION = '''
def {name}({parameters}, /, out=None, *, where=True, dtype=None, order=None,
{indent}casting=None):
    """{doc}
    """
    if (order is not None or casting is not None) and is_unusual(order, casting, dtype):
        return laid_out({name}, ({arguments}), out, where, dtype, order, casting)
    if dtype is not None:
        return in_dtype({name}, ({arguments}), out, where, dtype, RULE_{rule})
    if where is not True:
        return merged({name}({arguments}), out, where)
    if {is_tensor}:
        return elementwise_tensor({code}, "{name}", ({arguments}), out, RULE_{rule})
    return of_other({code}, "{name}", ({arguments}), out, RULE_{rule})
'''
# PyTorch's factor of the second argument.
_SCALED = '''
def {name}({parameters}, /, out=None, *, alpha=None, where=True, dtype=None, order=None,
{indent}casting=None):
    """{doc}
    """
    if alpha is not None:
        x2 = scaled("{name}", x2, alpha)
    if (order is not None or casting is not None) and is_unusual(order, casting, dtype):
        return laid_out({name}, ({arguments}), out, where, dtype, order, casting)
    if dtype is not None:
        return in_dtype({name}, ({arguments}), out, where, dtype, RULE_{rule})
    if where is not True:
        return merged({name}({arguments}), out, where)
    if {is_tensor}:
        return elementwise_tensor({code}, "{name}", ({arguments}), out, RULE_{rule})
    return of_other({code}, "{name}", ({arguments}), out, RULE_{rule})
'''
SCALED = ("add", "subtract")
_DOC = """Return {doc}

Parameters
----------
{parameters}
out : Tensor, optional
    The tensor to write the result to. It must have the result's shape and a dtype of the same or a
    higher kind; it may be an argument or overlap one.{more}
where : Tensor, optional
    A mask. Where it is false, `out` keeps its elements; without `out` they are 0.
dtype : dtype, optional
    The dtype to compute in, and that of the result.
order : {{"C", "F", "A", "K"}}, optional
    The order of a new result's axes in memory; default: "C".
casting : {{"no", "equiv", "safe", "same_kind", "unsafe"}}, optional
    The conversions allowed: of arguments to `dtype`, and of the result to the dtype of `out`. "no"
    also allows none to a common dtype; "safe" is this library's promotion. Default: "same_kind".

Returns
-------
Tensor
    Its dtype is {dtype}.

Examples
--------
>>> {name}({arguments}).numpy()
{result}"""
_ALPHA = """
alpha : number, optional
    A factor of x2, as in PyTorch."""
_INPUTS = {
    1: "x : Tensor",
    2: "x1, x2 : Tensor or number\n    Their shapes broadcast.",
    3: "x1, x2, x3 : Tensor or number\n    Their shapes broadcast.",
}


def generated(rows):
    """Return the rows whose functions are made here."""
    return (row for row in rows if " -> " in row.example)


def docstring(row, rules):
    """Return the docstring of a row's function.

    Parameters
    ----------
    row : Operation
    rules : dict
        The description of the result's dtype for each rule.
    """
    arguments, result = row.example.split(" -> ")
    first = re.match(r"\[.*?\]", arguments)[0]
    return _DOC.format(
        doc=re.sub(r"\n +", "\n", row.doc),
        parameters=_INPUTS[row.arity],
        dtype=rules[row.rule],
        more=_ALPHA if row.public_name in SCALED else "",
        name="gt.special." * row.is_special + row.public_name,
        arguments=f'gt.asarray({first}, device="host")' + arguments[len(first) :],
        result=result,
    )


def cython_source(rows, rules):
    """Return the text of the functions, to be included in the room's module."""
    names = ", ".join(f"RULE_{rule.upper()}" for rule in rules)
    text = ["# Made from gputensor/_kernels/operations.py by setup.py.\n"]
    text.append(f"from gputensor.tensor.core cimport {names}\n")
    for row in generated(rows):
        parameters = ", ".join(row.parameters)
        doc = textwrap.indent(docstring(row, rules), "    ").strip()
        text.append(
            (_SCALED if row.public_name in SCALED else _FUNCTION).format(
                name=row.public_name,
                indent=" " * (len(row.public_name) + 5),
                parameters=parameters,
                is_tensor=" or ".join(f"type({one}) is Tensor" for one in row.parameters),
                doc=doc,
                code=row.code,
                arguments=parameters + "," * (row.arity == 1),
                rule=row.rule.upper(),
            )
        )
    return "\n".join(text)


def stub_source(rows):
    """Return the text of the functions' stub."""
    names = [f'    "{row.public_name}",' for row in generated(rows)]
    text = ["# Made by setup.py from gputensor/_kernels/operations.py.", ""]
    text += ["from typing import Any, overload", ""]
    text += ["from gputensor.tensor.core import ArrayLike, Number, Tensor", ""]
    text += ["__all__ = [", *names, "]", ""]
    for row in generated(rows):
        inputs = "".join(f"{name}: ArrayLike, " for name in row.parameters)
        if row.arity == 1:
            text += ["@overload", f"def {row.public_name}(x: Number, /) -> Any: ...", "@overload"]
        more = ", alpha: Number | None = None" if row.public_name in SCALED else ""
        text.append(
            f"def {row.public_name}(\n    {inputs}/, out: Tensor | None = None, *{more}, "
            "where: Tensor | bool = True, dtype: Any = None,\n    "
            "order: str | None = None, casting: str | None = None\n) -> Tensor: ..."
        )
    return "\n".join([*text, ""])

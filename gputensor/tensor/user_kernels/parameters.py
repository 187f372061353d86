"""Declared parameters of kernels from expressions: dtypes, operands, struct and C++ text."""

import re
from typing import NamedTuple

import numpy as np

from gputensor._arrays.dtypes import dtype_code
from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, ascontiguous, astype
from gputensor.tensor.manipulation import broadcast_to
from gputensor.tensor.user_kernels.texts import C_TYPES

__all__ = [
    "RAW_TEXT", "Axes", "Parameter", "Texts", "c_type", "declared", "dtypes_of", "padded",
    "read_operand", "struct_of", "texts_of", "typedefs", "written_operand",
]  # fmt: skip

_NAME = re.compile(r"[A-Za-z_]\w*")
MOST_NDIM = 16


class Parameter(NamedTuple):
    """One declared parameter: ``raw T x``."""

    type: str
    name: str
    is_raw: bool


def declared(text, title):
    """Return the parameters of a declaration such as ``"float32 x, raw T y"``."""
    if not isinstance(text, str):
        raise argument_error(TypeError, title, text, "a str")
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        words = part.split()
        is_raw = words[0] == "raw"
        words = words[is_raw:]
        if len(words) != 2 or not all(_NAME.fullmatch(one) for one in words):
            rule = "'TYPE NAME' or 'raw TYPE NAME', separated by commas"
            raise argument_error(ValueError, title, text, rule)
        found.append(Parameter(*words, is_raw))
    return found


# ---- operands


def paired(parameters, inputs, args, title):
    """Return the argument of each parameter (None: an output to make), and the dtypes."""
    if len(args) not in (inputs, len(parameters)):
        got = Described(f"{len(args)} arguments")
        rule = f"{inputs} inputs, or {len(parameters)} with the outputs"
        raise argument_error(TypeError, title, got, rule)
    for parameter, one in zip(parameters[:inputs], args, strict=False):
        if not isinstance(one, (Tensor, int, float, complex, np.generic)):
            rule = "a Tensor or a number (asarray makes a Tensor of an array)"
            raise argument_error(TypeError, f"{title}: {parameter.name}", one, rule)
    given = [*args, *[None] * (len(parameters) - len(args))]
    return given, dtypes_of(parameters, given, title)


def dtypes_of(parameters, given, title):
    """Return the dtype of each parameter; a letter is that of the arguments declared with it."""
    letters = {}
    for parameter, one in zip(parameters, given, strict=True):
        if len(parameter.type) == 1 and one is not None:
            others = letters.setdefault(parameter.type, [])
            first = [other.dtype for other in others if isinstance(other, Tensor)][:1]
            if isinstance(one, Tensor) and first and one.dtype != first[0]:
                rule = f"{first[0].name}, which {parameter.type} is"
                got = Described(one.dtype.name)
                raise argument_error(TypeError, f"{title}: {parameter.name}", got, rule)
            others.append(one)
    letters = {
        letter: next((one.dtype for one in ones if isinstance(one, Tensor)), None)
        or result_type(*ones)
        for letter, ones in letters.items()
    }
    dtypes = []
    for parameter in parameters:
        name = letters.get(parameter.type, parameter.type)
        if isinstance(name, str) and len(name) == 1:
            got = Described(f"no argument of type {name}")
            rule = "such an argument, or a dtype in the declaration"
            raise argument_error(TypeError, f"{title}: {parameter.name}", got, rule)
        dtypes.append(DTYPES[dtype_code(name)].numpy)
    return dtypes


def read_operand(parameter, one, dtype, shape, device):
    """Return an input as a tensor of its dtype: broadcast to the shape, or dense if it is raw."""
    one = one if isinstance(one, Tensor) else asarray(one, dtype, device=device)
    one = astype(one, dtype, copy=False)
    return ascontiguous(one) if parameter.is_raw else broadcast_to(one, shape)


def written_operand(parameter, one, dtype, shape, title):
    """Return a given output; TypeError unless dtype and shape are right, or it is dense if raw."""
    if (
        not isinstance(one, Tensor)
        or one.dtype != dtype
        or (not one.is_contiguous if parameter.is_raw else one.shape != shape)
    ):
        rule = f"a Tensor of {dtype} and shape {shape}"
        raise argument_error(TypeError, f"{title}: {parameter.name}", one, rule)
    return one


def padded(extents):
    """Return extents, padded with 1 to the number of axes in the struct."""
    return [*extents, *[1] * (MOST_NDIM - len(extents))]


def struct_of(head, parameters, operands):
    """Return the bytes of the struct: named head fields, then address, size, strides of each.

    Parameters
    ----------
    head : dict
        An int or a list of 16 ints for each name.
    """
    fields = [(name, "i8", MOST_NDIM) if isinstance(value, list) else (name, "i8")
              for name, value in head.items()]  # fmt: skip
    values = list(head.values())
    for i, (parameter, one) in enumerate(zip(parameters, operands, strict=True)):
        fields += [(f"p{i}", "u8"), (f"n{i}", "i8"), (f"s{i}", "i8", MOST_NDIM)]
        strides = [] if parameter.is_raw else [n // one.itemsize for n in one.strides]
        values += [one.data_ptr(), one.size, padded(strides)]
    struct = np.zeros((), np.dtype(fields, align=True))
    for (name, *_), value in zip(fields, values, strict=True):
        struct[name] = value
    return struct.tobytes()


# ---- text

RAW_TEXT = """template <class T> struct GputensorRaw {
    T* data; long long count;
    __device__ T& operator[](long long i) const { return data[i]; }
    __device__ long long size() const { return count; }
};
struct GputensorIndex {
    long long count;
    __device__ long long size() const { return count; }
};
"""
_OFFSETS = """        long long rest_{element} = {element};
        long long {starts};
        for (int d = (int)p.{ndim} - 1; d >= 0; --d) {{
            const long long here = rest_{element} % p.{shape}[d];
            rest_{element} /= p.{shape}[d];
            {steps}
        }}"""


class Axes(NamedTuple):
    """The names of a C++ index and of the struct's fields for the extents and their number."""

    element: str
    shape: str
    ndim: str


class Texts(NamedTuple):
    """C++ text of parameters: fields of the struct, raw pointers, offsets, loads and stores."""

    fields: str
    raws: str
    offsets: str
    loads: str
    stores: str


def c_type(code):
    """Return the C++ type in which an element is computed."""
    row = DTYPES[code]
    return row.cuda if row.kind == "complex" else C_TYPES.get(row.name, "float")


def typedefs(parameters, codes):
    """Return C++ that names the types of one-letter declarations."""
    named = {one.type: c_type(code) for one, code in zip(parameters, codes, strict=True)
             if len(one.type) == 1}  # fmt: skip
    return "\n".join(f"typedef {kind} {letter};" for letter, kind in named.items())


def _raw(i, parameter, code, is_written):
    row, kind = DTYPES[code], c_type(code)
    if row.kind != "complex" and row.name not in C_TYPES:
        rule = "a dtype of 32 bits or more for a raw parameter"
        raise argument_error(TypeError, parameter.name, Described(row.name), rule)
    kind = kind if is_written else f"const {kind}"
    return f"    const GputensorRaw<{kind}> {parameter.name} = {{({kind}*)p.p{i}, p.n{i}}};"


def texts_of(places, parameters, codes, written, is_flat, axes):
    """Return the :class:`Texts` of the parameters with these numbers, as elements along `axes`.

    Parameters
    ----------
    places : range
        The numbers of the parameters.
    parameters, codes
        Those of all parameters.
    written : int
        Parameters from this number on are outputs.
    is_flat : bool
        Whether all operands are dense, so that the index is the offset.
    axes : Axes
    """
    fields, raws, loads, stores, starts, steps = [], [], [], [], [], []
    for i in places:
        parameter, row, kind = parameters[i], DTYPES[codes[i]], c_type(codes[i])
        fields.append(f"    unsigned long long p{i}; long long n{i}; long long s{i}[16];")
        if parameter.is_raw:
            raws.append(_raw(i, parameter, codes[i], i >= written))
            continue
        starts.append(f"o{i} = 0")
        steps.append(f"o{i} += here * p.s{i}[d];")
        place = f"(({row.cuda}*)p.p{i})[{axes.element if is_flat else f'o{i}'}]"
        value = f"wide({place})" if kind == "float" else place
        constant = "" if i >= written else "const "
        loads.append(f"        {constant}{kind} {parameter.name} = {value};")
        if i >= written:
            stores.append(f"        {place} = narrow<{row.cuda}>({parameter.name});")
    offsets = ""
    if not is_flat and starts:
        offsets = _OFFSETS.format(starts=", ".join(starts), steps=" ".join(steps), **axes._asdict())
    return Texts(*("\n".join(lines) for lines in (fields, raws)), offsets,
                 *("\n".join(lines) for lines in (loads, stores)))  # fmt: skip

"""The CUDA text of the element-wise operations, compiled for the CPU: one function for each.

One compilation serves all operations and dtypes, without the kernels, drivers and launches around
the expressions, so a test can compute many values. 16-bit floats compute as float and are not
included.
"""

import ctypes
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.launch import nvrtc  # noqa: F401  (compile_source needs the module)
from gputensor._kernels.operations import ELEMENTWISE
from gputensor._kernels.program import Program
from tests.support import kernel_compiler

BOOLEAN = {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"}
NAMES = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64")
CODES = tuple(row.code for row in DTYPES if row.name in (*NAMES, "complex64", "complex128"))

_FUNCTION = """
extern "C" void {name}_{dtype}(const {C}* pa, const {C}* pb, const {C}* pc, {R}* out, long n) {{
    typedef {C} C;
    for (long i = 0; i < n; ++i) {{
        const C a = pa[i], b = pb[i], c = pc[i];
        out[i] = ({R})({text});
    }}
}}
"""


def result_dtype(name, code):
    """Return the dtype of the result of one operation computed in dtype `code`."""
    if name in BOOLEAN:
        return np.dtype(bool)
    dtype = DTYPES[code].numpy
    return np.empty(0, dtype).real.dtype if name in ("abs", "real", "imag") else dtype


def _cpp(dtype):
    return next(row.cuda for row in DTYPES if row.numpy == dtype)


def operations():
    """Return (row, dtype code) of all operations of the text, except selection and copies."""
    return [
        (row, code)
        for row in ELEMENTWISE
        for code in CODES
        if DTYPES[code].kind in row.kinds and row.name not in ("where", "copy")
    ]


@cache
def _library():
    expressions = " ".join(row.cuda["float"] for row in ELEMENTWISE if "float" in row.kinds)
    text = [Program("gputensor/_kernels/cuda/math.cuh", (("EVERYTHING", expressions),)).text()]
    for row, code in operations():
        element = DTYPES[code]
        text.append(
            _FUNCTION.format(
                name=row.name,
                dtype=element.name,
                C=element.cuda,
                R=_cpp(result_dtype(row.name, code)),
                text=row.cuda[element.kind],
            )
        )
    text.append("struct Parameters {}; static void kernel(const Parameters&) {}")
    image = kernel_compiler.compile_source("\n".join(text), None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "math.so"
        path.write_bytes(image[8:])
        for library in kernel_compiler.LIBRARIES:
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(path))


def compute(row, code, inputs):
    """Return the result of the CUDA text for contiguous one-dimensional inputs of dtype `code`."""
    out = np.empty(inputs[0].shape, result_dtype(row.name, code))
    pointers = [array.ctypes.data for array in (*inputs, inputs[0], inputs[0])[:3]]
    function = getattr(_library(), f"{row.name}_{DTYPES[code].name}")
    function(*map(ctypes.c_void_p, (*pointers, out.ctypes.data)), ctypes.c_long(out.size))
    return out

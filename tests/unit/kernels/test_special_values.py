"""Special values of every operation: the CUDA text, compiled for the CPU, against the host device.

The host executor computes with NumPy. The complex functions are also compared with Python's cmath,
which has tables of its own.
"""

import cmath

import numpy as np
import pytest

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.host import elementwise as host_elementwise
from tests.support import cuda_math_on_cpu as cuda
from tests.support.kernel_compiler import COMPILER
from tests.support.special_values import check, sampled, special_values

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++ on the path")
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5}
COMPLEX = ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
COMPLEX += ("asin", "acos", "atan", "asinh", "acosh", "atanh", "log10")
# Zeros whose sign NumPy's reference (or C) leaves to the instruction set.
LOOSE_ZEROS = {"maximum", "minimum", "mul", "div", "square", "pow", "sub", "add"}
LOOSE_ZEROS |= {"silu", "reciprocal", "sign", "sinc"}


def host(row, code, inputs):
    out = np.empty(inputs[0].shape, cuda.result_dtype(row.name, code))
    with np.errstate(all="ignore"):
        host_elementwise.run(row.name, DTYPES[code].name, out, *inputs)
    return out


def text_program(rng, row, code, size):
    """One operation of one dtype on random special values, by the CUDA text and on the host."""
    dtype = DTYPES[code].numpy
    inputs = [sampled(rng, row.name, dtype, size) for _ in range(row.arity)]
    if row.arity == 1 and row.name not in ("square", "reciprocal"):
        inputs = [np.concatenate([inputs[0], special_values(dtype)])]
    check(
        f"{row.name} {dtype}",
        inputs,
        cuda.compute(row, code, inputs),
        host(row, code, inputs),
        TOLERANCE.get(dtype.name, 2e-13) * (50 if row.name == "pow" else 1),
        signed_zeros=row.name not in LOOSE_ZEROS,
    )


# gelu loses digits by its formula (kernel_checks.py); lgamma loses them near its zeros, in each
# library differently; shares of counts near 0 vanish beside those of frequent values.
LOSING = ("gelu", "gelu_tanh", "lgamma", "poisson_quantile")
COMPARED = [pair for pair in cuda.operations() if pair[0].name not in LOSING]


@pytest.mark.parametrize("code", cuda.CODES, ids=lambda code: DTYPES[code].name)
def test_cuda_text_and_host_device_agree_on_special_values(rng, code):
    for row, its_code in COMPARED:
        if its_code == code:
            text_program(rng, row, code, 3000)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_have_the_special_cases_of_c(rng, name):
    values = np.concatenate([special_values("complex128"), sampled(rng, name, "complex128", 2000)])
    row, code = next(
        (row, code) for row, code in cuda.operations() if row.name == name and code == 14
    )
    kept, expected = [], []
    for value in values[~np.isnan(values)].tolist():  # C leaves most results of NaN open
        try:
            result = getattr(cmath, name)(value)
        except (ValueError, OverflowError):  # cmath raises where C gives NaN, or an infinity
            continue
        kept.append(value)
        expected.append(result)
    assert len(kept) > 1000
    inputs = [np.array(kept)]
    for what, actual in (
        ("cuda", cuda.compute(row, code, inputs)),
        ("host", host(row, code, inputs)),
    ):
        check(f"{name} on {what}", inputs, actual, np.array(expected), 2e-13)


def test_sign_of_complex_numbers_is_a_direction_or_nan():
    row, code = next(
        (row, code) for row, code in cuda.operations() if row.name == "sign" and code == 14
    )
    inf, nan = float("inf"), float("nan")
    cases = {
        complex(inf, 3): 1,
        complex(-inf, -0.0): -1,
        complex(5, -inf): -1j,
        complex(inf, inf): complex(nan, nan),
        complex(nan, inf): complex(nan, nan),
        complex(0, nan): complex(nan, nan),
        complex(-0.0, 0.0): 0,
        complex(1e308, 1e308): complex(0.5**0.5, 0.5**0.5),
        complex(-3, 4): complex(-0.6, 0.8),
    }
    inputs, expected = [np.array([*cases])], np.array([*cases.values()], complex)
    check("sign on cuda", inputs, cuda.compute(row, code, inputs), expected, 1e-15)
    check("sign on the host", inputs, host(row, code, inputs), expected, 1e-15)

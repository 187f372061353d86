"""Runs the node cases of the `onnx` package on the importer; as a program, it counts them.

    python -m tests.importers.onnx_cases [--traced] [PART OF A NAME ...]

With --traced each model is compiled to a program first, at the shapes of its inputs.

Inputs become tensors on the host device if tensors support their element type; otherwise they stay
NumPy arrays. Results are compared with the case's own tolerance, but for 16-bit floats with at
least four roundings: the reference rounds after each of its steps, a kernel only once.
"""

import fnmatch
import functools
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx

import gputensor as gt
from gputensor.importers.onnx_model import model_of
from gputensor.importers.onnx_values import has_code
from tests.importers.onnx_explained import EXPLAINED


@functools.cache
def cases():
    """All node cases, in order; building them runs NumPy references that emit warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return load_model_tests(kind="node")


def array_of(value):
    return onnx.numpy_helper.to_array(value) if hasattr(value, "data_type") else np.asarray(value)


def fed(value, device="host"):
    """A value of a case, converted for the model."""
    if isinstance(value, list):
        return [fed(one, device) for one in value]
    if value is None:
        return None
    array = array_of(value)
    return gt.asarray(array, device=device) if has_code(array.dtype) else array


def check(found, wanted, case):
    """Raise AssertionError unless a result is the wanted one."""
    if isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            check(one, other, case)
        return
    if wanted is None:
        assert found is None
        return
    found = found.numpy() if isinstance(found, gt.Tensor) else np.asarray(found)
    wanted = array_of(wanted)
    wanted = wanted.astype(object) if wanted.dtype.kind in "SU" else wanted
    assert found.dtype == wanted.dtype, f"{found.dtype} is not {wanted.dtype}"
    assert found.shape == wanted.shape, f"{found.shape} is not {wanted.shape}"
    if found.dtype.kind not in "fcV":
        np.testing.assert_array_equal(found, wanted)
        return
    rtol, wide = case.rtol, np.complex128 if found.dtype.kind == "c" else np.float64
    if found.dtype.name in ("float16", "bfloat16"):
        rtol = max(rtol, 4 * float(ml_dtypes.finfo(found.dtype).eps))
    np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=rtol, atol=case.atol)


def traced(model, inputs):
    """The results of a program of the model; inputs such as shapes become constants."""
    values = dict(zip(model.inputs, map(fed, inputs), strict=False))
    for name in model.known_inputs:
        if isinstance(values.get(name), gt.Tensor):
            values[name] = values[name].numpy()
    given = {name: value for name, value in values.items() if isinstance(value, gt.Tensor)}

    def run(tensors, *, weights):
        return model.run(**(values | tensors), weights=weights)

    specs = {name: gt.spec(value.shape, value.dtype) for name, value in given.items()}
    with gt.compile(run, specs, weights=model.weights, target="host") as program:
        return program(given)


def eager(model, inputs):
    """The results of the model run eagerly."""
    return model.run(*map(fed, inputs))


def eager_on_gpu(model, inputs):
    """The results of the model run eagerly on the current GPU."""
    return model.run(*(fed(value, "cuda") for value in inputs))


def fault(case, run=eager):
    """Why a case does not pass, in one line; None if it passes."""
    gt.random.seed(0)
    try:
        model = model_of(case.model)
        for inputs, wanted in case.data_sets:
            found = run(model, inputs)
            found = [found] if len(model.outputs) == 1 else list(found)
            for one, other in zip(found, wanted, strict=True):
                check(one, other, case)
    except Exception as error:  # any error means that the case does not pass
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return None


def explained(name):
    """The patterns of EXPLAINED that match a case's name."""
    return [pattern for pattern in EXPLAINED if fnmatch.fnmatchcase(name, pattern)]


def main(words):
    run = {"run": traced} if "--traced" in words else {}
    words = [word for word in words if word != "--traced"]
    faults, count = {}, 0
    for case in cases():
        if not words or any(word in case.name for word in words):
            count += 1
            found = fault(case, **run)
            if found is not None:
                faults[case.name] = found
    for name, text in faults.items():
        reasons = [EXPLAINED[pattern] for pattern in explained(name)]
        print(f"{name}: {text} [{'; '.join(reasons) or 'NOT EXPLAINED'}]")
    print(f"{count - len(faults)} of {count} node cases pass")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])

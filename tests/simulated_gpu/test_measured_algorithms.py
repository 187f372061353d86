"""How planning uses measured algorithms, checked by the log of the fake BLAS library.

The tests write tables for the simulated device.
"""

import contextlib
import io
import json
import os

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas
from gputensor.blas.kernels import padding
from gputensor.blas.plan import FIELDS, KINDS, signature_of_shape
from gputensor.blas.tuning import measured_algorithms, tunable
from tests.conformance.products.test_matmul import assert_within, bound, random_tensor, wide

pytestmark = pytest.mark.orders("at-once")

M, N, K = 168, 176, 264  # left to the library by our own kernels
KNOWN = [9, 24, 1, 0, 0, 3, 35, 0, 5]
TUNED = [10, 20, 1, 0, 0, 1, 35, 0, 2]
FIRST = [7, 20, 4, 2, 0, 0, 11, 0, 2]  # fake_cublas.cpp's heuristic
FIRST_WITHOUT_WORKSPACE = [7, 20, 1, 0, 0, 0, 11, 0, 2]
REFUSED = [8, 24, 1, 0, 0, 0, 35, 0, 2]  # by cublasLtMatmulAlgoCheck
UNKNOWN = [-5, 24, 1, 0, 0, 0, 35, 0, 2]  # by cublasLtMatmulAlgoInit
LIBRARY = 13


@pytest.fixture
def folder(tmp_path):
    """A folder for tables and logs; afterwards the shipped file of algorithms is in use again."""
    shipped = measured_algorithms.FILE
    yield tmp_path
    use_file(shipped)


class Product:
    """One product of fresh matrices, and the algorithm requested from the library."""

    def __init__(self, rng, folder, m=M, n=N, k=K, kind="bf16"):
        name = {"bf16": "bfloat16", "fp16": "float16"}.get(kind, "float32")
        # Contiguous, and transposed on the right.
        self.a, self.array_a = random_matrix(rng, (m, k), name)
        weights, array_b = random_matrix(rng, (n, k), name)
        self.b, self.array_b = weights.mT, array_b.T
        self.name = name
        self.log = folder / "calls"
        self.signature = signature_of_shape(m, n, k, kind, "NT")
        os.environ["FAKE_CUBLAS_LOG"] = str(self.log)

    def algorithm(self, **keywords):
        self.log.unlink(missing_ok=True)
        got = gt.matmul(self.a, self.b, **keywords).numpy()
        exact = wide(self.array_a) @ wide(self.array_b)
        assert_within(got, exact, bound(self.array_a, self.array_b, self.name))
        (line,) = self.log.read_text().splitlines()
        return algorithm_of(line)


def random_matrix(rng, shape, name):
    _, array = random_tensor(rng, shape, name, "host")
    array = np.ascontiguousarray(array)
    return gt.asarray(array, device="cuda"), array


def algorithm_of(line):
    (numbers,) = [part[5:] for part in line.split("  ") if part.startswith("algo ")]
    return [int(number) for number in numbers.split()]


def row(signature, config=KNOWN):
    named = dict(zip(FIELDS, signature, strict=True))
    return [*(named[name] for name in measured_algorithms.KEY), config]


def table(rows, device="Fake GPU", library=LIBRARY):
    return json.dumps({"sections": [{"device": device, "library": library, "rows": rows}]})


def use(folder, text):
    """Use a text, or bytes, as the file of measured algorithms from the next plan on."""
    path = folder / "measured_algorithms.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    use_file(path)


def use_file(path):
    measured_algorithms.FILE = path
    blas.forget_plans()


@contextlib.contextmanager
def silence():
    """Check that the block prints to neither stream."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield
    assert (out.getvalue(), err.getvalue()) == ("", "")


def test_served(rng, folder):
    """The library is called with the algorithm in a product's row, for that product only."""
    one, other = Product(rng, folder), Product(rng, folder, m=M + 8)
    use(folder, table([]))
    assert one.algorithm() == FIRST
    use(folder, table([row(one.signature)]))
    assert one.algorithm() == KNOWN
    assert one.algorithm() == KNOWN, "planned once"
    assert other.algorithm() == FIRST
    # A bias and an activation belong to the epilogue, whatever the algorithm.
    one.log.unlink()
    bias, array_bias = random_matrix(rng, (N,), one.name)
    got = gt.linear(one.a, one.b.mT, bias, activation="relu").numpy()
    exact = np.maximum(wide(one.array_a) @ wide(one.array_b) + wide(array_bias), 0)
    limit = bound(one.array_a, one.array_b, one.name) + 2.0**-7 * (exact + 8)
    assert_within(got, exact, limit)
    assert algorithm_of(one.log.read_text()) == KNOWN


def test_explicit_settings(rng, folder):
    """A chosen library or padding takes precedence over measured algorithms."""
    one = Product(rng, folder)
    use(folder, table([row(one.signature)]))
    blas.preferred_blas_library("cublaslt")
    assert one.algorithm() == FIRST
    blas.preferred_blas_library("auto")
    for setting in ("never", "inputs", "all"):
        padding(setting)
        blas.forget_plans()
        assert one.algorithm() == FIRST
    padding("auto")
    blas.forget_plans()
    assert one.algorithm() == KNOWN
    with blas.precision(allow_bf16_reduced_precision_reduction=True):
        assert one.algorithm() == KNOWN


def test_other_places(rng, folder):
    """Rows of another device or another major version of the library are ignored."""
    one = Product(rng, folder)
    rows = [row(one.signature)]
    for device, library in (("Other GPU", LIBRARY), ("Fake GPU", 12), ("Fake GPU", 14)):
        use(folder, table(rows, device, library))
        with silence():
            assert one.algorithm() == FIRST, (device, library)
    sections = [json.loads(table(rows, device)) for device in ("Other GPU", "Fake GPU")]
    use(folder, json.dumps({"sections": [part["sections"][0] for part in sections]}))
    assert one.algorithm() == KNOWN


def test_damaged(rng, folder):
    """If the file is damaged, the library's first choice computes the product, without output."""
    one = Product(rng, folder)
    good = row(one.signature)
    *key, _ = good
    rows = (
        [[*key, KNOWN[:-1]]],
        [[*key, [*KNOWN, 0]]],
        [[*key, [*KNOWN[:-1], 1 << 31]]],
        [[*key, [*KNOWN[:-1], 0.5]]],
        [[*key, [*KNOWN[:-1], None]]],
        [[*key, [*KNOWN[:-1], True]]],
        [[*key, "123456789"]],
        [[*key, None]],
        [key],
        [[]],
        [7],
        ["row"],
        {"row": 1},
        None,
        [good, [*key[:-1], [], KNOWN]],
    )
    texts = [table(part) for part in rows]
    whole = table([good])
    cuts = rng.integers(0, len(whole) - 1, 5)
    texts += [whole[:cut] for cut in cuts]
    texts += ["", "[]", "7", "null", '{"sections": 3}', '{"sections": [3]}', "[" * 100_000]
    texts += ['{"sections": [{"device": "Fake GPU"}]}', b"\xff\xfe" + whole.encode("utf-16")]
    texts += [rng.bytes(100)]
    # Well-formed, but not an algorithm of this library.
    texts += [table([row(one.signature, config)]) for config in (REFUSED, UNKNOWN)]
    for text in texts:
        use(folder, text)
        with silence():
            assert one.algorithm() == FIRST, text[:200]
    for path in (folder / "missing.json", folder):
        use_file(path)
        with silence():
            assert one.algorithm() == FIRST, path
    use(folder, whole)
    assert one.algorithm() == KNOWN


@pytest.mark.process(CUBLAS_WORKSPACE_CONFIG=":4:1")
def test_workspaces(rng, folder):
    """An algorithm that needs more workspace than allowed is not used."""
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4:1"
    one = Product(rng, folder)
    greedy = [*KNOWN[:2], 8, 2, *KNOWN[4:]]  # eight parts of 4 KiB each, in fake_cublas.cpp
    use(folder, table([row(one.signature, greedy)]))
    assert one.algorithm() == FIRST_WITHOUT_WORKSPACE
    use(folder, table([row(one.signature)]))
    assert one.algorithm() == KNOWN


def test_tuned(rng, folder):
    """A tuned result takes precedence, also when it is the library's first choice."""
    one = Product(rng, folder)
    use(folder, table([row(one.signature)]))
    assert one.algorithm() == KNOWN
    place = tunable.environment(0)
    entry = {
        **dict(zip(("device", "driver", "library"), place, strict=True)),
        "problem": dict(zip(FIELDS, one.signature, strict=True)),
        "pad": 0,
        "backend": 0,
        "us": 1.0,
        "default_us": 2.0,
        "measured": 2,
    }
    for config, expected in ((TUNED, TUNED), (None, FIRST)):
        path = folder / "tuned.json"
        path.write_text(json.dumps({"results": [{**entry, "config": config}]}))
        tunable.set_filename(path)
        tunable.enable(True)
        assert one.algorithm() == expected
        tunable.enable(False)
        assert one.algorithm() == KNOWN
        tunable.clear()
    # If tuning is enabled without an entry for the product, its measured algorithm applies, even if
    # there is an entry for a near product. Products with neither use the entry of the near product.
    near, other = Product(rng, folder, k=K + 8), Product(rng, folder, k=K + 16)
    problem = dict(zip(FIELDS, near.signature, strict=True))
    path.write_text(json.dumps({"results": [{**entry, "config": TUNED, "problem": problem}]}))
    tunable.enable(True)
    assert near.algorithm() == TUNED
    assert one.algorithm() == KNOWN
    assert other.algorithm() == TUNED


@pytest.mark.process(FAKE_CUDA_NAME="NVIDIA H200", FAKE_CUDA_GIB="8")
def test_shipped(rng, folder):
    """The library is called with the algorithm of each row of the shipped file, for its product.

    The products are captured, so that they are planned but not computed.
    """
    kinds = {numbers: name for name, numbers in KINDS.items()}
    log = folder / "calls"
    os.environ["FAKE_CUBLAS_LOG"] = str(log)
    rows = [
        row
        for section in json.loads(measured_algorithms.FILE.read_text())["sections"]
        if section["device"] == "NVIDIA H200" and section["library"] == LIBRARY
        for row in section["rows"]
    ]
    assert rows
    for *key, config in rows:
        named = dict(zip(measured_algorithms.KEY, key, strict=True))
        kind = kinds[named["type_a"], named["compute"]]
        dtype = {"bf16": "bfloat16", "fp16": "float16"}.get(kind, "float32")
        # The library is column-major: its m is our number of columns.
        n, m, k = named["m"], named["n"], named["k"]
        a = gt.empty((m, k), dtype=dtype, device="cuda")
        b = gt.empty((n, k) if named["op_a"] else (k, n), dtype=dtype, device="cuda")
        out = gt.empty((m, n), dtype=dtype, device="cuda")
        precision = {"tf32": "tf32", "fp32": "highest"}.get(kind)
        log.unlink(missing_ok=True)
        graph = gt.graphs.CUDAGraph()
        with gt.graphs.graph(graph):
            gt.matmul(a, b.mT if named["op_a"] else b, out=out, precision=precision)
        (line,) = log.read_text().splitlines()
        assert algorithm_of(line) == config, (named, line)
        assert line.split("  ")[2] == f"m {n} n {m} k {k}"
        del graph

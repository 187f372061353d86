"""The array API standard 2025.12, function by function, against array_api_strict.

array_api_strict accepts only what the standard allows, so a call that it refuses is not tested.
Every function is called with each dtype, with 0 dimensions, with no elements, with its keywords,
and with numbers in place of tensors. ``DEVIATIONS`` lists where this library deviates, and
docs/array-api.md says why.
"""

import inspect
import operator
from pathlib import Path

import numpy as np
import pytest

import gputensor as gt

strict = pytest.importorskip("array_api_strict", reason="needs array_api_strict: the test extra")
pytestmark = pytest.mark.filterwarnings("ignore")

VERSION = "2025.12"
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
DTYPES += ["complex64", "complex128"]
SHAPES = [(), (0,), (5,), (2, 3), (2, 0, 3), (3, 1, 2)]
#: Functions of the reference that are not in the standard.
OWN = {"ArrayAPIStrictFlags", "ModuleType"}
#: Where array_api_strict allows or returns what this library does not: docs/array-api.md.
DEVIATIONS = (
    "can_cast", "cumulative_sum", "result_type", "floor_divide", "max dimensions", "expm1",
)  # fmt: skip


def functions(module):
    """The public functions of a module of the reference."""
    for name in sorted(set(dir(module)) - OWN):
        found = getattr(module, name)
        is_own = getattr(found, "__module__", "").startswith("array_api_strict")
        if inspect.isfunction(found) and is_own and "strict_flags" not in name:
            if not name.startswith("_") and "requires" not in name:
                yield name


def names(module):
    """The names that the standard gives to functions of a module."""
    listed = getattr(module, "__all__", None)
    return [name for name in functions(module) if listed is None or name in listed]


MAIN = names(strict)
LINALG = names(strict.linalg)
FFT = names(strict.fft)


def data(rng, shape, dtype):
    """Random values, small enough for products; complex values have both parts."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(-5 if dtype.kind == "i" else 0, 6, shape).astype(dtype)
    values = rng.normal(size=shape) * 2
    if dtype.kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return np.asarray(values, dtype)


def same(ours, theirs, what):
    """Equal type, dtype, shape and values, for tensors and for tuples of them."""
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list)), what
        if isinstance(theirs, tuple):
            assert isinstance(ours, tuple), f"{what}: got {type(ours)}; expected a tuple"
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, what)
        return
    if not hasattr(theirs, "_array"):
        assert ours == theirs, what
        return
    expected = np.asarray(theirs._array)
    got = ours.numpy()
    assert got.dtype == expected.dtype, f"{what}: {got.dtype}, not {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: {got.shape}, not {expected.shape}"
    single = got.dtype.itemsize // (2 if got.dtype.kind == "c" else 1) == 4
    eps = (3e-5 if single else 1e-11) if got.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, expected, rtol=eps, atol=eps, err_msg=what)


class Both:
    """The same call with this library and with the reference."""

    def __init__(self, rng, where):
        self.rng, self.where, self.count = rng, where, 0

    def run(self, what, call, *arrays):
        """Compare ``call(xp, *arrays)``, unless the reference refuses it."""
        try:
            theirs = call(strict, *(strict.asarray(one, copy=True) for one in arrays))
        except (TypeError, ValueError, IndexError, AttributeError):
            return
        self.count += 1
        facts = ", ".join(f"{one.dtype}{list(one.shape)}" for one in arrays)
        ours = call(gt, *(gt.asarray(one, device=self.where) for one in arrays))
        same(ours, theirs, f"{what}({facts})")


@pytest.fixture
def both(rng, where):
    with gt.Device(where):
        yield Both(rng, where)


# ---- names and signatures


def standard_parameters(module, name):
    return list(inspect.signature(getattr(module, name)).parameters.values())


@pytest.mark.parametrize(
    ("theirs", "ours", "listed"),
    [(strict, gt, MAIN), (strict.linalg, gt.linalg, LINALG), (strict.fft, gt.fft, FFT)],
    ids=["main", "linalg", "fft"],
)
def test_every_function_has_the_parameters_of_the_standard(theirs, ours, listed):
    assert len(listed) > (120 if theirs is strict else 10)
    for name in listed:
        signature = inspect.signature(getattr(ours, name))
        own = signature.parameters
        position = 0
        for one in standard_parameters(theirs, name):
            if one.kind is one.VAR_POSITIONAL:
                assert any(p.kind is p.VAR_POSITIONAL for p in own.values()), name
            elif one.kind is one.POSITIONAL_ONLY:
                assert list(own.values())[position].kind is not one.KEYWORD_ONLY, name
                position += 1
            else:
                assert one.name in own, f"{name}: no parameter {one.name}"
                assert own[one.name].kind is not one.POSITIONAL_ONLY, f"{name}: {one.name}"
                if one.kind is one.POSITIONAL_OR_KEYWORD:
                    assert list(own)[position] == one.name, f"{name}: {one.name} is elsewhere"
                    position += 1
                required = one.default is one.empty
                assert required or own[one.name].default is not one.empty, f"{name}: {one.name}"


def test_constants_dtypes_and_methods_of_the_standard_exist():
    for name in ("e", "inf", "nan", "newaxis", "pi", "bool", *DTYPES):
        assert hasattr(gt, name), name
    methods = [name for name in dir(strict.asarray(1)) if not name.startswith("_")]
    special = [f"__{name}__" for name in "array_namespace dlpack dlpack_device index".split()]
    for name in (*methods, *special):
        assert hasattr(gt.Tensor, name), name


def test_namespace_reports_its_capabilities(monkeypatch):
    x = gt.ones(2, device="host")
    assert gt.__array_api_version__ == VERSION
    assert x.__array_namespace__(api_version=VERSION) is gt
    assert x.__array_namespace__() is gt
    info = gt.__array_namespace_info__()
    facts = info.capabilities()
    assert facts["boolean indexing"] is facts["data-dependent shapes"] is True
    assert facts["max dimensions"] == 16
    theirs = strict.__array_namespace_info__()
    assert set(info.dtypes()) == set(theirs.dtypes()) == set(DTYPES)
    for kind in ("bool", "integral", "real floating", "complex floating", "numeric"):
        assert set(info.dtypes(kind=kind)) == set(theirs.dtypes(kind=kind)), kind
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", *DTYPES[1:5]}
    monkeypatch.setenv("GPUTENSOR_HOST_DEVICES", "3")
    assert isinstance(info.devices(), tuple)
    assert info.default_device() in info.devices()
    assert [str(device) for device in info.devices()[:3]] == ["host", "host:1", "host:2"]
    assert all("cuda" in str(device) for device in info.devices()[3:])
    assert set(info.default_dtypes()) == set(theirs.default_dtypes())
    with pytest.raises(ValueError, match="api_version"):
        x.__array_namespace__(api_version="2030.12")


# ---- element-wise functions and operators

ONE = [
    name
    for name in MAIN
    if [p.kind.name for p in standard_parameters(strict, name)] == ["POSITIONAL_ONLY"]
    if name not in ("nonzero", "matrix_transpose", "finfo", "iinfo")
    if not name.startswith("unique")
]
TWO = [
    name
    for name in MAIN
    if [p.kind.name for p in standard_parameters(strict, name)] == ["POSITIONAL_ONLY"] * 2
    if name not in ("matmul", "can_cast", "isdtype", "reshape", "broadcast_to", "permute_dims")
    if name not in ("tile", "moveaxis", "expand_dims", "squeeze")
]
# NumPy does not define shifts by counts out of range.
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")


@pytest.mark.parametrize("name", ONE)
def test_function_of_one_tensor(both, name):
    for dtype in DTYPES:
        for shape in SHAPES:
            both.run(name, lambda xp, x: getattr(xp, name)(x), data(both.rng, shape, dtype))
    assert both.count >= len(SHAPES)


def second(rng, name, shape, dtype):
    values = data(rng, shape, dtype)
    if name in SHIFTS or name == "pow" and values.dtype.kind in "iu":
        return np.abs(values)
    if name in ("floor_divide", "remainder") and values.dtype.kind in "iu":
        return np.where(values == 0, values.dtype.type(1), values)
    return values


@pytest.mark.parametrize("name", TWO)
def test_function_of_two_tensors_and_of_numbers(both, name):
    pairs = [((), ()), ((5,), (5,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), (1,)), ((5,), ())]
    for first in DTYPES:
        for other in DTYPES:
            shapes = pairs[both.rng.integers(len(pairs))]
            both.run(
                name,
                lambda xp, x, y: getattr(xp, name)(x, y),
                data(both.rng, shapes[0], first),
                second(both.rng, name, shapes[1], other),
            )
        for number in (True, 2, 1.5, *([2j] if first.startswith("complex") else [])):
            x = data(both.rng, (3,), first)
            both.run(name, lambda xp, x, n=number: getattr(xp, name)(x, n), x)
            x = second(both.rng, name, (3,), first)
            both.run(name, lambda xp, x, n=number: getattr(xp, name)(n, x), x)
    assert both.count >= 3


OPERATORS = """add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift lt le gt ge eq
    ne""".split()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_tensors_and_numbers(both, name):
    function = getattr(operator, name)
    like = {"lshift": SHIFTS[0], "rshift": SHIFTS[1], "floordiv": "floor_divide"}
    like |= {"mod": "remainder"}
    for first in DTYPES:
        for other in DTYPES:
            x = data(both.rng, (3, 3), first)
            y = second(both.rng, like.get(name, name), (3, 3), other)
            both.run(name, lambda xp, x, y: function(x, y), x, y)
            in_place = getattr(operator, "i" + name.rstrip("_"), None)
            if in_place:
                both.run("i" + name, lambda xp, x, y, f=in_place: f(xp.asarray(x), y), x, y)
        for number in (True, 2, 1.5):
            x = second(both.rng, like.get(name, name), (3,), first)
            both.run(name, lambda xp, x, n=number: function(x, n), x)
            both.run(name, lambda xp, x, n=number: function(n, x), x)
    assert both.count >= 4


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert", "index", "truth"])
def test_operators_of_one_tensor(both, name):
    function = getattr(operator, name)
    for dtype in DTYPES:
        for shape in [(), (3,), (0, 2)]:
            both.run(name, lambda xp, x: function(x), data(both.rng, shape, dtype))
    assert both.count >= 3


def test_clip_takes_numbers_tensors_and_none(both):
    for dtype in DTYPES:
        x = data(both.rng, (2, 3), dtype)
        low, high = np.sort(data(both.rng, (2, 3), dtype).real, 0)[:1].astype(dtype), x + x[0, 0]
        both.run("clip", lambda xp, x: xp.clip(x, -1, 2), x)
        both.run("clip", lambda xp, x: xp.clip(x, min=-1), x)
        both.run("clip", lambda xp, x: xp.clip(x, max=1), x)
        both.run("clip", lambda xp, x: xp.clip(x), x)
        both.run("clip", lambda xp, x, a: xp.clip(x, a), x, low)
        both.run("clip", lambda xp, x, a: xp.clip(x, min=None, max=a), x, high)
    assert both.count >= 20


# ---- everything else: calls of one array, by the names of the functions

CALLS = {
    "sum prod max min": """f(x) f(x,axis=0) f(x,axis=-1,keepdims=True) f(x,axis=(0,-1))
        f(x,axis=()) f(x,keepdims=True)""",
    "sum prod": "f(x,dtype=x.dtype)",
    "mean std var": "f(x) f(x,axis=0) f(x,axis=-1,keepdims=True) f(x,axis=(0,-1))",
    "std var": "f(x,correction=1) f(x,axis=0,correction=0.5)",
    "all any count_nonzero": "f(x) f(x,axis=0) f(x,axis=-1,keepdims=True) f(x,axis=(0,-1))",
    "argmax argmin": "f(x) f(x,axis=0) f(x,axis=-1,keepdims=True) f(x,keepdims=True)",
    "cumulative_sum cumulative_prod": """f(x,axis=None) f(x,axis=0)
        f(x,axis=-1,include_initial=True)
        f(x,axis=0,dtype=x.dtype)""",
    "diff": "f(x) f(x,axis=0) f(x,n=2) f(x,axis=0,prepend=x,append=x)",
    "sort": "f(x) f(x,axis=0) f(x,descending=True) f(x,stable=False)",
    "argsort": "f(x,axis=-1) f(x,axis=0) f(x,axis=-1,descending=True)",
    "unique_values unique_counts": "f(x)",
    "unique_inverse unique_all": "f(x).values f(x).inverse_indices.shape f(x)[-1].dtype==xp.int64",
    "nonzero": "f(x)",
    "searchsorted": """f(xp.sort(x),x) f(xp.sort(x),x,side='right') f(xp.sort(x),2)
        f(x,x,sorter=xp.argsort(x))""",
    "isin": "f(x,x[:1]) f(x,2) f(2,x)",
    "take": "f(x,xp.asarray([1,0,-1]),axis=0) f(x,xp.asarray([],dtype=xp.int64),axis=-1)",
    "take_along_axis": "f(x,xp.argsort(x,axis=0),axis=0) f(x,xp.argsort(x))",
    "where": "f(x!=0,x,x+x) f(x!=0,x,2) f(x!=0,2,x) f(x!=0,x[:1],x)",
    "concat": "f([x,x]) f((x,x),axis=-1) f([x,x],axis=None) f([x])",
    "stack": "f([x,x]) f((x,x),axis=-1) f([x],axis=1)",
    "unstack": "f(x) f(x,axis=-1)",
    "expand_dims": "f(x,0) f(x,axis=-1) f(x,1)",
    "squeeze": "f(xp.expand_dims(x,0),0) f(xp.expand_dims(x,1),axis=(1,)) f(x,axis=())",
    "flip": "f(x) f(x,axis=0) f(x,axis=(0,-1))",
    "roll": "f(x,1) f(x,-2,axis=0) f(x,(1,2),axis=(0,-1))",
    "repeat": "f(x,2) f(x,3,axis=0) f(x,xp.asarray([0,2,1]),axis=0) f(x,xp.asarray(2),axis=-1)",
    "tile": "f(x,(2,)) f(x,(2,1,3)) f(x,())",
    "moveaxis": "f(x,0,-1) f(x,(0,),(1,))",
    "permute_dims": "f(x,(1,0)) f(x,axes=(0,1))",
    "matrix_transpose": "f(x)",
    "reshape": "f(x,(-1,)) f(x,(3,-1),copy=True) f(x,shape=(-1,1)) f(x,(-1,),copy=None)",
    "broadcast_to": "f(x,(2,*x.shape)) f(x[:1],shape=(4,*x.shape[1:]))",
    "broadcast_arrays": "f(x,x[:1]) f(x) f(x,xp.asarray(True))",
    "broadcast_shapes": "f(x.shape,(1,)) f(()) f((2,1),(3,))",
    "meshgrid": """f(x[0,:]) f(x[0,:],x[0,:]) f(x[0,:],x[0,:],indexing='ij')
        f(x[0,:],x[0,:2],x[0,:])""",
    "tril triu": "f(x) f(x,k=1) f(x,k=-5)",
    "matmul vecdot tensordot": "f(x,x)",
    "matmul ": "f(x,xp.matrix_transpose(x)) f(x[0,:],x) f(x,x[:,0]) f(x[0,:],x[0,:])",
    "vecdot": "f(x,x,axis=-2)if(x.ndim>1)else(f(x,x)) f(x,x[0,:])",
    "tensordot": "f(x,x,axes=1) f(x,x,axes=((0,),(0,))) f(x,x,axes=0) f(x,x,axes=((0,1),(0,1)))",
    "astype": "f(x,xp.float64) f(x,xp.int64,copy=False) f(x,xp.bool) f(x,x.dtype,copy=True)",
    "asarray": "f(x) f(x,copy=True) f(x,dtype=x.dtype) f([True,False]) f([[1,2],[3,4]])",
    "empty_like": "f(x).shape f(x,dtype=xp.int8).dtype==xp.int8",
    "zeros_like ones_like": "f(x) f(x,dtype=xp.int16) f(x,device=x.device)",
    "full_like": "f(x,1) f(x,True) f(x,2,dtype=xp.float64)",
    "empty": "f((2,3),dtype=x.dtype).shape f(3).shape",
    "zeros ones": "f((2,3),dtype=x.dtype) f(3,dtype=xp.int8) f((),dtype=x.dtype)",
    "full": "f((2,3),1,dtype=x.dtype) f(2,True) f((2,),3) f((),2.5,dtype=xp.float64)",
    "eye": "f(3,dtype=x.dtype) f(2,4,k=1,dtype=x.dtype) f(3,2,k=-1,dtype=x.dtype)",
    "arange": """f(5) f(2,9,3) f(5,0,-1) f(2,dtype=x.dtype) f(0.5,4,dtype=xp.float32)
        f(3,1)""",
    "linspace": """f(0,1,5,dtype=xp.float64) f(0,1,num=4,endpoint=False,dtype=xp.float32)
        f(1,2,1,dtype=xp.float64) f(1,2,0,dtype=xp.float32)""",
    "result_type": """f(x,x)==x.dtype f(xp.int8,xp.int16)==xp.int16 f(x.dtype,x)==x.dtype
        f(xp.float32,xp.complex64)==xp.complex64 f(xp.uint8,xp.int8)==xp.int16
        f(x,1)==x.dtype f(xp.float32,1.0)==xp.float32""",
    "can_cast": "f(x,x.dtype) f(xp.int8,xp.int16) f(xp.int16,xp.int8) f(x.dtype,x.dtype)",
    "isdtype": "f(x.dtype,'numeric') f(x.dtype,('bool','integral')) f(x.dtype,x.dtype)",
    "finfo": "f(x).bits f(xp.float32).max f(xp.float64).eps f(x).smallest_normal f(x).min",
    "iinfo": "f(x).bits f(xp.int8).max f(xp.uint64).max f(x).min",
    "from_dlpack": "f(x) f(x,copy=True) f(x,copy=None)",
}
COVERED = {name for key in CALLS for name in key.split()} | {*ONE, *TWO, "clip"}


def test_every_function_of_the_standard_is_called():
    assert not set(MAIN) - COVERED


def call_of(text, name):
    code = compile(text, name, "eval")
    return lambda xp, x: eval(code, {"f": getattr(xp, name), "x": x, "xp": xp})


@pytest.mark.parametrize(
    ("name", "texts"),
    [(name, texts.split()) for key, texts in CALLS.items() for name in key.split()],
    ids=[f"{name}-{at}" for at, key in enumerate(CALLS) for name in key.split()],
)
def test_function_gives_what_the_standard_says(both, name, texts):
    for text in texts:
        before = both.count
        for dtype in DTYPES:
            for shape in [(3, 3), (3,), (3, 0), *([()] if "axis" not in text else [])]:
                call = call_of(text, name)
                both.run(f"{name}: {text}", call, data(both.rng, shape, dtype))
        assert both.count > before, f"{name}: the reference refuses {text} for every dtype"


# ---- indexing

KEYS = [
    "x[0,...]", "x[-1,...]", "x[1:,::2]", "x[::-1,None,...]", "x[...,0]", "x[None,...,None]",
    "x[()]",
    "x[x!=0]", "x[xp.asarray(True)]", "x[xp.asarray(False)]",
    "x[xp.asarray([0,1,2]),xp.asarray([0,0,1])]",
    "x[xp.asarray([0,1]),xp.asarray([1,0])]", "x[1:1,...]", "x[:,1:3]",
]  # fmt: skip


@pytest.mark.parametrize("text", KEYS)
def test_indexing_gives_what_the_standard_says(both, text):
    for dtype in DTYPES:
        for shape in [(3, 3), ()]:
            x = data(both.rng, shape, dtype)
            both.run(text, lambda xp, x: eval(text, {"x": x, "xp": xp}), x)
    assert both.count >= len(DTYPES) - 1


def assigned(text, xp, x):
    x = xp.asarray(x, copy=True)
    exec(text, {"x": x, "xp": xp, "n": 1})
    return x


@pytest.mark.parametrize(
    "text",
    [
        "x[0,...]=n",
        "x[1:,...]=x[:-1,...]",
        "x[x!=0]=n",
        "x[...]=x[0:1,...]",
        "x[xp.asarray(True)]=n",
    ]
    + ["x[xp.asarray(False)]=n", "x[:,0]=x[0,:]"],
)
def test_assignment_gives_what_the_standard_says(both, text):
    for dtype in DTYPES:
        for shape in [(3, 3), (4,), ()]:
            x = data(both.rng, shape, dtype)
            both.run(text, lambda xp, x: assigned(text, xp, x), x)
    assert both.count >= len(DTYPES)


# ---- linalg and fft

SQUARE = {
    "cholesky": "f(x@xp.matrix_transpose(xp.conj(x))+3*xp.eye(3,dtype=x.dtype))",
    "cross": "f(x,x[::-1,:]) f(x,x+x,axis=-1)",
    "det slogdet inv": "f(x)",
    "diagonal trace": "f(x) f(x,offset=1) f(x,offset=-1)",
    "eigvalsh": "f(x+xp.matrix_transpose(xp.conj(x)))",
    "eigh": "f(x+xp.matrix_transpose(xp.conj(x))).eigenvalues",
    "matmul vecdot tensordot": "f(x,x)",
    "outer": "f(x[0,:],x[1,:])",
    "matrix_norm": """f(x) f(x,ord=1) f(x,ord=-1) f(x,ord=2) f(x,ord='nuc') f(x,ord=xp.inf)
        f(x,keepdims=True)""",
    "vector_norm": "f(x) f(x,axis=0) f(x,ord=1,axis=-1,keepdims=True) f(x,ord=xp.inf) f(x,ord=3)",
    "matrix_power": "f(x,2) f(x,0) f(x,-1)",
    "matrix_rank": "f(x) f(x,rtol=0.1)",
    "matrix_transpose": "f(x)",
    "pinv": "f(x) f(x[:,:2]) f(x,rtol=1e-3)",
    "qr": "f(x).Q@f(x).R f(x[:,:2],mode='reduced').R.shape f(x[:,:2],mode='complete').Q.shape",
    "solve": "f(x,x[:,0]) f(x,x+x)",
    "svd": "f(x).S f(x[:,:2],full_matrices=False).U.shape f(x[:,:2]).U.shape",
    "svdvals": "f(x) f(x[:2,:])",
}
TRANSFORMS = {
    "fft ifft": "f(x) f(x,n=2) f(x,n=5,axis=0) f(x,norm='ortho') f(x,norm='forward')",
    "fftn ifftn": "f(x) f(x,axes=(0,)) f(x,s=(2,4),axes=(0,1)) f(x,norm='ortho')",
    "rfft": "f(x) f(x,n=4,axis=0) f(x,norm='forward')",
    "irfft": "f(x) f(x,n=5) f(x,n=4,axis=0,norm='ortho')",
    "rfftn": "f(x) f(x,axes=(0,)) f(x,s=(2,4),axes=(0,1))",
    "irfftn": "f(x) f(x,axes=(0,)) f(x,s=(3,4),axes=(0,1))",
    "hfft ihfft": "f(x) f(x,n=4) f(x,axis=0,norm='ortho')",
    "fftfreq rfftfreq": "f(5) f(4,d=0.5) f(5,dtype=x.dtype)",
    "fftshift ifftshift": "f(x) f(x,axes=0) f(x,axes=(0,1))",
}


@pytest.mark.parametrize(("module", "table"), [("linalg", SQUARE), ("fft", TRANSFORMS)])
def test_every_function_of_the_extension_is_called(module, table):
    listed = LINALG if module == "linalg" else FFT
    assert set(listed) == {name for key in table for name in key.split()}


@pytest.mark.parametrize(
    ("module", "name", "texts"),
    [
        (module, name, texts.split())
        for module, table in (("linalg", SQUARE), ("fft", TRANSFORMS))
        for key, texts in table.items()
        for name in key.split()
    ],
)
def test_extension_gives_what_the_standard_says(both, module, name, texts):
    for text in texts:
        before = both.count
        for dtype in ("int64", "float32", "float64", "complex64", "complex128"):
            x = data(both.rng, (3, 3), dtype)
            x = x + np.eye(3, dtype=x.dtype) * 4 if module == "linalg" else x
            # The default dtype of frequencies is float32 here, float64 in the reference.
            if name in ("fftfreq", "rfftfreq") and "dtype" not in text:
                text = text.replace(")", ",dtype=xp.float64)")
            code = compile(text, name, "eval")

            def call(xp, x, code=code):
                return eval(code, {"f": getattr(getattr(xp, module), name), "x": x, "xp": xp})

            both.run(f"{module}.{name}: {text}", call, x)
        assert both.count > before, f"{name}: the reference refuses {text} for every dtype"


def test_deviations_are_in_the_documentation():
    text = (Path(__file__).parents[3] / "docs/array-api.md").read_text()
    for name in DEVIATIONS:
        assert f"`{name}`" in text, name

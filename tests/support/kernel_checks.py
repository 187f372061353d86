"""Checks of the kernels that run on any device: the host tests and the GPU tests both call them."""

import itertools

import numpy as np

from gputensor._arrays.element_types import CODE_OF, DTYPES
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from tests.support import device_array
from tests.support.device_array import DeviceArray
from tests.support.kernel_reference import (
    BOOLEAN,
    PARTS,
    REAL_OF,
    TOLERANCE,
    assert_close,
    reference,
    sample,
    widen,
)

OPS = {row.name: row for row in ELEMENTWISE}
REDS = {row.name: row for row in REDUCTIONS}
# Sums of large and small parts: the error is relative to the parts, not to the difference.
CANCELLING = ("mod", "gelu", "gelu_tanh", "sub", "add", "sinc", "lgamma", "digamma")
CANCELLING += ("j0", "j1", "y0", "y1", "polygamma", "expi", "gammaincinv", "gammainccinv")
COMPUTED = tuple(row.code for row in DTYPES if row.kind != "small")


def empty_like_shape(code, shape, device, stream=0, offset=0):
    """Return a poisoned C-ordered array."""
    size = int(np.prod(shape, dtype=np.int64))
    memory = DeviceArray.empty(size * DTYPES[code].itemsize + offset, device, stream)
    strides = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
    return memory.view(code, shape, strides, offset)


def upload(view, device, stream=0, offset=0):
    """Return the device twin of a NumPy view: the same strides over a copy of its base."""
    view = base = np.asarray(view)
    while isinstance(base.base, np.ndarray):
        base = base.base
    whole = DeviceArray.from_numpy(base.reshape(-1), device, stream, offset)
    start = view.ctypes.data - base.ctypes.data
    strides = [step // view.itemsize for step in view.strides]
    return whole.view(CODE_OF[view.dtype], view.shape, strides, start)


def out_code(name, code):
    """Return the dtype of an operation's result."""
    if name in BOOLEAN:
        return 0
    return REAL_OF.get(code, code) if name in PARTS else code


def check_operation(device, name, code, rng, shape=(3, 341), stream=0, scalars=()):
    """Run one operation on fresh contiguous input; inputs named in `scalars` are Python scalars."""
    row = OPS[name]
    inputs = [sample(rng, name, number, code, shape) for number in range(row.arity)]
    arguments = []
    for number, array in enumerate(inputs):
        if number in scalars:
            inputs[number] = np.full(shape, array.flat[0], array.dtype)
            arguments.append(widen(array).flat[0].item())
        else:
            arguments.append(DeviceArray.from_numpy(array, device, stream))
    out = empty_like_shape(out_code(name, code), shape, device, stream)
    device_array.elementwise(row.code, code, out, arguments, stream)
    inputs = [widen(array) for array in inputs]
    expected = reference(name, inputs)
    what = f"{name} {DTYPES[code].name}"
    assert_close(out.numpy(stream), expected, code, what, scale_of(name, code, inputs, expected))


def scale_of(name, code, inputs, expected):
    """Return the magnitude to which errors are relative, or None for the result's own."""
    if DTYPES[code].kind != "complex" and name not in CANCELLING:
        return None
    with np.errstate(all="ignore"):
        scale = np.abs(expected) + sum(np.abs(array) for array in inputs)
        # the slope beside a pole
        return scale * (1 + np.abs(expected)) if name in ("tan", "tanh", "digamma") else scale


def random_view(rng, code, shape, kind):
    """Return a fresh array of `shape` with strides of the given kind."""
    ndim = len(shape)
    make = lambda size: sample(rng, "add", 0, code, size)  # noqa: E731
    if kind == "contiguous" or ndim == 0:
        return np.asarray(make(shape))
    if kind == "transposed":
        order = rng.permutation(ndim)
        return make(tuple(shape[axis] for axis in order)).transpose(np.argsort(order))
    if kind == "sliced":
        steps = [int(rng.integers(1, 4)) for _ in shape]
        base = make(tuple(n * step + 1 for n, step in zip(shape, steps, strict=True)))
        return base[tuple(slice(1, 1 + n * s, s) for n, s in zip(shape, steps, strict=True))]
    if kind == "reversed":
        return make(shape)[tuple(slice(None, None, int(rng.choice([-1, 1]))) for _ in shape)]
    if kind == "padded":
        base = make((*shape[:-1], shape[-1] + 3))
        return base[..., : shape[-1]]
    kept = [n if rng.random() < 0.5 else 1 for n in shape]
    return np.broadcast_to(make(tuple(kept)), shape)


LAYOUTS = ("contiguous", "transposed", "sliced", "reversed", "padded", "broadcast")


def check_layouts(device, code, rng, shape, kinds, offset=0, stream=0):
    """Run add and where with inputs and an output of the given layouts."""
    views = [random_view(rng, code, shape, kind) for kind in kinds]
    inputs = [upload(view, device, stream, offset) for view in views]
    target = random_view(rng, code, shape, "contiguous" if kinds[0] == "broadcast" else kinds[0])
    before = np.array(target.base if target.base is not None else target)
    out = upload(target, device, stream, offset)
    device_array.elementwise(OPS["add"].code, code, out, inputs, stream)
    expected = reference("add", [widen(view) for view in views])
    what = f"add {DTYPES[code].name} {shape} {kinds} offset {offset}"
    with np.errstate(all="ignore"):
        scale = np.abs(expected) + sum(np.abs(widen(view)) for view in views)
    assert_close(out.numpy(stream), expected, code, what, scale)
    _check_untouched(out, target, before, stream, what)


def spaced_view(rng, code, shape, step):
    """Return a fresh array whose neighbours along the last axis are `step` elements apart.

    It begins up to 20 elements into its memory, and its rows may have gaps.
    """
    start = int(rng.integers(20))
    length = shape[-1] * abs(step) + int(rng.choice([0, 8, int(rng.integers(20))]))
    base = sample(rng, "add", 0, code, (start + int(np.prod(shape[:-1])) * length,))
    rows = base[start:].reshape(*shape[:-1], length)[..., : shape[-1] * abs(step)]
    return rows[..., ::step]


def check_spaced(device, code, rng, shape, steps, stream=0):
    """Copy, or add, inputs of the given steps to contiguous memory."""
    views = [spaced_view(rng, code, shape, step) for step in steps]
    inputs = [upload(view, device, stream) for view in views]
    name = "copy" if len(steps) == 1 else "add"
    out = empty_like_shape(code, shape, device, stream)
    device_array.elementwise(OPS[name].code, code, out, inputs, stream)
    what = f"{name} {DTYPES[code].name} {shape} {steps}"
    if name == "copy":
        assert out.numpy(stream).tobytes() == np.ascontiguousarray(views[0]).tobytes(), what
        return
    expected = reference(name, [widen(view) for view in views])
    with np.errstate(all="ignore"):
        scale = np.abs(expected) + sum(np.abs(widen(view)) for view in views)
    assert_close(out.numpy(stream), expected, code, what, scale)


def _check_untouched(out, target, before, stream, what):
    """Check that bytes of the output's memory outside its elements keep their values."""
    base = target
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is target:
        return
    start = target.ctypes.data - base.ctypes.data
    whole = out.view(out.dtype, (base.size,), (1,), -start).numpy(stream)
    mask = np.zeros(base.shape, bool)
    steps = [step // target.itemsize for step in target.strides]
    inside = np.ndarray(target.shape, bool, mask, start // target.itemsize, steps)
    inside[...] = True
    outside = ~mask.reshape(-1)
    assert whole[outside].tobytes() == before.reshape(-1)[outside].tobytes(), what


def check_cast(device, source, target, rng, stream=0):
    """Check that COPY from one dtype to another agrees with NumPy's astype."""
    kind = DTYPES[source].kind
    kinds = {kind, DTYPES[target].kind}
    low = 0 if "uint" in kinds else -100
    values = rng.uniform(low, 100, (7, 33))
    if kind in ("int", "uint"):
        values = np.round(values)
    array = values.astype(np.complex128 if kind == "complex" else np.float64)
    if kind == "complex":
        array = array + 1j * rng.uniform(-3, 3, array.shape)
    array[:, ::5] = 0
    array = array.astype(DTYPES[source].numpy)
    wanted = array.real if kind == "complex" and DTYPES[target].kind != "complex" else array
    dtype = DTYPES[target].numpy
    expected = (array != 0) if target == 0 else wanted.astype(dtype)
    out = empty_like_shape(target, array.shape, device, stream)
    inputs = [DeviceArray.from_numpy(array, device, stream)]
    device_array.elementwise(OPS["copy"].code, target, out, inputs, stream)
    got = out.numpy(stream)
    assert got.tobytes() == expected.tobytes(), f"{DTYPES[source].name} -> {DTYPES[target].name}"


def check_copy(device, code, rng, shape, order, stream=0):
    """Check that COPY of a permuted array into C order moves every bit."""
    base = sample(rng, "add", 0, code, tuple(shape[axis] for axis in order))
    view = base.transpose(np.argsort(order))
    out = empty_like_shape(code, view.shape, device, stream)
    device_array.elementwise(OPS["copy"].code, code, out, [upload(view, device, stream)], stream)
    assert out.numpy(stream).tobytes() == np.ascontiguousarray(view).tobytes(), (shape, order)


def check_turned(device, code, rng, edge, stream=0):
    """Transpose matrices of whole chunks of 16 bytes, by tiles with `edge` bytes in a row.

    With 256 the matrices have as many tiles as a device of one multiprocessor needs.
    """
    least, batch = (64, 1) if edge == 256 else (4, int(rng.integers(1, 4)))
    lanes = 16 // DTYPES[code].itemsize
    rows, columns = (int(count) * lanes for count in least + rng.integers(1, 8, 2))
    check_copy(device, code, rng, (batch, rows, columns), (0, 2, 1), stream)


def reduction_compute(name, code):
    """Return (compute dtype, output dtype), or None when the reduction does not exist."""
    kind = DTYPES[code].kind
    if name in ("sum", "prod") and kind in ("bool", "int", "uint"):
        code = 8 if kind == "uint" else 4
    if kind not in REDS[name].kinds:
        return None
    if name.startswith("arg"):
        return code, 4
    return code, (0 if name in ("any", "all") else code)


def sample_reduced(rng, name, code, shape):
    """Return input for a reduction: products stay near 1, truth values are rare."""
    kind = DTYPES[code].kind
    if kind == "bool" or name in ("any", "all"):
        chance = {"any": 0.002, "all": 0.998}.get(name, 0.5)
        return (rng.random(shape) < chance).astype(DTYPES[code].numpy)
    if kind in ("int", "uint"):
        low = -9 if kind == "int" else 0
        return rng.integers(low, 10, shape).astype(DTYPES[code].numpy)
    values = rng.standard_normal(shape)
    if name == "prod":
        values = 1 + values * 1e-3
    if kind == "complex":
        values = values + (0.001 if name == "prod" else 1) * 1j * rng.standard_normal(shape)
    if name in ("argmax", "argmin", "max", "min"):
        values = np.round(values * 8) / 8
    return values.astype(DTYPES[code].numpy)


def _exact_reduction(name, values, axes):
    if name.startswith("arg"):
        kept = [axis for axis in range(values.ndim) if axis not in axes]
        flat = values.transpose(kept + list(axes)).reshape([values.shape[a] for a in kept] + [-1])
        return getattr(np, name)(flat, axis=-1)
    return getattr(np, name)(values, axis=tuple(axes))


def check_reduction(device, name, code, rng, view_of, shape, axes, stream=0):
    """Reduce fresh input, seen through `view_of`, and compare with float64."""
    dtypes = reduction_compute(name, code)
    if dtypes is None:
        return
    compute, result = dtypes
    view = view_of(np.asarray(sample_reduced(rng, name, code, shape)))
    if name in ("max", "argmin") and DTYPES[code].kind == "float" and rng.random() < 0.3:
        view.flat[0] = np.nan
    wide = widen(view)
    if name in ("sum", "prod") and DTYPES[compute].kind in ("int", "uint"):
        wide = wide.astype(DTYPES[compute].numpy)
    with np.errstate(all="ignore"):
        expected = np.asarray(_exact_reduction(name, wide, axes))
        scale = None
        if name in ("sum", "mean"):
            scale = np.asarray(_exact_reduction(name, np.abs(wide), axes))
        elif name in ("var", "std"):
            # Differences from the mean are rounded relative to the values.
            spread = np.sqrt(expected) if name == "var" else 1
            scale = expected + spread * np.asarray(_exact_reduction("max", np.abs(wide), axes)) / 16
        elif name == "prod":
            count = view.size / max(expected.size, 1)
            scale = np.abs(expected) * max(1, count / 8)
    kept = [n for axis, n in enumerate(view.shape) if axis not in axes]
    out = empty_like_shape(result, kept, device, stream)
    array = upload(view, device, stream)
    device_array.reduce(REDS[name].code, compute, out, array, axes, stream)
    what = f"{name} {DTYPES[code].name} {view.shape} {view.strides} over {axes}"
    assert_close(out.numpy(stream), expected, result, what, scale)


def check_gather(device, code, rng, shape, first, index_shapes, index_code=4, stream=0):
    """Check that gather and scatter with index arrays (some negative) agree with NumPy."""
    source = sample(rng, "add", 0, code, shape)
    common = np.broadcast_shapes(*index_shapes)
    indices = []
    for number, index_shape in enumerate(index_shapes):
        length = shape[first + number]
        low = -length if DTYPES[index_code].kind == "int" else 0
        index = rng.integers(low, length, index_shape).astype(DTYPES[index_code].numpy)
        indices.append(np.broadcast_to(index, common))
    key = (slice(None),) * first + tuple(index.astype(np.int64) for index in indices)
    expected = source[key]
    arrays = [upload(index, device, stream) for index in indices]
    out = empty_like_shape(code, expected.shape, device, stream)
    device_array.gather(out, DeviceArray.from_numpy(source, device, stream), first, arrays, stream)
    assert out.numpy(stream).tobytes() == expected.tobytes()

    # Scatter distinct rows, so that the order of the writes does not matter.
    count = min(shape[first], 5)
    rows = rng.permutation(shape[first])[:count]
    values = sample(rng, "add", 0, code, (*shape[:first], count, *shape[first + 1 :]))
    wanted = source.copy()
    wanted[(slice(None),) * first + (rows,)] = values
    target = DeviceArray.from_numpy(source, device, stream)
    device_array.scatter(
        target,
        first,
        [DeviceArray.from_numpy(rows.astype(DTYPES[index_code].numpy), device, stream)],
        DeviceArray.from_numpy(values, device, stream),
        stream,
    )
    assert target.numpy(stream).tobytes() == wanted.tobytes()


def layout_cases(shapes, kinds=LAYOUTS):
    """Return (shape, kinds of two inputs) for every pair of layouts."""
    pairs = list(itertools.product(kinds, kinds))
    return [(shape, pair) for shape in shapes for pair in pairs]


def check_arange(device, code, length, start, step, stream=0):
    """Check a progression into every second element."""
    element = DTYPES[code]
    out = empty_like_shape(code, (2 * length,), device, stream).view(code, (length,), (2,))
    device_array.arange(out, start, step, int(start), int(step), stream)
    steps = np.arange(length)
    if element.kind in ("int", "uint"):
        expected = (int(start) + steps * int(step)).astype(element.numpy)
    else:
        expected = (start + steps * step).astype(element.numpy)
    assert_close(out.numpy(stream), widen(expected), code, f"arange {element.name}")


__all__ = [name for name in dir() if name.startswith("check_")] + ["TOLERANCE"]

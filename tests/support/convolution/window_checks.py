"""Random convolutions and poolings on any device, against direct loops in float64."""

import itertools

import numpy as np

import gputensor as gt
from gputensor import blas
from tests.support.row_checks import DTYPES, ROUNDING

FORMATS = {1: (None, "NLC"), 2: (None, "NHWC"), 3: (None, "NDHWC")}
ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def padded(x, pads, value):
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=value)


def convolved(x, weight, stride, pads, dilation, groups):
    """Compute a convolution by its definition, one result after the other."""
    x = padded(x, pads, 0)
    kernel = weight.shape[2:]
    counts = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    out = np.zeros((x.shape[0], weight.shape[0], *counts))
    inner, each = weight.shape[1], weight.shape[0] // groups
    for place in itertools.product(*map(range, counts)):
        cut = tuple(
            slice(p * s, p * s + d * (k - 1) + 1, d)
            for p, s, d, k in zip(place, stride, dilation, kernel, strict=True)
        )
        for group in range(groups):
            patch = x[(slice(None), slice(group * inner, (group + 1) * inner), *cut)]
            part = weight[group * each : (group + 1) * each]
            out[(slice(None), slice(group * each, (group + 1) * each), *place)] = (
                patch.reshape(len(x), -1) @ part.reshape(each, -1).T
            )
    return out


def spread(x, weight, stride, pads, more, dilation, groups):
    """Compute a transposed convolution: each element adds its kernel."""
    kernel = weight.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + m
        for n, k, s, d, m in zip(x.shape[2:], kernel, stride, dilation, more, strict=True)
    ]
    each, inner = weight.shape[1], weight.shape[0] // groups
    out = np.zeros((x.shape[0], each * groups, *full))
    for place in itertools.product(*map(range, x.shape[2:])):
        cut = tuple(
            slice(p * s, p * s + d * (k - 1) + 1, d)
            for p, s, d, k in zip(place, stride, dilation, kernel, strict=True)
        )
        for group in range(groups):
            channels = slice(group * inner, (group + 1) * inner)
            outputs = slice(group * each, (group + 1) * each)
            element = x[(slice(None), channels, *place)]
            out[(slice(None), outputs, *cut)] += np.tensordot(element, weight[channels], 1)
    cut = tuple(slice(b, n - e) for (b, e), n in zip(pads, full, strict=True))
    return out[(slice(None), slice(None), *cut)]


def laid_out(rng, array, device):
    """Return a tensor of these elements, in one of several memory orders."""
    kind = rng.integers(4)
    if kind == 0:
        return gt.asarray(np.ascontiguousarray(array), device=device)
    if kind == 1:
        moved = np.ascontiguousarray(np.moveaxis(array, 1, -1))
        return gt.moveaxis(gt.asarray(moved, device=device), -1, 1)
    if kind == 2:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::2] = array
        return gt.asarray(wide, device=device)[..., ::2]
    turned = gt.asarray(np.ascontiguousarray(array.T), device=device)
    return gt.permute_dims(turned, tuple(range(array.ndim))[::-1])


def close(what, got, want, dtype, magnitude):
    """Check a result within its rounding and those of a sum of terms of this magnitude."""
    unit, least = ROUNDING[dtype]
    arithmetic = 2.0**-53 if dtype == "float64" else 2.0**-24
    got = got.numpy().astype(np.float64)
    assert got.shape == want.shape, (what, got.shape, want.shape)
    bound = 1.01 * unit * np.abs(want) + least + 40 * arithmetic * (magnitude + np.abs(want))
    wrong = ~(np.abs(got - want) <= bound)
    assert not wrong.any(), f"{what}: {got[wrong][:3]}, not {want[wrong][:3]}, {wrong.sum()}"


def check_again(first, second):
    """Check that a second call with the same arguments has the same bits, strides and shape."""
    assert (first.shape, first.strides) == (second.shape, second.strides)
    assert first.numpy().tobytes() == second.numpy().tobytes()


def convolution_program(rng, device, most=12, spatial=None, dtype=None):
    """Check one random convolution, transposed or not."""
    dtype = dtype or str(rng.choice(list(ROUNDING)))
    spatial = spatial or int(rng.choice([1, 2, 2, 2, 3]))
    most = most if spatial < 3 else 5
    kernel = tuple(int(n) for n in rng.integers(1, 5 if spatial < 3 else 3, spatial))
    stride = tuple(int(n) for n in rng.integers(1, 4, spatial))
    dilation = tuple(int(n) for n in rng.integers(1, 3, spatial))
    pads = [tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in kernel]
    groups = int(rng.choice([1, 1, 2, 3]))
    inner, each = int(rng.choice([1, 2, 3, 5, 8, 16])), int(rng.choice([1, 2, 4, 7, 24]))
    if rng.integers(4) == 0:
        groups, inner = int(rng.choice([3, 8, 16])), 1
        each = int(rng.choice([1, 1, 2]))
    is_turned = rng.integers(3) == 0
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    extents = [int(rng.integers(max(1, r - b - e), r + most))
               for r, (b, e) in zip(reach, pads, strict=True)]  # fmt: skip
    if rng.integers(4) == 0:
        # One element: a product, of all pixels or of some, where none of them is padding.
        kernel, dilation = (1,) * spatial, (1,) * spatial
        stride = stride if rng.integers(2) else (1,) * spatial
        pads = [(0, int(rng.choice([0, 0, 1, 2]))) for _ in kernel]
    x = rng.standard_normal((int(rng.integers(1, 4)), groups * inner, *extents))
    x = x.astype(DTYPES[dtype])
    shape = (groups * inner, each) if is_turned else (groups * each, inner)
    weight = rng.standard_normal((*shape, *kernel)).astype(DTYPES[dtype])
    exact = x.astype(float), weight.astype(float)
    how = {"stride": stride, "padding": pads, "dilation": dilation, "groups": groups}
    if is_turned:
        more = tuple(int(rng.integers(0, max(s, d))) for s, d in zip(stride, dilation, strict=True))
        full = [(n - 1) * s + d * (k - 1) + 1 + m for n, s, d, k, m in
                zip(extents, stride, dilation, kernel, more, strict=True)]  # fmt: skip
        if any(n <= b + e for n, (b, e) in zip(full, pads, strict=True)):
            pads = [(0, 0)] * spatial
        how |= {"output_padding": more, "padding": pads}
        given = (stride, pads, more, dilation, groups)
        want, magnitude = spread(*exact, *given), spread(*map(np.abs, exact), *given)
    else:
        given = (stride, pads, dilation, groups)
        want, magnitude = convolved(*exact, *given), convolved(*map(np.abs, exact), *given)
    tensors = [laid_out(rng, one, device) for one in (x, weight)]
    beside = (-1, *(1,) * spatial)
    if rng.integers(2):
        bias = rng.standard_normal(want.shape[1]).astype(DTYPES[dtype])
        how["bias"] = gt.asarray(bias, device=device)
        want = want + bias.astype(float).reshape(beside)
        magnitude = magnitude + np.abs(bias.astype(float)).reshape(beside)
    if rng.integers(3) == 0:
        addend = rng.standard_normal(want.shape).astype(DTYPES[dtype])
        how["addend"] = laid_out(rng, addend, device)
        want = want + addend.astype(float)
        magnitude = magnitude + np.abs(addend.astype(float))
    how["activation"] = activation = [*ACTIVATIONS][rng.integers(len(ACTIVATIONS))]
    want = ACTIVATIONS[activation](want)
    data_format = FORMATS[spatial][rng.integers(2)]
    if data_format:
        how["data_format"] = data_format
        tensors[0] = gt.moveaxis(tensors[0], 1, -1)
        if "addend" in how:
            how["addend"] = gt.moveaxis(how["addend"], 1, -1)
        want, magnitude = (np.moveaxis(one, 1, -1) for one in (want, magnitude))
    name = f"conv_transpose{spatial}d" if is_turned else f"conv{spatial}d"
    how["padding"] = tuple(how["padding"])
    got = getattr(gt, name)(*tensors, **how)
    check_again(got, getattr(gt, name)(*tensors, **how))
    shown = {key: value for key, value in how.items() if key not in ("bias", "addend")}
    if set(kernel) == {1} and ROUNDING[dtype][0] > 2.0**-12:
        # As of any product, a bias may be added after a 16-bit product was rounded.
        magnitude = magnitude * (ROUNDING[dtype][0] * 2.0**24 / 20)
    close((name, dtype, x.shape, weight.shape, shown), got, want, dtype, magnitude)


def single_elements_with_addend(rng, device):
    """Check that it is added before the activation, for any memory order of the images."""
    x, addend = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 6, 4, 5))
    weight, bias = rng.standard_normal((6, 3)), rng.standard_normal(6)
    sums = np.einsum("nchw,oc->nohw", x, weight) + addend
    beside = (None, 0), (bias, bias[:, None, None])
    cases = itertools.product(("float32", "float16"), (None, "relu", "silu"), beside, *[(0, 1)] * 2)
    for dtype, activation, (added, more), *orders in cases:
        given = {"dtype": getattr(gt, dtype), "device": device}
        images = [
            gt.moveaxis(gt.asarray(np.moveaxis(one, 1, -1).copy(), **given), -1, 1)
            if is_last else gt.asarray(one, **given)
            for one, is_last in zip((x, addend), orders, strict=True)
        ]  # fmt: skip
        w = gt.asarray(weight[:, :, None, None], **given)
        bias_of = None if added is None else gt.asarray(added, **given)
        got = gt.conv2d(images[0], w, bias_of, addend=images[1], activation=activation).numpy()
        error = np.abs(got - ACTIVATIONS[activation](sums + more)).max()
        assert error < (1e-5 if dtype == "float32" else 2e-2), (dtype, activation, orders, error)


def windows(x, kernel, stride, pads, dilation, is_up):
    """Yield (index, part of the padded array) of each window, as PyTorch counts them."""
    counts = []
    for n, k, s, d, (b, e) in zip(x.shape[2:], kernel, stride, dilation, pads, strict=True):
        room = n + b + e - d * (k - 1) - 1
        count = (-(-room // s) if is_up else room // s) + 1
        counts.append(count - (is_up and (count - 1) * s >= n + b))
    for place in itertools.product(*map(range, counts)):
        yield (
            counts,
            place,
            tuple(
                slice(p * s, p * s + d * (k - 1) + 1, d)
                for p, s, d, k in zip(place, stride, dilation, kernel, strict=True)
            ),
        )


def pooled(x, mode, kernel, stride, pads, dilation, is_up):
    """Compute max and average pooling by definition."""
    value = -np.inf if mode == "max" else np.nan
    wide = padded(x, [(b, e + 99) for b, e in pads], value)
    # Positions beyond the padding are ignored; padding counts as zeros in a padded mean.
    inside = padded(np.zeros_like(x), pads, 0.0)
    inside = padded(inside, [(0, 99)] * len(pads), np.nan)
    out = None
    for counts, place, cut in windows(x, kernel, stride, pads, dilation, is_up):
        if out is None:
            out = np.zeros((*x.shape[:2], *counts))
        part = wide[(..., *cut)].reshape(*x.shape[:2], -1)
        if mode == "padded":
            zeros = inside[(..., *cut)].reshape(*x.shape[:2], -1)
            part = np.where(np.isnan(part), zeros, part)
        out[(..., *place)] = part.max(-1) if mode == "max" else np.nanmean(part, axis=-1)
    return out


def pooling_program(rng, device, most=12):
    """Check one random pooling, adaptive or not."""
    spatial = int(rng.choice([1, 2, 2, 2, 3]))
    most = most if spatial < 3 else 5
    dtype = str(rng.choice(list(ROUNDING)))
    mode = str(rng.choice(["max", "mean", "padded"]))
    kernel = tuple(int(n) for n in rng.integers(1, 5 if spatial < 3 else 3, spatial))
    shape = [int(rng.integers(1, 3)), int(rng.choice([1, 3, 8, 16])),
             *(int(n) for n in rng.integers(4, 4 + most, spatial))]  # fmt: skip
    x = rng.standard_normal(shape).astype(DTYPES[dtype])
    exact = x.astype(float)
    is_last = rng.integers(2)
    given = laid_out(rng, x, device)
    given = gt.moveaxis(given, 1, -1) if is_last else given
    how = {"data_format": FORMATS[spatial][is_last]}
    kind = "max" if mode == "max" else "avg"
    if rng.integers(4) == 0:
        sizes = tuple(int(n) for n in rng.integers(1, 9, spatial))
        want = np.zeros((*shape[:2], *sizes))
        for place in itertools.product(*map(range, sizes)):
            cut = tuple(slice(p * n // m, -(-(p + 1) * n // m))
                        for p, n, m in zip(place, shape[2:], sizes, strict=True))  # fmt: skip
            part = exact[(..., *cut)].reshape(*shape[:2], -1)
            want[(..., *place)] = part.max(-1) if mode == "max" else part.mean(-1)
        name = f"adaptive_{kind}_pool{spatial}d"
        got = getattr(gt, name)(given, sizes, **how)
    else:
        stride = tuple(int(n) for n in rng.integers(1, 4, spatial))
        dilation = tuple(int(n) for n in rng.integers(1, 3, spatial)) if mode == "max" else None
        most_pads = [(d * (k - 1) + 1) // 2 for k, d in
                     zip(kernel, dilation or (1,) * spatial, strict=True)]  # fmt: skip
        pads = [tuple(int(n) for n in rng.integers(0, m + 1, 2)) for m in most_pads]
        pads = [(min(p, k - 1), min(q, k - 1)) for (p, q), k in zip(pads, kernel, strict=True)]
        is_up = bool(rng.integers(2))
        how |= {"stride": stride, "padding": pads, "ceil_mode": is_up}
        if dilation:
            how["dilation"] = dilation
        else:
            how["count_include_pad"] = mode == "padded"
        dilation = dilation or (1,) * spatial
        if any(n + b + e < d * (k - 1) + 1 for n, (b, e), k, d in
               zip(shape[2:], pads, kernel, dilation, strict=True)):  # fmt: skip
            return
        want = pooled(exact, mode, kernel, stride, pads, dilation, is_up)
        name = f"{kind}_pool{spatial}d"
        how["padding"] = tuple(how["padding"])
        got = getattr(gt, name)(given, kernel, **how)
        check_again(got, getattr(gt, name)(given, kernel, **how))
    want = np.moveaxis(want, 1, -1) if is_last else want
    close((name, dtype, shape, kernel, how), got, want, dtype, 4 * np.abs(exact).max())


def tile_program(rng, device, few=0):
    """Check one random convolution for tiles on tensor cores: 16-bit floats, or float32 as TF32.

    With `few` channels, windows are whole chunks of pixels apart.
    """
    dtype = str(rng.choice(["float16", "bfloat16", "float32"]))
    spatial = int(rng.choice([1, 2, 2, 3]))
    kernel = tuple(int(n) for n in rng.integers(1, 5, spatial))
    stride = tuple(int(n) for n in rng.choice([1, 1, 2, 2, 4], spatial))
    dilation = tuple(int(n) for n in rng.choice([1, 1, 2], spatial))
    pads = [tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in kernel]
    groups = 1 if few else int(rng.choice([1, 1, 2]))
    inner = int(rng.choice([8, 24, 64, 72] if groups > 1 else [3, 8, 40, 130]))
    if few:
        inner, stride, dilation = few, (*stride[:-1], 8), (*dilation[:-1], 1)
        kernel = (*kernel[:-1], int(rng.integers(1, 12)))
    each = int(rng.choice([8, 24, 40, 72, 130] if groups > 1 else [5, 33, 64, 136]))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    most = 24 if spatial == 1 else 9 if spatial == 2 else 4
    extents = [int(rng.integers(r, r + most)) for r in reach]
    x = rng.standard_normal((int(rng.integers(1, 4)), groups * inner, *extents))
    weight = rng.standard_normal((groups * each, inner, *kernel))
    if dtype == "float32":  # values of TF32, so that only sums are rounded
        x, weight = x.astype(np.float16), weight.astype(np.float16)
    x, weight = x.astype(DTYPES[dtype]), weight.astype(DTYPES[dtype])
    exact = x.astype(float), weight.astype(float)
    given = (stride, pads, dilation, groups)
    want, magnitude = convolved(*exact, *given), convolved(*map(np.abs, exact), *given)
    how = {"stride": stride, "padding": pads, "dilation": dilation, "groups": groups}
    bias = rng.standard_normal(groups * each).astype(DTYPES[dtype])
    addend = rng.standard_normal(want.shape).astype(DTYPES[dtype])
    beside = (-1, *(1,) * spatial)
    if rng.integers(2):
        how["bias"], want = (
            gt.asarray(bias, device=device),
            want + bias.astype(float).reshape(beside),
        )
    if rng.integers(2):
        how["addend"], want = laid_out(rng, addend, device), want + addend.astype(float)
    how["activation"] = activation = str(rng.choice(["relu", "hardswish", "gelu_tanh"]))
    tensors = [laid_out(rng, one, device) for one in (x, weight)]
    with blas.precision(allow_tf32=True):
        got = getattr(gt, f"conv{spatial}d")(*tensors, **how)
    shown = {key: value for key, value in how.items() if key not in ("bias", "addend")}
    want = ACTIVATIONS[activation](want)
    # Of bias, addend and activation.
    close((dtype, x.shape, weight.shape, shown), got, want, dtype, magnitude + 8)


def few_program(rng, device):
    """Check one random convolution of one to four channels, for the kernel that copies whole rows.

    An infinity in x reaches the results whose windows it is in, and no other.
    """
    dtype = str(rng.choice(["float16", "bfloat16"]))
    spatial = int(rng.choice([1, 2, 2, 2]))
    channels, outputs = int(rng.integers(1, 5)), int(rng.choice([5, 16, 32, 33, 64, 72]))
    kernel = tuple(int(n) for n in rng.integers(1, 8, spatial))
    stride = tuple(int(n) for n in rng.integers(1, 4, spatial))
    dilation = (*(int(n) for n in rng.integers(1, 3, spatial - 1)), 1)
    pads = [tuple(int(n) for n in rng.integers(0, 4, 2)) for _ in kernel]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    most = (12, 80) if spatial == 2 else (300,)
    extents = [int(rng.integers(r, r + m)) for r, m in zip(reach, most, strict=True)]
    x = rng.standard_normal((int(rng.integers(1, 4)), channels, *extents)).astype(DTYPES[dtype])
    weight = rng.standard_normal((outputs, channels, *kernel)).astype(DTYPES[dtype])
    exact, given = (x.astype(float), weight.astype(float)), (stride, pads, dilation, 1)
    want, magnitude = convolved(*exact, *given), convolved(*map(np.abs, exact), *given)
    how = {"stride": stride, "padding": tuple(pads), "dilation": dilation}
    bias = rng.standard_normal(outputs).astype(DTYPES[dtype])
    addend = rng.standard_normal(want.shape).astype(DTYPES[dtype])
    if rng.integers(2):
        how["bias"] = gt.asarray(bias, device=device)
        want = want + bias.astype(float).reshape(-1, *(1,) * spatial)
    if rng.integers(2):
        how["addend"], want = laid_out(rng, addend, device), want + addend.astype(float)
    how["activation"] = activation = str(rng.choice(["relu", "hardswish", "gelu_tanh"]))
    convolution = getattr(gt, f"conv{spatial}d")
    tensors = [laid_out(rng, one, device) for one in (x, weight)]
    what = dtype, x.shape, weight.shape, stride, pads, dilation, activation
    got = convolution(*tensors, **how)
    close(what, got, ACTIVATIONS[activation](want), dtype, magnitude + 8)
    check_again(got, convolution(*tensors, **how))
    place = tuple(int(rng.integers(n)) for n in x.shape)
    spot = np.zeros_like(x)
    spot[place] = np.inf
    ones = np.ones_like(weight)
    seen = convolved((spot != 0).astype(float), ones.astype(float), *given) != 0
    got = convolution(*(laid_out(rng, one, device) for one in (spot, ones)), stride=stride,
                      padding=tuple(pads), dilation=dilation)  # fmt: skip
    assert np.array_equal(got.numpy().astype(float), np.where(seen, np.inf, 0.0)), (what, place)


def shifted_program(rng, device):
    """Check one random convolution of enough channels for shifted patches."""
    dtype = str(rng.choice(["float16", "bfloat16"]))
    kernel, stride = int(rng.choice([2, 3])), int(rng.choice([1, 2]))
    groups, inner = int(rng.choice([1, 2])), int(rng.choice([32, 40, 72]))
    each, pad = int(rng.choice([32, 40, 67, 136])), int(rng.integers(0, 3))
    x = rng.standard_normal((int(rng.integers(1, 3)), *rng.integers(3, 10, 2), groups * inner))
    weight = rng.standard_normal((groups * each, kernel, kernel, inner))
    x, weight = (np.moveaxis(one.astype(DTYPES[dtype]), -1, 1) for one in (x, weight))
    exact, given = (x.astype(float), weight.astype(float)), ((stride,) * 2, [(pad,) * 2] * 2)
    want = convolved(*exact, *given, (1, 1), groups)
    magnitude = convolved(*map(np.abs, exact), *given, (1, 1), groups)
    addend = rng.standard_normal(want.shape).astype(DTYPES[dtype])
    how = {"stride": stride, "padding": pad, "groups": groups, "activation": "relu"}
    if rng.integers(2):
        how["addend"], want = laid_out(rng, addend, device), want + addend.astype(float)
    tensors = [laid_out(rng, one, device) for one in (x, weight)]
    got = gt.conv2d(*tensors, **how)
    what = dtype, x.shape, weight.shape, how
    close(what, got, ACTIVATIONS["relu"](want), dtype, magnitude + 8)
    check_again(got, gt.conv2d(*tensors, **how))


def mapped_program(rng, device):
    """Check one random convolution for tensor maps, with channels as neighbours.

    Channels and outputs that are no multiple of a step, taps beyond any edge, images that a tile
    divides, and unequal strides of the axes.
    """
    dtype = str(rng.choice(["float16", "bfloat16"]))
    spatial = int(rng.choice([1, 2, 2, 2]))
    kernel = tuple(int(n) for n in rng.integers(1, 4, spatial))
    stride = tuple(int(n) for n in rng.choice([1, 2, 3], spatial))
    dilation = tuple(int(n) for n in rng.integers(1, 3, spatial))
    pads = [tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in kernel]
    inner, each = int(rng.choice([32, 40, 64, 72])), int(rng.choice([32, 40, 64, 136]))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    extents = [int(rng.integers(r, r + (10 if spatial == 2 else 60))) for r in reach]
    x = rng.standard_normal((int(rng.integers(1, 4)), inner, *extents)).astype(DTYPES[dtype])
    weight = rng.standard_normal((each, inner, *kernel)).astype(DTYPES[dtype])
    exact, given = (x.astype(float), weight.astype(float)), (stride, pads, dilation, 1)
    want, magnitude = convolved(*exact, *given), convolved(*map(np.abs, exact), *given)
    how = {"stride": stride, "padding": tuple(pads), "dilation": dilation, "activation": "relu"}
    if rng.integers(2):
        bias = rng.standard_normal(each).astype(DTYPES[dtype])
        how["bias"] = gt.asarray(bias, device=device)
        want = want + bias.astype(float).reshape(-1, *(1,) * spatial)
    tensors = [
        gt.moveaxis(gt.asarray(np.moveaxis(one, 1, -1).copy(), device=device), -1, 1)
        for one in (x, weight)
    ]
    convolution = getattr(gt, f"conv{spatial}d")
    got = convolution(*tensors, **how)
    what = dtype, x.shape, weight.shape, stride, pads, dilation
    close(what, got, ACTIVATIONS["relu"](want), dtype, magnitude + 8)
    check_again(got, convolution(*tensors, **how))


def replayed_program(rng, images, image, outputs, kernel, stride, groups=1):
    """Check a captured convolution, channels last, that is replayed on other tensors."""

    def given(*shape):
        made = gt.asarray(rng.standard_normal(shape, dtype=np.float32), device="cuda")
        return made.astype(gt.bfloat16)

    def convolution(x, w):
        x, w = (gt.moveaxis(one, -1, 1) for one in (x, w))
        return gt.conv2d(x, w, stride=stride, padding=kernel // 2, groups=groups)

    of_x, of_w = (images, *image), (outputs, kernel, kernel, image[-1] // groups)
    x, w = given(*of_x), given(*of_w)
    convolution(x, w)
    captured = gt.graphs.CUDAGraph()
    gt.synchronize()
    with gt.graphs.graph(captured):
        y = convolution(x, w)
    for other, second in [(given(*of_x), w), (x, given(*of_w)), (x, w)]:
        captured.replay(inputs={x: other, w: second})
        assert gt.all(y == convolution(other, second)).item()

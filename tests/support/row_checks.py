"""Random calls of the row functions, on any device, against float64."""

import numpy as np

import gputensor as gt
from gputensor import nn

# dtype -> half a unit in the last place of 1, and of the smallest number
ROUNDING = {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-134),
            "float32": (2.0**-24, 2.0**-149), "float64": (2.0**-53, 2.0**-1074)}  # fmt: skip
DTYPES = {name: np.dtype(getattr(gt, name)) for name in ROUNDING}
FUNCTIONS = ("softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "group_norm")


def strided(rng, shape, dtype):
    """Return a random view of the shape: axes in any order, with steps, possibly reversed."""
    order = rng.permutation(len(shape))
    steps = rng.choice([1, 1, 1, 2], len(shape))
    base = rng.standard_normal([shape[i] * steps[i] for i in order]) * 3
    view = base.astype(dtype).transpose(np.argsort(order))
    return view[tuple(slice(None, None, int(s) * int(rng.choice([1, 1, -1]))) for s in steps)]


def on_device(values, device):
    """Return a tensor with the strides of the array, over a copy of its memory."""
    base = values
    while isinstance(base.base, np.ndarray):
        base = base.base
    order = np.argsort([-abs(s) for s in values.strides], kind="stable")
    if values.ndim < 2 or not len(order):
        return gt.asarray(values, device=device)
    made = gt.asarray(np.ascontiguousarray(values.transpose(order)), device=device)
    return gt.permute_dims(made, tuple(int(i) for i in np.argsort(order)))


def close(name, got, want, dtype, scale):
    """Check a result within its rounding and `scale` roundings of the arithmetic."""
    unit, least = ROUNDING[dtype]
    arithmetic = 2.0**-53 if dtype == "float64" else 2.0**-24
    got = got.numpy().astype(np.float64)
    assert got.shape == want.shape, (name, got.shape, want.shape)
    bound = unit * 1.01 * np.abs(want) + least + arithmetic * scale
    wrong = ~(np.abs(got - want) <= bound) & ~(np.isnan(got) & np.isnan(want))
    wrong &= ~((got == want) & np.isinf(want))
    assert not wrong.any(), (
        f"{name}: {got[wrong][:3]} instead of {want[wrong][:3]}, {wrong.sum()} of {wrong.size}"
    )


def softmax_program(rng, name, x, t, axis, dtype):
    exact = x.astype(np.float64)
    how, extra = {}, 0.0
    if name == "softmax" and rng.integers(2):
        how["scale"] = float(rng.choice([0.5, 2.0]))
        exact = exact * how["scale"]
    if name == "softmax" and rng.integers(2):
        shape = tuple(n if rng.integers(2) else 1 for n in x.shape)
        mask = rng.random(shape) < 0.6
        if rng.integers(2):
            how["mask"], exact = gt.asarray(mask, device=t.device), np.where(mask, exact, -np.inf)
        else:
            added = rng.standard_normal(shape).astype(np.float32)
            how["mask"], exact = gt.asarray(added, device=t.device), exact + added
    largest = exact.max(axis=axis, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0)
    powers = np.exp(exact - shift)
    total = powers.sum(axis=axis, keepdims=True)
    reach = np.abs(np.where(np.isfinite(exact), exact, 0)).max() + extra
    if name == "softmax":
        want = powers / np.where(total == 0, 1, total)
        close(f"softmax {how}", nn.softmax(t, axis, **how), want, dtype, (64 + 4 * reach) * want)
    elif name == "log_softmax":
        want = exact - shift - np.log(total)
        close(name, nn.log_softmax(t, axis), want, dtype, 64 + 4 * reach + 2 * np.abs(want))
    else:
        keepdims = bool(rng.integers(2))
        want = np.log(total) + shift
        want = want if keepdims else want.reshape(np.sum(exact, axis=axis).shape)
        close(name, nn.logsumexp(t, axis, keepdims=keepdims), want, dtype,
              64 + 4 * reach + 2 * np.abs(want))  # fmt: skip


def norm_program(rng, name, x, t, axis, dtype):
    axes = tuple(sorted(i % x.ndim for i in (axis if isinstance(axis, tuple) else (axis,))))
    shape = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    exact, how, factor, added = x.astype(np.float64), {"eps": 1e-3}, 1.0, 0.0
    own = tuple(x.shape[i] for i in axes)
    if rng.integers(2):
        weight = strided(rng, own, DTYPES[dtype])
        how["weight"], factor = on_device(weight, t.device), weight.astype(float).reshape(shape)
    if name == "layer_norm" and rng.integers(2):
        bias = strided(rng, own, DTYPES[dtype])
        how["bias"], added = on_device(bias, t.device), bias.astype(float).reshape(shape)
    residual = rng.integers(3) == 0
    if residual:
        other = strided(rng, x.shape, DTYPES[dtype])
        how["residual"], exact = on_device(other, t.device), exact + other.astype(float)
    away = exact - (exact.mean(axis=axes, keepdims=True) if name == "layer_norm" else 0)
    root = np.sqrt((away * away).mean(axis=axes, keepdims=True) + 1e-3)
    want = away / root * factor + added
    got = getattr(nn, name)(t, axis=axis, **how)
    scale = 96 * (np.abs(exact).max() / root + 2) * (np.abs(factor) + 1e-3) + np.abs(added)
    if residual:
        close(f"{name}: sum", got[1], exact, dtype, 2 * np.abs(exact))
        got = got[0]
    close(f"{name} {sorted(how)}", got, want, dtype, scale)


def group_program(rng, device, dtype):
    groups, inner = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    rest = map(int, rng.integers(1, 6, rng.integers(3)))
    shape = (int(rng.integers(1, 4)), groups * inner, *rest)
    x = strided(rng, shape, DTYPES[dtype])
    weight, bias = (rng.standard_normal(shape[1]).astype(DTYPES[dtype]) for _ in range(2))
    exact = x.astype(float).reshape(shape[0], groups, -1)
    away = exact - exact.mean(axis=-1, keepdims=True)
    root = np.sqrt((away * away).mean(axis=-1, keepdims=True) + 1e-3)
    along = (1, -1) + (1,) * (len(shape) - 2)
    factor = weight.astype(float).reshape(along)
    want = (away / root).reshape(shape) * factor + bias.astype(float).reshape(along)
    got = nn.group_norm(on_device(x, device), groups, gt.asarray(weight, device=device),
                        gt.asarray(bias, device=device), eps=1e-3)  # fmt: skip
    scale = np.broadcast_to(np.abs(exact).max() / root + 2, exact.shape).reshape(shape)
    close("group_norm", got, want, dtype, 96 * scale * (np.abs(factor) + 1e-3) + 4)


def row_program(rng, device, most=300, shape=None):
    """Run one random call."""
    dtype = str(rng.choice(list(ROUNDING)))
    name = str(rng.choice(FUNCTIONS))
    if name == "group_norm" and shape is None:
        return group_program(rng, device, dtype)
    if shape is None:
        shape = [int(n) for n in rng.integers(1, 6, rng.integers(1, 5))]
        shape[rng.integers(len(shape))] = int(rng.integers(1, most))
        shape = tuple(shape)
    x = strided(rng, shape, DTYPES[dtype])
    t = on_device(x, device)
    count = int(rng.integers(1, len(shape) + 1))
    axis = tuple(int(i) for i in rng.permutation(len(shape))[:count])
    axis = axis[0] if count == 1 else axis
    if name in ("layer_norm", "rms_norm", "group_norm"):
        name = "rms_norm" if name == "group_norm" else name
        return norm_program(rng, name, x, t, axis, dtype)
    return softmax_program(rng, name, x, t, axis, dtype)

"""Steps of random programs: element-wise operations, reductions, products, views, writes, loops.

Each function here draws the random choices of one step and returns the step, which appends to a
list of tensors or writes to some of them. Steps run eagerly and traced, at any size of a dim.
"""

from __future__ import annotations

import numpy as np

import gputensor as gt

DTYPES = "float32 float64 float16 bfloat16 int32 int64 int8 uint8 bool complex64".split()
UNARY = "negative abs square sqrt exp tanh floor sin cos logical_not sign relu".split()
UNARY = [name for name in UNARY if hasattr(gt, name)]
BINARY = "add subtract multiply maximum minimum divide less equal where pow".split()
REDUCTIONS = "sum max min mean any argmax prod all".split()
MOST = 4096  # elements of a tensor


class Outside:
    """Tensors and a device that a function uses from its closure, made when its steps are drawn."""

    def __init__(self, rng, home="host"):
        self.home = home
        self.numbers = np.random.default_rng(rng.getrandbits(32))
        self.tensors = []

    def values(self, shape, dtype):
        return random_values(self.numbers, shape, dtype)

    def tensor(self, shape, dtype):
        self.tensors.append(gt.asarray(self.values(shape, dtype), device=self.home))
        return self.tensors[-1]


def random_values(numbers, shape, dtype):
    made = numbers.integers(-4, 9, shape) / (2 if "float" in dtype or "complex" in dtype else 1)
    if dtype == "bool":
        made = made > 1
    if dtype.startswith("u"):
        made = np.abs(made)
    return made.astype(gt.asarray(0, dtype=dtype, device="host").dtype)


# ---- steps


def unary(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(UNARY)
    return lambda v: v.append(getattr(gt, name)(v[i]))


def partner(rng, values, i):
    """Return the index of a tensor that broadcasts with the i-th."""
    shape = values[i].shape
    fitting = [
        k
        for k, one in enumerate(values)
        if all(a == b or 1 in (a, b) for a, b in zip(one.shape[::-1], shape[::-1], strict=False))
    ]
    return rng.choice(fitting)


def binary(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(BINARY)
    k, number = partner(rng, values, i), rng.choice([None, None, 2, 0.5, -1, True])
    is_left = rng.random() < 0.5

    def step(v):
        x, y = v[i], v[k] if number is None else number
        if name == "where":
            return v.append(gt.where(v[k] > 1, x, y))
        v.append(
            getattr(gt, name)(x, y) if is_left or number is not None else getattr(gt, name)(y, x)
        )

    return step


def output(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(["add", "multiply", "maximum", "negative"])
    k, is_view = partner(rng, values, i), rng.random() < 0.5

    def step(v):
        target = gt.empty_like(v[i]) if not is_view else gt.zeros((*v[i].shape, 2))[..., 1]
        others = (v[i],) if name == "negative" else (v[i], v[k])
        v.append(getattr(gt, name)(*others, out=target.astype(v[i].dtype, copy=False)))

    return step


def in_place(rng, values, given):
    """Write to a tensor that a step made, or to a copy: all of it, or through a view."""
    i, k = rng.randrange(len(values)), rng.randrange(len(values))
    how, number = rng.randrange(6), rng.choice([1, 2, 0])
    is_copied = how < 3 or i < given.inputs
    key = random_key(rng, values[i])

    def step(v):
        x = gt.copy(v[i]) if is_copied else v[i]
        view = x[key]
        if how % 3 == 0:
            view += number
        elif how % 3 == 1:
            x[key] = v[k] if v[k].ndim <= view.ndim else number
        else:
            gt.add(view, view[..., ::-1], out=view)
        v.append(x)
        v.append(view)

    return step


def random_key(rng, tensor):
    slices = [slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(1, 3)]
    slices += [slice(None, None, -1), 0, -1]
    return tuple(rng.choice(slices) for _axis in range(rng.randint(0, tensor.ndim)))


def view(rng, values, given):
    i, how = rng.randrange(len(values)), rng.randrange(6)
    key = random_key(rng, values[i])
    order = rng.sample(range(values[i].ndim), values[i].ndim)
    axis = rng.randint(0, values[i].ndim)

    def step(v):
        x = v[i]
        if how == 0:
            x = gt.permute_dims(x, order)
        elif how == 1:
            x = gt.reshape(x, (-1,))
        elif how == 2:
            x = gt.expand_dims(x, axis=axis)
        elif how == 3:
            x = gt.broadcast_to(x, (2, *x.shape))
        else:
            x = x[key]
        v.append(x)

    return step


def reduction(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(REDUCTIONS)
    axis = rng.choice([None, 0, -1])
    keep = rng.random() < 0.5
    return lambda v: v.append(getattr(gt, name)(v[i], axis=axis, keepdims=keep))


def product(rng, values, given):
    i, k = rng.randrange(len(values)), rng.randrange(len(values))
    activation = rng.choice([None, None, "relu", "gelu"])

    def step(v):
        a, b = v[i], v[k]
        if a.ndim >= 1 and b.ndim == 2 and a.shape[-1] != b.shape[0]:  # a branch on sizes, too
            b = b.T
        v.append(gt.matmul(a, b, activation=activation))

    return step


def rows(rng, values, given):
    i, how = rng.randrange(len(values)), rng.randrange(3)
    names = ("softmax", "layer_norm", "logsumexp")

    def step(v):
        x = v[i]
        if how == 1:
            return v.append(gt.layer_norm(x))
        v.append(getattr(gt, names[how])(x, axis=-1))

    return step


def casting(rng, values, given):
    i, dtype = rng.randrange(len(values)), rng.choice(DTYPES)
    return lambda v: v.append(gt.astype(v[i], dtype))


def joining(rng, values, given):
    i, axis = rng.randrange(len(values)), rng.choice([0, -1])
    k, how = partner(rng, values, i), rng.randrange(3)

    def step(v):
        if how == 0:
            return v.append(gt.concat([v[i], v[k]], axis=axis))
        if how == 1:
            return v.append(gt.stack([v[i], v[i]], axis=axis))
        v.append(gt.roll(v[i], 1, axis=0))

    return step


def indexing(rng, values, given):
    i = rng.randrange(len(values))
    picks = [rng.randint(0, 1) for _pick in range(rng.randint(1, 4))]
    how = rng.randrange(4)

    def step(v):
        x = v[i]
        if how == 0:
            return v.append(x[picks])
        index = gt.asarray(picks, dtype="int32")
        if how == 1:
            return v.append(gt.take(x, index, axis=0))
        x = gt.copy(x)
        if how == 2:
            x[sorted(set(picks))] = 1
        else:
            x[x > 1] = 0
        v.append(x)

    return step


def creation(rng, values, given):
    i, how, number = rng.randrange(len(values)), rng.randrange(5), rng.choice([0, 1, 2.5])

    def step(v):
        x = v[i]
        if how == 0:
            made = gt.full(x.shape, number)
        elif how == 1:
            made = gt.arange(x.shape[0] if x.ndim else 3)
        elif how == 2:
            made = gt.asarray([[1.0, 2.0], [3.0, number]])
        elif how == 3:
            made = x * x.shape[0] if x.ndim else x
        else:
            made = gt.empty(x.shape)
            made[...] = x.astype("float32")
        v.append(made)

    return step


def outside(rng, values, given):
    i = rng.randrange(len(values))
    made = given.tensor(values[i].shape if given.fixed else (), rng.choice(DTYPES))
    how = rng.randrange(3)

    def step(v):
        other = made.T if how and made.ndim == 2 else made
        folded = other + other if how == 2 else other
        v.append(v[i] + (folded.T if how and made.ndim == 2 else folded))

    return step


# ---- control flow; bodies are steps on copies of the list


def body_of(rng, values, given):
    """Return a body of a few steps: from the carry `c` and the tensors to a tensor like `c`."""
    steps = [rng.choice(PURE)(rng, values, given) for _step in range(rng.randint(1, 3))]

    def body(c, v):
        local = [c, *v]
        for step in steps:
            step(local)
        new = local[-1] if local[-1].shape == c.shape else c * 2 if c.dtype.kind != "b" else ~c
        return gt.astype(new, c.dtype)

    return body


def loop(rng, values, given):
    i, how = rng.randrange(len(values)), rng.randrange(4)
    body, other = body_of(rng, values, given), body_of(rng, values, given)
    turns, reverse = rng.randint(0, 3), rng.random() < 0.5

    def step(v):
        x, before = v[i], list(v)
        if how == 0:
            return v.append(gt.fori_loop(0, turns, lambda n, c: body(c, before), x))
        if how == 1:
            carry = (x, 0)
            carry = gt.while_loop(
                lambda c: c[1] < turns, lambda c: (body(c[0], before), c[1] + 1), carry
            )
            return v.append(carry[0])
        if how == 2:
            return v.append(
                gt.cond(gt.any(x), lambda c: body(c, before), lambda c: other(c, before), x)
            )
        last, made = gt.scan(
            lambda c, n: (body(c, before), gt.sum(c.astype("float32")) + n),
            x,
            gt.arange(turns + 1, dtype="float32"),
            reverse=reverse,
        )
        v += [last, made]

    def check(v):
        """Run both bodies once: loops without turns and branches not taken must be valid, too."""
        body(v[i], v)
        other(v[i], v)

    step.check = check
    return step


def on_stream(rng, values, given):
    inner = rng.choice(PURE)(rng, values, given)
    is_outer = rng.random() < 0.5
    made = []

    def step(v):
        if not made and is_outer:
            made.append(gt.Stream(given.home))
        with gt.stream(made[0] if is_outer else gt.Stream()):
            inner(v)

    return step


PURE = [unary, binary, binary, reduction, view, casting, product, creation]
STEPS = [*PURE, view, output, in_place, in_place, in_place, joining, indexing, rows]
STEPS += [outside, loop, on_stream]

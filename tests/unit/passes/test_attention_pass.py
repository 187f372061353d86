"""Attention written in many ways becomes one call that computes the same; other work stays."""

import numpy as np
import pytest

import gputensor as gt

B, H, KEPT, N, M, D = 2, 4, 2, 6, 9, 8
DIMS = gt.Dim("b", 1, 5), gt.Dim("n", 2, 16), gt.Dim("m", 2, 16)


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def wanted(q, k, v, mask=0.0, scale=1.0, cap=0.0, seen=True, fill=-1e300):
    """Attention in float64; grouped heads are repeated."""
    q, k, v = (np.asarray(one, np.float64) for one in (q, k, v))
    k, v = (np.repeat(one, q.shape[-3] // one.shape[-3], -3) for one in (k, v))
    scores = scale * q @ k.swapaxes(-1, -2)
    if cap:
        scores = cap * np.tanh(scores / cap)
    return softmax(np.where(seen, scores + mask, fill)) @ v


def operands(rng, *lead, kept=None, keys=M):
    """q, k and v; k and v have `kept` heads if it is given."""
    few = lead if kept is None else (*lead[:-1], kept)
    shapes = (*lead, N, D), (*few, keys, D), (*few, keys, D)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def check(function, want, *inputs, attributes=None, specs=None, names=()):
    """The program has one attention call with these attributes, none of `names`, and is right."""
    arrays = [gt.asarray(one) for one in inputs]
    specs = specs or [gt.spec(one.shape, one.dtype) for one in arrays]
    program = gt.compile(function, *specs)
    (traced,) = program.functions.values()
    calls = [call for call in traced.calls if call.name == "attention"]
    assert len(calls) == 1, str(program)
    assert not {call.name for call in traced.calls} & {"product", "formula", "reduce", *names}
    for name, value in (attributes or {}).items():
        assert calls[0].attributes[name] == pytest.approx(value), name
    found = program(*arrays).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    eager = function(*arrays).numpy()
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-5)
    return calls[0]


def transposed(k):
    return gt.swapaxes(k, -1, -2)


@pytest.mark.parametrize("lead", [(B, H), (H,), ()])
def test_product_scale_softmax_product(rng, lead):
    q, k, v = operands(rng, *lead)

    def attend(q, k, v):
        return gt.softmax(q @ transposed(k) / 2.0, axis=-1) @ v

    want = wanted(*(one.reshape(-1, *one.shape[-2:]) for one in (q, k, v)), scale=0.5)
    check(attend, want.reshape(q.shape), q, k, v, attributes={"scale": 0.5}, names=["elementwise"])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_softmax_in_float32_between_casts(rng, dtype):
    q, k, v = operands(rng, B, H)

    def attend(q, k, v):
        scores = gt.astype(q @ transposed(k), gt.float32) * 0.3
        return gt.astype(gt.softmax(scores, axis=-1), q.dtype) @ v

    q, k, v = (gt.asarray(one, dtype=dtype) for one in (q, k, v))
    program = gt.compile(attend, *(gt.spec(one.shape, dtype) for one in (q, k, v)))
    assert [call.name for call in program.functions["attend"].calls] == ["attention"]
    want = wanted(*(one.numpy() for one in (q, k, v)), scale=0.3)
    np.testing.assert_allclose(program(q, k, v).numpy().astype(float), want, atol=0.03)


def test_scale_on_queries_and_keys(rng):
    q, k, v = operands(rng, B, H)

    def attend(q, k, v):
        return gt.softmax((q * 0.7) @ (transposed(k) * 0.7), axis=-1) @ v

    check(
        attend, wanted(q, k, v, scale=0.49), q, k, v,
        attributes={"scale": 0.49}, names=["elementwise"],
    )  # fmt: skip


def test_merged_batches_and_heads(rng):
    """As exporters decompose it: copies, and products of 3-dimensional tensors."""
    q, k, v = operands(rng, B, H)

    def attend(q, k, v):
        b, h, n, d = q.shape
        m = k.shape[2]
        flat = [gt.reshape(gt.copy(one), (b * h, -1, d)) for one in (q, k, v)]
        flat[1] = gt.reshape(gt.copy(transposed(k)), (b * h, d, m))
        scores = gt.reshape(flat[0] @ flat[1], (b, h, n, m)) * 0.5
        shares = gt.softmax(scores, axis=-1)
        return gt.reshape(gt.reshape(shares, (b * h, n, m)) @ flat[2], (b, h, n, d))

    check(attend, wanted(q, k, v, scale=0.5), q, k, v, names=["elementwise"])
    b, n, m = DIMS
    specs = [gt.spec((b, H, n, D)), gt.spec((b, H, m, D)), gt.spec((b, H, m, D))]
    check(attend, wanted(q, k, v, scale=0.5), q, k, v, specs=specs, names=["elementwise"])


def test_grouped_heads_are_not_repeated(rng):
    q, k, v = operands(rng, B, H, kept=KEPT)

    def repeated(x):
        b, kept, m, d = x.shape
        wide = gt.broadcast_to(x[:, :, None], (b, kept, H // KEPT, m, d))
        return gt.reshape(wide, (b, H, m, d))

    def attend(q, k, v):
        return gt.softmax(q @ transposed(repeated(k)), axis=-1) @ repeated(v)

    call = check(attend, wanted(q, k, v), q, k, v, names=["elementwise"])
    assert call.reads[1].shape[1] == call.reads[2].shape[1] == KEPT


def test_additive_masks(rng):
    q, k, v = operands(rng, B, H)
    mask = rng.standard_normal((B, 1, 1, M)).astype(np.float32)

    def attend(q, k, v, mask):
        return gt.softmax(q @ transposed(k) * 0.5 + mask, axis=-1) @ v

    call = check(attend, wanted(q, k, v, mask, 0.5), q, k, v, mask, names=["elementwise"])
    assert call.reads[3].strides[1:] == (0, 0, 1)
    mask[1] = -np.inf
    mask[1, 0, 0, 3] = 0

    def before(q, k, v, mask):
        return gt.softmax(mask + q @ transposed(k), axis=-1) @ v

    check(before, wanted(q, k, v, mask), q, k, v, mask)


@pytest.mark.parametrize("fill", [-np.inf, -1e4, -1e9, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("is_seen", [True, False])
def test_masks_of_bool(rng, fill, is_seen):
    q, k, v = operands(rng, B, H)
    seen = rng.random((B, 1, N, M)) < 0.6
    seen[..., 0] = True
    if fill > -np.inf:
        seen[1, 0, 2] = False  # a query that sees no key weighs all keys equally

    def attend(q, k, v, mask):
        scores = q @ transposed(k)
        choice = (mask, scores, fill) if is_seen else (mask, fill, scores)
        return gt.softmax(gt.where(*choice), axis=-1) @ v

    want = wanted(q, k, v, seen=seen, fill=max(fill, -1e300))
    call = check(attend, want, q, k, v, seen if is_seen else ~seen)
    assert call.reads[3].dtype == ("bool" if fill == -np.inf else "float32")


def test_a_mask_that_is_negated_twice_is_read_as_it_was(rng):
    q, k, v = operands(rng, B, H)
    seen = rng.random((1, 1, N, M)) < 0.6
    seen[..., 0] = True

    def attend(q, k, v, seen):
        scores = gt.where(gt.logical_not(seen), -gt.inf, q @ transposed(k))
        return gt.softmax(scores, axis=-1) @ v

    want = wanted(q, k, v, np.where(seen, 0, -1e300))
    check(attend, want, q, k, v, seen, names=["elementwise"])


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("kind", ["where", "where not", "add"])
def test_constant_masks_that_are_causal_become_flags(rng, kind, window):
    q, k, v = operands(rng, B, H)
    ahead = np.arange(M) - np.arange(N)[:, None] - (M - N)
    seen = (ahead <= 0) & (ahead > -(window or M + 1))
    added = np.where(seen, 0, -np.inf).astype(np.float32)

    def attend(q, k, v):
        scores = q @ transposed(k)
        if kind == "where":
            scores = gt.where(gt.asarray(seen), scores, -1e30)
        elif kind == "where not":
            scores = gt.where(gt.asarray(~seen), -gt.inf, scores)
        else:
            scores = scores + gt.asarray(added)
        return gt.softmax(scores, axis=-1) @ v

    want = wanted(q, k, v, np.where(seen, 0, -1e300))
    call = check(attend, want, q, k, v, attributes={"is_causal": True, "window": window})
    assert call.reads[3] is None


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_constant_masks_of_attention_itself_become_flags(rng, kind):
    q, k, v = operands(rng, B, H)
    seen = np.tri(N, M, M - N, dtype=bool)
    mask = seen if kind == "bool" else np.where(seen, 0, -np.inf).astype(np.float32)

    def attend(q, k, v):
        return gt.scaled_dot_product_attention(q, k, v, gt.asarray(mask), scale=1.0)

    call = check(attend, wanted(q, k, v, seen=seen), q, k, v, attributes={"is_causal": True})
    assert call.reads[3] is None


def test_constant_masks_of_another_form_stay(rng):
    q, k, v = operands(rng, B, H)
    seen = np.tri(N, M, 0, dtype=bool)  # aligned at the first query and the first key

    def attend(q, k, v):
        return gt.softmax(gt.where(gt.asarray(seen), q @ transposed(k), -gt.inf), axis=-1) @ v

    want = wanted(q, k, v, np.where(seen, 0, -1e300))
    call = check(attend, want, q, k, v, attributes={"is_causal": False})
    assert call.reads[3].dtype == "bool"


def test_softmax_whose_nan_become_zeros(rng):
    """As exporters write attention that gives 0 if all keys are masked; one mask for each batch."""
    q, k, v = operands(rng, B, H)
    mask = np.zeros((B, 1, N, M), np.float32)
    mask[0, 0, 2] = -np.inf

    def attend(q, k, v, mask):
        shares = gt.softmax(q @ transposed(k) + mask, axis=-1)
        return gt.where(gt.isnan(shares), 0.0, shares) @ v

    want = wanted(q, k, v)
    want[0, :, 2] = 0
    check(attend, want, q, k, v, mask)
    seen = np.broadcast_to(np.tri(N, M, M - N, dtype=bool), (B, 1, N, M)).copy()

    def causal(q, k, v):
        shares = gt.softmax(gt.where(gt.asarray(seen), q @ transposed(k), -gt.inf), axis=-1)
        return gt.where(gt.isnan(shares), 0.0, shares) @ v

    check(causal, wanted(q, k, v, seen=seen), q, k, v, attributes={"is_causal": True})


def test_soft_caps(rng):
    q, k, v = operands(rng, B, H)

    def attend(q, k, v):
        scores = 5.0 * gt.tanh(q @ transposed(k) * 0.25 / 5.0)
        return gt.softmax(scores, axis=-1) @ v

    attributes = {"soft_cap": 5.0, "scale": 0.25}
    check(attend, wanted(q, k, v, scale=0.25, cap=5), q, k, v, attributes=attributes)


def test_softmax_written_out(rng):
    q, k, v = operands(rng, B, H)

    def attend(q, k, v):
        scores = q @ transposed(k)
        powers = gt.exp(scores - gt.max(scores, axis=-1, keepdims=True))
        return powers / gt.sum(powers, axis=-1, keepdims=True) @ v

    check(attend, wanted(q, k, v), q, k, v)


def test_keys_that_lie_as_columns(rng):
    q, k, v = operands(rng, B, H)
    k = np.ascontiguousarray(k.swapaxes(2, 3))

    def attend(q, k, v):
        return gt.softmax(q @ k, axis=-1) @ v

    check(attend, wanted(q, k.swapaxes(2, 3), v), q, k, v)


@pytest.mark.parametrize("n", [1, N])
def test_scores_whose_rows_are_the_keys_stay(rng, n):
    """Those of one query are the same memory as their transpose."""
    q, k, v = operands(rng, B, H)
    q = q[..., :n, :]

    def attend(q, k, v):
        return gt.softmax(transposed(k @ transposed(q)), axis=-1) @ v

    stays(attend, q, k, v)
    found = gt.compile(attend, *(gt.asarray(one) for one in (q, k, v)))
    found = found(*(gt.asarray(one) for one in (q, k, v))).numpy()
    np.testing.assert_allclose(found, wanted(q, k, v), rtol=1e-4, atol=1e-5)


def test_several_layers_and_loops(rng):
    q, k, v = operands(rng, B, H)

    def attend(q, k, v):
        return gt.softmax(q @ transposed(k), axis=-1) @ v

    def layers(q, k, v):
        for _layer in range(3):
            q = attend(q, k, v)
        return gt.fori_loop(0, 2, lambda _i, x: attend(x, k, v), q)

    program = gt.compile(layers, *(gt.spec(one.shape) for one in (q, k, v)))
    assert str(program).count("= attention") == 4 and "formula" not in str(program)
    want = q
    for _layer in range(5):
        want = wanted(want, k, v)
    found = program(*(gt.asarray(one) for one in (q, k, v))).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def stays(function, *inputs, **how):
    """The program has no attention call, and equals eager work bit for bit."""
    arrays = [gt.asarray(one) for one in inputs]
    program = gt.compile(function, *(gt.spec(one.shape, one.dtype) for one in arrays), **how)
    assert "= attention" not in str(program)
    found, eager = program(*arrays), function(*arrays)
    for one, other in zip(
        *((x if type(x) is tuple else (x,)) for x in (found, eager)), strict=True
    ):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_rounding_each_result_keeps_the_calls(rng):
    def attend(q, k, v):
        return gt.softmax(q @ transposed(k), axis=-1) @ v

    stays(attend, *operands(rng, B, H), rounding="each")
    with pytest.raises(ValueError, match="rounding: got 'twice'; expected 'once' or 'each'"):
        gt.compile(attend, *[gt.spec((2, 3, 4))] * 3, rounding="twice")


@pytest.mark.parametrize(
    "attend",
    [
        lambda q, k, v: (lambda s: (s @ v, s))(gt.softmax(q @ transposed(k), axis=-1)),
        lambda q, k, v: (lambda x: (gt.softmax(x, axis=-1) @ v, gt.max(x)))(q @ transposed(k)),
        lambda q, k, v: (
            gt.softmax((q @ transposed(k) + v[..., 0][..., None, :]) * 2.0, axis=-1) @ v
        ),
        lambda q, k, v: gt.softmax(q @ transposed(k), axis=-2) @ v,
        lambda q, k, v: gt.relu(q @ transposed(k)) @ v,
        lambda q, k, v: gt.softmax(gt.exp(q @ transposed(k)), axis=-1) @ v,
        lambda q, k, v: (2 * gt.softmax(q @ transposed(k), axis=-1)) @ v,
        lambda q, k, v: gt.softmax(gt.where(q @ transposed(k) > 0, 1.0, -99.0), axis=-1) @ v,
        lambda q, k, v: (
            gt.softmax(gt.where(k[..., None, :, 0] > 0, q @ transposed(k), -9.0), -1) @ v
        ),
    ],
    ids=[
        "weights too",
        "scores too",
        "scale behind",
        "columns",
        "relu",
        "exp",
        "factor",
        "no scores",
        "small fill",
    ],
)
def test_other_work_stays(rng, attend):
    stays(attend, *operands(rng, B, H))


def test_keys_written_between_the_products_keep_both_calls(rng):
    """The keys change between the two products, so a single call would read the new keys."""
    q, k, v = operands(rng, H)

    def attend(q, v, *, state):
        scores = q @ transposed(state["k"])
        state["k"] *= 0
        return gt.softmax(scores, axis=-1) @ v

    specs = gt.spec(q.shape), gt.spec(v.shape)
    program = gt.compile(attend, *specs, state={"k": gt.asarray(k)})
    with program.session() as session:
        found = session.attend(gt.asarray(q), gt.asarray(v)).numpy()
    np.testing.assert_allclose(found, wanted(q, k, v), rtol=1e-4, atol=1e-5)
    assert "= attention" not in str(program)


@pytest.mark.parametrize("dtype, count", [("float16", 0), ("float32", 1)])
def test_results_are_written_where_a_copy_joins_the_heads(rng, dtype, count):
    """Only 16-bit attention writes rows at any distance without a loss."""

    def attend(q, k, v):
        heads = gt.scaled_dot_product_attention(q, k, v)
        return gt.reshape(gt.moveaxis(heads, 1, 2), (q.shape[0], q.shape[2], H * D)) * 2

    arrays = [one.astype(dtype) for one in operands(rng, B, H, keys=N)]
    specs = [gt.spec((DIMS[0], H, DIMS[1], D), dtype)] * 3
    program = gt.compile(attend, *specs)
    found = program(*map(gt.asarray, arrays)).numpy()
    np.testing.assert_array_equal(found, attend(*map(gt.asarray, arrays)).numpy())
    calls = next(iter(program.functions.values())).calls
    assert [one.attributes.get("op") for one in calls].count("copy") == count, str(program)


@pytest.mark.parametrize("case", ["also a result", "two readers", "another order of columns"])
def test_other_copies_of_results_stay(rng, case):
    q, k, v = (one.astype(np.float16) for one in operands(rng, B, H))

    def attend(q, k, v):
        heads = gt.scaled_dot_product_attention(q, k, v)
        if case == "another order of columns":
            return gt.copy(gt.moveaxis(heads, 3, 1)) * 2
        joined = gt.copy(gt.moveaxis(heads, 1, 2)) * 2
        return (joined, heads) if case == "also a result" else (joined, gt.sum(heads))

    inputs = [gt.asarray(one) for one in (q, k, v)]
    program = gt.compile(attend, *[gt.spec(one.shape, one.dtype) for one in inputs])
    made, eager = program(*inputs), attend(*inputs)
    for one, other in zip(
        *[x if isinstance(x, tuple) else (x,) for x in (made, eager)], strict=True
    ):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-3)

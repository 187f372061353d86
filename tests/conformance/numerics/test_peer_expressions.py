"""Expressions of PyTorch and CuPy programs, each beside its definition in NumPy.

``x`` and ``y`` are tensors of the arrays ``a`` and ``b`` (4, 6), ``i`` of the class numbers ``k``
(4,); `gt` stands for the modules that such programs import.
"""

import numpy as np
import pytest

import gputensor as gt


def log_softmax(a):
    a = a - a.max(-1, keepdims=True)
    return a - np.log(np.exp(a).sum(-1, keepdims=True))


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def put(target, index, values, function=np.add):
    target = target.copy()
    function.at(target, index, values)
    return target


def distances(a, b):
    return np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


def square(a):
    return a[:, :4] + 9 * np.eye(4)


TORCH = {
    "x.view(2, -1).unsqueeze(0).expand(3, -1, -1)": (
        "np.broadcast_to(a.reshape(2, 12), (3, 2, 12))"
    ),
    "x.reshape(2, 2, -1).permute(2, 0, 1).contiguous().view(6, 4)": (
        "a.reshape(2, 2, 6).transpose(2, 0, 1).reshape(6, 4)"
    ),
    "x.unflatten(1, (2, 3)).flatten(0, 1)": "a.reshape(8, 3)",
    "x.unfold(1, 2, 2)": "a.reshape(4, 3, 2)",
    "gt.select(x, 1, 2)": "a[:, 2]",
    "x.narrow(1, 2, 3).flip(dims=(0,))": "a[::-1, 2:5]",
    "x.scatter_add(0, i[None, :3], y[:1])": "put(a, (k[None, :3], np.arange(3)[None]), b[:1, :3])",
    "gt.zeros(4, 6).scatter_(1, i[:, None], 1.0)": "np.eye(6)[k]",
    "x.index_add(0, i, y, alpha=2)": "put(a, k, 2 * b)",
    "x.clone().index_add_(0, i, y)": "put(a, k, b)",
    "x.clone().index_fill_(1, i, -1.0)[:, i]": "np.full((4, 4), -1.0)",
    "x.gather(1, i[:, None])": "np.take_along_axis(a, k[:, None], 1)",
    "x.masked_fill(x > 0, float('-inf'))": "np.where(a > 0, -np.inf, a)",
    "x.masked_select(x > y)": "a[a > b]",
    "gt.where(x > 0, x, 0.0)": "np.maximum(a, 0)",
    "x.topk(2, dim=1).values": "-np.sort(-a, 1)[:, :2]",
    "x.topk(2, dim=1).indices": "np.argsort(-a, 1)[:, :2]",
    "gt.sort(x, dim=0, descending=True)[0]": "-np.sort(-a, 0)",
    "x.max(dim=1).indices": "a.argmax(1)",
    "x.median(dim=1).values": "np.sort(a, 1)[:, 2]",
    "gt.cummax(x, dim=1)[0]": "np.maximum.accumulate(a, 1)",
    "gt.einsum('bi,ci->bc', x, y)": "a @ b.T",
    "gt.baddbmm(x[None, :, :4], x[None], y.T[None], beta=0.5)": "(0.5 * a[:, :4] + a @ b.T)[None]",
    "gt.cdist(x, y)": "distances(a, b)",
    "gt.cdist(x, y, p=1)": "abs(a[:, None] - b[None]).sum(-1)",
    "gt.cosine_similarity(x, y, dim=1)": (
        "(a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)"
    ),
    "gt.bincount(i, weights=x[:, 0], minlength=9)": "np.bincount(k, a[:, 0], 9)",
    "gt.histc(x, bins=4, min=-2, max=2)": "np.histogram(a, 4, (-2, 2))[0]",
    "gt.one_hot(i, 6)": "np.eye(6)[k]",
    "gt.cross_entropy(x, i)": "-log_softmax(a)[np.arange(4), k].mean()",
    "gt.cross_entropy(x, i, label_smoothing=0.1, reduction='none')": (
        "-0.9 * log_softmax(a)[np.arange(4), k] - 0.1 * log_softmax(a).mean(1)"
    ),
    "gt.kl_div(gt.log_softmax(x, 1), gt.softmax(y, 1), reduction='batchmean')": (
        "(np.exp(log_softmax(b)) * (log_softmax(b) - log_softmax(a))).sum() / 4"
    ),
    "gt.binary_cross_entropy_with_logits(x, (y > 0).float(), pos_weight=y[0].abs())": (
        "-(abs(b[0]) * (b > 0) * np.log(sigmoid(a)) + (b <= 0) * np.log(sigmoid(-a))).mean()"
    ),
    "gt.smooth_l1_loss(x, y)": (
        "np.where(abs(a - b) < 1, (a - b) ** 2 / 2, abs(a - b) - 0.5).mean()"
    ),
    "gt.glu(x, dim=1)": "a[:, :3] * sigmoid(a[:, 3:])",
    "gt.softplus(x, beta=2)": "np.log1p(np.exp(2 * a)) / 2",
    "gt.layer_norm(x, (6,), weight=y[0], bias=y[1])": (
        "(a - a.mean(1)[:, None]) / np.sqrt(a.var(1)[:, None] + 1e-5) * b[0] + b[1]"
    ),
    "x.std(dim=1)": "a.std(1, ddof=1)",
    "x.clone().add_(1).mul_(2).div_(3).clamp_(0, 1)": "np.clip((a + 1) * 2 / 3, 0, 1)",
    "x.clone().lerp_(y, 0.3)": "a + 0.3 * (b - a)",
    "x.clone().addcdiv_(x, y, value=0.5)": "a + 0.5 * a / b",
    "gt.div(x, y, rounding_mode='floor')": "np.floor(a / b)",
    "gt.logcumsumexp(x, dim=1)": "np.log(np.exp(a).cumsum(1))",
    "x.split([1, 5], dim=1)[1]": "a[:, 1:]",
    "x.repeat_interleave(2, dim=0)": "a.repeat(2, 0)",
    "gt.renorm(x, 2, 0, 1.0)": "a / np.maximum(np.linalg.norm(a, axis=1)[:, None], 1)",
    "gt.chain_matmul(x, y.T, x)": "a @ b.T @ a",
    "gt.cholesky_inverse(gt.linalg.cholesky(x @ x.mT))": "np.linalg.inv(a @ a.T)",
    "gt.linalg.lstsq(x.T, y.T).solution": "np.linalg.lstsq(a.T, b.T, rcond=None)[0]",
    "gt.logdet(x @ x.mT)": "np.linalg.slogdet(a @ a.T)[1]",
}
CUPY = {
    "gt.choose(i % 2, [x[:, 0], y[:, 0]])": "np.choose(k % 2, [a[:, 0], b[:, 0]])",
    "gt.choose([1, 0, 1], [x[0, :3], y[1, :3]])": "np.choose([1, 0, 1], [a[0, :3], b[1, :3]])",
    "gt.select([x > 0, x < -1], [x, y], 9.0)": "np.select([a > 0, a < -1], [a, b], 9.0)",
    "gt.extract(x > 0, x)": "a[a > 0]",
    "gt.take(x, i, axis=0)": "a[k]",
    "gt.linalg.tensorsolve(x[:, :4] + 9 * gt.eye(4), y[:, 0])":
        "np.linalg.tensorsolve(square(a), b[:, 0])",
    "gt.linalg.matrix_power(x[:, :4] + 9 * gt.eye(4), -2)": (
        "np.linalg.matrix_power(square(a), -2)"
    ),
    "gt.tensordot(x, y, axes=([1], [1]))": "a @ b.T",
    "gt.kron(x, y)": "np.kron(a, b)",
    "gt.pad(x, 1, mode='edge')": "np.pad(a, 1, mode='edge')",
    "gt.lexsort(gt.stack([x[0], i[0] + 0 * x[0]]))": "np.lexsort((a[0], 0 * a[0]))",
    "gt.percentile(x, 30, axis=1)": "np.percentile(a, 30, axis=1)",
    "gt.digitize(x, gt.asarray([-1.0, 0, 1]))": "np.digitize(a, [-1, 0, 1])",
    "gt.average(x, axis=0, weights=gt.arange(4))": "np.average(a, 0, np.arange(4))",
    "gt.gradient(x, axis=1)": "np.gradient(a, axis=1)",
    "gt.poly1d(x[0])(y)": "np.polyval(a[0], b)",
    "gt.interp(x[0], gt.sort(y[0]), y[1])": "np.interp(a[0], np.sort(b[0]), b[1])",
    "gt.apply_along_axis(lambda row: row.max(), 1, x)": "a.max(1)",
    # Not the angle itself: an imaginary part of 0 may have either sign.
    "gt.abs(gt.fft.fft(x)) * gt.cos(gt.angle(gt.fft.fft(x)))": "np.fft.fft(a).real",
    "gt.fuse()(lambda x, y: gt.sqrt(x * x + y))(x, abs(y))": "np.sqrt(a * a + abs(b))",
    "gt.fuse(kernel_name='k')(lambda x: gt.sum(x * x, axis=1))(x)": "(a * a).sum(1)",
}  # fmt: skip


@pytest.mark.parametrize("text", [*TORCH, *CUPY])
def test_expression_gives_what_its_definition_gives(rng, where, text):
    a, b, k = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), rng.permutation(6)[:4]
    a[:, :3] = np.sort(a[:, :3], 0)  # any order will do, but no equal elements
    k %= 4 if "index_add" in text or "(x, i, axis=0)" in text else 6
    k = rng.permutation(4) if "scatter_add" in text else k
    names = {"np": np, "a": a, "b": b, "k": k, "put": put, "distances": distances}
    names |= {"log_softmax": log_softmax, "sigmoid": sigmoid, "square": square}
    expected = eval((TORCH | CUPY)[text], names)
    with gt.Device(where):
        x, y, i = (gt.asarray(one) for one in (a, b, k))
        found = eval(text, {"gt": gt, "x": x, "y": y, "i": i})
        np.testing.assert_array_equal(x.numpy(), a)
    assert found.shape == np.shape(expected), text
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_lu_is_unpacked(rng, where):
    for shape in ((5, 5), (5, 3), (3, 5), (2, 4, 4), (0, 3, 3), (0, 0)):
        for dtype in ("float64", "complex64"):
            x = gt.asarray(rng.normal(size=shape).astype(dtype), device=where)
            lu, pivots = gt.linalg.lu_factor(x)
            p, low, up = gt.lu_unpack(lu, pivots)
            expected = gt.linalg.lu(x)
            for one, other in zip((p, low, up), expected, strict=True):
                assert one.dtype == x.dtype
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="lu_unpack: LU_pivots: got"):
        gt.lu_unpack(gt.eye(3, device=where), gt.arange(2, device=where))


def test_streams_have_cupys_names(where):
    with gt.Device(where):
        stream, before = gt.cuda.Stream(), gt.cuda.get_current_stream()
        first = stream.record()
        with stream:
            y = gt.ones(9) * 2
        last = stream.record()
        stream.synchronize()
        assert stream.done and first.done and last.done and y.tolist() == [2.0] * 9
        assert gt.cuda.get_elapsed_time(first, last) >= 0
        assert stream.ptr == stream.cuda_stream
        event = gt.cuda.Event()
        assert stream.record(event) is event
        stream.wait_event(event)
        try:
            assert stream.use() is stream and gt.cuda.get_current_stream() == stream
            assert gt.cuda.Stream.null.use() == gt.cuda.get_current_stream()
        finally:
            before.use()
        with pytest.raises(TypeError, match="event: got int; expected an Event"):
            stream.record(3)


def test_allocators_have_cupys_names(where):
    with gt.Device(where):
        pool, library = gt.cuda.MemoryPool(), gt.cuda.get_default_memory_pool()
        with gt.cuda.using_allocator(pool.malloc):
            memory = gt.cuda.alloc(1000)
            x = gt.zeros(300)
            assert pool.used_bytes() >= 2200 and memory.size == 1000
        assert gt.cuda.get_allocator() is None
        gt.cuda.set_allocator(library.malloc)
        assert gt.cuda.get_allocator() is None
        del x, memory
        assert pool.used_bytes() == 0 and gt.cuda.alloc(10).size == 10
        total = gt.cuda.mem_get_info()[1]
        before = gt.cuda.get_per_process_memory_fraction()
        try:
            library.set_limit(fraction=0.5)
            assert abs(library.get_limit() - total // 2) <= 1
            library.set_limit(size=total // 4)
            assert abs(library.get_limit() - total // 4) <= 1
            library.set_limit(size=0)
            assert library.get_limit() == 0
        finally:
            gt.cuda.set_per_process_memory_fraction(before)
        for call in (library.set_limit, lambda: library.set_limit(1, 0.5),
                     lambda: library.set_limit("a"), lambda: library.set_limit(-5)):  # fmt: skip
            with pytest.raises((TypeError, ValueError), match="set_limit.*: got .*; expected"):
                call()


def test_random_has_older_names(where):
    with gt.Device(where):
        made = gt.random.random_integers(2, 4, (50, 9)).numpy()
        assert set(made.ravel()) == {2, 3, 4} and made.shape == (50, 9)
        assert set(gt.random.random_integers(2, size=90).tolist()) == {1, 2}
        assert len(gt.random.bytes(7)) == 7 and gt.random.bytes(20) != gt.random.bytes(20)
        counts = gt.random.multinomial(5, [0.2, 0.8], size=3)
        assert counts.shape == (3, 2) and counts.sum(1).tolist() == [5, 5, 5]
        for call in (lambda: gt.random.bytes(-1), lambda: gt.random.random_integers(1, "a"),
                     lambda: gt.multinomial(gt.ones(3), 2, size=4)):  # fmt: skip
            with pytest.raises((TypeError, ValueError), match=": got .*; expected"):
                call()
    with pytest.raises(TypeError, match="fuse: kernel_name: got int; expected a str"):
        gt.fuse(kernel_name=3)

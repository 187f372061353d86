"""A traced function with nested cond and while_loop, and its NumPy reference."""

import numpy as np

import gputensor as gt
from gputensor._driver import registry

SHAPE = (8, 40)
DEVICE = 0


def model(x, y, limit, *, weights):
    """Loop with a cond in each turn, of which one branch has a loop, and a cond at the end."""

    def add(x, y):
        return gt.while_loop(lambda c: gt.max(c[0]) < 4, lambda c: (c[0] * 2, c[1] + 1), (x, y))

    def take(x, y):
        return x - weights["w"] * 0.25, y

    def turn(carry):
        x, y, steps = carry
        x, y = gt.cond(gt.sum(x) < gt.sum(y), add, take, x, y)
        return x + y, y, steps + 1

    done = gt.while_loop(lambda c: gt.max(c[2]) < limit, turn, (x, y, gt.zeros((), gt.float32)))
    return gt.cond(done[2] > 2, lambda a: a * 2, lambda a: a - 1, done[0]), done[2]


def reference(x, y, limit, w):
    steps = np.float32(0)
    while steps < limit:
        if x.sum(dtype=np.float64) < y.sum(dtype=np.float64):
            while x.max() < 4:
                x, y = x * 2, y + 1
        else:
            x = x - w * np.float32(0.25)
        x, steps = x + y, steps + 1
    return (x * 2 if steps > 2 else x - 1), steps


def arrays(rng, limit):
    x = np.abs(rng.standard_normal(SHAPE)).astype(np.float32) + np.float32(0.01)
    y = np.abs(rng.standard_normal(SHAPE)).astype(np.float32) * np.float32(rng.choice([0.1, 3]))
    return x, y, np.float32(limit)


def check(device, rng, opened=None):
    """Call with new addresses each time, and check that the host waits for no turn of a loop.

    `opened` makes a program from the arguments of `compile`, in another way than `compile`.
    """
    w = np.abs(rng.standard_normal(SHAPE)).astype(np.float32)
    weights = {"w": gt.asarray(w, device=device)}
    specs = gt.spec(SHAPE), gt.spec(SHAPE), gt.spec(())
    if opened is None:
        program = gt.compile(model, *specs, weights=weights, target=device)
    else:
        program = opened(model, *specs, weights=weights)
    held = []
    registry.observe(DEVICE)
    for limit in (3, 0, 1, 2, 5):
        given = arrays(rng, limit)
        tensors = [gt.asarray(one, device=device) for one in given]
        gt.synchronize(device)
        registry.reset_counts(DEVICE)
        found = program(*tensors)
        waits = registry.counts(DEVICE)["stream_synchronize"]
        held.append((tensors, found))
        for one, other in zip(found, reference(*given, w), strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-4)
        assert waits == 0 or limit == 3, waits
    text = program.report()["model"]["sizes"][-1]["graph"]
    assert " bodies of conditions" in text and "none" not in text, text
    return program, w


def check_in_capture(device, rng, program, w):
    """Call the program inside a user's capture, replayed on the captured tensors and on others."""
    given = arrays(rng, 3)
    seen = [gt.asarray(one, device=device) for one in given]
    gt.synchronize(device)
    captured = gt.graphs.CUDAGraph()
    with gt.graphs.graph(captured):
        result, steps = program(*seen)
    for limit in (4, 1):
        given = arrays(rng, limit)
        for one, array in zip(seen, given, strict=True):
            one[...] = gt.asarray(array, device=device)
        captured.replay()
        want = reference(*given, w)
        np.testing.assert_allclose(result.numpy(), want[0], rtol=1e-4, atol=1e-4)
        assert steps.item() == want[1]
    given = arrays(rng, 2)
    others = [gt.asarray(one, device=device) for one in given]
    captured.replay(inputs=dict(zip(seen, others, strict=True)))
    np.testing.assert_allclose(result.numpy(), reference(*given, w)[0], rtol=1e-4, atol=1e-4)

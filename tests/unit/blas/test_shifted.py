"""Plans of convolution by shifted patches, without a GPU.

A model executes each plan as shifted.cuh describes: it loads patches row by row, each tap reads
them from its own row onward, and positions become results. The results are compared with the
definition, in float64.
"""

import numpy as np
import pytest

from tests.support.convolution.window_checks import convolved
from tests.support.internals import shifted

BFLOAT16 = 10
SHARED_NBYTES = 226 << 10


def channels_last(array):
    """(address, dtype, shape, strides) of a channels-last array."""
    shape, strides, step = array.shape, [0] * array.ndim, 1
    for axis in (1, 3, 2, 0):
        strides[axis] = step
        step *= shape[axis]
    return 0, BFLOAT16, shape, tuple(strides)


def planned(x, weight, out, stride, pads, dilation, groups, multiprocessors=132):
    before = tuple(before for before, _ in pads)
    return shifted(*map(channels_last, (x, weight, out)), stride, before, dilation, groups,
                   multiprocessors)  # fmt: skip


def by_plan(plan, x, weight, out, stride, groups):
    """The results that the kernel would write; others stay NaN."""
    across = plan["columns"] * (2 if plan["outputs"] == 64 else 1)
    inner, each = weight.shape[1], weight.shape[0] // groups
    taps = weight.reshape(*weight.shape[:2], -1)
    height, width = x.shape[2:]
    result = np.full(out.shape, np.nan)
    numbers = np.arange(plan["positions"])
    image, y, px = (numbers // plan["image"], numbers % plan["image"] // plan["pitch"],
                    numbers % plan["pitch"])  # fmt: skip
    for first in range(0, plan["positions"], across):
        at = first + np.arange(plan["rows"]) - plan["lead"]
        exists = (at >= 0) & (at < plan["positions"])
        row = np.where(exists, at, 0)
        sums = np.zeros((across, weight.shape[0]))
        patch = None
        for shift, number, is_first, tap_y, tap_x in plan["taps"]:
            if is_first:
                at_y, at_x = y[row] * stride[0] + tap_y, px[row] * stride[1] + tap_x
                inside = exists & (at_y >= 0) & (at_y < height) & (at_x >= 0) & (at_x < width)
                patch = np.where(
                    inside[:, None],
                    x[image[row], :, np.clip(at_y, 0, height - 1), np.clip(at_x, 0, width - 1)],
                    0,
                )
            seen = patch[shift : shift + across]
            assert len(seen) == across, "a tap reads beyond its patch"
            for group in range(groups):
                part = taps[group * each : (group + 1) * each, :, number]
                sums[:, group * each : (group + 1) * each] += (
                    seen[:, group * inner : (group + 1) * inner] @ part.T
                )
        for i in range(min(across, plan["positions"] - first)):
            place = image[first + i], y[first + i], px[first + i]
            if place[1] < out.shape[2] and place[2] < out.shape[3]:
                assert np.isnan(result[place[0], 0, place[1], place[2]]), "written twice"
                result[place[0], :, place[1], place[2]] = sums[i]
    return result


def test_plans_of_random_convolutions(rng):
    sharings = set()
    for _ in range(40):
        kernel = tuple(int(n) for n in rng.integers(1, 5, 2))
        stride = tuple(int(n) for n in rng.integers(1, 4, 2))
        dilation = tuple(int(n) for n in rng.integers(1, 4, 2))
        pads = [(int(p), int(p)) for p in rng.integers(0, 5, 2)]
        groups = int(rng.choice([1, 1, 2]))
        inner, outputs = 8 * int(rng.integers(1, 4)), groups * int(rng.choice([40, 64, 72]))
        least = [d * (k - 1) + 1 - 2 * p[0] for k, d, p in
                 zip(kernel, dilation, pads, strict=True)]  # fmt: skip
        extents = [int(rng.integers(max(1, n), max(1, n) + 12)) for n in least]
        x = rng.standard_normal((int(rng.integers(1, 4)), groups * inner, *extents))
        weight = rng.standard_normal((outputs, inner, *kernel))
        want = convolved(x, weight, stride, pads, dilation, groups)
        plan = planned(x, weight, want, stride, pads, dilation, groups)
        sharings.add(plan["sharing"])
        got = by_plan(plan, x, weight, want, stride, groups)
        np.testing.assert_allclose(got, want, atol=1e-9, err_msg=str((x.shape, kernel, plan)))
    assert len(sharings) > 1


def test_plan_covers_all_work_within_limits(rng):
    for _ in range(300):
        batch, extent = int(2 ** rng.integers(0, 9)), int(rng.choice([7, 14, 28, 56, 112, 224]))
        channels, outputs = (int(rng.choice([32, 64, 96, 128, 512, 2048])) for _ in range(2))
        kernel, stride = int(rng.choice([1, 3, 5, 7])), int(rng.choice([1, 2]))
        count = (extent - 1) // stride + 1
        x, weight, out = (np.broadcast_to(0, shape) for shape in (
            (batch, channels, extent, extent), (outputs, channels, kernel, kernel),
            (batch, outputs, count, count)))  # fmt: skip
        pads = [(kernel // 2,) * 2] * 2
        plan = planned(x, weight, out, (stride, stride), pads, (1, 1), 1)
        if plan is None:
            assert batch * extent * extent > 1 << 22
            continue
        across = plan["columns"] * (2 if plan["outputs"] == 64 else 1)
        assert plan["columns"] % 16 == 0 and 32 <= plan["columns"] <= 256
        assert plan["columns"] // 8 % plan["splits"] == 0
        assert plan["tiles"] == -(-plan["positions"] // across) * plan["column_tiles"]
        assert plan["column_tiles"] * plan["outputs"] >= outputs
        assert plan["each"] * plan["splits"] >= plan["steps"]
        assert plan["steps"] == kernel * kernel * -(-channels // 64)
        assert plan["patch"] % 1024 == 0 and 0 <= plan["patch"] - 128 * plan["rows"] < 1024
        held = plan["stages"] * plan["outputs"] * 128 + plan["places"] * plan["patch"]
        assert held + 4 * 32 * 144 + 2 * plan["columns"] // plan["splits"] * 16 + (
            plan["rows"] + 128) * 8 <= SHARED_NBYTES  # fmt: skip
        # Sums that the blocks of a cluster exchange reuse the memory of weights and patches.
        assert plan["splits"] == 1 or plan["columns"] * 512 <= held
        assert [number for _, number, *_ in sorted(plan["taps"], key=lambda tap: tap[1])] == list(
            range(kernel * kernel)
        )
        assert plan["taps"][0][2] == 1


@pytest.mark.parametrize("multiprocessors", [1, 78, 132])
def test_terms_are_split_when_tiles_are_few(multiprocessors):
    x, weight, out = (np.broadcast_to(0, shape) for shape in (
        (1, 512, 7, 7), (512, 512, 3, 3), (1, 512, 7, 7)))  # fmt: skip
    plan = planned(x, weight, out, (1, 1), [(1, 1)] * 2, (1, 1), 1, multiprocessors)
    assert (plan["splits"] > 1) == (multiprocessors > 1)

"""Short-time transforms against NumPy's transforms of the frames, and PyTorch's windows."""

import numpy as np
import pytest
import scipy.signal

import gputensor as gt


def frames_of(a, n_fft, hop):
    return np.lib.stride_tricks.sliding_window_view(a, n_fft, -1)[..., ::hop, :]


def whole_window(w, n_fft):
    before = (n_fft - w.size) // 2
    return np.pad(w, (before, n_fft - w.size - before))


def test_short_time_transforms_are_those_of_the_frames(place, rng):
    for _ in range(6):
        n_fft = int(rng.integers(4, 17))
        hop, length = int(rng.integers(1, n_fft // 2 + 1)), int(rng.integers(n_fft // 2, n_fft + 1))
        is_centred, is_complex, is_even = rng.integers(0, 2, 3).astype(bool)
        a = rng.normal(size=(2, 40)[rng.integers(2) :])
        a = a + 1j * a[..., ::-1] if is_complex else a
        w = rng.uniform(0.2, 1, length)
        x, window = (gt.asarray(one, device=place) for one in (a, w))
        options = {"window": window, "center": is_centred, "normalized": is_even}
        got = gt.stft(x, n_fft, hop, length, **options)
        half = n_fft // 2 if is_centred else 0
        padded = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(half, half)], "reflect")
        transform = np.fft.fft if is_complex else np.fft.rfft
        frames = frames_of(padded, n_fft, hop) * whole_window(w, n_fft)
        want = transform(frames, norm="ortho" if is_even else None)
        np.testing.assert_allclose(got.numpy(), np.swapaxes(want, -1, -2), 1e-9, 1e-9)
        options |= {"onesided": not is_complex, "return_complex": is_complex}
        back = gt.istft(got, n_fft, hop, length, **options).numpy()
        inside = slice(n_fft, -n_fft)  # every window covers it
        want = a[..., : back.shape[-1]][..., inside]
        np.testing.assert_allclose(back[..., inside], want, rtol=0, atol=1e-9)
        assert gt.istft(got, n_fft, hop, length, **options, length=20).shape[-1] == 20


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett"])
def test_windows_of_pytorch_have_one_period(place, name):
    function = getattr(gt, f"{name}_window")
    for count in (1, 2, 7, 8):
        for is_periodic in (True, False):
            want = scipy.signal.get_window(name, count, fftbins=is_periodic)
            got = function(count, is_periodic, dtype="float64", device=place)
            np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    assert function(0, device=place).shape == (0,)
    assert function(3, device=place).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: gt.stft(x, 0), "stft: n_fft: got 0; expected 1 or more"),
        (lambda x: gt.stft(x, 8, win_length=9), "stft: win_length: got 9; expected 1 to 8"),
        (lambda x: gt.stft(x, 8, window=x), r"stft: window: got shape \(16,\); expected \(8,\)"),
        (lambda x: gt.stft(x, 32, center=False), "stft: x: got 16 elements; expected 32 or more"),
        (lambda x: gt.stft(x, 8, return_complex=False), "stft: return_complex: got False"),
        (lambda x: gt.istft(x, 8), r"istft: x: got shape \(16,\); expected \(..., 5, frames\)"),
        (lambda x: gt.stft(x[None, None], 8), "stft: x: got 3 dimensions; expected 1 or 2"),
        (lambda x: gt.cartesian_prod(x[None]), "cartesian_prod: vectors: got a vector of 2 dim"),
        (lambda x: gt.einsum(x, [60]), "einsum: indices: got 60; expected 0 to 51"),
    ],
)
def test_wrong_arguments_are_named(place, call, message):
    with pytest.raises(ValueError, match=message):
        call(gt.ones(16, device=place))


def test_norm_with_p_is_pytorchs(place, rng):
    a = rng.normal(size=(3, 4))
    x = gt.asarray(a, device=place)
    assert np.isclose(float(x.norm(p=1)), np.abs(a).sum())
    assert np.isclose(float(gt.norm(x, p="fro")), np.sqrt((a**2).sum()))
    np.testing.assert_allclose(x.norm(p=3, dim=1).numpy(), (np.abs(a) ** 3).sum(1) ** (1 / 3))
    assert np.isclose(float(x.norm(1)), np.abs(a).sum(0).max())  # NumPy's ord
    with pytest.raises(TypeError, match="norm: p: got int; expected None beside ord"):
        x.norm(1, p=2)

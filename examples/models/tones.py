"""Sounds of dialled numbers, synthesised, and the filters of their log-mel spectra; NumPy alone.

The sound of a telephone key is two sines, one for its row and one for its column (ITU-T Q.23). Here
lengths, pauses, loudness and noise are random.
"""

import numpy as np

RATE, SECONDS, WINDOW, HOP, MELS = 8000, 2, 256, 80, 40
FRAMES = RATE * SECONDS // HOP
KEYS = "123456789*0#"
ROWS, COLUMNS = (697, 770, 852, 941), (1209, 1336, 1477)
MOST = 8  # keys of a sound


def number(rng):
    """Return a random text of 3 to MOST keys."""
    return "".join(rng.choice(list(KEYS), rng.integers(3, MOST + 1)))


def sound(keys, rng):
    """Return the sound of a text of keys: float32 (RATE * SECONDS,), within about -1 to 1."""
    found = rng.normal(0, rng.uniform(0.002, 0.06), RATE * SECONDS)
    share = RATE * SECONDS / (len(keys) + 0.5)
    at = rng.uniform(0, share / 2)
    for key in keys:
        row, column = divmod(KEYS.index(key), 3)
        length = int(share * rng.uniform(0.45, 0.75))
        t = np.arange(length) / RATE
        edge = np.minimum(1, np.minimum(t, t[::-1]) * 200)
        for pitch in (ROWS[row], COLUMNS[column]):
            wave = np.sin(2 * np.pi * (pitch * rng.uniform(0.985, 1.015) * t + rng.uniform()))
            found[int(at) : int(at) + length] += edge * wave * rng.uniform(0.15, 0.45)
        at += share * rng.uniform(0.9, 1)
    return found.astype(np.float32)


def mel_filters():
    """Return the triangles that sum WINDOW // 2 + 1 powers to MELS bands: float32, 2-d."""

    def mel(hertz):
        return 2595 * np.log10(1 + hertz / 700)

    edges = 700 * (10 ** (np.linspace(0, mel(RATE / 2), MELS + 2) / 2595) - 1)
    hertz = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (hertz - low) / (middle - low), (high - hertz) / (high - middle)
    found = np.maximum(0, np.minimum(rising, falling))
    return (found / np.maximum(found.sum(1, keepdims=True), 1e-6)).astype(np.float32)


def window():
    """Return Hann's window, float32 (WINDOW,)."""
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


def log_mel(samples):
    """Return the spectrum for the model, scaled like Whisper's: float32 (MELS, FRAMES)."""
    wide = np.pad(samples, (0, WINDOW - HOP))
    frames = np.lib.stride_tricks.sliding_window_view(wide, WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * window())) ** 2
    found = np.log10(np.maximum(power @ mel_filters().T, 1e-10)).T
    return ((np.maximum(found, found.max() - 8) + 4) / 4).astype(np.float32)

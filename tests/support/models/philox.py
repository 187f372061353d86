"""Philox 4x32-10 and its distributions in NumPy: a model for comparison with the library.

Written from the paper (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
independently of the library: words in uint64 arrays, logarithms and sines by NumPy in float64.
"""

import numpy as np

LOW = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """Return the words of each counter; counters and results are lists of four arrays."""
    c = [np.asarray(word, np.uint64) & LOW for word in counter]
    k = [int(word) for word in key]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high_a, high_b = a >> np.uint64(32), b >> np.uint64(32)
        c = [high_b ^ c[1] ^ np.uint64(k[0]), b & LOW, high_a ^ c[3] ^ np.uint64(k[1]), a & LOW]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def blocks(state, count):
    """Return the words of `count` blocks from a state on, as an array (count, 4)."""
    seed, low, high = (int(word) for word in state[:3])
    place = [(low + (high << 64) + i) % 2**128 for i in range(count)]
    counter = [np.array([p >> 32 * w & 0xFFFFFFFF for p in place], np.uint64) for w in range(4)]
    return np.stack(philox(counter, (seed & 0xFFFFFFFF, seed >> 32)), axis=1)


def words(state, count):
    """Return `count` words of 32 bits."""
    return blocks(state, -(-count // 4)).reshape(-1)[:count]


def wide_words(state, count):
    """Return `count` words of 64 bits."""
    pairs = blocks(state, -(-count // 2)).reshape(-1, 2)
    return (pairs[:, 0] | pairs[:, 1] << np.uint64(32))[:count]


def uniform(state, count, bits):
    """Return `count` numbers from 0 to 1 with `bits` random bits."""
    if bits > 32:
        return (wide_words(state, count) >> np.uint64(64 - bits)) * 2.0**-bits
    return (words(state, count) >> np.uint64(32 - bits)) * 2.0**-bits


def _positive(state, count, is_double):
    if is_double:
        return (wide_words(state, count) >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54
    made = words(state, count).astype(np.float32) * np.float32(2.0**-32)
    return (made + np.float32(2.0**-33)).astype(float)


def _rounded(function, x):
    """The nearest float64 to a function of `x`; NumPy's own may be several units away."""
    return function(x.astype(np.longdouble)).astype(float)


def exponential(state, count, is_double):
    return -_rounded(np.log, _positive(state, count, is_double))


def normal(state, count, is_double):
    even = count + count % 2
    length = _positive(state, even, is_double)[::2]
    # A quarter begins an eighth of a turn before its axis, so its middle is on the axis. Only the
    # angle to the axis is a float: one of the whole turn would be up to 8 units of 2**-53 off.
    word = (wide_words if is_double else words)(state, even)[1::2]
    bits = 62 if is_double else 30
    rest = (word & np.uint64((1 << bits) - 1)).astype(np.int64)
    rest = np.where(rest >= 1 << (bits - 1), rest - (1 << bits), rest)
    angle = rest.astype(float) * 2.0**-bits * (np.pi / 2)
    quarter = (word >> np.uint64(bits)).astype(int)
    cosine, sine = _rounded(np.cos, angle), _rounded(np.sin, angle)
    turned = [np.choose(quarter, [cosine, -sine, -cosine, sine]),
              np.choose(quarter, [sine, cosine, -sine, -cosine])]  # fmt: skip
    radius = np.sqrt(-2 * _rounded(np.log, length))
    return (radius * np.stack(turned)).T.reshape(-1)[:count]


def integers(state, count, least, greatest):
    """Use Lemire's method; a rejected word is replaced by one from Philox of its block."""
    reach = greatest - least + 1
    lanes, bits = (4, 32) if reach <= 1 << 32 else (2, 64)
    key = int(state[0]) & 0xFFFFFFFF, int(state[0]) >> 32
    result = []
    for index, block in enumerate(blocks(state, -(-count // lanes))):
        for lane in range(min(lanes, count - index * lanes)):
            now = [int(word) for word in block]
            while True:
                word = now[lane] if lanes == 4 else now[2 * lane] | now[2 * lane + 1] << 32
                if (word * reach) % 2**bits >= 2**bits % reach:
                    break
                now = [int(word) for word in philox(now, key)]
            result.append(least + (word * reach >> bits))
    return result

"""The coefficients in ``bessel.h``: ``python -m tests.support.bessel_coefficients`` prints them.

Each is an interpolation at Chebyshev nodes, with 60 digits, of a smooth part of a Bessel function
(Abramowitz and Stegun, chapter 9): the functions themselves up to `NEAR`, and the amplitudes of
their asymptotic forms beyond. It needs mpmath.
"""

import math
import textwrap

NEAR, K_NEAR = 8, 2
#: Shares of the greatest coefficient below which those of float64 and of float32 end.
ENDS = (1e-17, 4e-9)


def pieces(mp):
    """Return {name: (function of a variable from 0 to 1, whether it is a power series)}."""

    def near(function):
        return lambda w: function(NEAR * mp.sqrt(w) or mp.mpf(10) ** -30)

    def amplitude(n, is_sine):
        def value(w):
            x = NEAR / (mp.sqrt(w) or mp.mpf(10) ** -30)
            phase = x - (2 * n + 1) * mp.pi / 4
            j, y, root = mp.besselj(n, x), mp.bessely(n, x), mp.sqrt(mp.pi * x / 2)
            if is_sine:
                return root * (y * mp.cos(phase) - j * mp.sin(phase)) * x / NEAR
            return root * (j * mp.cos(phase) + y * mp.sin(phase))

        return value

    def scaled(function, n, sign, first):
        def value(w):
            x = first / w
            return function(n, x) * mp.exp(sign * x) * mp.sqrt(x)

        return value

    def y1(x):
        return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x

    def k_near(function):
        return lambda w: function(K_NEAR * mp.sqrt(w) or mp.mpf(10) ** -30)

    return {
        "J0": (near(lambda x: mp.besselj(0, x)), False),
        "J1": (near(lambda x: mp.besselj(1, x) / x), False),
        "Y0": (near(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)), False),
        "Y1": (near(y1), False),
        "P0": (amplitude(0, False), False),
        "Q0": (amplitude(0, True), False),
        "P1": (amplitude(1, False), False),
        "Q1": (amplitude(1, True), False),
        "I0": (near(lambda x: mp.besseli(0, x)), True),
        "I1": (near(lambda x: mp.besseli(1, x) / x), True),
        "I0_FAR": (scaled(mp.besseli, 0, -1, NEAR), False),
        "I1_FAR": (scaled(mp.besseli, 1, -1, NEAR), False),
        "K0": (k_near(lambda x: mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)), True),
        "K1": (
            k_near(lambda x: (mp.besselk(1, x) - 1 / x - mp.log(x / 2) * mp.besseli(1, x)) / x),
            True,
        ),
        "K0_FAR": (scaled(mp.besselk, 0, 1, K_NEAR), False),
        "K1_FAR": (scaled(mp.besselk, 1, 1, K_NEAR), False),
    }


def chebyshev(mp, function, count):
    """Return the coefficients of T0 to T(count - 1) of 2 w - 1, for w from 0 to 1."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / count for k in range(count)]
    values = [function((1 + mp.cos(angle)) / 2) for angle in angles]
    found = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / count
        for j in range(count)
    ]
    return [found[0] / 2, *found[1:]]


def powers(mp, series):
    """Return the coefficients of 1, w, w**2, ... of a Chebyshev series."""
    count = len(series)
    before, here = [mp.mpf(1)], [mp.mpf(-1), mp.mpf(2)]
    total = [mp.mpf(0)] * count
    for c in series:
        for k, one in enumerate(before):
            total[k] += c * one
        step = [mp.mpf(0)] * (len(here) + 1)
        for k, one in enumerate(here):
            step[k] -= 2 * one
            step[k + 1] += 4 * one
        for k, one in enumerate(before):
            step[k] -= one
        before, here = here, step
    return total


def coefficients():
    """Return {name: (coefficients, the number of them that float32 needs)}."""
    import mpmath as mp

    found = {}
    with mp.workdps(60):
        for name, (function, is_power) in pieces(mp).items():
            series = chebyshev(mp, function, 48)
            # All powers of a series that rises from w = 0 count beside its first value.
            most = abs(function(mp.mpf(0))) if is_power else max(abs(c) for c in series)
            counts = [
                next(k for k in range(48) if mp.fsum(map(abs, series[k:])) < most * end)
                for end in ENDS
            ]
            series = series[: counts[0]]
            if is_power:
                series = powers(mp, series)
                largest = abs(mp.fsum(series))
                counts[1] = next(
                    k for k in range(99) if abs(mp.fsum(series[k:])) <= largest * ENDS[1]
                )
            found[name] = [float(c) for c in series], counts[1]
    return found


def text():
    """Return the arrays as they stand in the header."""
    lines = []
    for name, (values, few) in coefficients().items():
        numbers = ", ".join(repr(one) for one in values)
        lines.append(f"BESSEL_TABLE({name}, {few}, {len(values)})")
        lines += textwrap.wrap(numbers, 92, initial_indent="    ", subsequent_indent="    ")
        lines.append("BESSEL_END")
        assert all(map(math.isfinite, values))
    return "\n".join(lines)


if __name__ == "__main__":
    print(text())

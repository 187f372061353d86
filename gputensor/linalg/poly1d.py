"""NumPy's polynomial of one variable as an object: coefficients, the highest power first."""

from gputensor.errors import Described, argument_error, int_argument
from gputensor.linalg.fits import poly, roots
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import zeros
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.numerics import polynomials
from gputensor.tensor.series import polyval

__all__ = ["poly1d"]


def _vector(c_or_r):
    if isinstance(c_or_r, poly1d):
        return c_or_r.coeffs
    values = c_or_r if isinstance(c_or_r, Tensor) else asarray(c_or_r)
    if values.ndim > 1:
        got = Described(f"{values.ndim} dimensions")
        raise argument_error(ValueError, "poly1d: c_or_r", got, "at most 1")
    return values.reshape(-1)


class poly1d:
    """Return the polynomial with coefficients `c_or_r`, or with these roots if `r` is true.

    Zeros before the first other coefficient are left out, which waits for the device. Sums,
    products, quotients and powers are polynomials; calls evaluate.

    Parameters
    ----------
    c_or_r : Tensor, poly1d, sequence or number
    r : bool
    variable : str, optional
        The variable's name in texts; default: "x".

    >>> import gputensor as gt
    >>> p = poly1d(gt.asarray([1.0, 2.0, 3.0], device="host"))
    >>> p(0.5).item(), p.order, (p * p)[0].item()
    (4.25, 2, 9.0)
    """

    __array_priority__ = 1000

    def __init__(self, c_or_r, r=False, variable=None):
        coefficients = _vector(c_or_r)
        if r:
            coefficients = poly(coefficients)
        places = fn.not_equal(coefficients, 0).nonzero()[0]
        if places.size == 0:
            coefficients = zeros(1, coefficients.dtype, device=coefficients.device)
        else:
            coefficients = coefficients[int(places[0]) :]
        self._coefficients = coefficients
        self.variable = variable or getattr(c_or_r, "variable", "x")

    @property
    def coeffs(self):
        """The coefficients, the highest power first."""
        return self._coefficients

    c = coef = coefficients = coeffs

    @property
    def order(self):
        """The highest power."""
        return self._coefficients.size - 1

    o = order

    @property
    def roots(self):
        """The roots, as complex numbers; see :func:`roots`."""
        return roots(self._coefficients)

    r = roots

    def __call__(self, x):
        if isinstance(x, poly1d):
            made = poly1d(self._coefficients[:1])
            for power in range(self.order - 1, -1, -1):
                made = made * x + self[power]
            return made
        return polyval(self._coefficients, x)

    def deriv(self, m=1):
        """Return the derivative of order `m`."""
        return poly1d(polynomials.polyder(self._coefficients, m), variable=self.variable)

    def integ(self, m=1, k=0):
        """Return the integral of order `m` with constants `k`."""
        return poly1d(polynomials.polyint(self._coefficients, m, k), variable=self.variable)

    def _made(self, function, *operands):
        return poly1d(function(*(_vector(one) for one in operands)), variable=self.variable)

    def _beside(self, value):
        """Return a number, list or polynomial as coefficients on this polynomial's device."""
        if isinstance(value, (poly1d, Tensor)):
            return _vector(value)
        return fn.positive(asarray(value, device=self._coefficients.device)).reshape(-1)

    def __neg__(self):
        return poly1d(fn.negative(self._coefficients), variable=self.variable)

    def __pos__(self):
        return self

    def __add__(self, other):
        return self._made(polynomials.polyadd, self, self._beside(other))

    __radd__ = __add__

    def __sub__(self, other):
        return self._made(polynomials.polysub, self, self._beside(other))

    def __rsub__(self, other):
        return self._made(polynomials.polysub, self._beside(other), self)

    def __mul__(self, other):
        return self._made(polynomials.polymul, self, self._beside(other))

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, (int, float, complex)):
            return poly1d(fn.divide(self._coefficients, other), variable=self.variable)
        return tuple(
            poly1d(one, variable=self.variable)
            for one in polynomials.polydiv(self._coefficients, self._beside(other))
        )

    def __pow__(self, exponent):
        exponent = int_argument("poly1d: exponent", exponent)
        if exponent < 0:
            raise argument_error(ValueError, "poly1d: exponent", exponent, "0 or more")
        made = poly1d(fn.add(zeros(1, self.coeffs.dtype, device=self.coeffs.device), 1))
        for _ in range(exponent):
            made = made * self
        return made

    def __eq__(self, other):
        if not isinstance(other, poly1d):
            return NotImplemented
        a, b = self._coefficients, other._coefficients
        return a.shape == b.shape and bool(fn.all(fn.equal(a, b)))

    def __len__(self):
        return self.order

    def __iter__(self):
        return iter(self._coefficients)

    def __getitem__(self, power):
        power = int_argument("poly1d: power", power)
        if not 0 <= power <= self.order:
            return zeros((), self.coeffs.dtype, device=self.coeffs.device)
        return self._coefficients[self.order - power]

    def __setitem__(self, power, value):
        power = int_argument("poly1d: power", power)
        if power < 0:
            raise argument_error(ValueError, "poly1d: power", power, "0 or more")
        missing = power - self.order
        if missing > 0:
            head = zeros(missing, self.coeffs.dtype, device=self.coeffs.device)
            self._coefficients = concat([head, self._coefficients])
        elif self._coefficients.size:
            self._coefficients = astype(self._coefficients, self.coeffs.dtype, copy=True)
        self._coefficients[self.order - power] = value

    def __repr__(self):
        return f"poly1d({self._coefficients.tolist()})"

    def __str__(self):
        terms = [
            f"{number:.4g}" + ("" if power == 0 else f" {self.variable}^{power}")
            for power, number in zip(
                range(self.order, -1, -1), self._coefficients.tolist(), strict=True
            )
        ]
        return " + ".join(terms)

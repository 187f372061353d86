// The gamma function's relatives in double: the regularized incomplete gamma functions P(a, x) and
// Q(a, x) = 1 - P(a, x), the derivatives of its logarithm, Hurwitz's zeta function, and
// quantiles of the Poisson distribution.
//
// P and Q for a below 20: the power series of P, the continued fraction of Q, and near 0, where P is
// close to 1, a series of Q itself (DLMF 8.7.1, 8.9.2, 8.4). From 20 on: 32-point Gauss-Legendre
// quadrature of the integral that decreases from x on, Q above a and P below. Whichever of P and Q
// is small is computed directly, so that it keeps its relative accuracy.
#pragma once

#include "gputensor/_kernels/cuda/special/both.h"
#include "gputensor/_kernels/cuda/special/normal.h"

// The positive half of the nodes and weights of the Gauss-Legendre rule with 32 points, in [-1, 1].
#define GPUTENSOR_GAUSS_NODES {                                                                \
    0.048307665687738324, 0.1444719615827965, 0.23928736225213706, 0.33186860228212767,        \
    0.42135127613063533, 0.5068999089322294, 0.5877157572407623, 0.6630442669302152,           \
    0.7321821187402897, 0.7944837959679424, 0.84936761373257, 0.8963211557660521,              \
    0.9349060759377397, 0.9647622555875064, 0.9856115115452684, 0.9972638618494816}
#define GPUTENSOR_GAUSS_WEIGHTS {                                                              \
    0.09654008851472766, 0.09563872007927471, 0.09384439908080451, 0.09117387869576378,        \
    0.08765209300440378, 0.08331192422694671, 0.07819389578707023, 0.07234579410884834,        \
    0.06582222277636168, 0.058684093478535565, 0.05099805926237609, 0.042835898022226836,      \
    0.034273862913021765, 0.025392065309262024, 0.016274394730905743, 0.007018610009470506}

namespace gputensor {
namespace gammas {

// log(1 + u) - u for u above -1, accurate near 0.
GPUTENSOR_CALLED double log1p_rest(double u) {
    if (!(u > -0.5 && u < 1)) return log1p(u) - u;
    const double r = u / (2 + u), s = r * r;
    double sum = 0;
    for (int k = 18; k > 0; --k) sum = s * (1 / (double)(2 * k + 1) + sum);
    return 2 * r * sum - u * r;
}

// log(gamma(1 + a)) for a from 0 to 1, accurate near 0.
GPUTENSOR_SPECIAL double lgamma1p(double a) {
    if (a > 0.1) return lgamma(1 + a);
    const double zeta[14] = {
        1.6449340668482264, 1.2020569031595943, 1.0823232337111382, 1.0369277551433699,
        1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822,
        1.0009945751278181, 1.0004941886041195, 1.0002460865533080, 1.0001227133475785,
        1.0000612481350587, 1.0000305882363070};
    double sum = 0;
    for (int k = 15; k > 1; --k) sum = a * (zeta[k - 2] / k - sum);
    return a * (sum - 0.57721566490153286061);
}

// x^a exp(-x) / gamma(a + 1)
GPUTENSOR_CALLED double gamma_density(double a, double x) {
    if (a < 20) return exp(a * log(x) - x - lgamma(a + 1));
    const double y = 1 / (a * a);    // Stirling's series
    const double tail = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680
        - y * (1.0 / 1188))))) / a;
    const double away = (x - a) / a;
    const double power = away > -0.5 ? a * log1p_rest(away) : a * log(x / a) - (x - a);
    return exp(power - tail) / (2.50662827463100050242 * sqrt(a));
}

// The integral of exp(-phi(u)) from 0 on, where phi(u) = slope * u - b * (log(1 + s u) - s u), for
// s = 1 (Q, slope > 0) or s = -1 (P, u < 1). `end` is at least where phi is 40.
GPUTENSOR_CALLED double gamma_integral(double b, double slope, int s, double end) {
    GPUTENSOR_ROLL
    for (int i = 0; i < 6; ++i) {       // Newton's steps: phi is convex, and they stay above
        const double height = slope * end - b * log1p_rest(s * end) - 40;
        end -= height / (slope + b * end / (1 + s * end));
    }
    const double nodes[16] = GPUTENSOR_GAUSS_NODES, weights[16] = GPUTENSOR_GAUSS_WEIGHTS;
    double sum = 0;
    GPUTENSOR_ROLL
    for (int i = 0; i < 32; ++i) {
        const double node = i & 1 ? -nodes[i / 2] : nodes[i / 2], u = end * (1 + node) / 2;
        sum += weights[i / 2] * exp(b * log1p_rest(s * u) - slope * u);
    }
    return sum * end / 2;
}

// Q if `upper`, otherwise P. Outside a >= 0, x >= 0 and where both are 0 or infinite: NaN.
GPUTENSOR_CALLED double incomplete(double a, double x, bool upper) {
    const double none = upper ? 1 : 0, all = upper ? 0 : 1;
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x)))
        return (double)0 / (a - a + (x - x) + (double)0 * a * x);
    if (a == 0 || isinf(x)) return all;
    if (x == 0 || isinf(a)) return none;
    if (a >= 20) {
        const double b = a - 1, scale = gamma_density(a, x) * a;
        double end = b < 240 ? (double)1e300 : sqrt(240 / b), part = 0;
        if (scale == 0) return (x >= a) == upper ? (double)0 : (double)1;
        if (x >= a) {
            part = scale * gamma_integral(b, x - b, 1, fmin(end, 40 / (x - b)));
            return upper ? part : 1 - part;
        }
        end = fmin(1 - exp(-1 - 41 / b), sqrt(82 / b));
        if (b > x) end = fmin(end, 40 / (b - x));
        part = scale * gamma_integral(b, b - x, -1, end);
        return upper ? 1 - part : part;
    }
    if (a < 1 && x < 1.5 && (upper || x > a + 1)) {
        const double power = a * log(x) - lgamma1p(a);
        double sum = 0, term = 1;
        GPUTENSOR_ROLL
        for (int n = 1; n < 40; ++n) sum += (term *= -x / n) / (a + n);
        const double part = -expm1(power) - exp(power) * a * sum;
        return upper ? part : 1 - part;
    }
    const double density = gamma_density(a, x);
    if (x <= a + 1) {
        double sum = 1, term = 1;
        GPUTENSOR_ROLL
        for (int n = 1; n < 200 && term > sum * 1e-17; ++n) sum += term *= x / (a + n);
        return upper ? 1 - density * sum : density * sum;
    }
    if (density == 0) return all;
    double b = x + 1 - a, d = 1 / b, c = (double)1e300, part = d;      // Lentz's algorithm
    GPUTENSOR_ROLL
    for (int n = 1; n < 300; ++n) {
        const double factor = n * (a - n);
        b += 2;
        d = 1 / (factor * d + b);
        c = b + factor / c;
        part *= c * d;
        if (fabs(c * d - 1) < 2e-16) break;
    }
    part *= density * a;
    return upper ? part : 1 - part;
}

// The recurrence up to 10, then the asymptotic series (DLMF 5.5.2, 5.11.2); below 0 by reflection,
// whose period is 1: psi(x) = psi(1 - x) - pi / tan(pi x).
GPUTENSOR_CALLED double digamma(double x) {
    double result = 0;
    if (x == 0) return -1 / x;
    if (x < 0) {
        const double share = x - rint(x);
        if (share == 0 || x != x) return share / share;
        result = -3.14159265358979323846 / tan(3.14159265358979323846 * share);
        x = 1 - x;
    }
    GPUTENSOR_ROLL
    for (; x < 10; x += 1) result -= 1 / x;
    const double y = 1 / (x * x);
    const double tail = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240
        - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
    return result + log(x) - 0.5 / x - (isinf(x) ? 0 : tail);
}

// The sum of (q + k)^-s over all k from 0, for s > 1 and q > 0: ten terms, and the rest by the
// formula of Euler and Maclaurin (DLMF 25.11.5).
GPUTENSOR_CALLED double hurwitz(double s, double q) {
    // B(2 k) / (2 k)! (DLMF, table 24.2.1)
    const double shares[12] = {
        8.3333333333333333e-02, -1.3888888888888889e-03, 3.3068783068783069e-05,
        -8.2671957671957672e-07, 2.0876756987868099e-08, -5.2841901386874932e-10,
        1.3382536530684679e-11, -3.3896802963225829e-13, 8.5860620562778446e-15,
        -2.1748686985580619e-16, 5.5090028283602295e-18, -1.3954464685812523e-19};
    double total = pow(q, -s);
    if (isinf(s)) return q < 1 ? s : q == 1 ? 1 : 0;
    if (isinf(q) || isinf(total)) return total;
    GPUTENSOR_ROLL
    for (int k = 1; k < 10; ++k) {
        const double term = pow(q + k, -s);
        total += term;
        if (term < total * 1e-18) return total;
    }
    const double start = q + 10, power = pow(start, -s), square = 1 / (start * start);
    total += power * start / (s - 1) + power / 2;
    double term = s * power / start;
    GPUTENSOR_ROLL
    for (int k = 0; k < 12; ++k) {
        const double part = shares[k] * term;
        total += part;
        if (fabs(part) < total * 1e-18) break;
        term *= (s + 2 * k + 1) * (s + 2 * k + 2) * square;
    }
    return total;
}

// inf for s of 1 and where q is 0 or a negative integer; NaN for smaller s and other negative q.
GPUTENSOR_CALLED double zeta(double s, double q) {
    if (s != s || q != q || s < 1) return (s - s) / (s - s);
    if (s == 1 || (q <= 0 && floor(q) == q)) return 1 / fabs(s - s);
    return q < 0 ? (q - q) / (q - q) : hurwitz(s, q);
}

// Derivative n of digamma, for n of 1 or more: (-1)^(n+1) n! times the sum of (x + k)^-(n+1). Below
// 0, the places x + k are above 0 from one share of 1 on, and before it a part of another series.
GPUTENSOR_CALLED double polygamma(double n, double x) {
    if (n == 0) return digamma(x);
    if (x != x || !(n > 0) || floor(n) != n) return (x - x) / (x - x);
    const double sign = floor(n / 2) * 2 == n ? -1 : 1;
    double size = 1;
    for (double k = 2; k <= n && k < 172; ++k) size *= k;    // 171! overflows
    if (x > 0) return sign * size * hurwitz(n + 1, x);
    if (floor(x) == x) return sign / fabs(x - x);
    const double share = -x - floor(-x);
    const double below = hurwitz(n + 1, share) - hurwitz(n + 1, 1 - x);
    return sign * size * hurwitz(n + 1, 1 - share) + size * below;
}

// The least count with a cumulative probability of `share` or more. It steps from the most frequent
// count, whose cumulative share is summed; for large means: Cornish and Fisher's expansion.
GPUTENSOR_CALLED double poisson_quantile(double share, double mean) {
    const double zero = 0;
    if (!(share >= 0 && share <= 1 && mean >= 0)) return zero / zero;
    if (mean == 0 || share == 0) return 0;
    if (share == 1) return 1 / zero;
    if (mean > 131072) {
        const double z = normal::quantile(share - 0.5, fmin(share, 1 - share));
        return fmax(floor(mean + sqrt(mean) * z + (z * z - 1) / 6 + 0.5), zero);
    }
    double count = floor(mean);
    double here = exp(count * log(mean) - mean - lgamma(count + 1)), total = here, one = here;
    for (double k = count; k > 0 && one > total * 1e-18; k -= 1) total += one *= k / mean;
    while (share > total && here > 0) total += here *= mean / (count += 1);
    while (count > 0 && share <= total - here) {
        total -= here;
        here *= count / mean;
        count -= 1;
    }
    return count;
}

}  // namespace gammas
}  // namespace gputensor

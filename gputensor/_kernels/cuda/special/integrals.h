// Integrals in double: the regularized incomplete beta function I(x; a, b), exponential integrals
// and the complete elliptic integral K; and the inverses of I and of the functions of gammas.h.
//
// I for a or b below 20: the even part of its continued fraction (DLMF 8.17.22), on the side where
// that converges fast. From 20 on: the quadrature of gammas.h, whose integral decreases from x on.
#pragma once

#include "gputensor/_kernels/cuda/special/gammas.h"

namespace gputensor {
namespace integrals {

// exp(-s) - 1 + s, accurate near 0.
GPUTENSOR_SPECIAL double exp_rest(double s) {
    if (fabs(s) > 0.5) return expm1(-s) + s;
    double sum = 0;
    GPUTENSOR_ROLL
    for (int k = 17; k > 1; --k) sum = s / k * (1 - sum);
    return s * sum;
}

// The rest of Stirling's formula for the logarithm of gamma, for x from 10 on (DLMF 5.11.1).
GPUTENSOR_SPECIAL double stirling(double x) {
    const double y = 1 / (x * x);
    return (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y * (1.0 / 1188
        - y * (691.0 / 360360 - y * (1.0 / 156 - y * (3617.0 / 122400)))))))) / x;
}

// The logarithm of the beta function of a and b above 0; special.betaln has other a and b, too.
GPUTENSOR_CALLED double lbeta(double a, double b) {
    const double small = fmin(a, b), large = fmax(a, b);
    if (large < 10) return lgamma(small) + lgamma(large) - lgamma(small + large);
    const double total = small + large;
    const double rest = small - (large - 0.5) * log1p(small / large) - small * log(total)
        + stirling(large) - stirling(total);
    return lgamma(small) + rest;
}

// x^a y^b / beta(a, b) with y = 1 - x.
GPUTENSOR_CALLED double beta_density(double a, double b, double x, double y) {
    if (a < 10 || b < 10) {
        const double power = a * (x < 0.5 ? log(x) : log1p(-y));
        return exp(power + b * (y < 0.5 ? log(y) : log1p(-x)) - lbeta(a, b));
    }
    const double total = a + b, off = x * b - y * a, u = off / a, v = -off / b;
    const double tail = stirling(a) + stirling(b) - stirling(total);
    const double power = a * (u > -0.5 ? gammas::log1p_rest(u) : log(x * (total / a)) - u)
        + b * (v > -0.5 ? gammas::log1p_rest(v) : log(y * (total / b)) - v);
    return exp(power - tail) * sqrt(a / total * b) * 0.39894228040143267794;
}

// I(x; a, b) for x below about a / (a + b), where the integral decreases from x to 0.
GPUTENSOR_CALLED double beta_tail(double a, double b, double x, double y) {
    const double scale = beta_density(a, b, x, y);
    if (scale == 0) return 0;
    if (a < 20 || b < 20) {
        const double gap = a * y - b * x;
        double part = a / (a + 1) * (gap + 1), c = part, d = 0;     // Lentz's algorithm
        GPUTENSOR_ROLL
        for (int n = 1; n < 5000; ++n) {
            const double low = a + (2 * n - 1), third = x / low;
            const double above = (a + (n - 1)) * (a + b + (n - 1)) * n * (b - n) * third * third;
            const double below = n + n * (b - n) * third
                + (a + n) / (low + 2) * (gap + 1 + n * (1 + y));
            d = below + above * d, c = below + above / c;
            d = 1 / d;
            part *= c * d;
            if (fabs(c * d - 1) < 2e-16) break;
        }
        return scale / part;
    }
    // t = x exp(-s): the integrand is exp(-phi(s)), and phi is convex.
    const double ratio = x / y, slope = (a * y - (b - 1) * x) / y;
    double end = (40 + (b - 1) * log1p(ratio)) / a;       // phi is 40 or more there
    if (slope > 0) end = fmin(end, 40 / slope);
    GPUTENSOR_ROLL
    for (int i = 0; i < 60; ++i) {                        // Newton's steps towards phi of 40
        const double moved = -ratio * expm1(-end);
        const double height = slope * end + (b - 1) * (ratio * exp_rest(end)
            - gammas::log1p_rest(moved)) - 40;
        const double step = height / (a - (b - 1) * ratio * exp(-end) / (1 + moved));
        end -= step;
        if (fabs(step) < end * 1e-3) break;
    }
    const double nodes[16] = GPUTENSOR_GAUSS_NODES, weights[16] = GPUTENSOR_GAUSS_WEIGHTS;
    double sum = 0;
    GPUTENSOR_ROLL
    for (int i = 0; i < 32; ++i) {
        const double node = i & 1 ? -nodes[i / 2] : nodes[i / 2], s = end * (1 + node) / 2;
        const double rest = ratio * exp_rest(s) - gammas::log1p_rest(-ratio * expm1(-s));
        sum += weights[i / 2] * exp(-slope * s - (b - 1) * rest);
    }
    return scale / y * sum * end / 2;
}

// log(gamma(a + b) / gamma(a)) for b below 1, accurate near 0: a series in b (DLMF 25.11.12).
GPUTENSOR_SPECIAL double lgamma_growth(double a, double b) {
    if (b > 0.1) return a < 10 ? lgamma(a + b) - lgamma(a) : lgamma(b) - lbeta(a, b);
    double sum = b * gammas::digamma(a + 1) - log1p(b / a), power = -b;
    GPUTENSOR_ROLL
    for (int k = 2; k < 18 && fabs(power) > 1e-17 * b; ++k)
        power *= -b, sum += power * gammas::hurwitz(k, a + 1) / k;
    return sum;
}

// I(x; a, b), where y is 1 - x.
GPUTENSOR_CALLED double beta_share(double a, double b, double x, double y) {
    if (x * (a + b + 2) < a + 1) return beta_tail(a, b, x, y);
    if (b >= 1) return 1 - beta_tail(b, a, y, x);
    // 1 - I(y; b, a) may be small: a series of itself, with y * a below 2 (DLMF 8.17.7).
    const double power = b * log(y) + lgamma_growth(a, b) - gammas::lgamma1p(b);
    double sum = 0, term = 1;
    GPUTENSOR_ROLL
    for (int n = 1; n < 100 && fabs(term) > 1e-18; ++n) sum += (term *= (n - a) * y / n) / (b + n);
    return -expm1(power) - exp(power) * b * sum;
}

// NaN for negative a or b, for x outside of [0, 1], and where both are 0 or infinite.
GPUTENSOR_CALLED double betainc(double a, double b, double x) {
    const double none = (a - a) + (b - b) + (x - x);
    if (!(a >= 0 && b >= 0 && x >= 0 && x <= 1)) return (none + 0 * a) / (none * 0);
    if ((a == 0 && b == 0) || (isinf(a) && isinf(b))) return (double)0 / (a == b ? 0 * x : 1);
    if (x == 0 || x == 1) return x;
    if (a == 0 || b == 0 || isinf(a) || isinf(b)) return a == 0 || isinf(b) ? 1 : 0;
    return beta_share(a, b, x, 1 - x);
}

// Newton's steps for the logarithm of a share that is `wanted` inside of a bracket, which is halved
// when they leave it or do not help. `F` has at(x) and slope(x); at falls if `is_falling`.
template <class F>
GPUTENSOR_SPECIAL double inverse(const F& of, double wanted, double x, double high,
                                 bool is_falling) {
    double low = 0;
    GPUTENSOR_ROLL
    for (int i = 0; i < 200; ++i) {
        const double found = of.at(x);
        if (found == wanted) return x;
        if ((found < wanted) == is_falling) high = x;
        else low = x;
        const double step = found * log(found / wanted) / of.slope(x);
        double next = is_falling ? x + step : x * exp(-step / x);
        if (fabs(step) <= 1e-10 * x) return next;
        if (!(next > low && next < high) || i % 16 == 15) {
            if (isinf(high)) next = 2 * x + 1;
            else if (low == 0) next = high * (i < 20 ? 0.125 : 1e-8);
            else next = high > 4 * low ? sqrt(low) * sqrt(high) : low + (high - low) / 2;
        }
        if (next == x || !(next > 0)) return next;
        x = next;
    }
    return x;
}

struct BetaShare {
    double a, b;
    GPUTENSOR_SPECIAL double at(double x) const { return beta_share(a, b, x, 1 - x); }
    GPUTENSOR_SPECIAL double slope(double x) const {
        return beta_density(a, b, x, 1 - x) / (x * (1 - x));
    }
};
struct GammaShare {
    double a;
    bool upper;
    GPUTENSOR_SPECIAL double at(double x) const { return gammas::incomplete(a, x, upper); }
    GPUTENSOR_SPECIAL double slope(double x) const { return gammas::gamma_density(a, x) * a / x; }
};

// The x at which I(x; a, b) is y.
GPUTENSOR_CALLED double betaincinv(double a, double b, double y) {
    if (!(a > 0 && b > 0 && y >= 0 && y <= 1)) return (y - y) / (y - y);
    if (y == 0 || y == 1) return y;
    if (isinf(a) || isinf(b)) return (a - a) / (b - b);
    const double middle = a / (a + b), share = beta_share(a, b, middle, b / (a + b));
    // From the first term of the series at that end of [0, 1] whose side has y.
    if (y <= share) {
        const double near = exp((log(y) + log(a) + lbeta(a, b)) / a);
        const BetaShare of = {a, b};
        if (near < 1e-300) return near;
        return inverse(of, y, near < middle ? near : middle, 1.0, false);
    }
    const double near = exp((log1p(-y) + log(b) + lbeta(a, b)) / b);
    const BetaShare of = {b, a};
    if (near < 1e-17) return 1;
    return 1 - inverse(of, 1 - y, near < 1 - middle ? near : 1 - middle, 1.0, false);
}

// The x at which P(a, x), or Q(a, x) if `upper`, is y.
GPUTENSOR_CALLED double gammaincinv(double a, double y, bool upper) {
    const double zero = 0;
    if (!(a >= 0 && y >= 0 && y <= 1)) return zero / zero;
    if (y == 0 || y == 1) return (y == 0) == upper ? 1 / zero : 0;
    if (a == 0 || isinf(a)) return zero / zero;
    const double lower = upper ? 1 - y : y;
    const double near = exp(((upper ? log1p(-y) : log(y)) + lgamma(a + 1)) / a);
    if (near < 1e-300) return near;
    double start = near;
    if (!(near < 0.2 * (a + 1))) {
        const double z = normal::quantile(lower - 0.5, fmin(y, 1 - y));
        const double root = 1 - 1 / (9 * a) + z / (3 * sqrt(a));
        start = root > 0.1 ? a * root * root * root : near < a ? near : a;
    }
    const GammaShare of = {a, upper};
    return inverse(of, y, start > 0 ? start : 1, 1 / zero, upper);
}

// E_n(x): the series up to 1, the continued fraction beyond (DLMF 8.19.8, 8.19.17). NaN for
// negative x and for n that is not a natural number.
GPUTENSOR_CALLED double expn(double n, double x) {
    if (!(n >= 0 && x >= 0) || isinf(n) || floor(n) != n) return (x - x) / (x - x + (n - n));
    if (isinf(x)) return 0;
    if (n == 0) return exp(-x) / x;
    if (x == 0) return 1 / (n - 1);
    if (x > 1) {
        double b = x + n, d = 1 / b, c = 1e300, part = d;
        GPUTENSOR_ROLL
        for (int k = 1; k < 1000; ++k) {
            const double factor = -k * (n - 1 + k);
            b += 2;
            d = 1 / (factor * d + b);
            c = b + factor / c;
            part *= c * d;
            if (fabs(c * d - 1) < 2e-16) break;
        }
        return part * exp(-x);
    }
    double sum = n == 1 ? -log(x) - 0.57721566490153286061 : 1 / (n - 1), term = 1;
    GPUTENSOR_ROLL
    for (int k = 1; k < 400; ++k) {
        term *= -x / k;
        const double part = term * (k == n - 1 ? log(x) - gammas::digamma(n) : 1 / (k - n + 1));
        sum -= part;
        if (fabs(part) < fabs(sum) * 1e-17 && k != n - 2) break;
    }
    return sum;
}

// Ei(x): the series, from 40 on the asymptotic one (DLMF 6.6.2, 6.12.2), and -E_1(-x) below 0. The
// root is taken from the sum near it.
GPUTENSOR_CALLED double expi(double x) {
    if (x < 0) return -expn(1, -x);
    if (x == 0) return -1 / fabs(x);
    double sum = 0, term = 1;
    if (x > 40) {
        GPUTENSOR_ROLL
        for (int k = 1; k < 60 && fabs(term) > 1e-17; ++k) sum += term, term *= k / x;
        return isinf(x) ? x : exp(x / 2) / x * sum * exp(x / 2);
    }
    GPUTENSOR_ROLL
    for (int k = 1; k < 200; ++k) {
        const double part = (term *= x / k) / k;
        sum += part;
        if (part < sum * 1e-17) break;
    }
    return sum + (log(x) + 0.57721566490153286061);
}

// K(1 - p), by the arithmetic-geometric mean (DLMF 19.8.5). inf at 0, and NaN below.
GPUTENSOR_CALLED double ellipkm1(double p) {
    if (!(p > 0)) return p == 0 ? 1 / (p * p) : (p - p) / (p - p);
    if (isinf(p)) return 0;
    double a = 1, g = sqrt(p);
    GPUTENSOR_ROLL
    for (int i = 0; i < 40 && fabs(a - g) > 1e-8 * a; ++i) {
        const double mean = (a + g) / 2;
        g = sqrt(a) * sqrt(g), a = mean;
    }
    return 3.14159265358979323846 / (a + g);
}

}  // namespace integrals
}  // namespace gputensor

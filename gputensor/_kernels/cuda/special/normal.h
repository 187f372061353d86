// The normal distribution in double: quantiles, and functions that keep their accuracy in its tails.
#pragma once

#include "gputensor/_kernels/cuda/special/both.h"

namespace gputensor {
namespace normal {

// exp(x^2) erfc(x). Its asymptotic series from 12 on: the terms fall below 2^-53 before they grow.
GPUTENSOR_CALLED double erfcx(double x) {
    if (x < 12) return exp(x * x) * erfc(x);
    const double step = -0.5 / (x * x);
    double sum = 1;
    GPUTENSOR_UNROLL
    for (int k = 10; k > 0; --k) sum = 1 + (2 * k - 1) * step * sum;
    return sum / (x * 1.77245385090551602730);
}

// p0 + p1 x + ... + p7 x^7
GPUTENSOR_SPECIAL double polynomial(const double (&p)[8], double x) {
    double sum = p[7];
    GPUTENSOR_UNROLL
    for (int i = 6; i >= 0; --i) sum = sum * x + p[i];
    return sum;
}

// The quantile of a probability p = 1/2 + q whose smaller side, p or 1 - p, is `tail`: down to 1e-11
// quotients of polynomials with the coefficients of Wichura's algorithm AS 241 (Applied Statistics
// 37, 1988).
GPUTENSOR_CALLED double quantile(double q, double tail) {
    const double a[8] = {
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3};
    const double b[8] = {
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
        2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
        5.2264952788528545610e3};
    const double c[8] = {
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4};
    const double d[8] = {
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
        1.05075007164441684324e-9};
    if (fabs(q) <= 0.425) {
        const double w = 0.180625 - q * q;
        return q * polynomial(a, w) / polynomial(b, w);
    }
    if (!(tail > 0)) return tail == 0 ? q / tail : (tail - tail) / (tail - tail);
    const double aim = log(tail), r = sqrt(-aim);
    if (r <= 5) return copysign(polynomial(c, r - 1.6) / polynomial(d, r - 1.6), q);
    // Newton's method for the logarithm of the tail, from the asymptotic value.
    double size = sqrt(-2 * aim - log(-2 * aim) - 1.83787706640934548356);
    for (int i = 0; i < 3; ++i) {
        const double share = erfcx(size * 0.70710678118654752440);
        size += (log(share / 2) - size * size / 2 - aim) * share * 1.25331413731550025121;
    }
    return copysign(size, q);
}

// Adding 0 turns -0 into 0, so that the tail has no sign.
GPUTENSOR_SPECIAL double ndtri(double p) { return quantile(p - 0.5, fmin(p + 0.0, 1 - p)); }

GPUTENSOR_SPECIAL double erfinv(double x) {
    return x == 0 ? x : 0.70710678118654752440 * quantile(x / 2, (1 - fabs(x)) / 2);
}

GPUTENSOR_SPECIAL double erfcinv(double y) {
    return -0.70710678118654752440 * quantile((y - 1) / 2, fmin(y + 0.0, 2 - y) / 2);
}

GPUTENSOR_SPECIAL double log_ndtr(double x) {
    if (x < -1) return log(erfcx(x * -0.70710678118654752440) / 2) - x * x / 2;
    return log1p(erfc(x * 0.70710678118654752440) / -2);
}

}  // namespace normal
}  // namespace gputensor

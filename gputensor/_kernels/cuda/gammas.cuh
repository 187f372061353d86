// The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x), computed in double.
//
// For a below 20: the power series of P, the continued fraction of Q, and near 0, where P is close
// to 1, a series of Q itself (DLMF 8.7.1, 8.9.2, 8.4). From 20 on: 32-point Gauss-Legendre
// quadrature of the integral that decreases from x on, Q above a and P below. Whichever of P and Q
// is small is computed directly, so that it keeps its relative accuracy. host/gammas.py has the
// same formulas.
#pragma once

#define GAMMA_FN template <class T> __device__

// log(1 + u) - u for u above -1, accurate near 0.
GAMMA_FN T log1p_rest(T u) {
    if (!(u > -0.5 && u < 1)) return log1p(u) - u;
    const T r = u / (2 + u), s = r * r;
    T sum = 0;
    for (int k = 18; k > 0; --k) sum = s * (1 / (T)(2 * k + 1) + sum);
    return 2 * r * sum - u * r;
}

// log(gamma(1 + a)) for a from 0 to 1, accurate near 0.
GAMMA_FN T lgamma1p(T a) {
    if (a > 0.1) return lgamma(1 + a);
    const T zeta[14] = {
        1.6449340668482264, 1.2020569031595943, 1.0823232337111382, 1.0369277551433699,
        1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822,
        1.0009945751278181, 1.0004941886041195, 1.0002460865533080, 1.0001227133475785,
        1.0000612481350587, 1.0000305882363070};
    T sum = 0;
    for (int k = 15; k > 1; --k) sum = a * (zeta[k - 2] / k - sum);
    return a * (sum - 0.57721566490153286061);
}

// x^a exp(-x) / gamma(a + 1)
GAMMA_FN T gamma_density(T a, T x) {
    if (a < 20) return exp(a * log(x) - x - lgamma(a + 1));
    const T y = 1 / (a * a);    // Stirling's series
    const T tail = (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680
        - y * (1.0 / 1188))))) / a;
    const T away = (x - a) / a;
    const T power = away > -0.5 ? a * log1p_rest<T>(away) : a * log(x / a) - (x - a);
    return exp(power - tail) / (2.50662827463100050242 * sqrt(a));
}

// The integral of exp(-phi(u)) from 0 on, where phi(u) = slope * u - b * (log(1 + s u) - s u), for
// s = 1 (Q, slope > 0) or s = -1 (P, u < 1). `end` is at least where phi is 40.
GAMMA_FN T gamma_integral(T b, T slope, int s, T end) {
    for (int i = 0; i < 6; ++i) {       // Newton's steps: phi is convex, and they stay above
        const T height = slope * end - b * log1p_rest<T>(s * end) - 40;
        end -= height / (slope + b * end / (1 + s * end));
    }
    const T nodes[16] = {
        0.048307665687738324, 0.1444719615827965, 0.23928736225213706, 0.33186860228212767,
        0.42135127613063533, 0.5068999089322294, 0.5877157572407623, 0.6630442669302152,
        0.7321821187402897, 0.7944837959679424, 0.84936761373257, 0.8963211557660521,
        0.9349060759377397, 0.9647622555875064, 0.9856115115452684, 0.9972638618494816};
    const T weights[16] = {
        0.09654008851472766, 0.09563872007927471, 0.09384439908080451, 0.09117387869576378,
        0.08765209300440378, 0.08331192422694671, 0.07819389578707023, 0.07234579410884834,
        0.06582222277636168, 0.058684093478535565, 0.05099805926237609, 0.042835898022226836,
        0.034273862913021765, 0.025392065309262024, 0.016274394730905743, 0.007018610009470506};
    T sum = 0;
    for (int i = 0; i < 32; ++i) {
        const T node = i & 1 ? -nodes[i / 2] : nodes[i / 2], u = end * (1 + node) / 2;
        sum += weights[i / 2] * exp(b * log1p_rest<T>(s * u) - slope * u);
    }
    return sum * end / 2;
}

// Q if `upper`, otherwise P. Outside a >= 0, x >= 0 and where both are 0 or infinite: NaN.
GAMMA_FN T incomplete_gamma(T a, T x, bool upper) {
    const T none = upper ? 1 : 0, all = upper ? 0 : 1;
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x)))
        return (T)0 / (a - a + (x - x) + (T)0 * a * x);
    if (a == 0 || isinf(x)) return all;
    if (x == 0 || isinf(a)) return none;
    if (a >= 20) {
        const T b = a - 1, scale = gamma_density<T>(a, x) * a;
        T end = b < 240 ? (T)1e300 : sqrt(240 / b), part = 0;
        if (scale == 0) return (x >= a) == upper ? (T)0 : (T)1;
        if (x >= a) {
            part = scale * gamma_integral<T>(b, x - b, 1, fmin(end, 40 / (x - b)));
            return upper ? part : 1 - part;
        }
        end = fmin(1 - exp(-1 - 41 / b), sqrt(82 / b));
        if (b > x) end = fmin(end, 40 / (b - x));
        part = scale * gamma_integral<T>(b, b - x, -1, end);
        return upper ? 1 - part : part;
    }
    if (a < 1 && x < 1.5 && (upper || x > a + 1)) {
        const T power = a * log(x) - lgamma1p<T>(a);
        T sum = 0, term = 1;
        for (int n = 1; n < 40; ++n) sum += (term *= -x / n) / (a + n);
        const T part = -expm1(power) - exp(power) * a * sum;
        return upper ? part : 1 - part;
    }
    const T density = gamma_density<T>(a, x);
    if (x <= a + 1) {
        T sum = 1, term = 1;
        for (int n = 1; n < 200 && term > sum * 1e-17; ++n) sum += term *= x / (a + n);
        return upper ? 1 - density * sum : density * sum;
    }
    if (density == 0) return all;
    T b = x + 1 - a, d = 1 / b, c = (T)1e300, part = d;      // Lentz's algorithm
    for (int n = 1; n < 300; ++n) {
        const T factor = n * (a - n);
        b += 2;
        d = 1 / (factor * d + b);
        c = b + factor / c;
        part *= c * d;
        if (fabs(c * d - 1) < 2e-16) break;
    }
    part *= density * a;
    return upper ? part : 1 - part;
}
#undef GAMMA_FN

// Bessel functions of orders 0 and 1 in float or double: j0, j1, y0, y1, the modified i0, i1, k0,
// k1, and these multiplied by exp(-|x|) or exp(x): i0e, i1e, k0e, k1e.
//
// Up to 8 (k0 and k1: 2) the functions are series in x^2, beside logarithms (Abramowitz and Stegun,
// 9.1.10 to 9.1.13, 9.6.10 to 9.6.13); beyond, their asymptotic forms with amplitudes that depend
// on 1/x (9.2.5 to 9.2.10, 9.7.1 and 9.7.2). A table interpolates each smooth part;
// tests/support/bessel_coefficients.py computes them. float uses the first numbers of a table.
#pragma once

#include "gputensor/_kernels/cuda/special/both.h"

namespace gputensor {
namespace bessel {

// A type for each table: its numbers, and how many of them float and double use.
#define BESSEL_TABLE(name, few, count)                    \
    struct name {                                         \
        enum { FEW = few, COUNT = count };                \
        static GPUTENSOR_SPECIAL double at(int i) {       \
            constexpr double numbers[] = {
#define BESSEL_END }; return numbers[i]; } };

BESSEL_TABLE(J0, 12, 17)
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977,
    0.15806710233209725, -0.034893769411408884, 0.004819180069467605,
    -0.00046062616620627504, 3.246032882100508e-05, -1.7619469077621507e-06,
    7.608163592418782e-08, -2.679253530557673e-09, 7.848696314479465e-11,
    -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16,
    1.2218515873961411e-17
BESSEL_END
BESSEL_TABLE(J1, 11, 16)
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791,
    0.022213639654966037, -0.003646940600769276, 0.0004050337728354822,
    -3.255554866857259e-05, 1.9858774049915165e-06, -9.521984756750436e-08,
    3.687133759097148e-09, -1.178026622695885e-10, 3.160154580348003e-12,
    -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17
BESSEL_END
BESSEL_TABLE(Y0, 12, 17)
    -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663,
    -0.17730201278114358, 0.04719668959576339, -0.007287962479552079, 0.0007531135932577742,
    -5.632079141056987e-05, 3.206532537654801e-06, -1.44072332740187e-07,
    5.248794787330516e-09, -1.5837552541812015e-10, 4.02633081830612e-12,
    -8.747341203310769e-14, 1.6434898714919468e-15, -2.6977881152566837e-17
BESSEL_END
BESSEL_TABLE(Y1, 11, 16)
    0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346,
    -0.028328123944594365, 0.005289897544167113, -0.0006414551451326356,
    5.505982873338744e-05, -3.53808001868935e-06, 1.7707804556154404e-07,
    -7.11055004989928e-09, 2.344337905911516e-10, -6.4651518414115946e-12,
    1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17
BESSEL_END
BESSEL_TABLE(P0, 4, 13)
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06,
    -5.1705945376060975e-08, 1.6306464635151382e-09, -7.86409137723707e-11,
    5.168262387349193e-12, -4.3045788699253914e-13, 4.3265957431549404e-14,
    -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17
BESSEL_END
BESSEL_TABLE(Q0, 5, 16)
    -0.015555854605337009, 6.838519942611649e-05, -7.414498411060647e-07,
    1.7972457247968992e-08, -7.27191593686632e-10, 4.2201219046687385e-11,
    -3.206747420996635e-12, 3.006145125351706e-13, -3.336328185322427e-14,
    4.255225040245461e-15, -6.09993013164005e-16, 9.662128970303257e-17,
    -1.6686065214378146e-17, 3.1082440486738143e-18, -6.191115787358145e-19,
    1.3091448717220122e-19
BESSEL_END
BESSEL_TABLE(P1, 4, 13)
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06,
    6.177633960644299e-08, -1.8718907491063067e-09, 8.816898659582339e-11,
    -5.704863640395645e-12, 4.699195515230542e-13, -4.6842237839904895e-14,
    5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
    -1.7312313216116335e-17
BESSEL_END
BESSEL_TABLE(Q1, 5, 15)
    0.04677778706953532, -9.62772354915708e-05, 9.138615257955454e-07,
    -2.0959781384083424e-08, 8.229193327650554e-10, -4.686363688176945e-11,
    3.5152187949686082e-12, -3.2643156743279e-13, 3.5967765829165294e-14,
    -4.5612523950772974e-15, 6.508282957783384e-16, -1.0269147531823243e-16,
    1.767635548776479e-17, -3.2834519872981614e-18, 6.524081149589261e-19
BESSEL_END
BESSEL_TABLE(I0, 15, 17)
    1.0, 16.0, 64.00000000000003, 113.7777777777769, 113.77777777779527, 72.81777777756619,
    32.36345679181142, 10.567659350685679, 2.641914877279706, 0.5218596123987362,
    0.083497792831347, 0.011040613612716828, 0.0012272420944860261, 0.00011573616439279102,
    9.734997549064576e-06, 5.695329606162454e-07, 6.725742072411059e-08
BESSEL_END
BESSEL_TABLE(I1, 15, 16)
    0.5, 4.000000000000001, 10.666666666666629, 14.222222222223511, 11.377777777755087,
    6.068148148389495, 2.3116754833250175, 0.660478718111503, 0.1467730188272614,
    0.026093055523606808, 0.003795216489082557, 0.00046021131154359005,
    4.702014543750919e-05, 4.2583740607253695e-06, 2.670429081612229e-07,
    3.3634868403857223e-08
BESSEL_END
BESSEL_TABLE(I0_FAR, 7, 25)
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05,
    2.8913705208347567e-06, 2.0489185894690638e-07, 2.266668990498178e-08,
    3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11,
    -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
    7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15,
    1.7725601330565263e-15, -3.425485619677219e-16, -2.8276239805165836e-16,
    3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944178e-18,
    -7.23318048787476e-18
BESSEL_END
BESSEL_TABLE(I1_FAR, 7, 25)
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371,
    -3.882564808877691e-06, -2.512236237870209e-07, -2.6314688468895196e-08,
    -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16, 2.96262899764595e-16,
    -3.209525921993424e-17, -4.650305368489358e-17, 4.414348323071704e-18,
    7.517296310842111e-18
BESSEL_END
BESSEL_TABLE(K0, 9, 10)
    -0.5772156649015329, 0.4227843350984672, 0.23069608377461442, 0.03489215745646895,
    0.0026147876186100425, 0.00011848039436886487, 3.6126224518943577e-06,
    7.935328221734045e-08, 1.3147872835444892e-09, 1.8015393361176177e-11
BESSEL_END
BESSEL_TABLE(K1, 8, 10)
    0.03860783245076643, -0.16819608377461678, -0.0453937917402138, -0.0047955474598340275,
    -0.00027883987298262203, -1.0355619256779136e-05, -2.678864022708974e-07,
    -5.113322023014738e-09, -7.496059771736609e-11, -9.163078017014258e-13
BESSEL_END
BESSEL_TABLE(K0_FAR, 9, 24)
    1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802,
    1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07,
    -4.660489897687948e-08, 8.574034017414225e-09, -1.6975345093890614e-09,
    3.5773972814003283e-10, -7.957489244477396e-11, 1.8559491149549264e-11,
    -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13,
    8.032890775068375e-14, -2.2275133267462965e-14, 6.340076476276646e-15,
    -1.848593377920907e-15, 5.5120559994043335e-16, -1.6782311257549006e-16,
    5.2103917776435543e-17, -1.6475805939842632e-17
BESSEL_END
BESSEL_TABLE(K1_FAR, 9, 24)
    1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162,
    -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07,
    5.7410841254500495e-08, -1.0345762465678097e-08, 2.0150497551970347e-09,
    -4.1903547593419254e-10, 9.218315187605315e-11, -2.129967838427791e-11,
    5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13,
    -8.976705182010146e-14, 2.4771544242195988e-14, -7.0198370892147685e-15,
    2.038703166239861e-15, -6.057047270643018e-16, 1.8380935752430455e-16,
    -5.689462849193648e-17, 1.7940510478863572e-17
BESSEL_END
#undef BESSEL_TABLE
#undef BESSEL_END

// The sum of numbers times Chebyshev polynomials of 2 w - 1, by Clenshaw's recurrence.
template <class Table, class T> GPUTENSOR_SPECIAL T chebyshev(T w) {
    const T twice = 4 * w - 2;
    T here = 0, before = 0;
    GPUTENSOR_UNROLL
    for (int i = (sizeof(T) == 8 ? Table::COUNT : Table::FEW) - 1; i > 0; --i) {
        const T next = twice * here + ((T)Table::at(i) - before);
        before = here;
        here = next;
    }
    return twice / 2 * here + ((T)Table::at(0) - before);
}

// The sum of numbers times powers of w.
template <class Table, class T> GPUTENSOR_SPECIAL T powers(T w) {
    T sum = 0;
    GPUTENSOR_UNROLL
    for (int i = (sizeof(T) == 8 ? Table::COUNT : Table::FEW) - 1; i >= 0; --i)
        sum = sum * w + (T)Table::at(i);
    return sum;
}

// (x / 8)^2
template <class T> GPUTENSOR_SPECIAL T share(T x) {
    x /= 8;
    return x * x;
}

// sqrt(2 / (pi x)) (P cos(x - turn) - Q sin(x - turn)), or P sin + Q cos, with a turn of pi / 4 or
// 3 pi / 4. The sine and the cosine of the difference are sums of those of x, so that large x lose
// no digits.
template <class P, class Q, class T>
GPUTENSOR_SPECIAL T wave(T x, bool is_second, bool is_three) {
    const T ratio = 8 / x, w = ratio * ratio, sine = sin(x), cosine = cos(x);
    const T p = chebyshev<P>(w), q = chebyshev<Q>(w) * ratio;
    const T sum = sine + cosine, difference = sine - cosine;
    const T even = is_three ? difference : sum, odd = is_three ? -sum : difference;
    return (is_second ? p * odd + q * even : p * even - q * odd) /
           ((T)1.77245385090551602730 * sqrt(x));
}

template <class T> GPUTENSOR_CALLED T j0(T x) {
    x = fabs(x);
    if (x < 8) return chebyshev<J0>(share(x));
    return isinf(x) ? (T)0 : wave<P0, Q0>(x, false, false);
}

template <class T> GPUTENSOR_CALLED T j1(T x) {
    const T size = fabs(x);
    if (size < 8) return x * chebyshev<J1>(share(size));
    return isinf(x) ? (T)0 : copysign((T)1, x) * wave<P1, Q1>(size, false, true);
}

// Of x <= 0: -inf at 0, and NaN below, as for NaN.
template <class T> GPUTENSOR_SPECIAL T at_border(T x, T pole) {
    return x == 0 ? pole : (x - x) / (x - x);
}

template <class T> GPUTENSOR_CALLED T y0(T x) {
    if (!(x > 0)) return at_border(x, -1 / fabs(x));
    if (x < 8) {
        const T w = share(x);
        return (T)0.63661977236758134308 * log(x) * chebyshev<J0>(w) + chebyshev<Y0>(w);
    }
    return isinf(x) ? (T)0 : wave<P0, Q0>(x, true, false);
}

template <class T> GPUTENSOR_CALLED T y1(T x) {
    if (!(x > 0)) return at_border(x, -1 / fabs(x));
    if (x < 8) {
        const T w = share(x), j = x * chebyshev<J1>(w);
        return (T)0.63661977236758134308 * (log(x) * j - 1 / x) + x * chebyshev<Y1>(w);
    }
    return isinf(x) ? (T)0 : wave<P1, Q1>(x, true, true);
}

template <class T> GPUTENSOR_CALLED T i0e(T x) {
    x = fabs(x);
    if (x < 8) return powers<I0>(share(x)) * exp(-x);
    return chebyshev<I0_FAR>(8 / x) / sqrt(x);
}

template <class T> GPUTENSOR_CALLED T i1e(T x) {
    const T size = fabs(x);
    if (size < 8) return x * (powers<I1>(share(size)) * exp(-size));
    return copysign(chebyshev<I1_FAR>(8 / size) / sqrt(size), x);
}

// y * exp(x) where exp(x) alone may overflow.
template <class T> GPUTENSOR_SPECIAL T grown(T y, T x) {
    if (x < 80) return y * exp(x);
    const T half = exp(x / 2);
    return isinf(x) ? x : half * y * half;
}

template <class T> GPUTENSOR_CALLED T i0(T x) {
    x = fabs(x);
    if (x < 8) return powers<I0>(share(x));
    return grown(chebyshev<I0_FAR>(8 / x) / sqrt(x), x);
}

template <class T> GPUTENSOR_CALLED T i1(T x) {
    const T size = fabs(x);
    if (size < 8) return x * powers<I1>(share(size));
    return copysign(grown(chebyshev<I1_FAR>(8 / size) / sqrt(size), size), x);
}

// log(x / 2), where half of the least number is 0.
template <class T> GPUTENSOR_SPECIAL T log_half(T x) {
    return x < 1 ? log(x) - (T)0.69314718055994530942 : log(x / 2);
}

// k0 and k1 for x up to 2.
template <class T> GPUTENSOR_SPECIAL T k0_near(T x) {
    return powers<K0>(x * x / 4) - log_half(x) * powers<I0>(share(x));
}

template <class T> GPUTENSOR_SPECIAL T k1_near(T x) {
    return 1 / x + x * (powers<K1>(x * x / 4) + log_half(x) * powers<I1>(share(x)));
}

template <class Far, class T> GPUTENSOR_SPECIAL T k_far(T x) {
    return chebyshev<Far>(2 / x) / sqrt(x);
}

template <class T> GPUTENSOR_CALLED T k0(T x) {
    if (!(x > 0)) return at_border(x, 1 / fabs(x));
    return x <= 2 ? k0_near(x) : k_far<K0_FAR>(x) * exp(-x);
}

template <class T> GPUTENSOR_CALLED T k1(T x) {
    if (!(x > 0)) return at_border(x, 1 / fabs(x));
    return x <= 2 ? k1_near(x) : k_far<K1_FAR>(x) * exp(-x);
}

template <class T> GPUTENSOR_CALLED T k0e(T x) {
    if (!(x > 0)) return at_border(x, 1 / fabs(x));
    return x <= 2 ? k0_near(x) * exp(x) : k_far<K0_FAR>(x);
}

template <class T> GPUTENSOR_CALLED T k1e(T x) {
    if (!(x > 0)) return at_border(x, 1 / fabs(x));
    return x <= 2 ? k1_near(x) * exp(x) : k_far<K1_FAR>(x);
}

}  // namespace bessel
}  // namespace gputensor

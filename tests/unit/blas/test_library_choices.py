"""How a library computes a product: its padding, and which of its proposals is taken."""

import pytest

from tests.support import internals

BFLOAT16, FLOAT32 = 10, 11

SQUARE = {"m": 4096, "n": 4096, "k": 4096, "lda": 4096, "ldb": 4096, "ldd": 4096}


def test_an_aligned_product_is_not_padded():
    assert internals.padded(BFLOAT16, 68, **SQUARE) == ""
    assert internals.padded(FLOAT32, 77, **SQUARE) == ""


def test_an_odd_product_of_half_floats_is_padded_and_one_of_float32_is_not():
    odd = {"m": 4097, "n": 4095, "k": 4099, "lda": 4097, "ldb": 4099, "ldd": 4097}
    assert set("ab") <= set(internals.padded(BFLOAT16, 68, **odd))
    assert internals.padded(FLOAT32, 68, **odd) == ""
    assert set("ab") <= set(internals.padded(FLOAT32, 77, **odd))


def test_matrices_that_share_an_odd_size_are_copied_together_and_others_are_not():
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, k=4097, ldb=4097)) == "ab"
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, m=4097, lda=4097, ldd=4097)) == "ad"
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, n=4097)) == ""  # contiguous on no axis
    assert internals.padded(BFLOAT16, 68, **dict(SQUARE, a=2)) == "a"


def test_a_product_too_small_to_gain_is_left_alone():
    small = {"m": 17, "n": 17, "k": 17, "lda": 17, "ldb": 17, "ldd": 17}
    assert internals.padded(BFLOAT16, 68, **small) == ""
    thin = {"m": 4097, "n": 1, "k": 4097, "lda": 4097, "ldb": 4097, "ldd": 4097}
    assert internals.padded(BFLOAT16, 68, **thin) == ""


@pytest.mark.parametrize(
    ("sizes", "dtype", "layout", "us", "padded_us", "expected"),
    [
        ((61, 704, 4704), BFLOAT16, "TT", 14.5, 11.7, "bd"),
        ((534, 56, 14755), BFLOAT16, "NT", 29.5, 19.9, "ab"),
        ((256, 9048, 383), BFLOAT16, "TT", 27.7, 13.4, "ab"),
        ((14, 5821, 7424), BFLOAT16, "TT", 94.1, 74.6, "abd"),
        ((3976, 17, 640), BFLOAT16, "NN", 11.8, 8.4, "ad"),
        ((4480, 9, 1024), BFLOAT16, "TN", 17.0, 9.8, "ad"),
        ((33, 1472, 3208), FLOAT32, "TT", 25.6, 17.0, "bd"),
        ((40, 4032, 1705), FLOAT32, "NN", 19.6, 29.6, ""),
        ((102, 192, 188), BFLOAT16, "NN", 3.5, 4.6, ""),
        ((45, 8704, 23), BFLOAT16, "TN", 3.6, 6.2, ""),
        ((7532, 32, 1668), BFLOAT16, "TN", 17.8, 24.0, ""),
        ((7616, 3545, 16), BFLOAT16, "NT", 43.5, 57.2, ""),
        ((24, 6004, 13928), BFLOAT16, "NT", 77.7, 141.5, ""),
        ((4914, 38, 15168), BFLOAT16, "TT", 74.6, 133.5, ""),
        ((3187, 43, 16356), FLOAT32, "TT", 98.7, 181.0, ""),
    ],
)
def test_products_are_padded_where_that_was_faster(sizes, dtype, layout, us, padded_us, expected):
    """Both ways were measured on an H200; float32 may use TF32."""
    rows, columns, k = sizes
    found = internals.padded(
        dtype, 77 if dtype == FLOAT32 else 68, columns, rows, k, ldd=columns,
        lda=columns if layout[1] == "N" else k, ldb=k if layout[0] == "N" else rows,
        op_a=int(layout[1] == "T"), op_b=int(layout[0] == "T"), us=us,
    )  # fmt: skip
    assert found == expected
    assert (padded_us < us) == bool(expected)


@pytest.mark.parametrize(
    ("sizes", "itemsize", "proposal", "us"),
    [
        ((18, 3840, 7296), 2, (1105920, 0.303, 23, 17, 4, 15), 28.3),
        ((8494, 48, 56), 2, (0, 0.448, 23, 11, 1, 7), 4.3),
        ((10, 2312, 7872), 2, (554880, 0.288, 23, 17, 6, 15), 21.7),
        ((11008, 82, 592), 4, (0, 0.326, 23, 20, 1, 9), 27.8),
        ((5702, 11, 40), 4, (0, 0.037, 55, 11, 1, 31), 3.1),
        ((13, 10896, 4032), 2, (1699776, 0.777, 24, 15, 3, 0), 84.0),
        ((40, 6022, 192), 2, (0, 0.18, 23, 15, 1, 12), 5.0),
        ((20, 13632, 15168), 2, (2181120, 0.818, 23, 19, 2, 16), 167.5),
        ((49, 704, 7296), 4, (2897664, 0.318, 23, 17, 22, 9), 16.3),
    ],
)
def test_the_time_of_unaligned_matrices_is_near_the_measured_one(sizes, itemsize, proposal, us):
    """Measured on an H200."""
    assert internals.unaligned_us(*sizes, itemsize, proposal) == pytest.approx(us, rel=0.3)


def test_the_time_of_an_unknown_tile_is_unknown():
    assert internals.unaligned_us(100, 100, 100, 2, (0, 0.5, 66, 312, 1, 35)) == 0
    assert internals.unaligned_us(100, 100, 100, 2, (0, 0.0, 23, 15, 1, 12)) > 0


@pytest.mark.parametrize(
    ("sizes", "first", "second", "is_second"),
    [
        ((270, 576, 25), (5900019, 0.152, 55, 15, 8, 31), (0, 0.035, 55, 11, 1, 31), True),
        ((4, 3200, 1675), (204800, 0.379, 24, 5, 4, 13), (0, 0.189, 11, 0, 1, 0), False),
        ((13516, 122, 1282), (13894427, 0.268, 55, 23, 2, 31), (0, 0.134, 55, 18, 1, 31), True),
        ((2, 16, 3074), (0, 0.002, 24, 15, 1, 0), (1024, 0.009, 23, 11, 8, 19), True),
        ((5888, 5, 6), (0, 0.348, 24, 11, 1, 13), (0, 0.348, 24, 11, 1, 19), False),
        ((223, 489, 192), (0, 0.212, 24, 11, 1, 19), (0, 0.212, 24, 11, 1, 13), True),
        ((9344, 64, 88), (0, 0.134, 55, 11, 1, 31), (0, 0.065, 55, 15, 1, 31), False),
        ((116, 1, 108), (0, 0.073, 13, 0, 1, 0), (8208, 1.172, 13, 0, 16, 0), False),
        ((6866, 1, 184), (0, 2.168, 13, 0, 1, 0), (0, 4.336, 13, 0, 1, 0), False),
        ((1, 2028, 80), (0, 1.28, 13, 0, 1, 0), (0, 0.641, 13, 0, 1, 0), True),
        ((1, 1088, 7137), (34832, 1.177, 13, 0, 8, 0), (0, 0.687, 13, 0, 1, 0), True),
        ((1, 14, 5768), (1739, 0.205, 14, 0, 31, 0), (8464, 1.0, 13, 0, 132, 0), False),
        ((128, 1, 8534), (4112, 0.139, 13, 0, 8, 0), (8208, 0.97, 13, 0, 16, 0), True),
        ((24, 13888, 5605), (1786880, 0.12, 55, 14, 2, 31), (0, 0.07, 55, 12, 1, 31), False),
        ((13632, 10, 4555), (1745920, 0.14, 55, 13, 2, 31), (0, 2.58, 11, 0, 1, 0), False),
        ((6144, 65, 576), (3146752, 0.16, 55, 15, 2, 31), (0, 0.06, 55, 17, 1, 31), False),
        ((20, 7931, 9893), (1268736, 0.94, 24, 11, 2, 19), (0, 0.31, 24, 18, 1, 0), False),
        ((24, 15584, 11008), (2992128, 0.92, 21, 19, 2, 10), (0, 1.0, 43, 15, 1, 34), False),
        ((64, 10007, 10000), (0, 0.74, 43, 18, -1, 34), (0, 0.61, 43, 17, -1, 34), True),
        ((24, 15397, 15072), (0, 0.92, 43, 20, -1, 34), (0, 0.8, 43, 17, 1, 34), True),
        ((33, 20000, 6000), (0, 2.99, 23, 23, 5, 9), (0, 2.99, 23, 19, 5, 10), True),
        ((15, 2, 7008), (0, 0.001, 11, 0, 1, 0), (5880, 0.093, 24, 11, 49, 19), True),
        ((1, 6, 256), (0, 0.001, 13, 0, 1, 0), (8208, 0.646, 13, 0, 132, 0), False),
        ((3037, 1, 6080), (60816, 2.056, 13, 0, 5, 0), (0, 0.96, 13, 0, 1, 0), True),
        ((1, 12, 7040), (1491, 0.176, 14, 0, 31, 0), (8400, 1.985, 13, 0, 132, 0), False),
        ((58, 672, 3451), (1870848, 0.167, 20, 15, 12, 28), (172527, 0.082, 55, 11, 9, 31), False),
        ((5, 120, 128), (9600, 0.006, 20, 14, 132, 28), (0, 0.001, 55, 11, 1, 31), True),
        ((756, 2, 3328), (48384, 0.364, 21, 15, 8, 12), (42336, 0.318, 21, 15, 7, 12), False),
        ((248, 704, 28), (2793472, 0.333, 21, 15, 5, 6), (0, 0.167, 21, 15, 1, 12), True),
        ((3816, 39, 603), (2381184, 0.303, 23, 18, 4, 9), (0, 0.455, 63, 13, 1, 16), False),
        ((16, 5224, 2), (334336, 0.155, 23, 17, 3, 10), (0, 0.311, 23, 15, 1, 12), True),
        ((8, 2521, 40), (0, 0.15, 24, 11, 1, 13), (0, 0.15, 24, 11, 1, 19), False),
        ((64, 26, 15), (13312, 0.003, 24, 15, 16, 0), (0, 0.002, 24, 15, 1, 0), True),
        ((3968, 2368, 5336), (7340643, 0.909, 43, 20, -1, 34), (131, 1.0, 43, 20, 1, 34), False),
        ((8, 15257, 2320), (0, 0.909, 43, 18, 1, 34), (0, 0.909, 43, 15, -1, 34), True),
        ((2880, 40, 9984), (1382416, 0.273, 66, 134, 3, 35), (921616, 0.341, 66, 15, 2, 35), False),
        ((304, 992, 11456), (5079056, 0.242, 66, 193, 4, 35), (0, 0.606, 66, 15, 1, 35), False),
        ((8576, 36, 4376), (2469904, 0.341, 66, 452, 2, 35), (0, 0.742, 66, 143, 1, 35), True),
        ((24, 4096, 3200), (1048592, 0.485, 66, 59, 2, 35), (0, 0.485, 66, 59, 1, 35), True),
    ],
)
def test_the_proposal_is_the_one_that_was_faster(sizes, first, second, is_second):
    """Both proposals for these products were measured on an H200."""
    assert internals.takes_second(*sizes, first, second) == is_second

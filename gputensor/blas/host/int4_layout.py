"""The layout of packed int4 weights, on the host.

Weights ``[n, k]`` lie in tiles of 16 features by 64 k, row-major over tiles and padded with zeros
to whole tiles. A tile has 512 bytes, 16 for each of the 32 lanes of a warp, so that a single load
gives a lane its operand of four tensor core instructions. Lane ``4 * g + t`` has four little-endian
words of eight weights; word ``2 * h + r`` has feature ``2 * g + r`` at ``k = 32 * h + 8 * t + e``,
e = 0 ... 7. A weight is stored as its value plus 8 in four bits: an even ``e`` at bit ``2 * e``, an
odd one at bit ``16 + 2 * (e - 1)``, so that a shift and a mask give two neighbours in the halves of
a word.
"""

import numpy as np

__all__ = ["TILE_FEATURES", "TILE_K", "TILE_NBYTES", "pack", "packed_shape", "unpack"]

TILE_FEATURES = 16
TILE_K = 64
TILE_NBYTES = TILE_FEATURES * TILE_K // 2
#: Nibble of a word at which weight e lies.
_NIBBLE = np.array([e // 2 + 4 * (e % 2) for e in range(8)])


def packed_shape(n, k):
    """Return the shape of the packed form of ``[n, k]`` weights.

    >>> packed_shape(4096, 4000)
    (256, 63, 512)
    """
    return -(-n // TILE_FEATURES), -(-k // TILE_K), TILE_NBYTES


def pack(values):
    """Pack int4 values.

    Parameters
    ----------
    values : numpy.ndarray
        Integers from -8 to 7 of shape ``[n, k]``.

    Returns
    -------
    numpy.ndarray
        uint8 of shape ``packed_shape(n, k)``.
    """
    n, k = values.shape
    rows, columns, _ = packed_shape(n, k)
    padded = np.full((rows * TILE_FEATURES, columns * TILE_K), 8, dtype=np.uint32)
    padded[:n, :k] = values.astype(np.int16) + 8
    # Axes: tile row, g, r, tile column, h, t, e.
    parts = padded.reshape(rows, 8, 2, columns, 2, 4, 8)
    parts = parts.transpose(0, 3, 1, 5, 4, 2, 6)
    words = np.bitwise_or.reduce(parts << (4 * _NIBBLE).astype(np.uint32), axis=-1)
    words = np.ascontiguousarray(words.astype("<u4"))
    return words.view(np.uint8).reshape(rows, columns, TILE_NBYTES)


def unpack(packed, n, k):
    """Return the int8 values of shape ``[n, k]`` that `pack` packed.

    >>> values = np.arange(-8, 8, dtype=np.int8).reshape(2, 8)
    >>> bool((unpack(pack(values), 2, 8) == values).all())
    True
    """
    rows, columns, _ = packed.shape
    words = np.ascontiguousarray(packed).view("<u4").reshape(rows, columns, 8, 4, 2, 2, 1)
    parts = (words >> (4 * _NIBBLE).astype(np.uint32)) & 15
    # Back from tile row, tile column, g, t, h, r, e.
    parts = parts.transpose(0, 2, 5, 1, 4, 3, 6).astype(np.int8) - np.int8(8)
    return parts.reshape(rows * TILE_FEATURES, columns * TILE_K)[:n, :k].copy()

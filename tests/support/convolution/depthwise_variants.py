"""The variants of the kernels of depthwise convolution."""

import itertools

from gputensor._kernels import programs as elements


def depthwise_tiles():
    tiles = (1, 1, 4), (1, 2, 5), (1, 7, 6), (1, 14, 3), (2, 7, 10), (4, 4, 4), (4, 7, 2)
    for code, activation, (stride, dilation), tile in itertools.product(
        (9, 10, 11), range(7), ((1, 1), (2, 1), (1, 2)), tiles
    ):
        yield elements.depthwise_tiles(
            code, activation, tile=tile, has=(activation > 3, activation % 2 == 1),
            kernel=(3, 3), stride=(stride, stride), dilation=(dilation, dilation),
        )  # fmt: skip


def depthwise_boxes():
    for code, activation, dilation, tile in itertools.product(
        (9, 10), range(7), (1, 2), ((2, 7), (7, 4), (2, 4))
    ):
        yield elements.depthwise_boxes(
            code, activation, lanes=32 if activation % 2 else 16, tile=tile,
            has_bias=activation > 3, kernel=(3, 3), dilation=(dilation, dilation),
        )  # fmt: skip

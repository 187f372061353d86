"""Convolution and pooling launch by launch, in plain arithmetic and by windows."""

from tests.support.convolution.window_checks import convolution_program, pooling_program


def test_convolutions(rng):
    for _ in range(12):
        convolution_program(rng, "cuda", most=6)


def test_poolings(rng):
    for _ in range(12):
        pooling_program(rng, "cuda", most=6)

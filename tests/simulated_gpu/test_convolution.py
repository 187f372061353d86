"""Convolution and pooling launch by launch, in plain arithmetic and by windows."""

import pytest

from gputensor._kernels.launch import nvrtc
from tests.support.convolution import tile_on_cpu
from tests.support.convolution.window_checks import convolution_program, pooling_program


@pytest.fixture(autouse=True)
def tiles_on_the_cpu(monkeypatch):
    """Some 16-bit convolutions go to tensor cores."""
    monkeypatch.setattr(nvrtc, "compile_source", tile_on_cpu.compile_source)


def test_convolutions(rng):
    for _ in range(12):
        convolution_program(rng, "cuda", most=6)


def test_poolings(rng):
    for _ in range(12):
        pooling_program(rng, "cuda", most=6)

"""Algorithms of other libraries: NumPy's on the host device, CuPy's on CUDA devices.

This is the only package that names CuPy, which it imports at the first call on a CUDA device.
"""

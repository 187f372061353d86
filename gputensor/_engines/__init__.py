"""Algorithms that other libraries have: NumPy's on the host device, CuPy's on CUDA devices.

The only package that names CuPy, which it imports at the first call on a CUDA device.
"""

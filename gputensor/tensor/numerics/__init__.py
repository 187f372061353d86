"""Functions of NumPy and PyTorch beyond the standard, composed of other functions."""

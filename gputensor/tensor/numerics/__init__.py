"""What NumPy and PyTorch have names for beyond the standard, put together from other functions."""

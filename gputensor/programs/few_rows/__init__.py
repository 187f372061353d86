"""Products of few rows, as in decoding, that include the steps before and after them."""

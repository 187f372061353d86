"""Sizes to trace at: initial samples, and those found from comparisons in traced functions."""

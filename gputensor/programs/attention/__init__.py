"""Attention as exporters write it, found among the calls of a function and made one call."""

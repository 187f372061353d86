"""Quantized weights: which matrices, their integers, the calls, errors of results, the report."""

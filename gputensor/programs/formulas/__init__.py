"""Fuses consecutive element-wise steps into one formula: one kernel, one read, one write."""

"""Sizes to trace at: chosen first, and found by what a traced function compares."""

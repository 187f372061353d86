"""Runs bound functions: on a host device, call by call on a GPU, and control flow on both."""

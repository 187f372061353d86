"""Ahead of time: calls are executed on a phantom GPU, recorded, and launched on real GPUs."""

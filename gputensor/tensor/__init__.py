"""Tensors and their functions. The package can be called: ``gt.tensor(data)`` makes a tensor."""

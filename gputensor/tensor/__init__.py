"""Tensors and their functions; called, ``gt.tensor(data)``, it makes one of `data`."""

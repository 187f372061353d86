"""Importers: models that others wrote, as functions of tensors. DESIGN.md has words and invariants.

Each module is loaded when it is used: ``gputensor.load_onnx``, ``gputensor.from_exported``.
"""

"""Importers: models of other libraries as functions of tensors (see DESIGN.md).

A module is loaded when it is first used: ``gputensor.load_onnx``, ``gputensor.from_exported``.
"""

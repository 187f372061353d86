"""Recognises attention, as exporters write it, among the calls of a function."""

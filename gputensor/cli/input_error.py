"""InputError: raised by a command when its arguments or files cannot be used (exit code 2)."""

__all__ = ["InputError"]


class InputError(Exception):
    """The arguments or the files that they name cannot be used; the message is one line."""

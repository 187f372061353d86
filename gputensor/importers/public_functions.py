"""The library's public functions as `gt`: importers call the same functions as users."""

import gputensor as gt

__all__ = ["gt"]

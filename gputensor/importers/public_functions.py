"""The library's public functions as `gt`: an importer calls what users call, by the same names."""

import gputensor as gt

__all__ = ["gt"]

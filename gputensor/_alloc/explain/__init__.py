"""Why a request failed: advice by replay, and the text of the error (facts: _alloc/observe)."""

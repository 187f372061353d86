from typing import Any

from gputensor._alloc.settings import Settings

def as_bytes(settings: Settings) -> dict[str, Any]: ...

from typing import Any

from gputensor._alloc.config.settings import Settings

def as_bytes(settings: Settings) -> dict[str, Any]: ...

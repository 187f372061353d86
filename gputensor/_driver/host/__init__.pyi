LIVE_NAMES: tuple[str, ...]

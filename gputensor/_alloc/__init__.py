"""The caching allocator. In a debug build, importing it sets the checker to work."""

from gputensor._alloc import check_hook

if check_hook.IS_CHECKED:
    from gputensor._alloc import checker as checker

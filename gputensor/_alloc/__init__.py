"""The caching allocator. In a debug build, importing it sets the checker to work."""

from gputensor._alloc import core
from gputensor._alloc.allocator import explain_with


def _explain(device, nbytes, stream, status):
    # Explaining takes modules that a program needs only when memory has run out.
    from gputensor._alloc.explain import out_of_memory

    out_of_memory.raise_for(device, nbytes, stream, status)


explain_with(_explain)

if core.IS_CHECKED:
    from gputensor._alloc import check as check

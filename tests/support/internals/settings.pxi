"""The allocator's settings as C fields, and the way of walking stacks."""


def as_bytes(settings):
    """Return the C fields of a Settings as a dict.

    >>> from gputensor._alloc.config.settings import parse
    >>> as_bytes(parse("page_size_mb:4"))["page_size"]
    4194304
    """
    cdef AllocatorConfig config
    settings_to_struct(settings, &config)
    fields = config  # Cython makes a dict of a struct
    return dict(fields)


def walks_directly():
    """Return whether the interpreter's frame records are read directly (frames.h explains when)."""
    return stacks_walk_directly()


def use_public_frames(public=True):
    """Walk with CPython's public functions only, or restore the direct way if it is available."""
    stacks_choose_walk(public)

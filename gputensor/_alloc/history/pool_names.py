"""The form in which a private pool's number is shown: a pair, like PyTorch's ids.

The core numbers all private pools in one sequence. In PyTorch's schema a pool made by a user is
``(0, n)``, one made by a capture ``(n, 0)``, and the default pool ``(0, 0)``.
"""

_made_by_users: set[int] = set()


def note_user_pool(pool_id):
    """Remember that a pool number belongs to a MemPool or to graph_pool_handle()."""
    _made_by_users.add(pool_id)


def pool_pair(pool_id):
    """Return the pair for a pool number.

    >>> pool_pair(0), pool_pair(1 << 40)
    ((0, 0), (1099511627776, 0))
    """
    return (0, pool_id) if pool_id in _made_by_users or pool_id == 0 else (pool_id, 0)

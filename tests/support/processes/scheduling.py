"""Distributes tests over pytest-xdist workers like ``--dist loadgroup``, in linear time.

Whenever a test ends, xdist's own scheduler counts all tests that its worker has finished, and it
looks for each test in the whole collection. With twenty thousand tests this takes half of the time
of its process, which shares the cores with the workers. `GroupScheduling` forgets what is finished
and keeps a table of positions.

xdist does not document the attributes that this uses. `scheduling` returns None for a version
without them, and xdist then uses its own scheduler.
"""

try:
    from xdist.scheduler import LoadGroupScheduling
except ImportError:
    LoadGroupScheduling = object

METHODS = ("_split_scope", "add_node_collection", "mark_test_complete")
TABLES = ("assigned_work", "registered_collections")


class Collection(list):
    """The names of a worker's tests; `index` takes as long for the last as for the first."""

    def __init__(self, names):
        super().__init__(names)
        self._positions = {name: position for position, name in enumerate(self)}

    def index(self, name):
        return self._positions[name]


class GroupScheduling(LoadGroupScheduling):
    """The scheduler of ``--dist loadgroup``; a unit of its work is a group or a single test."""

    def add_node_collection(self, node, collection):
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Collection(collection)

    def mark_test_complete(self, node, item_index, duration=0):
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        unit = self._split_scope(self.registered_collections[node][item_index])
        if all(units[unit].values()):
            del units[unit]


def scheduling(config, log):
    """Return the scheduler of a test run, or None to leave the choice to xdist."""
    if config.getvalue("dist") != "loadgroup":
        return None
    if not all(hasattr(LoadGroupScheduling, name) for name in METHODS):
        return None
    made = GroupScheduling(config, log)
    return made if all(isinstance(getattr(made, name, None), dict) for name in TABLES) else None

"""The scheduler of tests/support distributes tests as that of pytest-xdist does."""

from types import SimpleNamespace

import pytest

from tests.support.processes import scheduling

xdist = pytest.importorskip("xdist.scheduler")


class Config:
    """The options of a run with two workers."""

    def __init__(self, dist="loadgroup"):
        self.values = {"dist": dist, "tx": ["popen", "popen"]}
        self.option = SimpleNamespace(loadscopereorder=True)

    def getvalue(self, name):
        return self.values[name]

    getoption = getvalue


class Node:
    """A worker that keeps the positions of the tests that it was given."""

    def __init__(self, name):
        self.gateway = SimpleNamespace(id=name)
        self.given, self.shutting_down = [], False

    def send_runtest_some(self, positions):
        self.given += positions

    def shutdown(self):
        self.shutting_down = True


def started(kind, tests):
    made = kind(Config())
    nodes = [Node(name) for name in ("one", "two")]
    for node in nodes:
        made.add_node(node)
    for node in nodes:
        made.add_node_collection(node, tests)
    made.schedule()
    return made, nodes


@pytest.fixture
def tests(rng):
    """Names of single tests and of groups of one to nine, mixed."""
    names = []
    for group in range(60):
        names += [f"test_a.py::test[{group}@{i}]@g{group}" for i in range(rng.integers(1, 10))]
    names += [f"test_b.py::test_{i}" for i in range(200)]
    return [names[i] for i in rng.permutation(len(names))]


def test_workers_get_the_tests_that_xdist_would_give_them(tests, rng):
    ours, theirs = (
        started(kind, tests) for kind in (scheduling.GroupScheduling, xdist.LoadGroupScheduling)
    )
    ended = [0, 0]
    while sum(ended) < len(tests):
        number = int(rng.integers(2))
        for made, nodes in (ours, theirs):
            assert made.has_pending and len(nodes[number].given) >= ended[number]
        if ended[number] == len(ours[1][number].given):
            continue
        for made, nodes in (ours, theirs):
            made.mark_test_complete(nodes[number], nodes[number].given[ended[number]])
        ended[number] += 1
        assert [node.given for node in ours[1]] == [node.given for node in theirs[1]]
        waiting = ours[0].assigned_work[ours[1][number]].values()
        assert all(not all(unit.values()) for unit in waiting)  # what has ended is forgotten
    assert sorted(sum((node.given for node in ours[1]), [])) == list(range(len(tests)))
    for made, nodes in (ours, theirs):
        assert made.tests_finished and not made.has_pending
        assert all(node.shutting_down for node in nodes)


def test_tests_of_a_worker_that_crashes_go_to_the_other_one(tests, rng):
    made, (one, two) = started(scheduling.GroupScheduling, tests)
    ended = int(rng.integers(1, 100))
    for position in range(ended):
        made.mark_test_complete(one, one.given[position])
    assert made.remove_node(one) == tests[one.given[ended]]
    position = 0
    while position < len(two.given):
        made.mark_test_complete(two, two.given[position])
        position += 1
    assert sorted(one.given[:ended] + two.given) == list(range(len(tests)))


def test_other_distributions_and_versions_use_the_scheduler_of_xdist(monkeypatch):
    assert isinstance(scheduling.scheduling(Config(), None), scheduling.GroupScheduling)
    assert scheduling.scheduling(Config("load"), None) is None

    class Renamed(scheduling.GroupScheduling):
        def __init__(self, config, log):
            super().__init__(config, log)
            self.work = self.__dict__.pop("assigned_work")

    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "GroupScheduling", Renamed)
        assert scheduling.scheduling(Config(), None) is None
    monkeypatch.setattr(scheduling, "LoadGroupScheduling", object)
    assert scheduling.scheduling(Config(), None) is None

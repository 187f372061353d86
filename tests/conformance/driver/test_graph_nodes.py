"""Nodes of captured graphs: reading their parameters, and replacing them for later launches."""

import ctypes

import numpy as np
import pytest

from gputensor._driver import registry
from tests.support.driver_calls import HOST_FUNCTION, UNTOUCHED

INVALID_VALUE, INVALID_HANDLE, ILLEGAL_STATE, UPDATE_FAILED = 1, 400, 401, 910
COPY, FILL, HOST = 2, 3, 4
COUNT = 1000
NBYTES = 4 * COUNT


@pytest.fixture
def stream(calls):
    made = calls.make("stream_create", 0)
    yield made
    assert calls.stream_destroy(made) == 0


@pytest.fixture
def memory(calls):
    """Four arrays of `COUNT` int32, filled with 0, 100, 200 and 300."""
    made = [calls.upload(np.full(COUNT, 100 * i, np.int32)) for i in range(4)]
    yield made
    for ptr in made:
        assert calls.mem_free(ptr) == 0


def captured(calls, stream, *work):
    """The graph captured from calls of driver entries."""
    assert calls.capture_begin(stream, 0) == 0
    for name, *arguments in work:
        assert getattr(calls, name)(*arguments, stream) == 0
    return calls.make("capture_end", stream)


def copy_and_fill(calls, stream, dst, src, filled):
    copy = ("copy_async", dst, src, NBYTES)
    return captured(calls, stream, copy, ("fill_async", filled, 7, 4, COUNT))


def nodes_of(calls, graph):
    found = (ctypes.c_uint64 * 8)()
    status, count = calls.graph_nodes(graph, ctypes.addressof(found), 8)
    assert status == 0
    return list(found)[:count]


def words_of(calls, graph, node):
    nbytes = calls.make("graph_node_get", graph, node, 0, 0)
    assert nbytes % 8 == 0
    words = np.zeros(nbytes // 8, np.uint64)
    assert calls.graph_node_get(graph, node, words.ctypes.data, nbytes) == (0, nbytes)
    return words


def set_node(calls, executable, node, words):
    return calls.graph_node_set(executable, node, words.ctypes.data, words.nbytes)


def read(calls, ptr, stream):
    values = calls.download(ptr, np.zeros(COUNT, np.int32), stream)
    assert (values == values[0]).all()
    return values[0]


def destroy(calls, *handles):
    *executables, graph = handles
    for executable in executables:
        assert calls.graph_executable_destroy(executable) == 0
    assert calls.graph_destroy(graph) == 0


def test_nodes_come_in_order_with_their_kinds(calls, stream, memory):
    ran = HOST_FUNCTION(lambda _: None)
    work = [("fill_async", memory[0], 7, 4, COUNT), ("host_launch", ran, 5)]
    work += [("copy_async", memory[1], memory[0], NBYTES)]
    graph = captured(calls, stream, *work)
    nodes = nodes_of(calls, graph)
    assert [words_of(calls, graph, node)[0] for node in nodes] == [FILL, HOST, COPY]
    registry.observe(calls.device)
    registry.start_trace(calls.device)
    assert calls.graph_nodes(graph, 0, 0) == (0, 3)
    assert registry.take_trace(calls.device)[0][0] == "graph_nodes"
    host = words_of(calls, graph, nodes[1])
    assert list(host[1:3]) == [ctypes.cast(ran, ctypes.c_void_p).value, 5]
    destroy(calls, graph)


def test_addresses_are_the_words_in_which_two_captures_differ(calls, stream, memory):
    a, b, c, d = memory
    first = copy_and_fill(calls, stream, a, b, a)
    second = copy_and_fill(calls, stream, c, d, c)
    for one, other in zip(nodes_of(calls, first), nodes_of(calls, second), strict=True):
        before, after = words_of(calls, first, one), words_of(calls, second, other)
        moved = {int(x): int(y) for x, y in zip(before, after, strict=True) if x != y}
        assert moved == ({a: c, b: d} if before[0] == COPY else {a: c})
    destroy(calls, first)
    destroy(calls, second)


def test_a_moved_node_counts_for_later_launches_of_one_executable(calls, stream, memory):
    a, b, c, d = memory
    graph = copy_and_fill(calls, stream, a, b, b)
    moved = copy_and_fill(calls, stream, c, d, d)
    executable, other = (calls.make("graph_instantiate", graph) for _ in range(2))
    assert calls.graph_launch(executable, stream) == 0
    # Work that is already queued keeps its parameters.
    for node, source in zip(nodes_of(calls, graph), nodes_of(calls, moved), strict=True):
        assert set_node(calls, executable, node, words_of(calls, moved, source)) == 0
    assert [read(calls, ptr, stream) for ptr in memory] == [100, 7, 200, 300]
    assert calls.graph_launch(executable, stream) == 0
    assert [read(calls, ptr, stream) for ptr in memory] == [100, 7, 300, 7]
    assert calls.graph_launch(other, stream) == 0
    assert [read(calls, ptr, stream) for ptr in memory] == [7, 7, 300, 7]
    destroy(calls, moved)
    destroy(calls, executable, other, graph)


def test_a_host_function_is_replaced(calls, stream):
    ran = []
    functions = [HOST_FUNCTION(lambda argument, i=i: ran.append((i, argument))) for i in range(2)]
    graph = captured(calls, stream, ("host_launch", functions[0], 5))
    (node,) = nodes_of(calls, graph)
    executable = calls.make("graph_instantiate", graph)
    words = words_of(calls, graph, node)
    words[1:3] = ctypes.cast(functions[1], ctypes.c_void_p).value, 6
    assert calls.graph_launch(executable, stream) == 0
    assert set_node(calls, executable, node, words) == 0
    assert calls.graph_launch(executable, stream) == 0
    assert calls.stream_synchronize(stream) == 0
    assert ran == [(0, 5), (1, 6)]
    destroy(calls, executable, graph)


def test_an_executable_takes_another_graph_with_the_same_nodes(calls, stream, memory):
    a, b, c, d = memory
    graph = copy_and_fill(calls, stream, a, b, b)
    moved = copy_and_fill(calls, stream, c, d, d)
    other = captured(calls, stream, ("fill_async", a, 1, 4, COUNT))
    executable = calls.make("graph_instantiate", graph)
    assert calls.graph_update(executable, other) == UPDATE_FAILED
    assert calls.graph_launch(executable, stream) == 0
    assert [read(calls, ptr, stream) for ptr in memory] == [100, 7, 200, 300]
    assert calls.graph_update(executable, moved) == 0
    destroy(calls, moved)
    assert calls.graph_launch(executable, stream) == 0
    assert [read(calls, ptr, stream) for ptr in memory] == [100, 7, 300, 7]
    # The nodes are still those of the first graph.
    node = nodes_of(calls, graph)[1]
    assert set_node(calls, executable, node, words_of(calls, graph, node)) == 0
    assert calls.graph_launch(executable, stream) == 0
    assert [read(calls, ptr, stream) for ptr in memory] == [100, 7, 7, 7]
    destroy(calls, other)
    destroy(calls, executable, graph)


def test_wrong_arguments_about_nodes_are_refused(calls, stream, memory):
    graph = copy_and_fill(calls, stream, memory[0], memory[1], memory[1])
    executable = calls.make("graph_instantiate", graph)
    copy, fill = nodes_of(calls, graph)
    words = words_of(calls, graph, copy)
    assert calls.graph_nodes(0, 0, 0) == (INVALID_HANDLE, UNTOUCHED)
    assert calls.graph_node_get(0, copy, 0, 0) == (INVALID_HANDLE, UNTOUCHED)
    assert calls.graph_node_get(graph, 0, 0, 0) == (INVALID_HANDLE, UNTOUCHED)
    assert set_node(calls, 0, copy, words) == INVALID_HANDLE
    assert set_node(calls, executable, 0, words) == INVALID_HANDLE
    assert calls.graph_update(executable, 0) == calls.graph_update(0, graph) == INVALID_HANDLE
    assert calls.graph_node_set(executable, copy, None, 8) == INVALID_VALUE
    assert set_node(calls, executable, copy, words[:-1]) == INVALID_VALUE
    assert set_node(calls, executable, fill, words) == INVALID_VALUE
    small = np.zeros(1, np.uint64)
    assert calls.graph_node_get(graph, copy, small.ctypes.data, 8) == (0, words.nbytes)
    assert small[0] == 0
    assert calls.graph_launch(executable, stream) == 0
    assert read(calls, memory[0], stream) == 100
    destroy(calls, executable, graph)


@pytest.fixture
def host_calls(calls):
    if calls.device >= 0:
        pytest.skip("a kernel sets the conditions of a GPU (gpu/test_programs.py)")
    return calls


def set_condition(condition, value):
    """A host function that sets a condition of a host device."""
    word = ctypes.cast(condition, ctypes.POINTER(ctypes.c_uint32))
    return HOST_FUNCTION(lambda _: word.__setitem__(0, value()))


def test_bodies_run_if_and_while_their_condition_is_true(host_calls, memory, tmp_path):
    calls = host_calls
    stream, inner = calls.make("stream_create", 0), calls.make("stream_create", 0)
    a, _b, c, _d = memory
    left, chosen = [0], [False]

    def turn():
        left[0] -= 1
        return left[0] > 0

    assert calls.condition_create(stream)[0] == ILLEGAL_STATE
    assert calls.capture_begin(stream, 0) == 0
    loop, choice = (calls.make("condition_create", stream) for _ in range(2))
    assert calls.condition_add(stream, loop, 2)[0] == INVALID_VALUE
    assert calls.condition_add(stream, loop + 1, 1)[0] == INVALID_VALUE
    setters = [set_condition(loop, lambda: left[0] > 0), set_condition(loop, turn)]
    setters.append(set_condition(choice, lambda: chosen[0]))
    assert calls.host_launch(setters[0], None, stream) == 0
    body = calls.make("condition_add", stream, loop, 1)
    assert calls.capture_begin_body(inner, body, 2) == 0
    assert calls.host_launch(setters[1], None, inner) == 0
    assert calls.make("capture_end", inner) == body
    assert calls.capture_begin_body(inner, body, 2) == INVALID_HANDLE  # captured already
    assert calls.host_launch(setters[2], None, stream) == 0
    other = calls.make("condition_add", stream, choice, 0)
    assert calls.capture_begin_body(inner, other, 2) == 0
    assert calls.fill_async(a, 7, 4, COUNT, inner) == 0
    assert calls.make("capture_end", inner) == other
    graph = calls.make("capture_end", stream)
    first, second = (calls.make("graph_instantiate", graph) for _ in range(2))
    path = ctypes.create_string_buffer(str(tmp_path / "graph.dot").encode())
    assert calls.graph_dump(graph, ctypes.addressof(path)) == 0
    text = (tmp_path / "graph.dot").read_text()
    assert text.count('"while') == text.count('"if') == 1, text

    def launch(executable, turns, choose):
        left[0], chosen[0] = turns, choose
        assert calls.graph_launch(executable, stream) == 0
        assert calls.stream_synchronize(stream) == 0
        assert left[0] == 0
        return read(calls, a, stream), read(calls, c, stream)

    assert launch(first, 3, False) == (0, 200)
    # A node of a body, changed in one executable only.
    (node,) = nodes_of(calls, other)
    words = words_of(calls, other, node)
    words[words == a] = c
    assert set_node(calls, first, node, words) == 0
    assert launch(first, 0, True) == (0, 7)
    assert launch(second, 1, True) == (7, 7)
    assert calls.graph_update(first, graph) == 0
    assert calls.fill_async(a, 1, 4, COUNT, stream) == 0
    assert launch(first, 2, True) == (7, 7)
    destroy(calls, first, second, graph)
    assert calls.graph_nodes(other, 0, 0)[0] == INVALID_HANDLE  # destroyed with its graph
    assert calls.stream_destroy(stream) == calls.stream_destroy(inner) == 0

"""Trees: flattened and rebuilt, matched, stored as JSON; errors name a path."""

import json
import math
from collections import namedtuple
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputensor.programs import tree

Point = namedtuple("Point", ["x", "y"])


@dataclass
class Layer:
    q: object
    k: object = None


class Leaf:
    pass


def is_leaf(part):
    return isinstance(part, Leaf)


PLAIN = st.none() | st.booleans() | st.integers(-99, 99) | st.floats() | st.text("abc", max_size=4)
KEYS = st.text("abcdef", min_size=1, max_size=4) | st.integers(-3, 9)
TREES = st.recursive(
    st.builds(Leaf) | PLAIN,
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(KEYS, parts, max_size=3)
        | st.builds(Point, parts, parts)
        | st.builds(Layer, parts, parts)
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_a_tree_comes_back_from_its_leaves_and_structure(whole):
    leaves, structure = tree.flatten(whole, is_leaf)
    back = tree.unflatten(structure, [leaf for _path, leaf in leaves])
    again, same = tree.flatten(back, is_leaf)
    assert same == structure and hash(same) == hash(structure)
    assert again == leaves
    assert repr(back) == repr(whole) and type(back) is type(whole)
    assert tree.matched(structure, whole, is_leaf) == [leaf for _path, leaf in leaves]


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_json_keeps_a_structure_and_stands_in_for_classes(whole):
    leaves, structure = tree.flatten(whole, is_leaf)
    back = tree.from_json(json.loads(json.dumps(tree.to_json(structure), allow_nan=False)))
    assert back == structure
    rebuilt = tree.unflatten(back, [leaf for _path, leaf in leaves])
    assert tree.matched(back, whole, is_leaf) == [leaf for _path, leaf in leaves]
    assert tree.matched(structure, rebuilt, is_leaf) == [leaf for _path, leaf in leaves]


def test_paths():
    whole = {"layers": [{"q": Leaf()}, Layer(Leaf(), (Leaf(),))], "at": Point(Leaf(), 3), 7: Leaf()}
    paths = [path for path, _leaf in tree.flatten(whole, is_leaf)[0]]
    assert paths == ["layers.0.q", "layers.1.q", "layers.1.k.0", "at.x", "7"]
    assert tree.flatten(Leaf(), is_leaf, "mask")[0][0][0] == "mask"


def test_a_class_of_another_process_is_a_named_tuple():
    _leaves, structure = tree.flatten(Layer(Leaf(), 1.5), is_leaf)
    back = tree.from_json(tree.to_json(structure))
    rebuilt = tree.unflatten(back, ["q"])
    assert rebuilt == ("q", 1.5) and rebuilt.q == "q" and type(rebuilt).__name__ == "Layer"


def test_matching_takes_other_orders_and_sequences():
    _leaves, structure = tree.flatten({"a": Leaf(), "b": [Leaf(), Leaf()]}, is_leaf)
    a, b, c = Leaf(), Leaf(), Leaf()
    assert tree.matched(structure, {"b": (b, c), "a": a}, is_leaf) == [a, b, c]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"a": Leaf()}, "tree: got the keys a; expected a, b"),
        ({"a": Leaf(), "b": [Leaf()]}, "b: got 1 parts; expected 2"),
        ({"a": 3.0, "b": [Leaf(), Leaf()]}, "a: got float; expected a tensor"),
        ({"a": Leaf(), "b": Leaf()}, "b: got Leaf; expected a list"),
        ([Leaf()], "tree: got list; expected a dict"),
    ],
)
def test_mismatches_are_named(other, text):
    _leaves, structure = tree.flatten({"a": Leaf(), "b": [Leaf(), Leaf()]}, is_leaf)
    with pytest.raises((TypeError, ValueError)) as caught:
        tree.matched(structure, other, is_leaf)
    assert str(caught.value) == text


def test_structures_differ_by_kind_names_and_values():
    trees = [[Leaf()], (Leaf(),), {"a": Leaf()}, {0: Leaf()}, [1], [True], [1.0], [0.0], [-0.0], []]
    found = [tree.flatten(whole, is_leaf)[1] for whole in trees]
    assert len(set(found)) == len(trees)
    assert tree.flatten([math.nan], is_leaf)[1] == tree.flatten([math.nan], is_leaf)[1]


def test_trees_that_cannot_be_kept_are_refused():
    cyclic = []
    cyclic.append(cyclic)
    cases = [
        (cyclic, ValueError, "64 levels"),
        ({"a": {1.5: Leaf()}}, TypeError, "a.key: got float; expected a str or an int"),
        ([object()], TypeError, "0: got object; expected a tensor, dict"),
        ({"a": {"b": Leaf()}, "a.b": Leaf()}, ValueError, "two leaves 'a.b'"),
        ({"a\n": Leaf()}, ValueError, "printable"),
    ]
    for whole, kind, text in cases:
        with pytest.raises(kind) as caught:
            tree.flatten(whole, is_leaf)
        assert text in str(caught.value)


DEEP = "leaf"
for _level in range(70):
    DEEP = {"list": [DEEP]}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (3, 'tree: got int; expected "leaf" or an object'),
        ({"set": []}, 'tree: got dict; expected "leaf" or an object'),
        ({"list": {}}, "tree.list: got dict; expected a list"),
        ({"list": ["leaf", 1]}, 'tree.list[1]: got int; expected "leaf"'),
        ({"dict": [["a"]]}, "tree.dict[0]: got list; expected a list of a key and a tree"),
        ({"dict": [["a", "leaf"], ["a", "leaf"]]}, "tree.dict: got a key twice; expected each"),
        ({"namedtuple": [["class", "leaf"]], "name": "P"}, "expected identifiers"),
        ({"dataclass": [["a", "leaf"]], "name": "__import__('os')"}, "expected identifiers"),
        ({"dataclass": [["_a", "leaf"]], "name": "P"}, "expected identifiers"),
        ({"plain": []}, "tree.plain: got list"),
        ({"float": "1"}, 'tree.float: got str; expected "inf"'),
        (DEEP, "64 levels"),
    ],
)
def test_strange_json_is_refused_with_its_place(data, text):
    with pytest.raises(ValueError) as caught:
        tree.from_json(data)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_the_number_of_leaves_must_match():
    _leaves, structure = tree.flatten([Leaf(), Leaf()], is_leaf)
    for count in (1, 3):
        with pytest.raises(ValueError, match="leaves than the structure has"):
            tree.unflatten(structure, [0] * count)

"""JSON of functions: it comes back equal, and an error names the place of malformed text."""

import copy
import json

import pytest

from gputensor.errors import ProgramFileError
from gputensor.programs import function_json as form
from tests.support.programs.example_function import example_program


def there_and_back(program):
    return form.from_json(json.loads(json.dumps(form.to_json(program), allow_nan=False)))


def test_a_program_comes_back():
    program = example_program()
    attributes = {
        "none": None, "flag": True, "count": 3, "scale": 0.1, "name": "a b", "axes": (1, (2,)),
        "upper": ("add", ("dim", "n"), 1), "limit": float("-inf"), "z": 1 - 2j,
        "options": {"a": (1.5, "b")}, "trees": (("mul", ("load", 0), ("load", 1)),),
    }  # fmt: skip
    program.functions["decode"].calls[0].attributes = attributes
    program.functions["decode"].facts = {"capability": (9, 0)}
    program.metadata = {"made_by": "test"}
    assert there_and_back(program) == program


def replaced(path, value):
    data = copy.deepcopy(form.to_json(example_program()))
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return data


CALL = ("functions", "decode", "calls", 1)
LONG = ["dim", "n"]
for _level in range(60):
    LONG = ["add", LONG, LONG]


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ((*CALL, "writes", 0, "shape"), "x", "functions.decode.calls[1].writes[0].shape: got 'x'"),
        ((*CALL, "writes", 0, "shape"), [2**63], "calls[1].writes[0].shape[0]: got 9223"),
        ((*CALL, "writes", 0, "shape"), [1] * 17, "writes[0].shape: got 17 ints"),
        ((*CALL, "writes", 0, "shape"), [LONG, 1], "shape[0]: got a too long expression"),
        ((*CALL, "writes", 0, "shape"), [["floordiv", 8, 0]], "a divisor that is a positive int"),
        ((*CALL, "writes", 0, "strides"), [1], "writes[0].strides: got 1 strides; expected 2"),
        ((*CALL, "writes", 0, "offset"), 1.5, "writes[0].offset: got 1.5; expected an int"),
        ((*CALL, "writes", 0, "value"), -1, "writes[0].value: got -1; expected an int from 0"),
        ((*CALL, "writes", 0, "value"), True, "writes[0].value: got True; expected an int"),
        ((*CALL, "writes", 0), None, "writes[0]: got null or a number; expected a view"),
        ((*CALL, "reads", 0, "dtype"), "float31", "reads[0].dtype: got 'float31'"),
        ((*CALL, "reads", 0), {"number": "3", "dtype": "int8"}, "reads[0].number: got '3'"),
        ((*CALL, "attributes"), {"a\n": 1}, "calls[1].attributes: got 'a\\n'; expected at most"),
        ((*CALL, "attributes"), {"a": {"b": 1, "c": 2}}, "attributes.a: got an object of 2"),
        ((*CALL, "attributes"), {"a": "\ud800"}, "attributes.a: got '\\ud800'"),
        ((*CALL, "name"), 3, "calls[1].name: got int; expected a string"),
        ((*CALL, "stream"), -3, "calls[1].stream: got -3"),
        ((*CALL, "regions"), 3, "calls[1].regions: got 3; expected a list"),
        (("functions", "decode", "dims", "n"), {"least": 3, "most": 1}, "dims.n.most: got 1"),
        (("functions", "decode", "values", 0, "kind"), "x", "values[0].kind: got 'x'"),
        (("functions", "decode", "states"), {"k": [1]}, "states.k: got a list of 1"),
        (("functions",), [], "functions: got a list of 0; expected an object"),
        (("weights", "w", "shape"), [-1], "weights.w.shape: got -1"),
        (("state_tree",), {"list": 3}, "state_tree.list: got int"),
    ],
)
def test_wrong_json_is_named(path, value, text):
    data = replaced(path, value)
    with pytest.raises(ProgramFileError) as caught:
        form.from_json(data)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_fields_of_later_versions_are_ignored():
    data = replaced((*CALL, "later"), {"x": [1]})
    data["more"] = 1
    data["functions"]["decode"]["values"][0]["align"] = 64
    assert form.from_json(data) == example_program()

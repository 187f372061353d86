"""Untrusted JSON: values come back, and text that breaks a rule gives one short line."""

import json
import time

import pytest

from gputensor.strict_json import loads, shown


def test_values_come_back():
    value = {"a": [1, -2.5, True, None, "é\u2028", {"b": {}}], "c": 2**64, "😀": ""}
    for is_ascii in (True, False):
        assert loads(json.dumps(value, ensure_ascii=is_ascii).encode(), 100) == value


def test_brackets_inside_of_strings_do_not_nest():
    text = "[" * 100 + '\\" \\\\' + "]" * 3
    assert loads(json.dumps([text]).encode(), 1000) == [text]


@pytest.mark.parametrize("levels", [63, 64, 65, 66])
@pytest.mark.parametrize("kind", [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
def test_limit_of_nesting_is_exact(kind, levels):
    levels -= levels % (2 if len(kind[1]) == 2 else 1)
    count = levels // len(kind[1])
    data = kind[0] * count + b"1" + kind[1] * count
    if levels <= 64:
        loads(data, 1000)
        return
    with pytest.raises(ValueError, match="nested deeper than 64"):
        loads(data, 1000)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"[" * 10**6, "nested deeper than 64"),
        (b'{"a":' * 10**6, "nested deeper than 64"),
        (b"[]" * 64 + b"[" * 65, "nested deeper than 64"),
        (b"]" * 100 + b"[" * 64, "Expecting value"),
        (b'["' + b'\\"' * 10**6, "Unterminated string"),
        (b"[" + b"9" * 10**6 + b"]", "an integer of 1000000 digits"),
        (b"[1" + b"0" * 400 + b".0]", "expected one that float64 holds"),
        (b"[NaN]", "got NaN"),
        (b"[-Infinity]", "got -Infinity"),
        (b"[1e999]", "'1e999'"),
        (b'{"a":1,"b":2,"a":3}', "the name 'a' comes twice"),
        (b'["\xff"]', "byte 2 is not UTF-8"),
        (b'["\\ud800"]', "half of a surrogate pair"),
        (b'["\n"]', "Invalid control character"),
        (b"", "Expecting value"),
        (b"[1] 2", "Extra data"),
        (b"[" + b"[]," * 10**7 + b"[]]", "got more than 10000000 values"),
    ],
    ids=lambda one: ascii(one[:20]),  # the whole text would be the name, of up to 30 MB
)
def test_text_that_breaks_a_rule_is_one_short_line(data, wanted):
    start = time.process_time()
    with pytest.raises(ValueError) as caught:
        loads(data, 10**7)
    assert time.process_time() - start < 5
    message = str(caught.value)
    assert wanted in message and "\n" not in message and len(message) < 200


def test_excerpts_in_errors_are_short():
    assert shown("a\nb") == "'a\\nb'"
    for value in ("x" * 10**6, list(range(1000)), {"a": "y" * 1000}):
        assert len(shown(value)) == 60

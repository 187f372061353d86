"""A JSON parser for untrusted text: limits are checked before memory is spent on the content.

Besides text that the standard forbids, it refuses repeated names in an object, integers of more
than 20 digits, floats beyond float64, NaN, infinities, and strings that are not valid Unicode.
"""

import json
import re

__all__ = ["MOST_NESTED", "loads", "shown"]

MOST_NESTED = 64
# The end of the text also ends a string; otherwise the search in truncated text would try every
# quote as a start.
STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
BRACKETS = bytes.maketrans(b"{}", b"[]")
NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
MOST_DIGITS = 20


def loads(data, most_values, most_nested=MOST_NESTED):
    """Return the value of UTF-8 JSON text; raises a one-line ValueError if it breaks a rule.

    Parameters
    ----------
    data : bytes
    most_values : int
        How many values (numbers, strings, objects ...) the text may contain.
    most_nested : int
        How deep they may be nested.

    >>> loads(b'{"a": [1, 2.5, null]}', 10)
    {'a': [1, 2.5, None]}
    >>> loads(b'{"a": 1, "a": 2}', 10)
    Traceback (most recent call last):
    ...
    ValueError: the name 'a' comes twice in one object
    """
    # This also counts commas and colons inside strings; an upper bound suffices.
    if data.count(b",") + data.count(b":") + data.count(b"[") + data.count(b"{") >= most_values:
        raise ValueError(f"got more than {most_values} values; expected fewer")
    if is_nested_deeper(data, most_nested):
        raise ValueError(f"values are nested deeper than {most_nested} levels")
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=distinct,
            parse_int=whole,
            parse_float=finite,
            parse_constant=refuse,
        )
        if re.search(r"\\u[dD][89a-fA-F]", text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError("a string holds half of a surrogate pair") from None
    return value


def is_nested_deeper(data, levels):
    """Return whether brackets outside of strings are nested deeper than `levels`."""
    brackets = STRINGS.sub(b"", data).translate(BRACKETS, NO_BRACKETS)
    for _ in range(levels):
        fewer = brackets.replace(b"[]", b"")  # the innermost level goes
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    # The rest is nested too deep, or it is unbalanced. The parser reports unbalanced brackets,
    # unless it would have to go deeper than allowed to find them.
    return b"[" * (levels + 1) in brackets or b"[]" in brackets


def distinct(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the name {shown(twice)} comes twice in one object")
    return found


def whole(text):
    if len(text) > MOST_DIGITS:
        raise ValueError(f"got an integer of {len(text)} digits; expected at most {MOST_DIGITS}")
    return int(text)


def finite(text):
    value = float(text)
    if value - value != 0:
        raise ValueError(f"got the number {shown(text)}; expected one that float64 holds")
    return value


def refuse(text):
    raise ValueError(f"got {text}; expected a number that is finite")


def shown(value, most=60):
    """Return `repr(value)`, cut to a length that fits a message.

    >>> shown("w" * 1000, 9)
    "'wwwww..."
    """
    text = repr(value[: 2 * most] if isinstance(value, str) else value)
    return text if len(text) <= most else text[: most - 3] + "..."

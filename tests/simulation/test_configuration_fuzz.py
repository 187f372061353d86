"""Fuzzes the configuration grammar: any text parses or raises a ValueError of one line."""

import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gputensor._alloc.config.options import OPTIONS, REJECTED
from gputensor._alloc.config.settings import Settings, parse
from tests.support.internals import as_bytes

FRAGMENTS = [
    *OPTIONS, *REJECTED, ":", ",", "[", "]", ">", "True", "False", "native", "cudaMallocAsync",
    "0", "1", "2", "20", "64", "0.5", "1e3", "-1", " ", "\t", "nan", "none", "99999999999999999999",
]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join),
    st.text(alphabet=string.printable + "é६\x00", max_size=60),
)
good_values = {
    "backend": st.sampled_from(["native", "cudaMallocAsync"]),
    "garbage_collection_threshold": st.integers(1, 99).map(lambda value: f"0.{value:02d}"),
    "per_process_memory_fraction": st.integers(0, 100).map(lambda value: f"{value / 100}"),
    "roundup_power2_divisions": st.sampled_from(["0", "4", "[1:2,>:8]", "[256:1,512:2]"]),
    "pinned_num_register_threads": st.integers(0, 7).map(lambda power: str(1 << power)),
    "page_size_mb": st.integers(1, 512).map(lambda value: str(2 * value)),
}


def good_pair(name):
    if isinstance(OPTIONS[name].default, bool):
        values = st.sampled_from(["True", "False"])
    else:
        values = good_values.get(name, st.integers(20, 4096).map(str))
    return values.map(lambda value: (name, value))


good_texts = st.lists(st.sampled_from([*OPTIONS]).flatmap(good_pair), max_size=8).filter(
    lambda pairs: all(int(value) <= 20 for name, value in pairs if name == "large_segment_size_mb")
)


@settings(max_examples=400, deadline=None)
@given(texts)
@example("a:b")
@example("max_split_size_mb:[")
@example("roundup_power2_divisions:[:]")
@example("roundup_power2_divisions:[>]")
def test_any_text_parses_or_raises_an_error_of_one_line(text):
    try:
        parsed = parse(text)
    except ValueError as error:
        message = str(error)
        assert message.startswith("GPUTENSOR_ALLOC_CONF: ")
        assert "\n" not in message
    else:
        assert isinstance(parsed, Settings)
        as_bytes(parsed)
        assert parse(parsed.text()) == parsed


@settings(max_examples=200, deadline=None)
@given(good_texts, st.randoms(use_true_random=False))
def test_good_pairs_in_any_order_and_spacing_mean_the_last_of_each(pairs, random):
    text = ",".join(f"{name}:{value}" for name, value in pairs)
    spaced = "".join(c + random.choice(["", "", " ", "\t"]) for c in text)
    parsed = parse(spaced)
    for name, value in dict(pairs).items():
        assert getattr(parsed, name) == OPTIONS[name].convert(value)
    for name in set(OPTIONS) - {name for name, _ in pairs}:
        assert getattr(parsed, name) == OPTIONS[name].default

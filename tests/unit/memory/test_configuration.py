"""The options of the allocator: grammar, checks, defaults, provenance, and the C fields."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gputensor._alloc.config import options, settings
from gputensor._alloc.config.settings import Settings, parse
from tests.support.internals import as_bytes

MIB = 1 << 20
NO_LIMIT = (1 << 64) - 1


@pytest.fixture
def in_force(monkeypatch):
    """Let the test change the run-time settings; they are restored after it."""
    monkeypatch.setattr(settings, "_in_force", Settings())
    monkeypatch.setattr(settings, "_listeners", [])


def test_without_a_text_every_option_has_its_default():
    for name, setting in Settings().in_force().items():
        assert setting == (options.OPTIONS[name].default, "default")


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("backend:cudaMallocAsync", "backend", "cudaMallocAsync"),
        ("large_segment_size_mb:11", "large_segment_size_mb", 11),
        ("max_split_size_mb:20", "max_split_size_mb", 20),
        ("max_non_split_rounding_mb:64", "max_non_split_rounding_mb", 64),
        ("garbage_collection_threshold:0.8", "garbage_collection_threshold", 0.8),
        ("garbage_collection_threshold:1e-3", "garbage_collection_threshold", 1e-3),
        ("expandable_segments:False", "expandable_segments", False),
        ("release_lock_on_cudamalloc:False", "release_lock_on_cudamalloc", False),
        ("graph_capture_record_stream_reuse:True", "graph_capture_record_stream_reuse", True),
        ("per_process_memory_fraction:.5", "per_process_memory_fraction", 0.5),
        ("per_process_memory_fraction:0", "per_process_memory_fraction", 0.0),
        ("throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom", True),
        ("pinned_use_cuda_host_register:True", "pinned_use_cuda_host_register", True),
        ("pinned_num_register_threads:128", "pinned_num_register_threads", 128),
        ("pinned_use_background_threads:True", "pinned_use_background_threads", True),
        ("pinned_reserve_segment_size_mb:1", "pinned_reserve_segment_size_mb", 1),
        ("pinned_max_round_threshold_mb:8", "pinned_max_round_threshold_mb", 8),
        ("pinned_max_cached_size_mb:0", "pinned_max_cached_size_mb", 0),
        ("page_size_mb:2", "page_size_mb", 2),
        ("page_reuse:False", "page_reuse", False),
        ("thread_cache:False", "thread_cache", False),
        ("memory_limit_mb:100", "memory_limit_mb", 100),
        ("history_max_entries:7", "history_max_entries", 7),
    ],
)
def test_an_option_changes_only_itself(text, name, value):
    parsed = parse(text)
    assert getattr(parsed, name) == value
    assert type(getattr(parsed, name)) is type(value)
    for other, setting in parsed.in_force().items():
        if other == name:
            assert setting == (value, "environment")
        else:
            assert setting == (options.OPTIONS[other].default, "default")


def test_every_option_is_a_field_of_settings_and_is_tested_above():
    assert set(options.OPTIONS) == set(Settings().in_force())
    source = Path(__file__).read_text()
    for name in options.OPTIONS:
        assert f'("{name}:' in source or name == "roundup_power2_divisions", name


def test_whitespace_is_ignored_everywhere():
    spaced = " max_split_size_mb : 1 28 ,\troundup_power2_divisions:[ 256 : 1 , > : 2 ]\n,"
    assert parse(spaced) == parse("max_split_size_mb:128,roundup_power2_divisions:[256:1,>:2]")


def test_the_last_of_equal_keys_holds():
    assert parse("page_size_mb:2,page_size_mb:4").page_size_mb == 4


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("0", [0] * 16),
        ("8", [8] * 16),
        ("[256:1,512:2,1024:4,>:8]", [1] * 9 + [2, 4] + [8] * 5),
        ("[64:8,128:2,256:4,512:2,1024:1,>:1]", [8] * 7 + [2, 4, 2] + [1] * 6),
        ("[2:4]", [4, 4] + [0] * 14),
        ("[1:2,16:4]", [2, 0, 0, 0, 4] + [0] * 11),
        ("[>:4]", [4] * 16),
        ("[32768:2,>:4]", [2] * 16),
        ("[131072:2]", [2] * 16),
    ],
)
def test_roundup_lists_fill_the_intervals_as_pytorch_does(text, table):
    assert list(parse(f"roundup_power2_divisions:{text}").roundup_power2_divisions) == table


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("nonsense:1", "nonsense"),
        ("max_split_size_mb", "max_split_size_mb"),
        ("max_split_size_mb:", "max_split_size_mb"),
        (":1", ":1"),
        (",", ","),
        ("page_size_mb:2,,page_reuse:True", ",page_reuse"),
        ("page_size_mb:2:4", "page_size_mb"),
        ("max_split_size_mb:2", "max_split_size_mb"),
        ("max_split_size_mb:-1", "max_split_size_mb"),
        ("max_split_size_mb:64.5", "max_split_size_mb"),
        ("max_split_size_mb:६४", "max_split_size_mb"),
        ("max_split_size_mb:99999999999999999999", "max_split_size_mb"),
        ("large_segment_size_mb:10", "large_segment_size_mb"),
        ("large_segment_size_mb:64,max_split_size_mb:32", "max_split_size_mb"),
        ("max_split_size_mb:32,large_segment_size_mb:64", "max_split_size_mb"),
        ("max_non_split_rounding_mb:19", "max_non_split_rounding_mb"),
        ("garbage_collection_threshold:-0.1", "garbage_collection_threshold"),
        ("garbage_collection_threshold:1", "garbage_collection_threshold"),
        ("garbage_collection_threshold:nan", "garbage_collection_threshold"),
        ("per_process_memory_fraction:1.01", "per_process_memory_fraction"),
        ("per_process_memory_fraction:-0.1", "per_process_memory_fraction"),
        ("expandable_segments:true", "expandable_segments"),
        ("expandable_segments:1", "expandable_segments"),
        ("backend:jemalloc", "backend"),
        ("pinned_num_register_threads:3", "pinned_num_register_threads"),
        ("pinned_num_register_threads:256", "pinned_num_register_threads"),
        ("pinned_reserve_segment_size_mb:none", "pinned_reserve_segment_size_mb"),
        ("max_split_size_mb:0", "max_split_size_mb"),
        ("max_split_size_mb:None", "max_split_size_mb"),
        ("page_size_mb:none", "page_size_mb"),
        ("page_size_mb:3", "page_size_mb"),
        ("page_size_mb:0", "page_size_mb"),
        ("history_max_entries:0", "history_max_entries"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[3:1]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[4:3]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[4:1,2:1]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[>:1,4:2]", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[4:1", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[4:1]]", "roundup_power2_divisions"),
        ("expandable_segments_reserve:2", "expandable_segments_reserve"),
        ("pinned_free_catch_all:True", "pinned_free_catch_all"),
    ],
)
def test_a_bad_text_names_the_variable_the_key_and_what_is_allowed(text, named):
    with pytest.raises(ValueError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith("GPUTENSOR_ALLOC_CONF: ")
    assert named in message
    assert "; expected " in message
    assert "\n" not in message


def test_two_options_that_only_fit_together_may_come_in_any_order():
    assert parse("max_split_size_mb:11,large_segment_size_mb:11").max_split_size_mb == 11


def test_change_adds_to_the_settings_in_force(in_force):
    settings.change("max_split_size_mb:64,roundup_power2_divisions:4")
    settings.change("page_reuse:False")
    now = settings.current()
    assert (now.max_split_size_mb, now.page_reuse) == (64, False)
    assert now.roundup_power2_divisions == (4,) * 16
    assert now.in_force()["page_reuse"].source == "set_allocator_settings"
    assert now.in_force()["page_size_mb"].source == "default"
    assert now.text() == "max_split_size_mb:64,roundup_power2_divisions:4,page_reuse:False"


def test_a_bad_change_changes_nothing_and_notifies_no_listener(in_force):
    heard = []
    settings.on_change(heard.append)
    before = settings.change("max_split_size_mb:64")
    for text in (
        "page_size_mb:4,page_reuse:yes",
        "large_segment_size_mb:65",
        "backend:cudaMallocAsync",
    ):
        with pytest.raises(ValueError, match="^set_allocator_settings: "):
            settings.change(text)
    assert settings.current() is before
    assert heard == [before]


def test_the_environment_is_read_once_and_a_bad_one_is_an_error_until_it_is_good(monkeypatch):
    monkeypatch.setattr(settings, "_in_force", None)
    monkeypatch.setenv("GPUTENSOR_ALLOC_CONF", "page_size_mb:5")
    for _ in range(2):
        with pytest.raises(ValueError, match="GPUTENSOR_ALLOC_CONF: page_size_mb: got '5'"):
            settings.current()
    monkeypatch.setenv("GPUTENSOR_ALLOC_CONF", "page_size_mb:6")
    assert settings.current().page_size_mb == 6
    monkeypatch.setenv("GPUTENSOR_ALLOC_CONF", "page_size_mb:8")
    assert settings.current().page_size_mb == 6


def test_settings_survive_a_pickle_with_their_sources():
    before = parse("roundup_power2_divisions:[4:2,>:8],page_size_mb:2")
    after = pickle.loads(pickle.dumps(before))
    assert after == before
    assert after.in_force() == before.in_force()


def test_the_c_fields_are_bytes_and_no_limit_is_the_largest_size():
    fields = as_bytes(Settings())
    assert fields["max_split_size"] == NO_LIMIT
    assert fields["pinned_max_cached_size"] == NO_LIMIT
    assert fields["large_segment_size"] == fields["max_non_split_rounding"] == 20 * MIB
    assert fields["page_size"] == 40 * MIB
    assert (
        fields["memory_limit"],
        fields["per_process_memory_fraction"],
        fields["garbage_collection_threshold"],
    ) == (0, 1, 0)
    assert (fields["expandable_segments"], fields["page_reuse"], fields["thread_cache"]) == (1,) * 3
    fields = as_bytes(
        parse(
            "max_split_size_mb:64,large_segment_size_mb:32,memory_limit_mb:3,page_size_mb:2,"
            "garbage_collection_threshold:0.25,per_process_memory_fraction:0.5,"
            "roundup_power2_divisions:[1:2,>:4],backend:cudaMallocAsync,page_reuse:False,"
            "expandable_segments:False,thread_cache:False,throw_on_cudamalloc_oom:True,"
            "pinned_max_cached_size_mb:0"
        )
    )
    assert fields["max_split_size"] == 64 * MIB
    assert fields["large_segment_size"] == fields["max_non_split_rounding"] == 32 * MIB
    assert (fields["memory_limit"], fields["page_size"]) == (3 * MIB, 2 * MIB)
    assert (fields["garbage_collection_threshold"], fields["per_process_memory_fraction"]) == (
        0.25,
        0.5,
    )
    assert fields["roundup_power2_divisions"] == [2] + [4] * 15
    assert (
        fields["backend"],
        fields["throw_on_cudamalloc_oom"],
        fields["pinned_max_cached_size"],
    ) == (1, 1, 0)
    assert (fields["expandable_segments"], fields["page_reuse"], fields["thread_cache"]) == (0,) * 3


def test_a_fresh_process_takes_the_variable():
    code = "from gputensor._alloc.config.settings import current; print(current().page_size_mb)"
    environment = dict(os.environ, GPUTENSOR_ALLOC_CONF="page_size_mb:4")
    output = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert output.stdout.strip() == "4"


def test_every_option_goes_back_to_its_default_at_run_time_as_the_documentation_writes_it(
    in_force,
):
    text = (Path(__file__).parents[3] / "docs" / "memory.md").read_text()
    settings.change(
        "large_segment_size_mb:12,max_split_size_mb:64,max_non_split_rounding_mb:64,"
        "garbage_collection_threshold:0.5,roundup_power2_divisions:4,expandable_segments:False,"
        "per_process_memory_fraction:0.5,pinned_reserve_segment_size_mb:8,page_size_mb:2,"
        "pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:1,memory_limit_mb:100"
    )
    for name, option in options.OPTIONS.items():
        (default,) = re.findall(rf"^\| `{name}` \| ([^ |]+) \|", text, re.M)
        changed = settings.change(f"{name}:{default}")
        assert changed.in_force()[name] == (option.default, "set_allocator_settings")
        assert type(getattr(changed, name)) is type(option.default)
    assert as_bytes(changed) == as_bytes(Settings())
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_the_documentation_lists_every_option_and_says_why_the_others_are_missing():
    text = (Path(__file__).parents[3] / "docs" / "memory.md").read_text()
    for name in (*options.OPTIONS, *options.REJECTED):
        assert re.search(rf"^\| `{name}` \|", text, re.M), name

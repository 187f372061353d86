"""Trace files are accepted only after every check, and each fault is named in one line."""

import io
import os
import pickle
import struct
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputensor._alloc.replay import trace_file
from gputensor._alloc.replay.trace_file import TraceFileError, check_trace, read_trace

NAMES = ("op", "id", "size", "stream")
DTYPES = (np.int8, np.int32, np.int64, np.int16)


def arrays(op=(1, 1, -1), id=(5, 9, 5), size=(512, 8, 512), stream=(0, 2, 0)):
    values = zip(NAMES, (op, id, size, stream), DTYPES, strict=True)
    return {name: np.array(value, dtype) for name, value, dtype in values}


@pytest.fixture
def save(tmp_path):
    """Save arrays under their names and return the path."""

    def write(**contents):
        path = tmp_path / "trace.npz"
        np.savez(path, **contents)
        return path

    return write


def assert_refused(path, *words):
    with pytest.raises(TraceFileError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    for word in words:
        assert word in message


def test_whole_trace_is_read_with_dense_ids_and_its_peak(save):
    trace = read_trace(save(**arrays(), peak_reserved=np.int64(4096)))
    assert trace.events == 3
    assert trace.id.tolist() == [0, 1, 0]
    assert trace.stream.tolist() == [0, 1, 0]
    assert [getattr(trace, name).dtype for name in NAMES] == [np.dtype(d) for d in DTYPES]
    assert trace.peak_requested == 520
    assert trace.recorded == {"peak_reserved": 4096}


def test_threads_are_numbered_from_zero(save):
    trace = read_trace(save(**arrays(), thread=np.array((7, 3, 7), np.int16)))
    assert trace.thread.tolist() == [1, 0, 1]
    assert read_trace(save(**arrays())).thread is None


@pytest.mark.parametrize(
    ("thread", "words"),
    [
        (np.array((0, -1, 0), np.int16), ["event 1", "thread -1"]),
        (np.array((0, 1), np.int16), ["differ in length", "thread 2"]),
        (np.array((0, 1, 0), np.int32), ["'thread' has dtype int32", "int16"]),
    ],
)
def test_wrong_threads_are_named(save, thread, words):
    assert_refused(save(**arrays(), thread=thread), *words)


def test_more_threads_than_a_replay_starts_are_refused(save):
    many = trace_file.MAX_THREADS + 1
    whole = arrays([1] * many, range(many), [8] * many, [0] * many)
    thread = np.arange(many, dtype=np.int16)
    assert_refused(save(**whole, thread=thread), f"{many} threads", str(trace_file.MAX_THREADS))


def test_compressed_trace_is_read(tmp_path):
    np.savez_compressed(tmp_path / "trace.npz", **arrays())
    assert read_trace(tmp_path / "trace.npz").peak_requested == 520


def test_empty_trace_is_read(save):
    trace = read_trace(save(**arrays((), (), (), ())))
    assert (trace.events, trace.peak_requested) == (0, 0)


def test_id_may_be_used_again_after_its_free():
    trace = check_trace(**arrays((1, -1, 1, -1), (3, 3, 3, 3), (8, 8, 16, 16), (0, 0, 0, 0)))
    assert trace.peak_requested == 16


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (dict(op=(1, 0, -1)), ["event 1", "op 0"]),
        (dict(op=(1, 1, -2)), ["event 2", "op -2"]),
        (dict(id=(5, -9, 5)), ["event 1", "id -9"]),
        (dict(size=(512, -8, 512)), ["event 1", "size -8"]),
        (dict(size=(512, 0, 512)), ["event 1", "size 0"]),
        (dict(size=(512, 2**60 + 1, 512)), ["event 1", str(2**60 + 1)]),
        (dict(size=(512, 8, 1024)), ["event 2", "1024"]),
        (dict(stream=(0, -1, 0)), ["event 1", "stream -1"]),
        (dict(op=(-1, 1, -1)), ["event 0", "frees allocation 5", "not live"]),
        (dict(op=(1, -1, -1), id=(5, 5, 5), size=(8, 8, 8)), ["event 2", "not live"]),
        (dict(id=(5, 5, 5), size=(8, 8, 8)), ["event 1", "allocates", "live already"]),
        (dict(id=(5, 9, 7)), ["event 2", "allocation 7", "not live"]),
    ],
)
def test_impossible_event_is_named(save, changed, words):
    assert_refused(save(**arrays(**changed)), *words)


def test_sizes_that_add_up_beyond_an_address_are_refused(save):
    count = 9
    path = save(**arrays([1] * count, range(count), [2**60] * count, [0] * count))
    assert_refused(path, "live at one time")


def test_more_streams_than_a_program_makes_are_refused(save):
    count = trace_file.MAX_STREAMS + 1
    contents = arrays([1] * count, range(count), [8] * count, range(1, count + 1))
    assert_refused(save(**contents), f"{count} streams")
    whole = {name: values[1:] for name, values in contents.items()}
    assert read_trace(save(**whole)).stream.max() == trace_file.MAX_STREAMS


@pytest.mark.parametrize("name", NAMES)
def test_missing_array_is_named(save, name):
    contents = arrays()
    del contents[name]
    assert_refused(save(**contents), f"'{name}'")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "uint8", ">i8", "U3", "S4", "bool"])
def test_other_dtype_is_named(save, name, dtype):
    contents = arrays()
    contents[name] = contents[name].astype(dtype)
    assert_refused(save(**contents), f"'{name}'", "dtype")


@pytest.mark.parametrize("name", NAMES)
def test_other_rank_and_other_length_are_named(save, name):
    contents = arrays()
    assert_refused(save(**{**contents, name: contents[name].reshape(1, 3)}), "dimensions")
    assert_refused(save(**{**contents, name: contents[name][:2]}), "length", f"{name} 2")


def test_negative_peak_is_refused(save):
    assert_refused(save(**arrays(), peak_reserved=np.int64(-1)), "peak_reserved")


def test_pickled_objects_are_never_loaded(save, tmp_path):
    witness = tmp_path / "witness"

    class Hostile:
        def __reduce__(self):
            return open, (str(witness), "w")

    contents = arrays()
    contents["id"] = np.array([Hostile()] * 3, object)
    assert_refused(save(**contents), "'id'", "object")
    pickled = tmp_path / "trace.npz"
    pickled.write_bytes(pickle.dumps(Hostile()))
    witness.unlink(missing_ok=True)
    assert_refused(pickled)
    assert not witness.exists()


def test_missing_file_and_directory_are_named(tmp_path):
    assert_refused(tmp_path / "no-such-file.npz", "no such file")
    assert_refused(tmp_path, "directory")


def test_a_path_that_is_not_a_regular_file_is_refused_unopened(tmp_path):
    """A pipe would wait for a writer; /dev/zero has no end."""
    os.mkfifo(tmp_path / "pipe.npz")
    assert_refused(tmp_path / "pipe.npz", "not a regular file")
    assert_refused("/dev/zero", "not a regular file")


def npy(dtype, shape, data=b""):
    """The bytes of a .npy file with an arbitrary header."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ("(1000000000000000000,)", b"\0" * 24),
        ("(4,)", b"\0" * 24),
        ("(2,)", b"\0" * 24),
        ("(-3,)", b"\0" * 24),
        ("(True,)", b"\0" * 24),
        ("'x'", b"\0" * 24),
    ],
)
def test_header_that_lies_about_the_data_is_refused(tmp_path, shape, data):
    path = tmp_path / "trace.npz"
    np.savez(path, **{name: a for name, a in arrays().items() if name != "size"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("size.npy", npy("<i8", shape, data))
    assert_refused(path)


def test_archive_that_would_unpack_to_too_much_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "MAX_EVENTS", 1000)
    path = tmp_path / "trace.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, dtype in zip(NAMES, ("|i1", "<i4", "<i8", "<i2"), strict=True):
            archive.writestr(f"{name}.npy", npy(dtype, "(9000000,)", b"\0" * 9_000_000))
    assert path.stat().st_size < 100_000
    assert_refused(path, "unpack", "1000 events")


def test_array_given_twice_is_refused(tmp_path, save):
    path = save(**arrays())
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("op.npy", npy("|i1", "(3,)", b"\1\1\1"))
    assert_refused(path, "2 arrays named 'op'")


@pytest.fixture(scope="module")
def whole_file():
    file = io.BytesIO()
    np.savez_compressed(file, **arrays(), peak_reserved=np.int64(4096))
    return file.getvalue()


def outcome(directory, content):
    """Read the bytes as a trace: either a trace whose events hold, or a one-line refusal."""
    path = directory / "fuzzed.npz"
    path.write_bytes(content)
    try:
        trace = read_trace(path)
    except TraceFileError as error:
        assert "\n" not in str(error)
    else:
        check_trace(trace.op, trace.id, trace.size, trace.stream)


def test_every_truncation_is_refused_or_whole(tmp_path, whole_file):
    for length in range(len(whole_file)):
        outcome(tmp_path, whole_file[:length])


@settings(max_examples=300, deadline=None)
@given(
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_changed_bytes_are_refused_or_make_another_whole_trace(tmp_path_factory, whole_file, edits):
    content = bytearray(whole_file)
    for place, byte in edits:
        content[place % len(content)] = byte
    outcome(tmp_path_factory.getbasetemp(), bytes(content))


@settings(max_examples=200, deadline=None)
@given(
    events=st.lists(
        st.tuples(st.sampled_from((1, -1)), st.integers(0, 4), st.sampled_from((8, 16))),
        max_size=12,
    )
)
def test_trace_is_accepted_exactly_when_its_events_are_possible(events):
    live, peak, possible = {}, 0, True
    for op, name, size in events:
        if (op > 0) == (name in live) or (op < 0 and live[name] != size):
            possible = False
            break
        if op > 0:
            live[name] = size
        else:
            del live[name]
        peak = max(peak, sum(live.values()))
    op, id, size = zip(*events, strict=True) if events else ((), (), ())
    contents = arrays(op, id, size, [0] * len(events))
    if possible:
        assert check_trace(**contents).peak_requested == peak
    else:
        with pytest.raises(TraceFileError):
            check_trace(**contents)

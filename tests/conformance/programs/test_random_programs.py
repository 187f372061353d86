"""Random programs equal their functions, and planted faults in the trace are found."""

import warnings

import pytest

import gputensor as gt
from gputensor.programs import recorder
from gputensor.programs.recorder import Recorder
from tests.conformance.programs.random_programs import campaign, run_one


def run(count, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return campaign(count, seed, show=lambda line: None)


def test_random_programs_equal_their_functions(seed):
    ran, refused, failures = run(150, seed % (1 << 20))
    assert not failures
    assert ran > 120, refused


def test_a_branch_on_a_size_between_the_samples_is_refused():
    """The loop of this program takes another branch where n is 5, the extent of another axis."""
    result = run_one(432_732_307_745, [gt.Device("host").number], False)
    assert result.startswith("refused: ") and " at n=5; fix the dim" in result


def lost_version(monkeypatch):
    """A partial write loses the earlier content."""
    write = Recorder.write

    def faulty(self, given, covers, line):
        operand, base = write(self, given, covers, line)
        if base is not None and self.values[operand.value].kind != "state":
            self.values[operand.value].base = None
            return operand, None
        return operand, base

    monkeypatch.setattr(Recorder, "write", faulty)


def stale_stride(monkeypatch):
    """A transposed operand is read as if it were row-major."""
    read = Recorder.read

    def faulty(self, given):
        operand = read(self, given)
        if hasattr(operand, "strides") and len(operand.strides) == 2 and operand.strides[0] == 1:
            return operand._replace(strides=(operand.shape[1], 1))
        return operand

    monkeypatch.setattr(Recorder, "read", faulty)


def write_taken_for_a_whole(monkeypatch):
    """A write through a view counts as a write of the whole memory."""
    monkeypatch.setattr(recorder, "is_dense", lambda *arguments: True)


def stale_version(monkeypatch):
    """A read after a write sees the version before it."""
    write = Recorder.write

    def faulty(self, given, covers, line):
        place = self.trace.place(given.address)
        before = place.current
        operand, base = write(self, given, covers, line)
        if base is not None and len(self.calls) % 3 == 0 and before is not None:
            place.current = before
        return operand, base

    monkeypatch.setattr(Recorder, "write", faulty)


@pytest.mark.parametrize(
    "plant", [lost_version, stale_stride, write_taken_for_a_whole, stale_version]
)
def test_a_planted_fault_is_found(plant, monkeypatch):
    plant(monkeypatch)
    _ran, _refused, failures = run(200, 7)
    assert failures

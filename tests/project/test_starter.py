"""The processes of a starter are like those of separate commands."""

import os
import signal

import pytest

from tests.support.processes.starter import Starter

PROGRAM = """
import os, sys
assert "numpy" in sys.modules and "gputensor" not in sys.modules
assert __name__ == "__main__" and sys.modules["__main__"].os is os
assert sys.stdin.read() == "" and "LEFT" not in os.environ
os.environ["LEFT"] = "behind"
import gputensor
print(sys.argv[1:], os.environ.get("VALUE"), os.getcwd())
print("warned", file=sys.stderr)
"""


@pytest.fixture
def starter():
    made = Starter(("numpy", "a_module_that_is_not_installed"))
    yield made
    made.close()


@pytest.mark.slow
def test_children_have_arguments_variables_and_an_output_of_their_own(starter, tmp_path):
    for value in ("1", "2"):
        folder = tmp_path / value
        folder.mkdir()
        variables = {**os.environ, "VALUE": value}
        given = {"environment": variables, "folder": folder}
        found = starter.run(PROGRAM, "-x", value, **given)
        assert found == (0, f"['-x', '{value}'] {value} {folder}\nwarned\n")


@pytest.mark.slow
def test_the_end_of_a_child_is_its_status(starter, tmp_path):
    given = {"environment": dict(os.environ), "folder": tmp_path}
    assert starter.run("import sys; sys.exit(7)", **given) == (7, "")
    assert starter.run("import os; os.abort()", **given)[0] == -signal.SIGABRT
    status, output = starter.run("missing", **given)
    assert status == 1 and "NameError: name 'missing' is not defined" in output
    assert starter.run("print(5)", **given) == (0, "5\n")


@pytest.mark.slow
def test_a_child_that_exceeds_its_time_is_ended_and_others_follow(starter, tmp_path):
    given = {"environment": dict(os.environ), "folder": tmp_path}
    assert starter.run("print(4)", **given) == (0, "4\n")

    def stop(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError):
            starter.run("import time; time.sleep(1000)", **given)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert starter.process is None
    assert starter.run("print(5)", **given) == (0, "5\n")

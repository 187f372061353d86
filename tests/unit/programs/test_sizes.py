"""`at`: functions traced at listed sizes; the shapes of a call choose one; files keep all."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.cli.main import main
from gputensor.errors import ProgramError, ProgramFileError, TraceError
from gputensor.programs import file
from gputensor.programs.function_json import from_json, to_json
from gputensor.programs.verify import verify_program

N = gt.Dim("n", 1, 64)
M = gt.Dim("m", 2, 64, multiple=2)


def folded(x):
    """Add halves until one row is left, so the number of calls depends on the size."""
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        x = x[:half] + x[half : 2 * half]
    return x[0]


def made(**options):
    return gt.compile(folded, gt.spec((N, M)), target="host", **options)


def floats(rng, *shape):
    return gt.asarray(rng.standard_normal(shape).astype(np.float32), device="host")


@pytest.fixture
def rng():
    return np.random.default_rng()


def test_a_function_is_traced_at_each_listed_size(rng):
    with pytest.raises(TraceError):
        made()
    program = made(at={"n": [4, 7, 32]})
    assert [len(function.calls) for function in program.data.functions.values()] == [2, 2, 5]
    for n in (32, 4, 7, 4):
        x = floats(rng, n, 2 * n)
        np.testing.assert_array_equal(program(x).numpy(), folded(x).numpy())
    sizes = program.report()["folded"]["sizes"]
    assert [(one["n"], one["m"]) for one in sizes] == [(32, 64), (4, 8), (7, 14)]
    assert str(program).count("func @folded(x: f32[") == 3 and "  at(n 7)" in str(program)


def test_sizes_of_several_dims_are_combined(rng):
    program = made(at={"n": [4, 2], "m": [2, 6]})
    assert list(program.data.functions) == [
        "folded@n=4,m=2", "folded@n=4,m=6", "folded@n=2,m=2", "folded@n=2,m=6",
    ]  # fmt: skip
    for n, m in [(2, 6), (4, 2), (4, 6), (2, 2)]:
        x = floats(rng, n, m)
        np.testing.assert_array_equal(program(x).numpy(), folded(x).numpy())
    with pytest.raises(ValueError, match=r"^x.shape\[1\]: got 4; expected m, one of 2, 6$"):
        program(floats(rng, 4, 4))


def test_other_sizes_are_refused_in_one_line(rng):
    program = made(at={"n": (4, 7)})
    for shape, message in [
        ((5, 2), r"x.shape\[0\]: got 5; expected n, one of 4, 7"),
        ((4, 3), r"x.shape\[1\]: got 3; expected m, 2 to 64, a multiple of 2"),
        ((4,), r"x.shape: got \(4,\); expected 2 dimensions"),
    ]:
        with pytest.raises(ValueError, match=f"^{message}$"):
            program(floats(rng, *shape))


def test_functions_of_a_program_share_states_and_weights_at_all_sizes(rng):
    def fill(x, *, weights, state):
        state["sum"] += gt.sum(folded(x) * weights["w"])

    def read(*, state):
        return gt.copy(state["sum"])

    program = gt.compile(
        {"fill": (fill, gt.spec((N, 2))), "read": read},
        weights={"w": gt.asarray([1.0, 10.0], device="host")},
        state={"sum": gt.spec(())},
        at={"n": [1, 2]},
        target="host",
    )
    with program.session() as session:
        session.fill(gt.ones((1, 2), device="host"))
        session.fill(gt.ones((2, 2), device="host"))
        assert session.read().item() == 33
    assert list(program.functions) == ["fill", "read"] and program.only_name is None


def test_the_file_holds_all_sizes(rng, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = made(at={"n": [4, 7]})
    program.save("folded.gtp")
    x = floats(rng, 7, 4)
    with gt.load_program("folded.gtp", "host") as loaded:
        np.testing.assert_array_equal(loaded(x).numpy(), program(x).numpy())
        assert str(loaded) == str(program)
    words = ("run", "--module=folded.gtp", "--device=host")
    assert main([*words, "--input=7x2xf32=1"]) == 0
    assert "result[0]: 2xf32=4 4" in capsys.readouterr().out
    assert main([*words, "--input=5x2xf32=1"]) != 0
    assert "expected ?x?xf32, where ? is 4 or 7, 2 to 64 in steps of 2" in capsys.readouterr().err
    assert main(["inspect", "folded.gtp", "--function=folded"]) == 0
    output = capsys.readouterr().out
    assert "at(n 4)" in output and "@folded(n=7, m=64): arena" in output


def test_mistakes_in_at_are_named():
    cases = [
        ({"k": [1]}, ValueError, "at: got sizes of 'k'; expected names of dims of the specs"),
        ({"n": 4}, TypeError, r"at\['n'\]: got int; expected a list of sizes"),
        ({"n": []}, TypeError, r"at\['n'\]: got list; expected a list of sizes"),
        ({"n": [4, 65]}, ValueError, r"at\['n'\]: got 65; expected n, 1 to 64"),
        ({"m": [3]}, ValueError, r"at\['m'\]: got 3; expected m, 2 to 64, a multiple of 2"),
        ({"n": [4, 4]}, ValueError, r"at\['n'\]: got \[4, 4\]; expected each size once"),
        ([4], TypeError, r"at: got list; expected a dict \{name of a dim: sizes\}"),
        ({"n": list(range(1, 65)), "m": list(range(2, 65, 2))}, ValueError, "2048 combinations"),
    ]
    for at, kind, message in cases:
        with pytest.raises(kind, match=message):
            made(at=at)


def test_results_have_one_structure_at_all_sizes():
    def pairs(x):
        return x + 1 if x.shape[0] < 3 else (x + 1, x)

    with pytest.raises(ProgramError, match=r"functions.pairs@n=4.outputs: got different"):
        gt.compile(pairs, gt.spec((N,)), at={"n": [2, 4]}, target="host")


def test_sizes_in_a_file_are_checked():
    plain = to_json(made(at={"n": [4, 7]}).data)
    verify_program(from_json(plain))
    functions = plain["functions"]
    first, second = functions.values()
    for at in ({"n": 5}, {"m": 7}, {}, {"n": 7, "m": 2}):
        wrong = {**functions, "folded@n=7": {**second, "at": at}}
        with pytest.raises(ProgramError, match="functions.folded@n=7"):
            verify_program(from_json({**plain, "functions": wrong}))
    for at in ({"n": 0}, {"n": "4"}, {"n": 1 << 70}, [4]):
        wrong = {"folded@n=4": {**first, "at": at}}
        with pytest.raises(ProgramFileError, match=r"functions.folded@n=4.at"):
            from_json({**plain, "functions": wrong})
    renamed = {**second, "inputs": [{**second["inputs"][0], "path": "y"}]}
    with pytest.raises(ProgramError, match="functions.folded@n=7.inputs"):
        verify_program(from_json({**plain, "functions": {**functions, "folded@n=7": renamed}}))
    assert file.VERSION == "1.0"

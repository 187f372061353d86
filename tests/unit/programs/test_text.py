"""The text that `print` shows for a function."""

from gputensor.programs import text
from tests.support.programs.example_function import example_program

EXPECTED = """\
func @decode(x: f32[n,4])  state(cache: f32[256,4])  -> f32[n,4]  dims(n 1..64)
  %3 = product %x %w[4,4]/[1,4] : f32[n,4] model.py:7
  %4 = elementwise %3 into %cache[n,4]+256 op=copy compute=float32 stream=1 : cache model.py:8
  %5 = fori_loop %3 lower=0 upper=n : f32[n,4] model.py:9
    region @body(index: i64[], carry: f32[n,4])
      %2 = elementwise %carry 0.5 op=mul compute=float32 : f32[n,4] model.py:9
      return %2
  return %5"""


def test_a_program_prints_as_one_line_for_each_call():
    shown = text.program_text(example_program())
    lines = [line.split() for line in shown.splitlines()]
    assert lines == [line.split() for line in EXPECTED.splitlines()], shown
    columns = {line.index(" : ") for line in shown.splitlines()[1:] if " : " in line}
    assert len(columns) == 1


def test_formulas_print_as_python_does():
    a, b, one = ("load", 0), ("load", 1), ("number", 1.0)
    rms = ("mul", ("mul", a, ("rsqrt", ("add", ("fold", "mean", ("square", a)), one))), b)
    trees = (rms, ("div", ("sub", a, ("sub", b, one)), ("mul", a, b)), ("round", "float16", a))
    function = example_program().functions["decode"]
    function.calls = function.calls[:1]
    function.calls[0].name = "formula"
    function.calls[0].attributes = {"trees": trees, "row_ndim": 1}
    shown = text.function_text(function).splitlines()[1]
    expected = "{ a * rsqrt(mean(square(a)) + 1.0) * b, (a - (b - 1.0)) / (a * b), float16(a) }"
    assert f"formula {expected} %x" in shown


def test_dtypes_are_short():
    names = ["bool", "int8", "uint16", "bfloat16", "float16", "float64", "complex64"]
    shown = [text.dtype_text(name) for name in names + ["float8_e4m3", "float8_e5m2"]]
    assert shown == "i1 i8 ui16 bf16 f16 f64 cf64 f8E4M3FN f8E5M2".split()


def test_long_lists_of_arguments_are_cut():
    function = example_program().functions["decode"]
    function.inputs = function.inputs * 40
    first = text.function_text(function).splitlines()[0]
    assert first.count("x: f32[n,4]") == 12 and "…" in first


def test_a_broken_function_prints_too():
    function = example_program().functions["decode"]
    function.values = function.values[:2]
    assert "%5? = fori_loop %3?" in text.function_text(function)

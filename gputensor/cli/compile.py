"""``gputensor compile``: makes a program file of a model, or of a Python function."""

import importlib
import os
import re
import sys
import zipfile
from functools import partial

import numpy as np

from gputensor.atomic_file import write_whole
from gputensor.cli.input_error import InputError
from gputensor.cli.value_text import TYPES, described
from gputensor.errors import Described, ModelError, ProgramFileError, TraceError, argument_error

__all__ = ["register"]

KINDS = ("auto", "onnx", "torch", "python", "program")
ENDINGS = {".onnx": "onnx", ".pt2": "torch", ".gtp": "program"}
PRECISION = (
    "allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation",
    "allow_bf16_reduced_precision_reduction", "deterministic",
)  # fmt: skip
FLOATS = ("f16", "bf16", "f32", "f64")
#: As programs/phases.py has them.
PHASES = ("trace", "clean", "fused", "planned", "bound")


def register(subparsers):
    """Add ``compile`` to the command line."""
    parser = subparsers.add_parser(
        "compile",
        help="make a program of a model",
        description="Makes a program of an ONNX file, of a torch.export file, of a Python function "
        "(package.module:function), or of another program.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="FILE.onnx, .pt2, .gtp, or module:function"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the .gtp file")
    parser.add_argument("--input_type", choices=KINDS, default="auto")
    parser.add_argument("--function", metavar="NAME", help="what the program calls it")
    parser.add_argument(
        "--target",
        metavar="LIST",
        help="GPUs that get kernels and launches, as h200,a100+ptx; native: the one at hand; host: "
        "traced for the host device. Without it kernels are made where the program runs",
    )
    parser.add_argument("--list_targets", action="store_true", help="names of GPUs")
    parser.add_argument("--dtype", choices=FLOATS, help="in the place of float32")
    repeats = {"action": "append", "default": [], "metavar": "NAME=VALUE"}
    parser.add_argument("--dim", **repeats, help="MIN:MAX, MIN:MAX:MULTIPLE, or a number")
    parser.add_argument("--at", **repeats, help="the only sizes of a dim, for example 16,64")
    parser.add_argument("--input_shape", **repeats, help="for example x=1x3x224x224, x=nx784xf16")
    parser.add_argument("--precision", default="", metavar="FLAGS", help=", ".join(PRECISION))
    parser.add_argument("--deterministic", action="store_true", help="products that repeat exactly")
    parser.add_argument(
        "--weights", default="inside", metavar="WHERE", help="inside, apart, a path"
    )
    scheme = {"action": "append", "default": [], "metavar": "PATTERN=SCHEME"}
    parser.add_argument("--quantize", **scheme, help="matrices of weights, as layers.*=int4:128")
    parser.add_argument("--calibrate", metavar="FILE.npz", help="inputs to find the errors with")
    parser.add_argument("--report", metavar="FILE", help="write what quantizing did, as JSON")
    text = "once: calls may become one, as attention does; each: the bits of eager work"
    parser.add_argument("--rounding", choices=("once", "each"), default="once", help=text)
    text = "stop after this phase, and write its text to the file of -o"
    parser.add_argument("--compile_to", choices=PHASES, help=text)
    text = "write the text of each phase into this folder"
    parser.add_argument("--dump_phases_to", metavar="DIR", help=text)
    text = "write sources and device code of all kernels into this folder"
    parser.add_argument("--dump_kernels_to", metavar="DIR", help=text)
    text = "time the ways of each product on the GPU at hand, and keep the quickest (30 seconds)"
    parser.add_argument("--tune", metavar="SECONDS", nargs="?", const="30", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--flagfile", metavar="FILE", help="more options, one a line")
    parser.set_defaults(run=run)


def run(options):
    """Compile, write the file, and say what it holds. Returns the exit code."""
    from gputensor.blas import precision
    from gputensor.cli.compile_results import images_shown, tell
    from gputensor.programs.phases import watching

    if options.list_targets:
        from gputensor.programs.targets import listed

        print("\n".join(listed()))
        return 0
    for name, value in (("MODEL", options.model), ("--output", options.output)):
        if value is None:
            raise argument_error(InputError, name, Described("nothing"), "a file")
    targets = targets_of(options)
    seconds = None if options.tune is None else seconds_of(options.tune)
    maker = MAKERS[kind_of(options)]
    dims = dict(dim_of(text) for text in options.dim)
    shapes = dict(shape_of(text, dims) for text in options.input_shape)
    weights = weights_of(options)
    with precision(**flags_of(options)):
        try:
            with watching(partial(watch, options)), images_shown(options):
                program = maker(options, dims, shapes)
                if targets and program.data.ahead is None:
                    program = for_targets(program, targets)
                tuned = [] if seconds is None else tune_products(program, seconds)
        except Stopped:
            return 0
        except (TraceError, ModelError, ProgramFileError, TypeError, ValueError) as error:
            raise InputError(error) from None
    if options.compile_to is not None:
        rule = "--target beside bound, and no --rounding=each beside fused"
        raise argument_error(InputError, "--compile_to", options.compile_to, rule)
    with program:
        if options.dump_kernels_to is not None:
            dump_kernels(program.data.ahead, options.dump_kernels_to)
        program.save(options.output, weights=weights)
        tell(program, options, tuned)
    return 0


class Stopped(Exception):
    """The phase that --compile_to names was reached."""


def watch(options, phase, data):
    """Write what a phase leaves, where options ask for it."""
    from gputensor.programs.phases import phase_text

    if options.dump_phases_to is None and options.compile_to != phase:
        return
    text = f"{phase_text(phase, data)}\n".encode()
    if options.dump_phases_to is not None:
        os.makedirs(options.dump_phases_to, exist_ok=True)
        name = f"{PHASES.index(phase)}-{phase}.txt"
        write_whole(os.path.join(options.dump_phases_to, name), lambda file: file.write(text))
    if options.compile_to == phase:
        write_whole(options.output, lambda file: file.write(text))
        print(f"{options.output}: {phase}")
        raise Stopped


def dump_kernels(ahead, folder):
    """Write the sources and images of kernels, each under its number and entry."""
    if ahead is None:
        got = Described("a program whose kernels are made where it runs")
        raise argument_error(InputError, "--dump_kernels_to", got, "--target beside it")
    os.makedirs(folder, exist_ok=True)
    for number, kernel in enumerate(ahead.kernels.all):
        name = os.path.join(folder, f"{number}.{kernel.entry}")
        files = {f"{name}.cu": kernel.program.text().encode()} if kernel.program else {}
        for target, image in kernel.images.items():
            files[f"{name}.{target}.{'cubin' if target[0] == 's' else 'ptx'}"] = image.data()
        for path, content in files.items():
            write_whole(path, lambda file, content=content: file.write(content))


def kind_of(options):
    """What the model is, by its name unless the options say so."""
    if options.input_type != "auto":
        return options.input_type
    kind = ENDINGS.get(os.path.splitext(options.model)[1].lower())
    if kind is None and re.fullmatch(r"[\w.]+:\w+", options.model):
        kind = "python"
    if kind is None:
        rule = "FILE.onnx, FILE.pt2, FILE.gtp or package.module:function (or --input_type)"
        raise argument_error(InputError, "MODEL", described(options.model), rule)
    return kind


def named(option, text):
    """The two parts of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argument_error(InputError, option, described(text), "NAME=VALUE")
    return name, value


def dim_of(text):
    """(name, int or Dim) of a --dim."""
    from gputensor.programs.dims import Dim

    name, value = named("--dim", text)
    numbers = value.split(":")
    if not all(re.fullmatch(r"[0-9]{1,12}", one) for one in numbers) or len(numbers) > 3:
        rule = "NAME=MIN:MAX, NAME=MIN:MAX:MULTIPLE or NAME=NUMBER"
        raise argument_error(InputError, "--dim", described(text), rule)
    low, *rest = map(int, numbers)
    if not rest:
        return name, low
    try:
        return name, Dim(re.sub(r"\W", "_", name), low, rest[0], *rest[1:])
    except (TypeError, ValueError) as error:
        raise InputError(f"--dim: {error}") from None


def sizes_of(texts):
    """The sizes of each --at by names of dims."""
    found = {}
    for text in texts:
        name, value = named("--at", text)
        if not re.fullmatch(r"[0-9]{1,12}(,[0-9]{1,12})*", value):
            raise argument_error(InputError, "--at", described(text), "NAME=SIZE,SIZE")
        found[name] = [int(size) for size in value.split(",")]
    return found or None


def shape_of(text, dims):
    """(name, (shape, dtype or None)) of an --input_shape."""
    name, value = named("--input_shape", text)
    words, dtype = value.split("x"), None
    if words[-1] in TYPES:
        dtype = TYPES[words.pop()]
    shape = []
    for word in words:
        if re.fullmatch(r"[0-9]{1,12}", word):
            shape.append(int(word))
        elif word in dims:
            shape.append(dims[word])
        else:
            rule = "extents with x between them: numbers, or names that --dim has"
            raise argument_error(InputError, "--input_shape", described(text), rule)
    return name, (tuple(shape), dtype)


def flags_of(options):
    """The arguments of `gt.blas.precision`."""
    names = [name for name in options.precision.split(",") if name]
    if options.deterministic:
        names.append("deterministic")
    for name in names:
        if name not in PRECISION:
            rule = f"names from {', '.join(PRECISION)}, with commas between them"
            raise argument_error(InputError, "--precision", described(name), rule)
    return dict.fromkeys(names, True)


def weights_of(options):
    """The file of the weights, or None where they are inside."""
    if options.weights == "inside":
        return None
    if options.weights == "apart":
        return os.path.splitext(os.path.basename(options.output))[0] + ".safetensors"
    return options.weights


def targets_of(options):
    """The GPUs to compile for: Targets, none for a program whose kernels are made elsewhere."""
    from gputensor.programs.targets import parse
    from gputensor.streams.queue import device_number

    if options.target in (None, "host"):
        return []
    try:
        found = parse(options.target, device_number())
    except (TypeError, ValueError) as error:
        raise InputError(f"--{error}") from None
    if device_number() < 0 and "native" in options.target.lower():
        print(f"native: there is no GPU here, so {', '.join(map(str, found))}")
    return found


def where(options):
    """The arguments of `compile` that all kinds of models share."""
    names = options.target if options.target in (None, "host") else [options.target]
    found = {"target": names, "at": sizes_of(options.at)}
    found["rounding"] = options.rounding
    if options.quantize:
        found["quantize"] = dict(named("--quantize", text) for text in options.quantize)
    elif options.calibrate or options.report:
        name = "--calibrate" if options.calibrate else "--report"
        got = Described("an option of quantized programs")
        raise argument_error(InputError, name, got, "--quantize beside it")
    return found


def samples_of(options):
    """The inputs that --calibrate names, by their names; None without it."""
    if options.calibrate is None:
        return None
    try:
        with np.load(options.calibrate, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--calibrate: {error}") from None


def for_targets(program, targets):
    """A program of a file with kernels and launches for GPUs."""
    from gputensor.programs.compile import bind_ahead, check_targets
    from gputensor.programs.phases import reached
    from gputensor.programs.program import Program

    check_targets(program.data, targets)
    reached("planned", program.data)
    bind_ahead(program.data, targets)
    return Program(program.data, opened=False)


def from_onnx(options, dims, shapes):
    """The program of an ONNX file."""
    from gputensor.importers.onnx_model import load_onnx

    for name, (_shape, dtype) in shapes.items():
        if dtype is not None:
            got = Described(f"a type for {name}")
            raise argument_error(InputError, "--input_shape", got, "--dtype, or no type")
    only = {name: shape for name, (shape, _dtype) in shapes.items()}
    dtype = TYPES[options.dtype] if options.dtype else None
    inside = {name: dim for name, dim in dims.items() if not is_used(dim, only)}
    model = load_onnx(options.model, dims=inside, input_shapes=only, dtype=dtype)
    return model.compile(name=options.function, calibrate=samples_of(options), **where(options))


def is_used(dim, shapes):
    """Whether an --input_shape has the dim, which the model's own extents need not have then."""
    return type(dim) is not int and any(
        extent is dim for shape in shapes.values() for extent in shape
    )


def from_torch(options, dims, shapes):
    """The program of a file that torch.export.save wrote."""
    refuse(options, dims, shapes, ("dtype", "dim", "input_shape"))
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        got = Described(f"a file of torch.export, and no torch ({error})")
        raise argument_error(InputError, "MODEL", got, "torch where .pt2 files are read") from None
    from gputensor.importers.torch_export import from_exported

    model = from_exported(torch.export.load(options.model))
    return model.compile(name=options.function, calibrate=samples_of(options), **where(options))


def from_python(options, dims, shapes):
    """The program of a function in a module; the current folder is looked through first."""
    from gputensor.programs.compile import compile
    from gputensor.programs.tracing import spec

    refuse(options, dims, shapes, ("dtype",))
    module, _colon, name = options.model.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        got = Described(f"{options.model} ({error})")
        raise argument_error(InputError, "MODEL", got, "a function of a module") from None
    finally:
        sys.path.remove(os.getcwd())
    specs = {
        parameter: spec(shape, dtype or "float32") for parameter, (shape, dtype) in shapes.items()
    }
    weights = getattr(sys.modules[module], "weights", None)
    name = options.function or function.__name__
    function.__name__ = name
    samples = samples_of(options)
    calibrate = None if samples is None else {name: samples}
    return compile(function, weights=weights, calibrate=calibrate, **where(options), **specs)


def from_program(options, dims, shapes):
    """Another program, written anew."""
    from gputensor.programs.program import load_program

    names = ("dtype", "dim", "input_shape", "function", "at", "quantize", "calibrate", "report")
    refuse(options, dims, shapes, names)
    device = "host" if options.target == "host" else None
    return load_program(options.model, device=device, rebuild=options.target is not None)


def refuse(options, dims, shapes, names):
    """InputError for options that this kind of model has no use for."""
    given = {
        "dtype": options.dtype,
        "dim": dims,
        "input_shape": shapes,
        "function": options.function,
        "at": options.at,
        "quantize": options.quantize,
        "calibrate": options.calibrate,
        "report": options.report,
    }
    for name in names:
        if given[name]:
            got = Described(f"an option that {options.model} has no use for")
            raise argument_error(InputError, f"--{name}", got, "it to be left out")


MAKERS = {
    "onnx": from_onnx,
    "torch": from_torch,
    "python": from_python,
    "program": from_program,
}


def seconds_of(text):
    """The time of --tune."""
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found <= 86400:
        raise argument_error(InputError, "--tune", text, "a number of seconds")
    return found


def tune_products(program, seconds):
    """Time the products of a program on the GPU at hand."""
    from gputensor.device import current_device
    from gputensor.programs.ahead.tune import tune

    return tune(program.data, current_device(), seconds)

"""``gputensor compile``: makes a program file from a model or a Python function."""

import importlib
import logging
import os
import re
import sys
import warnings
import zipfile
from functools import partial

import numpy as np

from gputensor.atomic_file import write_whole
from gputensor.cli.input_error import InputError
from gputensor.cli.python_function import ModelFunction
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
#: The names in programs/phases.py, which is imported only when the command runs.
PHASES = (
    "trace", "clean", "attention", "epilogues", "layouts", "quantized", "split", "formulas",
    "fused", "planned", "bound",
)  # fmt: skip


def register(subparsers):
    """Add ``compile`` to the command line."""
    parser = subparsers.add_parser(
        "compile",
        help="make a program from a model",
        description="Makes a program from an ONNX file, a torch.export file, a Python function "
        "(package.module:function), or another program.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="FILE.onnx, .pt2, .gtp, or module:function"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the .gtp file")
    parser.add_argument("--input_type", choices=KINDS, default="auto")
    parser.add_argument("--function", metavar="NAME", help="the function's name in the program")
    parser.add_argument(
        "--target",
        metavar="LIST",
        help="GPUs to make kernels and launches for, as h200,a100+ptx; native: this machine's GPU; "
        "host: trace for the host device. Without it, kernels are made when the program runs",
    )
    parser.add_argument("--list_targets", action="store_true", help="list the names of GPUs")
    parser.add_argument("--dtype", choices=FLOATS, help="use this dtype in place of float32")
    repeats = {"action": "append", "default": [], "metavar": "NAME=VALUE"}
    parser.add_argument("--dim", **repeats, help="MIN:MAX, MIN:MAX:MULTIPLE, or a number")
    parser.add_argument("--at", **repeats, help="the only sizes of a dim, for example 16,64")
    parser.add_argument("--input_shape", **repeats, help="for example x=1x3x224x224, x=nx784xf16")
    parser.add_argument("--precision", default="", metavar="FLAGS", help=", ".join(PRECISION))
    text = "use products that repeat exactly"
    parser.add_argument("--deterministic", action="store_true", help=text)
    text = "where to store weights: inside, apart, or a path"
    parser.add_argument("--weights", default="inside", metavar="WHERE", help=text)
    scheme = {"action": "append", "default": [], "metavar": "PATTERN=SCHEME"}
    parser.add_argument("--quantize", **scheme, help="matrices of weights, as layers.*=int4:128")
    text = "sample inputs, used to round the matrices well and to measure the errors"
    parser.add_argument("--calibrate", metavar="FILE.npz", help=text)
    text = "write savings and errors of quantizing as JSON"
    parser.add_argument("--report", metavar="FILE", help=text)
    text = "once: calls may be fused into one, such as attention; each: the bits of eager execution"
    parser.add_argument("--rounding", choices=("once", "each"), default="once", help=text)
    text = "stop after this phase and write its text to the file of -o"
    parser.add_argument("--compile_to", choices=PHASES, help=text)
    text = "write the text of each phase into this folder"
    parser.add_argument("--dump_phases_to", metavar="DIR", help=text)
    text = "write sources and device code of all kernels into this folder"
    parser.add_argument("--dump_kernels_to", metavar="DIR", help=text)
    text = "time the algorithms of each product on this machine's GPU, for 30 seconds by default, "
    text += "and keep the fastest"
    parser.add_argument("--tune", metavar="SECONDS", nargs="?", const="30", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--flagfile", metavar="FILE", help="read more options, one per line")
    parser.set_defaults(run=run)


def run(options):
    """Compile, write the file, and describe it. Returns the exit code."""
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
    is_place = os.path.isdir(os.path.dirname(options.output) or ".")
    if not is_place or os.path.isdir(options.output):
        rule = "a file in a folder that exists"
        raise argument_error(InputError, "--output", described(options.output), rule)
    if options.function is not None and not options.function.isidentifier():
        raise argument_error(InputError, "--function", described(options.function), "an identifier")
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
        rule = "a phase that is reached: quantized needs --quantize, bound needs --target, passes "
        rule += "that change rounding need --rounding=once"
        if maker is from_program:
            rule = "planned or bound, with --target: a program file has the other phases behind it"
        raise argument_error(InputError, "--compile_to", options.compile_to, rule)
    with program:
        if options.dump_kernels_to is not None:
            dump_kernels(program.data.ahead, options.dump_kernels_to)
        try:
            program.save(options.output, weights=weights)
        except ValueError as error:
            raise InputError(f"--{error}") from None
        tell(program, options, tuned)
    return 0


class Stopped(Exception):
    """The phase that --compile_to names was reached."""


def watch(options, phase, data):
    """Write the program after a phase, if the options request it."""
    from gputensor.programs.phases import phase_text

    if options.dump_phases_to is None and options.compile_to != phase:
        return
    text = f"{phase_text(phase, data)}\n".encode()
    if options.dump_phases_to is not None:
        os.makedirs(options.dump_phases_to, exist_ok=True)
        name = f"{PHASES.index(phase):02}-{phase}.txt"
        write_whole(os.path.join(options.dump_phases_to, name), lambda file: file.write(text))
    if options.compile_to == phase:
        write_whole(options.output, lambda file: file.write(text))
        print(f"{options.output}: {phase}")
        raise Stopped


def dump_kernels(ahead, folder):
    """Write the sources and images of kernels to files named by number and entry point."""
    if ahead is None:
        got = Described("a program whose kernels are made when it runs")
        raise argument_error(InputError, "--dump_kernels_to", got, "--target as well")
    os.makedirs(folder, exist_ok=True)
    for number, kernel in enumerate(ahead.kernels.all):
        name = os.path.join(folder, f"{number}.{kernel.entry}")
        files = {f"{name}.cu": kernel.program.text().encode()} if kernel.program else {}
        for target, image in kernel.images.items():
            files[f"{name}.{target}.{'cubin' if target[0] == 's' else 'ptx'}"] = image.data()
        for path, content in files.items():
            write_whole(path, lambda file, content=content: file.write(content))


def kind_of(options):
    """Return the kind of the model: that of --input_type, or the one its name implies."""
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
    """Return the two parts of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argument_error(InputError, option, described(text), "NAME=VALUE")
    return name, value


def dim_of(text):
    """Return (name, int or Dim) for a --dim."""
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
    """Return the sizes of each --at by the name of its dim."""
    found = {}
    for text in texts:
        name, value = named("--at", text)
        if not re.fullmatch(r"[0-9]{1,12}(,[0-9]{1,12})*", value):
            raise argument_error(InputError, "--at", described(text), "NAME=SIZE,SIZE")
        found[name] = [int(size) for size in value.split(",")]
    return found or None


def shape_of(text, dims):
    """Return (name, (shape, dtype or None)) for an --input_shape."""
    name, value = named("--input_shape", text)
    # A name may contain an x, too; longer names are tried first.
    names = "|".join(["[0-9]{1,12}", *map(re.escape, sorted(dims, key=len, reverse=True))])
    found = re.fullmatch(rf"((?:(?:{names})x)*)(?:({'|'.join(TYPES)})|({names}))", value)
    if found is None:
        rule = "extents separated by x: numbers, or names given by --dim"
        raise argument_error(InputError, "--input_shape", described(text), rule)
    front, dtype, last = found.groups()
    words = re.findall(rf"({names})x", front) + ([last] if last is not None else [])
    shape = tuple(dims[word] if word in dims else int(word) for word in words)
    return name, (shape, TYPES.get(dtype))


def flags_of(options):
    """Return the arguments of `gt.blas.precision`."""
    names = [name for name in options.precision.split(",") if name]
    if options.deterministic:
        names.append("deterministic")
    for name in names:
        if name not in PRECISION:
            rule = f"names from {', '.join(PRECISION)}, separated by commas"
            raise argument_error(InputError, "--precision", described(name), rule)
    return dict.fromkeys(names, True)


def weights_of(options):
    """Return the file of the weights, or None if they are stored inside the program."""
    if options.weights == "inside":
        return None
    if options.weights == "apart":
        return os.path.splitext(os.path.basename(options.output))[0] + ".safetensors"
    return options.weights


def targets_of(options):
    """Return the Targets to compile for; an empty list if kernels are made when it runs."""
    from gputensor.programs.targets import parse
    from gputensor.streams.queue import device_number

    if options.target in (None, "host"):
        return []
    try:
        found = parse(options.target, device_number())
    except (TypeError, ValueError) as error:
        raise InputError(f"--{error}") from None
    if device_number() < 0 and "native" in options.target.lower():
        shown = ", ".join(map(str, found))
        print(f"native: there is no GPU here; compiling for {shown}", file=sys.stderr)
    return found


def where(options):
    """Return the arguments of `compile` that all kinds of models share."""
    names = options.target if options.target in (None, "host") else [options.target]
    found = {"target": names, "at": sizes_of(options.at)}
    found["rounding"] = options.rounding
    if options.quantize:
        found["quantize"] = dict(named("--quantize", text) for text in options.quantize)
    elif options.calibrate or options.report:
        name = "--calibrate" if options.calibrate else "--report"
        got = Described("an option of quantized programs")
        raise argument_error(InputError, name, got, "--quantize as well")
    return found


def samples_of(options):
    """Return the inputs in the file of --calibrate by name, or None without the option."""
    if options.calibrate is None:
        return None
    try:
        with np.load(options.calibrate, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"--calibrate: {error}") from None


def for_targets(program, targets):
    """Return the program of a file with kernels and launches for GPUs."""
    from gputensor.programs.compile import bind_ahead, check_targets
    from gputensor.programs.phases import reached
    from gputensor.programs.program import Program

    check_targets(program.data, targets)
    reached("planned", program.data)
    bind_ahead(program.data, targets)
    return Program(program.data, opened=False)


def from_onnx(options, dims, shapes):
    """Return the program of an ONNX file."""
    from gputensor.importers.onnx_model import load_onnx

    for name, (_shape, dtype) in shapes.items():
        if dtype is not None:
            got = Described(f"a type for {name}")
            rule = "no type (--dtype changes that of the model)"
            raise argument_error(InputError, "--input_shape", got, rule)
    only = {name: shape for name, (shape, _dtype) in shapes.items()}
    dtype = TYPES[options.dtype] if options.dtype else None
    inside = {name: dim for name, dim in dims.items() if not is_used(dim, only)}
    model = load_onnx(options.model, dims=inside, input_shapes=only, dtype=dtype)
    return model.compile(name=options.function, calibrate=samples_of(options), **where(options))


def is_used(dim, shapes):
    """Whether an --input_shape uses the dim; the model's own extents need not use it then."""
    return type(dim) is not int and any(
        extent is dim for shape in shapes.values() for extent in shape
    )


def from_torch(options, dims, shapes):
    """Return the program of a file that torch.export.save wrote."""
    refuse(options, dims, shapes, ("dtype", "input_shape"))
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        got = Described(f"a torch.export file without torch ({error})")
        raise argument_error(InputError, "MODEL", got, "torch to be installed") from None
    from gputensor.importers.torch_export import from_exported

    model = from_exported(load_exported(torch, options.model), dims=dims)
    return model.compile(name=options.function, calibrate=samples_of(options), **where(options))


#: The modules that define operators of these libraries for torch.
OPERATORS = {"torchvision": "torchvision", "transformers": "transformers.integrations.moe"}


def load_exported(torch, path, is_second=False):
    """Return the program in a file of torch.export.save; torch logs why it cannot read one."""
    records, logger = [], logging.getLogger("torch.export")
    handler, kept = logging.Handler(), (logger.handlers, logger.propagate)
    handler.emit = records.append  # type: ignore[method-assign]
    logger.handlers, logger.propagate = [handler], False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.load(path)
    except OSError as error:
        got = Described(f"{error.strerror or error}")
        raise argument_error(InputError, path, got, "a file of torch.export.save") from None
    except Exception as error:
        causes = [one.exc_info[1] for one in records if one.exc_info] or [error]
    finally:
        logger.handlers, logger.propagate = kept
    lacking = re.search(r"failed to resolve torch\.ops\.((\w+)\.[\w.]+)", str(causes[-1]))
    if lacking is None:
        got = Described(re.split(r"\.\s|\n", str(causes[-1]))[0])
        raise argument_error(InputError, path, got, "a file of torch.export.save")
    try:
        if is_second:
            raise ImportError
        importlib.import_module(OPERATORS.get(lacking[2], ""))
    except (ImportError, ValueError):
        got = Described(f"{lacking[1]}, an operator that torch does not know")
        rule = f"{lacking[2]}, which defines it, to be installed"
        raise argument_error(InputError, path, got, rule) from None
    return load_exported(torch, path, True)


def from_python(options, dims, shapes):
    """Return the program of a function in a module."""
    from gputensor.programs.compile import compile
    from gputensor.programs.tracing import spec

    refuse(options, dims, shapes, ("dtype",))
    model = ModelFunction(options.model, options.function)
    model.check_shapes(shapes)
    specs = {
        parameter: spec(shape, dtype or "float32") for parameter, (shape, dtype) in shapes.items()
    }
    samples = samples_of(options)
    calibrate = None if samples is None else {model.name: samples}
    given = {"weights": model.weights, "calibrate": calibrate, **where(options), **specs}
    with model.user_code():
        return compile(model.function, **given)


def from_program(options, dims, shapes):
    """Return the program of another program file."""
    from gputensor.programs.program import load_program

    names = ("dtype", "dim", "input_shape", "function", "at", "quantize", "calibrate", "report")
    refuse(options, dims, shapes, names)
    device = "host" if options.target == "host" else None
    return load_program(options.model, device=device, rebuild=options.target is not None)


def refuse(options, dims, shapes, names):
    """Raise InputError for options that do not apply to this kind of model."""
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
            got = Described(f"an option that does not apply to {options.model}")
            raise argument_error(InputError, f"--{name}", got, "no such option")


MAKERS = {
    "onnx": from_onnx,
    "torch": from_torch,
    "python": from_python,
    "program": from_program,
}


def seconds_of(text):
    """Return the time limit of --tune."""
    from gputensor.streams.queue import device_number

    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found <= 86400:
        raise argument_error(InputError, "--tune", text, "seconds, above 0 and at most 86400")
    if device_number() < 0:
        raise argument_error(InputError, "--tune", Described("a host device"), "a GPU")
    return found


def tune_products(program, seconds):
    """Time the products of a program on the current device."""
    from gputensor.device import current_device
    from gputensor.programs.ahead.tune import tune

    return tune(program.data, current_device(), seconds)

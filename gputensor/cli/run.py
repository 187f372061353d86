"""``gputensor run``: runs a function of a program on values from the command line.

The options and the grammar of values (value_text.py) are those of IREE's ``iree-run-module``.
Results are printed unless --output or --expected_output is given. The exit code is 1 if a result is
not the expected one.
"""

import json
import re
import sys

import numpy as np

from gputensor._arrays.element_types import dtype_name
from gputensor.cli.input_error import InputError
from gputensor.cli.value_text import Reader, Writer, described, text_of, type_of
from gputensor.errors import Described, DeviceError, ProgramFileError, argument_error

__all__ = ["register"]

DRIVERS = ("cuda", "host")
IGNORED = "(ignored)"
#: Absolute tolerance of results, in addition to the relative tolerance.
THRESHOLDS = {"f16": 1e-3, "bf16": 1e-2, "f32": 1e-4, "f64": 1e-4}
THRESHOLD_OF = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "f32",
    "complex128": "f64",
}


def register(subparsers):
    """Add ``run`` to the command line."""
    parser = subparsers.add_parser(
        "run",
        help="run a function of a program",
        description="Runs a function of a program. Values: 3.5, 2x2xi32=1 2 3 4, 8x3xf32=0, "
        "@array.npy, 2x2xi32=@raw.bin, @list.txt (one value per line).",
        allow_abbrev=False,
    )
    parser.add_argument("--module", metavar="FILE", help="the program, a .gtp file")
    parser.add_argument("--function", metavar="NAME", help="optional if there is only one")
    parser.add_argument("--device", metavar="URI", help="cuda, cuda://1, cuda://GPU-UUID or host")
    parser.add_argument("--weights", metavar="FILE", help="weights that are not in the program")
    repeats = {"action": "append", "default": [], "metavar": "VALUE"}
    parser.add_argument("--verify", action="store_true", help="compare weights with their hashes")
    parser.add_argument("--input", **repeats, help="an argument; repeat it for each, in order")
    parser.add_argument(
        "--output",
        **repeats,
        help="for each result: - (print), @FILE.npy, @FILE.bin, + in place of @ to append, or "
        "empty (drop)",
    )
    parser.add_argument(
        "--expected_output", **repeats, help=f"the expected value of each result, or {IGNORED}"
    )
    parser.add_argument("--equality_mode", choices=("approximate", "exact"), default="approximate")
    parser.add_argument("--expected_rtol", type=float, default=1e-5, metavar="NUMBER")
    for name, value in THRESHOLDS.items():
        option = f"--expected_{name}_threshold"
        parser.add_argument(option, type=float, default=value, metavar="NUMBER")
    parser.add_argument(
        "--output_max_element_count",
        type=int,
        default=1024,
        metavar="N",
        help="elements to print of each result (default: 1024)",
    )
    text = "print memory statistics at the end"
    parser.add_argument("--print_statistics", action="store_true", help=text)
    text = "ignore the kernels of the file and compile them again"
    parser.add_argument("--rebuild", action="store_true", help=text)
    text = "run call by call; stop at the first that fails or makes a NaN, and show its source line"
    parser.add_argument("--check", action="store_true", help=text)
    parser.add_argument("--list_drivers", action="store_true", help="list cuda and host")
    text = "list the devices of this machine, or those of one driver"
    parser.add_argument("--list_devices", nargs="?", const="", metavar="DRIVER", help=text)
    text = "print all facts about the devices"
    parser.add_argument("--dump_devices", action="store_true", help=text)
    parser.add_argument("--flagfile", metavar="FILE", help="read more options, one per line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options):
    """Run the function, or list drivers or devices. Returns the exit code."""
    if options.list_drivers or options.list_devices is not None or options.dump_devices:
        return list_devices(options)
    if options.module is None:
        raise argument_error(InputError, "--module", None, "a .gtp file")
    for text in options.output:
        Writer(0).check(text)
    program = opened(options, options.rebuild)
    with program:
        return run_program(program, options)


def opened(options, rebuild=False):
    """Return the program of --module on the device of --device."""
    from gputensor.programs.program import load_program

    device = device_named(options.device)
    try:
        return load_program(
            options.module, device, options.weights, verify=options.verify, rebuild=rebuild
        )
    except (ProgramFileError, ValueError) as error:
        raise InputError(error) from None


def device_named(text):
    """Return the Device argument for a URI; None stands for the current device."""
    from gputensor._driver.registry import cuda_device_count, device_info

    if text is None:
        return None
    rule = "cuda, cuda://NUMBER, cuda://GPU-UUID or host"
    match = re.fullmatch(r"(cuda|host)(?::(?://)?([-\w]*))?", text)
    if match is None or (match[1] == "host" and match[2]):
        raise argument_error(InputError, "--device", described(text), rule)
    if match[1] == "host":
        return "host"
    which, count = (match[2] or "0").lower().removeprefix("gpu-"), cuda_device_count()
    for number in range(count):
        if which in (str(number), device_info(number)["uuid"].lower().removeprefix("gpu-")):
            return f"cuda:{number}"
    raise DeviceError(f"there is no CUDA device {match[2] or 0}: {count} are visible")


def run_program(program, options):
    """Call the function; write, compare or print its results. Returns the exit code."""
    name = function_named(program.functions, options.function)
    arguments = arguments_of(program, name, options.input)
    with program.session(check=options.check) as session:
        try:
            result = session.call(name, (), arguments)
        except (TypeError, ValueError) as error:
            raise InputError(f"--input: {error}") from None
        arrays = arrays_of(result)
    expected = expected_arrays(options.expected_output, arrays)
    if options.output and len(options.output) != len(arrays):
        got = Described(f"{len(options.output)} outputs")
        raise argument_error(InputError, "--output", got, f"{len(arrays)}, one for each result")
    faults = []
    for index, want in enumerate(expected):
        if want is not None:
            faults += differences(index, arrays[index], want, options)
    if options.json:
        tell_json(name, arrays, faults, options)
    else:
        tell(name, arrays, faults, options)
    if options.print_statistics:
        print_statistics(program)
    return 1 if faults else 0


def function_named(functions, name):
    """Return the name of the function to run."""
    if name is None and len(functions) == 1:
        return next(iter(functions))
    if name not in functions:
        raise argument_error(
            InputError, "--function", described(name), f"one of {', '.join(functions)}"
        )
    return name


def arguments_of(program, name, given):
    """Return the arguments of a function by parameter name."""
    from gputensor.programs import tree
    from gputensor.tensor.interop import asarray

    function, reader = program.functions[name], Reader("--input")
    texts = reader.texts(given)
    types = input_types(program.variants[name])
    if len(texts) != len(types):
        pairs = zip(function.inputs, types, strict=True)
        wanted = ", ".join(f"{one.path}: {type_of(*kind)}" for one, kind in pairs)
        got = Described(f"{len(texts)} values")
        raise argument_error(InputError, "--input", got, f"{len(function.inputs)} ({wanted})")
    tensors = []
    for text, kind in zip(texts, types, strict=True):
        tensors.append(asarray(reader.value(text, *kind), device=program.device))
    if function.tree is None:
        return dict(zip((one.path for one in function.inputs), tensors, strict=True))
    return tree.unflatten(function.tree, tensors)


def extents(function, shape):
    """Return a shape with a range in place of each extent that is not fixed."""
    found = []
    for extent in shape:
        if type(extent) is tuple:
            is_dim = extent[0] == "dim"
            dim = function.dims[extent[1]] if is_dim else None
            extent = range(dim.low, dim.high + 1, dim.multiple) if is_dim else range(1 << 62)
        found.append(extent)
    return tuple(found)


def input_types(functions):
    """Return (dtype, shape) for each input; extents that differ between variants are tuples."""
    first, found = functions[0], []
    for number, argument in enumerate(first.inputs):
        shapes = [extents(one, one.inputs[number].operand.shape) for one in functions]
        merged = [
            sizes[0] if len(set(sizes)) == 1 else tuple(sorted(set(sizes)))
            for sizes in zip(*shapes, strict=True)
        ]
        found.append((argument.operand.dtype, tuple(merged)))
    return found


def arrays_of(result):
    """Return the tensors of a result as NumPy arrays, in the order of the tree."""
    from gputensor.programs import tree
    from gputensor.tensor.core import Tensor

    leaves, _structure = tree.flatten(result, lambda part: isinstance(part, Tensor))
    return [tensor.numpy() for _path, tensor in leaves]


def expected_arrays(given, arrays):
    """Return the expected array of each result, or None for a result that is ignored."""
    reader = Reader("--expected_output")
    texts = reader.texts(given)
    if not texts:
        return [None] * len(arrays)
    if len(texts) != len(arrays):
        got = Described(f"{len(texts)} values")
        rule = f"{len(arrays)}, one for each result"
        raise argument_error(InputError, "--expected_output", got, rule)
    return [
        None if text == IGNORED else reader.value(text, dtype_name(array.dtype), array.shape)
        for text, array in zip(texts, arrays, strict=True)
    ]


def differences(index, found, wanted, options):
    """Return a list with one line if a result is not as expected, otherwise an empty list."""
    kind = THRESHOLD_OF.get(dtype_name(found.dtype))
    same = (found == wanted) | ((found != found) & (wanted != wanted))
    if kind is not None and options.equality_mode == "approximate":
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        threshold = getattr(options, f"expected_{kind}_threshold")
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = found.astype(wide), wanted.astype(wide)
            same |= np.abs(a - b) <= threshold + options.expected_rtol * np.abs(b)
    if same.all():
        return []
    at = int(np.argmin(same))
    got, want = (text_of(a.reshape(-1)[at]).partition("=")[2] for a in (found, wanted))
    count = int(same.size - same.sum())
    return [
        f"[FAILED] result[{index}]: element {at} is {got}; expected {want} "
        f"({count} of {same.size} elements differ)"
    ]


def tell(name, arrays, faults, options):
    """Print the function's name, the results, and their differences from the expected ones."""
    print(f"EXEC @{name}")
    outputs = options.output or ["" if options.expected_output else "-"] * len(arrays)
    writer = Writer(options.output_max_element_count)
    for index, (text, array) in enumerate(zip(outputs, arrays, strict=True)):
        writer.write(text, index, array)
    for line in faults:
        print(line)
    if options.expected_output and not faults:
        print("[SUCCESS] all results are as expected")


def tell_json(name, arrays, faults, options):
    """Print one JSON object; files of --output are written too."""
    writer = Writer(options.output_max_element_count)
    for index, (text, array) in enumerate(zip(options.output, arrays, strict=False)):
        writer.write("" if text == "-" else text, index, array)
    found = {
        "function": name,
        "results": [text_of(array, options.output_max_element_count) for array in arrays],
        "is_as_expected": not faults if options.expected_output else None,
        "differences": faults,
    }
    print(json.dumps(found))


def print_statistics(program):
    """Print the memory that the run used to standard error."""
    from gputensor.memory import max_memory_allocated, max_memory_reserved

    peak, reserved = (f(program.device) for f in (max_memory_allocated, max_memory_reserved))
    print(f"{program.device}: peak of {peak} bytes allocated, {reserved} reserved", file=sys.stderr)
    for name, facts in program.report().items():
        for sizes in facts.get("sizes", ()):
            print(f"@{name}: arena of {sizes['arena']} bytes", file=sys.stderr)


def list_devices(options):
    """Print the drivers, or the devices as URIs for --device. Returns the exit code."""
    from gputensor.cli.devices import all_devices

    driver = options.list_devices or ""
    if driver and driver not in DRIVERS:
        raise argument_error(InputError, "--list_devices", driver, f"one of {', '.join(DRIVERS)}")
    found = all_devices()
    devices = [device for device in found["devices"] if driver in ("", device["type"])]
    if options.list_drivers:
        about = found["cuda"]["error"] or f"CUDA {found['cuda']['version']}"
        lines = {"cuda": about, "host": "the embedded host device"}
        shown = (
            json.dumps(lines) if options.json else "\n".join(f"{k}: {v}" for k, v in lines.items())
        )
    elif options.json:
        shown = json.dumps([{"uri": uri_of(device), **device} for device in devices])
    elif options.dump_devices:
        shown = "\n\n".join(facts_of(device) for device in devices)
    else:
        shown = "\n".join(f"{uri_of(device):<46} # {device['name']}" for device in devices)
    print(shown)
    return 0


def uri_of(device):
    return f"cuda://{device['uuid']}" if device["type"] == "cuda" else "host"


def facts_of(device):
    return "\n".join([uri_of(device), *(f"  {key}: {value}" for key, value in device.items())])

"""The output of ``gputensor compile``: a progress bar, then lines or JSON about the program."""

import importlib.util
import json
import os
import sys
from contextlib import contextmanager

from gputensor.atomic_file import write_whole
from gputensor.cli.value_text import type_of
from gputensor.programs.ahead.code import images_made

__all__ = ["images_shown", "tell"]


@contextmanager
def images_shown(options):
    """Show a progress bar on a terminal while kernels are compiled, if tqdm is installed."""
    if options.quiet or not sys.stderr.isatty() or importlib.util.find_spec("tqdm") is None:
        yield
        return
    tqdm = importlib.import_module("tqdm").tqdm
    with tqdm(desc="kernels", unit="image", leave=False) as bar:

        def watcher(done, total):
            bar.total, bar.n = total, done
            bar.refresh()

        with images_made.watching(watcher):
            yield


def tell(program, options, tuned):
    """Print the contents of the file and the results of tuning; write the file of --report."""
    found = facts_of(program, options, tuned)
    if options.quantize and options.report:
        text = json.dumps(found["quantized"], indent=1).encode()
        write_whole(options.report, lambda file: file.write(text))
    if options.json:
        print(json.dumps(found))
    else:
        print("\n".join(lines_of(found)))


def facts_of(program, options, tuned):
    """Return the facts about a program and its file as a dict for JSON."""
    ahead = program.data.ahead
    weights = [name for name in program.data.weights if not name.startswith("state.")]
    found = {
        "file": options.output,
        "bytes": os.path.getsize(options.output),
        "functions": {name: facts_of_function(found) for name, found in program.variants.items()},
        "weights": len(weights),
    }
    if ahead is not None:
        found["kernels"] = len(ahead.kernels)
        found["targets"] = [str(target) for target in ahead.lists]
    if options.quantize:
        found["quantized"] = program.report()
    if tuned:
        found["tuned"] = [one._asdict() for one in tuned]
    return found


def facts_of_function(variants):
    """Return the inputs and outputs of a function; with `at` also those of each variant."""
    found = [
        {
            "at": dict(function.at),
            "inputs": {one.path: argument_text(one) for one in function.inputs},
            "outputs": [argument_text(one) for one in function.outputs],
        }
        for function in variants
    ]
    first = {name: found[0][name] for name in ("inputs", "outputs")}
    return first if len(found) == 1 else {**first, "variants": found}


def lines_of(found):
    """Yield the same facts as lines."""
    for name, function in found["functions"].items():
        for one in function.get("variants", [function]):
            inputs = ", ".join(f"{path}: {text}" for path, text in one["inputs"].items())
            yield f"{found['file']}: {name}({inputs}) -> {', '.join(one['outputs'])}"
    if "kernels" in found:
        count = found["kernels"]
        kernels = f"{count} kernel{'' if count == 1 else 's'}"
        yield f"{found['file']}: {kernels} for {', '.join(found['targets'])}"
    yield f"{found['file']}: {found['weights']} weights, {found['bytes']} bytes"
    if "quantized" in found:
        yield from lines_of_quantized(found)
    tuned = found.get("tuned", ())
    better = [one for one in tuned if one["backend"] != "models"]
    for one in better:
        us, before = one["seconds"] * 1e6, one["before"] * 1e6
        text = f"{one['line']}: {one['backend']} takes {us:.2f} µs, {before:.2f} before"
        yield f"{found['file']}: {text}"
    if tuned:
        yield f"{found['file']}: {len(tuned)} products timed, {len(better)} with another algorithm"


def lines_of_quantized(found):
    """Yield lines with the bytes that quantizing saved and the errors that it made."""
    report = found["quantized"]
    matrices = [one for function in report.values() for one in function["matrices"].values()]
    kept, plain = (sum(one[key] for one in matrices) for key in ("bytes", "plain_bytes"))
    worst = max((one["relative_error"] for one in matrices), default=0)
    yield (
        f"{found['file']}: {len(matrices)} quantized, {kept} bytes instead of {plain}, "
        f"relative error at most {worst:.2g}"
    )
    for name, function in report.items():
        for index, one in enumerate(function["results"]):
            error, most = one["relative_error"], one["largest_error"]
            yield f"{name}: result[{index}]: relative error {error:.2g}, largest {most:.2g}"


def argument_text(argument):
    """Return an input or output as text, with the names of dims for free extents."""
    operand = argument.operand
    names = [
        extent[1] if type(extent) is tuple and extent[0] == "dim" else extent
        for extent in operand.shape
    ]
    plain = type_of(operand.dtype, ())
    shown = [str(name) if not isinstance(name, tuple) else "?" for name in names]
    return "x".join([*shown, plain])

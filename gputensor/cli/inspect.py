"""``gputensor inspect``: shows the contents of a program file.

It opens no device and reads no weights.
"""

import difflib
import json

from gputensor.cli.input_error import InputError
from gputensor.cli.value_text import type_of
from gputensor.errors import ProgramFileError, argument_error

__all__ = ["register"]

SECTIONS = ("metadata", "calls", "plan", "kernels", "weights", "quantization")


def register(subparsers):
    """Add ``inspect`` to the command line."""
    parser = subparsers.add_parser(
        "inspect",
        help="show the contents of a program file",
        description="Shows the contents of a program file.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a .gtp file")
    parser.add_argument("--output", choices=("all", *SECTIONS), default="all")
    parser.add_argument("--function", metavar="NAME", help="show only this function")
    parser.add_argument(
        "--diff", metavar="OTHER", help="show the difference to this file; exit code 1 if any"
    )
    parser.add_argument("--flagfile", metavar="FILE", help="read more options, one per line")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options):
    """Print the file, or the difference of two files. Returns the exit code."""
    found = facts_of(options.file, options)
    if options.diff is None:
        print(json.dumps(found) if options.json else as_text(found))
        return 0
    other = facts_of(options.diff, options)
    lines = [as_text(facts).splitlines() for facts in (found, other)]
    difference = list(difflib.unified_diff(*lines, options.file, options.diff, lineterm=""))
    print(json.dumps({"diff": difference}) if options.json else "\n".join(difference), end="")
    if difference and not options.json:
        print()
    return 1 if difference else 0


def facts_of(path, options):
    """Return the requested sections of a file by name."""
    from gputensor.programs.file import describe

    try:
        data, facts = describe(path)
    except ProgramFileError as error:
        raise InputError(error) from None
    functions = data.functions
    if options.function is not None:
        names = dict.fromkeys(function.name for function in functions.values())
        if options.function not in names:
            raise argument_error(
                InputError, "--function", options.function, f"one of {', '.join(names)}"
            )
        functions = {key: f for key, f in functions.items() if f.name == options.function}
    makers = {
        "metadata": lambda: {**facts, **plain_metadata(data)},
        "calls": lambda: calls_of(functions, data.states),
        "plan": lambda: {name: plans_of(function) for name, function in functions.items()},
        "kernels": lambda: kernels_of(data.ahead),
        "weights": lambda: weights_of(functions, data, options.function is not None),
        "quantization": lambda: quantization_of(functions, data),
    }
    names = SECTIONS if options.output == "all" else (options.output,)
    if options.output == "all" and "quantization" not in data.metadata:
        names = names[:-1]
    return {name: makers[name]() for name in names}


def calls_of(functions, states):
    from gputensor.programs.text import function_text

    return {name: function_text(function, states) for name, function in functions.items()}


def plans_of(function):
    """Return the arena of a function at the least and the largest sizes of its dims."""
    from gputensor.programs.dims import ends
    from gputensor.programs.passes.plan import plan

    found = []
    for sizes in ends(function.dims.values()):
        made = plan(function, sizes)
        found.append(
            {
                "sizes": {**function.at, **sizes},
                "arena": made.nbytes,
                "lower_bound": made.lower_bound,
                "sum": made.total,
            }
        )
    return found


def weights_of(functions, data, is_chosen):
    """Return all weights, or only those that the functions read if one is chosen."""
    from gputensor.programs.file import names_of

    kept = names_of(functions.values(), ("weight", "constant")) if is_chosen else data.weights
    return {
        name: {"dtype": w.dtype, "shape": list(w.shape), "sha256": w.sha256}
        for name, w in data.weights.items()
        if name in kept
    }


def kernels_of(ahead):
    """Return the targets of a program with their launches, and its kernels with image sizes."""
    if ahead is None:
        return {}
    targets = {
        str(target): {
            "calls": len(lists),
            "launches": sum(len(one.kinds) for one in lists.values()),
        }
        for target, lists in ahead.lists.items()
    }
    kernels = [
        {
            "entry": kernel.entry,
            "source": kernel.source,
            "images": {form: image.nbytes for form, image in kernel.images.items()},
        }
        for kernel in ahead.kernels.all
    ]
    return {"targets": targets, "kernels": kernels}


def plain_metadata(data):
    return {key: value for key, value in data.metadata.items() if not key.startswith("quantiz")}


def quantization_of(functions, data):
    """Return the facts about the quantized matrices that functions read, and their results."""
    from gputensor.programs.quantization.report import matrices_of, results_of

    return {
        name: {"matrices": matrices_of(data, one), "results": results_of(data, one.name)}
        for name, one in functions.items()
    }


def as_text(found):
    """Return the sections as lines for a person."""
    parts = []
    for section, facts in found.items():
        lines = [f"{section}:"]
        if section == "calls":
            lines = ["\n\n".join(facts.values())]
        elif section == "plan":
            lines += [plan_line(name, made) for name, plans in facts.items() for made in plans]
        elif section == "weights":
            lines += [weight_line(name, weight) for name, weight in facts.items()] or ["  none"]
        elif section == "quantization":
            lines += [line for name, one in facts.items() for line in quantized_lines(name, one)]
        elif section == "kernels":
            lines = kernel_lines(facts)
        else:
            lines += [f"  {name}: {value}" for name, value in facts.items()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def kernel_lines(found):
    if not found:
        return ["kernels: none; they are compiled when the program runs"]
    lines = ["kernels:"]
    for target, facts in found["targets"].items():
        lines.append(f"  {target}: launches of {facts['calls']} calls, {facts['launches']} in all")
    for kernel in found["kernels"]:
        images = ", ".join(f"{form} {size:,} bytes" for form, size in kernel["images"].items())
        lines.append(f"  {kernel['entry']}: {images}  {kernel['source'][:16]}")
    return lines


def plan_line(name, made):
    sizes = ", ".join(f"{dim}={size}" for dim, size in made["sizes"].items())
    name = name.partition("@")[0]
    return (
        f"  @{name}{f'({sizes})' if sizes else ''}: arena {made['arena']:,} bytes, "
        f"lower bound {made['lower_bound']:,}, sum {made['sum']:,}"
    )


def weight_line(name, weight):
    return f"  {name}: {type_of(weight['dtype'], weight['shape'])}  {weight['sha256'][:16]}"


def quantized_lines(name, quantized):
    """Return a line for each matrix and each result of a function; facts may have any form."""
    parts = list(quantized["matrices"].items())
    parts += [(f"result[{index}]", one) for index, one in enumerate(quantized["results"])]
    return [f"  @{name}: {part}: {facts_text(facts)}" for part, facts in parts]


def facts_text(facts):
    if not isinstance(facts, dict):
        return str(facts)
    shown = (f"{v:.3g}" if isinstance(v, float) else v for v in facts.values())
    return ", ".join(f"{key} {value}" for key, value in zip(facts, shown, strict=True))

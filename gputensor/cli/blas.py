"""``gputensor blas tune``: tunes the products of a file and writes the results."""

import os
import sys
from pathlib import Path

from gputensor.cli.input_error import InputError
from gputensor.errors import argument_error

__all__ = ["register"]


def register(subparsers):
    """Add the ``blas`` command and its verbs."""
    parser = subparsers.add_parser("blas", help="tune matrix products")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    tune = verbs.add_parser(
        "tune",
        help="measure the algorithms for recorded products",
        description="Tunes the products that gt.blas.tunable recorded, and writes the results.",
    )
    tune.add_argument(
        "--shapes",
        required=True,
        metavar="FILE",
        help="recorded products, or lines like 16x4096x8192 bf16 NT",
    )
    tune.add_argument("--output", metavar="FILE", help="the file of results to extend")
    tune.add_argument("--device", type=int, default=0, help="the CUDA device (default: 0)")
    text = "time limit for all products together (default: 60)"
    tune.add_argument("--seconds", type=float, default=60.0, help=text)
    text = "measure every algorithm that can compute a product"
    tune.add_argument("--exhaustive", action="store_true", help=text)
    tune.add_argument("--quiet", action="store_true", help="no progress bar")
    tune.set_defaults(run=run_tune)


def run_tune(options):
    """Tune, print one line for each product, and write the results. Returns the exit code."""
    from gputensor._driver.registry import cuda_device_count
    from gputensor.blas.tuning import tunable

    # os.path, because the methods of Path raise for names that no file can have.
    if not os.path.isfile(options.shapes):
        raise argument_error(InputError, "--shapes", options.shapes, "an existing file")
    if not options.seconds > 0:
        raise argument_error(InputError, "--seconds", options.seconds, "a number above 0")
    try:
        output = Path(options.output or tunable.get_filename())
    except ValueError as error:  # from an environment variable
        raise InputError(error) from None
    folder = os.path.dirname(os.path.realpath(output))
    if not os.access(folder, os.W_OK) or os.path.isdir(output):
        raise argument_error(InputError, "--output", str(output), "a file in a writable folder")
    count = cuda_device_count()
    if not 0 <= options.device < count:
        print(
            f"gputensor: there is no CUDA device {options.device}: {count} are visible",
            file=sys.stderr,
        )
        return 1
    try:
        if output.is_file():
            tunable.read_file(output)
        try:
            results = tunable.tune_file(
                options.shapes,
                device=options.device,
                seconds=options.seconds,
                is_exhaustive=options.exhaustive,
                show=None if options.quiet else sys.stderr,
            )
        finally:
            # Results from before an interrupt or a device error are kept too.
            if tunable.get_results():
                tunable.write_file(output)
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(str(error)) from None
    return tell(results, output)


def tell(results, output):
    """Print one line for each product. Returns 1 if one could not be measured, otherwise 0."""
    code = 0
    for result in results:
        if "error" in result:
            code = 1
            text = " ".join(result["error"].split())
            print(f"gputensor: {result['product']}: {text}", file=sys.stderr)
            continue
        gain = result["default_us"] / result["us"]
        print(
            f"{result['us']:10.2f} us  was {result['default_us']:10.2f} us  ({gain:.2f}x of "
            f"{result['measured']} algorithms)  {result['product']}"
        )
    if any("error" not in result for result in results):
        print(f"-> {output}")
    return code

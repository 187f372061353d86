"""`trace` and `compile`: from functions and specs to a Program, and the order of the passes."""

from __future__ import annotations

import functools
import re
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from gputensor._driver.registry import close_phantom_gpu, device_name, open_phantom_gpu
from gputensor._kernels.programs import condition
from gputensor.errors import Described, ProgramError, argument_error
from gputensor.programs import facts
from gputensor.programs import targets as gpus
from gputensor.programs.ahead.bindings import Ahead, Maker, fill_lists
from gputensor.programs.ahead.sizes import kernel_sizes, launch_sizes
from gputensor.programs.ahead.tune import SECONDS as TUNE_SECONDS
from gputensor.programs.ahead.tune import tune as tune_products
from gputensor.programs.bind import bind
from gputensor.programs.function import ProgramData, Weight
from gputensor.programs.passes.compute import compute_of, compute_weights
from gputensor.programs.passes.order import finish, passes
from gputensor.programs.passes.prepare import traced_of
from gputensor.programs.phases import reached
from gputensor.programs.program import Program, is_taken
from gputensor.programs.quantization.results import quantized
from gputensor.programs.sizes import at_sizes, key_of
from gputensor.programs.tracing import (
    Source,
    arguments_of,
    is_spec,
    leaves_of,
    trace_function,
)
from gputensor.streams.queue import device_number
from gputensor.tensor.core import device_number_of, storage_place

__all__ = ["bind_ahead", "compile", "data_of", "sources_of", "target_of", "trace"]


def trace(fn, *specs, weights=None, state=None, target=None, **named):
    """Return the trace of a function before any pass, for printing.

    The arguments are those of :func:`compile`.

    Examples
    --------
    >>> import gputensor as gt
    >>> len(gt.programs.trace(lambda x: x + 1, gt.spec((3,))).calls)
    1
    """
    source = sources_of(fn, specs, weights, state, named)[0]
    return trace_function(source, target_of(target))[0]


def compile(
    fn, *specs, weights=None, state=None, target=None, at=None, quantize=None, calibrate=None,
    rounding="once", tune=False,
    **named,
):  # fmt: skip
    """Trace one or several functions and return the :class:`Program` of their calls.

    Parameters
    ----------
    fn : callable or dict
        The function. For a program of several functions, a dict that maps names to tuples of a
        function and its specs.
    *specs
        For each parameter of `fn`, in order, a tree of :func:`spec`, of tensors, which stand for
        the spec of their shape and dtype, and of Python values, which the program keeps as
        constants. Specs of keyword parameters are given by name.
    weights : tree, optional
        A tree of tensors or arrays, passed to a parameter named `weights`. The function must not
        write to them.
    state : tree, optional
        A tree of specs, or of tensors with the first values, passed to a parameter named `state`.
        The function may write to it in place; each session has its own.
    target : str, int, Device or list of str, optional
        A device of this machine; the current device by default. Or a list of GPUs, which need not
        be present, such as ``["a100", "sm_90+ptx"]`` (see ``gputensor compile --list_targets``):
        the program then contains their kernels and launches, and its file runs on them without a
        compiler. It is open on the current device if that is a GPU.
    at : dict, optional
        Maps names of dims to lists of sizes. The functions are traced separately at exactly these
        sizes, and the shapes of a call select one. Use it for functions that branch on a size, or
        whose integers are not expressions of dims. Other sizes are refused.
    quantize : dict, optional
        Maps patterns of weight names (``layers.*``) to schemes: ``int8``, ``int8:128``,
        ``int4:32``, ``int4:64``, ``int4:128``, an int4 scheme with ``:offset``, or ``none``. The
        first pattern that matches applies. It is for matrices that only products read, as their
        right operand; that of the last product is matched only by its full name.
    calibrate : dict, optional
        Maps names of functions to tuples or dicts of arguments, or to lists of these for several
        calls. Matrices are rounded so that their products lose little with the inputs of these
        calls, and ``report()`` gives the errors of the calls' results.
    rounding : {"once", "each"}
        With "once", calls may be fused into one that rounds its result once, such as attention.
        With "each", every result is rounded as in eager execution, and results are equal to those
        of eager execution bit for bit.
    tune : bool or float, optional
        Time each product and its epilogue on the current GPU with each kernel and library that can
        compute it, and keep the fastest in the program. True takes at most 30 seconds; a number is
        the limit in seconds. Needs this GPU in `target`, for example ``["native"]``.

    Returns
    -------
    Program

    Raises
    ------
    TraceError
        If the function does something that a program cannot represent. The message names the line.
    ValueError
        If a pattern of `quantize` matches no matrix, or its scheme does not fit one; for `tune`
        without a GPU, or without a target that names it; and for other invalid arguments.

    Examples
    --------
    >>> import gputensor as gt
    >>> program = gt.compile(lambda x: 2 * x, gt.spec((gt.Dim("n", 1, 64),)), target="host")
    >>> program(gt.ones(3, device="host")).numpy()
    array([2., 2., 2.], dtype=float32)

    >>> def halved(x):
    ...     return halved(x[::2] + x[1::2]) if len(x) > 1 else x
    >>> sums = gt.compile(halved, gt.spec(gt.Dim("n", 1, 64)), at={"n": [4, 16]}, target="host")
    >>> sums(gt.ones(16, device="host")).item()
    16.0
    """
    names = gpu_names(target)
    number = target_of(None if names else target)
    if rounding not in ("once", "each"):
        raise argument_error(ValueError, "rounding", rounding, "'once' or 'each'")
    seconds = seconds_to_tune(tune, names, number)
    sources = _at(sources_of(fn, specs, weights, state, named), at)
    for name, _dtype, _shape, given in sources[0].weights if sources else ():
        if given is None:
            rule = "a tensor or an array (gt.map_safetensors reads arrays on first use)"
            raise argument_error(TypeError, name, Described("a spec"), rule)
    gpu_targets = gpus.parse(names, number) if names else []
    data = (
        data_ahead(sources, gpu_targets, rounding)
        if names
        else data_of(sources, number, rounding=rounding)
    )
    if quantize is None and calibrate is not None:
        rule = "None without quantize"
        raise argument_error(ValueError, "calibrate", Described("arguments"), rule)
    if data.traced is not None:
        can_prepare = calibrate is None and (names or number < 0)
        options = {"rounding": rounding, "quantize": quantize, "is_ahead": bool(names)}
        data.traced = replace(data.traced, **options) if can_prepare else None
    if quantize is not None:
        data = quantized(data, quantize, calibrate, number)
        reached("quantized", data)
    finish(data, functools.partial(compute_weights, number, bool(names), rounding), rounding)
    reached("planned", data)
    if not names:
        return Program(data, number)
    bind_ahead(data, gpu_targets)
    if seconds:
        tune_products(data, number, seconds)
    return Program(data, number) if number >= 0 else Program(data, opened=False)


def seconds_to_tune(tune, names, number):
    """Return the time limit of tuning, 0 for `tune=False`; ValueError without a GPU for it."""
    if tune is False:
        return 0.0
    if not isinstance(tune, (bool, int, float)) or not 0 < tune <= 86400:
        raise argument_error(ValueError, "tune", tune, "True, False or a number of seconds")
    if not names or number < 0:
        rule = "a target that names this machine's GPU, such as ['native']"
        raise argument_error(ValueError, "target", Described("no GPU to tune for"), rule)
    return TUNE_SECONDS if tune is True else float(tune)


def _at(sources, at):
    """Return the sources, each at all the sizes that `at` lists for its dims."""
    if at is None:
        return sources
    if not isinstance(at, dict):
        raise argument_error(TypeError, "at", at, "a dict {name of a dim: sizes}")
    found = [one for source in sources for one in at_sizes(source, at, is_spec)]
    known = {name for source in found for name in source.at}
    for name in at:
        if name not in known:
            rule = "names of dims of the specs"
            raise argument_error(ValueError, "at", Described(f"sizes of {name!r}"), rule)
    return found


def gpu_names(target):
    """Return the names of GPUs in a target, or None if it is a device of this machine."""
    if isinstance(target, str):
        is_device = re.fullmatch(r"(cuda|host)(:[0-9]+)?", target.strip().lower())
        return None if is_device else [target]
    if not isinstance(target, (list, tuple)):
        return None
    if not target:
        rule = "a device, or at least one name of a GPU"
        raise argument_error(ValueError, "target", Described("an empty list"), rule)
    return list(target)


@contextmanager
def phantom_gpu(target):
    """Open a phantom GPU with the facts of a Target for a `with` block; yield its number."""
    number = open_phantom_gpu(*target.facts)
    try:
        yield number
    finally:
        close_phantom_gpu(number)


def data_ahead(sources, targets, rounding):
    """Trace for GPUs that need not be present; return the ProgramData for all."""
    with phantom_gpu(targets[0]) as number:
        data = data_of(sources, number, rounding=rounding)
    check_targets(data, targets[1:])
    return data


def check_targets(data, targets):
    """Raise ProgramError if a fact of a Target differs from that of the traced device."""
    for target in targets:
        with phantom_gpu(target) as number:
            for name, function in data.functions.items():
                try:
                    facts.check(function.facts, number, name)
                except ProgramError as error:
                    raise ProgramError(f"{target}: {error}") from None


def bind_ahead(data, targets):
    """Give a ProgramData its launches and kernels for Targets."""
    data.ahead = ahead_of(data, targets)
    reached("bound", data)


def ahead_of(data, targets):
    """Make the launch lists of all functions for Targets, and compile their kernels."""
    made = Ahead()
    wanted, setters = [], set()
    for target in targets:
        lists, others = made.lists.setdefault(target, {}), {}
        with Maker(target.facts, made.kernels) as maker:
            for function in data.functions.values():
                for sizes in launch_sizes(function):
                    binding = bind(function, sizes)
                    fill_lists(lists, maker, binding)
                    if binding.has_conditions:
                        setters.add(made.kernels.number_of(condition()))
        used = {number for one in lists.values() for number in one.kernels}
        known = functools.partial(is_among, made.kernels, frozenset(used))
        with Maker(target.facts, made.kernels, at_hand=known) as maker:
            for function in data.functions.values():
                for sizes in kernel_sizes(function):
                    fill_lists(others, maker, bind(function, sizes))
        used.update(number for one in others.values() for number in one.kernels)
        forms = ["sm", "compute"] if target.has_ptx else ["sm"]
        wanted += [(number, f"{form}_{target.capability}") for form in forms for number in used]
        wanted += [(number, f"sm_{target.capability}") for number in setters]
    made.kernels.compile(wanted)
    return made


def is_among(kernels, numbers, program):
    """Whether the kernel of a program has one of the numbers."""
    return kernels.find(program) in numbers


def target_of(target):
    """Return the number of the device that a program is for."""
    try:
        return device_number(target)
    except ValueError:
        rule = "a device of this machine, as 'cuda:0' or 'host'"
        raise argument_error(ValueError, "target", target, rule) from None


def sources_of(fn, specs, weights, state, named):
    """Return the functions to trace, with their trees."""
    if isinstance(fn, dict):
        if specs or named:
            got = Described("a dict together with specs")
            raise argument_error(TypeError, "fn", got, "a dict {name: (function, *specs)} alone")
        entries = [(name, *_entry(name, entry)) for name, entry in fn.items()]
    else:
        entries = [(_name_of(fn), fn, specs, named)]
    for name, function, _specs, _named in entries:
        if not name.isidentifier():
            raise argument_error(ValueError, "fn", name, "names that are identifiers")
        if not callable(function):
            title = name if isinstance(fn, dict) else "fn"
            raise argument_error(TypeError, title, function, "a function")
    weights = leaves_of("weights", {} if weights is None else weights)
    state = leaves_of("state", {} if state is None else state)
    return [
        Source(name, function, arguments_of(name, function, given, keywords), *weights, *state)
        for name, function, given, keywords in entries
    ]


def _entry(name, entry):
    if not isinstance(name, str):
        raise argument_error(TypeError, "fn", name, "names that are strings")
    if is_taken(name):
        rule = "names that programs and sessions do not use themselves"
        raise argument_error(ValueError, "fn", name, rule)
    function, *specs = entry if isinstance(entry, (tuple, list)) else (entry,)
    return function, tuple(specs), {}


def _name_of(function):
    name = getattr(function, "__name__", type(function).__name__)
    return name if name.isidentifier() else "main"


def data_of(sources, target, is_reference=False, rounding="each"):
    """Trace, check and clean functions; return their ProgramData.

    Constants are copies of the tensors that the functions used; with `is_reference`, the tensors.
    """
    data = ProgramData()
    constants = {}
    for source in sources:
        function, weights = trace_function(source, target)
        _share(function, weights, data.weights, constants)
        data.functions[key_of(source.name, source.at)] = function
    first = sources[0]
    data.states = {name: (dtype, shape) for name, dtype, shape, _first in first.state}
    data.state_tree = first.state_tree
    for name, dtype, shape, given in first.state:
        if given is not None:
            data.weights[f"state.{name}"] = Weight(f"state.{name}", dtype, shape, given)
    if not is_reference:
        for name in constants.values():
            if not isinstance(data.weights[name].source, np.ndarray):
                data.weights[name].source = data.weights[name].source.numpy()
    data.traced = None if is_reference else traced_of(data)
    is_phantom = device_name(target) == "phantom"
    return passes(data, None if is_reference else compute_of(target, is_phantom), rounding)


def _share(function, weights, shared, constants):
    """Add weights to those of the program; equal constants of its functions are merged."""
    renamed = {}
    for name, weight in weights.items():
        if not name.startswith("constant."):
            shared.setdefault(name, weight)
            continue
        key = _identity(weight)
        if key not in constants:
            constants[key] = f"constant.{len(constants)}"
            weight.name = constants[key]
            shared[weight.name] = weight
        renamed[name] = constants[key]
    _rename(function, renamed)


def _identity(weight):
    source = weight.source
    if isinstance(source, np.ndarray):
        return weight.dtype, weight.shape, source.tobytes()
    place = storage_place(source)
    return weight.dtype, weight.shape, device_number_of(source), place[0] + place[2]


def _rename(function, names):
    for value in function.values:
        if value.kind == "constant":
            value.name = names.get(value.name, value.name)
    for call in function.calls:
        for region in call.regions:
            _rename(region, names)

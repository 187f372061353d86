"""CUDA graphs: capture work once, replay it with one call.

The graph itself is in :mod:`gputensor.streams.capture`; this module has its public name, and the
function that turns a callable on tensors into one that replays.
"""

from collections.abc import Mapping

from gputensor.errors import (
    Described,
    argument_error,
    function_argument,
    int_argument,
    list_argument,
)
from gputensor.streams.capture import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
)

__all__ = [
    "CUDAGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
]


def make_graphed_callables(
    callables,
    sample_args,
    num_warmup_iters=3,
    allow_unused_input=False,
    pool=None,
    capture_error_mode="global",
):
    """Return callables that replay a captured graph instead of queueing the work again.

    Parameters
    ----------
    callables : callable or tuple of callables
        They take tensors, or nested tuples, lists and dicts of tensors, as positional arguments,
        and return anything. Each is called `num_warmup_iters` times and then once in a capture.
    sample_args : tuple of arguments, or tuple of such tuples
        Arguments with the shapes and dtypes of later calls; one tuple for each callable if
        `callables` is a tuple.
    num_warmup_iters : int
        Calls before the capture, which complete tuning and lazy loading.
    allow_unused_input : bool
        Accept samples that a callable does not use; replays ignore them.
    pool : pool id or CUDAGraph, optional
        Memory pool for the captures; default: a new one that all `callables` share.
    capture_error_mode : {"global", "thread_local", "relaxed"}
        The mode of the captures, as in :class:`graph`.

    Returns
    -------
    callable or tuple of callables
        Each copies its arguments into the captured inputs, replays, and returns the captured
        outputs. The next call overwrites these outputs: copy those that you keep.

    Raises
    ------
    ValueError
        A later call's arguments differ from the sample in structure, shape, dtype or device, or a
        callable does not use one of its samples.

    Notes
    -----
    Callables that share a pool must be called in the order in which they were given.
    """
    # Other uses of graphs do not need the package of programs.
    from gputensor.programs.tree import flatten, unflatten

    is_one = callable(callables)
    rule = "a callable or a tuple of callables"
    functions = (callables,) if is_one else tuple(list_argument("callables", callables, rule))
    samples = (sample_args,) if is_one else tuple(list_argument("sample_args", sample_args))
    if len(functions) != len(samples):
        raise argument_error(
            ValueError,
            "sample_args",
            Described(f"{len(samples)} entries"),
            f"one for each of the {len(functions)} callables",
        )
    rounds = int_argument("num_warmup_iters", num_warmup_iters)
    if rounds < 0:
        raise argument_error(ValueError, "num_warmup_iters", rounds, "0 or more")
    for function, arguments in zip(functions, samples, strict=True):
        function_argument("callables", function)
        if not isinstance(arguments, (tuple, list)):
            rule = "a tuple of arguments for each callable"
            raise argument_error(TypeError, "sample_args", arguments, rule)
    shared = graph_pool_handle() if pool is None else pool
    graphed = []
    for function, arguments in zip(functions, samples, strict=True):
        leaves, structure = flatten(tuple(arguments), _is_leaf)
        inputs = {path: _copy_of(sample) for path, sample in leaves}
        arguments = unflatten(structure, inputs.values())
        for _ in range(rounds):
            function(*arguments)
        captured = CUDAGraph()
        with graph(captured, pool=shared, capture_error_mode=capture_error_mode):
            outputs = function(*arguments)
        if not allow_unused_input:
            _check_used(captured, inputs)
        graphed.append(_replaying(captured, flatten, structure, inputs, outputs))
    return graphed[0] if is_one else tuple(graphed)


def _is_leaf(part):
    return not isinstance(part, (Mapping, list, tuple))


def _replaying(captured, flatten, structure, inputs, outputs):
    """Return a function that copies its arguments into the inputs and replays."""

    def replay(*arguments):
        leaves, found = flatten(arguments, _is_leaf)
        if found != structure:
            count, rule = len(arguments), len(structure.parts)
            got = f"{count}" if count != rule else "other containers"
            rule = f"{rule if count != rule else 'those'}, as in the captured call"
            raise argument_error(ValueError, "arguments", Described(got), rule)
        for path, given in leaves:
            _check_argument(path, given, inputs[path])
        for path, given in leaves:
            inputs[path][...] = given
        captured.replay()
        return outputs

    replay.graph = captured
    return replay


def _check_used(captured, inputs):
    streams = captured.member_streams()
    for path, kept in inputs.items():
        if kept.size and not kept._is_used_on(streams):
            raise argument_error(
                ValueError,
                f"sample_args[{path}]",
                Described("a tensor that the callable does not use"),
                "used tensors, or allow_unused_input=True",
            )


def _copy_of(sample):
    for name in ("shape", "dtype", "device", "__setitem__", "_is_used_on"):
        if not hasattr(sample, name):
            raise argument_error(TypeError, "sample_args", sample, "tensors only")
    return sample.__array_namespace__().asarray(sample, copy=True)


def _check_argument(path, given, kept):
    for fact in ("shape", "dtype", "device"):
        if getattr(given, fact, None) != getattr(kept, fact):
            raise argument_error(
                ValueError,
                f"argument {path}",
                Described(f"{fact} {getattr(given, fact, None)}"),
                f"{getattr(kept, fact)}, as in the captured call",
            )


def __dir__():
    return sorted(__all__)

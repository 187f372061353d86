"""Program: functions with their weights on a device, called directly or through sessions."""

from __future__ import annotations

import threading

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.programs import facts, file, text, tree
from gputensor.programs.ahead.bindings import Ahead, DeviceLists
from gputensor.programs.bind import bind
from gputensor.programs.function import ProgramData
from gputensor.programs.quantization.report import matrices_of, results_of
from gputensor.programs.running import branches as branch_run
from gputensor.programs.running import checked as checked_run
from gputensor.programs.running import device as device_run
from gputensor.programs.running import host as host_run
from gputensor.programs.session import Caller, Session, device_number
from gputensor.programs.sizes import choose, variants_of
from gputensor.programs.weights import check_content, check_memory, load
from gputensor.streams import Device
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, from_dlpack
from gputensor.tensor.manipulation import empty

__all__ = ["Program", "is_taken", "load_program"]

WITH_CONDITIONS = "none: the program has no kernel that sets conditions, so the host reads flags"
WITH_WAITS = "none: another library computes some calls and waits for the GPU"
AS_REQUESTED = "none: call by call, as requested"
WITH_MANY_CALLS = "none: loops make too many calls for a graph"
MOST_NODES = 10_000


def load_program(path, device=None, weights=None, verify=False, rebuild=False):
    """Return the program of a `.gtp` file, on a device.

    Weights are copied to the device, or shared with open programs there that have weights of the
    same content. The functions of the file are always compared with their hash. Weights are shared
    only after this process has computed their hash.

    Parameters
    ----------
    path : str or os.PathLike
    device : device, optional
        The current device by default.
    weights : str or os.PathLike, optional
        The file of weights that are not inside the program, if it has moved.
    verify : bool
        Also compare the elements of all weights with their hashes, which takes about as long as
        copying them.
    rebuild : bool
        Ignore the kernels and launches of the file and make them again, which needs NVRTC. Device
        code cannot be checked: it may read and write all GPU memory of the process.

    Returns
    -------
    Program

    Raises
    ------
    ProgramFileError
        If the file is missing, not a program, damaged, or too large for the device.
    ProgramError
        If the program was compiled for a device with other facts.
    """
    data = file.read(path, weights=weights)
    if rebuild:
        data.ahead = None
    check_memory(data, Device(device_number(device)))
    return Program(data, device, verify)


class Program(Caller):
    """Functions and their weights on one device.

    :func:`compile`, :func:`jit` and :func:`load_program` make programs. The functions of a program
    are its methods; a program of one function can be called directly. Printing it shows the calls.

    Parameters
    ----------
    data : ProgramData
        The traced functions, or those of a file.
    device : device, optional
        The device that it runs on; the current device by default.
    verify : bool
        Compare the elements of weights with the hashes that a file declares.
    opened : bool
        False for a program for GPUs that are not present: it has no device and can only be saved.

    Notes
    -----
    A program without state may be called from any thread; each call uses a session of its own.
    With state, calls go through :meth:`session`.
    """

    prepare = staticmethod(host_run.prepare)
    launches = device_run.Launches
    checked = checked_run.CheckedLaunches
    branches = staticmethod(branch_run.launch_branches)
    branch_count = staticmethod(branch_run.branch_count)

    def __init__(self, data, device=None, verify=False, opened=True):
        self.data = data
        self.variants = variants_of(data.functions)
        #: by name; the first variant of a function that was traced at several sizes
        self.functions = {name: found[0] for name, found in self.variants.items()}
        self.only_name = next(iter(self.functions)) if len(self.functions) == 1 else None
        self.has_state = bool(data.states)
        self._bindings = {}
        self._copies = dict.fromkeys(self.functions, 0)
        self._lock = threading.Lock()
        self.free = []
        self.is_closed = False
        #: False launches calls one by one, for measurements; set it before the first call
        self.uses_graphs = True
        self.weights = {}
        self.device = self._lists = None
        if opened:
            self._open(device, verify)

    def _open(self, device, verify):
        data = self.data
        self.device_number = device_number(device)
        self.device = Device(self.device_number)
        for name, function in data.functions.items():
            facts.check(function.facts, self.device_number, name)
        kept = {n: w for n, w in data.weights.items() if not n.startswith("state.")}
        if verify:
            check_content({n: w for n, w in data.weights.items() if n not in kept})
        self.weights = load(kept, self.device, verify)
        if data.ahead is not None and self.device_number >= 0:
            self._lists = DeviceLists(data.ahead, self.device_number)

    # ---- calls

    def __getattr__(self, name):
        functions = self.__dict__.get("functions", {})
        if name not in functions:
            got = Described("no function of the program")
            raise argument_error(AttributeError, name, got, ", ".join(functions))

        def function(*args, **kwargs):
            return self.call(name, args, kwargs)

        function.__name__ = function.__qualname__ = name
        return function

    def __dir__(self):
        return [*super().__dir__(), *self.functions]

    # ---- sessions

    def session(self, check=False):
        """Return a new session, with the first values of the state.

        Parameters
        ----------
        check : bool
            For finding faults: wait for each call. The first call that fails or makes a NaN stops
            the function with a ProgramRunError that names the user's line. Earlier calls have then
            written to the state.

        Raises
        ------
        RuntimeError
            If the program is closed, or was made for GPUs that are not present.

        Examples
        --------
        >>> import gputensor as gt
        >>> program = gt.compile(lambda x: gt.log(x), gt.spec((3,)), target="host")
        >>> with program.session(check=True) as session:
        ...     session(gt.asarray([-1.0, 1, 2], device="host"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        gputensor.errors.ProgramRunError: ...: log: got NaN in 1 of 3 elements, the first at [0]...
        """
        if self.is_closed:
            raise RuntimeError("program: got a call after close(); expected an open program")
        if self.device is None:
            names = ", ".join(map(str, self.data.ahead.lists))
            got = Described(f"a call of a program for {names}")
            rule = "save(), then load_program on such a GPU"
            raise argument_error(RuntimeError, "program", got, rule)
        states = {name: self.first_state(name, None) for name in self.data.states}
        return Session(self, states, check)

    def first_state(self, name, tensor):
        """Write the first value of a state into `tensor`, or into a new one, and return it."""
        dtype, shape = self.data.states[name]
        given = self.data.weights.get(f"state.{name}")
        if tensor is None:
            tensor = empty(shape, dtype=dtype, device=self.device)
        tensor[...] = 0 if given is None else asarray(given.source, device=self.device)
        return tensor

    def state_tree(self, states):
        """Return the tree of a session's states."""
        if self.data.state_tree is None:
            return tree.kept(dict(states))
        leaves = [states[name] for name in self.data.states]
        return tree.kept(tree.unflatten(self.data.state_tree, leaves))

    def save(self, path, weights=None, compress=True, prepared=True):
        """Write the program to a `.gtp` file.

        Parameters
        ----------
        path : str or os.PathLike
        weights : str or os.PathLike, optional
            A safetensors file for the weights, relative to the folder of `path` and inside it.
            Weights that are mapped from this file (`map_safetensors`) are referenced, not copied.
        compress : bool, optional
            Whether to compress kernels, launches and their JSON with zlib, which makes them four
            times smaller. Without Python, ``libz.so.1`` of the machine decompresses them.
        prepared : bool, optional
            False to keep only your own file of weights, from which the program was compiled
            (`map_safetensors`): weights that were relaid, folded or quantized are then made again
            from it whenever the program is loaded. That needs Python. It is for programs for the
            host device and for GPUs by name (``target=["h200"]``), without `calibrate`.

        Raises
        ------
        ValueError
            For a `weights` outside the folder of `path`, and for ``prepared=False`` if it is not a
            file that the program's weights are mapped from.
        """
        file.write(self.data, path, weights=weights, compress=compress, prepared=prepared)

    def close(self):
        """Release the weights and all free sessions. Open sessions keep the memory they need."""
        self.is_closed = True
        while self.free:
            self.free.pop().close()
        self.weights = {}
        self._bindings = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    # ---- the interface for sessions

    def is_flat(self, name):
        """Whether each argument of a function is one tensor."""
        structure = self.functions[name].tree
        return structure is None or all(part == tree.LEAF for part in structure.parts)

    def result_form(self, name):
        """Return the form of the result: 0 is the only output, 1 a tuple, 2 another tree."""
        function = self.functions[name]
        structure, count = function.result, len(function.outputs)
        if structure is None:
            return 0 if count == 1 else 1
        if structure == tree.LEAF:
            return 0
        is_flat = structure.kind == "tuple" and all(part == tree.LEAF for part in structure.parts)
        return 1 if is_flat else 2

    def leaves(self, name, args, kwargs):
        """Return the inputs of a call in order, from its arguments."""
        function = self.functions[name]
        if function.tree is None:
            names = [one.path for one in function.inputs]
            return list(_by_name(name, names, args, kwargs).values())
        names = list(function.tree.keys)
        return tree.matched(function.tree, _by_name(name, names, args, kwargs), _is_leaf)

    def imported(self, path, leaf):
        """Return a tensor that shares the memory of an object with `__dlpack__`."""
        if isinstance(leaf, np.ndarray | np.generic) or not hasattr(leaf, "__dlpack__"):
            rule = f"a tensor on {self.device}, or an object there that has __dlpack__"
            raise argument_error(TypeError, path, Described(type(leaf).__name__), rule)
        with Device(self.device_number):  # memory on the host becomes that of this host device
            return from_dlpack(leaf)

    def binding(self, name, shapes):
        """Return the Binding of a function for the shapes of its inputs."""
        function, sizes = choose(self.variants[name], shapes)
        key = (name, *function.at.items(), *sizes.items())
        found = self._bindings.get(key)
        if found is None:
            with self._lock:
                found = self._bindings.get(key)
                if found is None:
                    found = self._bindings[key] = self._bound(function, sizes)
        return found

    def _bound(self, function, sizes):
        """Return a new Binding, with the reason if it is launched call by call."""
        found = bind(function, sizes)
        if self._lists is not None:
            self._lists.apply(found)
        if self.device_number >= 0:
            has_many, has_waits = found.call_count > MOST_NODES, found.has_waits
            has_setter = self._lists is None or self._lists.setter(found) != 0
            fits = has_setter and not has_many and not has_waits
            found.has_bodies = found.has_conditions and fits
            has_flags = found.has_conditions and not found.has_bodies
            found.is_by_calls = has_many or has_waits or has_flags
            found.graph = "none so far"
            if found.is_by_calls:
                found.graph = WITH_WAITS if has_waits else WITH_CONDITIONS
                found.graph = WITH_MANY_CALLS if has_many else found.graph
            if not self.uses_graphs:
                found.is_by_calls, found.graph = True, AS_REQUESTED
        return found

    def bind_launches(self):
        """Bind all calls on a GPU as launch lists, even in a program without targets."""
        if self._lists is None:
            self._lists = DeviceLists(Ahead(), self.device_number)
            self._bindings = {}

    def result(self, name, outputs):
        """Return the result of a function, built from its outputs."""
        return tree.unflatten(self.functions[name].result, outputs)

    def count_copy(self, name):
        """Count an input of a function that had to be copied."""
        with self._lock:
            self._copies[name] += 1

    # ---- about the program

    def report(self):
        """Return the resources that each function uses.

        Returns
        -------
        dict
            For each function a dict. ``copied_inputs`` counts inputs that were not contiguous or
            not aligned to 16 bytes. ``sizes`` has a dict for each size that was used: in bytes
            ``arena``, ``lower_bound`` (the most temporaries in use at once), ``sum`` (of all
            temporaries) and ``scratch`` (memory after the arena for calls that were bound ahead);
            ``graph`` describes the graph, or says why there is none. In a program compiled for
            GPUs, ``launches`` counts the launch lists that were in the program (``found``) and
            those that were made here (``made``); calls that are equal share a list. In a program
            with quantized weights, ``matrices`` has a dict for each that the function reads:
            ``bytes`` and ``plain_bytes``, ``relative_error``, ``worst_row`` and its error, and
            ``snr_db``; ``results`` has the errors of the results of the calls in `calibrate`.
        """
        found = {
            name: {"copied_inputs": self._copies[name], "sizes": []} for name in self.functions
        }
        for name, one in found.items():
            if "quantization" in self.data.metadata:
                one["matrices"] = matrices_of(self.data, self.functions[name])
                one["results"] = results_of(self.data, name)
        for one in found.values() if self._lists is not None else ():
            one["launches"] = {"found": self._lists.found, "made": self._lists.made}
        for (name, *sizes), binding in self._bindings.items():
            planned = binding.plan
            facts = {
                "arena": planned.nbytes,
                "lower_bound": planned.lower_bound,
                "sum": planned.total,
                "scratch": binding.arena_nbytes - planned.nbytes,
                "graph": binding.graph,
            }
            found[name]["sizes"].append({**dict(sizes), **facts})
        return found

    def __str__(self):
        return text.program_text(self.data)

    def __repr__(self):
        names = ", ".join(self.functions)
        if self.device is None:
            return f"<Program {names} for {', '.join(map(str, self.data.ahead.lists))}>"
        return f"<Program {names} on {self.device}>"


def _is_leaf(value):
    return isinstance(value, Tensor | np.ndarray) or hasattr(value, "__dlpack__")


def _by_name(function, names, args, kwargs):
    """Return the arguments by parameter name, in order."""
    found = dict(zip(names, args, strict=False))
    wrong = [name for name in kwargs if name not in names or name in found]
    missing = [name for name in names if name not in found and name not in kwargs]
    if len(args) > len(names) or wrong or missing:
        count = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
        got = Described(" and ".join([count, *(f"{key}=" for key in kwargs)]))
        raise argument_error(TypeError, function, got, ", ".join(names) or "none")
    found.update(kwargs)
    return {name: found[name] for name in names}


def is_taken(name):
    """Whether an attribute of programs or sessions would hide a function of this name.

    >>> is_taken("save"), is_taken("encode")
    (True, False)
    """
    own = {"device_number", *vars(Program(ProgramData(), opened=False))}
    return name in own or hasattr(Program, name) or hasattr(Session, name)

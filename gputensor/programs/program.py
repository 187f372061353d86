"""Program: functions with their weights on a device, called directly or through sessions."""

from __future__ import annotations

import threading

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.programs import facts, file, text, tree
from gputensor.programs.ahead.bindings import Ahead, DeviceLists
from gputensor.programs.bind import bind
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

__all__ = ["Program", "load_program"]

WITH_CONDITIONS = "none: no kernel of the program sets conditions, so the host reads flags"
WITH_WAITS = "none: another library computes some calls, and waits for the GPU"
AS_ASKED = "none: call by call, as was asked for"
WITH_MANY_CALLS = "none: loops make too many calls for a graph"
MOST_NODES = 10_000


def load_program(path, device=None, weights=None, verify=False, rebuild=False):
    """Return the program of a `.gtp` file, on a device.

    Weights go to the device; a program that is open there already with weights of the same content
    shares them. The functions of the file are always compared with their hash; nothing is shared
    whose hash was not computed here.

    Parameters
    ----------
    path : str or os.PathLike
    device : device, optional
        The current device by default.
    weights : str or os.PathLike, optional
        The file of the weights that are not inside the program, when it is in another place.
    verify : bool
        Compare the elements of all weights with their hashes, too: about as long as a copy.
    rebuild : bool
        Leave the kernels and launches of the file aside and make them anew, which takes NVRTC.
        Device code cannot be checked: it may read and write all GPU memory of the process.

    Raises
    ------
    ProgramFileError
        The file is missing, no program, damaged, or too large for the device.
    """
    data = file.read(path, weights=weights)
    if rebuild:
        data.ahead = None
    check_memory(data, Device(device_number(device)))
    return Program(data, device, verify)


class Program(Caller):
    """Functions and their weights on one device.

    Made by :func:`compile`, :func:`jit` and :func:`load_program`. Its functions are its methods; a
    program of one function is called itself. Printing it shows the calls.

    Parameters
    ----------
    data : ProgramData
        What was traced, or read from a file.
    device : device, optional
        Where it runs; the current device by default.
    verify : bool
        Compare the elements of weights with the hashes that a file declares.
    opened : bool
        False: for GPUs that are not there. It has no device and cannot be called, only saved.

    Notes
    -----
    Without state it is called from any thread, each call with a session that no other call uses.
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
        #: by name; of a function that was traced at several sizes, the first one
        self.functions = {name: found[0] for name, found in self.variants.items()}
        self.only_name = next(iter(self.functions)) if len(self.functions) == 1 else None
        self.has_state = bool(data.states)
        self._bindings = {}
        self._copies = dict.fromkeys(self.functions, 0)
        self._lock = threading.Lock()
        self.free = []
        self.is_closed = False
        #: False: calls are launched one by one, for measurements; before the first call
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
            For finding faults: each call is waited for, and the first one that fails or makes a
            NaN stops the function with a ProgramRunError that names the user's line. The calls
            before it have written to the state.

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
            raise argument_error(RuntimeError, "program", got, "save(), and load_program there")
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
        """The tree of a session's states."""
        if self.data.state_tree is None:
            return dict(states)
        return tree.unflatten(self.data.state_tree, [states[name] for name in self.data.states])

    def save(self, path, weights=None, compress=True):
        """Write the program to a `.gtp` file.

        Parameters
        ----------
        path : str or os.PathLike
        weights : str or os.PathLike, optional
            A safetensors file for the weights, relative to the folder of `path`. Weights that are
            mapped from this file (`map_safetensors`) stay where they are.
        compress : bool, optional
            Whether kernels, launches and their JSON are compressed, by zlib, which makes them four
            times smaller. Without Python they are then read by the machine's ``libz.so.1``.
        """
        file.write(self.data, path, weights=weights, compress=compress)

    def close(self):
        """Give the weights and all free sessions back. Open sessions keep what they need."""
        self.is_closed = True
        while self.free:
            self.free.pop().close()
        self.weights = {}
        self._bindings = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    # ---- what a session asks

    def is_flat(self, name):
        """Whether each argument of a function is one tensor."""
        structure = self.functions[name].tree
        return structure is None or all(part == tree.LEAF for part in structure.parts)

    def result_form(self, name):
        """How outputs make the result: 0: the only one itself, 1: a tuple, 2: another tree."""
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
        """Return a tensor over an object with DLPack."""
        if isinstance(leaf, np.ndarray | np.generic) or not hasattr(leaf, "__dlpack__"):
            rule = f"a tensor on {self.device}, or an object there that has __dlpack__"
            raise argument_error(TypeError, path, Described(type(leaf).__name__), rule)
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
        """A new Binding, and whether it is launched call by call."""
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
                found.is_by_calls, found.graph = True, AS_ASKED
        return found

    def bind_launches(self):
        """Have all calls on a GPU bound as launch lists, also those of a program without any."""
        if self._lists is None:
            self._lists = DeviceLists(Ahead(), self.device_number)
            self._bindings = {}

    def result(self, name, outputs):
        """Return what a function gives, from its outputs."""
        return tree.unflatten(self.functions[name].result, outputs)

    def count_copy(self, name):
        """Note that an input of a function had to be copied."""
        with self._lock:
            self._copies[name] += 1

    # ---- about the program

    def report(self):
        """Return what running takes, for each function.

        Returns
        -------
        dict
            For each function a dict: ``copied_inputs`` counts inputs that were not contiguous or
            not aligned to 16 bytes. ``sizes`` has a dict for each size that was used: in bytes
            ``arena``, ``lower_bound`` (the most that lives at once), ``sum`` (of all temporaries)
            and ``scratch`` (memory beside the arena that calls which were bound ahead need);
            ``graph`` tells the nodes of its graph, or why there is none. ``launches`` is there for
            a program that was compiled for GPUs: how many calls of the program had their launches
            in it, and how many were bound here. Of a program with quantized weights ``matrices``
            has a dict for each that the function reads: ``bytes`` and ``plain_bytes``,
            ``relative_error``, ``worst_row`` and its error, and ``snr_db``; ``results`` the errors
            of what the calls of `calibrate` gave.
        """
        found = {
            name: {"copied_inputs": self._copies[name], "sizes": []} for name in self.functions
        }
        for name, told in found.items():
            if "quantization" in self.data.metadata:
                told["matrices"] = matrices_of(self.data, self.functions[name])
                told["results"] = results_of(self.data, name)
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
    """Arguments by the names of their parameters, in order."""
    found = dict(zip(names, args, strict=False))
    wrong = [name for name in kwargs if name not in names or name in found]
    missing = [name for name in names if name not in found and name not in kwargs]
    if len(args) > len(names) or wrong or missing:
        given = [str(len(args)), *kwargs] if kwargs else [str(len(args))]
        got = Described(f"{' and '.join(given)} arguments")
        raise argument_error(TypeError, function, got, ", ".join(names) or "none")
    found.update(kwargs)
    return {name: found[name] for name in names}

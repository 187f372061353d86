"""Tuning: chooses backends for the products of a program by measurement on this machine's GPU.

A product's call is one launch list: the product and what follows it (an epilogue of `product`, or
the formula of `formula_product`), in a library's epilogue, in our kernel, or in a separate kernel.
`tune` makes that list on a phantom GPU with each backend and with tiles that compute everything,
and the list of a library once more with each algorithm that the library proposes. It times the
lists in turn and replaces the list that models chose by the fastest. So the program's file contains
the choice for the target with the facts of this GPU, and no measurement is needed when it runs. An
algorithm is pinned for one version of the library; another version chooses by its heuristic.
"""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import numpy as np

from gputensor._driver.registry import device_facts_of, device_info
from gputensor._kernels.launch import CallOperand
from gputensor.blas.backends import backend_table
from gputensor.blas.bench import algorithms_of
from gputensor.blas.libraries import library_versions
from gputensor.errors import Described, GpuTensorError, ProgramError, argument_error
from gputensor.programs.ahead.bindings import TILES, Maker, sites_of
from gputensor.programs.ahead.call_places import CallPlaces, places_of
from gputensor.programs.ahead.code import DeviceCode
from gputensor.programs.ahead.launches import LaunchRow
from gputensor.programs.ahead.sizes import launch_sizes
from gputensor.programs.bind import BoundCall, bind
from gputensor.programs.session import launch_on
from gputensor.streams import Stream, synchronize
from gputensor.streams.capture import CUDAGraph, graph
from gputensor.tensor.interop import asarray

__all__ = ["Tuned", "tune"]

SECONDS = 30.0
ROUNDS = 5
REPEATS = 20  # calls in a graph
REPLAYS = 5  # of a graph in a round
GAIN = 0.98  # another list must take at most this share of the time of the models' list
COLD = 1 << 27  # bytes of operands that are used in turn, more than caches hold
MOST_PLACES = 16
MOST_ALGORITHMS = 12  # of a library, for one product


class Tuned(NamedTuple):
    """A timed product, with the backend of the fastest list, or "models".

    ``"library 66,20,1,0,0,0,36,0,2"`` names an algorithm by its attributes.
    """

    line: str
    backend: str
    seconds: float
    before: float  # seconds of the previous list


class _Product(NamedTuple):
    key: str
    call: BoundCall
    places: CallPlaces


def tune(data, device, seconds=SECONDS):
    """Choose the launch lists of a program's products, on a GPU.

    Parameters
    ----------
    data : ProgramData
        It has launches for a target with the facts of the GPU. Its lists are replaced, and its
        metadata records the choices, the target and the versions of libraries.
    device : int
    seconds : float, optional
        After this time no further product is timed; the remaining products keep their lists.

    Returns
    -------
    list of Tuned
        One for each timed product.

    Raises
    ------
    ValueError
        For a host device, and a program without launches for the GPU.
    """
    if device < 0:
        raise argument_error(ValueError, "device", Described("a host device"), "a GPU")
    facts = device_facts_of(device)
    targets = [] if data.ahead is None else [one for one in data.ahead.lists if one.facts == facts]
    if not targets:
        rule = "a program with launches for this GPU (--target=native)"
        got = Described("a program without launches for it")
        raise argument_error(ValueError, "program", got, rule)
    deadline = time.monotonic() + seconds
    lists = data.ahead.lists[targets[0]]
    products = list(products_of(data.functions.values(), lists))
    known = len(data.ahead.kernels)
    candidates = candidates_of(products, lists, facts, data.ahead.kernels)
    bench = Bench(data.ahead.kernels, device)
    made = (one for held in candidates.values() for one in held.values())
    bench.code.compile({number for one in made for number in one.kernels})
    found = []
    for product in products:
        if time.monotonic() > deadline:
            continue
        tried = candidates[product.key]
        library = next((one for one in tried.values() if len(set(one.products)) == 1), None)
        pinned = {} if library is None else with_algorithms(library, device)
        if len(tried) + len(pinned) < 2:
            continue
        times = bench.times(product, {**tried, **pinned})
        best = min(times, key=times.get)
        if times[best] > GAIN * times["models"]:
            best = "models"
        chosen = {**tried, **pinned}[best]
        if chosen is library and pinned:
            chosen = next(iter(pinned.values()))  # the algorithm that the library chooses itself
        lists[product.key] = chosen
        found.append(Tuned(product.call.line, best, times[best], times["models"]))
    drop_unused(data.ahead, known)
    versions = ", ".join(f"{name} {version}" for name, version in library_versions().items())
    data.metadata["tuned"] = {
        "target": str(targets[0]),
        "device": device_info(device)["name"],
        "library": versions,
        "products": {f"{number} {one.line}": one.backend for number, one in enumerate(found)},
    }
    return found


def products_of(functions, lists):
    """Yield the products that have a list, one for each key."""
    seen = set()
    for function in functions:
        for sizes in launch_sizes(function):
            for site in sites_of(bind(function, sizes)):
                if site.call.row.name not in ("product", "formula_product"):
                    continue
                places = places_of(site.call, site.alignments)
                if places.key in lists and places.key not in seen:
                    seen.add(places.key)
                    yield _Product(places.key, site.call, places)


def candidates_of(products, lists, facts, kernels):
    """Return the distinct lists of each product, by key and by the name of a backend."""
    found = {one.key: {"models": lists[one.key]} for one in products}
    names = {row["number"]: row["name"] for row in backend_table()} | {TILES: "tile"}
    for number in sorted(names):
        with Maker(facts, kernels, number) as maker:
            for product in products:
                try:
                    made = maker.make(product.call, product.places)
                except ProgramError:
                    continue
                known = {one.to_bytes() for one in found[product.key].values()}
                if made.to_bytes() not in known:
                    found[product.key][names[number]] = made
    return found


def with_algorithms(library, device):
    """Return the library's list with each algorithm that it proposes, by name; its own first."""
    version, algorithms = algorithms_of(library.products[0], device)
    return {
        f"library {','.join(map(str, one))}": library.with_algorithm(version, one)
        for one in algorithms[:MOST_ALGORITHMS]
    }


def drop_unused(ahead, known):
    """Drop the images of kernels after the first `known` ones that no list launches."""
    lists = [one for held in ahead.lists.values() for one in held.values()]
    used = {number for one in lists for number in one.kernels}
    for number in range(known, len(ahead.kernels)):
        if number not in used:
            ahead.kernels.all[number].images.clear()


class Bench:
    """Times launch lists on a GPU, in graphs of many launches at several places in memory."""

    def __init__(self, kernels, device):
        self.device = device
        self.stream = Stream(device)
        self.code = DeviceCode(kernels, device)
        self.rng = np.random.default_rng(1)

    def times(self, product, candidates):
        """Return the seconds of one launch of each list that can run, by the candidates' names."""
        candidates = self.runnable(candidates)
        scratch = max(one.scratch_nbytes for one in candidates.values())
        nbytes = scratch + sum(span[4] for span in product.places.spans)
        count = max(1, min(MOST_PLACES, COLD // max(nbytes, 1)))
        held = [self.memory(product, scratch) for _ in range(count)]
        graphs = {name: self.captured(product, one, held) for name, one in candidates.items()}
        found = {name: [] for name in graphs}
        for number in range(ROUNDS + 1):
            for name, replay in graphs.items():
                synchronize(self.device)
                start = time.perf_counter()
                for _ in range(REPLAYS):
                    replay()
                self.stream.synchronize()
                if number:  # the first round warms up
                    found[name].append((time.perf_counter() - start) / REPLAYS / REPEATS)
        return {name: statistics.median(times) for name, times in found.items()}

    def runnable(self, candidates):
        """Return the candidates whose kernels compile and load; "models" must be one."""
        found = {}
        for name, launches in candidates.items():
            try:
                self.functions(launches)
            except GpuTensorError:
                if name == "models":
                    raise
            else:
                found[name] = launches
        return found

    def functions(self, launches):
        """Return the handles of a list's kernels, by number."""
        return {n: self.code.function(n, shared) for n, shared in launches.kernels.items()}

    def memory(self, product, scratch):
        """Return new memory for the spans of a product's operands, and its scratch.

        Its bytes represent moderate numbers in each floating-point dtype.
        """
        sizes = [max(1, span[4]) for span in product.places.spans] + [max(1, scratch)]
        held = []
        for size in sizes:
            content = self.rng.integers(0x30, 0x40, min(size, 1 << 20), np.uint8)
            held.append(asarray(np.resize(content, size), device=f"cuda:{self.device}"))
        return held

    def captured(self, product, launches, held):
        """Return the replay of a graph of launches at all places, in turn."""
        functions = self.functions(launches)
        row = LaunchRow(product.call.row, launches, functions, (*product.places.alignments, 0))
        calls = []
        for memory in held:
            scratch = CallOperand(memory[-1].data_ptr(), "uint8", (launches.scratch_nbytes,))
            calls.append([(row, (*placed(product.places, memory), scratch))])
        launch_on(self.stream, calls[0])
        self.stream.synchronize()
        made = CUDAGraph()
        with graph(made, stream=self.stream):
            for number in range(REPEATS):
                launch_on(self.stream, calls[number % len(calls)])
        return made.replay


def placed(places, memory):
    """Return the arguments of a call with its operands in these pieces of memory."""
    moved, spans = [], list(zip(places.spans, memory[:-1], strict=True))
    for argument in places.first:
        if type(argument) is CallOperand and argument.shape is not None:
            for (_at, _shift, first, _second, nbytes), piece in spans:
                if 0 <= argument.address - first <= nbytes:
                    argument = argument.at(piece.data_ptr() + argument.address - first)
                    break
        moved.append(argument)
    return tuple(moved)

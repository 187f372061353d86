"""The rules of rooms, as functions from a source tree to its faults (see layout_rules.py).

A package is divided into rooms: folders that are one extension module each (`__init__.pyx` and the
`.pxi` parts that it includes) or contain Python modules. Files beside the rooms are part of the
order, too. A room imports only earlier rooms of its package.
"""

import re

from tests.project import layout_rules as rules

# The order of rooms in each package. A name with a dot is a room inside a room.
ROOMS = {
    "_driver": (
        "environment", "table", "phantom", "settings", "visible_devices", "layers", "cuda", "host",
        "registry", "tensor_maps", "nvml", "__init__",
    ),
    "_arrays": (
        "element_types", "__init__", "dtypes", "promotion", "overlap", "file_mapping",
        "safetensors_file",
    ),
    "_alloc": (
        "config.options", "config.settings", "config", "model", "history.pool_names", "history",
        "core", "order", "grow", "allocator", "pinned", "observe", "foreign", "replay",
        "explain", "check", "__init__",
    ),
    "streams": ("order", "queue", "capture", "__init__"),
    "_kernels": (
        "operations", "program", "programs", "formula", "row_program",
        "call_rules", "order_rules", "order_programs", "engine_rules", "fused_rules",
        "calls",
        "draw_facts", "launch", "loops", "host", "faces", "formulas", "orders",
        "__init__",
    ),
    "blas": (
        "kernels.programs", "libraries", "plan", "libraries.gemm", "kernels", "tuning",
        "backends", "bench", "host", "product", "attention", "convolution",
        "foreign", "__init__",
    ),
    "_engines": ("engine", "sorting", "transforms", "factors", "solvers", "cupy_calls", "__init__"),
    "tensor": (
        "core", "parameter_names", "transfer", "interop", "functions", "manipulation", "products",
        "engine",
        "places", "statistics", "scans", "sorting", "quantiles", "histograms", "grids",
        "series", "sets",
        "writing", "order_statistics", "blends", "numerics",
        "array_file", "user_kernels",
        "printing", "placement", "numpy_protocols", "dask_chunks", "einops_backend",
        "import_hooks", "methods", "operators", "__init__",
    ),
    "importers": (
        "public_functions", "onnx_values", "onnx_registry", "onnx_file", "onnx_types", "onnx_graph",
        "onnx_math", "onnx_reduction", "onnx_shape", "onnx_indexing", "onnx_neural",
        "onnx_quantized", "onnx_convolution", "onnx_recurrent", "onnx_resize", "onnx_signal",
        "onnx_random", "onnx_control", "onnx_microsoft", "onnx_dtype", "onnx_few_bits",
        "onnx_model", "aten.table", "aten.elementwise", "aten.shapes", "aten.makers", "aten.places",
        "aten.reductions", "aten.layers", "aten.windows", "aten.recurrent", "aten.transforms",
        "aten", "torch_export", "__init__",
    ),
}  # fmt: skip
# Number of imports inside functions, by file: their cost is deferred to the call that needs them.
LATE = {
    "gputensor/_alloc/__init__.py": 2,  # explaining a failure; the checker of a debug build
    "gputensor/blas/__init__.py": 1,  # timing products, for tuning
    "gputensor/blas/tuning/measured_algorithms.py": 1,
    "gputensor/blas/tuning/tunable.py": 1,
    "gputensor/cli/bench.py": 3,  # each command loads only its own modules
    "gputensor/cli/blas.py": 2,
    "gputensor/cli/compile.py": 13,
    "gputensor/cli/devices.py": 3,
    "gputensor/cli/inspect.py": 5,
    "gputensor/cli/main.py": 1,
    "gputensor/cli/memory.py": 5,
    "gputensor/cli/operations.py": 1,
    "gputensor/cli/run.py": 7,
    "gputensor/graphs.py": 1,  # programs, for nested arguments of callables
    "gputensor/tensor/interop/array_api.py": 1,  # the standard's namespace is the package itself
    "gputensor/tensor/methods.py": 3,  # masks of a GPU, and as `where=`; linspace of tensors
    "gputensor/traces.py": 1,  # programs, if a function is traced
}
MAX_FILES = 25
MAX_PARAMETERS = 7
SOURCES = (".py", ".pyx", ".pxd", ".pxi", ".h", ".cuh", ".cpp", ".md", ".json")


def module_of(path, root):
    """Return the dotted name of a source below gputensor/; a .pxi part has that of its room."""
    parts = path.relative_to(root).with_suffix("").parts
    if path.suffix == ".pxi" or parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def modules(root):
    """Return {dotted name: files} of every module of the library."""
    found = {}
    for path in rules.files(root, (".py", ".pyx", ".pxd", ".pxi"), ("gputensor",)):
        found.setdefault(module_of(path, root), []).append(path)
    return found


def imports(root):
    """Yield (module, imported module, path, whether late) of imports within the library."""
    known = modules(root)
    for module, paths in known.items():
        for path in paths:
            for target, is_late in rules.imported_modules(path, root, with_late=True):
                while target and target not in known:
                    target = target.rpartition(".")[0]
                if target and target != module:
                    yield module, target, path, is_late


def place_in_package(module):
    """Return (package, rank of the room) of a module, or None if its package has no order."""
    parts = module.split(".")
    if len(parts) < 2 or parts[1] not in ROOMS:
        return None
    names = ROOMS[parts[1]]
    inside = parts[2:] or ["__init__"]
    for length in range(len(inside), 0, -1):
        name = ".".join(inside[:length])
        if name in names:
            return parts[1], names.index(name)
    return parts[1], -1


def imports_of_later_rooms(root):
    """Yield imports inside a package that are not from an earlier room."""
    for module, paths in modules(root).items():
        place = place_in_package(module)
        if place and place[1] < 0:
            yield f"{paths[0].relative_to(root)}: '{module}' has no place in the order of rooms"
    for module, target, path, _late in imports(root):
        here, there = place_in_package(module), place_in_package(target)
        if here and there and here[0] == there[0] and there[1] > here[1]:
            yield f"{path.relative_to(root)}: imports {target}, a later room"


def circles(root):
    """Yield modules that import each other, including late imports."""
    arrows = {}
    for module, target, _path, _late in imports(root):
        if not module.startswith("gputensor.") or target == "gputensor":
            continue
        arrows.setdefault(module, set()).add(target)
    reached = {}

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for target in arrows.get(todo.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    for module in arrows:
        reached[module] = reach(module)
    for module in sorted(arrows):
        others = sorted(m for m in reached[module] if module in reached.get(m, ()) and m > module)
        if others:
            yield f"{module} imports itself by way of {', '.join(others)}"


def late_imports(root):
    """Yield files whose number of imports inside functions differs from LATE."""
    found = {}
    for _module, target, path, is_late in imports(root):
        if is_late:
            found.setdefault(path.relative_to(root).as_posix(), set()).add(target)
    for name in sorted(found.keys() | LATE.keys()):
        count = len(found.get(name, ()))
        if count != LATE.get(name, 0):
            yield f"{name}: {count} late imports, {LATE.get(name, 0)} are stated"


def fillers_outside_driver(root):
    """Yield imports of the CUDA filler outside `_driver`; others use the driver table."""
    filler, home = "gputensor._driver.cuda", "gputensor._driver."
    for module, target, path, _late in imports(root):
        if target == filler and not module.startswith(home):
            yield f"{path.relative_to(root)}: imports {filler}, which only _driver may"


def crowded_folders(root):
    """Yield folders with too many files."""
    for top in ("gputensor", "tests", "benchmarks"):
        folders = {}
        for path in rules.files(root, (*SOURCES, ".pyi"), (top,)):
            folders.setdefault(path.parent, []).append(path)
        for folder, paths in folders.items():
            if len(paths) > MAX_FILES:
                yield f"{folder.relative_to(root)}: {len(paths)} files, at most {MAX_FILES}"


STORAGE = re.compile(
    r"^(?:static|inline|extern)?\s*(?:static\s+|thread_local\s+|__thread\s+|inline\s+)+"
    r"(?!const\b|constexpr\b)[\w:<>*, ]+?\b\w+\s*(?:\[[^\]]*\])?\s*(?:=[^=(][^;]*|\{[^;]*\})?;",
    re.M,
)


def storage_in_headers(root):
    """Yield headers with variables that more than one module compiles: each would get a copy.

    A .pxd counts as many modules, because every module that cimports it includes its headers.
    """
    texts = {
        path: rules.code_of(path)
        for path in rules.files(root, (".pyx", ".pxd", ".pxi", ".h", ".cpp"), ("gputensor",))
    }
    for header, text in texts.items():
        if header.suffix != ".h" or not STORAGE.search(text):
            continue
        name = header.relative_to(root).as_posix()
        users, todo = set(), [name]
        while todo:
            text = f'"{todo.pop()}"'
            found = {path for path, other in texts.items() if text in other} - users
            users |= found
            todo += [path.relative_to(root).as_posix() for path in found if path.suffix == ".h"]
        # A .cpp is a separate library, which shares no variables with the modules.
        users = {path for path in users if path.suffix not in (".h", ".cpp")}
        many = sorted(path.name for path in users if path.suffix == ".pxd")
        if many or len({module_of(path, root) for path in users}) > 1:
            yield f"{name}: holds variables, and more than one module includes it"


FUNCTION = re.compile(
    r"^[ ]*(?:cdef|cpdef|def|async def)\s[^=\n(]*?(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.M
)


def parameters(text):
    """Return the positional parameters of a function's parameter list."""
    text = re.sub(r"\[[^\]]*\]|\([^()]*\)|\{[^}]*\}", "", text)
    names = [part.strip() for part in text.split(",") if part.strip()]
    for index, name in enumerate(names):
        if name == "*" or (name.startswith("*") and not name.startswith("**")):
            names = names[:index]
            break
    return [name for name in names if name not in ("/", "self", "cls")]


def many_parameters(root):
    """Yield functions with more than seven positional parameters."""
    for path in rules.files(root, (".py", ".pyx", ".pxi"), ("gputensor",)):
        name = path.relative_to(root / "gputensor").as_posix()
        for match in FUNCTION.finditer(rules.code_of(path)):
            count = len(parameters(match[2]))
            if count > MAX_PARAMETERS:
                yield f"gputensor/{name}: {match[1]} takes {count} parameters"


RULES = (
    imports_of_later_rooms,
    circles,
    late_imports,
    fillers_outside_driver,
    crowded_folders,
    storage_in_headers,
    many_parameters,
)

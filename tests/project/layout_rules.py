"""The layout rules that a program can check, as functions from a source tree to its faults.

They read text only and do not import the library, so they also apply to sources that do not build
and to code that no test runs. Each function takes the root of a tree and yields one line for each
fault; test_layout.py applies them to this repository, and to small trees that break each rule.
"""

import re
from pathlib import Path

# Who may import whom: a module imports from layers to its left only, and from its own package.
LAYERS = (
    ("errors", "atomic_file", "callable_module", "strict_json"),
    ("_driver",),
    ("_arrays",),
    ("_alloc",),
    ("streams",),
    ("_kernels",),
    ("blas",),
    ("_engines",),
    ("tensor",),
    ("linalg",),
    ("nn", "random", "fft", "polynomial"),
    ("special",),
    ("programs",),
    ("importers",),
    ("memory", "device", "graphs", "sharing", "traces"),
    ("cuda_runtime", "testing"),
    ("backends", "cuda", "cublas", "lib"),
    ("cli",),
    ("__init__", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Necessary imports from the right: file and module, with the reason.
EXCEPTIONS = {
    # The array API standard requires that every array has a method that returns its namespace.
    ("gputensor/tensor/interop/array_api.py", "gputensor"),
    # An importer calls the public functions, by their names.
    ("gputensor/importers/public_functions.py", "gputensor"),
}
PACKAGES = (
    "_driver", "_arrays", "_alloc", "streams", "_kernels", "blas", "_engines", "tensor", "programs",
    "importers", "cli",
)  # fmt: skip
CODE = (".py", ".pyx", ".pxd", ".pxi", ".pyi", ".h", ".cpp", ".cu", ".cuh")
TEXT = (*CODE, ".md", ".toml", ".txt", ".cfg", ".yml", ".in", ".json")
FOLDERS = ("gputensor", "tests", "benchmarks", "examples", "docs", ".ci")
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
MAX_LINES = 500
#: The most lines of code of a folder, so that a reader can hold it in mind.
MAX_LINES_OF = {"_alloc": 11_000, "_alloc/core": 2_000}

TRIPLE_QUOTED = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
IMPORT = re.compile(
    r"^(?P<indent>[ \t]*)(?:from[ \t]+(?P<source>[\w.]+)[ \t]+c?import[ \t]*"
    r"(?P<names>\([^)]*\)|[^\n]*)"
    r"|c?import[ \t]+(?P<modules>[\w., \t]+))",
    re.MULTILINE,
)
INCLUDE = re.compile(r'^include "([^"]+)"', re.M)
BY_NAME = re.compile(r"import_module\(\s*f?[\"']([\w.]+)")
PUBLIC = re.compile(
    r"^(?:def[ \t]+([a-z]\w*)|cpdef\b[^(\n]*?(\w+)\(|(?:cdef[ \t]+)?class[ \t]+([A-Z]\w*))", re.M
)
# The brackets keep this line from breaking its own rule.
MACHINE_PATHS = re.compile("/(?:r[o]ot|w[o]rk|[o]pt|h[o]me)/")


def files(root, suffixes, folders=FOLDERS):
    """Yield the files of the tree with one of the suffixes, leaving out what builds produce."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in path.parts:
                yield path
    if folders is FOLDERS:
        yield from sorted(p for p in root.iterdir() if p.suffix in suffixes and p.is_file())


def code_of(path):
    """Return the text of a source without docstrings and comments; line numbers change."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
        return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    # Verbatim C in a .pyx is a triple-quoted string after `cdef extern`, and counts as code.
    verbatim = re.findall(r"cdef extern from \*:\s*(\"\"\".*?\"\"\")", text, re.DOTALL)
    text = re.sub(r"(^|[^\"'])#[^\n\"']*$", r"\1", TRIPLE_QUOTED.sub("", text), flags=re.M)
    return text + "\n".join(part.replace('"""', "") for part in verbatim)


def imported_modules(path, root, with_late=False):
    """Yield the dotted names that a source imports or cimports, relative ones resolved.

    With ``with_late``, yield (name, whether the import is inside a function or class).

    ``from gputensor import x`` and ``from . import x`` count as imports of the module ``x``.
    """
    text = code_of(path)
    package = ".".join(path.relative_to(root).parent.parts)
    for match in IMPORT.finditer(text):
        found = [*_names_in(match, package)]
        yield from ((name, bool(match["indent"])) for name in found) if with_late else found
    by_name = BY_NAME.findall(text)
    yield from ((name, True) for name in by_name) if with_late else by_name


def _names_in(match, package):
    """Yield the dotted names of one import statement."""
    if match["modules"]:
        yield from (name.split()[0] for name in match["modules"].split(",") if name.strip())
        return
    source = resolved(match["source"], package)
    names = re.findall(r"\w+", re.sub(r"\bas\s+\w+", "", match["names"]))
    # In `from package import x`, x may be a module; `*` stands for no name.
    yield from (f"{source}.{name}" for name in names) if names else (source,)


def resolved(name, package):
    """Return the absolute dotted name of one that may start with dots."""
    dots = len(name) - len(name.lstrip("."))
    if not dots:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - dots + 1], *filter(None, [name[dots:]])])


def layer_of(path, root):
    """Return the name in LAYERS of a file of gputensor/."""
    parts = path.relative_to(root / "gputensor").parts
    return parts[0] if len(parts) > 1 else parts[0].split(".")[0]


def imports_to_the_right(root):
    """Yield imports in gputensor/ that are not from the left, or that are from the tests."""
    for path in files(root, (".py", ".pyx", ".pxd", ".pxi", ".pyi"), ("gputensor",)):
        place, layer = path.relative_to(root), layer_of(path, root)
        if layer not in RANK:
            yield f"{place}: '{layer}' has no place in the order of layers"
            continue
        for module in imported_modules(path, root):
            parts = module.split(".")
            if parts[0] == "tests":
                yield f"{place}: imports {module}; the library knows no tests"
            if parts[0] != "gputensor" or (place.as_posix(), module) in EXCEPTIONS:
                continue
            target = parts[1] if len(parts) > 1 else "__init__"
            if target != layer and RANK.get(target, len(LAYERS)) >= RANK[layer]:
                yield f"{place}: imports {module}, which is not to the left of {layer}"


def foreign_names(root):
    """Yield sources that name libcuda, CuPy or cuBLAS outside the one place that may."""
    for path in files(root, CODE, ("gputensor",)):
        place = path.relative_to(root)
        code = code_of(path)
        if re.search(r"libcuda\b", code) and place.parent != Path("gputensor/_driver/cuda"):
            yield f"{place}: names libcuda; only gputensor/_driver/cuda does"
        if re.search(r"\bcupyx?\b", code) and layer_of(path, root) != "_engines":
            yield f"{place}: names cupy; only gputensor/_engines does"
        if place.parent == Path("gputensor"):
            code = code.replace('"cublas"', "").replace("import cublas as cublas", "")  # our module
        if re.search(r"cublas", code) and layer_of(path, root) != "blas":
            yield f"{place}: names cublas; only gputensor/blas does"


def long_files(root):
    """Yield sources longer than the limit."""
    for path in files(root, (*CODE, ".md")):
        # Generated tables do not count.
        text = re.sub(
            r"<!-- tables:.*?<!-- end of tables -->", "", path.read_text("utf-8"), flags=re.S
        )
        lines = len(text.splitlines())
        if lines > MAX_LINES and not text.startswith("# Made by "):
            yield f"{path.relative_to(root)}: {lines} lines, at most {MAX_LINES} are allowed"


def large_folders(root):
    """Yield folders of the library with more lines of code than their limit."""
    for folder, most in MAX_LINES_OF.items():
        paths = files(root, CODE, (f"gputensor/{folder}",))
        lines = sum(len(path.read_text("utf-8").splitlines()) for path in paths)
        if lines > most:
            yield f"gputensor/{folder}: {lines} lines, at most {most} are allowed"


def vague_names(root):
    """Yield files and folders with meaningless names."""
    for path in files(root, (*CODE, ".md")):
        words = {part.split(".")[0].strip("_") for part in path.relative_to(root).parts}
        for name in sorted(words & VAGUE_NAMES):
            yield f"{path.relative_to(root)}: '{name}' does not say what the file owns"


def missing_stubs(root):
    """Yield extension modules of public packages with public names and no .pyi beside them."""
    for path in files(root, (".pyx",), ("gputensor",)):
        if layer_of(path, root).startswith("_"):
            continue
        sources = [path]
        if path.name == "__init__.pyx":
            sources += [path.parent / name for name in INCLUDE.findall(code_of(path))]
            sources = [source for source in sources if source.exists()]  # a build makes the others
        found = [name for source in sources for name in PUBLIC.findall(code_of(source))]
        names = sorted({"".join(name) for name in found})
        if names and not path.with_suffix(".pyi").exists():
            yield f"{path.relative_to(root)}: no .pyi for {', '.join(names[:5])}"


def missing_designs(root):
    """Yield packages without a DESIGN.md that explains the rejected alternatives."""
    for package in PACKAGES:
        design = root / "gputensor" / package / "DESIGN.md"
        if not design.exists():
            yield f"gputensor/{package}: no DESIGN.md"
        elif not re.search(r"^#+ .*why not", design.read_text(encoding="utf-8"), re.I | re.M):
            yield f"{design.relative_to(root)}: no heading 'Why not ...'"


def missing_openings(root):
    """Yield sources that do not start with a comment or docstring, except empty files and stubs."""
    for path in files(root, CODE):
        text = path.read_text(encoding="utf-8").lstrip()
        lines = [line for line in text.splitlines() if not line.startswith(("#!", "# cython:"))]
        lines = [line for line in lines if line != "#pragma once" and line.strip()]
        if not lines or path.suffix == ".pyi":
            continue
        if not lines[0].startswith(('"""', 'r"""', "# ", "//", "/*")):
            yield f"{path.relative_to(root)}: does not start with a comment or docstring"


def machine_paths(root):
    """Yield texts that contain a path of a particular machine."""
    for path in [*files(root, TEXT), *(root / name for name in ("Makefile", ".ci/run"))]:
        if not path.exists():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := MACHINE_PATHS.search(line):
                yield f"{path.relative_to(root)}:{number}: names the machine path '{found[0]}'"


def undeclared_records(root):
    """Yield loops over records whose variable has no declared type.

    Cython does not always infer the parameter of a template, and then the build fails.
    """
    for path in files(root, (".pyx", ".pxi"), ("gputensor",)):
        function = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line[:1].strip():
                function = ""
            function += line + "\n"
            loop = re.match(r" +for (\w+) in (?:each|linked)\(", line)
            if loop and not re.search(rf"\*(?:\w+, )* ?{loop[1]}\b", function):
                yield f"{path.relative_to(root)}:{number}: {loop[1]} has no declared type"


RULES = (
    undeclared_records,
    imports_to_the_right,
    foreign_names,
    long_files,
    large_folders,
    vague_names,
    missing_stubs,
    missing_designs,
    missing_openings,
    machine_paths,
)

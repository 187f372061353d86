"""Finds, opens and resolves cuBLAS and cuBLASLt once, into two tables of function pointers.

The search tries ``cuda.pathfinder`` first (it covers wheels, conda, the toolkit and libraries that
the process has loaded already), then the loader by soname. No library is loaded at import. For
Python's products, only this file has the libraries' names and symbols (native_products.h has them
for programs without Python); their headers are not needed to build.

Why not ``nvmath.bindings``: importing it took 0.5 s beyond NumPy where it was measured, more than
three times the 150 ms that a first product may cost.
"""

cdef LtTable lt_functions
cdef CublasTable cublas_functions
cdef bint lt_is_resolved = False
cdef bint cublas_is_resolved = False
cdef dict paths = {}

# In the order of the fields of LtTable and CublasTable.
LT_SYMBOLS = (
    "cublasLtGetVersion",
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulAlgoGetIds",
    "cublasLtMatmulAlgoInit",
    "cublasLtMatmulAlgoCheck",
    "cublasLtMatmulAlgoCapGetAttribute",
    "cublasLtMatmulAlgoConfigSetAttribute",
    "cublasLtMatmulAlgoConfigGetAttribute",
    "cublasLtMatmul",
)
CUBLAS_SYMBOLS = (
    "cublasCreate_v2",
    "cublasDestroy_v2",
    "cublasGetVersion_v2",
    "cublasSetStream_v2",
    "cublasSetWorkspace_v2",
    "cublasSetMathMode",
    "cublasGemmEx_64",
    "cublasGemmStridedBatchedEx_64",
    "cublasGemmBatchedEx_64",
    "cublasGemmGroupedBatchedEx_64",
)
# Functions newer than CUDA 12.0; their callers work without them.
OPTIONAL_SYMBOLS = {"cublasGemmGroupedBatchedEx_64"}
SONAMES = {
    "cublasLt": ("libcublasLt.so.13", "libcublasLt.so.12"),
    "cublas": ("libcublas.so.13", "libcublas.so.12"),
}


def _candidates(name):
    """Give the file names to try, best first."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        pass
    else:
        try:
            found = load_nvidia_dynamic_lib(name).abs_path
        except Exception:  # its error class differs between versions; sonames are tried next
            found = None
        if found:
            yield found
    yield from SONAMES[name]


cdef void* open_library(str name) except NULL:
    cdef void* library
    tried = []
    for candidate in _candidates(name):
        library = dlopen(candidate.encode(), RTLD_NOW | RTLD_LOCAL)
        if library is not NULL:
            paths[name] = candidate
            return library
        tried.append(f"{candidate}: {dlerror().decode(errors='replace')}")
    raise DeviceError(
        f"the CUDA library {name} was not found. Install it with the extra gputensor[cuda12] or "
        f"gputensor[cuda13]. Tried: " + "; ".join(tried)
    )


cdef int resolve(str name, tuple symbols, void** table) except -1:
    cdef void* library = open_library(name)
    cdef Py_ssize_t index
    for index in range(len(symbols)):
        table[index] = dlsym(library, symbols[index].encode())
        if table[index] is NULL and symbols[index] not in OPTIONAL_SYMBOLS:
            raise DeviceError(
                f"{paths[name]} has no symbol {symbols[index]}; CUDA 12.0 or newer is needed"
            )
    return 0


cdef LtTable* lt_table() except NULL:
    global lt_is_resolved
    if not lt_is_resolved:
        resolve("cublasLt", LT_SYMBOLS, <void**>&lt_functions)
        lt_is_resolved = True
    return &lt_functions


cdef CublasTable* cublas_table() except NULL:
    global cublas_is_resolved
    if not cublas_is_resolved:
        resolve("cublas", CUBLAS_SYMBOLS, <void**>&cublas_functions)
        cublas_is_resolved = True
    return &cublas_functions


def library_path(name):
    """Return the file that `name` (``"cublas"`` or ``"cublasLt"``) was opened from, or None."""
    return paths.get(name)


def library_versions():
    """Return the libraries that are in use, by name.

    Returns
    -------
    dict
        ``"cublasLt"``: the version of cuBLASLt as an integer (120900 is 12.9); ``"cublas"``: the
        file from which cuBLAS was opened. Empty before the first product on a GPU.

    Examples
    --------
    >>> sorted(library_versions()) in ([], ["cublasLt"], ["cublas", "cublasLt"])
    True
    """
    versions = {}
    if lt_is_resolved:
        versions["cublasLt"] = int(lt_functions.version())
    if cublas_is_resolved:
        versions["cublas"] = paths["cublas"]
    return versions

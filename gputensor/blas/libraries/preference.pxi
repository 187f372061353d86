"""The choice between cuBLAS and cuBLASLt.

``"auto"`` takes cuBLASLt, whose plans can be cached, and cuBLAS for products that cuBLASLt refuses.
With ``"cublas"``, products with an epilogue or scales still go to cuBLASLt.
"""

NAMES = {"auto": LIBRARY_AUTO, "cublas": LIBRARY_CUBLAS, "cublaslt": LIBRARY_LT}

cdef int chosen = LIBRARY_AUTO
cdef bint is_unread = True      # until the environment is read or a library is chosen


def from_environment(text):
    """Return the library name for a value of ``GPUTENSOR_BLAS_PREFER_CUBLASLT``.

    >>> from_environment("1"), from_environment("0"), from_environment("")
    ('cublaslt', 'cublas', 'auto')
    """
    if text == "":
        return "auto"
    if text not in ("0", "1"):
        raise ValueError(f"GPUTENSOR_BLAS_PREFER_CUBLASLT: got {text!r}; expected 0 or 1")
    return "cublaslt" if text == "1" else "cublas"


cdef int preferred_library() noexcept nogil:
    return chosen


cdef bint preference_is_unread() noexcept nogil:
    return is_unread


def preferred_blas_library(library=None):
    """Choose the library for products, or return the choice when called without an argument.

    Parameters
    ----------
    library : {"auto", "cublas", "cublaslt"}, optional
        The library for the whole process. ``"auto"``, the default, takes cuBLASLt where it can
        compute the product, and cuBLAS otherwise; ``"default"`` means the same, as in PyTorch. Each
        choice has its own plans.

    Returns
    -------
    str
        The choice now in effect.

    Raises
    ------
    ValueError
        If `library` is another name, or if no library was chosen yet and the environment variable
        ``GPUTENSOR_BLAS_PREFER_CUBLASLT`` is neither 0 nor 1.

    Examples
    --------
    >>> preferred_blas_library("cublaslt")
    'cublaslt'
    >>> preferred_blas_library("auto")
    'auto'
    """
    global chosen, is_unread
    if library is None and is_unread:
        library = from_environment(os.environ.get("GPUTENSOR_BLAS_PREFER_CUBLASLT", ""))
    if library == "default":
        library = "auto"
    if library is not None:
        if not isinstance(library, str) or library not in NAMES:
            raise ValueError(f"library: got {library!r}; expected one of {sorted(NAMES)}")
        chosen = NAMES[library]
        is_unread = False
    return {code: name for name, code in NAMES.items()}[chosen]


with contextlib.suppress(ValueError):   # raised when a product is planned, not by the import
    preferred_blas_library()

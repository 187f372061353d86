"""The names of ``torch.backends`` for products: flags that are read and set as attributes.

``gt.backends.cuda.matmul.allow_tf32 = True`` sets the same default of the process as
``gt.blas.allow_tf32(True)``; :mod:`gputensor.blas` also has scopes of a thread.
"""

from gputensor import blas
from gputensor.errors import argument_error

__all__ = ["cuda", "get_float32_matmul_precision", "set_float32_matmul_precision"]

FLAGS = (
    "allow_tf32",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
)
READ_ONLY = (
    "allow_fp16_reduced_precision_reduction_split_k",
    "allow_bf16_reduced_precision_reduction_split_k",
)
# The names of `fp32_precision`, for those of `blas.float32_matmul_precision`.
FP32_PRECISIONS = {"highest": "ieee", "high": "tf32", "medium": "bf16", "bf16x9": "bf16x9"}


class Matmul:
    """The flags of products: ``gt.backends.cuda.matmul``.

    Attributes
    ----------
    allow_tf32, allow_fp16_accumulation : bool
    allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction : bool
        A pair ``(allow, allow_split_k)`` sets both values.
    allow_fp16_reduced_precision_reduction_split_k : bool
        Read-only, as is the one of bfloat16.
    fp32_precision : {"ieee", "tf32", "bf16", "bf16x9"}

    Examples
    --------
    >>> cuda.matmul.allow_tf32 = True
    >>> cuda.matmul.fp32_precision
    'tf32'
    >>> cuda.matmul.allow_tf32 = False
    """

    __slots__ = ()

    def __getattr__(self, name):
        if name == "fp32_precision":
            return FP32_PRECISIONS[blas.float32_matmul_precision()]
        if name in FLAGS or name in READ_ONLY:
            return getattr(blas, name)()
        raise AttributeError(f"backends.cuda.matmul has no flag {name!r}")

    def __setattr__(self, name, value):
        if name == "fp32_precision":
            if value not in FP32_PRECISIONS.values():
                rule = f"one of {', '.join(FP32_PRECISIONS.values())}"
                raise argument_error(ValueError, name, value, rule)
            blas.float32_matmul_precision(value)
        elif name in FLAGS:
            if value is None:  # it would read the flag
                raise argument_error(TypeError, name, value, "a bool")
            getattr(blas, name)(value)
        else:
            kind = "cannot be set" if name in READ_ONLY else "is not a flag"
            raise AttributeError(f"backends.cuda.matmul: {name!r} {kind}")

    def __dir__(self):
        return sorted((*FLAGS, *READ_ONLY, "fp32_precision"))


class Cuda:
    """The names of ``torch.backends.cuda``: ``gt.backends.cuda``.

    Examples
    --------
    >>> cuda.is_built()
    True
    """

    matmul = Matmul()
    preferred_blas_library = staticmethod(blas.preferred_blas_library)

    @staticmethod
    def is_built():
        """Return True: every build of the library supports CUDA devices."""
        return True


cuda = Cuda()


def get_float32_matmul_precision():
    """Return the precision of float32 products: "highest", "high", "medium" or "bf16x9".

    >>> get_float32_matmul_precision()
    'highest'
    """
    return blas.float32_matmul_precision()


def set_float32_matmul_precision(precision):
    """Set the precision of float32 products, for the whole process.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        float32, TF32, or bfloat16 products; see :func:`gputensor.blas.float32_matmul_precision`.

    Examples
    --------
    >>> set_float32_matmul_precision("high")
    >>> get_float32_matmul_precision()
    'high'
    >>> set_float32_matmul_precision("highest")
    """
    if precision is None:  # it would read the setting
        raise argument_error(TypeError, "precision", precision, "a str")
    blas.float32_matmul_precision(precision)


def __dir__():
    return sorted(__all__)

"""ATen operators that reduce, scan, sort or count."""

from gputensor.importers.aten.table import aten, axes_of, dtype_of
from gputensor.importers.public_functions import gt

__all__ = []


def _wide(x, dtype):
    """Return x in the dtype in which PyTorch sums: int64 for all integers and bool."""
    if dtype is not None:
        return x.astype(dtype_of(dtype), copy=False)
    is_float = gt.isdtype(x.dtype, ("real floating", "complex floating"))
    return x if is_float else x.astype("int64", copy=False)


def _total(name):
    def run(x, dims=None, keepdim=False, *, dtype=None):
        return getattr(gt, name)(_wide(x, dtype), axis=axes_of(dims), keepdims=keepdim)

    return run


def _found(name):
    def run(x, dims=None, keepdim=False):
        return getattr(gt, name)(x, axis=axes_of(dims), keepdims=keepdim)

    return run


for _name in ("nansum", "prod", "sum"):
    aten(_name)(_total(_name))
for _name in ("all", "amax", "amin", "any", "argmax", "argmin", "logsumexp"):
    aten(_name)(_found(_name))


@aten("mean")
def mean(x, dims=None, keepdim=False, *, dtype=None):
    x = x if dtype is None else x.astype(dtype_of(dtype), copy=False)
    return gt.mean(x, axis=axes_of(dims), keepdims=keepdim)


@aten("nanmean")
def nanmean(x, dims=None, keepdim=False, *, dtype=None):
    x = x if dtype is None else x.astype(dtype_of(dtype), copy=False)
    return gt.nanmean(x, axis=axes_of(dims), keepdims=keepdim)


def _moment(name):
    """The overloads: (x, unbiased), (x, dims, unbiased, keepdim), (x, dims, correction=...)."""

    def run(x, dims=None, unbiased=True, keepdim=False, *, correction=None):
        if isinstance(dims, bool):
            dims, unbiased = None, dims
        correction = int(unbiased) if correction is None else correction
        return getattr(gt, name)(x, axis=axes_of(dims), correction=correction, keepdims=keepdim)

    return run


for _name in ("std", "std_mean", "var", "var_mean"):
    aten(_name)(_moment(_name))


def _extreme(name, both):
    def run(x, dim=None, keepdim=False):
        if dim is None:
            return getattr(gt, name)(x)
        if isinstance(dim, gt.Tensor):
            return both(x, dim)
        place = getattr(gt, f"arg{name}")(x, axis=dim, keepdims=keepdim)
        return getattr(gt, name)(x, axis=dim, keepdims=keepdim), place

    return run


aten("max")(_extreme("max", gt.maximum))
aten("min")(_extreme("min", gt.minimum))


@aten("aminmax")
def aminmax(x, *, dim=None, keepdim=False):
    return tuple(function(x, axis=dim, keepdims=keepdim) for function in (gt.min, gt.max))


@aten("count_nonzero")
def count_nonzero(x, dims=None):
    return gt.count_nonzero(x, axis=axes_of(dims))


def _middle(name):
    def run(x, dim=None, keepdim=False):
        # PyTorch takes the lower one of two middle elements.
        if dim is None:
            return getattr(gt, name)(x.reshape(-1), dim=0)[0]
        return tuple(getattr(gt, name)(x, dim=dim, keepdim=keepdim))

    return run


aten("median")(_middle("median"))
aten("nanmedian")(_middle("nanmedian"))


@aten("mode")
def mode(x, dim=-1, keepdim=False):
    return tuple(gt.mode(x, dim=dim, keepdim=keepdim))


@aten("kthvalue")
def kthvalue(x, k, dim=-1, keepdim=False):
    return tuple(gt.kthvalue(x, k, dim=dim, keepdim=keepdim))


@aten("quantile")
def quantile(x, q, dim=None, keepdim=False, *, interpolation="linear"):
    return gt.quantile(x, q, dim, method=interpolation, keepdims=keepdim)


@aten("nanquantile")
def nanquantile(x, q, dim=None, keepdim=False, *, interpolation="linear"):
    return gt.nanquantile(x, q, dim, method=interpolation, keepdims=keepdim)


# ---- scans


@aten("cumsum")
def cumsum(x, dim, *, dtype=None):
    return gt.cumsum(_wide(x, dtype), axis=dim)


@aten("cumprod")
def cumprod(x, dim, *, dtype=None):
    return gt.cumprod(_wide(x, dtype), axis=dim)


@aten("logcumsumexp _logcumsumexp")
def logcumsumexp(x, dim):
    return gt.logcumsumexp(x, dim)


@aten("cummax")
def cummax(x, dim):
    return tuple(gt.cummax(x, dim))


@aten("cummin")
def cummin(x, dim):
    return tuple(gt.cummin(x, dim))


# ---- order


@aten("topk")
def topk(x, k, dim=-1, largest=True, sorted=True):
    return tuple(gt.topk(x, k, dim, largest=largest))


@aten("sort")
def sort(x, dim=-1, descending=False, *, stable=None):
    order = gt.argsort(x, axis=dim, descending=descending)
    return gt.take_along_axis(x, order, axis=dim), order


@aten("argsort")
def argsort(x, dim=-1, descending=False, *, stable=None):
    return gt.argsort(x, axis=dim, descending=descending)


@aten("msort")
def msort(x):
    return gt.sort(x, axis=0)


def _counted(found, out_int32):
    return found.astype("int32") if out_int32 else found


@aten("searchsorted")
def searchsorted(rows, x, *, out_int32=False, right=False, side=None, sorter=None):
    side = side or ("right" if right else "left")
    return _counted(gt.searchsorted(rows, x, side, sorter), out_int32)


@aten("bucketize")
def bucketize(x, boundaries, *, out_int32=False, right=False):
    return _counted(gt.bucketize(x, boundaries, right=right), out_int32)


@aten("bincount")
def bincount(x, weights=None, minlength=0):
    return gt.bincount(x, weights, minlength)


@aten("histc")
def histc(x, bins=100, min=0, max=0):
    return gt.histc(x, bins, min, max)


@aten("isin")
def isin(x, tests, *, assume_unique=False, invert=False):
    return gt.isin(x, tests, assume_unique=assume_unique, invert=invert)


@aten("allclose")
def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return gt.all(gt.isclose(x, y, rtol, atol, equal_nan))


@aten("equal")
def equal(x, y):
    return x.shape == y.shape and bool(gt.all(gt.equal(x, y)))


@aten("trace")
def trace(x):
    return gt.sum(_wide(gt.diagonal(x), None))


@aten("corrcoef")
def corrcoef(x):
    return gt.corrcoef(x)


@aten("cov")
def cov(x, *, correction=1, fweights=None, aweights=None):
    return gt.cov(x, ddof=correction)

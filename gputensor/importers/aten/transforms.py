"""ATen operators of Fourier transforms and of linear algebra."""

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten.table import aten
from gputensor.importers.public_functions import gt

__all__ = []


def _transform(name):
    def run(x, size=None, dims=None, norm=None):
        how = {} if dims is None else {"dim": tuple(dims) if isinstance(dims, list) else dims}
        return getattr(gt.fft, name)(x, size, norm=norm or "backward", **how)

    return run


for _name in (
    "fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2", "irfftn",
    "rfft", "rfft2", "rfftn",
):  # fmt: skip
    aten(f"fft_{_name}")(_transform(_name))


@aten("fft_fftshift")
def fftshift(x, dims=None):
    return gt.fft.fftshift(x, dim=None if dims is None else tuple(dims))


@aten("fft_ifftshift")
def ifftshift(x, dims=None):
    return gt.fft.ifftshift(x, dim=None if dims is None else tuple(dims))


# How the three numbered norms of PyTorch's internal transforms scale a forward transform.
_FORWARD = "backward", "ortho", "forward"
_BACKWARD = "forward", "ortho", "backward"


@aten("_fft_c2c")
def complex_to_complex(x, dims, norm, forward):
    function = gt.fft.fftn if forward else gt.fft.ifftn
    return function(x, dim=tuple(dims), norm=(_FORWARD if forward else _BACKWARD)[norm])


@aten("_fft_r2c")
def real_to_complex(x, dims, norm, onesided):
    if onesided:
        return gt.fft.rfftn(x, dim=tuple(dims), norm=_FORWARD[norm])
    return gt.fft.fftn(x, dim=tuple(dims), norm=_FORWARD[norm])


@aten("_fft_c2r")
def complex_to_real(x, dims, norm, last):
    sizes = [x.shape[dim] for dim in dims[:-1]] + [last]
    return gt.fft.irfftn(x, tuple(sizes), dim=tuple(dims), norm=_BACKWARD[norm])


@aten("stft")
def stft(x, n_fft, hop_length=None, win_length=None, window=None, *others, **options):
    """Exported programs pad before this call: the form that pads itself has `center` first."""
    center, mode = False, "reflect"
    if len(others) > 0 and isinstance(options.get("return_complex"), bool) and len(others) > 3:
        center, mode, *others = others
    names = "normalized", "onesided", "return_complex"
    how = {**dict(zip(names, others, strict=False)), **options}
    how = {name: how[name] for name in ("normalized", "onesided") if how.get(name) is not None}
    return gt.stft(x, n_fft, hop_length, win_length, window, center, pad_mode=mode, **how)


# ---- linear algebra

for _name in (
    "cholesky", "det", "eigh", "eigvalsh", "inv", "matrix_exp", "matrix_power", "pinv", "qr",
    "slogdet", "svdvals", "tensorinv", "tensorsolve",
):  # fmt: skip
    aten(f"linalg_{_name}")(getattr(gt.linalg, _name))
aten("det")(gt.linalg.det)
aten("inverse")(gt.linalg.inv)
aten("matrix_power")(gt.linalg.matrix_power)
aten("matrix_exp")(gt.linalg.matrix_exp)


@aten("cholesky")
def cholesky(x, upper=False):
    found = gt.linalg.cholesky(x)
    return gt.swapaxes(found, -1, -2) if upper else found


@aten("linalg_cholesky_ex")
def cholesky_ex(x, *, upper=False, check_errors=False):
    return cholesky(x, upper), None


@aten("linalg_inv_ex")
def inv_ex(x, *, check_errors=False):
    return gt.linalg.inv(x), None


@aten("_linalg_det")
def internal_det(x):
    return gt.linalg.det(x), None, None


@aten("_linalg_slogdet")
def internal_slogdet(x):
    return *gt.linalg.slogdet(x), None, None


@aten("linalg_solve")
def solve(a, b, *, left=True):
    if not left:
        a, b = (gt.swapaxes(one, -1, -2) for one in (a, b))
        return gt.swapaxes(gt.linalg.solve(a, b), -1, -2)
    return gt.linalg.solve(a, b)


@aten("_linalg_solve_ex")
def solve_ex(a, b, *, left=True, check_errors=False):
    return solve(a, b, left=left), None, None, None


@aten("_linalg_eigh")
def internal_eigh(x, lower="L", compute_v=True):
    if lower != "L":
        got = Described("UPLO='U'")
        raise argument_error(ModelError, "linalg_eigh", got, "the lower triangle")
    return tuple(gt.linalg.eigh(x))


@aten("linalg_svd")
def svd(x, full_matrices=True, *, driver=None):
    return tuple(gt.linalg.svd(x, full_matrices))


@aten("_linalg_svd")
def internal_svd(x, full_matrices=False, compute_uv=True, *, driver=None):
    return tuple(gt.linalg.svd(x, full_matrices))

"""Programs of SciPy, scikit-learn, einops, xarray and Dask on tensors, from end to end.

test_array_libraries.py runs them in a separate process, because SciPy reads SCIPY_ARRAY_API when it
is imported. Each result has to be a tensor (`Tensor` in its type or its parts), and to have the
values that the same program gives on NumPy arrays.
"""

import warnings

import numpy as np
import pytest

import gputensor as gt

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(3)
DATA = {
    "x": RNG.random((6, 5)),
    "v": RNG.random(40),
    "w": RNG.random(40),
    "n": RNG.integers(0, 4, 30),
}


@pytest.fixture(autouse=True)
def on_host():
    with gt.Device("host"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensors():
    return {name: gt.asarray(one) for name, one in DATA.items()}


def parts(result):
    """The tensors or arrays in a result: a tuple, a record or a single one."""
    if isinstance(result, (gt.Tensor, np.ndarray, np.generic, float, int)):
        return [result]
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in parts(one)]
    return [part for one in vars(result).values() for part in parts(one)]


def compare(ours, theirs, tolerance=1e-6):
    ours, theirs = parts(ours), parts(theirs)
    assert ours and len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, (gt.Tensor, float, int, np.generic)), type(one)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), tolerance, tolerance)


SCIPY = {
    "special": """logsumexp(v) softmax(x,axis=1) log_softmax(x) erf(v) expit(v) gammaln(v)
        xlogy(v,w) entr(v)""",
    "stats": """zscore(x) skew(v) kurtosis(v) moment(v,2) gmean(v) hmean(v) pmean(v,2)
        variation(v) sem(v) zmap(v,w) gzscore(v) trim_mean(v,0.1) ttest_1samp(v,0.5) ttest_ind(v,w)
        ttest_rel(v,w) pearsonr(v,w).statistic skewtest(v) kurtosistest(v) normaltest(v)
        jarque_bera(v) bartlett(v,w) chisquare(v) power_divergence(v) entropy(v) circmean(v)
        circvar(v) circstd(v) mode(n) rankdata(v) iqr(v) tmean(v,(0,1)) tvar(v,(0,1)) lmoment(v)
        combine_pvalues(v) directional_stats(x).mean_direction mannwhitneyu(v,w) wilcoxon(v)""",
    "signal": """detrend(x) hilbert(v) fftconvolve(v,w) oaconvolve(v,w) convolve(v,w)
        savgol_filter(v,5,2)""",
    "fft": "fft(v) rfft(v) ifftn(x) dct(v) fftshift(v)",
    "integrate": "trapezoid(v) cumulative_trapezoid(v) cumulative_simpson(v)",
    "optimize": "rosen(v) rosen_der(v)",
    "spatial.distance": "pdist(x)",
    "cluster.vq": "whiten(x) vq(x,x[:2])",
    "cluster.hierarchy": "linkage(x)",
    "ndimage": "gaussian_filter(x,1)",
}


@pytest.mark.parametrize(("part", "calls"), SCIPY.items())
def test_scipy_keeps_tensors(part, calls):
    pytest.importorskip("scipy", minversion="1.17")
    module = pytest.importorskip(f"scipy.{part}")
    for call in calls.split():
        ours, theirs = (
            eval(f"m.{call}", tensors() | {"m": module}),
            eval(f"m.{call}", DATA | {"m": module}),
        )
        assert any(isinstance(one, gt.Tensor) for one in parts(ours)), call
        compare(ours, theirs)


def estimators():
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import StandardScaler

    return {
        "LinearDiscriminantAnalysis": lambda X, y: (
            LinearDiscriminantAnalysis().fit(X, y).predict(X)
        ),
        "PCA": lambda X, y: abs(PCA(2, svd_solver="full").fit(X).transform(X)),
        "Ridge": lambda X, y: Ridge(solver="svd").fit(X, X[:, 0]).predict(X),
        "GaussianNB": lambda X, y: GaussianNB().fit(X, y).predict_proba(X),
        "LogisticRegression": lambda X, y: LogisticRegression().fit(X, y).predict(X),
        "StandardScaler": lambda X, y: StandardScaler().fit_transform(X),
    }


@pytest.mark.parametrize(
    "name",
    ["LinearDiscriminantAnalysis", "PCA", "Ridge", "GaussianNB", "LogisticRegression"]
    + ["StandardScaler"],
)
def test_estimators_with_dispatch_keep_tensors(name):
    sklearn = pytest.importorskip("sklearn", minversion="1.9")
    X = RNG.normal(size=(60, 5))
    y = (X[:, 0] > 0).astype("int64")
    run = estimators()[name]
    theirs = run(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        ours = run(gt.asarray(X), gt.asarray(y))
    assert isinstance(ours, gt.Tensor)
    compare(ours, theirs, 1e-4)


def test_einops_accepts_tensors():
    einops = pytest.importorskip("einops")
    x, array = gt.asarray(DATA["x"]), DATA["x"]
    compare(einops.rearrange(x, "a (b c) -> c (a b)", b=1), einops.rearrange(array, "a b -> b a"))
    for how in ("mean", "sum", "max", "min", "prod"):
        compare(einops.reduce(x, "a b -> b", how), einops.reduce(array, "a b -> b", how))
    compare(einops.repeat(x, "a b -> a b 3"), einops.repeat(array, "a b -> a b 3"))
    compare(einops.einsum(x, x, "a b, c b -> a c"), array @ array.T)
    packed, shapes = einops.pack([x, x[0]], "* b")
    compare(packed, np.vstack([array, array[:1]]))
    compare(einops.unpack(packed, shapes, "* b")[0], array)
    assert einops.asnumpy(x).tolist() == array.tolist()


XARRAY = """
    d.mean('x') d.sum() d.std('x') d.var('y',ddof=1) d.max('x') d.min() d.median('x') d+1 d*d
    d-d.mean('x') d.isel(x=slice(1,3)) d.sel(y='b') np.sqrt(d) d.where(d>.5,0.) d.clip(.2,.8)
    d.round(2) d.shift(x=1) d.roll(x=1) d.pad(x=1,constant_values=0) d.groupby('g').mean()
    d.groupby('g').sum() d.transpose('y','x') d.stack(z=('x','y')) xr.concat([d,d],'x')
    d.cumsum('x') d.diff('x') d.dot(d,dim='x') d.fillna(0.) d.argmax('x') d.coarsen(x=2).mean()
    d.rolling(x=3).mean() d.rolling(x=2,min_periods=1).sum() d.rolling(x=3,center=True).max()
    d.rolling(x=2).construct('w').mean('w') d.coarsen(x=4,boundary='trim').mean()
    d.pad(x=2,mode='mean') d.pad(x=2,mode='maximum') d.pad(x=2,mode='linear_ramp',end_values=3)
    d.idxmax('x')
    d.sortby('x') d.expand_dims('z') d.astype('float32') d.prod('x') xr.where(d>.5,d,0.)
"""


def test_xarray_keeps_tensors():
    xr = pytest.importorskip("xarray")
    array = DATA["x"][:, :4]
    coords = {"x": np.arange(6), "y": list("abcd"), "g": ("x", [0, 0, 1, 1, 2, 2])}
    theirs = xr.DataArray(array, dims=("x", "y"), coords=coords)
    ours = xr.DataArray(gt.asarray(array), dims=("x", "y"), coords=coords)
    for text in XARRAY.split():
        one, other = (eval(text, {"d": d, "xr": xr, "np": np}) for d in (ours, theirs))
        assert isinstance(one.data, gt.Tensor), text
        np.testing.assert_allclose(one.data.numpy(), other.data, 1e-6, err_msg=text)


DASK = """
    d d+1 d+d d.sum() d.sum(0) d.mean() d.std() d.var(0) d.max() d.min(1) d.argmax(0) da.exp(d)
    np.sqrt(d) d@d.T da.tensordot(d,d.T,axes=1) da.concatenate([d,d]) da.stack([d,d])
    d[3:20,::2] d[d[:,0]>.5] d.T da.where(d>.5,d,0) d.astype('float32') d.cumsum(0)
    da.linalg.norm(d) d.map_blocks(lambda(b):b*2) da.histogram(d,bins=5,range=(0,1))[0]
    d.rechunk((40,30)) da.einsum('ij,kj->ik',d,d) da.clip(d,.2,.8) d.round(1) da.unique(d[:,0])
    da.isnan(d) d.prod(0) da.median(d,axis=0) da.fft.fft(d.rechunk((10,30))) da.diff(d,axis=0)
    d.any() da.flip(d,0) da.roll(d,3,0) da.pad(d,1) da.take(d,[1,2],axis=0)
    da.broadcast_to(d,(2,40,30)) da.cov(d) da.average(d,axis=0)
    da.bincount((d[:,0]*5).astype('int64'),minlength=5) da.topk(d,3,axis=0)
"""


def test_dask_keeps_tensors_in_chunks():
    dask = pytest.importorskip("dask", minversion="2025.5")
    da = pytest.importorskip("dask.array")
    array = RNG.random((40, 30))
    ours = da.from_array(gt.asarray(array), chunks=(10, 15), asarray=False)
    theirs = da.from_array(array, chunks=(10, 15))
    with dask.config.set(scheduler="synchronous"):
        for text in DASK.split():
            text = text.replace("lambda(b)", "lambda b")
            one, other = (
                eval(text, {"d": d, "da": da, "np": np}).compute() for d in (ours, theirs)
            )
            assert isinstance(one, gt.Tensor), text
            np.testing.assert_allclose(one.numpy(), other, 1e-6, 1e-12, err_msg=text)


def test_dask_knows_sizes_and_the_way_to_numpy():
    pytest.importorskip("dask", minversion="2025.5")
    da = pytest.importorskip("dask.array")
    from dask.sizeof import sizeof

    array = RNG.random((12, 6))
    d = da.from_array(gt.asarray(array), chunks=(5, 6), asarray=False)
    assert sizeof(gt.asarray(array)) == array.nbytes
    there = d.to_backend("numpy").compute()
    assert isinstance(there, np.ndarray) and (there == array).all()
    flat = da.from_array(gt.asarray(array[:, 0]), chunks=12, asarray=False)
    found = da.percentile(flat, [25, 50]).compute()
    np.testing.assert_allclose(found.numpy(), np.percentile(array[:, 0], [25, 50]), 1e-6)
    for order in "CF":
        bits = d.rechunk((4, 3)).view("int32", order=order)
        assert isinstance(bits._meta, gt.Tensor)
        expected = array.view("int32") if order == "C" else array.T.copy().view("int32").T
        np.testing.assert_array_equal(bits.compute().numpy(), expected)


def test_array_api_compat_takes_the_namespace():
    compat = pytest.importorskip("array_api_compat")
    x = gt.asarray(DATA["x"])
    assert compat.is_array_api_obj(x) and compat.array_namespace(x) is gt
    assert compat.device(x) == x.device and compat.size(x) == 30
    assert compat.to_device(x, "host").tolist() == x.tolist()

"""Tests on a simulated GPU; each runs once with immediate and once with deferred work.

The fake driver and BLAS must be in the environment before a process starts. So a group of tests
runs in its own child: a pytest process with that environment, which reports its results to this
one. pytest collects, selects and shows these tests like any others.

A group is the tests of one file with the same order of work and the same variables of the mark
``process``; a test whose mark names no variable, or has the argument ``"own"``, runs in a process
of its own. A test marked ``orders`` runs only in those orders.
A failure report contains the seed of the order of work; ``FAKE_CUDA_SEED`` sets it.
"""

import gc
import json
import os
from pathlib import Path

import pytest

from tests.support import kernel_compiler, simulated_gpu
from tests.support.processes.starter import Starter, scratch_file
from tests.support.products import skinny_on_cpu

HERE = Path(__file__).resolve().parent
ORDERS = ("at-once", "deferred")
REPORTS = "FAKE_CUDA_REPORTS"  # the file that a child writes its reports to
IS_CHILD = REPORTS in os.environ


def compile_source(source, *given):
    """Compile a kernel for the CPU; products of few rows run cluster by cluster."""
    has_clusters = "few_rows/few_rows.cuh" in source
    return (skinny_on_cpu if has_clusters else kernel_compiler).compile_source(source, *given)


def install_compiler():
    """Replace NVRTC: compile kernels for the CPU from now on."""
    kernel_compiler.install()
    kernel_compiler.nvrtc.compile_source = compile_source


if IS_CHILD:
    install_compiler()


def pytest_generate_tests(metafunc):
    mark = metafunc.definition.get_closest_marker("orders")
    metafunc.parametrize("order", mark.args if mark else ORDERS, indirect=True)


@pytest.fixture(autouse=True)
def order(request):
    """The order in which the driver runs work. Restores the library's settings after each test."""
    yield request.param
    from gputensor import blas, memory
    from gputensor.blas.kernels import padding
    from gputensor.blas.tuning import tunable

    os.environ.pop("FAKE_CUBLAS_LOG", None)
    os.environ.pop("FAKE_CUBLAS_OLD", None)
    os.environ.pop("FAKE_CUBLAS_WHOLE", None)
    install_compiler()
    blas.preferred_blas_library("auto")
    padding("auto")
    tunable.tuning_enable(False)
    tunable.enable(False)
    tunable.clear()
    blas.forget_plans()
    gc.collect()
    memory.empty_cache("cuda")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            # One worker runs both orders, one after the other, so that no kernel is compiled twice.
            path, _, own = group_of(item)
            item.add_marker(pytest.mark.xdist_group(f"{path.stem}-{own}"))
            if kernel_compiler.COMPILER is None:
                item.add_marker(pytest.mark.skip(reason="needs g++ on the path"))
            elif not IS_CHILD:
                # A whole group runs in the turn of its first test; the child has the time limit.
                item.add_marker(pytest.mark.timeout(0))


def pytest_runtest_logreport(report):
    if IS_CHILD:
        data = report._to_json()
        with open(os.environ[REPORTS], "a") as file:
            file.write(json.dumps(data) + "\n")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    """Report the results of a test from the child that ran its group."""
    if IS_CHILD or HERE not in item.path.parents or kernel_compiler.COMPILER is None:
        return None
    known = item.session.stash.setdefault(KNOWN, {})
    if item.nodeid not in known:
        known |= run_group(item)
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in known.pop(item.nodeid):
        report.nodeid = item.nodeid
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


KNOWN = pytest.StashKey()
GROUPS = pytest.StashKey()
STARTER = pytest.StashKey()
# Children share these, but not gputensor, which reads some variables when it is imported.
SHARED = ("asyncio", "ml_dtypes", "numpy.testing", "pytest", "scipy.special")
# Plugins that no test here needs; loading them takes a third of a child's start time.
UNUSED = ("anyio", "benchmark", "cacheprovider", "hypothesispytest")


def group_of(item):
    """The key of a test's group: its file, order, and variables (or its name if it runs alone)."""
    mark = item.get_closest_marker("process")
    own = "-".join(f"{name}={text}" for name, text in mark.kwargs.items()) if mark else ""
    if mark and (mark.args or not mark.kwargs):
        own = item.name
    return item.path, item.callspec.params["order"], own


def groups_of(session):
    """All groups of a session, computed once: {key: tests}."""
    if GROUPS not in session.stash:
        groups = session.stash.setdefault(GROUPS, {})
        for item in session.items:
            if HERE in item.path.parents:
                groups.setdefault(group_of(item), []).append(item)
    return session.stash[GROUPS]


def name_of(item):
    """The name of a test on a command line: pytest-xdist appends the group to that of the item."""
    mark = item.get_closest_marker("xdist_group")
    return item.nodeid.removesuffix(f"@{mark.args[0]}")


def starter(config):
    """Return what starts the children of a session."""
    if STARTER not in config.stash:
        made = Starter(SHARED, environment=simulated_gpu.environment())
        config.stash[STARTER] = made
        config.add_cleanup(made.close)
    return config.stash[STARTER]


def run_group(first):
    """Run the group of a test in a child; return the reports of each of its tests."""
    if hasattr(first.config, "workerinput") and not first.config.getoption("loadgroup"):
        group = [first]  # without --dist loadgroup, a worker has only some tests of the group
    else:
        group = groups_of(first.session)[group_of(first)]
    names = {name_of(item): item.nodeid for item in group}
    mark = first.get_closest_marker("process")
    seed = None
    if first.callspec.params["order"] == "deferred":
        seed = os.environ.get("FAKE_CUDA_SEED") or int.from_bytes(os.urandom(3), "little")
    with scratch_file() as path:
        environment = simulated_gpu.environment(seed, **(mark.kwargs if mark else {}))
        limit = first.config.getoption("--timeout", None)
        arguments = [*(f"-pno:{name}" for name in UNUSED), *names]
        result = starter(first.config).run(
            "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))",
            *arguments, *([f"--timeout={limit}"] if limit else []),
            environment=environment | {REPORTS: str(path)}, folder=simulated_gpu.ROOT,
        )  # fmt: skip
        lines = path.read_text().splitlines()
    reports = {name: [] for name in names.values()}
    for line in lines:
        report = pytest.TestReport._from_json(json.loads(line))
        if isinstance(report.longrepr, list):  # the place and reason of a skip
            report.longrepr = tuple(report.longrepr)
        if report.failed:
            report.sections.append(("simulated GPU", f"seed of the order of work: {seed}"))
        reports[names[report.nodeid]].append(report)
    for item in group:
        if [report.when for report in reports[item.nodeid]][-1:] != ["teardown"]:
            reports[item.nodeid].append(unfinished(item, result))
    return reports


def unfinished(item, result):
    """The report of a test that the child did not finish."""
    status, output = result
    text = f"the child ended with {status}\n{output[-8000:]}"
    return pytest.TestReport(
        item.nodeid, item.location, {}, outcome="failed", longrepr=text, when="call"
    )

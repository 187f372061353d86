"""The CUDA filler against a driver library made for tests (fake_libcuda.cpp).

The library is compiled here; each case runs in a process of its own, because a process loads the
driver once.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("fake_libcuda"),  # built once
    pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler on the path"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    output = tmp_path_factory.mktemp("fake") / "libcuda-fake.so"
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_paths()['include']}"]
    source = ROOT / "tests/support/fakes/fake_libcuda.cpp"
    subprocess.run(
        [COMPILER, "-std=c++17", "-O0", "-shared", "-fPIC", "-fvisibility=hidden"]
        + [*includes, "-o", str(output), str(source), "-ldl"],
        check=True,
    )
    return output


def without(library, symbol, folder):
    """Return a copy of the library that exports the symbol under another name."""
    name = f"\0{symbol}\0".encode()
    data = library.read_bytes()
    assert name in data
    copy = folder / library.name
    copy.write_bytes(data.replace(name, name[:1] + b"_" + name[2:]))
    return copy


def run(library, *command, **settings):
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "FAKE_"))
    }
    environment |= {"GPUTENSOR_LIBCUDA": str(library), "PYTHONPATH": str(ROOT)}
    environment |= {key: str(value) for key, value in settings.items()}
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True
    )


def printed_by(library, code, **settings):
    prelude = "from gputensor._driver import cuda, registry\n"
    result = run(library, "-c", prelude + code, **settings)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def message(library, code="cuda.device_info(0)", **settings):
    result = run(library, "-c", f"from gputensor._driver import cuda, registry\n{code}", **settings)
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("gputensor.errors.DeviceError: "), result.stderr
    return last.split(": ", 1)[1]


@pytest.mark.parametrize("settings", [{}, {"FAKE_CUDA_SEED": 5}], ids=["at-once", "deferred"])
def test_the_conformance_tests_pass_through_the_cuda_filler(library, settings):
    files = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests/conformance/driver").glob("test_*.py"))
    ]
    result = run(
        library, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *files, "-k", "cuda", **settings
    )
    assert result.returncode == 0, result.stdout
    assert "needs a CUDA device" not in result.stdout


@pytest.mark.parametrize("has_access", [0, 1], ids=["through-the-host", "direct"])
def test_two_devices_are_peers(library, has_access):
    result = run(
        library, "-m", "pytest", "-p", "no:cacheprovider", "-rs",
        "tests/conformance/driver/test_peers.py", "-k", "cuda",
        FAKE_CUDA_COUNT=2, FAKE_CUDA_PEERS=has_access, FAKE_CUDA_SEED=8,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
    assert "needs two CUDA devices" not in result.stdout


def test_pages_of_a_device_are_opened_to_its_peers(library):
    """Pages mapped before the first copy and after it; if the driver refuses, the page stays."""
    code = """
import os
from tests.support.driver_calls import Calls
one, two = Calls(0), Calls(1)
unit = two.granularity
va = two.make("va_reserve", 3 * unit, 0)
pages = [two.make("page_create", unit) for _ in range(3)]
print(two.page_map(va, unit, pages[0]), os.environ.get("FAKE_CUDA_SET_ACCESS"))
source = one.make("mem_alloc", unit)
print(one.copy_to_peer(va, 1, source, unit, 0), two.page_map(va + unit, unit, pages[1]))
os.environ["FAKE_CUDA_NO_PEER_ACCESS"] = "1"
print(two.page_map(va + 2 * unit, unit, pages[2]), two.page_unmap(va, 3 * unit))
"""
    assert printed_by(library, code, FAKE_CUDA_COUNT=2).split() == ["0", "None", "0", "0", "0", "0"]


def test_the_conformance_tests_pass_with_launch_blocking(library):
    files = [f"tests/conformance/driver/test_{name}.py" for name in ("work", "capture")]
    result = run(
        library, "-m", "pytest", "-p", "no:cacheprovider", *files, "-k", "cuda",
        CUDA_LAUNCH_BLOCKING=1, FAKE_CUDA_SEED=6,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout


def test_launch_blocking_leaves_no_work_pending(library):
    code = """
from tests.support.driver_calls import Calls
calls = Calls(0)
stream, ptr = calls.make("stream_create", 0), calls.make("mem_alloc", 1 << 20)
pending = 0
for value in range(50):
    calls.fill_async(ptr, value, 4, 1 << 18, stream)
    pending += calls.stream_query(stream) != 0
print(pending)
"""
    assert printed_by(library, code, CUDA_LAUNCH_BLOCKING=1, FAKE_CUDA_SEED=1) == "0"
    assert int(printed_by(library, code, FAKE_CUDA_SEED=1)) > 0


def test_device_info_reads_every_fact_by_its_number(library):
    text = printed_by(library, "print(cuda.device_info(0))")
    for fact in [
        "'name': 'Fake GPU'",
        "'uuid': 'GPU-00112233-4455-6677-8899-aabbccddeeff'",
        "'pci': '0000:0A:00.0'",
        "'compute_capability': (9, 0)",
        "'driver_version': (12, 8)",
        "'multiprocessors': 132",
        "'l2_nbytes': 1038",
        "'shared_nbytes_per_block': 1097",
        "'threads_per_block': 1001",
        "'warp_size': 1010",
        "'registers_per_multiprocessor': 1082",
        f"'total_memory': {1 << 30}",
    ]:
        assert fact in text


def test_symbols_are_found_without_cu_get_proc_address(library, tmp_path):
    library = without(library, "cuGetProcAddress_v2", tmp_path)
    assert printed_by(library, "print(registry.device_name(0))") == "cuda"


def test_a_missing_symbol_is_named_with_the_driver_version(library, tmp_path):
    library = without(library, "cuMemMap", tmp_path)
    text = message(library, FAKE_CUDA_VERSION=11040)
    assert "lacks cuMemMap (it supports CUDA 11.4)" in text
    assert printed_by(library, "print(cuda.cuda_device_count())") == "0"


def test_a_missing_library_is_one_sentence():
    text = message("/nowhere/libcuda.so.1")
    assert text.startswith("no CUDA: the driver library cannot be loaded (/nowhere/libcuda.so.1")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (34, "stub"),
        (100, "CUDA_ERROR_NO_DEVICE"),
        (802, "fabric manager"),
        (803, "driver update"),
        (805, "CUDA_ERROR_MPS_CONNECTION_FAILED"),
        (999, "kernel module"),
    ],
)
def test_a_failing_initialisation_says_why(library, status, words):
    text = message(library, FAKE_CUDA_INIT=status)
    assert text.startswith("cuInit failed: ") and words in text
    count = printed_by(library, "print(registry.cuda_device_count())", FAKE_CUDA_INIT=status)
    assert count == "0"


def test_a_driver_that_is_too_old_is_refused(library):
    assert "supports CUDA 11.8; gputensor needs 12.0" in message(library, FAKE_CUDA_VERSION=11080)


def test_a_device_that_is_not_there_is_refused_with_what_is_visible(library):
    text = message(library, "registry.device_name(3)", CUDA_VISIBLE_DEVICES="7")
    assert text == "there is no CUDA device 3: this process sees 1 (CUDA_VISIBLE_DEVICES=7)"
    assert printed_by(library, "print(cuda.cuda_device_count())", FAKE_CUDA_COUNT=0) == "0"


def test_a_device_without_virtual_memory_has_granularity_0(library):
    code = "from tests.support.driver_calls import Calls; print(Calls(0).granularity)"
    assert printed_by(library, code, FAKE_CUDA_VMM=0) == "0"
    assert printed_by(library, code) == str(2 << 20)


def test_a_page_that_cannot_be_made_accessible_is_not_left_mapped(library):
    code = """
import os
from tests.support.driver_calls import Calls
calls = Calls(0)
unit = calls.granularity
va, page = calls.make("va_reserve", unit, 0), calls.make("page_create", unit)
os.environ["FAKE_CUDA_SET_ACCESS"] = "2"
print(calls.page_map(va, unit, page))
os.environ["FAKE_CUDA_SET_ACCESS"] = "0"
print(calls.page_map(va, unit, page))
"""
    assert printed_by(library, code).split() == ["2", "0"]


def test_the_context_of_another_library_stays_current(library):
    code = """
import ctypes, os
from tests.support.driver_calls import Calls
calls = Calls(0)
driver = ctypes.CDLL(os.environ["GPUTENSOR_LIBCUDA"])
current = ctypes.c_void_p()
driver.cuCtxGetCurrent(ctypes.byref(current))
ours = current.value
for context in (12345, None):
    driver.cuCtxSetCurrent(ctypes.c_void_p(context))
    assert calls.mem_info()[0] == 0
    driver.cuCtxGetCurrent(ctypes.byref(current))
    print(current.value == (context or ours))
"""
    assert printed_by(library, code).split() == ["True", "True"]


def test_importing_the_driver_loads_no_cuda():
    code = "import gputensor._driver.registry, gputensor._driver.cuda; print('fine')"
    assert run("/nowhere", "-c", code).stdout.strip() == "fine"


def test_a_kernel_is_launched_with_its_shape_and_parameters(library):
    code = """
import ctypes
from tests.support.driver_calls import Calls
calls = Calls(0)
out = (ctypes.c_uint32 * 8)()
address = ctypes.c_uint64(ctypes.addressof(out))
parameters = ctypes.addressof(address)
stream = calls.make("stream_create", 0)
print(calls.kernel_launch(0xF0, 2, 3, 4, 5, 6, 7, 80, stream, parameters, 8), list(out)[:7],
      out[7] == stream)
print(calls.kernel_launch(0, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 8),
      calls.kernel_launch(0xF0, 1, 1, 1, 1, 1, 1, 0, 0, None, 0))
"""
    assert printed_by(library, code).splitlines() == ["0 [2, 3, 4, 5, 6, 7, 80] True", "400 1"]


@pytest.mark.parametrize(("early", "launches"), [("", 1), ("1", 1), ("0", 0)])
def test_kernels_that_wait_by_themselves_are_launched_early(library, early, launches):
    code = """
import ctypes, os
from tests.support.driver_calls import Calls
calls = Calls(0)
fake = ctypes.CDLL(os.environ["GPUTENSOR_LIBCUDA"])
out = (ctypes.c_uint32 * 8)()
address = ctypes.c_uint64(ctypes.addressof(out))
parameters = ctypes.addressof(address)
stream = calls.make("stream_create", 0)
for is_early in (0, 1):
    module = calls.make("module_load", b".entry kernel( ") + is_early
    function = calls.make("module_function", module, b"kernel")
    print(calls.function_allow_shared(function, 1024),
          calls.kernel_launch(function, 2, 3, 4, 5, 6, 7, 80, stream, parameters, 8),
          list(out)[:7] == [2, 3, 4, 5, 6, 7, 80], fake.fake_cuda_early_launches())
"""
    found = printed_by(library, code, **{"GPUTENSOR_EARLY_START": early} if early else {})
    assert found.splitlines() == ["0 0 True 0", f"0 0 True {launches}"]


def test_calls_on_cuda_are_counted_only_when_observed(library):
    code = "print(registry.device_name(0)); registry.counts(0)"
    assert "call observe(0)" in message(library, code)
    code = "registry.device_name(0); print(registry.counts(0)['mem_alloc'])"
    assert printed_by(library, code, GPUTENSOR_OBSERVE_DRIVER=1) == "0"


def test_a_cuda_device_in_use_can_be_observed_and_listened_to(library):
    code = """
from tests.support.driver_calls import Calls
calls = Calls(0)
stream = calls.make("stream_create", 0)
heard = []
listener = lambda device, name, status, arguments: heard.append((name, arguments))
registry.attach_listener(listener)
calls.stream_synchronize(stream)
registry.deliver()
registry.observe(0)
registry.start_trace(0)
calls.stream_synchronize(stream)
print(heard, registry.counts(0)["stream_synchronize"], registry.take_trace(0))
registry.detach_listener(listener)
registry.fail_call(0, 1, name="stream_synchronize")
print(calls.stream_synchronize(stream), calls.stream_synchronize(stream), len(heard))
"""
    first, second = printed_by(library, code).splitlines()
    call = "('stream_synchronize', (1,))"
    assert first == f"[{call}, {call}] 1 [('stream_synchronize', 0, (1,))]"
    assert second == "2 0 2"


@pytest.mark.parametrize("refused", [0, 801])
def test_the_drivers_pool_is_set_once_to_keep_freed_memory(library, refused):
    code = """
import ctypes, os
from tests.support.driver_calls import Calls
library = ctypes.CDLL(os.environ["GPUTENSOR_LIBCUDA"])
threshold = library.fake_release_threshold
threshold.restype = ctypes.c_uint64
calls = Calls(0)
print(threshold() == 0)
ptr = calls.make("async_alloc", 1 << 20, 0)
print(threshold() == (0 if int(os.environ["FAKE_CUDA_SET_THRESHOLD"]) else 2**64 - 1))
print(calls.async_free(ptr, 0), calls.async_trim(0))
"""
    answer = printed_by(library, code, FAKE_CUDA_SET_THRESHOLD=refused)
    assert answer.split() == ["True", "True", "0", "0"]


@pytest.mark.parametrize("observed", ["0", "1"], ids=["plain", "observed"])
def test_a_forked_process_gets_an_error_that_cuda_cannot_be_used(library, observed):
    code = """
import os, sys
import gputensor as gt
from gputensor.errors import GpuTensorError

used, out = gt.empty((4, 4)), gt.empty((4, 4))
stream, event = gt.Stream(), gt.Event(enable_timing=True)
event.record(stream)
uses = {
    "new": lambda: gt.empty(3),
    "named": lambda: gt.empty(3, device="cuda:0"),
    "another": lambda: gt.empty(3, device="cuda:1"),
    "read": used.numpy,
    "address": used.data_ptr,
    "product": lambda: gt.matmul(used, used, out=out),
    "stream": stream.synchronize,
    "new stream": gt.Stream,
    "event": event.query,
    "device": gt.synchronize,
    "facts": lambda: cuda.device_info(0),
    "pinned": lambda: used.__setitem__(Ellipsis, [[1.0] * 4] * 4),
}
pid = os.fork()
if pid == 0:
    for name, use in uses.items():
        try:
            use()
        except GpuTensorError as error:
            assert "CUDA" in str(error) and "method 'spawn'" in str(error), (name, error)
        else:
            raise AssertionError(name)
    assert float(gt.sum(gt.ones(3, device="host"))) == 3
    assert cuda.cuda_device_count() == 2
    del uses, used, out, stream, event
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
gt.empty(3)
used.numpy()
stream.synchronize()
assert event.query()
"""
    assert printed_by(library, code, FAKE_CUDA_COUNT=2, GPUTENSOR_OBSERVE_DRIVER=observed) == ""


def test_a_process_that_was_forked_before_cuda_was_used_may_use_it(library):
    code = """
import os
import gputensor as gt
pid = os.fork()
assert cuda.cuda_device_count() == 1
assert gt.empty(3).device == "cuda:0"
if pid:
    assert os.waitpid(pid, 0)[1] == 0
"""
    assert printed_by(library, code) == ""

"""Other libraries on our allocator: PyTorch through its pluggable allocator."""

import subprocess
import sys

import pytest

TORCH_PROGRAM = """
import numpy as np
import torch
import gputensor as gt

allocator = torch.cuda.memory.CUDAPluggableAllocator(
    gt.memory.c_library(), "gputensor_malloc_or_throw", "gputensor_free")
torch.cuda.memory.change_current_allocator(allocator)
rng = np.random.default_rng()
a = rng.standard_normal((257, 129)).astype(np.float32)
b = rng.standard_normal((129, 65)).astype(np.float32)
before = gt.memory.memory_allocated(0)
side = torch.cuda.Stream()
x = torch.from_numpy(a).cuda()
assert gt.memory.memory_allocated(0) >= before + a.nbytes
with torch.cuda.stream(side):
    side.wait_stream(torch.cuda.default_stream())
    y = torch.from_numpy(b).cuda()
    z = x.double() @ y.double()
side.synchronize()
# Sums of 129 terms of either sign: the bound relates to the terms, not to their sum.
np.testing.assert_allclose(
    z.cpu().numpy(), a.astype(float) @ b.astype(float), rtol=1e-12, atol=1e-12)
try:
    torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
except Exception as error:
    print("refused:", type(error).__name__)
else:
    raise SystemExit("a petabyte was granted")
again = torch.ones(1000, device="cuda").sum().item()
assert again == 1000
held = gt.memory.memory_allocated(0)
del x
assert gt.memory.memory_allocated(0) <= held - a.nbytes
print("ok")
"""


def test_torch_runs_on_our_memory_and_survives_an_out_of_memory(tmp_path):
    pytest.importorskip("torch", reason="needs torch with CUDA")
    done = subprocess.run(
        [sys.executable, "-c", TORCH_PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[-1] == "ok"


COLLECTED_PROGRAM = """
import gc
import gputensor as gt
from gputensor._engines import factors

def stops(module, x):
    parts = [module.array(x) for _ in range(3)]
    raise RuntimeError("stopped")

factors.lu = stops
x = gt.ones((64, 64), device="cuda")
before = gt.memory.memory_allocated(0)
gc.disable()
for _ in range(20):
    try:
        gt.linalg.lu_factor(x)
    except RuntimeError as error:
        error.itself = error
assert gt.memory.memory_allocated(0) > before
gc.collect()
assert gt.memory.memory_allocated(0) == before
"""


def test_arrays_of_an_engine_that_a_traceback_keeps_are_collected():
    pytest.importorskip("cupy")
    found = subprocess.run(
        [sys.executable, "-c", COLLECTED_PROGRAM], capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr[-2000:]

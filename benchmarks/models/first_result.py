"""The first result of a network in a new process: ours beside torch's ahead-of-time package.

    python benchmarks/models/first_result.py [--only mobilenet_v2 resnet50] [--rounds 5]

Both sides compile the same exported network, in float16 with a batch of 1, for this GPU and write
one file. Then new processes, in turn ours and torch's, import their library and are timed from
there: load the file, run once on a tensor of ones, copy the result to the host. That includes
the start of CUDA in the process. `import s` is the import before it. A result that differs from
torch's by more than float16 allows is an error.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SHAPE = (1, 3, 224, 224)


def our_result(path):
    import numpy as np

    import gputensor as gt

    def result():
        with gt.load_program(path) as program:
            x = np.ones(SHAPE, np.float16)
            return np.asarray(program(gt.asarray(x)).numpy(), np.float64)

    return result


def torch_result(path):
    """Torch's side at its best: `aoti_load_package` without its test of the C++ compiler.

    That test compiles a program at each load. A package whose compiler links libstdc++ into it
    ends the process with a segmentation fault, unless the shared one has been loaded for all.
    """
    ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    import torch

    def result():
        x = torch.ones(SHAPE, dtype=torch.float16, device="cuda")
        program = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
        with torch.no_grad():
            return program.run([x])[0].double().cpu().numpy()

    return result


SIDES = {"ours": our_result, "torch": torch_result}


def child(side, path):
    """Print the seconds of the import, the seconds after it, and the result, and end there.

    The end of the interpreter is not timed, and torch's package does not always survive it.
    """
    began = time.perf_counter()
    result = SIDES[side](path)
    imported = time.perf_counter()
    found = result()
    done = time.perf_counter()
    print(json.dumps([imported - began, done - imported, found.ravel().tolist()]), flush=True)
    os._exit(0)


def write_files(network, folder):
    """Write the network for both sides; return the paths and the seconds of each compilation."""
    import torch

    import gputensor as gt
    from benchmarks.models import networks

    networks.torch = torch
    module = networks.vision_module(network)
    with torch.no_grad():
        exported = torch.export.export(module, (torch.ones(SHAPE).half().cuda(),))
    paths = {"ours": str(folder / "ours.gtp"), "torch": str(folder / "torch.pt2")}
    began = time.perf_counter()
    with gt.from_exported(exported).compile(target="cuda") as program:
        program.save(paths["ours"])
    middle = time.perf_counter()
    with torch.no_grad():
        torch._inductor.aoti_compile_and_package(exported, package_path=paths["torch"])
    return paths, {"ours": middle - began, "torch": time.perf_counter() - middle}


def measure(report, network, rounds):
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        paths, compiled = write_files(network, Path(folder))
        found = {side: [] for side in SIDES}
        for _round in range(rounds):
            for side, path in paths.items():
                command = [sys.executable, __file__, "--child", side, path]
                out = subprocess.run(
                    command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
                )
                found[side].append(json.loads(out.stdout.splitlines()[-1]))
        nbytes = {side: Path(path).stat().st_size for side, path in paths.items()}
    ours, theirs = (np.array(found[side][-1][2]) for side in SIDES)
    np.testing.assert_allclose(ours, theirs, atol=0.05 * np.abs(theirs).max())
    first = {side: statistics.median(row[1] for row in rows) for side, rows in found.items()}
    for side, rows in found.items():
        report.add(
            network=network, side=side, **{
                "import s": round(statistics.median(row[0] for row in rows), 3),
                "first result s": round(first[side], 3),
                "ratio": round(first[side] / first["torch"], 3),
                "file bytes": nbytes[side], "compile s": round(compiled[side], 2),
            },
        )  # fmt: skip
        print(json.dumps(report.rows[-1]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["mobilenet_v2"], help="torchvision's names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", nargs=2, metavar=("SIDE", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    from benchmarks.report import Report, require_gpu

    require_gpu()
    report = Report("models/first_result", "First result of a network in a new process")
    for network in options.only:
        measure(report, network, options.rounds)
    report.finish()


if __name__ == "__main__":
    main()

"""The time to compile a model for a GPU that is not there, and the size of its file.

    python benchmarks/models/compile_time.py

It needs NVRTC and no GPU. The kernels of a Llama's shape, 32 layers with a prompt of any length and
single tokens, in bfloat16, are compiled from an empty cache, and so are those of MobileNet v2 of a
free batch in float16 where onnx is installed. `file bytes` are without weights, which lie in
a file beside it.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "examples" / "models")]

HEADS, KEPT, SIZE, HIDDEN, VOCABULARY, LENGTH, LAYERS = 8, 2, 128, 4096, 32000, 2048, 32
TARGET = "sm_90"


def llama_program():
    import llama

    import gputensor as gt

    width = HEADS * SIZE
    for name in ("HEADS", "KEPT", "SIZE", "HIDDEN", "VOCABULARY", "LENGTH", "LAYERS"):
        setattr(llama, name, globals()[name])
    llama.WIDTH = width

    def new(*shape):
        return gt.empty(shape, dtype=gt.bfloat16)

    def layer():
        return {
            "norm1": new(width), "norm2": new(width), "q": new(width, width),
            "k": new(KEPT * SIZE, width), "v": new(KEPT * SIZE, width), "out": new(width, width),
            "gate": new(HIDDEN, width), "up": new(HIDDEN, width), "down": new(width, HIDDEN),
        }  # fmt: skip

    weights = {
        "embed": new(VOCABULARY, width), "layers": [layer() for _layer in range(LAYERS)],
        "norm": new(width), "head": new(VOCABULARY, width),
    }  # fmt: skip
    prompt = gt.spec((gt.Dim("n", 2, LENGTH),), gt.int64)
    token = gt.spec((1,), gt.int64)
    functions = {"prefill": (llama.forward, prompt), "decode": (llama.forward, token)}
    state = llama.state_specs(gt.bfloat16)
    return lambda: gt.compile(functions, weights=weights, state=state, target=TARGET)


def mobilenet_program():
    import make_mobilenet
    import onnx

    import gputensor as gt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mobilenet.onnx"
        onnx.save(make_mobilenet.mobilenet(), path)
        model = gt.load_onnx(path, dims={"batch": gt.Dim("batch", 1, 64)}, dtype="float16")
    return lambda: model.compile(target=TARGET)


def measure(report, name, prepare):
    try:
        compiled = prepare()
    except ImportError as error:
        print(f"{name}: left out, {error}")
        return
    with tempfile.TemporaryDirectory() as folder:
        began, processor = time.perf_counter(), time.process_time()
        with compiled() as program:
            seconds, processor = time.perf_counter() - began, time.process_time() - processor
            path = Path(folder) / "model.gtp"
            program.save(path, weights="model.safetensors")
        report.add(
            model=name, target=TARGET, cores=len(os.sched_getaffinity(0)),
            **{"seconds": round(seconds, 1), "processor s": round(processor, 1),
               "file bytes": path.stat().st_size},
        )  # fmt: skip
    print(report.rows[-1], flush=True)


def main():
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GPUTENSOR_KERNEL_CACHE"] = cache
        from benchmarks.report import Report

        report = Report("models/compile_time", "Compilation for a GPU that is not there")
        measure(report, "Llama, 32 layers", llama_program)
        measure(report, "mobilenet_v2", mobilenet_program)
        report.finish()


if __name__ == "__main__":
    main()

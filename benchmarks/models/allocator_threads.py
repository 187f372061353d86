"""Threaded torch programs on each allocator: peak reserved, peak requested, time of a step.

    python benchmarks/models/allocator_threads.py [--programs gpt pair serve] [--record FOLDER]

Needs torch and a GPU. Each program runs in a separate process on each of four allocators: this
library through its C symbols (with thread caches and without), torch with expandable segments, and
torch's default. The processes of a program live side by side. Each runs the program once, untimed:
for each new length, cuDNN builds plans of attention for some 150 ms, which would hide everything
else. Then they run the same steps again, one process at a time and in turn, `--rounds` times: a
step's time is the median of its rounds, because the machine's own speed drifts. `step_ms` is the
median step, `steps_ms` the sum of all. The programs:

gpt     a GPT with 12 layers, trained with batches of varying length; autograd frees on its thread
pair    two threads, each training a small convolutional network on its own stream
serve   eight threads, each answering requests of varying length with an encoder, results kept

With ``--record`` the events of a run on this library are written to FOLDER/NAME.npz, thread numbers
included, in the format of benchmarks/traces/README.md.
"""

import argparse
import ctypes
import functools
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SIDES = ("ours", "ours_pools_alone", "torch_expandable", "torch_default")
PROGRAMS = ("gpt", "pair", "serve")
FIELDS = {"op": np.int8, "id": np.int32, "size": np.int64, "stream": np.int16, "thread": np.int16}


def blocks_of(torch, layers, width, heads):
    layer = torch.nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
    )
    return torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def gpt(torch, steps):
    """Return a function that trains on all shapes and returns the seconds of each step."""
    torch.manual_seed(0)
    draw = random.Random(0)
    width, words = 768, 32000
    embed = torch.nn.Embedding(words, width).cuda()
    body = blocks_of(torch, 12, width, 12).cuda()
    head = torch.nn.Linear(width, words, bias=False).cuda()
    parameters = [*embed.parameters(), *body.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    shapes = [(draw.randint(1, 8), draw.randint(64, 1023)) for _ in range(steps)]

    def train():
        seconds = []
        for batch, length in shapes:
            start = time.perf_counter()
            tokens = torch.randint(0, words, (batch, length), device="cuda")
            mask = torch.nn.Transformer.generate_square_subsequent_mask(length, device="cuda")
            with torch.autocast("cuda", torch.bfloat16):
                logits = head(body(embed(tokens), mask=mask, is_causal=True))
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        return seconds

    return train


def network(torch):
    layers, channels = [], 3
    for out in (32, 64, 128, 128, 256, 256):
        layers += [torch.nn.Conv2d(channels, out, 3, padding=1, bias=False)]
        layers += [torch.nn.BatchNorm2d(out), torch.nn.ReLU()]
        if out > channels and channels > 3:
            layers.append(torch.nn.MaxPool2d(2))
        channels = out
    tail = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 100)]
    return torch.nn.Sequential(*layers, *tail).cuda()


def train_network(torch, steps, seed, seconds):
    draw = random.Random(seed)
    with torch.cuda.stream(torch.cuda.Stream()):
        model = network(torch)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        for _ in range(steps):
            batch, side = draw.randint(4, 48), draw.randint(48, 160)
            start = time.perf_counter()
            images = torch.randn(batch, 3, side, side, device="cuda")
            labels = torch.randint(0, 100, (batch,), device="cuda")
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.current_stream().synchronize()
            seconds.append(time.perf_counter() - start)


def pair(torch, steps):
    return lambda: on_threads(2, lambda i, seconds: train_network(torch, steps, i, seconds))


def answer(torch, model, requests, seed, seconds):
    draw = random.Random(seed)
    kept = []
    with torch.cuda.stream(torch.cuda.Stream()), torch.inference_mode():
        for _ in range(requests):
            batch, length = draw.randint(1, 16), draw.randint(4, 511)
            start = time.perf_counter()
            x = torch.randn(batch, length, 768, device="cuda", dtype=torch.bfloat16)
            kept.append(model(x))
            del x
            if len(kept) > draw.randint(2, 12):
                del kept[: draw.randint(1, len(kept))]
            torch.cuda.current_stream().synchronize()
            seconds.append(time.perf_counter() - start)


def serve(torch, steps):
    torch.manual_seed(0)
    model = blocks_of(torch, 6, 768, 12).cuda().to(torch.bfloat16).eval()
    return lambda: on_threads(8, lambda i, seconds: answer(torch, model, 4 * steps, i, seconds))


def on_threads(count, work):
    seconds = [[] for _ in range(count)]
    threads = [threading.Thread(target=work, args=(i, seconds[i])) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [value for each in seconds for value in each]


def use_recorder(torch, own):
    """Make this library torch's allocator and record each request; return the recorder."""
    from native.build import load

    recorder = load("recorder")
    assert recorder.recorder_open(own.encode()) == 0
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        recorder._name, "recorder_malloc", "recorder_free"
    )
    torch.cuda.memory.change_current_allocator(allocator)
    recorder.recorder_start(1)
    recorder.recorder_count.restype = ctypes.c_int64
    return recorder


def taken(recorder):
    """Return the recorded events as arrays by name."""
    recorder.recorder_start(0)
    count = recorder.recorder_count()
    arrays = {name: np.empty(count, dtype) for name, dtype in FIELDS.items()}
    recorder.recorder_take(*[ctypes.c_void_p(a.ctypes.data) for a in arrays.values()])
    return arrays


def run_one(side, program, steps, record):
    """Serve a parent process: print the seconds of a run for each line of input, then memory."""
    if side.startswith("torch"):
        expandable = side == "torch_expandable"
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"expandable_segments:{expandable}"
    elif side == "ours_pools_alone":
        os.environ["GPUTENSOR_ALLOC_CONF"] = "thread_cache:False"
    import torch

    if side.startswith("torch"):
        memory_stats = torch.cuda.memory_stats
    else:
        import gputensor as gt

        memory_stats = functools.partial(gt.memory.memory_stats, "cuda")
        own = gt.memory.c_library()
        if record:
            recorder = use_recorder(torch, own)
        else:
            allocator = torch.cuda.memory.CUDAPluggableAllocator(
                own, "gputensor_malloc", "gputensor_free"
            )
            torch.cuda.memory.change_current_allocator(allocator)
    run = globals()[program](torch, steps)
    for _line in sys.stdin:
        print(json.dumps(run()), flush=True)
    stats = memory_stats()
    asked, reserved = (stats[f"{what}_bytes.all.peak"] for what in ("requested", "reserved"))
    if record:
        arrays = taken(recorder)
        np.savez_compressed(record, **arrays, peak_requested=asked, peak_reserved=reserved)
    print(json.dumps([asked / 2**20, reserved / 2**20]), flush=True)


class Side:
    """A process that runs one program on one allocator."""

    def __init__(self, side, program, steps, record=None):
        command = [sys.executable, __file__, "--one", "--sides", side, "--programs", program]
        command += ["--steps", str(steps)] + (["--record", str(record)] if record else [])
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.begin()

    def begin(self):
        self.process.stdin.write("run\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        """Return the peaks of requested and reserved bytes, in MiB, and end the process."""
        self.process.stdin.close()
        peaks = self.answer()
        if self.process.wait():
            raise subprocess.CalledProcessError(self.process.returncode, self.process.args)
        return peaks


def measure(report, program, options):
    sides = {side: Side(side, program, options.steps) for side in options.sides}
    rounds = {side: [] for side in sides}
    for process in sides.values():
        process.answer()
    for turn in range(options.rounds):
        for side in list(sides)[:: -1 if turn % 2 else 1]:
            sides[side].begin()
            rounds[side].append(sides[side].answer())
    for side, process in sides.items():
        steps = np.median(rounds[side], axis=0) * 1e3
        asked, reserved = process.end()
        report.add(
            program=program, allocator=side, asked_mib=asked, reserved_mib=reserved,
            utilization=asked / reserved, step_ms=np.median(steps), steps_ms=np.sum(steps),
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--sides", nargs="+", default=SIDES, choices=SIDES)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--one", action="store_true", help="run in this process, print JSON")
    options = parser.parse_args()
    if options.one:
        [side], [program] = options.sides, options.programs
        run_one(side, program, options.steps, options.record)
        return
    from benchmarks.report import Report

    report = Report("models/allocator_threads", "peak reserved of threaded programs, by allocator")
    for program in options.programs:
        measure(report, program, options)
        if options.record:
            file = options.record / f"{program}_threads.npz"
            process = Side("ours", program, options.steps, file)
            process.answer()
            process.end()
    report.finish()


if __name__ == "__main__":
    main()

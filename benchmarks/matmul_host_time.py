"""Host time of one product call, gputensor beside torch: ``python benchmarks/matmul_host_time.py``.

A call queues its work and returns, so a loop of calls measures only the host as long as the GPU
keeps up; the queue is drained between loops.
"""

import importlib.util

import gputensor as gt
from report import Report, measure

SIZES = (64, 128)


def gputensor_calls(size):
    a, b = (gt.ones((size, size)) for _ in range(2))
    out = gt.empty((size, size))
    bias = gt.ones((size,))
    return {
        "matmul(a, b, out)": lambda: gt.matmul(a, b, out=out),
        "a @ b": lambda: a @ b,
        "linear(a, b, bias, relu)": lambda: gt.linear(a, b, bias, activation="relu", out=out),
    }


def torch_calls(size):
    import torch

    a, b = (torch.ones(size, size, device="cuda") for _ in range(2))
    out = torch.empty(size, size, device="cuda")
    bias = torch.ones(size, device="cuda")
    return {
        "matmul(a, b, out)": lambda: torch.mm(a, b, out=out),
        "a @ b": lambda: a @ b,
        "linear(a, b, bias, relu)": lambda: torch.relu(torch.nn.functional.linear(a, b, bias)),
    }


def main():
    report = Report("matmul_host_time", "Host time of one product call, ns")
    has_torch = importlib.util.find_spec("torch") is not None and gt.device.is_available()
    for size in SIZES:
        ours = gputensor_calls(size)
        theirs = {}
        if has_torch:
            import torch

            theirs = torch_calls(size)
        for name, call in ours.items():
            row = {"call": name, "size": size}
            row["gputensor"] = round(measure(call, setup=gt.synchronize))
            if name in theirs:
                row["torch"] = round(measure(theirs[name], setup=torch.cuda.synchronize))
                row["ratio"] = round(row["gputensor"] / row["torch"], 3)
            report.add(**row)
    report.finish()


if __name__ == "__main__":
    main()

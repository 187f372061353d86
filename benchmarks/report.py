"""Shared by all benchmarks: timing by medians, facts of the machine, a table, a JSON file.

A benchmark adds rows (plain dicts) to a `Report` and calls `finish()`: the rows are printed as a
table and written to benchmarks/results/NAME.json with the device, driver and versions beside them,
so that each figure is stored with the machine on which it was measured. Benchmarks are run as
programs from the root of the tree: ``python benchmarks/NAME.py``.
"""

import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

__all__ = ["Report", "machine", "measure", "require_gpu"]

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = (
    "gputensor",
    "numpy",
    "ml_dtypes",
    "torch",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "rmm-cu12",
    "cuda-bindings",
    "nvidia-cublas-cu12",
    "nvidia-cublas",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-nvrtc",
)


def measure(function, repetitions=7, seconds=0.05, setup=None):
    """Return nanoseconds for one call of `function`: the median over `repetitions` timed loops.

    Parameters
    ----------
    function : callable
        Called with no arguments, many times in a row; the loop's own cost is subtracted. The first
        call, which may compile a kernel, is not timed.
    repetitions : int
        Timed loops; the median is over these.
    seconds : float
        Length of one timed loop, which determines the number of calls in it.
    setup : callable, optional
        Called before each loop; its time is not measured.

    >>> 0 <= measure(lambda: None, repetitions=3, seconds=1e-3) < 1e6
    True
    """
    timed_loop(function, 1, setup)  # A slow first call would leave only loops of one call.
    number = 1
    while (elapsed := timed_loop(function, number, setup)) < seconds * 1e9 / 10:
        number *= 4 if elapsed < seconds * 1e7 else 2
    number = max(1, round(number * seconds * 1e9 / elapsed))
    empty = statistics.median(timed_loop(pass_by, number, None) for _ in range(3)) / number
    times = [timed_loop(function, number, setup) / number for _ in range(repetitions)]
    return max(0.0, statistics.median(times) - empty)


def timed_loop(function, number, setup):
    """Return the nanoseconds that `number` calls take together."""
    if setup is not None:
        setup()
    rounds = range(number)
    start = time.perf_counter_ns()
    for _ in rounds:
        function()
    return time.perf_counter_ns() - start


def pass_by():
    """The empty call whose time measure() subtracts."""


def machine():
    """Return the facts on which figures depend: processor, system, Python, packages, any GPU."""
    facts = {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := version_of(name))},
    }
    # A benchmark of the start-up does not import the library in its own process.
    if "gputensor" in sys.modules:
        facts["device"] = device_facts()
    return facts


def device_facts():
    """Return the device that the library uses by default, with its driver if it is a GPU."""
    from gputensor._driver.registry import cuda_device_count, device_info

    if os.environ.get("GPUTENSOR_DEVICE", "").startswith("host") or not cuda_device_count():
        return {"name": "host"}
    info = device_info(0)
    module = read_lines("/sys/module/nvidia/version")
    return {
        "name": info["name"],
        "total_memory": info["total_memory"],
        "driver": module[0].strip() if module else None,
        "driver_cuda_version": ".".join(map(str, info["driver_version"])),
    }


def require_gpu():
    """End the program without an error if there is no GPU to measure."""
    from gputensor._driver.registry import cuda_device_count

    if not cuda_device_count():
        print("this benchmark needs a GPU, and none was found; nothing was measured")
        sys.exit(0)


def processor_name():
    for line in read_lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def read_lines(path):
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def version_of(package):
    """Return the installed version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


class Report:
    """The rows of one benchmark, printed as a table and written as JSON.

    Parameters
    ----------
    name : str
        File name of the result, without ``.json``.
    title : str
        One line above the table.
    """

    def __init__(self, name, title):
        self.name = name
        self.title = title
        self.rows = []
        self.facts = {}

    def add(self, **row):
        """Add a row; the keys are the columns, in the order in which they first appear."""
        self.rows.append(row)

    def table(self):
        """Return the rows as aligned text.

        >>> report = Report("pairs", "malloc and free")
        >>> report.add(threads=1, ns=41.5, peer=None)
        >>> report.add(threads=16, ns=1234.0, peer=90000.0)
        >>> print(report.table())
        threads      ns     peer
              1    41.5
             16  1234.0  90000.0
        """
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        lines = [columns] + [[cell(row.get(key)) for key in columns] for row in self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
        left = [any(isinstance(row.get(key), str) for row in self.rows) for key in columns]
        return "\n".join(
            "  ".join(
                text.ljust(width) if is_left else text.rjust(width)
                for text, width, is_left in zip(line, widths, left, strict=True)
            ).rstrip()
            for line in lines
        )

    def finish(self):
        """Print the table, write the JSON file and return its path.

        Without a GPU the file goes to a separate, untracked folder, so that the tracked results,
        and the page made from them, remain those of a GPU.
        """
        print(f"{self.title}\n{self.table()}")
        facts = machine()
        has_gpu = facts.get("device", {}).get("name") != "host"
        path = (RESULTS if has_gpu else RESULTS / "host") / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "benchmark": self.name,
            "title": self.title,
            "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": facts,
            **self.facts,
            "rows": self.rows,
        }
        path.write_text(json.dumps(content, indent=1) + "\n")
        print(f"-> benchmarks/results/{path.relative_to(RESULTS)}")
        return path


def cell(value):
    """Return a value as the table shows it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
    return str(value)

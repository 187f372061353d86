"""Compare the time of `import gputensor` with `import numpy`, and check that it loads no driver.

Each import runs in a separate process, the two alternate, and the medians are compared, which
cancels the time that the interpreter and the machine add to both. The import must not even load the
driver library.

    python benchmarks/import_time.py [--repetitions 15] [--limit 0.15]

Exits with 1 when the difference is above the limit.
"""

import argparse
import statistics
import subprocess
import sys

from report import Report

PROGRAM = "import time; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"
NO_DRIVER = (
    "import gputensor; "
    "print(any('libcuda' in line or 'libcublas' in line for line in open('/proc/self/maps')))"
)


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--limit", type=float, default=0.15, metavar="SECONDS")
    options = parser.parse_args()

    run(PROGRAM.format("gputensor"))
    seconds = {"numpy": [], "gputensor": []}
    for _ in range(options.repetitions):
        for module, times in seconds.items():
            times.append(float(run(PROGRAM.format(module))))
    medians = {module: statistics.median(times) for module, times in seconds.items()}
    difference = medians["gputensor"] - medians["numpy"]

    report = Report("import_time", "seconds to import, median of one process each")
    for module, median in medians.items():
        report.add(module=module, seconds=median, fastest=min(seconds[module]))
    report.add(module="difference", seconds=difference)
    loads_driver = run(NO_DRIVER) == "True"
    report.facts = {"limit_seconds": options.limit, "import_loads_the_driver": loads_driver}
    report.finish()
    if loads_driver:
        sys.exit("import gputensor loads the CUDA driver or cuBLAS; it must not")
    if difference > options.limit:
        sys.exit(f"import gputensor costs {difference:.3f} s more than numpy: above the limit")


if __name__ == "__main__":
    main()

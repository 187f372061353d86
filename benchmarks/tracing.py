"""Host time of tracing: each traced call, and a whole `gt.programs.trace` of one and of many calls.

    python benchmarks/tracing.py

Processor time, the best of several rounds, on the host device: no GPU takes part in a trace.
"""

import argparse
import time

import gputensor as gt
from gputensor.programs import trace

CALLS = 1000


def many(x):
    for _turn in range(CALLS):
        x = x + 1
    return x


def best(function, rounds):
    times = []
    for _round in range(rounds):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    spec = gt.spec((4,))
    free = gt.spec((gt.Dim("n", 1, 64),))
    one = best(lambda: trace(lambda x: x + 1, spec, target="host"), rounds)
    whole = best(lambda: trace(many, spec, target="host"), rounds)
    sampled = best(lambda: trace(many, free, target="host"), rounds)
    print(f"trace of one call             {one:10.0f} us")
    print(f"each of {CALLS} calls            {whole / CALLS:10.1f} us")
    print(f"each of {CALLS} calls, a free dim {sampled / CALLS:9.1f} us (all samples together)")


if __name__ == "__main__":
    main()

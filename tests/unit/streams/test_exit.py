"""The end of a process whose threads, streams, graphs and pools are still in use."""

import subprocess
import sys

import pytest

BEGIN = """
import os, sys, threading, time
import gputensor as gt

gt.set_device("host")
"""
# Threads that are ended while they queue work, wait for a section, or are inside one.
THREADS = """
graph = gt.graphs.CUDAGraph()
with gt.graphs.graph(graph):
    y = gt.zeros(1000) + 1


def work(number):
    stream = gt.Stream()
    while True:
        with gt.stream(stream):
            x = gt.zeros(1000) + 1
        if number % 2:
            graph.replay()


for number in range(5):
    threading.Thread(target=work, args=(number,), daemon=True).start()
time.sleep(0.05)
"""
# The threads above, and a finalizer that needs a section.
FINALIZER = (
    THREADS
    + """
class Last:
    def __init__(self):
        self.x, self.add = gt.ones(3), gt.Tensor.__add__

    def __del__(self):
        self.add(self.x, self.x)


last = Last()
"""
)
LIVE = """
graph, stream, event = gt.graphs.CUDAGraph(), gt.Stream(), gt.Event(enable_timing=True)
pool = gt.memory.MemPool()
block = gt.memory.use_mem_pool(pool)
block.__enter__()
stream.__enter__()
event.record()
graph.capture_begin()
y = gt.ones(10) + gt.random.uniform(size=10)
"""
FORKED = (
    THREADS
    + """
for how in (sys.exit, os._exit, sys.exit):
    child = os.fork()
    if child == 0:
        how(0)
    assert os.waitpid(child, 0)[1] == 0
"""
)


@pytest.mark.parametrize(
    "program",
    [THREADS, FINALIZER, LIVE, LIVE + "sys.exit(0)", LIVE + "os._exit(0)", FORKED],
    ids=["threads", "finalizer", "live", "sys_exit", "os_exit", "forked"],
)
def test_a_process_ends_at_once_and_silently(program):
    for _ in range(3 if program in (THREADS, FINALIZER) else 1):
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + program], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

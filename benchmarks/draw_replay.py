"""Draw docs/gpt2_memory.svg: memory requested and reserved while a recorded trace is replayed.

    python benchmarks/draw_replay.py            write the picture
    python benchmarks/draw_replay.py --check    exit with 1 when the picture is out of date

The trace runs through the allocator's own code on a phantom host device, so the picture is the same
on every machine.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import gputensor as gt
from gputensor._alloc.replay.trace_file import read_trace
from gputensor._driver.registry import close_host, open_host

__all__ = ["curves", "draw"]

ROOT = Path(__file__).resolve().parent.parent
TRACE = ROOT / "benchmarks" / "traces" / "gpt2_train.npz"
PICTURE = ROOT / "docs" / "gpt2_memory.svg"

CAPACITY = 2**40
COLUMNS = 240  # points of a curve: each is the maximum within 1/240 of the events
WIDTH, HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 744, 40, 262
TOP_GIB = 18


def curves(trace):
    """Replay a trace; return requested and reserved bytes after each event."""
    device = open_host(capacity=CAPACITY, phantom=True)
    name = f"host:{-1 - device}"
    live, addresses = {}, {}
    requested = np.zeros(trace.events, np.int64)
    reserved = np.zeros(trace.events, np.int64)
    total = 0
    try:
        for i, (op, key, size) in enumerate(
            zip(trace.op.tolist(), trace.id.tolist(), trace.size.tolist(), strict=True)
        ):
            if op > 0:
                addresses[key] = gt.memory.caching_allocator_alloc(size, device=name)
                live[key] = size
                total += size
            else:
                gt.memory.caching_allocator_delete(addresses.pop(key))
                total -= live.pop(key)
            requested[i] = total
            reserved[i] = gt.memory.memory_reserved(name)
    finally:
        for address in addresses.values():
            gt.memory.caching_allocator_delete(address)
        close_host(device)
    return requested, reserved


def columns(values):
    """Return the largest value in each of `COLUMNS` stretches of equal length, in GiB."""
    return [part.max() / 2**30 for part in np.array_split(values, COLUMNS)]


def points(values):
    """Return the points of a step curve as the data of an SVG path."""
    step = (RIGHT - LEFT) / len(values)
    parts = []
    for i, value in enumerate(values):
        parts.append(f"{'L' if parts else 'M'}{LEFT + i * step:.1f} {y_of(value):.1f}")
        parts.append(f"H{LEFT + (i + 1) * step:.1f}")
    return "".join(parts)


def y_of(gib):
    return BOTTOM - gib / TOP_GIB * (BOTTOM - TOP)


def axes(events):
    """Yield the grid with its labels."""
    for gib in range(0, TOP_GIB + 1, 6):
        y = y_of(gib)
        yield f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="#d8dee4"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{gib} GiB</text>'
    for count in range(0, events + 1, 5000):
        x = LEFT + count / events * (RIGHT - LEFT)
        yield f'<text x="{x:.1f}" y="{BOTTOM + 18}" text-anchor="middle">{count:,}</text>'
    middle = (LEFT + RIGHT) / 2
    yield f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">allocations and frees</text>'


def draw(trace):
    """Return the picture of a trace as the text of an SVG file."""
    requested, reserved = curves(trace)
    torch = trace.recorded["peak_reserved"]
    most = requested.max() / 2**30, reserved.max() / 2**30, torch / 2**30
    summary = (
        f"Peak requested {most[0]:.1f} GiB, reserved by gputensor {most[1]:.1f} GiB, "
        f"reserved by PyTorch when the trace was recorded {most[2]:.1f} GiB."
    )
    want = points(columns(requested))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title desc" font-family="sans-serif" font-size="12" fill="#57606a">',
        '<title id="title">GPU memory of a GPT-2 training run, replayed</title>',
        f'<desc id="desc">{summary}</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
        *axes(trace.events),
        f'<path d="{want}V{BOTTOM}H{LEFT}Z" fill="#a5c8f0"/>',
        f'<path d="{points(columns(reserved))}" fill="none" stroke="#0b5cad" stroke-width="2"/>',
        f'<path d="M{LEFT} {y_of(most[2]):.1f}H{RIGHT}" stroke="#b3400e" stroke-width="2" '
        'stroke-dasharray="6 4"/>',
        f'<text x="{LEFT}" y="20" fill="#24292f" font-size="14">GPT-2 training, '
        f"{trace.events:,} allocations and frees</text>",
        f'<text x="{RIGHT}" y="{y_of(most[2]) - 6:.1f}" text-anchor="end" fill="#b3400e">'
        f"PyTorch reserved {most[2]:.1f} GiB</text>",
        f'<text x="{RIGHT}" y="{y_of(most[1]) - 6:.1f}" text-anchor="end" fill="#0b5cad">'
        f"gputensor reserves {most[1]:.1f} GiB</text>",
        f'<text x="{LEFT + 12}" y="{BOTTOM - 12}" fill="#24292f">'
        f"requested by the program, at most {most[0]:.1f} GiB</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file; write nothing")
    options = parser.parse_args(arguments)
    picture = draw(read_trace(str(TRACE)))
    if not options.check:
        PICTURE.write_text(picture)
        print(f"wrote {PICTURE.relative_to(ROOT)}")
        return 0
    if PICTURE.read_text() == picture:
        return 0
    print(f"{PICTURE.relative_to(ROOT)} is out of date: run python benchmarks/draw_replay.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Campaigns of random programs: run many, count the outcomes, print them."""

import argparse
import random
import time
import warnings

__all__ = ["options_of", "report", "run_many"]

PROGRESS = 10  # seconds between lines that show how far a campaign is


def run_many(run, count, seed, seconds=None, show=print):
    """Run `count` programs, or as many as begin within `seconds` and before an interrupt.

    ``run(seed of the program, its index)`` returns "ran", or "refused: ...; REASON"; anything else,
    and an exception, is a failure. Returns (ran, {reason: number refused}, failures).
    """
    ran, refused, failures = 0, {}, []
    began = shown = time.monotonic()
    for index in range(count):
        one = seed * 1_000_003 + index
        try:
            result = run(one, index)
        except KeyboardInterrupt:
            break
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        if result == "ran":
            ran += 1
        elif result.startswith("refused: "):
            reason = result.split("; ")[-1]
            refused[reason] = refused.get(reason, 0) + 1
        else:
            failures.append((one, result))
            show(f"program {one}: {result}")
        now = time.monotonic()
        if now - shown > PROGRESS:
            show(f"{index + 1} programs in {now - began:.0f} s, {len(failures)} failures")
            shown = now
        if seconds is not None and now - began > seconds:
            break
    return ran, refused, failures


def options_of(description, count):
    """Return a parser of the options that every campaign has; `count` is the default of one."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(20))
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--device", default="host", choices=["host", "cuda"])
    return parser


def report(campaign, options):
    """Run a campaign with parsed options and print its outcomes; returns an exit status."""
    warnings.simplefilter("ignore")
    began = time.monotonic()
    ran, refused, failures = campaign(
        options.count, options.seed, options.seconds, home=options.device
    )
    seconds = time.monotonic() - began
    total = ran + sum(refused.values()) + len(failures)
    print(f"seed {options.seed}: {ran} of {total} programs ran, in {seconds:.0f} s")
    for reason, number in sorted(refused.items(), key=lambda item: -item[1])[:8]:
        print(f"  refused {number}: {reason}")
    print(f"failures: {len(failures)}")
    return 1 if failures else 0

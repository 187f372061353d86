"""Finds the option that would have helped a failed request, by replaying its case.

The case (case.py) runs through the allocator's own code on a phantom host device with the
memory available to the process on the real one, first under the settings in force: a replay that
succeeds there does not reproduce the case, and the advice is empty. Then options are tried one at a
time, the least intrusive first, until the request succeeds or the time is up. The settings in force
stay as they are. Without a history, the advice is limited to what the amounts prove.
"""

import math
import os
import time

from gputensor._alloc.config import settings as _settings
from gputensor._alloc.explain.case import case_of
from gputensor._alloc.replay import replay_settings
from gputensor._driver.registry import close_host, open_host
from gputensor.errors import DeviceError

__all__ = ["VARIABLE", "advise", "candidates", "proven_option"]

VARIABLE = "GPUTENSOR_OOM_REPLAY_SECONDS"
DEFAULT_SECONDS = 0.5
MIB = 1 << 20


def advise(device, facts, stream):
    """Return ``(option, sentence)`` for a failed request; both None when nothing is known.

    Parameters
    ----------
    device : int
        The device of the request.
    facts : dict
        The result of :func:`gputensor._alloc.observe.failure_facts`, and ``fraction``, the share of
        memory that may be reserved.
    stream : int
        The stream of the request.
    """
    proven = proven_option(facts, _settings.current())
    seconds = replay_seconds()
    if seconds > 0 and facts["is_pooled"] and not facts["is_private"]:
        case = case_of(device, min(facts["requested"], facts["rounded"]), stream)
        if case is not None:
            found, sentence = try_options(case, facts, _settings.current(), seconds)
            if sentence is not None:
                return found, sentence
    if proven is not None:
        return proven, f"it would have fitted with {proven}"
    return None, None


def replay_seconds():
    """Return the seconds for examining one failure: ``GPUTENSOR_OOM_REPLAY_SECONDS``, or 0.5.

    0 turns replays off. A text that is not a number counts as the default, because the error of the
    request has to be raised in any case.
    """
    try:
        seconds = float(os.environ.get(VARIABLE, DEFAULT_SECONDS))
    except ValueError:
        return DEFAULT_SECONDS
    return seconds if 0 <= seconds < math.inf else DEFAULT_SECONDS


def proven_option(facts, settings):
    """Return the option with which the amounts alone show that the request would have fitted.

    >>> facts = dict(rounded=8 << 20, growth=20 << 20, reserved=0, free=10 << 20, limit=None,
    ...              granularity=2 << 20, is_pooled=True, is_rejected=False, total=10 << 20)
    >>> proven_option(facts, _settings.parse("expandable_segments:False"))
    'expandable_segments:True'
    """
    limit, growth = facts["limit"], facts["growth"]
    room = facts["free"] if limit is None else min(facts["free"], limit - facts["reserved"])
    step = facts["granularity"]
    if not settings.expandable_segments and facts["is_pooled"] and step:
        if -(-facts["rounded"] // step) * step <= room:
            return "expandable_segments:True"
    if limit is not None and facts["reserved"] + growth > limit and growth <= facts["free"]:
        return raised_limit(facts, settings, facts["reserved"] + growth)
    return None


def raised_limit(facts, settings, nbytes):
    """Return the option that allows `nbytes` to be reserved, or None when two would be needed.

    >>> facts = {"total": 100 << 20, "fraction": 0.5}
    >>> raised_limit(facts, _settings.Settings(), 60 << 20)
    'per_process_memory_fraction:0.6'
    >>> raised_limit(facts, _settings.parse("memory_limit_mb:10"), (40 << 20) + 1)
    'memory_limit_mb:41'
    """
    share = facts["fraction"] * facts["total"] if facts["fraction"] < 1 else math.inf
    is_above_share = nbytes > share
    if nbytes > (settings.memory_limit_mb * MIB or math.inf):
        return None if is_above_share else f"memory_limit_mb:{math.ceil(nbytes / MIB)}"
    if not is_above_share:
        return None
    return f"per_process_memory_fraction:{math.ceil(nbytes / facts['total'] * 1000) / 1000}"


def candidates(settings, facts):
    """Yield ``(option text, settings)``, each one option away from `settings`.

    >>> [text for text, _ in candidates(_settings.parse("page_reuse:False"), {"limit": None,
    ...                                 "granularity": 2 << 20, "is_rejected": False})]
    ['page_reuse:True', 'page_size_mb:2']
    """
    texts = []
    expandable = settings.expandable_segments and facts["granularity"] > 0
    if facts["is_rejected"]:
        texts.append("throw_on_cudamalloc_oom:False")
    if not settings.expandable_segments and facts["granularity"] > 0:
        texts.append("expandable_segments:True")
    if expandable and not settings.page_reuse:
        texts.append("page_reuse:True")
    if any(division > 1 for division in settings.roundup_power2_divisions):
        texts.append("roundup_power2_divisions:0")
    if expandable and settings.page_size_mb > 2:
        texts.append("page_size_mb:2")
    if not expandable:
        lowest, own = settings.large_segment_size_mb, settings.max_split_size_mb
        texts += [f"max_split_size_mb:{size}" for size in (64, 256) if lowest <= size != own]
    if facts["limit"] is not None and not settings.garbage_collection_threshold:
        texts.append("garbage_collection_threshold:0.8")
    for text in texts:
        yield text, _settings.parse(text, settings)


def try_options(case, facts, settings, seconds):
    """Replay a case under one option after the other; return ``(option, sentence)``."""
    until = time.perf_counter() + seconds
    tried = []
    evidence = f"replayed {case.recorded['events']:,} events"
    private, limit = facts["private"], facts["limit"]
    capacity = max(facts["reserved"] + facts["free"] - private, 1)
    limit = None if limit is None else max(limit - private, 0)
    try:
        if fits(case, capacity, settings, limit, until)[0]:
            return None, None  # the replay does not reproduce the failure
        for text, changed in candidates(settings, facts):
            if fits(case, capacity, changed, limit, until)[0]:
                return text, f"it would have fitted with {text} ({evidence})"
            tried.append(text)
        if limit is not None:
            fitted, peak = fits(case, capacity, settings, None, until)
            text = raised_limit(facts, settings, peak + private) if fitted else None
            if text is not None:
                return text, f"it would have fitted with {text} ({evidence})"
    except TimeoutError:
        names = f"; tried {', '.join(tried)}" if tried else ""
        return None, f"no option was found in {seconds:g} s that helps ({evidence}{names})"
    except (DeviceError, MemoryError):
        return None, None  # no room for a phantom device: the error itself matters more
    return None, f"no option would have helped ({evidence})"


def fits(case, capacity, settings, limit, until):
    """Return whether a case runs through on a device of its own, and the most that it reserves."""
    device = open_host(capacity=capacity, phantom=True)
    try:
        left = until - time.perf_counter()
        done, peak = replay_settings(case, device, settings, limit, left)
        return done == len(case.op), peak
    finally:
        close_host(device)

"""The options of the allocator: for each its name, default, check and documentation.

The names are those of ``PYTORCH_CUDA_ALLOC_CONF`` where such an option has a meaning here; our own
options come last. A converter takes the text of a value and returns the value, or raises
``ValueError`` with the rule. settings.py reads the texts from their sources.
"""

import re
from dataclasses import dataclass

__all__ = ["OPTIONS", "REJECTED", "Option", "roundup_table"]

ROUNDUP_INTERVALS = 16
LARGEST_MB = 1 << 40  # bytes stay below 2**60


def _power_of_two(value):
    return value > 0 and value & (value - 1) == 0


def _converter(pattern, read, is_allowed, allowed):
    """The converter of texts that match `pattern` and that `read` turns into an allowed value."""

    def convert(text):
        if not re.fullmatch(pattern, text) or not is_allowed(value := read(text)):
            raise ValueError(allowed)
        return value

    return convert


def _integer(lowest, highest=LARGEST_MB):
    return _converter(
        r"[0-9]{1,20}",
        int,
        lambda value: lowest <= value <= highest,
        f"an integer from {lowest} to {highest}",
    )


def _or_none(convert):
    """The converter of an option whose default is not a number; the text `none` selects it."""

    def convert_or_none(text):
        if text == "none":
            return None
        try:
            return convert(text)
        except ValueError as error:
            raise ValueError(f"{error}, or none") from None

    return convert_or_none


NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?"
_boolean = _converter("True|False", "True".__eq__, lambda _: True, "True or False")
_backend = _converter("native|cudaMallocAsync", str, lambda _: True, "native or cudaMallocAsync")
_page_size = _converter(
    r"[0-9]{1,6}",
    int,
    lambda value: value % 2 == 0 and 2 <= value <= 1024,
    "an even integer from 2 to 1024",
)
_threshold = _converter(
    NUMBER, float, lambda value: 0 <= value < 1, "a number from 0 (off) to below 1"
)
_fraction = _converter(NUMBER, float, lambda value: 0 <= value <= 1, "a number from 0 to 1")
_register_threads = _converter(
    r"[0-9]{1,3}",
    int,
    lambda value: _power_of_two(value) and value <= 128,
    "a power of 2 from 1 to 128",
)
ROUNDUP_ALLOWED = (
    "0 or a power of 2, or a list such as [256:1,512:2,1024:4,>:8] whose sizes (MB) are rising "
    "powers of 2 and whose divisions are 0 or powers of 2"
)


_division = _converter(
    r"[0-9]{1,9}", int, lambda value: value == 0 or _power_of_two(value), ROUNDUP_ALLOWED
)


def roundup_table(text):
    """Return the 16 divisions that a value of ``roundup_power2_divisions`` stands for.

    Entry `i` applies to sizes from ``2**i`` MiB to below ``2**(i + 1)`` MiB (entry 0 also to
    smaller sizes, entry 15 also to larger ones). As in PyTorch, the first size of a list also
    covers all sizes below it, ``>`` covers all sizes above the last one, and sizes that the list
    omits get 0: no rounding to divisions.

    >>> roundup_table("4")[:3], roundup_table("[2:1,8:4,>:16]")[:6]
    ((4, 4, 4), (1, 1, 0, 4, 16, 16))
    """
    if not text.startswith("["):
        return (_division(text),) * ROUNDUP_INTERVALS
    if not text.endswith("]"):
        raise ValueError(ROUNDUP_ALLOWED)
    table = [0] * ROUNDUP_INTERVALS
    last = None
    entries = text[1:-1].split(",")
    for position, entry in enumerate(entries):
        size, colon, division = entry.partition(":")
        value = _division(division)
        if size == ">":
            if not colon or position != len(entries) - 1:
                raise ValueError(ROUNDUP_ALLOWED)
            first = 0 if last is None else last + 1
            table[first:] = [value] * (ROUNDUP_INTERVALS - first)
            break
        if not re.fullmatch(r"[0-9]{1,9}", size) or not _power_of_two(int(size)):
            raise ValueError(ROUNDUP_ALLOWED)
        index = min(int(size).bit_length() - 1, ROUNDUP_INTERVALS - 1)
        if last is None:
            table[:index] = [value] * index
        elif index <= last:
            raise ValueError(ROUNDUP_ALLOWED)
        table[index] = value
        last = index
    return tuple(table)


@dataclass(frozen=True)
class Option:
    """One option: `convert` turns its text into a value; `default` is the value without it."""

    name: str
    default: object
    convert: object
    doc: str


OPTIONS = {
    option.name: option
    for option in (
        Option("backend", "native", _backend,
               "native: this allocator. cudaMallocAsync: the driver's stream-ordered pool, except "
               "for private pools. Fixed once a device has been used."),
        Option("large_segment_size_mb", 20, _integer(11),
               "Size of a plain segment for requests between 1 and 10 MiB. With "
               "expandable_segments:True segments grow by page_size_mb, and this is only the lower "
               "bound of the next two options."),
        Option("max_split_size_mb", None, _or_none(_integer(1)),
               "Blocks of at least this size in plain segments are not split and serve no smaller "
               "request. With expandable_segments:True it only defines which allocations "
               "oversize_allocations counts. Must be at least large_segment_size_mb. none: no "
               "limit."),
        Option("max_non_split_rounding_mb", None, _or_none(_integer(1)),
               "How much larger than the request a block may be that max_split_size_mb keeps "
               "whole. No effect with expandable_segments:True. Must be at least "
               "large_segment_size_mb, which is its default."),
        Option("garbage_collection_threshold", 0.0, _threshold,
               "Share of the allowed memory (memory_limit_mb, per_process_memory_fraction) above "
               "which pages of the page pool and free plain segments are returned to the device, "
               "the longest idle first. With expandable_segments:True free pages in segments stay. "
               "0: off."),
        Option("roundup_power2_divisions", (0,) * ROUNDUP_INTERVALS, roundup_table,
               "Round sizes up to a division of the interval between powers of 2: one number, or "
               "one for each interval. 0 and 1: round to 512 bytes only."),
        Option("expandable_segments", True, _boolean,
               "Segments grow page by page in reserved address space (PyTorch's default: False)."),
        Option("release_lock_on_cudamalloc", True, _boolean,
               "Accepted without effect: no lock is held during a driver call."),
        Option("graph_capture_record_stream_reuse", False, _boolean,
               "During a capture, blocks that several streams used are reused inside the graph "
               "once the graph's order shows that their uses come first. "
               "Without the option they are reused when the capture ends."),
        Option("per_process_memory_fraction", 1.0, _fraction,
               "Share of a device's memory that the process may reserve."),
        Option("throw_on_cudamalloc_oom", False, _boolean,
               "Refuse a request at once, without waiting for or releasing any memory, if it would "
               "need more reserved memory than per_process_memory_fraction and memory_limit_mb "
               "allow."),
        Option("pinned_use_cuda_host_register", False, _boolean,
               "Make pinned memory by registering ordinary pages, which several threads touch "
               "first."),
        Option("pinned_num_register_threads", 1, _register_threads,
               "Number of threads that touch the pages for pinned_use_cuda_host_register."),
        Option("pinned_use_background_threads", False, _boolean,
               "Accepted without effect: events are queried only when a request needs the memory, "
               "so a background thread would have nothing to do."),
        Option("pinned_reserve_segment_size_mb", 0, _integer(0),
               "Size of pinned memory that is allocated in one piece at first use. 0: none."),
        Option("pinned_max_round_threshold_mb", None, _or_none(_integer(0)),
               "Accepted without effect: pinned sizes are never rounded to powers of 2."),
        Option("pinned_max_cached_size_mb", None, _or_none(_integer(0)),
               "Free pinned segments beyond this total go back to the system. none: no limit."),
        Option("page_size_mb", 40, _page_size,
               "Usual page of virtual memory, by which segments for large blocks grow, or by less "
               "while a device holds little. Below 40 MiB, a page is at most 1/128 of the reserved "
               "memory: less is reserved, with more driver calls. A need of up to 2.4 pages (1.2 "
               "below 40 MiB) is one page, if that is no more than 1/64 of the device. A page for "
               "a large need is a third of it, up to five usual pages and 1/512 of the device."),
        Option("page_reuse", True, _boolean,
               "Free pages of any segment and stream may back the growth of any other segment."),
        Option("thread_cache", True, _boolean,
               "Each thread keeps a few free blocks in front of the pools."),
        Option("memory_limit_mb", 0, _integer(0),
               "Hard limit on reserved memory of each device. 0: no limit."),
        Option("history_max_entries", 1_000_000, _integer(1, 1 << 28),
               "Number of entries that record_memory_history keeps for each device."),
    )
}  # fmt: skip

# Options of PyTorch that have no meaning here, with the reasons.
REJECTED = {
    "expandable_segments_reserve": "each segment reserves 9/8 of the device, PyTorch's default",
    "expandable_segments_reserve_by_class": "segments have no classes here",
    "pinned_free_catch_all": "an error while freeing pinned memory is never hidden",
    "release_lock_on_hipmalloc": "ROCm is not supported; see release_lock_on_cudamalloc",
}

"""Snapshots in PyTorch's schema, so that ``_memory_viz.py`` and its web viewer read them.

The core copies its segments and blocks into two arrays under its lock (report.pxi); everything
here runs without it. Frame lists, pool pairs and the like are shared between the entries that have
the same ones, which makes 100,000 events a matter of milliseconds, and the pickle small.

The viewers use `device` as an index into `device_traces`. So devices are numbered in a snapshot:
CUDA devices by their ordinal, host devices after them; `devices`, an addition of ours, names
them.
"""

cdef enum:
    RECORD_INACTIVE = 0
    RECORD_ALLOCATED = 1
    RECORD_PENDING_FREE = 2      # freed by its owner, waits for a stream

# One segment; of an expandable segment one record for each contiguous mapped range.
cdef struct SegmentRecord:
    uint64_t address
    uint64_t nbytes
    uint64_t stream
    uint64_t pool_id            # private pool; 0: the default pool
    uint32_t stack              # where it was made or grown; 0: unknown
    uint32_t n_blocks           # its blocks follow those of the segments before
    int32_t device
    uint8_t is_large
    uint8_t is_expandable
    uint8_t reserved[2]

cdef struct BlockRecord:
    uint64_t address
    uint64_t nbytes
    uint64_t requested          # 0 for an inactive block
    uint32_t stack              # where it was allocated; 0: unknown
    uint8_t state               # RECORD_*
    uint8_t reserved[3]

SEGMENT_DTYPE = np.dtype(
    [
        ("address", "u8"),
        ("nbytes", "u8"),
        ("stream", "u8"),
        ("pool_id", "u8"),
        ("stack", "u4"),
        ("n_blocks", "u4"),
        ("device", "i4"),
        ("is_large", "u1"),
        ("is_expandable", "u1"),
        ("reserved", "u1", 2),
    ]
)
BLOCK_DTYPE = np.dtype(
    [
        ("address", "u8"),
        ("nbytes", "u8"),
        ("requested", "u8"),
        ("stack", "u4"),
        ("state", "u1"),
        ("reserved", "u1", 3),
    ]
)
if SEGMENT_DTYPE.itemsize != sizeof(SegmentRecord) or BLOCK_DTYPE.itemsize != sizeof(BlockRecord):
    raise ImportError("the records of snapshots and their NumPy dtypes differ")

STATES = ("inactive", "active_allocated", "active_pending_free")


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object)


# The first record of an array, which the caller keeps alive.
cdef uintptr_t _records(object array, object dtype) except? 1:
    if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError(f"snapshot: got {array.dtype}; expected contiguous records of {dtype}")
    return array.__array_interface__["data"][0]


def format_segments(segment_array, block_array, int number=0, StackFormatter stacks=None):
    """Turn the core's records of one device into PyTorch's list of segments.

    Parameters
    ----------
    segment_array, block_array : numpy.ndarray
        Of ``SEGMENT_DTYPE`` and ``BLOCK_DTYPE``.
    number : int
        What the entries call the device.
    stacks : StackFormatter, optional
        Shared between the parts of one snapshot.
    """
    cdef const SegmentRecord* segments = <const SegmentRecord*>_records(
        segment_array, SEGMENT_DTYPE)
    cdef const BlockRecord* blocks = <const BlockRecord*>_records(block_array, BLOCK_DTYPE)
    cdef const SegmentRecord* segment
    cdef const BlockRecord* block
    cdef tuple states = STATES
    cdef list formatted = []
    cdef list tiles
    cdef dict tile
    cdef size_t i, j, first = 0
    cdef uint64_t allocated, active, requested
    cdef dict pools = {}
    stacks = stacks or StackFormatter()
    if segment_array["n_blocks"].sum() != len(block_array):
        raise ValueError(f"segments: got {len(block_array)} blocks; expected as many as the counts "
                         "of the segments say")
    for i in range(<size_t>len(segment_array)):
        segment = &segments[i]
        allocated = active = requested = 0
        tiles = []
        for j in range(first, first + segment.n_blocks):
            block = &blocks[j]
            if block.state != RECORD_INACTIVE:
                active += block.nbytes
                requested += block.requested
                if block.state == RECORD_ALLOCATED:
                    allocated += block.nbytes
            tile = {
                "address": block.address,
                "size": block.nbytes,
                "requested_size": block.requested,
                "state": states[block.state],
                "frames": stacks.frames_of(block.stack),
            }
            PyObject_GC_UnTrack(tile)       # part of no cycle, as the entries of the history
            tiles.append(tile)
        first += segment.n_blocks
        pool = pools.get(segment.pool_id)
        if pool is None:
            pool = pools[segment.pool_id] = pool_pair(segment.pool_id)
        formatted.append({
            "device": number,
            "address": segment.address,
            "total_size": segment.nbytes,
            "allocated_size": allocated,
            "active_size": active,
            "requested_size": requested,
            "stream": segment.stream,
            "segment_type": "large" if segment.is_large else "small",
            "segment_pool_id": pool,
            "is_expandable": bool(segment.is_expandable),
            "frames": stacks.frames_of(segment.stack),
            "blocks": tiles,
        })
    return formatted


def device_name(int device):
    """Return what a snapshot calls a device.

    >>> device_name(1), device_name(-1), device_name(-2)
    ('cuda:1', 'host', 'host:1')
    """
    if device >= 0:
        return f"cuda:{device}"
    return "host" if device == -1 else f"host:{-1 - device}"


def device_names(devices):
    """Return the list that a snapshot numbers devices by, for open device numbers.

    >>> device_names([-1, 0]), device_names([1]), device_names([-2, -1])
    (['cuda:0', 'host'], ['cuda:0', 'cuda:1'], ['host', 'host:1'])
    """
    hosts = sorted((device for device in devices if device < 0), reverse=True)
    return [device_name(device) for device in (*range(max(devices, default=-1) + 1), *hosts)]


def allocator_settings():
    """Return what a snapshot says of the settings, under PyTorch's names and in its units."""
    settings = _settings.current()
    table = settings.roundup_power2_divisions
    split, cached = settings.max_split_size_mb, settings.pinned_max_cached_size_mb
    threshold = settings.pinned_max_round_threshold_mb
    text = settings.text()
    return {
        "PYTORCH_CUDA_ALLOC_CONF": text,
        _settings.VARIABLE: text,
        "max_split_size": -1 if split is None else split << 20,
        "garbage_collection_threshold": settings.garbage_collection_threshold,
        "expandable_segments": settings.expandable_segments,
        "pinned_num_register_threads": settings.pinned_num_register_threads,
        "release_lock_on_cudamalloc": settings.release_lock_on_cudamalloc,
        "pinned_use_cuda_host_register": settings.pinned_use_cuda_host_register,
        "graph_capture_record_stream_reuse": settings.graph_capture_record_stream_reuse,
        "roundup_power2_divisions": {str(1 << i): value for i, value in enumerate(table)},
        "max_round_threshold": -1 if threshold is None else threshold << 20,
        "max_cached_size": -1 if cached is None else cached << 20,
    }


cdef object _format_devices(dict places, dict collected, StackFormatter stacks, list segments,
                            list traces, bint include_traces, bint is_pinned):
    for device, place in sorted(places.items(), key=lambda item: item[1]):
        segment_array, block_array = collected[device]
        segments.extend(format_segments(segment_array, block_array, place, stacks))
        if include_traces:
            traces[place] = history_entries(device, stacks, is_pinned)


def format_snapshot(devices, collect, include_traces=True, collect_pinned=None):
    """Take and format a snapshot of open devices.

    Parameters
    ----------
    devices : sequence of int
        Device numbers.
    collect : callable
        ``collect(device) -> (segments, blocks)``: the core's records, copied under its lock.
    include_traces : bool
        Whether the history goes into it.
    collect_pinned : callable, optional
        The same as `collect` for the devices' pinned host memory.
    """
    names = device_names(devices)
    cdef dict places = {device: names.index(device_name(device)) for device in devices}
    for device in devices:
        history_record(device, HISTORY_SNAPSHOT, 0, 0, 0,
                       stack_capture_if(HISTORY_STACK_ALLOC), 0)
    collected = {device: collect(device) for device in devices}
    pinned = {device: collect_pinned(device) for device in devices} if collect_pinned else {}
    cdef StackFormatter stacks = StackFormatter()
    segments = []
    traces = [[] for _ in names]
    host_segments = []
    host_traces = [[] for _ in names]
    # Hundreds of thousands of new dicts would set off collections that can find nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        _format_devices(places, collected, stacks, segments, traces, include_traces, False)
        if pinned:
            _format_devices(places, pinned, stacks, host_segments, host_traces, include_traces,
                            True)
    finally:
        if collecting:
            gc.enable()
    return {
        "segments": sorted(segments, key=lambda segment: segment["address"]),
        "device_traces": traces,
        "allocator_settings": allocator_settings(),
        "external_annotations": [],
        "host_segments": sorted(host_segments, key=lambda segment: segment["address"]),
        "host_traces": host_traces,
        "devices": names,
    }


def write_pickle(value, path):
    """Write a pickle so that `path` holds either what it held before or the whole new file."""
    write_whole(path, lambda file: pickle.dump(value, file, protocol=4))

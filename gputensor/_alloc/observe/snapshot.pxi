"""Snapshots in PyTorch's schema, so that ``_memory_viz.py`` and its web viewer read them.

The core copies its segments and blocks into two arrays under its lock (report.pxi); everything
here runs without it. Frame lists, pool pairs and the like are shared between the entries that have
the same ones, which makes 100,000 events a matter of milliseconds, and the pickle small.

The viewers use `device` as an index into `device_traces`. So devices are numbered in a snapshot:
CUDA devices by their ordinal, host devices after them; `devices`, which PyTorch does not have,
names them.
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

cdef struct BlockRecord:
    uint64_t address
    uint64_t nbytes
    uint64_t requested          # 0 for an inactive block
    uint32_t stack              # where it was allocated; 0: unknown
    uint8_t state               # RECORD_*

SEGMENT_DTYPE = np.dtype({
    "names": "address nbytes stream pool_id stack n_blocks device is_large is_expandable".split(),
    "formats": "u8 u8 u8 u8 u4 u4 i4 u1 u1".split(),
}, align=True)
BLOCK_DTYPE = np.dtype({
    "names": "address nbytes requested stack state".split(), "formats": "u8 u8 u8 u4 u1".split(),
}, align=True)
if SEGMENT_DTYPE.itemsize != sizeof(SegmentRecord) or BLOCK_DTYPE.itemsize != sizeof(BlockRecord):
    raise ImportError("the records of snapshots and their NumPy dtypes differ")

STATES = ("inactive", "active_allocated", "active_pending_free")


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object)


def format_segments(segments, blocks, int number=0, StackFormatter stacks=None):
    """Turn the core's records of one device into PyTorch's list of segments.

    Parameters
    ----------
    segments, blocks : numpy.ndarray
        Of ``SEGMENT_DTYPE`` and ``BLOCK_DTYPE``.
    number : int
        The device's number in the entries.
    stacks : StackFormatter, optional
        Shared between the parts of one snapshot.
    """
    cdef list tiles = [], formatted = []
    cdef dict tile, pools = {pool: pool_pair(pool) for pool in segments["pool_id"].tolist()}
    cdef Py_ssize_t i, first = 0
    cdef tuple states = STATES
    stacks = stacks or StackFormatter()
    if segments["n_blocks"].sum() != len(blocks):
        raise ValueError(f"segments: got {len(blocks)} blocks; expected as many as the counts "
                         "of the segments say")
    blocks = np.ascontiguousarray(blocks)
    block = <BlockRecord*><uintptr_t>blocks.__array_interface__["data"][0]
    for i in range(len(blocks)):
        tile = {
            "address": block[i].address,
            "size": block[i].nbytes,
            "requested_size": block[i].requested,
            "state": states[block[i].state],
            "frames": stacks.frames_of(block[i].stack),
        }
        PyObject_GC_UnTrack(tile)       # part of no cycle, like the entries of the history
        tiles.append(tile)
    ends = np.cumsum(segments["n_blocks"])
    active = np.where(blocks["state"] != RECORD_INACTIVE, blocks["nbytes"], 0)
    allocated = np.where(blocks["state"] == RECORD_ALLOCATED, blocks["nbytes"], 0)
    sums = [np.diff(np.append(0, np.cumsum(values, dtype=np.int64))[ends], prepend=0).tolist()
            for values in (allocated, active, blocks["requested"])]
    for i, (address, nbytes, stream, pool, stack, count, _, is_large, grows) in enumerate(
            segments.tolist()):
        held = tiles[first:first + count]
        first += count
        formatted.append({
            "device": number,
            "address": address,
            "total_size": nbytes,
            "allocated_size": sums[0][i],
            "active_size": sums[1][i],
            "requested_size": sums[2][i],
            "stream": stream,
            "segment_type": "large" if is_large else "small",
            "segment_pool_id": pools[pool],
            "is_expandable": bool(grows),
            "frames": stacks.frames_of(stack),
            "blocks": held,
        })
    return formatted


def device_name(int device):
    """Return the name of a device in a snapshot.

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
    """Return the settings as a snapshot shows them: under PyTorch's names, in its units."""
    settings = _settings.current()
    table = settings.roundup_power2_divisions
    split, cached = settings.max_split_size_mb, settings.pinned_max_cached_size_mb
    threshold = settings.pinned_max_round_threshold_mb
    text = settings.text()
    same = ("garbage_collection_threshold", "expandable_segments", "pinned_num_register_threads",
            "release_lock_on_cudamalloc", "pinned_use_cuda_host_register",
            "graph_capture_record_stream_reuse")
    return {name: getattr(settings, name) for name in same} | {
        "PYTORCH_CUDA_ALLOC_CONF": text,
        _settings.VARIABLE: text,
        "max_split_size": -1 if split is None else split << 20,
        "roundup_power2_divisions": {str(1 << i): value for i, value in enumerate(table)},
        "max_round_threshold": -1 if threshold is None else threshold << 20,
        "max_cached_size": -1 if cached is None else cached << 20,
    }


# The segments and the events of devices, each with its place in the lists of a snapshot.
cdef tuple _formatted(list places, list collected, StackFormatter stacks, bint is_pinned,
                      bint include_traces):
    cdef list segments = [], traces = [[] for _ in range(max(places, default=(-1,))[0] + 1)]
    for (place, device), (segment_array, block_array) in zip(places, collected):
        segments += format_segments(segment_array, block_array, place, stacks)
        if include_traces:
            traces[place] = history_entries(device, stacks, is_pinned)
    return sorted(segments, key=itemgetter("address")), traces


def format_snapshot(devices, collect, include_traces=True):
    """Take and format a snapshot of open devices, and of their pinned memory.

    Parameters
    ----------
    devices : sequence of int
        Device numbers.
    collect : callable
        ``collect(device) -> (segments, blocks)``: the core's records, copied under its lock.
    include_traces : bool
        Whether the history goes into it.
    """
    cdef StackFormatter stacks
    names = device_names(devices)
    places = sorted([(names.index(device_name(device)), device) for device in devices])
    collected = [collect(device) for _, device in places]
    pinned = [collect_pinned(device) for _, device in places]
    stacks = StackFormatter()
    # Hundreds of thousands of new dicts would start garbage collections that can find nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        segments, traces = _formatted(places, collected, stacks, False, include_traces)
        host_segments, host_traces = _formatted(places, pinned, stacks, True, include_traces)
    finally:
        if collecting:
            gc.enable()
    for device in devices:      # a later snapshot shows where this one was taken
        history_record(device, HISTORY_SNAPSHOT, 0, 0, 0, stack_capture_if(HISTORY_STACK_ALLOC), 0)
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": allocator_settings(),
        "external_annotations": [],
        "host_segments": host_segments,
        "host_traces": host_traces,
        "devices": names,
    }


def write_pickle(value, path):
    """Write a pickle so that `path` holds either what it held before or the whole new file."""
    write_whole(path, lambda file: pickle.dump(value, file, protocol=4))

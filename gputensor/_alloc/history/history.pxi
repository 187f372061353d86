"""The memory history: what happened to which address, when, and from which line.

A record is 64 bytes: action, address, size, stream, time, private pool, stack id. Stacks are
interned (stacks.pxi); the ring is lock-free (ring.h). So recording is a clock read and eight
stores, always affordable, and nothing is formatted before `history_entries` is called.

There is one ring for each open device, and one for its pinned host memory, made by its first record
and kept until the device closes, so a writer needs no protection against a reader or against
switching off. One word of bits, read without a lock on every allocation, says what is recorded.
"""

cdef extern from "gputensor/_alloc/history/ring.h" nogil:
    ctypedef struct gt_record:
        uint64_t sequence, ptr, nbytes, stream, pool_id, time_ns
        uint32_t stack, action
        uint64_t requested
    ctypedef struct gt_ring:
        uint64_t mask, limit
    gt_ring* gt_ring_new(uint64_t limit)
    void gt_ring_add(gt_ring* ring, const gt_record* source)
    void gt_ring_delete(gt_ring* ring)
    uint64_t gt_now_ns()
    void gt_ring_range(gt_ring* ring, uint64_t* first, uint64_t* end)
    int gt_ring_get(gt_ring* ring, uint64_t number, gt_record* out)
    gt_ring* gt_ring_enlarged(gt_ring* ring, uint64_t limit)
    void gt_ring_set_limit(gt_ring* ring, uint64_t limit)
    void gt_ring_clear(gt_ring* ring)

cdef extern from *:
    """
    static __thread uint32_t gt_request_stack;  // of the request that this thread makes; 0: none
    static __thread uint32_t gt_metadata;       // number of the text of its events

    // The ring in a cell, made by the first record of its device.
    static inline gt_ring* gt_ring_of(gt_ring** cell, uint64_t limit) {
        gt_ring* ring = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
        if (__builtin_expect(ring != NULL, 1)) return ring;
        // Of two threads that make one, one wins, and the other's stays as unused address space.
        gt_ring* made = gt_ring_new(limit);
        if (made == NULL) return NULL;
        if (__atomic_compare_exchange_n(cell, &ring, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return made;
        return ring;
    }
    """
    uint32_t gt_request_stack
    uint32_t gt_metadata
    gt_ring* gt_ring_of(gt_ring** cell, uint64_t limit) nogil

# The settings of the recording, read and written by gt_load and gt_store.
cdef int bits_in_force = 0      # HISTORY_* bits
cdef uint32_t kept_actions = 0  # bit of each action that goes to the ring
cdef bint is_traced_with_stacks = False
cdef bint is_native = False     # stacks have C frames too
cdef uint64_t limit_in_force = 1

cdef extern from "Python.h":
    int PyGILState_Check() noexcept nogil
    dict PyDict_Copy(dict)
    void PyObject_GC_UnTrack(object)

cdef extern from "gputensor/_driver/layers/mailbox.h" namespace "gputensor" nogil:
    cdef cppclass Mailbox[T]:
        void add(const T& message)
        vector[T] take()
        void renew()

# Events for listen.pxi to deliver, while there are functions that receive them.
cdef struct Tracked:
    int device
    gt_record record

cdef Mailbox[Tracked] undelivered
cdef bint is_tracked = False

cdef enum:
    DEVICE_RING = 0
    PINNED_RING = 1
    RINGS = 2

ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
           "segment_map", "segment_unmap", "snapshot", "oom")
LARGEST_RING = 1 << 28          # entries: 16 GiB of address space
# A gt_record.
RECORD_DTYPE = np.dtype({
    "names": "sequence ptr nbytes stream pool_id time_ns stack action requested".split(),
    "formats": "u8 u8 u8 u8 u8 u8 u4 u4 u8".split(),
})

# The texts that threads add to their events, by number; 0: none. A record has it above its action.
cdef enum:
    METADATA_SHIFT = 8
    ACTION_MASK = 255
    METADATA_LIMIT = 1 << 24

cdef list metadata_texts = [""]
cdef dict metadata_numbers = {"": 0}


cdef int history_enabled(int device) noexcept nogil:
    return gt_load(&bits_in_force)


cdef inline gt_record record_of(int action, uint64_t ptr, size_t nbytes, uint64_t stream,
                                uint32_t stack, uint64_t pool_id) noexcept nogil:
    return gt_record(0, ptr, nbytes, stream, pool_id, 0, stack, action, nbytes)


cdef void history_record(int device, int action, uint64_t ptr, size_t nbytes, uint64_t stream,
                         uint32_t stack, uint64_t pool_id) noexcept nogil:
    cdef gt_record record = record_of(action, ptr, nbytes, stream, stack, pool_id)
    record_add(device, DEVICE_RING, &record)


cdef void history_segment(int action, Segment* segment, uint64_t ptr, size_t nbytes,
                          uint32_t stack) noexcept nogil:
    cdef DeviceAllocator* a = segment.pool.allocator
    cdef gt_record record = record_of(action, ptr, nbytes, segment.stream, stack,
                                      segment.pool.pool_id)
    record_add(a.device, PINNED_RING if a.is_pinned else DEVICE_RING, &record)


# Adds a record that has everything but its time, if its action is recorded.
cdef inline void record_add(int device, int which, gt_record* record) noexcept nogil:
    if (gt_load(&kept_actions) >> record.action) & 1:
        record.time_ns = gt_now_ns()
        record_add_timed(device, which, record)


cdef inline void record_add_timed(int device, int which, gt_record* record) noexcept nogil:
    cdef gt_ring** cell = rings_of(device)
    cdef gt_ring* ring = NULL
    if cell != NULL:
        ring = gt_ring_of(&cell[which], gt_load(&limit_in_force))
    if ring == NULL:
        return
    if not gt_load(&is_traced_with_stacks):
        record.stack = 0
    record.action |= gt_metadata << METADATA_SHIFT
    gt_ring_add(ring, record)
    if which == DEVICE_RING and gt_load(&is_tracked):
        undelivered.add(Tracked(device, record[0]))
        request_delivery()


cdef uint32_t stack_capture_if(int wanted) noexcept nogil:
    if not gt_load(&bits_in_force) & wanted or not PyGILState_Check():
        return 0
    return stack_capture(gt_load(&is_native))


cdef uint32_t stack_for_request(int wanted) noexcept nogil:
    global gt_request_stack
    gt_request_stack = stack_capture_if(wanted)
    return gt_request_stack


cdef uint32_t stack_of_request() noexcept nogil:
    return gt_request_stack


# The entry of a record: a copy of one in `patterns` that differs only in address, size and time,
# which is several times quicker than building it from its keys.
cdef dict entry_of(const gt_record* record, dict patterns, StackFormatter stacks):
    cdef dict entry
    cdef uint32_t action = record.action & ACTION_MASK
    key = record.action, record.stack, record.stream, record.pool_id
    pattern = patterns.get(key)
    if pattern is None:
        pattern = patterns[key] = {
            "action": ACTIONS[action],
            "device_free" if action == HISTORY_OOM else "addr": 0,
            "size": 0,
            "stream": record.stream,
            "time_us": 0,
            "frames": stacks.frames_of(record.stack),
            "compile_context": "N/A",
            "user_metadata": metadata_texts[record.action >> METADATA_SHIFT],
            "pool_id": pool_pair(record.pool_id),
        }
    entry = PyDict_Copy(pattern)
    entry["device_free" if action == HISTORY_OOM else "addr"] = record.ptr
    entry["size"] = record.nbytes
    entry["time_us"] = record.time_ns // 1000
    # Nothing in it can be part of a cycle: collections need not visit 100,000 of them.
    PyObject_GC_UnTrack(entry)
    return entry


cdef gt_record* records_in(object array) noexcept:
    return <gt_record*><uintptr_t>array.__array_interface__["data"][0]


cdef list history_entries(int device, object formatter, bint is_pinned):
    cdef StackFormatter stacks = formatter
    cdef dict patterns = {}
    cdef Py_ssize_t i
    array = raw_records(device, LARGEST_RING, PINNED_RING if is_pinned else DEVICE_RING)
    records = records_in(array)
    return [entry_of(&records[i], patterns, stacks) for i in range(len(array))]


def raw_records(int device, uint64_t most, int which=DEVICE_RING):
    """Return the newest `most` events of a ring of a device, oldest first, as ``RECORD_DTYPE``.

    Events recorded during the call are left out. The number of an event's text is above the lowest
    8 bits of its action.
    """
    cdef gt_ring* ring = ring_peek(device, which)
    cdef uint64_t number, first, end, filled = 0
    if ring == NULL:
        return np.empty(0, RECORD_DTYPE)
    gt_ring_range(ring, &first, &end)
    if end - first > most:
        first = end - most
    made = np.empty(end - first, RECORD_DTYPE)
    records = records_in(made)
    for number in range(first, end):
        filled += gt_ring_get(ring, number, &records[filled])
    return made[:filled]


# Limits a ring to showing at most `limit` events from now on.
cdef void ring_limit(gt_ring** cell, uint64_t limit, bint is_cleared) noexcept:
    cdef gt_ring* ring = gt_load(cell)
    if ring == NULL:
        return
    if is_cleared:
        gt_ring_clear(ring)
    if ring.mask + 1 >= limit:
        gt_ring_set_limit(ring, limit)
    else:
        gt_store(cell, gt_ring_enlarged(ring, limit))
        gt_ring_clear(ring)


def _check(name, value, allowed):
    if value not in allowed:
        wanted = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name}: got {value!r}; expected {wanted}")


def record_memory_history(enabled="all", context="all", stacks="python", max_entries=None,
                          device=None, *, clear_history=False, skip_actions=None):
    """Switch the recording of allocations on or off, on all devices and of pinned host memory.

    Parameters
    ----------
    enabled : {"all", "state", None, True, False}
        ``"all"``: keep the newest `max_entries` events of each device, and the stacks of what is
        allocated. ``True`` means the same. ``"state"``: keep only the stacks of what is allocated.
        ``None`` and ``False``: record nothing and drop the events.
    context : {"all", "alloc", "state", None}
        Which stacks are captured. ``"all"``: of allocations and frees. ``"alloc"``: of allocations.
        ``"state"``: of allocations, shown with the blocks of a snapshot but not with its events.
    stacks : {"python", "all"}
        ``"all"`` adds C frames (about 2 µs for each stack). Threads without the GIL have no stack.
    max_entries : int, optional
        Events to keep for each device; the option ``history_max_entries`` when not given.
    device : optional
        Accepted without effect, as in PyTorch: every device records.
    clear_history : bool
        Drop the events recorded so far.
    skip_actions : sequence of str
        Actions that are not recorded, of ``alloc``, ``free_requested``, ``free_completed``,
        ``segment_alloc``, ``segment_free``, ``segment_map``, ``segment_unmap``, ``snapshot``,
        ``oom``.

    Examples
    --------
    >>> record_memory_history(max_entries=1000)
    >>> record_memory_history(None)
    """
    cdef int bits = 0
    cdef uint32_t keep = 0
    cdef uint64_t limit
    cdef int index, which
    if isinstance(enabled, bool):
        enabled = "all" if enabled else None
    _check("enabled", enabled, ("all", "state", None))
    _check("context", context, ("all", "alloc", "state", None))
    _check("stacks", stacks, ("python", "all"))
    if isinstance(skip_actions, str) or not hasattr(skip_actions or (), "__iter__"):
        raise TypeError(f"skip_actions: got {skip_actions!r}; expected a sequence of actions")
    skip_actions = tuple(skip_actions or ())      # it may be an iterator
    for action in skip_actions:
        _check("skip_actions", action, ACTIONS)
    if max_entries is None:
        max_entries = _settings.current().history_max_entries
    if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
        raise ValueError(f"max_entries: got {max_entries!r}; expected an integer from 1")
    limit = min(max_entries, LARGEST_RING)
    if enabled is not None:
        if context is not None:
            bits |= HISTORY_STACK_ALLOC
        if enabled == "all":
            bits |= HISTORY_TRACE
            keep = (1 << HISTORY_ACTIONS) - 1
            if context == "all":
                bits |= HISTORY_STACK_FREE
    for action in skip_actions:
        keep &= ~(<uint32_t>1 << <int>ACTIONS.index(action))
    for index in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES):
        if rings_of(index) != NULL:
            for which in range(RINGS):
                ring_limit(&rings_of(index)[which], limit, enabled is None or clear_history)
    gt_store(&kept_actions, keep)
    gt_store(&is_traced_with_stacks, <bint>(context in ("all", "alloc")))
    gt_store(&is_native, <bint>(stacks == "all"))
    gt_store(&limit_in_force, limit)
    gt_store(&bits_in_force, bits)
    _in_force.update(enabled=enabled, context=context, stacks=stacks, max_entries=limit,
                     skip_actions=skip_actions)


_in_force = {"enabled": None, "context": None, "stacks": "python", "max_entries": 0,
             "skip_actions": ()}


def history_settings():
    """Return the last arguments of :func:`record_memory_history` as a dict."""
    return dict(_in_force)


def set_memory_metadata(metadata):
    """Add a text to every event that this thread causes from now on; ``""`` adds none.

    Snapshots show it as the ``user_metadata`` of the events. A program may use 16 million texts.

    Examples
    --------
    >>> set_memory_metadata("step 7")
    >>> get_memory_metadata()
    'step 7'
    >>> set_memory_metadata("")
    """
    global gt_metadata
    if not isinstance(metadata, str):
        raise TypeError(f"metadata: got {type(metadata).__name__}; expected a str")
    number = metadata_numbers.setdefault(metadata, len(metadata_texts))
    if number == len(metadata_texts):
        if number == METADATA_LIMIT:
            del metadata_numbers[metadata]
            raise ValueError(f"metadata: got one text more than {METADATA_LIMIT}; expected fewer")
        metadata_texts.append(metadata)
    gt_metadata = number


def get_memory_metadata():
    """Return the text that :func:`set_memory_metadata` was last given in this thread."""
    return metadata_texts[gt_metadata]


def add_entry(device, action, ptr, nbytes, stream=0, pool_id=0):
    """Record an event of a caller's own, with the caller's stack; used by tests and replays."""
    cdef int number = ACTIONS.index(action)
    cdef bint is_free = number in (HISTORY_FREE_REQUESTED, HISTORY_FREE_COMPLETED)
    stack = stack_capture_if(HISTORY_STACK_FREE if is_free else HISTORY_STACK_ALLOC)
    history_record(device, number, ptr, nbytes, stream, stack, pool_id)


def entries(device):
    """Return the events of a device, oldest first, as dicts of PyTorch's schema."""
    return history_entries(device, StackFormatter(), False)


# ---- the slot of this room (registry.pxd) ----

# The rings of a device; NULL when it is not open.
cdef inline gt_ring** rings_of(int device) noexcept nogil:
    return <gt_ring**>device_slot(device, history_slot)


cdef gt_ring* ring_peek(int device, int which) noexcept nogil:
    cdef gt_ring** cell = rings_of(device)
    if cell != NULL:
        return gt_load(&cell[which])
    return NULL


cdef int _close(int device) except -1:
    cdef int which
    for which in range(RINGS):
        gt_ring_delete(rings_of(device)[which])
    return 0


# In the child of a fork, the events concern the parent's memory: they are cleared.
cdef int _reopen(int device) except -1:
    cdef int which
    for which in range(RINGS):
        if rings_of(device)[which] != NULL:
            gt_ring_clear(rings_of(device)[which])
    return 0


cdef void _fork() noexcept nogil:
    undelivered.renew()


cdef Slot slot
slot.fork = _fork
slot.nbytes = slot.kept_nbytes = RINGS * sizeof(gt_ring*)
slot.close = _close
slot.reopen = _reopen
cdef int history_slot = register_slot(&slot)

# The functions of streams/order that other rooms may call; each section is named after its part.

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from gputensor._alloc.core cimport Block
from gputensor._alloc.model cimport PoolHold
from gputensor._driver.table cimport status_t

# ---- current

# The device and the stream that this thread works on. Reading them makes no driver call.
#
# A device number that current_device() or resolve_device() returns is open: driver_get() of it is
# not NULL.

cdef enum:
    NO_DEVICE = -1000

# Opens the default device at its first use in the process.
cdef int current_device() except? -1000
# The current stream's handle on `device` in this thread; 0 is the default stream.
cdef uint64_t current_handle(int device) noexcept nogil
# Takes None (the current device), "cuda", "cuda:1", "host", a device number, or an object with
# .type and .index. Opens the device. Raises ValueError or TypeError for other arguments,
# DeviceError when the machine has no such device.
cdef int resolve_device(object device) except? -1000
# The same without opening it.
cdef int parse_device(object device) except? -1000
# "cuda:1" or "host" for a device number.
cdef str device_text(int device)
# Raises the DeviceError for the use of an object of another generation; `what` names its kind, for
# example "tensor".
cdef int raise_closed(int device, int generation, str what) except -1
# For streams/ only. `stream_object` is the Stream of `stream`, or None for the default stream; the
# thread keeps it alive while it is current.
cdef int make_device_current(int device) except -1
cdef int make_stream_current(int device, uint64_t stream, object stream_object) except -1
cdef object current_stream_object(int device)
# Enters a device or a stream, and remembers the former device and stream, which leave() restores.
# The frames of one thread form a stack.
cdef int enter_device(int device) except -1
cdef int enter_stream(int device, uint64_t stream, object stream_object) except -1
cdef int leave() except -1


# ---- traces

# Whether a function is being traced in this thread, and its tracer or None; see set_tracer.
cdef bint is_tracing() noexcept nogil
cdef object current_tracer()


# ---- event_pool

# Events without time stamps, shared by the whole library. A returned event may be handed out again
# at once: a queued wait refers to the record that was made before it.

cdef status_t event_take(int device, uint64_t* event) noexcept nogil
cdef void event_return(int device, uint64_t event) noexcept nogil
# Records an event after the work that `stream` holds now; 0 when the status is not OK.
cdef status_t event_behind(int device, uint64_t stream, uint64_t* event) noexcept nogil


# ---- marks

# Events after some work of a stream that several records share and count.

cdef extern from "gputensor/streams/order/graph_streams.h" namespace "gputensor" nogil:
    cdef struct Mark:
        int holders
        uint64_t event
        uint64_t stream
        uint64_t moment

    cdef cppclass GraphStream:
        uint64_t stream
        uint64_t visit
        Mark* after
        int graphs
        bint is_private
        bint is_given
        vector[Mark*] more
        vector[GraphStream*] users

    cdef cppclass StreamTable:
        StreamTable()
        GraphStream* find(uint64_t stream)
        GraphStream* make(uint64_t stream)
        Mark* take_mark()
        int member_count()
        int private_count()

    bint appended[T](vector[T]& to, T value)
    bint has_user(const GraphStream* of, const GraphStream* user)
    void mark_hold(Mark* mark, ...)
    bint mark_is_shared(const Mark* mark)
    bint mark_let_go(Mark* mark, ...)
    bint mark_covers(const Mark* mark, const Mark* held)
    bint waits_add_one(vector[Mark*]& waits, Mark* mark, uint64_t waiter)
    bint waits_add(vector[Mark*]& waits, const GraphStream* of, uint64_t waiter)

# Marks a replay that was just queued on `stream`. `mark` holds the mark of the graph's former
# replay, or NULL; it holds the new one if the status is OK.
cdef status_t mark_replay(int device, uint64_t stream, Mark** mark) noexcept nogil
# Ends a holder's use of a mark, which may be NULL.
cdef void mark_drop(int device, Mark* mark) noexcept nogil
# The same after the device was closed, with its events.
cdef void mark_forget(Mark* mark) noexcept nogil


# ---- graph_streams

# The streams that live graphs were captured on, and the users of the same memory.

# `stream` was made for captures: only they queue work on it, until graph_stream_open.
cdef int graph_stream_made(int device, uint64_t stream) except -1
# Before other work on such a stream, or a wait for it, unless it captures: gives the driver its
# waits. From then on it is a stream like others.
cdef status_t graph_stream_open(int device, uint64_t stream) noexcept nogil
# Gives the driver its waits, and the stream stays what it is.
cdef status_t graph_stream_give(int device, uint64_t stream) noexcept nogil
# One more graph or capture has the stream, or one less. False without memory.
cdef bint graph_stream_retain(int device, uint64_t stream) noexcept nogil
cdef void graph_stream_release(int device, uint64_t stream) noexcept nogil
# Around a replay: finds the streams that a replay of a graph with these members is ordered with,
# makes `stream` wait for them, and makes them wait for the replay that `mark` follows.
cdef int graph_peers(int device, list members, vector[GraphStream*]& peers) except -1
cdef status_t graph_peers_wait(int device, uint64_t stream,
                               vector[GraphStream*]& peers) noexcept nogil
cdef status_t graph_peers_follow(int device, uint64_t stream, Mark* mark,
                                 vector[GraphStream*]& peers) noexcept nogil
# The host has waited for the mark of a graph that is about to be released: no stream needs it.
cdef int graph_peers_done(int device, list members, Mark* mark) except -1


# ---- waited

# Records of work that is known to be done because a thread of this process waited for it.

# The number of waits begun and replays queued. Read without a lock: a use of memory is stamped with
# it, in the section that queues the use.
cdef uint64_t wait_clock

# wait_begun returns the moment at which a wait begins (with the GIL, outside the queueing of a
# use). When the wait succeeds, work queued before that moment on `stream`, or on all streams of the
# device, is done.
cdef uint64_t wait_begun() noexcept nogil
cdef void wait_succeeded(int device, uint64_t stream, uint64_t moment) noexcept nogil
cdef void wait_succeeded_for_all(int device, uint64_t moment) noexcept nogil


# ---- capture

cdef extern from "gputensor/streams/order/captured.h" namespace "gputensor" nogil:
    cdef cppclass Captured:
        vector[uint64_t] graphs
        vector[uint64_t] conditions
        vector[uint64_t] inner
        vector[uint64_t] own
        vector[uint64_t] shared

# The streams that take part in active captures, and the work that they must be ordered with.

# The number of active captures of this library, on all devices.
cdef int captures_active() noexcept nogil
# The caller has called pool_begin for `stream`, and calls pool_end for it. `before`: from
# mark_before; ownership passes to this function.
cdef int capture_started(int device, uint64_t capture_id, uint64_t pool_id, uint64_t stream,
                         Mark* before) except -1
# Marks the work of a stream that is about to capture. NULL for a private stream.
cdef status_t mark_before(int device, uint64_t stream, Mark** before) noexcept nogil
# Called before and after `stream` is made to wait while captures are active. If the wait makes the
# stream join a capture, the second call records this and directs the stream's allocations to the
# capture's pool. The first call sets `before`, which the second one takes.
cdef status_t capture_joining(int device, uint64_t stream, Mark** before) noexcept nogil
cdef void capture_joined(int device, uint64_t stream, Mark* before) noexcept nogil
# Removes the capture, makes its streams wait for their owed events, and returns their handles, the
# first one first, and those of capture_add_inner; the caller calls graph_stream_release for each.
# `waits` is set to the status of the waits. `holds` gets the pools from which joined streams took
# memory (pool_end). `captured` gets the bodies and conditions captured beside the graph itself.
cdef list capture_finished(int device, uint64_t capture_id, status_t* waits, PoolHold** holds,
                           Captured* captured)
# The pool and the id of the capture that a stream takes part in; 0: no capture of this library.
cdef uint64_t capture_pool(int device, uint64_t stream, uint64_t* capture_id) noexcept nogil
cdef int capture_add_condition(int device, uint64_t capture_id, uint64_t condition) except -1
# A graph with these streams was replayed on `stream`, which captures.
cdef status_t capture_add_inner(int device, uint64_t stream, list members) except? 1
# `stream` is about to capture a body of the capture's graph: its memory comes from the capture's
# pool until the second call.
cdef status_t capture_body_began(int device, uint64_t capture_id, uint64_t stream,
                                 uint64_t body) except? 1
cdef void capture_body_ended(int device, uint64_t capture_id, uint64_t stream) noexcept nogil


# ---- graph_memory

# Memory of graphs in captures that replay them.

cdef extern from "gputensor/streams/order/graph_memory.h" namespace "gputensor" nogil:
    # The pool that a name of memory stands for; 0: it stands for a capture.
    uint64_t pool_of_name(uint64_t name)

    cdef cppclass LiveCaptures:
        LiveCaptures()
        void insert(uint64_t capture_id)
        void erase(uint64_t capture_id)

    cdef cppclass CaptureUses:
        CaptureUses()
        CaptureUses(uint64_t pool_id)

    cdef cppclass CaptureMemory:
        uint64_t capture_id
        uint64_t pool_id
        CaptureUses pool_uses
        CaptureMemory(uint64_t capture_id, uint64_t pool_id)
        bint is_known(const CaptureUses& log, uint64_t stream, bint is_write)
        bint use_waits(CaptureUses& log, uint64_t stream, bint is_write,
                       vector[uint64_t]& waits, const LiveCaptures& live)
        bint use_ordered(CaptureUses& log, uint64_t stream, bint is_write)
        void names_of(const CaptureUses& log, bint is_write, vector[uint64_t]& names)
        bint replay_waits(const Captured& graph, uint64_t stream, vector[uint64_t]& waits)
        void replay_queued(const Captured& graph, uint64_t stream)
        bint finish(Captured& graph)

# Around a replay on a stream that captures, in one section: makes it wait for uses of the graph's
# memory in the capture (a status for raise_for_order), and makes later ones wait for the replay.
cdef status_t captured_replay_waits(int device, uint64_t stream,
                                    const Captured& graph) noexcept nogil
cdef void captured_replay_queued(int device, uint64_t stream,
                                 const Captured& graph) noexcept nogil
# The graph of a capture is released, or the capture made none.
cdef void capture_released(int device, uint64_t capture_id) noexcept nogil


# ---- ordering

# Automatic ordering: a use of memory on one stream waits for the uses on other streams that it
# depends on. DESIGN.md describes the model.
#
# Callers are in one section (section_begin of _driver/host/__init__.pxd) from the first order_*
# call of an operation until its work is queued: between the two, no other thread may use the same
# memory. All allocations of an operation come before its section.

# One stream that has used the memory. is_live: it has read since the last write, and is ordered
# after that write.
cdef struct Use:
    uint64_t stream
    uint64_t is_live
    uint64_t stamp          # wait_clock at its latest use (waited.pxi)

# Embedded in a tensor's storage.
#   only == writer      every use since the last write, and the write, was on this stream
#   only == ~0          other streams have read since; those are the live entries of `uses`
cdef struct UseLog:
    uint64_t only
    uint64_t writer         # the stream of the last write (at first: of the allocation)
    uint64_t stamp          # wait_clock at the latest use on it
    Use* uses               # streams that came after the first one; heap, kept across writes
    int count
    int capacity
    int device
    int writer_reads        # the writer's stream has read since another stream's first read
    int lock
    int held                # reads under way that writes wait for; raised and read in sections
    uint64_t noted          # the stream that was noted as a user of graphs' streams last, and
    int noted_changes       # how many streams had become such streams by then
    CaptureUses* captures   # those that used the memory (graph_memory.pxi); NULL: none

# `stream`: the stream of the allocation, or a stream that may use foreign memory without a wait.
cdef void use_log_init(UseLog* log, int device, uint64_t stream) noexcept nogil
# Whether the log names a stream as a user of the memory.
cdef bint use_log_has(const UseLog* log, uint64_t stream) noexcept nogil
# Frees the log's memory; queues no work.
cdef void use_log_drop(UseLog* log) noexcept nogil
# `block` is NULL for memory that the allocator does not own. Both return a status, from which
# raise_for_order makes the exception.
cdef status_t order_read(UseLog* log, Block* block, uint64_t stream) noexcept nogil
cdef status_t order_write(UseLog* log, Block* block, uint64_t stream) noexcept nogil
cdef int raise_for_order(int device, uint64_t stream, status_t status) except -1
# For a read whose work is queued in parts: called in its section, after order_read. Until the
# release (by any thread, with or without the GIL) a write to the memory waits in order_write, and
# so do replays.
cdef void use_log_hold(UseLog* log) noexcept nogil
cdef void use_log_release(UseLog* log) noexcept nogil
# In a section: waits until no memory is held.
cdef void wait_for_held() noexcept nogil
# Whether this thread's ordering is manual (or checked), so that no waits are inserted.
cdef bint ordering_is_manual() noexcept nogil
# Work queued on `waiter` from now on starts after the work queued on `other` so far. One event
# from the device's pool; no allocation when the pool has one.
cdef status_t stream_wait_stream(int device, uint64_t waiter, uint64_t other) noexcept nogil
# The same for a stream `other` of another device of the same kind, `peer`. Not during captures.
cdef status_t stream_wait_peer(int device, uint64_t waiter, int peer,
                               uint64_t other) noexcept nogil


# ---- check

# Records of waits for ordering("check") (check.pxi); called with or without the GIL. Callers first
# test whether any thread of the process has chosen the mode.
cdef bint order_is_checked() noexcept nogil
# A user's event was recorded on a stream; a stream waits for an event of device `peer`.
cdef void order_check_recorded(int device, uint64_t stream, uint64_t event) noexcept nogil
cdef void order_check_waits(int device, uint64_t stream, int peer, uint64_t event) noexcept nogil
# A graph with these streams was replayed on a stream.
cdef int order_check_replayed(int device, uint64_t stream, list members) except -1
# The host has waited for a stream, an event, or a whole device.
cdef void order_check_host(int device, uint64_t stream) noexcept nogil
cdef void order_check_host_event(int device, uint64_t event) noexcept nogil
cdef void order_check_host_all(int device) noexcept nogil

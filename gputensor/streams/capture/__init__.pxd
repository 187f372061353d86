# The functions of streams/capture that other rooms may call; each section is named after its part.

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from gputensor._alloc.model cimport PoolHold
from gputensor._driver.table cimport Driver, status_t
from gputensor.streams.order cimport Captured, GraphStream, Mark
from gputensor.streams.queue cimport Stream

# ---- node_patches

cdef extern from "gputensor/streams/capture/node_patches.h" namespace "gputensor" nogil:
    cdef cppclass Span:
        uint64_t first
        uint64_t second
        uint64_t nbytes

    cdef cppclass NodePatches:
        int compare(Driver* driver, const Captured& graph, const Captured& other,
                    const vector[Span]& spans)
        int find(Driver* driver, const Captured& graph, const vector[Span]& spans)
        int apply(Driver* driver, uint64_t executable, const uint64_t* addresses)
        void start(const vector[uint64_t]& addresses)
        void follow(const uint64_t* addresses)
        bint is_current(const uint64_t* addresses) const
        size_t node_count()
        size_t patched_count()
        size_t patched_count_of "patched_count"(size_t span)
        size_t opaque


# ---- graph

# CUDAGraph, with the members that the capturing context uses.

cdef enum GraphState:
    EMPTY = 0
    CAPTURING = 1
    CAPTURED = 2
    READY = 3

cdef class CUDAGraph:
    cdef uint64_t graph
    cdef Captured captured          # the graph and the bodies in it
    cdef uint64_t executable
    cdef uint64_t pool_id           # 0: none
    cdef PoolHold* holds            # on other pools that the capture took memory from
    cdef uint64_t capture_id
    cdef uint64_t thread            # the thread that has to end the capture; 0: any may
    cdef Mark* replayed             # after the latest replay; NULL: none yet
    cdef int device
    cdef int generation
    cdef int state
    cdef readonly bint keep_graph
    cdef bint is_quiet              # no warning if nothing is captured
    cdef Stream stream              # the stream on which it was captured
    cdef list members               # handles of all streams that took part
    cdef list pools_used            # PoolStreams: of the own pool, and of those replayed in it
    cdef list all_members           # the members, and those of these pools
    cdef uint64_t members_known     # ... after so many changes of the members of pools
    cdef list retained              # objects that live as long as the graph
    cdef NodePatches patches        # for the memory in `moved`
    cdef vector[Span] moved         # memory that replays have named as inputs
    cdef object __weakref__

    cdef Driver* driver(self) except NULL
    # `has_left`: the stream is not current any more in the block that made it current.
    cdef int end_capture(self, bint has_left) except -1
    cdef status_t finish_capture(self, bint has_left)
    cdef list replay_members(self)
    cdef int wait_for_peers(self, uint64_t stream, vector[GraphStream*]& peers) except -1
    cdef int mark(self, uint64_t stream, vector[GraphStream*]& peers) except -1
    cdef int abandon(self) except -1
    cdef int release(self) except -1
    cdef CUDAGraph successor(self)
    cdef int clear_records(self) except -1
    cdef int forget(self) except -1


# ---- graph_context

# Not 0 while the stream captures.
cdef int capture_state(int device, uint64_t stream) except -1


# ---- conditions

cdef class Conditions:
    cdef readonly int device
    cdef readonly Stream stream
    cdef readonly uint64_t handle
    cdef uint64_t capture_id        # of the graph around all bodies
    cdef list streams
    cdef int depth

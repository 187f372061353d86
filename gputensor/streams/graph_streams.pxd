# The streams that live graphs were captured on, and who uses the same memory.

from libc.stdint cimport uint64_t

# How many there are; 0 lets everybody skip the rest.
cdef int graph_streams_count() noexcept nogil
# `is_private`: nobody queues work on the stream but captures. Answers False without memory.
cdef bint graph_stream_retain(int device, uint64_t stream, bint is_private) noexcept nogil
cdef void graph_stream_release(int device, uint64_t stream) noexcept nogil
# `stream` uses memory that `other` used before: noted when `other` is a graph's stream.
cdef void graph_stream_touch(int device, uint64_t other, uint64_t stream) noexcept nogil
# The streams that a replay on `stream` has to be ordered with on account of `member`: added to
# `peers`.
cdef int graph_stream_peers(int device, uint64_t member, uint64_t stream, set peers) except -1
# `peer`, a member of the replayed graph or not, waits for a replay on `stream` from now on.
cdef void graph_stream_waited(int device, uint64_t peer, uint64_t stream) noexcept nogil

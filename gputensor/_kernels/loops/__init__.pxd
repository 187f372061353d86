# Compiled loops of the host device over the C++ expressions of rows of operations.py.

from libc.stdint cimport int64_t


cdef extern from "gputensor/_kernels/loops/loops.h" namespace "gputensor" nogil:
    struct LoopCall:
        int64_t count
        void* out
        const void* inputs[3]
        int64_t steps[3]

    ctypedef void (*Loop)(const LoopCall&) noexcept

    struct LoopRow:
        const char* name
        int arity
        Loop single, wide

    union LoopNumber:
        float single
        double wide

    struct QueuedLoop:
        Loop loop
        LoopCall call
        LoopNumber numbers[3]

    void run_queued_loop(void* queued) noexcept

# The row of a name, or NULL.
cdef const LoopRow* find_loop(str name)

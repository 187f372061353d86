# Compiled loops of the host device over the C++ expressions of rows of operations.py.

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "gputensor/_kernels/loops/loops.h" namespace "gputensor" nogil:
    struct LoopCall:
        int64_t count
        void* out
        const void* inputs[3]
        int64_t steps[3]

    struct LoopOperand:
        char* place
        char* packed
        int64_t step
        int64_t[15] line_steps
        int itemsize

    ctypedef void (*Loop)(const LoopCall&) noexcept

    enum:
        LOOP_FLOAT
        LOOP_DOUBLE
        LOOP_INT32
        LOOP_INT64
        LOOP_BOOL

    struct LoopRow:
        const char* name
        int arity, gives_bool, has_ufunc
        Loop[5] loops

    union LoopNumber:
        float single
        double wide
        int32_t int32
        int64_t int64
        uint8_t byte

    struct QueuedLoop:
        Loop loop
        int arity, axes
        int64_t count
        int64_t[15] shape
        LoopOperand[4] operands
        LoopNumber[3] numbers

    void run_queued_loop(void* queued) noexcept

# The row of a name, or NULL.
cdef const LoopRow* find_loop(str name)

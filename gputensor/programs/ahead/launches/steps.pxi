"""StepLaunches: a whole function as steps (steps.h), queued without Python."""

# The target of the steps of one run.
cdef struct StepRun:
    void* launches              # a StepLaunches
    Driver* driver
    int device
    uint64_t stream


@cython.final
cdef class StepLaunches:
    """The steps of a binding whose calls were bound ahead.

    Parameters
    ----------
    words : bytes
        The result of `steps_of`.
    nbytes : sequence of int
        The size of each piece.
    rows : sequence of LaunchRow
        For each number of a list in the steps, a call with that list.
    """

    def __cinit__(self, bytes words not None, nbytes, rows):
        cdef vector[int64_t] sizes = nbytes
        self.rows = list(rows)
        for row in self.rows:
            self.lists.push_back(<void*>(<LaunchRow?>row))
        if not self.c.read(<const int64_t*>PyBytes_AS_STRING(words), len(words) // 8, sizes):
            raise argument_error(ValueError, "words", Described("invalid words"),
                                 "the result of steps_of")

    cdef status_t run(self, int device, uint64_t stream,
                      const uint64_t* addresses) noexcept nogil:
        """Queue all steps. Takes the GIL for products; waits for the stream at conditions."""
        cdef StepRun run
        cdef StepCalls calls
        run.launches, run.driver = <void*>self, driver_get(device)
        run.device, run.stream = device, stream
        calls.self = &run
        calls.launch_list, calls.copy_bytes = step_launch, step_copy
        calls.store_index, calls.load_flag = step_index, step_flag
        return <status_t>run_steps(self.c, calls, addresses)


cdef int step_launch(void* self, size_t number, const uint64_t* spans) noexcept nogil:
    cdef StepRun* run = <StepRun*>self
    cdef void* row = (<StepLaunches>run.launches).lists[number]
    cdef uint64_t[BUFFER_WORDS] words
    cdef const LaunchRecord* record
    cdef status_t status = STATUS_OK
    cdef size_t i
    memset(words, 0, sizeof(words))
    for i in range((<LaunchRow>row).launches.c.records.size()):
        record = &(<LaunchRow>row).launches.c.records[i]
        (<LaunchRow>row).launches.c.fill(record[0], spans, words)
        if record.kind == LAUNCH_PRODUCT:
            status = queue_product(run.device, run.stream, <const Product*>words)
        else:
            status = launch_one(run.driver, record, (<LaunchRow>row).functions[i], run.stream,
                                words)
        if status != STATUS_OK:
            return status
    return STATUS_OK


cdef int step_copy(void* self, uint64_t dst, uint64_t src, uint64_t nbytes) noexcept nogil:
    cdef StepRun* run = <StepRun*>self
    return run.driver.copy_async(run.driver.self, dst, src, nbytes, run.stream)


cdef int step_index(void* self, uint64_t dst, int64_t value) noexcept nogil:
    cdef StepRun* run = <StepRun*>self
    cdef uint32_t high = <uint32_t>(<uint64_t>value >> 32)
    cdef status_t status = run.driver.fill_async(run.driver.self, dst, <uint32_t>value, 4, 1,
                                                 run.stream)
    if status != STATUS_OK:
        return status
    return run.driver.fill_async(run.driver.self, dst + 4, high, 4, 1, run.stream)


cdef int step_flag(void* self, uint64_t address, cpp_bool* flag) noexcept nogil:
    cdef StepRun* run = <StepRun*>self
    cdef unsigned char found = 0
    cdef status_t status = run.driver.copy_async(run.driver.self, <uint64_t>&found, address, 1,
                                                 run.stream)
    if status == STATUS_OK:
        status = run.driver.stream_synchronize(run.driver.self, run.stream)
    flag[0] = found != 0
    return status


cdef object problem = None      # why the last product failed


cdef status_t queue_product(int device, uint64_t stream, const Product* product) noexcept with gil:
    """Queue a product with the GIL, because plans with a bias or scales are set before each call
    (blas/DESIGN.md)."""
    global problem
    try:
        described_queue(device, stream, product)
    except BaseException as error:
        problem = error
        return PRODUCT_FAILED
    return STATUS_OK


cdef object product_problem():
    return problem

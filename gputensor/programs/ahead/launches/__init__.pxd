# The interface of programs/ahead/launches for other rooms.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from gputensor._driver.phantom cimport LaunchRecord, PhantomRecorder, PhantomRecords
from gputensor._driver.table cimport status_t
from gputensor._kernels.launch cimport CallOperand

cdef extern from "gputensor/programs/ahead/launches/launch_list.h" namespace "gputensor" nogil:
    cdef struct LaunchPatch:
        uint32_t word
        uint32_t span
        int64_t offset

    cdef struct PlacedSpan:
        uint64_t first
        uint64_t second
        uint64_t nbytes
        uint32_t span
        int64_t shift

    cdef cppclass Records "gputensor::LaunchList":
        vector[LaunchRecord] records
        vector[uint64_t] words
        vector[LaunchPatch] patches
        size_t fault_record
        size_t fault_word
        int compare(const PhantomRecords& one, const PhantomRecords& two,
                    const vector[PlacedSpan]& spans, PhantomRecorder* device)
        int check(size_t kernel_count, size_t product_nbytes,
                  const vector[pair[int64_t, int64_t]]& reach)
        void fill(const LaunchRecord& record, const uint64_t* addresses, uint64_t* out)

# ---- steps

cdef extern from "gputensor/programs/ahead/launches/step_calls.h" namespace "gputensor" nogil:
    cdef cppclass Steps:
        bint read(const int64_t* words, size_t count, vector[int64_t] nbytes)

    cdef struct StepCalls:
        void* self
        int (*launch_list)(void* self, size_t list, const uint64_t* spans) noexcept nogil
        int (*copy_bytes)(void* self, uint64_t dst, uint64_t src, uint64_t nbytes) noexcept nogil
        int (*store_index)(void* self, uint64_t dst, int64_t value) noexcept nogil
        int (*load_flag)(void* self, uint64_t address, cpp_bool* flag) noexcept nogil

    int run_steps(const Steps& steps, StepCalls calls, const uint64_t* addresses)

# The steps of a whole function, made from the calls of a binding (steps.pxi).
cdef class StepLaunches:
    cdef Steps c
    cdef list rows
    cdef vector[void*] lists            # the same, for use without the GIL
    # Queues the function at the addresses of its pieces. Returns the status of a call that the
    # driver refused, or PRODUCT_FAILED for the exception `product_problem`.
    cdef status_t run(self, int device, uint64_t stream,
                      const uint64_t* addresses) noexcept nogil

cdef enum:
    PRODUCT_FAILED = -1

cdef object product_problem()

cdef class LaunchList:
    cdef Records c
    cdef readonly uint64_t scratch_nbytes
    cdef bint moves_addresses(self, const LaunchRecord* record) noexcept

cdef class LaunchRow:
    cdef readonly str name
    cdef readonly object row
    cdef readonly LaunchList launches
    cdef vector[uint64_t] functions     # the handle for each record
    cdef tuple alignments
    cdef int launch(self, int device, uint64_t stream, const uint64_t* addresses) except -1

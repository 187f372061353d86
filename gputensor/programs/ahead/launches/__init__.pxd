# What other rooms may call of programs/ahead/launches.

from libc.stdint cimport int64_t, uint32_t, uint64_t
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

# ---- flat

# The work of a whole function, made from the calls of a binding (flat.pxi).
cdef class FlatLaunches:
    cdef Records c
    cdef vector[uint64_t] functions     # of each record
    cdef vector[uint64_t] first         # of each piece, an address that stands for it
    cdef vector[uint64_t] nbytes

    cdef int locate(self, uint64_t address, LaunchPatch* patch) except -1
    cdef int append_list(self, LaunchRow row, tuple arguments) except -1
    cdef int add(self, uint32_t kind, list words, tuple addresses) except -1
    cdef int append_copy(self, CallOperand out, CallOperand given) except -1
    cdef int append_index(self, int64_t value, CallOperand out) except -1
    # Queues it at the addresses of its pieces; the status of the call that the driver refused, or
    # PRODUCT_FAILED, for the exception `product_problem`.
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
    cdef object row
    cdef readonly LaunchList launches
    cdef vector[uint64_t] functions     # of each record
    cdef tuple alignments
    cdef int launch(self, int device, uint64_t stream, const uint64_t* addresses) except -1

"""FlatLaunches: the work of a whole function as one launch list, for callers without Python."""


@cython.final
cdef class FlatLaunches:
    """Records of calls, one after the other, with addresses counted from pieces of memory.

    Parameters
    ----------
    nbytes : sequence of int
        Of each piece.
    """

    def __cinit__(self, nbytes):
        cdef uint64_t place = FLAT_GAP
        for one in nbytes:
            self.first.push_back(place)
            self.nbytes.push_back(one)
            place += (<uint64_t>one // FLAT_GAP + 2) * FLAT_GAP

    @property
    def addresses(self):
        """An address for each piece, to make calls at: `append` finds the pieces again."""
        return tuple([one for one in self.first])

    @property
    def count(self):
        """How many records there are."""
        return self.c.records.size()

    def append(self, row, tuple arguments):
        """Add a call that was made at `addresses`."""
        if type(row) is LaunchRow:
            self.append_list(row, arguments)
        elif row is BytesRow:
            self.append_copy(arguments[2], arguments[3])
        elif row is IndexRow:
            self.append_index(arguments[0], arguments[2])
        else:
            raise argument_error(ValueError, row.name, Described("a call that was not bound ahead"),
                                 "launches")

    cdef int locate(self, uint64_t address, LaunchPatch* patch) except -1:
        """The piece of an address, and where in it."""
        cdef size_t i
        for i in range(self.first.size()):
            if address - self.first[i] <= self.nbytes[i]:
                patch.span, patch.offset = <uint32_t>i, <int64_t>(address - self.first[i])
                return 0
        raise argument_error(ValueError, "address", address, "memory of a piece")

    cdef int append_list(self, LaunchRow row, tuple arguments) except -1:
        cdef Records* given = &row.launches.c
        cdef uint32_t word = <uint32_t>self.c.words.size()
        cdef uint32_t patched = <uint32_t>self.c.patches.size()
        cdef LaunchRecord record
        cdef LaunchPatch patch
        cdef uint64_t value
        cdef size_t i
        for value in given.words:
            self.c.words.push_back(value)
        for i in range(given.patches.size()):
            self.locate((<CallOperand>arguments[given.patches[i].span]).c.ptr, &patch)
            patch.word = given.patches[i].word + word
            patch.offset += given.patches[i].offset
            self.c.patches.push_back(patch)
        for i in range(given.records.size()):
            record = given.records[i]
            record.first_word += word
            record.first_patch += patched
            self.c.records.push_back(record)
            self.functions.push_back(row.functions[i])
        return 0

    cdef int add(self, uint32_t kind, list words, tuple addresses) except -1:
        """A copy or fill, whose first words are these addresses."""
        cdef LaunchRecord record
        cdef LaunchPatch patch
        cdef int number = 0
        memset(&record, 0, sizeof(record))
        record.kind, record.nbytes = kind, <uint32_t>(8 * len(words))
        record.first_word = <uint32_t>self.c.words.size()
        record.first_patch = <uint32_t>self.c.patches.size()
        record.patch_count = <uint32_t>len(addresses)
        for address in addresses:
            self.locate(address, &patch)
            patch.word = record.first_word + number
            self.c.patches.push_back(patch)
            number += 1
        for word in words:
            self.c.words.push_back(word)
        self.c.records.push_back(record)
        self.functions.push_back(0)
        return 0

    cdef int append_copy(self, CallOperand out, CallOperand given) except -1:
        return self.add(LAUNCH_COPY, [0, 0, out.c.shape[0]], (out.c.ptr, given.c.ptr))

    cdef int append_index(self, int64_t value, CallOperand out) except -1:
        cdef uint32_t low = <uint32_t>value
        cdef uint32_t high = <uint32_t>(value >> 32)
        self.add(LAUNCH_FILL, [0, low, 4, 1], (out.c.ptr,))
        return self.add(LAUNCH_FILL, [0, high, 4, 1], (out.c.ptr + 4,))

    cdef status_t run(self, int device, uint64_t stream,
                      const uint64_t* addresses) noexcept nogil:
        """Queue everything. Takes the GIL for products alone."""
        cdef Driver* driver = driver_get(device)
        cdef uint64_t[BUFFER_WORDS] words
        cdef LaunchRecord* record
        cdef status_t status = STATUS_OK
        cdef size_t i
        memset(words, 0, sizeof(words))
        for i in range(self.c.records.size()):
            record = &self.c.records[i]
            self.c.fill(record[0], addresses, words)
            if record.kind == LAUNCH_PRODUCT:
                status = queue_product(device, stream, <const Product*>words)
            else:
                status = launch_one(driver, record, self.functions[i], stream, words)
            if status != STATUS_OK:
                return status
        return status


cdef object problem = None      # why the last product failed


cdef status_t queue_product(int device, uint64_t stream, const Product* product) noexcept with gil:
    """With the GIL, since plans with a bias or scales are set before each call (blas/DESIGN.md)."""
    global problem
    try:
        described_queue(device, stream, product)
    except BaseException as error:
        problem = error
        return PRODUCT_FAILED
    return STATUS_OK


cdef object product_problem():
    return problem

"""LaunchList: the records of one call, their parameters and patches (launch_list.h)."""

cdef extern from "gputensor/_driver/launch_record.h" namespace "gputensor" nogil:
    cdef struct CopyWork:
        uint64_t dst
        uint64_t src
        uint64_t nbytes

    cdef struct FillWork:
        uint64_t dst
        uint64_t value
        uint64_t width
        uint64_t count

cdef extern from "gputensor/programs/ahead/launches/launch_list.h" namespace "gputensor" nogil:
    cdef enum:
        LAUNCH_KERNEL "gputensor::LAUNCH_KERNEL"
        LAUNCH_COPY "gputensor::LAUNCH_COPY"
        LAUNCH_FILL "gputensor::LAUNCH_FILL"
        LAUNCH_PRODUCT "gputensor::LAUNCH_PRODUCT"

cdef enum:
    BUFFER_WORDS = 4096         # slightly more than Records::MOST_PARAMETERS
    SCRATCH_ALIGNMENT = 256
    ALIGNED = 1 << 30           # an address of every alignment
    MOST_ARGUMENTS = 64

FAR = 1 << 60

# Texts by LaunchFault.
FAULTS = (
    "", "work that no record can represent", "other work each time",
    "a changed parameter that is not an address", "memory kept from an earlier call",
    "a damaged list",
)


@cython.final
cdef class LaunchList:
    """The work of one call; immutable.

    Attributes
    ----------
    scratch_nbytes : int
        Memory that the call needs in addition to its operands.
    """

    @property
    def kernels(self):
        """Number of each of its kernels -> the most dynamic shared memory that it uses."""
        cdef LaunchRecord record
        cdef dict found = {}
        for record in self.c.records:
            if record.kind == LAUNCH_KERNEL:
                found[record.kernel] = max(found.get(record.kernel, 0), record.most_shared_nbytes)
        return found

    @property
    def kinds(self):
        """The kinds of its records, in order: "kernel", "copy", "fill" or "product"."""
        cdef LaunchRecord record
        return [("kernel", "copy", "fill", "product")[record.kind] for record in self.c.records]

    @property
    def products(self):
        """The signatures of its library products, in order (see `blas.plan.FIELDS`)."""
        cdef uint64_t[MOST_ARGUMENTS] addresses
        cdef uint64_t[BUFFER_WORDS] words
        cdef LaunchRecord record
        cdef list found = []
        cdef int i
        for i in range(MOST_ARGUMENTS):
            addresses[i] = ALIGNED
        for record in self.c.records:
            if record.kind == LAUNCH_PRODUCT:
                self.c.fill(record, addresses, words)
                found.append(product_signature(<const Product*>words))
        return found

    @property
    def algorithms(self):
        """For each library product: the library's version and the pinned algorithm, or None."""
        cdef LaunchRecord record
        cdef const Product* product
        cdef list found = []
        cdef int i
        for record in self.c.records:
            if record.kind == LAUNCH_PRODUCT:
                product = <const Product*>&self.c.words[record.first_word]
                config = tuple([product.pinned.config[i] for i in range(CONFIG_COUNT)])
                found.append((product.pinned.version, config) if product.pinned.version else None)
        return found

    def with_algorithm(self, uint64_t version, tuple config):
        """Return a list whose library products have an algorithm of cuBLASLt pinned.

        Parameters
        ----------
        version : int
            The library's version; another version ignores the algorithm.
        config : tuple of int
            The attributes of the algorithm, in the order of `gputensor.blas.plan.Choice`.
        """
        cdef LaunchList made = LaunchList.__new__(LaunchList)
        cdef LaunchRecord record
        cdef Product* product
        cdef int i
        made.c, made.scratch_nbytes = self.c, self.scratch_nbytes
        for record in made.c.records:
            if record.kind == LAUNCH_PRODUCT:
                product = <Product*>&made.c.words[record.first_word]
                product.pinned.version = version
                for i in range(CONFIG_COUNT):
                    product.pinned.config[i] = config[i]
        return made

    def to_bytes(self):
        """Return the list in the form of files."""
        cdef uint64_t[4] header
        cdef size_t records = self.c.records.size() * sizeof(LaunchRecord)
        cdef size_t words = self.c.words.size() * 8
        cdef size_t patches = self.c.patches.size() * sizeof(LaunchPatch)
        cdef size_t nbytes = sizeof(header) + records + words + patches
        cdef bytes made = PyBytes_FromStringAndSize(NULL, nbytes)
        cdef char* place = PyBytes_AS_STRING(made)
        header[0], header[1] = self.c.records.size(), self.c.words.size()
        header[2], header[3] = self.c.patches.size(), self.scratch_nbytes
        memcpy(place, header, sizeof(header))
        memcpy(place + sizeof(header), self.c.records.data(), records)
        memcpy(place + sizeof(header) + records, self.c.words.data(), words)
        memcpy(place + sizeof(header) + records + words, self.c.patches.data(), patches)
        return made

    @staticmethod
    def from_bytes(const unsigned char[::1] given not None):
        """Return a list that `to_bytes` wrote; None if the counts do not fit the size.

        `check` validates the other numbers.
        """
        cdef uint64_t[4] header
        cdef LaunchList made
        cdef uint64_t nbytes = given.shape[0]
        cdef const unsigned char* place
        if nbytes < sizeof(header):
            return None
        place = &given[0]
        memcpy(header, place, sizeof(header))
        if max(header[0], header[1], header[2]) > nbytes or (
                sizeof(header) + header[0] * sizeof(LaunchRecord) + 8 * header[1]
                + header[2] * sizeof(LaunchPatch) != nbytes):
            return None
        made = LaunchList.__new__(LaunchList)
        made.scratch_nbytes = header[3]
        place += sizeof(header)
        made.c.records.resize(header[0])
        made.c.words.resize(header[1])
        made.c.patches.resize(header[2])
        memcpy(made.c.records.data(), place, header[0] * sizeof(LaunchRecord))
        place += header[0] * sizeof(LaunchRecord)
        memcpy(made.c.words.data(), place, header[1] * 8)
        place += header[1] * 8
        memcpy(made.c.patches.data(), place, header[2] * sizeof(LaunchPatch))
        return made

    def check(self, size_t kernel_count, tuple reaches=None):
        """Whether all numbers of the list are valid.

        Parameters
        ----------
        kernel_count : int
        reaches : tuple of (int, int) or None, optional
            For each argument of the call, the range of its memory relative to its address, or None
            if it is not memory. Without `reaches`, patches may point anywhere.
        """
        cdef vector[pair[int64_t, int64_t]] reach
        cdef pair[int64_t, int64_t] one
        cdef LaunchRecord record
        cdef Product product
        if self.scratch_nbytes >> 48:
            return False
        for given in [(-FAR, FAR)] * MOST_ARGUMENTS if reaches is None else reaches:
            # The range from 1 to 0 is empty.
            one.first, one.second = (1, 0) if given is None else given
            reach.push_back(one)
        one.first, one.second = self.scratch_nbytes == 0, <int64_t>self.scratch_nbytes
        reach.push_back(one)
        if self.c.check(kernel_count, sizeof(Product), reach) != 0:
            return False
        for record in self.c.records:
            if record.kind == LAUNCH_PRODUCT:
                memcpy(&product, &self.c.words[record.first_word], sizeof(product))
                if not described_is_sound(&product) or not self.moves_addresses(&record):
                    return False
        return True

    cdef bint moves_addresses(self, const LaunchRecord* record) noexcept:
        """Whether all patches of a product patch its addresses, from `a` to `scale_b`."""
        cdef Product product
        cdef size_t first = (<size_t>&product.a - <size_t>&product) // 8
        cdef size_t last = (<size_t>&product.scale_b - <size_t>&product) // 8
        cdef size_t i, word
        for i in range(record.patch_count):
            word = self.c.patches[record.first_patch + i].word - record.first_word
            if word < first or word > last:
                return False
        return True


def record(int device, row, tuple first, tuple second, tuple places, numbers):
    """Execute a call twice on a phantom GPU and return its LaunchList.

    Parameters
    ----------
    device : int
        The number of an open phantom GPU.
    row : Row
    first, second : tuple
        The arguments of the call, with all memory at other addresses in the second.
    places : tuple of (argument, shift, first, second, nbytes)
        Spans of memory: the argument that patches refer to, the bytes from its address to the span,
        the addresses of the span in each recording, and its size.
    numbers : callable
        Takes the handle of a function on the phantom GPU, and returns the number of its kernel.

    Raises
    ------
    ValueError
        If the two recordings differ in more than addresses.
    """
    cdef Driver* driver = driver_open(device)
    cdef PhantomRecorder* phantom
    cdef PhantomRecords one, two
    cdef vector[PlacedSpan] spans
    cdef PlacedSpan span
    cdef LaunchList made = LaunchList.__new__(LaunchList)
    cdef size_t i
    cdef int fault
    if not known_facts(device).is_phantom:
        raise argument_error(ValueError, "device", device, "a phantom GPU")
    phantom = phantom_recorder(driver)
    phantom.keep()
    try:
        row.door(device, 0, first)
    finally:
        one = phantom.take()
    phantom.keep()
    try:
        row.door(device, 0, second)
    finally:
        two = phantom.take()
    for argument, shift, address, other, nbytes in places:
        span.first, span.second, span.nbytes = address, other, nbytes
        span.span, span.shift = argument, shift
        spans.push_back(span)
    if one.scratch.size() != two.scratch.size():
        raise argument_error(ValueError, row.name, Described(FAULTS[4]), "the same work each time")
    for i in range(one.scratch.size()):
        span.first, span.second = one.scratch[i].ptr, two.scratch[i].ptr
        span.nbytes = one.scratch[i].nbytes
        span.span, span.shift = <uint32_t>len(first), <int64_t>made.scratch_nbytes
        spans.push_back(span)
        made.scratch_nbytes += -(-span.nbytes // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
    fault = made.c.compare(one, two, spans, phantom)
    if fault:
        got = f"{FAULTS[fault]} (word {made.c.fault_word} of launch {made.c.fault_record})"
        raise argument_error(ValueError, row.name, Described(got), "changes only of addresses")
    for i in range(made.c.records.size()):
        if made.c.records[i].kind == LAUNCH_KERNEL:
            made.c.records[i].kernel = numbers(one.functions[i])
    return made

"""LaunchRow: a call bound ahead, with the door of a row. Modules of device code, loaded once."""

cdef dict modules = {}      # (device, generation, digest, entry) -> handle of a function


def load_function(int device, str digest, bytes image, str entry):
    """Return the handle of a kernel of an image. A module is loaded once and never unloaded.

    Parameters
    ----------
    digest : str
        The SHA-256 of the image, computed by the caller.
    """
    cdef Driver* driver = driver_open(device)
    cdef tuple key = (device, device_generation(device), digest, entry)
    cdef uint64_t module = 0
    cdef uint64_t function = 0
    cdef status_t status
    cdef bytes symbol = entry.encode()
    found = modules.get(key)
    if found is not None:
        return found
    status = driver.module_load(driver.self, <const void*>PyBytes_AS_STRING(image), &module)
    raise_for_status(status, "module_load", f"of {len(image)} bytes of a program's file")
    module |= images.starts_early(image)
    status = driver.module_function(driver.self, module, symbol, &function)
    if status != STATUS_OK:
        driver.module_unload(driver.self, module)
        raise_for_status(status, "module_function", f"for {entry} of a program's file")
    modules[key] = function
    return function


def allow_shared(int device, uint64_t function, int nbytes):
    """Permit launches of a kernel with this much dynamic shared memory."""
    cdef Driver* driver = driver_open(device)
    cdef status_t status = driver.function_allow_shared(driver.self, function, nbytes)
    raise_for_status(status, "function_allow_shared", f"with {nbytes} bytes")


@cython.final
cdef class LaunchRow:
    """A row of the registry for one call that was bound ahead: its door launches the list.

    Parameters
    ----------
    row : Row
        The call's own row, whose door is used for operands of less alignment than in the list.
    launches : LaunchList
    functions : dict
        Number of a kernel -> its handle on the device.
    alignments : tuple of int
        The alignment of each argument's address; 0 for arguments that are not memory.
    """

    def __cinit__(self, row, LaunchList launches not None, dict functions, tuple alignments):
        cdef LaunchRecord record
        self.name, self.row, self.launches, self.alignments = row.name, row, launches, alignments
        for record in launches.c.records:
            self.functions.push_back(
                functions[record.kernel] if record.kind == LAUNCH_KERNEL else 0)

    def __repr__(self):
        return f"<call {self.name} bound ahead>"

    @property
    def waits(self):
        """Whether the host waits in the call; it never does for a launch list."""
        return False

    def door(self, int device, uint64_t stream, tuple arguments):
        """Launch the call; the last argument is its scratch memory."""
        cdef uint64_t[MOST_ARGUMENTS] addresses
        cdef uint64_t address
        cdef int i, count = len(arguments)
        cdef int alignment
        if count > MOST_ARGUMENTS:
            raise argument_error(ValueError, self.name, count, f"at most {MOST_ARGUMENTS}")
        for i in range(count):
            addresses[i] = 0
            if type(arguments[i]) is CallOperand:
                address = (<CallOperand>arguments[i]).c.ptr
                alignment = self.alignments[i]
                if alignment and address % <uint64_t>alignment:
                    return self.row.door(device, stream, arguments[:count - 1])
                addresses[i] = address
        self.launch(device, stream, addresses)

    cdef int launch(self, int device, uint64_t stream, const uint64_t* addresses) except -1:
        cdef Driver* driver = driver_open(device)
        cdef uint64_t[BUFFER_WORDS] words
        cdef LaunchRecord* record
        cdef status_t status
        cdef size_t i
        memset(words, 0, sizeof(words))
        for i in range(self.launches.c.records.size()):
            record = &self.launches.c.records[i]
            self.launches.c.fill(record[0], addresses, words)
            if record.kind == LAUNCH_PRODUCT:
                described_queue(device, stream, <const Product*>words)
                continue
            status = launch_one(driver, record, self.functions[i], stream, words)
            if status != STATUS_OK:
                grid = (record.grid[0], record.grid[1], record.grid[2])
                raise_for_status(status, f"launch of {self.name}", f"with grid {grid} on device "
                                 f"{device}")
        return 0


class BytesRow:
    """Copies bytes like the row `elementwise`, but without a kernel."""

    name = "copy"

    @staticmethod
    def door(int device, uint64_t stream, tuple arguments):
        """Queue the copy."""
        cdef Driver* driver = driver_open(device)
        cdef CallOperand out = arguments[2]
        cdef CallOperand given = arguments[3]
        cdef status_t status = driver.copy_async(driver.self, out.c.ptr, given.c.ptr,
                                                 <size_t>out.c.shape[0], stream)
        raise_for_status(status, "copy_async", f"of {out.c.shape[0]} bytes")


class IndexRow:
    """Writes the index of an iteration like the row `arange`, but without a kernel."""

    name = "index"

    @staticmethod
    def door(int device, uint64_t stream, tuple arguments):
        """Queue fills of the two halves of an int64."""
        cdef Driver* driver = driver_open(device)
        cdef int64_t value = arguments[0]
        cdef CallOperand out = arguments[2]
        cdef status_t status = driver.fill_async(driver.self, out.c.ptr, <uint32_t>value, 4, 1,
                                                 stream)
        if status == STATUS_OK:
            status = driver.fill_async(driver.self, out.c.ptr + 4, <uint32_t>(value >> 32), 4, 1,
                                       stream)
        raise_for_status(status, "fill_async", "of an index")


cdef status_t launch_one(Driver* driver, const LaunchRecord* record, uint64_t function,
                         uint64_t stream, const uint64_t* words) noexcept nogil:
    cdef const CopyWork* copy = <const CopyWork*>words
    cdef const FillWork* fill = <const FillWork*>words
    if record.kind == LAUNCH_COPY:
        return driver.copy_async(driver.self, copy.dst, copy.src, copy.nbytes, stream)
    if record.kind == LAUNCH_FILL:
        return driver.fill_async(driver.self, fill.dst, <uint32_t>fill.value, <int>fill.width,
                                 fill.count, stream)
    return driver.kernel_launch(
        driver.self, function, record.grid[0], record.grid[1], record.grid[2], record.block[0],
        record.block[1], record.block[2], record.shared_nbytes, stream, words, record.nbytes)

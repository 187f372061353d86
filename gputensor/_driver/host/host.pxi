# The embedded host device behind the driver table.
#
# The device is C++ (device.h and the headers it includes): this file makes one, puts its entries
# into a table, and frees both. DESIGN.md has the contract of the device.

cdef extern from "gputensor/_driver/host/phantom_gpu.h" namespace "gputensor" nogil:
    cdef cppclass PhantomGpu:
        PhantomGpu(int capability, int multiprocessors, int shared_nbytes)
        PhantomRecorder recorder

cdef extern from "gputensor/_driver/host/device.h" namespace "gputensor" nogil:
    cdef cppclass HostDevice:
        HostDevice(size_t capacity, bint phantom, bint deferred, uint64_t seed, int number)
        int run_all()
        void live(uint64_t* counts)

    void devices_before_fork "gputensor::HostDevice::before_fork"()
    void devices_after_fork "gputensor::HostDevice::after_fork"(bint is_child)

    void section_enter "gputensor::Section::begin"()
    bint section_leave "gputensor::Section::end"()
    bint is_entered "gputensor::Section::entered"()
    int pay_owed "gputensor::HostSchedule::pay"()

    void bind_entries(Driver* table, HostDevice* device)
    void bind_phantom "gputensor::bind_entries"(Driver* table, PhantomGpu* device)
    const size_t HOST_GRANULARITY "gputensor::HostMemory::GRANULARITY"

# The order of HostDevice::live.
LIVE_NAMES = ("allocations", "pages", "mappings", "va_ranges", "pinned", "registered", "streams",
              "events", "graphs", "executables", "used_bytes")


cdef Driver* host_open(int device, size_t capacity, bint phantom, bint deferred,
                       uint64_t seed) noexcept nogil:
    cdef Driver* table = <Driver*>calloc(1, sizeof(Driver))
    if table == NULL:
        return NULL
    bind_entries(table, new HostDevice(capacity, phantom, deferred, seed, device))
    table.name = "host"
    table.device = device
    table.page_granularity = HOST_GRANULARITY
    return table


cdef void host_close(Driver* table) noexcept nogil:
    cdef HostDevice* device = <HostDevice*>table.self
    del device
    free(table)


cdef Driver* phantom_open(int device, int capability, int multiprocessors,
                          int shared_nbytes) noexcept nogil:
    cdef Driver* table = <Driver*>calloc(1, sizeof(Driver))
    if table == NULL:
        return NULL
    bind_phantom(table, new PhantomGpu(capability, multiprocessors, shared_nbytes))
    table.name = "phantom"
    table.device = device
    return table


cdef void phantom_close(Driver* table) noexcept nogil:
    cdef PhantomGpu* device = <PhantomGpu*>table.self
    del device
    free(table)


cdef PhantomRecorder* phantom_recorder(Driver* table) noexcept nogil:
    return &(<PhantomGpu*>table.self).recorder


cdef status_t host_run(Driver* table) noexcept nogil:
    return (<HostDevice*>table.self).run_all()


cdef void section_begin() noexcept nogil:
    section_enter()


cdef bint section_entered() noexcept nogil:
    return is_entered()


cdef void section_pay() noexcept nogil:
    pay_owed()


cdef status_t section_end() noexcept nogil:
    return pay_owed() if section_leave() else 0


cdef void host_before_fork() noexcept nogil:
    devices_before_fork()


cdef void host_after_fork(bint is_child) noexcept nogil:
    devices_after_fork(is_child)


cdef dict host_live(Driver* table):
    cdef uint64_t counts[16]
    with nogil:
        (<HostDevice*>table.self).live(counts)
    return {name: counts[i] for i, name in enumerate(LIVE_NAMES)}

# Open devices by number (see table.pxd for the numbering): one record each, and the slots in which
# packages keep their state for a device. Records change under the GIL only; the table of an open
# device is read without any lock. The invariants are in DESIGN.md (One record for an open device).

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport (
    HOST_DEVICES, MAX_DEVICES, STATUS_INVALID_DEVICE, Driver, status_t,
)

# Facts of a device, queried once when it opens. On a host device they are 0.
cdef struct DeviceFacts:
    int capability              # as one number: 90 for 9.0
    int can_cluster             # blocks of a cluster share memory: 9.0 and newer
    int multiprocessors
    int shared_nbytes           # of a multiprocessor
    int is_phantom              # it keeps work as records (host/phantom_gpu.h)

# The kinds of devices. Rooms with work for both keep a table of functions by kind.
cdef enum:
    DEVICE_CUDA = 0
    DEVICE_HOST = 1
    DEVICE_KINDS = 2

cdef enum:
    MAX_SLOTS = 24

cdef struct OpenDevice:
    Driver* driver              # the outermost table; NULL: not open
    int kind                    # DEVICE_CUDA or DEVICE_HOST; also of a device that is not open
    DeviceFacts facts
    int generation              # rises when the device closes and in the child of a fork
    int first_generation        # of this process; above 0: it was forked
    void* slots[MAX_SLOTS]      # zeroed memory of each slot's registered size

# By device + HOST_DEVICES.
cdef OpenDevice open_devices[MAX_DEVICES]

# The table of an open device, or NULL when it is not open.
cdef inline Driver* driver_get(int device) noexcept nogil:
    if device < -HOST_DEVICES or device >= MAX_DEVICES - HOST_DEVICES:
        return NULL
    return open_devices[device + HOST_DEVICES].driver

cdef inline int device_kind(int device) noexcept nogil:
    return open_devices[device + HOST_DEVICES].kind

# Whether a stream captures: 0 no, 1 yes, 2 yes but the capture is invalid already; -1 when the
# driver cannot say, as for the legacy default stream while another stream captures.
cdef inline int stream_captures(int device, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef int active = 0
    cdef uint64_t capture_id = 0
    if driver.capture_info(driver.self, stream, &active, &capture_id) != 0:
        return -1
    return active

cdef Driver* driver_open_now(int device) except NULL
# Opens the device when needed. Raises gputensor.errors.DeviceError when there is none.
cdef inline Driver* driver_open(int device) except NULL:
    cdef Driver* table = driver_get(device)
    return table if table != NULL else driver_open_now(device)

# The facts of a device that is open, and of one that is opened when needed.
cdef inline const DeviceFacts* known_facts(int device) noexcept nogil:
    return &open_devices[device + HOST_DEVICES].facts

cdef inline const DeviceFacts* device_facts(int device) except NULL:
    driver_open(device)
    return known_facts(device)

# For libraries that work in the thread's current context (see table.pxd).
cdef inline status_t context_enter(int device, uint64_t* before) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    if driver == NULL:
        return STATUS_INVALID_DEVICE
    return driver.context_enter(driver.self, before)

cdef inline void context_leave(int device, uint64_t before) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    if driver != NULL:
        driver.context_leave(driver.self, before)

# ---- slots

# A room's memory for each open device, and its functions for what happens to the device. A room
# registers one slot when it is imported: after the rooms below it, so slots are in the order of the
# rooms. Functions may be NULL.
ctypedef int (*device_function_t)(int device) except -1
ctypedef int (*release_function_t)(int device, uint64_t capture_id) except -1
ctypedef void (*fork_function_t)() noexcept nogil

cdef struct Slot:
    # The size of the room's memory for each open device. The memory is zeroed when the device
    # opens, freed when it has closed, and zeroed in the child of a fork.
    size_t nbytes
    size_t kept_nbytes          # the first bytes of it, which the child of a fork keeps
    # Called from the top slot down: the device is about to close and still works.
    device_function_t close
    # Called from the bottom slot up. `fork`: once in the child of a fork, before the memory is
    # zeroed and Python runs there (another thread of the parent may have held any lock, in the
    # middle of a change). `reopen`: when Python runs again, for each device that the parent had
    # open. `synchronize`: after a wait for a host device. `release`: when a graph is released.
    fork_function_t fork
    device_function_t reopen
    device_function_t synchronize
    release_function_t release

# Returns the number of the slot, for device_slot.
cdef int register_slot(const Slot* slot) except -1
# The memory of a slot for an open device; NULL when it is not open.
cdef inline void* device_slot(int device, int slot) noexcept nogil:
    return open_devices[device + HOST_DEVICES].slots[slot]

cdef int slots_synchronize(int device) except -1
cdef int slots_release(int device, uint64_t capture_id) except -1

cdef inline int device_generation(int device) noexcept nogil:
    return open_devices[device + HOST_DEVICES].generation

# ---- listeners

# Asks the main thread to deliver recorded events soon. May be called with any lock held, with or
# without the GIL.
cdef void request_delivery() noexcept nogil

# Open devices by number, and the Python functions that open, close and observe them.
#
# Each device number has one record, `OpenDevice`. Host devices always have all layers (layer.h)
# in front, so counts, injected failures, traces and modelled time work at any moment; a CUDA device
# always has that of listeners, and gets the others by `observe`. Records change under the GIL only.
# Nothing is opened at import: the first caller that needs a device opens it; others wait meanwhile.
# DESIGN.md (Forks) describes the state of a forked child.

import os
from threading import RLock

from cpython.exc cimport PyErr_Restore, PyErr_WriteUnraisable
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from libcpp.vector cimport vector

from gputensor._driver.cuda cimport cuda_after_fork, cuda_open
from gputensor._driver.host cimport (
    host_after_fork, host_before_fork, host_close, host_live, host_open, host_run, phantom_close,
    phantom_open,
)
from gputensor._driver.table cimport (
    ATTRIBUTE_CAPABILITY_MAJOR, ATTRIBUTE_CAPABILITY_MINOR, ATTRIBUTE_MULTIPROCESSORS,
    ATTRIBUTE_SHARED_NBYTES_PER_MULTIPROCESSOR, HOST_DEVICE, HOST_DEVICES, MAX_DEVICES,
    STATUS_NOT_SUPPORTED, Driver, status_t,
)

from gputensor._driver.cuda import cuda_device_count, device_info, driver_version
from gputensor._driver.environment import switch
from gputensor._driver.settings import host_capacity, host_count
from gputensor.errors import DeviceError, raise_for_status

cdef extern from "gputensor/_driver/layers/layer.h" namespace "gputensor" nogil:
    const int ENTRY_COUNT "gputensor::DRIVER_ENTRY_COUNT"
    const char* entry_name(int entry)

    cdef struct Call "gputensor::TracePolicy::Call":
        int entry
        int status
        int argument_count
        uint64_t arguments[4]

    cdef cppclass Stack[Table]:
        Stack(Table* device)
        void observe()
        bint is_observed()
        Table* outermost()
        Table* device()
        uint64_t count(int entry)
        void reset_counts()
        void fail(int64_t k, int status, int entry)
        uint64_t modelled_nanoseconds()
        void start_trace()
        vector[Call] take_trace()
        void listen(void (*notify)() noexcept nogil)
        vector[Call] take_unheard()
        void renew()

    void refuse_entries(Driver* table)

cdef extern from "pthread.h" nogil:
    int pthread_atfork(fork_function_t prepare, fork_function_t parent, fork_function_t child)

__all__ = [
    "attach_listener",
    "close_host",
    "close_phantom_gpu",
    "counts",
    "cuda_device_count",
    "deliver",
    "detach_listener",
    "device_facts_of",
    "device_info",
    "device_name",
    "driver_version",
    "fail_call",
    "host_run_all",
    "leaks",
    "modelled_seconds",
    "observe",
    "open_host",
    "open_phantom_gpu",
    "reset_counts",
    "start_trace",
    "table_address",
    "take_trace",
]

cdef Stack[Driver]* stacks[MAX_DEVICES]
cdef Slot slots[MAX_SLOTS]
cdef int slot_count = 0
cdef object opening = RLock()   # opening a device runs Python code, which may switch threads


cdef Driver* driver_open_now(int device) except NULL:
    with opening:
        if driver_get(device) == NULL:
            open_one(device)
    return driver_get(device)


cdef int open_one(int device) except -1:
    if HOST_DEVICE >= device > HOST_DEVICE - host_count():
        open_host_at(device, host_capacity(), None, False)
    elif 0 <= device < MAX_DEVICES - HOST_DEVICES:
        make_record(device, cuda_open(device))
        if switch("GPUTENSOR_OBSERVE_DRIVER"):
            observe(device)
    else:
        raise DeviceError(
            f"host:{HOST_DEVICE - device} (device {device}) is not open: it was closed, or is not "
            f"one of the {host_count()} of GPUTENSOR_HOST_DEVICES"
            if device < HOST_DEVICE else f"there is no device {device}")
    return 0


# Fills the record of a device. The table is set last: a thread that finds it finds the rest.
cdef int make_record(int device, Driver* table) except -1:
    cdef OpenDevice* record = &open_devices[device + HOST_DEVICES]
    cdef int index
    record.facts.capability = (10 * fact(table, ATTRIBUTE_CAPABILITY_MAJOR)
                               + fact(table, ATTRIBUTE_CAPABILITY_MINOR))
    record.facts.can_cluster = record.facts.capability >= 90
    record.facts.multiprocessors = fact(table, ATTRIBUTE_MULTIPROCESSORS)
    record.facts.shared_nbytes = fact(table, ATTRIBUTE_SHARED_NBYTES_PER_MULTIPROCESSOR)
    for index in range(slot_count):
        give_memory(record, index)
    record.facts.is_phantom = table.name[0] == c"p"
    record.kind = DEVICE_HOST if table.name[0] == c"h" else DEVICE_CUDA
    record.driver = table if device >= 0 and record.facts.is_phantom else layers_of(device, table)
    return 0


# The functions of a phantom GPU take the `self` of its table for its state, so it has no layers.
cdef Driver* layers_of(int device, Driver* table) except NULL:
    cdef Stack[Driver]* stack = new Stack[Driver](table)
    stacks[device + HOST_DEVICES] = stack
    if listeners:
        stack.listen(request_delivery)
    return stack.outermost()


cdef int _set_kinds() noexcept:
    cdef int index
    for index in range(HOST_DEVICES):
        open_devices[index].kind = DEVICE_HOST
    return 0


_set_kinds()


cdef int fact(Driver* table, int attribute) except? -1:
    cdef int value = 0
    cdef status_t status = table.device_attribute(table.self, attribute, &value)
    if status != STATUS_NOT_SUPPORTED:
        raise_for_status(status, "device_attribute", f"{attribute} of device {table.device}")
    return value


cdef int give_memory(OpenDevice* record, int index) except -1:
    if slots[index].nbytes and record.slots[index] == NULL:
        record.slots[index] = calloc(1, slots[index].nbytes)
        if record.slots[index] == NULL:
            raise MemoryError
    return 0


cdef int open_host_at(int device, size_t capacity, object seed, bint phantom) except -1:
    cdef uint64_t seed_bits = 0 if seed is None else (<object>seed) & 0xFFFFFFFFFFFFFFFF
    cdef Driver* table = host_open(device, capacity, phantom, seed is not None, seed_bits)
    if table == NULL:
        raise MemoryError
    make_record(device, table)
    observe(device)
    return 0


cdef Stack[Driver]* stack_of(int device) except NULL:
    driver_open(device)
    cdef Stack[Driver]* stack = stacks[device + HOST_DEVICES]
    if stack == NULL or not stack.is_observed():
        raise DeviceError(f"device {device} is not observed: call observe({device}) first")
    return stack


cdef Driver* host_table(int device) except NULL:
    if device >= 0:
        raise ValueError(f"device: got {device}, a CUDA device; expected a host device")
    return stack_of(device).device()


cdef int entry_number(object name) except -2:
    cdef int entry
    if name is None:
        return -1
    for entry in range(ENTRY_COUNT):
        if entry_name(entry).decode() == name:
            return entry
    raise ValueError(f"name: got {name!r}; expected an entry of the driver table")


def open_host(capacity=None, seed=None, phantom=False):
    """Open a further host device and return its number, which is below those of named devices.

    Parameters
    ----------
    capacity : int, optional
        Bytes of device memory; default as for device -1 (``GPUTENSOR_HOST_MEMORY``, otherwise half
        of the physical memory).
    seed : int, optional
        Defer work, and run it in an order that follows from this seed. Without a seed, work runs
        at once.
    phantom : bool
        Do only the accounting: addresses are reserved but inaccessible, and work is dropped.

    Examples
    --------
    >>> device = open_host(capacity=1 << 30, seed=7)
    >>> close_host(device)
    """
    cdef int device
    with opening:
        for device in range(HOST_DEVICE - host_count(), -HOST_DEVICES - 1, -1):
            if driver_get(device) == NULL:
                open_host_at(device, host_capacity() if capacity is None else capacity, seed,
                             phantom)
                return device
    raise DeviceError(f"all {HOST_DEVICES - 1} further host devices are open: close_host one first")


def close_host(int device):
    """Close a device that `open_host` made and free all its memory, in use or not.

    Runs the `close` functions of the slots first, from the top down. No other thread may use the
    device during this call. Objects made on it raise an error afterwards that says that it is
    closed; arrays that share its memory through DLPack, and addresses read before, become invalid.
    """
    if device > HOST_DEVICE - host_count():
        raise ValueError(f"device: got {device}; expected a device that open_host made")
    if driver_get(device) == NULL:
        raise DeviceError(f"device {device} is not open")
    cdef Driver* table = host_table(device)
    close_slots(device)
    del stacks[device + HOST_DEVICES]
    stacks[device + HOST_DEVICES] = NULL
    host_close(table)


cdef int close_slots(int device) except -1:
    cdef OpenDevice* record = &open_devices[device + HOST_DEVICES]
    cdef int index
    # From here on objects of the device are stale; only the slots still know what it holds.
    record.generation += 1
    for index in range(slot_count - 1, -1, -1):
        if slots[index].close != NULL:
            slots[index].close(device)
    record.driver = NULL
    for index in range(slot_count):
        free(record.slots[index])
        record.slots[index] = NULL
    return 0


def open_phantom_gpu(int capability, int multiprocessors, int shared_nbytes):
    """Open a phantom GPU and return its number, which no GPU of this process has.

    The device keeps work as records and runs none of it (``host/phantom_gpu.h``).

    `capability` is ten times the compute capability, `shared_nbytes` the shared memory of each
    multiprocessor.

    >>> device = open_phantom_gpu(90, 132, 233472)
    >>> device_name(device), device_facts_of(device)
    ('phantom', (90, 132, 233472))
    >>> close_phantom_gpu(device)
    """
    cdef Driver* table
    cdef int device, least = cuda_device_count()
    with opening:
        for device in range(MAX_DEVICES - HOST_DEVICES - 1, least - 1, -1):
            if driver_get(device) == NULL:
                table = phantom_open(device, capability, multiprocessors, shared_nbytes)
                if table == NULL:
                    raise MemoryError
                make_record(device, table)
                return device
    raise DeviceError("all device numbers are in use: close_phantom_gpu one first")


def close_phantom_gpu(int device):
    """Close a device that `open_phantom_gpu` made. No thread may use the device meanwhile."""
    cdef Driver* table = driver_get(device)
    if table == NULL or not known_facts(device).is_phantom:
        raise ValueError(f"device: got {device}; expected a device that open_phantom_gpu made")
    close_slots(device)
    phantom_close(table)


def device_facts_of(int device):
    """Return (capability times ten, multiprocessors, bytes of shared memory of each) of a device.

    Opens the device when needed. A host device has zeros.

    >>> device_facts_of(-1)
    (0, 0, 0)
    """
    cdef const DeviceFacts* facts = device_facts(device)
    return facts.capability, facts.multiprocessors, facts.shared_nbytes


cdef int register_slot(const Slot* slot) except -1:
    global slot_count
    cdef int device
    if slot_count == MAX_SLOTS:
        raise RuntimeError(f"slots: got {MAX_SLOTS + 1}; expected at most {MAX_SLOTS}")
    slots[slot_count] = slot[0]
    for device in range(MAX_DEVICES):
        if open_devices[device].driver != NULL:
            give_memory(&open_devices[device], slot_count)
    slot_count += 1
    return slot_count - 1


cdef int slots_synchronize(int device) except -1:
    cdef int index
    for index in range(slot_count):
        if slots[index].synchronize != NULL:
            slots[index].synchronize(device)
    return 0


cdef int slots_release(int device, uint64_t capture_id) except -1:
    cdef int index
    for index in range(slot_count):
        if slots[index].release != NULL:
            slots[index].release(device, capture_id)
    return 0


cdef void _before_fork() noexcept nogil:
    host_before_fork()


cdef void _after_fork_in_parent() noexcept nogil:
    host_after_fork(False)


cdef void _after_fork_in_child() noexcept nogil:
    cdef OpenDevice* record
    cdef int index, slot
    host_after_fork(True)
    for index in range(MAX_DEVICES):
        record = &open_devices[index]
        if stacks[index] != NULL:
            stacks[index].renew()
        if record.driver == NULL:
            continue
        if index >= HOST_DEVICES:
            refuse_entries(record.driver if stacks[index] == NULL else stacks[index].device())
        record.generation += 1      # what the parent made belongs to it
        record.first_generation = record.generation
    cuda_after_fork()
    for slot in range(slot_count):
        if slots[slot].fork != NULL:
            slots[slot].fork()
    for index in range(MAX_DEVICES):
        record = &open_devices[index]
        for slot in range(slot_count if record.driver != NULL else 0):
            if record.slots[slot] != NULL:
                memset(<char*>record.slots[slot] + slots[slot].kept_nbytes, 0,
                       slots[slot].nbytes - slots[slot].kept_nbytes)


def _forget_parent():
    global opening
    delivery_begins()
    cdef int index, slot
    opening = RLock()
    for index in range(MAX_DEVICES):
        if open_devices[index].driver != NULL:
            for slot in range(slot_count):
                if slots[slot].reopen != NULL:
                    slots[slot].reopen(index - HOST_DEVICES)


if pthread_atfork(_before_fork, _after_fork_in_parent, _after_fork_in_child) != 0:
    raise MemoryError("no memory to watch forks of the process")
os.register_at_fork(after_in_child=_forget_parent)


def observe(int device):
    """Put the layers in front of a device: counts, failures, trace, cost. Opens it when needed.

    Host devices always have them, CUDA devices also with ``GPUTENSOR_OBSERVE_DRIVER=1``.
    """
    driver_open(device)
    if stacks[device + HOST_DEVICES]:
        stacks[device + HOST_DEVICES].observe()


def device_name(int device):
    """Return the name of the filler of a device: ``"cuda"``, ``"host"`` or ``"phantom"``.

    >>> device_name(-1)
    'host'
    """
    return driver_open(device).name.decode()


def table_address(int device):
    """Return the address of a device's `struct Driver`, for callers in C and for ctypes."""
    return <size_t>driver_open(device)


def counts(int device):
    """Return how often each entry was called since the last reset, as a dict of all entries."""
    cdef Stack[Driver]* stack = stack_of(device)
    return {entry_name(entry).decode(): stack.count(entry) for entry in range(ENTRY_COUNT)}


def reset_counts(int device):
    """Set all counts, and the modelled time, of a device to 0."""
    stack_of(device).reset_counts()


def fail_call(int device, k, status=2, name=None):
    """Make one driver call fail: the `k`-th from now.

    Parameters
    ----------
    device : int
        An observed device.
    k : int
        1 is the next call; 0 turns the failure off. Only one call fails.
    status : int
        The status that the call returns instead of being made; default out of memory.
    name : str, optional
        Count only calls of this entry; default: of every entry.
    """
    if k < 0:
        raise ValueError(f"k: got {k}; expected the number of a call, counted from 1, or 0 to turn "
                         "the failure off")
    cdef int entry = entry_number(name)
    stack_of(device).fail(k, status, entry)


def modelled_seconds(int device):
    """Return the time that the calls since the last reset would have cost on a GPU.

    The model is in the package's DESIGN.md.
    """
    return stack_of(device).modelled_nanoseconds() * 1e-9


def start_trace(int device):
    """Begin to record every call of a device; records of an earlier trace are dropped."""
    stack_of(device).start_trace()


def take_trace(int device):
    """Stop recording and return the calls since `start_trace`.

    Returns
    -------
    list of tuple
        ``(name, status, arguments)``: `arguments` are the first four as integers; an output is the
        value written to it (0 when the call failed).
    """
    return shown(stack_of(device).take_trace())


cdef list shown(vector[Call] calls):
    cdef Call call
    return [(entry_name(call.entry).decode(), call.status,
             tuple(call.arguments[i] for i in range(call.argument_count))) for call in calls]


include "listeners.pxi"


def leaks(int device):
    """Return the counts of live objects on a host device, as a dict by name.

    The names: ``allocations``, ``pages``, ``mappings``, ``va_ranges``, ``pinned``, ``registered``,
    ``streams``, ``events``, ``graphs``, ``executables``, and ``used_bytes``.
    """
    return host_live(host_table(device))


def host_run_all(int device):
    """Run all pending work of a deferred host device, in an order that its seed gives."""
    cdef Driver* table = host_table(device)
    cdef int status
    with nogil:
        status = host_run(table)
    raise_for_status(status, "host_run_all")

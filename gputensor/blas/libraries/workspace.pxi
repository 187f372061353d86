"""Workspaces: scratch memory of the libraries, from our allocator, one block for each stream.

Calls on one stream run one after the other, so they can share a block from any thread and handle;
calls on different streams must not. So the table is keyed by (device, stream), which keeps 16
threads on one stream at 32 MiB rather than 512. A captured call is replayed later on any stream,
beside other work, so it gets a separate block from the allocator, which takes it from the graph's
private pool.

NVIDIA recommends the sizes: 32 MiB on Hopper and newer, 8,519,680 bytes (`:4096:2:16:8`) before;
`CUBLAS_WORKSPACE_CONFIG` in its usual form overrides them.
"""

cdef extern from "gputensor/blas/libraries/workspace_table.h":
    cdef struct WorkspaceEntry:
        int device
        uint64_t stream
        uint64_t ptr
        size_t nbytes
        void* block
    const WorkspaceEntry* workspace_recall(int device, uint64_t stream) noexcept nogil
    const WorkspaceEntry* workspace_find(int device, uint64_t stream) noexcept nogil
    bint workspace_add(int device, uint64_t stream, uint64_t ptr, size_t nbytes,
                       void* block) noexcept nogil
    void workspace_after_fork() noexcept nogil
    bint workspace_pop(int device, WorkspaceEntry* out) noexcept nogil

cdef enum:
    ALL_DEVICES = -1000

HOPPER_NBYTES = 32 << 20
OLDER_NBYTES = 8519680


cdef size_t workspace_nbytes(int device) noexcept nogil:
    cdef LibrariesSlot* kept = libraries_of(device)
    return 0 if kept is NULL else kept.workspace_nbytes


cdef int workspace_configure(int device) except -1:
    driver_open(device)
    if libraries_of(device).workspace_nbytes == 0:
        libraries_of(device).workspace_nbytes = default_nbytes(device)
    return 0


def default_nbytes(device):
    """Return the size of a workspace on the device, from the environment or by generation."""
    text = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    configured = parse_workspace_config(text) if text else None
    if configured is not None:
        return configured
    if device >= 0 and device_facts(device).capability >= 90:
        return HOPPER_NBYTES
    return OLDER_NBYTES


def parse_workspace_config(text):
    """Return the bytes of a ``CUBLAS_WORKSPACE_CONFIG``, or None when it is malformed.

    The form is pairs ``:SIZE:COUNT`` with sizes in KiB. As in the library, a malformed value means
    the default.

    >>> parse_workspace_config(":4096:2:16:8")
    8519680
    >>> parse_workspace_config(":4096:8")
    33554432
    >>> parse_workspace_config("4096") is None
    True
    """
    if not re.fullmatch(r"(:\d+:\d+)+", text):
        return None
    numbers = [int(number) for number in text[1:].split(":")]
    return sum(size * count * 1024 for size, count in zip(numbers[::2], numbers[1::2]))


cdef status_t lend(int device, uint64_t stream, size_t nbytes, Workspace* out) noexcept nogil:
    cdef status_t status = STATUS_OK
    out.lent = allocator_malloc(device, nbytes, stream, &status)
    if out.lent is NULL:
        out.nbytes = 0
        return status
    out.ptr = out.lent.ptr
    out.nbytes = nbytes
    return STATUS_OK


cdef status_t workspace_take(int device, uint64_t stream, size_t nbytes,
                             Workspace* out) noexcept nogil:
    cdef const WorkspaceEntry* entry
    cdef DeviceAllocator* a
    cdef Block* block
    cdef status_t status = STATUS_OK
    cdef size_t full = workspace_nbytes(device)
    out.ptr = 0
    out.nbytes = 0
    out.lent = NULL
    if nbytes == 0:
        return STATUS_OK
    if stream_captures(device, stream) > 0:
        return lend(device, stream, nbytes, out)
    entry = workspace_recall(device, stream)
    if entry is NULL:
        entry = workspace_find(device, stream)
    if entry is NULL:
        # A workspace stays, so it must not be memory of a pool that the program will give up.
        a = allocator_find(device)
        if a is not NULL and gt_load(&a.scope_count):
            return lend(device, stream, nbytes, out)
        if full < nbytes:
            full = nbytes
        block = allocator_malloc(device, full, stream, &status)
        if block is NULL:
            return status
        if not workspace_add(device, stream, block.ptr, full, block):
            allocator_free(block)
        entry = workspace_find(device, stream)
    if entry is NULL or entry.nbytes < nbytes:
        return lend(device, stream, nbytes, out)
    out.ptr = entry.ptr
    out.nbytes = entry.nbytes
    return STATUS_OK


cdef int workspace_ask(int device, uint64_t stream, size_t nbytes) except -1 nogil:
    cdef Workspace workspace
    cdef status_t status = workspace_take(device, stream, nbytes, &workspace)
    if status != STATUS_OK:
        raise_for_malloc(device, nbytes, stream, status)
    workspace_return(&workspace)
    return 0


cdef void workspace_return(Workspace* workspace) noexcept nogil:
    if workspace.lent is not NULL:
        allocator_free(workspace.lent)
        workspace.lent = NULL


def clear_workspaces(device=None):
    """Give the workspaces of one device, or of all, back to the allocator.

    The next product that needs a workspace takes a new one. Do not call this while another thread
    is inside `gputensor_mm_out`.

    Parameters
    ----------
    device : optional
        All devices by default.

    Examples
    --------
    >>> clear_workspaces()
    """
    cdef WorkspaceEntry entry
    cdef int which = ALL_DEVICES if device is None else device_number(device)
    while workspace_pop(which, &entry):
        allocator_free(<Block*>entry.block)


def workspace_size(device=None):
    """Return the size in bytes of new workspaces on a device.

    It is 32 MiB on Hopper and newer GPUs and 8,519,680 bytes on others, unless
    ``CUBLAS_WORKSPACE_CONFIG`` was set when the size was first needed. The call opens the device.

    Parameters
    ----------
    device : optional
        Default: the current device.

    Raises
    ------
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> workspace_size("host") > 0
    True
    """
    cdef int number = device_number(device)
    workspace_configure(number)
    return workspace_nbytes(number)


cdef void _fork() noexcept nogil:
    handle_pool_after_fork()
    lt_handle_renew()
    workspace_after_fork()


cdef Slot slot
slot.nbytes = sizeof(LibrariesSlot)
slot.fork = _fork
cdef int libraries_slot = register_slot(&slot)

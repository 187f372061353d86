# The driver table: the only way in which the library talks to a device.
#
# One `Driver` is one open device. Every entry takes `self` (the filler's own state) first, never
# raises, never needs the GIL and returns a CUDA status number; the host device returns the same
# numbers for the same mistakes. Handles are integers: 0 is "none"; stream 0 is the default stream.
# A failed call creates nothing and leaves its outputs unchanged. The contract of each entry is in
# DESIGN.md; tests/conformance holds both fillers to it.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

ctypedef int status_t

cdef enum:
    STATUS_OK = 0
    STATUS_INVALID_VALUE = 1
    STATUS_OUT_OF_MEMORY = 2
    STATUS_NOT_INITIALIZED = 3
    STATUS_NO_DEVICE = 100
    STATUS_INVALID_DEVICE = 101
    STATUS_INVALID_CONTEXT = 201
    STATUS_INVALID_HANDLE = 400
    STATUS_NOT_FOUND = 500
    STATUS_NOT_READY = 600
    STATUS_ILLEGAL_ADDRESS = 700
    STATUS_MISALIGNED = 716
    STATUS_LAUNCH_FAILED = 719
    STATUS_NOT_SUPPORTED = 801
    STATUS_CAPTURE_UNSUPPORTED = 900
    STATUS_CAPTURE_INVALIDATED = 901
    STATUS_CAPTURE_WRONG_THREAD = 908
    STATUS_GRAPH_UPDATE_FAILED = 910
    STATUS_UNKNOWN = 999

# Device numbers: CUDA ordinals are >= 0; host devices are -1, -2, ... (the named ones first, then
# those of open_host). Arrays for each device are indexed with `device + HOST_DEVICES`.
cdef enum:
    HOST_DEVICES = 32
    MAX_DEVICES = 64
    HOST_DEVICE = -1

cdef enum:
    EVENT_TIMING = 1        # flags of event_create: the event keeps a time stamp
    EVENT_INTERPROCESS = 2  # other processes may open it; not together with a time stamp
    IPC_HANDLE_NBYTES = 64

# Facts for device_attribute, by CUDA's numbers (CUdevice_attribute).
cdef enum:
    ATTRIBUTE_MULTIPROCESSORS = 16
    ATTRIBUTE_CAPABILITY_MAJOR = 75
    ATTRIBUTE_CAPABILITY_MINOR = 76
    ATTRIBUTE_SHARED_NBYTES_PER_MULTIPROCESSOR = 81

ctypedef void (*host_function_t)(void* argument) noexcept nogil

cdef struct Driver:
    void* self
    const char* name                # "cuda", "host", "phantom"
    int device                      # the device number above
    size_t page_granularity         # bytes; page sizes are multiples of it. 0: no virtual memory

    # Plain allocations.
    status_t (*mem_alloc)(void* self, uint64_t* ptr, size_t nbytes) noexcept nogil
    status_t (*mem_free)(void* self, uint64_t ptr) noexcept nogil
    status_t (*mem_info)(void* self, size_t* free, size_t* total) noexcept nogil
    status_t (*pinned_alloc)(void* self, uint64_t* ptr, size_t nbytes) noexcept nogil
    status_t (*pinned_free)(void* self, uint64_t ptr) noexcept nogil
    status_t (*pinned_register)(void* self, uint64_t ptr, size_t nbytes) noexcept nogil
    status_t (*pinned_unregister)(void* self, uint64_t ptr) noexcept nogil
    # The driver's own stream-ordered pool (backend:cudaMallocAsync).
    status_t (*async_alloc)(void* self, uint64_t* ptr, size_t nbytes,
                            uint64_t stream) noexcept nogil
    status_t (*async_free)(void* self, uint64_t ptr, uint64_t stream) noexcept nogil
    status_t (*async_trim)(void* self, size_t keep) noexcept nogil

    # Virtual memory. page_map maps one whole page at va and makes it accessible to this device;
    # page_unmap takes a range that covers whole mapped pages (one call may cover several).
    status_t (*va_reserve)(void* self, uint64_t* va, size_t nbytes, size_t alignment) noexcept nogil
    status_t (*va_release)(void* self, uint64_t va, size_t nbytes) noexcept nogil
    status_t (*page_create)(void* self, uint64_t* page, size_t nbytes) noexcept nogil
    status_t (*page_destroy)(void* self, uint64_t page) noexcept nogil
    status_t (*page_map)(void* self, uint64_t va, size_t nbytes, uint64_t page) noexcept nogil
    status_t (*page_unmap)(void* self, uint64_t va, size_t nbytes) noexcept nogil

    # Streams and events. *_query returns OK or NOT_READY. An event never recorded is complete.
    status_t (*stream_create)(void* self, uint64_t* stream, int priority) noexcept nogil
    status_t (*stream_destroy)(void* self, uint64_t stream) noexcept nogil
    status_t (*stream_query)(void* self, uint64_t stream) noexcept nogil
    status_t (*stream_synchronize)(void* self, uint64_t stream) noexcept nogil
    status_t (*stream_wait_event)(void* self, uint64_t stream, uint64_t event) noexcept nogil
    status_t (*stream_priority_range)(void* self, int* least, int* greatest) noexcept nogil
    status_t (*event_create)(void* self, uint64_t* event, uint32_t flags) noexcept nogil
    status_t (*event_destroy)(void* self, uint64_t event) noexcept nogil
    status_t (*event_record)(void* self, uint64_t event, uint64_t stream) noexcept nogil
    status_t (*event_query)(void* self, uint64_t event) noexcept nogil
    status_t (*event_synchronize)(void* self, uint64_t event) noexcept nogil
    status_t (*event_elapsed)(void* self, float* milliseconds, uint64_t start,
                              uint64_t end) noexcept nogil
    status_t (*synchronize)(void* self) noexcept nogil

    # Capture and graphs. mode: 0 global, 1 thread-local, 2 relaxed. capture_info sets `active` to 1
    # while the stream captures (2: invalidated), and an id that is unique to the capture.
    status_t (*capture_begin)(void* self, uint64_t stream, int mode) noexcept nogil
    status_t (*capture_end)(void* self, uint64_t stream, uint64_t* graph) noexcept nogil
    status_t (*capture_info)(void* self, uint64_t stream, int* active,
                             uint64_t* capture_id) noexcept nogil
    status_t (*graph_instantiate)(void* self, uint64_t graph, uint64_t* executable) noexcept nogil
    status_t (*graph_launch)(void* self, uint64_t executable, uint64_t stream) noexcept nogil
    status_t (*graph_destroy)(void* self, uint64_t graph) noexcept nogil
    status_t (*graph_executable_destroy)(void* self, uint64_t executable) noexcept nogil

    # Work in a stream. Addresses are unified: copy_async finds the direction itself. fill_async
    # writes `count` elements of `width` (1, 2 or 4) bytes. host_launch runs a C function when the
    # stream reaches it. kernel_launch takes the handle of a loaded device function and its one
    # parameter struct of `nbytes` bytes, whose padding is zeroed so that launches can be compared;
    # the host device has no such kernels and returns NOT_SUPPORTED: its own are host functions.
    status_t (*copy_async)(void* self, uint64_t dst, uint64_t src, size_t nbytes,
                           uint64_t stream) noexcept nogil
    status_t (*fill_async)(void* self, uint64_t dst, uint32_t value, int width, size_t count,
                           uint64_t stream) noexcept nogil
    status_t (*host_launch)(void* self, host_function_t function, void* argument,
                            uint64_t stream) noexcept nogil
    status_t (*kernel_launch)(void* self, uint64_t function, uint32_t grid_x, uint32_t grid_y,
                              uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                              uint32_t block_z, uint32_t shared_nbytes, uint64_t stream,
                              const void* parameters, size_t nbytes) noexcept nogil

    # The order of a capture. capture_nodes: the nodes that the next work of a capturing stream
    # comes after; `count` is set to their number, and at most `capacity` are written.
    # capture_follows: for each of `count` nodes of the stream's capture, whether the next work of
    # the stream comes after it. Neither changes the graph.
    status_t (*capture_nodes)(void* self, uint64_t stream, uint64_t* nodes, int capacity,
                              int* count) noexcept nogil
    status_t (*capture_follows)(void* self, uint64_t stream, const uint64_t* nodes, int count,
                                uint8_t* follows) noexcept nogil

    # Two devices of one kind, by number; not during captures. wait_for_peer is stream_wait_event
    # for an event of device `peer`. copy_to_peer copies from this device's memory to that of
    # `peer`, in a stream of this device; the caller orders it with the peer's streams.
    status_t (*wait_for_peer)(void* self, uint64_t stream, int peer,
                              uint64_t event) noexcept nogil
    status_t (*copy_to_peer)(void* self, uint64_t dst, int peer, uint64_t src, size_t nbytes,
                             uint64_t stream) noexcept nogil

    # The device itself: one of its facts, and its context for libraries that work in the thread's
    # current context. context_enter makes the device's context current and returns the former one,
    # which context_leave restores. A thread without a former context (0) keeps the device's.
    status_t (*device_attribute)(void* self, int attribute, int* value) noexcept nogil
    status_t (*context_enter)(void* self, uint64_t* before) noexcept nogil
    status_t (*context_leave)(void* self, uint64_t before) noexcept nogil

    # Device code. `image`: a cubin, a fat binary, or PTX text that ends with a zero byte.
    # function_allow_shared permits launches with up to `nbytes` of dynamic shared memory (needed
    # above 48 KiB); function_occupancy returns how many blocks of `threads` threads a
    # multiprocessor holds at once. function_attribute returns a fact of a function, and
    # function_attribute_set changes a setting, by CUDA's numbers (CUfunction_attribute).
    status_t (*module_load)(void* self, const void* image, uint64_t* module) noexcept nogil
    status_t (*module_unload)(void* self, uint64_t module) noexcept nogil
    status_t (*module_function)(void* self, uint64_t module, const char* name,
                                uint64_t* function) noexcept nogil
    status_t (*function_allow_shared)(void* self, uint64_t function, int nbytes) noexcept nogil
    status_t (*function_occupancy)(void* self, uint64_t function, int threads,
                                   size_t shared_nbytes, int* blocks) noexcept nogil
    status_t (*function_attribute)(void* self, uint64_t function, int attribute,
                                   int* value) noexcept nogil
    status_t (*function_attribute_set)(void* self, uint64_t function, int attribute,
                                       int value) noexcept nogil

    # Graphs after their capture. graph_nodes: the nodes, in the order of their capture; `count` is
    # their number, and at most `capacity` are written. graph_node_get: the parameters of a node as
    # 8-byte words, the kind first (graph_node.h); `nbytes` is their size, and nothing is written
    # when it exceeds `capacity`. graph_node_set: new parameters for a node of an executable made
    # from the node's graph, for later launches; parameters of another kind of work are refused.
    # graph_update: the same for all nodes at once, from another graph with the same nodes.
    status_t (*graph_nodes)(void* self, uint64_t graph, uint64_t* nodes, int capacity,
                            int* count) noexcept nogil
    status_t (*graph_node_get)(void* self, uint64_t graph, uint64_t node, void* words,
                               size_t capacity, size_t* nbytes) noexcept nogil
    status_t (*graph_node_set)(void* self, uint64_t executable, uint64_t node, const void* words,
                               size_t nbytes) noexcept nogil
    status_t (*graph_update)(void* self, uint64_t executable, uint64_t graph) noexcept nogil
    # The graph as a text in the DOT language, in a new file.
    status_t (*graph_dump)(void* self, uint64_t graph, const char* path) noexcept nogil

    # Events as nodes of a graph: in a capture, each launch records the event, or waits for the
    # latest record at the launch. Elsewhere as event_record, stream_wait_event.
    status_t (*event_record_external)(void* self, uint64_t event, uint64_t stream) noexcept nogil
    status_t (*stream_wait_external)(void* self, uint64_t stream, uint64_t event) noexcept nogil

    # Sharing with other processes of the same machine. event_export writes the IPC_HANDLE_NBYTES
    # bytes of a handle of an event made with EVENT_INTERPROCESS; event_import makes an event from
    # such bytes. page_create_shared makes a page that other processes can map, and a file
    # descriptor for it, which the caller owns; page_import makes the page of a descriptor, which
    # the caller keeps.
    status_t (*event_export)(void* self, uint64_t event, void* handle) noexcept nogil
    status_t (*event_import)(void* self, uint64_t* event, const void* handle) noexcept nogil
    status_t (*page_create_shared)(void* self, uint64_t* page, size_t nbytes,
                                   int* descriptor) noexcept nogil
    status_t (*page_import)(void* self, uint64_t* page, size_t nbytes,
                            int descriptor) noexcept nogil
    # Calls a function of the program in this thread, at once: in the device's context, and with the
    # capture mode relaxed, so that its calls are no part of captures.
    status_t (*call_apart)(void* self, host_function_t function, void* argument) noexcept nogil

    # Conditions of a graph. condition_create makes one, false, for the graph that a stream captures
    # into. While the graph runs, its work sets the condition: a kernel by cudaGraphSetConditional;
    # on a host device a condition is the address of a uint32. condition_add captures a node that
    # runs its body if the condition is true (kind 0) or while it is true (kind 1); the condition
    # belongs to the graph that the stream captures into. The body is a graph of its own, destroyed
    # with the graph around it; capture_begin_body starts to capture a stream into it, and
    # capture_end returns it again. graph_node_set takes nodes of bodies, too. NOT_SUPPORTED: the
    # driver is too old.
    status_t (*condition_create)(void* self, uint64_t stream, uint64_t* condition) noexcept nogil
    status_t (*condition_add)(void* self, uint64_t stream, uint64_t condition, int kind,
                              uint64_t* body) noexcept nogil
    status_t (*capture_begin_body)(void* self, uint64_t stream, uint64_t body,
                                   int mode) noexcept nogil

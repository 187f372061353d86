# What other rooms may call of _alloc/config; each section is named after its part.

from libc.stdint cimport int64_t, uint32_t, uint64_t

# ---- configuration

# The allocator's settings as C fields, for code without the GIL. All sizes are bytes. The Python
# side (parsing, checks, defaults, where each value came from) is Settings in settings.py.

cdef enum:
    BACKEND_NATIVE = 0
    BACKEND_ASYNC = 1           # the driver's own stream-ordered pool (backend:cudaMallocAsync)
    ROUNDUP_INTERVALS = 16

cdef struct AllocatorConfig:
    size_t large_segment_size       # segment (or growth step) of requests in (1 MiB, 10 MiB)
    size_t max_split_size           # blocks of at least this are not split. SIZE_MAX: no limit
    size_t max_non_split_rounding   # slack that a request >= max_split_size may take
    uint32_t roundup[ROUNDUP_INTERVALS]  # divisions for sizes in [2^i MiB, 2^(i+1) MiB); 0, 1: none
    double gc_threshold             # share of the limit above which cached segments go. 0: off
    double memory_fraction          # share of the device that may be reserved; 1.0: no limit
    uint64_t memory_limit           # hard limit of reserved bytes. 0: none
    size_t page_size                # large page of virtual memory
    int expandable_segments
    int page_reuse                  # free pages back growth anywhere
    int thread_cache
    int throw_on_oom                # reject by the fraction at once, without the steps of a miss
    int backend                     # BACKEND_*
    int release_lock                # recorded; the lock is dropped around driver calls anyway
    int capture_reuse               # graph_capture_record_stream_reuse
    int pinned_register             # pinned_use_cuda_host_register
    int pinned_register_threads
    size_t pinned_reserve_segment   # one segment reserved up front. 0: none
    size_t pinned_max_cached        # cached (free) pinned bytes kept. SIZE_MAX: no limit

# Fills the struct from a settings.Settings.
cdef int settings_to_struct(object settings, AllocatorConfig* config) except -1
# Fills the struct from the settings in force (GPUTENSOR_ALLOC_CONF and run-time changes).
# To hear of changes: settings.on_change(function) calls function(settings) after each.
cdef int config_current(AllocatorConfig* config) except -1
# The same with the memory fraction that was set for one device.
cdef int config_of_device(int device, AllocatorConfig* config) except -1

# The division that a size falls under (0 or 1: round to 512 only).
cdef inline uint32_t config_roundup(const AllocatorConfig* config, size_t nbytes) noexcept nogil:
    cdef size_t mebibytes = nbytes >> 20
    cdef int index = 0
    while mebibytes > 1 and index < ROUNDUP_INTERVALS - 1:
        mebibytes >>= 1
        index += 1
    return config.roundup[index]

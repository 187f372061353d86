# The functions of _alloc/config for other rooms; each section is named after its part.

from libc.stdint cimport int64_t, uint32_t, uint64_t

# ---- configuration

# The allocator's settings as C fields, for code without the GIL. A field has the name of its option
# without `_mb`, as all sizes are bytes; options.py says what it means. The Python side (parsing,
# checks, defaults, where each value came from) is Settings in settings.py.

cdef enum:
    BACKEND_NATIVE = 0
    BACKEND_ASYNC = 1           # the driver's own stream-ordered pool (backend:cudaMallocAsync)
    ROUNDUP_INTERVALS = 16

cdef struct AllocatorConfig:
    size_t large_segment_size
    size_t max_split_size           # SIZE_MAX: no limit
    size_t max_non_split_rounding
    uint32_t roundup_power2_divisions[ROUNDUP_INTERVALS]  # of sizes in [2^i MiB, 2^(i+1) MiB)
    double garbage_collection_threshold
    double per_process_memory_fraction
    uint64_t memory_limit           # 0: none
    size_t page_size
    int expandable_segments
    int page_reuse
    int thread_cache
    int throw_on_cudamalloc_oom
    int backend                     # BACKEND_*
    int graph_capture_record_stream_reuse
    int pinned_use_cuda_host_register
    int pinned_num_register_threads
    size_t pinned_reserve_segment_size
    size_t pinned_max_cached_size   # SIZE_MAX: no limit

# Fills the struct from a settings.Settings.
cdef int settings_to_struct(object settings, AllocatorConfig* config) except -1
# Fills it from the settings in force (GPUTENSOR_ALLOC_CONF and run-time changes) on a device.
# settings.on_change(function) makes function(settings) run after each change.
cdef int config_of_device(int device, AllocatorConfig* config) except -1

# The division that a size falls under (0 or 1: round to 512 only).
cdef inline uint32_t config_roundup(const AllocatorConfig* config, size_t nbytes) noexcept nogil:
    cdef size_t mebibytes = nbytes >> 20
    cdef int index = 0
    while mebibytes > 1 and index < ROUNDUP_INTERVALS - 1:
        mebibytes >>= 1
        index += 1
    return config.roundup_power2_divisions[index]

# Turns the settings (settings.py) into the C struct that code without the GIL reads. Megabytes
# become bytes here and "no limit" becomes SIZE_MAX; nowhere else.

cdef extern from "<stdint.h>" nogil:
    size_t SIZE_MAX


cdef size_t bytes_or_no_limit(object mebibytes) except? 0:
    return SIZE_MAX if mebibytes is None else <size_t>mebibytes << 20


cdef int settings_to_struct(object settings, AllocatorConfig* config) except -1:
    cdef int index
    config.large_segment_size = <size_t>settings.large_segment_size_mb << 20
    config.max_split_size = bytes_or_no_limit(settings.max_split_size_mb)
    if settings.max_non_split_rounding_mb is None:
        config.max_non_split_rounding = config.large_segment_size
    else:
        config.max_non_split_rounding = <size_t>settings.max_non_split_rounding_mb << 20
    for index in range(ROUNDUP_INTERVALS):
        config.roundup[index] = settings.roundup_power2_divisions[index]
    config.gc_threshold = settings.garbage_collection_threshold
    config.memory_fraction = settings.per_process_memory_fraction
    config.memory_limit = <uint64_t>settings.memory_limit_mb << 20
    config.page_size = <size_t>settings.page_size_mb << 20
    config.expandable_segments = settings.expandable_segments
    config.page_reuse = settings.page_reuse
    config.thread_cache = settings.thread_cache
    config.throw_on_oom = settings.throw_on_cudamalloc_oom
    config.backend = BACKEND_ASYNC if settings.backend == "cudaMallocAsync" else BACKEND_NATIVE
    config.release_lock = settings.release_lock_on_cudamalloc
    config.capture_reuse = settings.graph_capture_record_stream_reuse
    config.pinned_register = settings.pinned_use_cuda_host_register
    config.pinned_register_threads = settings.pinned_num_register_threads
    config.pinned_reserve_segment = <size_t>settings.pinned_reserve_segment_size_mb << 20
    config.pinned_max_cached = bytes_or_no_limit(settings.pinned_max_cached_size_mb)
    return 0


cdef int config_current(AllocatorConfig* config) except -1:
    return settings_to_struct(_settings.current(), config)


cdef int config_of_device(int device, AllocatorConfig* config) except -1:
    settings_to_struct(_settings.current(), config)
    config.memory_fraction = fraction_of(device)
    return 0

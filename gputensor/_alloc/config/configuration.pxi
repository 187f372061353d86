# Turns the settings (settings.py) into the C struct that code without the GIL reads. Megabytes
# become bytes here and "no limit" becomes SIZE_MAX; nowhere else.

cdef extern from "<stdint.h>" nogil:
    size_t SIZE_MAX


cdef int settings_to_struct(object settings, AllocatorConfig* config) except -1:
    cdef dict fields = {}
    for name, setting in settings.in_force().items():
        value = setting.value
        if name.endswith("_mb"):
            value = SIZE_MAX if value is None else value << 20
        fields[name.removesuffix("_mb")] = value
    fields["backend"] = BACKEND_ASYNC if settings.backend == "cudaMallocAsync" else BACKEND_NATIVE
    if settings.max_non_split_rounding_mb is None:
        fields["max_non_split_rounding"] = fields["large_segment_size"]
    config[0] = fields
    return 0


cdef int config_of_device(int device, AllocatorConfig* config) except -1:
    settings_to_struct(_settings.current(), config)
    config.per_process_memory_fraction = fraction_of(device)
    return 0

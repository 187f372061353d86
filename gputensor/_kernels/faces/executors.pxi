# The functions that execute the calls on each kind of device.

cdef struct Executors:
    int (*elementwise)(int op, int device, uint64_t stream, int compute_dtype, Operand* out,
                       int count, Operand* inputs) except -1 nogil
    int (*reduce)(int op, int device, uint64_t stream, int compute_dtype, Operand* out,
                  Operand* input, uint32_t axes_mask) except -1 nogil
    int (*gather)(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                  int count, Operand* indices) except -1 nogil
    int (*scatter)(int device, uint64_t stream, Operand* target, int first_axis, int count,
                   Operand* indices, Operand* values) except -1 nogil
    int (*check_unused)(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                        Operand* indices) except -1 nogil
    int (*arange)(int device, uint64_t stream, Operand* out, double start, double step,
                  int64_t integer_start, int64_t integer_step) except -1 nogil

cdef Executors[DEVICE_KINDS] executors

executors[DEVICE_CUDA] = Executors(
    elementwise=cuda_elementwise, reduce=cuda_reduce, gather=cuda_gather, scatter=cuda_scatter,
    check_unused=cuda_check_unused, arange=cuda_arange)
executors[DEVICE_HOST] = Executors(
    elementwise=host_elementwise, reduce=host_reduce, gather=host_gather, scatter=host_scatter,
    check_unused=host_check_unused, arange=host_arange)

# Conditions of a CUDA graph, which one of its kernels sets from a flag in memory (condition.cuh).

cdef extern from "gputensor/_kernels/cuda/condition.h" namespace "gputensor" nogil:
    cdef struct ConditionParameters:
        uint64_t flag
        uint64_t[3] conditions
        uint32_t[3] rules
        uint32_t padding
    enum:
        CONDITION_IS
        CONDITION_IS_NOT
        CONDITION_OFF

cdef KernelTable cuda_condition_kernels

#: The value that a condition gets: the flag, its opposite, or false.
IS, IS_NOT, OFF = CONDITION_IS, CONDITION_IS_NOT, CONDITION_OFF


def set_conditions(int device, uint64_t stream, uint64_t flag, tuple rules, uint64_t function=0):
    """Queue a kernel that sets conditions of the graph that a stream captures into.

    Parameters
    ----------
    flag : int
        The address of a bool.
    rules : tuple of (int, int)
        At most three conditions, each with `IS`, `IS_NOT` or `OFF`.
    function : int
        The handle of the kernel; 0: the kernel is compiled and loaded when needed.
    """
    cdef ConditionParameters parameters
    cdef Launch launch
    cdef Kernel given
    cdef void* kernel
    cdef Py_ssize_t i
    if function:
        given = Kernel.__new__(Kernel)
        given.program = programs.condition()
        given.functions[device + HOST_DEVICES] = function
        kernel = <void*>given
    else:
        kernel = kernel_of(&cuda_condition_kernels, 0, condition_program, NULL)
    memset(&parameters, 0, sizeof(parameters))
    parameters.flag = flag
    for i in range(len(rules)):
        parameters.conditions[i], parameters.rules[i] = rules[i]
    launch_init(&launch, device, stream, 1, 1, &parameters, sizeof(parameters))
    launch_kernel(kernel, &launch)


cdef object condition_program(const void* variant):
    return programs.condition()

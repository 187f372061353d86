"""One launch of a kernel that the program brought along (user_kernels.py)."""

cdef dict user_kernels = {}     # program -> Kernel, for the life of the process


def queue_kernel(program, tuple extents, uint32_t shared_nbytes, bytes parameters,
                 tuple writes, tuple reads, str title):
    """Queue a kernel on the current stream of its tensors, ordered like any operation.

    Parameters
    ----------
    program : Program
        Text with one kernel, which takes one struct.
    extents : tuple of int
        Three of the grid, three of a block.
    shared_nbytes : int
        Dynamic shared memory.
    parameters : bytes
        The struct.
    writes, reads : tuple of Tensor
        On one CUDA device, one at least. What the kernel may write is among `writes`.
    title : str
        The name in messages.
    """
    cdef Tensor first = <Tensor?> (writes + reads)[0]
    cdef int device = first.storage.device
    cdef uint64_t stream
    cdef Kernel kernel
    cdef Launch launch
    cdef object one
    for one in writes + reads:
        if (<Tensor?> one).storage.device != device:
            on_one_device(title, writes + reads, None)
    refuse_in_trace(first, f"{title}() in a program", "call it outside")
    if device_kind(device) == DEVICE_HOST:
        raise argument_error(ValueError, title, Described(f"tensors on {first.device}"),
                             "tensors on a CUDA device: its text is CUDA C++, which host devices "
                             "cannot run")
    stream = current_handle(device)
    kernel = user_kernels.get(program)
    if kernel is None:
        kernel = user_kernels.setdefault(program, Kernel(program))
    launch_init(&launch, device, stream, 1, 1, <const char*> parameters, len(parameters))
    for i in range(3):
        launch.grid[i], launch.block[i] = extents[i], extents[3 + i]
    launch.shared_nbytes = launch.most_shared_nbytes = shared_nbytes
    # Loaded before the section: compiling takes long.
    kernel_load(<void*> kernel, device, <int> shared_nbytes)
    work_begin()
    try:
        order_uses(list(writes), reads, stream)
        launch_kernel(<void*> kernel, &launch)
    finally:
        work_end(device)

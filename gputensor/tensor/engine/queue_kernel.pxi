"""One launch of a kernel of the user's program (user_kernels/)."""

cdef dict user_kernels = {}     # program -> Kernel, for the life of the process


def user_kernel(program):
    """Return the kernel of a user's program, always the same one."""
    found = user_kernels.get(program)
    return found if found is not None else user_kernels.setdefault(program, Kernel(program))


def queue_kernel(program, tuple extents, bytes parameters, tuple writes, tuple reads, str title):
    """Queue a kernel on the current stream of its tensors, ordered like any operation.

    Parameters
    ----------
    program : Program
        Source text with one kernel, which takes one struct.
    extents : tuple of int
        Three extents of the grid, three of a block, and the bytes of dynamic shared memory; then
        the most bytes of it that launches may have.
    parameters : bytes
        The bytes of the struct.
    writes, reads : tuple of Tensor
        At least one tensor, all on one CUDA device. `writes` has those that the kernel may write.
    title : str
        The function's name in messages.
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
                             "tensors on a CUDA device (host devices cannot run CUDA C++)")
    stream = current_handle(device)
    kernel = user_kernel(program)
    launch_init(&launch, device, stream, 1, 1, <const char*> parameters, len(parameters))
    for i in range(3):
        launch.grid[i], launch.block[i] = extents[i], extents[3 + i]
    launch.shared_nbytes, launch.most_shared_nbytes = extents[6], extents[7]
    # Loaded before the section because compiling takes long.
    kernel_allow(kernel, device, launch.most_shared_nbytes)
    work_begin()
    try:
        order_uses(list(writes), reads, stream)
        launch_kernel(<void*> kernel, &launch)
    finally:
        work_end(device)

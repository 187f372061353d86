"""The doors of calls that other libraries compute: engines that traces and programs contain.

On a GPU a door compiles and waits where CuPy does, so it is called outside sections and captures
(`Row.waits`). The caller orders its memory, as for every door.
"""


cdef object engine_door(object engine):
    cdef object row = CALLS[engine.name]
    cdef int first = len(row.attributes)

    def door(int device, uint64_t stream, tuple arguments):
        cdef tuple attributes = arguments[:first]
        cdef str title = engine.title(attributes)
        if device_kind(device) == DEVICE_HOST:
            host_call(device, stream, row, attributes + tuple([
                call_argument(device, &(<CallOperand?> one).c) for one in arguments[first:]]))
        elif device_facts(device).is_phantom:
            raise argument_error(ValueError, title, Described("a GPU that is not present"),
                                 "one on which CuPy runs: launch lists cannot contain the call")
        else:
            cupy_calls.run(engine, device, stream, attributes, arguments[first:])

    bind(engine.name, engine.run, door)


for engine in (solvers.matrix, solvers.matrix_pair, solvers.solve, solvers.lu_solve, solvers.svd,
               transforms.transform):
    engine_door(engine)

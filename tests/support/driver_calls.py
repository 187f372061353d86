"""Every entry of a device's driver table as a Python method, through ctypes.

``Calls(device).mem_alloc(1024)`` returns ``(status, ptr)``: the status, then the outputs in order.
Outputs are set to `UNTOUCHED` before each call, so that a test can see that a failed call did not
change them. ctypes releases the GIL during a call unless `keep_gil` is set.
"""

import ctypes as c

from gputensor._driver import registry

U64, SIZE, INT, U32, PTR, F32 = c.c_uint64, c.c_size_t, c.c_int, c.c_uint32, c.c_void_p, c.c_float
HOST_FUNCTION = c.CFUNCTYPE(None, c.c_void_p)
UNTOUCHED = 0x5A5A00  # exact in float32 too

# Entry -> argument types after self, in the order of struct Driver. A type in a list is an output.
SIGNATURES = {
    "mem_alloc": ([U64], SIZE),
    "mem_free": (U64,),
    "mem_info": ([SIZE], [SIZE]),
    "pinned_alloc": ([U64], SIZE),
    "pinned_free": (U64,),
    "pinned_register": (U64, SIZE),
    "pinned_unregister": (U64,),
    "async_alloc": ([U64], SIZE, U64),
    "async_free": (U64, U64),
    "async_trim": (SIZE,),
    "va_reserve": ([U64], SIZE, SIZE),
    "va_release": (U64, SIZE),
    "page_create": ([U64], SIZE),
    "page_destroy": (U64,),
    "page_map": (U64, SIZE, U64),
    "page_unmap": (U64, SIZE),
    "stream_create": ([U64], INT),
    "stream_destroy": (U64,),
    "stream_query": (U64,),
    "stream_synchronize": (U64,),
    "stream_wait_event": (U64, U64),
    "stream_priority_range": ([INT], [INT]),
    "event_create": ([U64], U32),
    "event_destroy": (U64,),
    "event_record": (U64, U64),
    "event_query": (U64,),
    "event_synchronize": (U64,),
    "event_elapsed": ([F32], U64, U64),
    "synchronize": (),
    "capture_begin": (U64, INT),
    "capture_end": (U64, [U64]),
    "capture_info": (U64, [INT], [U64]),
    "graph_instantiate": (U64, [U64]),
    "graph_launch": (U64, U64),
    "graph_destroy": (U64,),
    "graph_executable_destroy": (U64,),
    "copy_async": (U64, U64, SIZE, U64),
    "fill_async": (U64, U32, INT, SIZE, U64),
    "host_launch": (HOST_FUNCTION, PTR, U64),
    "kernel_launch": (U64, *[U32] * 7, U64, PTR, SIZE),
    "capture_nodes": (U64, PTR, INT, [INT]),
    "capture_follows": (U64, PTR, INT, PTR),
    "wait_for_peer": (U64, INT, U64),
    "copy_to_peer": (U64, INT, U64, SIZE, U64),
    "device_attribute": (INT, [INT]),
    "context_enter": ([U64],),
    "context_leave": (U64,),
    "module_load": (PTR, [U64]),
    "module_unload": (U64,),
    "module_function": (U64, PTR, [U64]),
    "function_allow_shared": (U64, INT),
    "function_occupancy": (U64, INT, SIZE, [INT]),
    "function_attribute": (U64, INT, [INT]),
    "function_attribute_set": (U64, INT, INT),
    "graph_nodes": (U64, PTR, INT, [INT]),
    "graph_node_get": (U64, U64, PTR, SIZE, [SIZE]),
    "graph_node_set": (U64, U64, PTR, SIZE),
    "graph_update": (U64, U64),
    "graph_dump": (U64, PTR),
    "event_record_external": (U64, U64),
    "stream_wait_external": (U64, U64),
    "event_export": (U64, PTR),
    "event_import": ([U64], PTR),
    "page_create_shared": ([U64], SIZE, [INT]),
    "page_import": ([U64], SIZE, INT),
    "call_apart": (HOST_FUNCTION, PTR),
    "condition_create": (U64, [U64]),
    "condition_add": (U64, U64, INT, [U64]),
    "capture_begin_body": (U64, U64, INT),
}
HEADER_WORDS = 4  # self, name, device, page_granularity


class Calls:
    """The entries of one device. `device` and `granularity` are its facts.

    With `keep_gil` a call holds the GIL, like Cython code that does not release it.
    """

    def __init__(self, device, keep_gil=False):
        self.device = device
        self.prototype = c.PYFUNCTYPE if keep_gil else c.CFUNCTYPE
        words = (c.c_void_p * (HEADER_WORDS + len(SIGNATURES))).from_address(
            registry.table_address(device)
        )
        self.granularity = words[3] or 0
        for i, (name, kinds) in enumerate(SIGNATURES.items()):
            setattr(self, name, self._entry(words[0], words[HEADER_WORDS + i], kinds))

    def _entry(self, filler, address, kinds):
        types = [c.POINTER(kind[0]) if isinstance(kind, list) else kind for kind in kinds]
        function = self.prototype(INT, PTR, *types)(address)

        def call(*arguments):
            given = iter(arguments)
            outputs = [kind[0](UNTOUCHED) for kind in kinds if isinstance(kind, list)]
            taken = iter(outputs)
            passed = [
                c.byref(next(taken)) if isinstance(kind, list) else next(given) for kind in kinds
            ]
            status = function(filler, *passed)
            return (status, *(output.value for output in outputs)) if outputs else status

        return call

    def make(self, name, *arguments):
        """Call an entry with one output that must succeed, and return the output."""
        status, output = getattr(self, name)(*arguments)
        assert status == 0, f"{name}{arguments} gave {status}"
        return output

    def upload(self, array, stream=0):
        """Return new device memory that holds `array`, complete on return."""
        ptr = self.make("mem_alloc", max(array.nbytes, 1))
        assert self.copy_async(ptr, array.ctypes.data, array.nbytes, stream) == 0
        assert self.stream_synchronize(stream) == 0
        return ptr

    def download(self, ptr, array, stream=0):
        """Fill `array` from the device after the work on `stream`, and return it."""
        assert self.copy_async(array.ctypes.data, ptr, array.nbytes, stream) == 0
        assert self.stream_synchronize(stream) == 0
        return array


def seen_once(attempt, tries=50):
    """Whether an observation of free memory holds in one of several tries.

    Other processes allocate and free memory of the same GPU meanwhile. An effect that an entry
    lacks is never seen; one that it has is seen as soon as they pause.
    """
    return any(attempt() for _ in range(tries))

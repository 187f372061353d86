"""Facts and settings of a compiled kernel, under CuPy's names."""

import operator
from collections.abc import Callable

from gputensor._kernels.launch import function_attribute, set_function_attribute
from gputensor.errors import argument_error
from gputensor.streams import Device
from gputensor.tensor.engine import user_kernel
from gputensor.tensor.user_kernels.texts import UserProgram

__all__ = ["DECLARED", "KernelAttributes"]

_SHARED, _CARVEOUT = 8, 9  # settings, by CUDA's numbers (CUfunction_attribute)
_NAMES = (
    "max_threads_per_block shared_size_bytes const_size_bytes local_size_bytes num_regs "
    "ptx_version binary_version cache_mode_ca max_dynamic_shared_size_bytes "
    "preferred_shared_memory_carveout"
).split()
#: A kernel with the parameters that the user's function declares.
DECLARED = """
template <class... A> struct GputensorFields {{}};
template <class A, class... B> struct GputensorFields<A, B...> {{
    A first;
    GputensorFields<B...> rest;
}};
template <class... A> __device__ GputensorFields<A...> gputensor_fields(void (*)(A...));
template <class... B> __device__ void gputensor_call(const GputensorFields<>&, const B&... b) {{
    {name}(b...);
}}
template <class A, class... C, class... B>
__device__ void gputensor_call(const GputensorFields<A, C...>& p, const B&... b) {{
    gputensor_call(p.rest, b..., p.first);
}}
typedef decltype(gputensor_fields(&{name})) Parameters;
extern "C" __attribute__((global)){bounds} void kernel(const Parameters p) {{
    gputensor_call(p);
}}
"""


def _current():
    """Return the number of the current device, which must be a CUDA device."""
    number = Device().number
    if number < 0:
        raise argument_error(
            ValueError, "RawKernel: current device", Device(), "a CUDA device, which has attributes"
        )
    return number


def _fact(number, text):
    return property(lambda self: self._attribute(number), doc=text)


def _setting(number, text):
    def put(self, value):
        self._set(_NAMES[number], number, value)

    return property(lambda self: self._attribute(number), put, doc=text)


class KernelAttributes:
    """The attributes of `RawKernel`: those of its code on the current device.

    A subclass has `_known_program`, which returns the program that was launched last.
    """

    _known_program: Callable[[], UserProgram]

    # In the order of CUDA's numbers.
    max_threads_per_block = _fact(0, "The most threads of a block.")
    shared_size_bytes = _fact(1, "Bytes of static shared memory of a block.")
    const_size_bytes = _fact(2, "Bytes of constant memory.")
    local_size_bytes = _fact(3, "Bytes of local memory of a thread, such as spilled registers.")
    num_regs = _fact(4, "Registers of a thread.")
    ptx_version = _fact(5, "The PTX version of the code: 10 * major + minor.")
    binary_version = _fact(6, "The architecture of the code: 10 * major + minor.")
    cache_mode_ca = _fact(7, "Whether it was compiled to cache global loads in L1.")
    max_dynamic_shared_size_bytes = _setting(
        _SHARED,
        "Bytes of dynamic shared memory that launches may have; `shared_mem` may exceed it.",
    )
    preferred_shared_memory_carveout = _setting(
        _CARVEOUT,
        "The preferred share of shared memory in L1, in percent; -1: the driver's choice.",
    )

    def __init__(self):
        self._settings = {}  # number -> value
        self._settled = set()  # kernels that have the carveout, with their devices

    @property
    def attributes(self):
        """All attributes by name, on the current device."""
        return {name: getattr(self, name) for name in _NAMES}

    def _attribute(self, number):
        kept = self._settings.get(number)
        if kept is not None:
            return kept
        return function_attribute(user_kernel(self._known_program()), _current(), number)

    def _set(self, name, number, value):
        try:
            value = operator.index(value)
        except TypeError:
            raise argument_error(TypeError, f"RawKernel: {name}", value, "an int") from None
        kernel, device = user_kernel(self._known_program()), _current()
        set_function_attribute(kernel, device, number, value)
        self._settings[number] = value
        if number == _CARVEOUT:
            self._settled = {(kernel, device)}

    def _most_shared(self, shared):
        return max(shared, self._settings.get(_SHARED, 0))

    def _settle(self, program, device):
        """Apply the settings to a program that is going to be launched on a device."""
        if _CARVEOUT not in self._settings:
            return
        key = user_kernel(program), device
        if key not in self._settled:
            set_function_attribute(*key, _CARVEOUT, self._settings[_CARVEOUT])
            self._settled.add(key)

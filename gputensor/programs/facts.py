"""Facts: the properties of a device that a traced function may query.

A function is traced with the facts of the device that it is for. It runs only on devices with the
same facts, which is checked when a program is opened on a device.
"""

from __future__ import annotations

from gputensor._driver.registry import device_facts_of, device_info
from gputensor.errors import Described, ProgramError, argument_error

__all__ = ["FACTS", "answer", "check"]


def _capability(device):
    if device < 0:
        raise argument_error(ValueError, "device", Described("a host device"), "a CUDA device")
    return divmod(device_facts_of(device)[0], 10)


#: Name of a public function -> its result for the number of a device.
FACTS = {
    "is_available": lambda device: device >= 0,
    "device_count": lambda device: int(device >= 0),
    "current_device": lambda device: 0 if device >= 0 else -1,
    "get_device_capability": _capability,
    "get_device_name": lambda device: device_info(device)["name"] if device >= 0 else "host",
    "is_bf16_supported": lambda device: device < 0 or _capability(device) >= (8, 0),
    "is_tf32_supported": lambda device: device >= 0 and _capability(device) >= (8, 0),
}


def answer(name, device):
    """Return a fact of a device, given by its number.

    >>> answer("is_available", -1)
    False
    """
    return FACTS[name](device)


def check(facts, device, function):
    """Raise `ProgramError` unless a device has the facts that a function was traced with.

    Parameters
    ----------
    facts : dict
        Maps names to values, which may come from JSON.
    device : int
        The number of the device.
    function : str
        The name of the function, for the message.
    """
    for name, wanted in facts.items():
        if name not in FACTS:
            known = ", ".join(FACTS)
            rule = f"names from {known}"
            raise argument_error(ProgramError, f"{function}.facts", Described(name[:80]), rule)
        wanted = tuple(wanted) if isinstance(wanted, list) else wanted
        try:
            found = answer(name, device)
        except ValueError:
            found = Described("no answer")
        if found != wanted:
            rule = f"{wanted!r}, with which {function!r} was traced (compile it for this device)"
            raise argument_error(ProgramError, name, found, rule)

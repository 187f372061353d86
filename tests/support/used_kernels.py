"""Which kernels a test uses, whether or not an earlier test of the process made them."""

from gputensor._kernels.launch import forget_kernels, loaded_programs

# Each program that a recorded function returned -> the name of the function and its arguments.
_calls = {}


class UsedKernels:
    """Records functions of a module that return programs, and what the device loads of them."""

    def __init__(self, monkeypatch, module, names):
        self.clear()
        self.record(monkeypatch, module, names)

    def record(self, monkeypatch, module, names):
        """Record functions of another module as well."""
        for name in names:
            monkeypatch.setattr(module, name, self._recorded(name, getattr(module, name)))

    def _recorded(self, name, source):
        def program(*given, **named):
            made = source(*given, **named)
            _calls[made] = (name, *given, *named.items())
            return made

        return program

    def clear(self):
        """Have the device load each kernel again at its next launch."""
        forget_kernels(0)

    def __call__(self):
        """Return the name and the arguments of the call for each kernel loaded, by name."""
        used = [_calls[program] for program in loaded_programs(0) if program in _calls]
        return sorted(used, key=lambda call: call[0])

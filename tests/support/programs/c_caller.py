"""Calls the C functions of programs by ctypes, as a C program would."""

import ctypes
from pathlib import Path

import numpy as np

import gputensor as gt
from gputensor.programs import c_entry


class CTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


#: The two libraries: the extension module, and the library for processes without Python.
LIBRARIES = {
    "module": c_entry.library_path,
    "alone": lambda: str(Path(gt.__file__).parent / "programs/c_library/libgputensor_program.so"),
}


def library(name="module"):
    """Return one of the libraries, with the result types of its functions set."""
    found = ctypes.CDLL(LIBRARIES[name]())
    found.gputensor_program_describe.restype = ctypes.c_char_p
    found.gputensor_program_last_error.restype = ctypes.c_char_p
    return found


def described(tensor):
    """Return a CTensor of a GPU's tensor, which the caller keeps alive."""
    code, bits = c_entry.DL_TYPES[tensor.dtype.name]
    shape = (ctypes.c_int64 * max(1, tensor.ndim))(*tensor.shape)
    return CTensor(tensor.data_ptr(), 2, 0, tensor.ndim, code, bits, 1, shape, None, 0)


class CProgram:
    """An open program; a failure raises RuntimeError with its status and text."""

    def __init__(self, path, device=0, name="module"):
        self.library = library(name)
        self.handle = ctypes.c_void_p()
        self.check(
            self.library.gputensor_program_open(
                ctypes.byref(self.handle), str(path).encode(), None, device
            )
        )

    def check(self, status):
        if status:
            text = self.library.gputensor_program_last_error().decode()
            raise RuntimeError(f"{status}: {text}")

    def describe(self):
        return self.library.gputensor_program_describe(self.handle).decode()

    def session(self):
        return CSession(self)

    def close(self):
        self.check(self.library.gputensor_program_close(self.handle))


class CSession:
    """An open session."""

    def __init__(self, program):
        self.program = program
        self.handle = ctypes.c_void_p()
        program.check(
            program.library.gputensor_session_open(ctypes.byref(self.handle), program.handle)
        )

    def run(self, name, inputs, outputs, stream=0):
        """Run a function on tensors of the GPU."""
        given = (CTensor * max(1, len(inputs)))(*map(described, inputs))
        made = (CTensor * max(1, len(outputs)))(*map(described, outputs))
        self.program.check(
            self.program.library.gputensor_session_run(
                self.handle, name.encode(), len(inputs), given, len(outputs), made,
                ctypes.c_void_p(stream),
            )
        )  # fmt: skip

    def close(self):
        self.program.check(self.program.library.gputensor_session_close(self.handle))


def poisoned(like):
    """Return a new GPU tensor with an array's shape and dtype, filled with 77."""
    made = gt.empty(like.shape, dtype=like.dtype.name, device="cuda")
    made[...] = gt.asarray(np.full(like.shape, 77).astype(like.dtype), device="cuda")
    return made

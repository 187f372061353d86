"""Device code of programs: from the disk cache, or compiled by NVRTC.

An image is a cubin for ``sm_90``, or PTX that ends with a zero byte for ``compute_90``.
"""

from gputensor._kernels.launch import disk_cache, nvrtc
from gputensor.errors import DeviceError

_BEFORE_13 = {"sm_110": "sm_101", "compute_110": "compute_101"}  # names before NVRTC 13

__all__ = ["image_of", "starts_early"]


def starts_early(image):
    """Whether the kernels of an image wait by themselves for the work before them.

    They have the symbol of ``cuda/chain/early.cuh``, which a cubin and PTX name as text. Asking the
    driver for it would be a failed call for all other kernels.

    >>> starts_early(b"gputensor_starts_early")
    True
    """
    return b"gputensor_starts_early" in image


def image_of(program, target):
    """Return the image of a `Program` for a target, as bytes.

    Parameters
    ----------
    program : Program
    target : str
        ``"sm_90"`` or ``"compute_90"``. It needs no GPU.

    Raises
    ------
    CompileError, DeviceError
        As raised by `nvrtc.compile_source`.
    """
    source, options = program.text(), program.options
    if nvrtc.version() < (13, 0):
        target = _BEFORE_13.get(target, target)
    name = disk_cache.name_of(source, options, target, nvrtc.version())
    image = disk_cache.load(name)
    if image is None:
        try:
            image = nvrtc.compile_source(source, target, options)
        except nvrtc.CompileError as error:
            if "gpu-architecture" not in str(error):
                raise
            version = ".".join(map(str, nvrtc.version()))
            raise DeviceError(f"NVRTC {version} does not compile for {target}") from None
        disk_cache.store(name, image)
    return image

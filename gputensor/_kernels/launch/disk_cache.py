"""Compiled kernels on disk, so that a second process need not compile them.

There is one file for each kernel, named after a hash of everything that determines its content:
source, options, architecture, NVRTC version. A file is written under another name and renamed, so
readers never see an incomplete one. It begins with a checksum; a file with a wrong one is ignored
and written again. A cache that cannot be written costs time but causes no error.

``GPUTENSOR_KERNEL_CACHE`` names another folder, or turns the cache off when it is ``0``; the
default is ``gputensor`` below ``XDG_CACHE_HOME`` (``~/.cache``).
"""

import os

__all__ = ["folder", "load", "name_of", "store"]

_SUFFIX = ".kernel"
_DIGEST_NBYTES = 32


def folder():
    """Return the folder of the cache, or None when it is turned off."""
    named = os.environ.get("GPUTENSOR_KERNEL_CACHE", "")
    if named:
        return None if named == "0" else named
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "gputensor")


def _sha256(content=b""):
    import hashlib  # with OpenSSL, 4 ms of an import

    return hashlib.sha256(content)


def name_of(*facts):
    """Return the file name of a kernel that `facts` determine.

    >>> name_of("source", "sm_90") == name_of("source", "sm_90")
    True
    >>> name_of("a", "b") == name_of("ab", "")
    False
    """
    digest = _sha256()
    for fact in facts:
        text = str(fact).encode()
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return digest.hexdigest()[:40] + _SUFFIX


def load(name):
    """Return the image stored under `name`, or None."""
    where = folder()
    if where is None:
        return None
    try:
        with open(os.path.join(where, name), "rb") as file:
            content = file.read()
    except OSError:
        return None
    digest, image = content[:_DIGEST_NBYTES], content[_DIGEST_NBYTES:]
    return image if image and _sha256(image).digest() == digest else None


def store(name, image):
    """Write `image` under `name`; do nothing if the folder cannot be written."""
    where = folder()
    if where is None:
        return
    try:
        import tempfile

        os.makedirs(where, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=where, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_sha256(image).digest() + image)
            os.replace(aside, os.path.join(where, name))
        except BaseException:
            os.unlink(aside)
            raise
    except OSError:
        return

"""Files that appear whole or not at all: written beside their place, then moved there.

What a name leads to is what is written: the file behind a symbolic link, and a device or a pipe,
which cannot be replaced, as it is (a `/dev/null` that is replaced is one no more).
"""

import os
import stat

__all__ = ["write_whole"]


def write_whole(path, write):
    """Write a file so that `path` holds either what it held before or the whole new file.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        The file.
    write : callable
        ``write(file)`` writes the content into an open binary file.

    Raises
    ------
    OSError
        It names `path`.
    """
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    try:
        if is_replaceable(target):
            _write_beside(target, write)
        else:
            with open(target, "wb") as file:
                write(file)
    except OSError as error:
        # It may name the file beside, which its caller knows nothing of.
        raise OSError(error.errno, error.strerror, path) from None


def is_replaceable(path):
    """Return whether there is a regular file at `path`, or nothing yet."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


def _write_beside(path, write):
    import tempfile  # 5 ms of an import

    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".gputensor-")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, 0o666 & ~umask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise

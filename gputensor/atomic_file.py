"""Files that appear whole or not at all: written under a temporary name, then renamed.

A symbolic link is followed, and the file that it points to is replaced. A device or a pipe is
opened and written to, because a `/dev/null` that was replaced would no longer be one.
"""

import os
import stat

__all__ = ["write_whole"]


def write_whole(path, write):
    """Write a file so that `path` holds either its old content or the whole new file.

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
        # The error may name the temporary file, which the caller does not know.
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

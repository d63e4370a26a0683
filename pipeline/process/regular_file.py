"""Files that a user names: names that none can have, and opening one without waiting for a pipe."""

import errno
import os
import stat
from pathlib import Path
from typing import IO


def open_regular(path: Path) -> IO[bytes]:
    """Open a file of the user's to read it. Raises OSError, also for a pipe or a device.

    A pipe without a writer would be waited for forever. One with a writer gives its content once, but a night reads
    these files again.
    """
    # To open a pipe would wait, too.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor, not a path


def unusable_name(path: Path) -> str:
    """Return why no file or folder can have this path; empty if one can."""
    try:
        # DuckDB and Parquet take UTF-8 alone, and a path in Python may hold other bytes.
        str(path).encode()
        path.stat()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    except OSError as error:
        return "its name is too long" if error.errno == errno.ENAMETOOLONG else ""
    except ValueError:
        return "its name contains a NUL character"
    return ""

"""What the C library does with memory that is free again."""

from __future__ import annotations

import os

# As glibc's malloc.h names them.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = 2**30
_LARGE = 2**26, 2**25  # The second is all that some versions take.
_SET_BY_USER = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


def keep_freed_memory() -> bool:
    """Whether the process from now on keeps freed memory of up to a gigabyte for itself.

    By itself glibc gives the memory of every large tensor back as it is freed, and takes it anew
    for the next one: over text that is a hundred thousand page faults a batch, a tenth of the time
    or more. It is a setting of the whole process, so a command makes it, and no function for users
    does. Where there is no glibc, or a user has set the like in the environment, nothing changes.
    """
    if any(name in os.environ for name in _SET_BY_USER):
        return False
    if "glibc.malloc." in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):  # Windows, macOS, musl.
        return False
    import ctypes

    mallopt = ctypes.CDLL(None).mallopt
    # Either ends the other's own growth: to keep more of less would be worse than nothing.
    return any(mallopt(_M_MMAP_THRESHOLD, size) for size in _LARGE) and bool(
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
    )

"""How this process takes memory from the system.

Every visitor's texts are arrays of a few hundred kilobytes that come and go in many threads. The C
library of Linux (glibc) would give each thread a heap of its own and never return what lies between
two arrays that are still in use: measured with a class of a hundred, a server grew by two megabytes
an update. With one heap, and larger arrays mapped one by one, it stays as large as what it keeps.
"""

from __future__ import annotations

import ctypes

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # malloc.h
LARGE = 4 * 1024 * 1024  # bytes


def stay_small() -> bool:
    """Before threads start. False where the C library is another one, which is left as it is."""
    try:
        libc = ctypes.CDLL("libc.so.6")  # glibc's name; found by no other library
    except OSError:
        return False
    return bool(libc.mallopt(M_ARENA_MAX, 1) and libc.mallopt(M_MMAP_THRESHOLD, LARGE))

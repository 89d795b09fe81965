"""Memory that a class of visitors leaves behind."""

import ctypes
import platform
import subprocess
import sys

import pytest

from app import memory

# Many threads make arrays; every eighth stays a while, as in a cache. Prints resident megabytes.
GROWTH = """
import os, threading, numpy as np
from app.memory import stay_small
{first}
kept = {{}}

def work(thread):
    for i in range(400):
        arrays = [np.ones(2_000 + 997 * ((i + j) % 60), np.float32) for j in range(40)]
        kept[thread, i % 8] = arrays[i % 40]

threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
pages = int(open("/proc/self/statm").read().split()[1])
print(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
"""


def grown(first: str) -> float:
    command = [sys.executable, "-c", GROWTH.format(first=first)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_one_heap_holds_what_many_threads_leave():
    assert grown("assert stay_small()") < grown("")


def test_another_c_library_is_left_alone(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert not memory.stay_small()

"""Computing in turns, so that a class waits less.

One answer is thousands of short operations, and after each a thread waits for Python's lock: eight
visitors' threads at once take two and a half times the processor time of one after the other
(``tests/load_class.py``). So what computes takes a turn, and threads that wait for theirs sleep.
"""

from __future__ import annotations

import os
import threading

N_TURNS = max(1, (os.cpu_count() or 1) // 2)  # the other half serves pages, and slow work apart

turn = threading.BoundedSemaphore(N_TURNS)

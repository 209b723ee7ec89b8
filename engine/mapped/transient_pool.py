"""Buffers that appends go to before they are handed to the page cache (spec 6.2; Java: TransientStorePool).

A buffer is as long as a file of the log. What is in it is lost with the process: that is the bargain of this pool.
"""

from __future__ import annotations

import mmap
import threading

from engine.mapped.memory_lock import lock_memory


class TransientStorePool:
    """``count`` buffers of ``size`` bytes each, locked in memory where ``lock`` asks for it and the rights are there.

    The memory is taken from the system when it is first written to, so a pool of large buffers is no cost by itself.
    """

    def __init__(self, count: int, size: int, *, lock: bool = False) -> None:
        self.count = count
        self.size = size
        self._lock = threading.Lock()
        self._free = [BorrowedBuffer(self, mmap.mmap(-1, size)) for _ in range(count)]
        if lock:
            for buffer in self._free:
                lock_memory(buffer.view, "a buffer of the transient store pool")

    @property
    def available(self) -> int:
        """Buffers that may be borrowed now."""
        return len(self._free)

    def borrow(self) -> BorrowedBuffer | None:
        """A buffer for one file, None where all are lent. Its old content is still in it: it is written before read."""
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, buffer: BorrowedBuffer) -> None:
        """Take back a buffer; a second time does nothing."""
        with self._lock:
            if buffer not in self._free:
                self._free.append(buffer)


class BorrowedBuffer:
    """A buffer of the pool; ``view`` is all of it, writable."""

    __slots__ = ("_pool", "view")

    def __init__(self, pool: TransientStorePool, memory: mmap.mmap) -> None:
        self._pool = pool
        self.view = memoryview(memory)

    def give_back(self) -> None:
        """See :meth:`TransientStorePool.give_back`."""
        self._pool.give_back(self)

"""Buffers that appends go to before they are handed to the page cache (docs/formats/files.md#allocation; Java:
TransientStorePool).

A buffer is as long as a file of the log. Its content is lost with the process: that is the price of this pool.
"""

from __future__ import annotations

import mmap
import threading

from engine.mapped.memory import lock_memory


class TransientStorePool:
    """``count`` buffers of ``size`` bytes each, locked in memory with ``lock`` if the rights allow it.

    The system provides the memory at the first write, so a pool of large buffers costs nothing by itself.

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
        """The number of buffers that may be borrowed now."""
        return len(self._free)

    def borrow(self) -> BorrowedBuffer | None:
        """Return a buffer for one file, None if all are lent. It has its old content: write it before reading."""
        with self._lock:
            return self._free.pop() if self._free else None

    def give_back(self, buffer: BorrowedBuffer) -> None:
        """Take back a buffer; a second call does nothing."""
        with self._lock:
            if buffer not in self._free:
                self._free.append(buffer)


class BorrowedBuffer:
    """A buffer of the pool; ``view`` is the complete buffer, writable."""

    __slots__ = ("_pool", "view")

    def __init__(self, pool: TransientStorePool, memory: mmap.mmap) -> None:
        self._pool = pool
        self.view = memoryview(memory)

    def give_back(self) -> None:
        """See :meth:`TransientStorePool.give_back`."""
        self._pool.give_back(self)

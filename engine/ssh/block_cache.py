"""Blocks of files of another machine: fetched, compared, asked for ahead, and forgotten.

What was fetched may be old. Two rules decide for how long a block answers:

- A process holds the store there: it writes through maps, which change files without a new time. A block answers for
  :data:`MAX_AGE_S`, and each range of it only once. Then its hash is compared with the file, and it is fetched again if
  that differs. So a reader that reads twice to see whether something changed sees the file both times.
- Nobody holds it: a block answers as long as the listings show the same length and time of its file.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from engine.ssh.connection import Answer, SshConnection
from engine.ssh.file_server import BLOCK_BYTES, block_hash
from engine.ssh.listings import MAX_AGE_S, RemoteListings
from engine.ssh.remote_facts import Facts, Identity, fitting_answer, identity_of

MAX_AHEAD_AGE_S = 5.0
"""Seconds for which a block answers that was asked for ahead of its reader."""
CACHE_BYTES = 128 << 20
"""Bytes of blocks that stay in memory."""
MAX_RUN_BLOCKS = 16
"""Blocks that are asked for in one request."""
MAX_AHEAD_BLOCKS = 128
"""Blocks that are asked for ahead of a reader that goes through a file: 8 MiB."""
MAX_RANGES = 256
"""Ranges that are remembered of a block; then it is compared again."""


@dataclass(slots=True)
class RemoteFile:
    """A file of the other machine, and how its reader goes through it."""

    path: str
    facts: Facts
    next_block: int = 0
    """The block behind the last one that was read: a reader that continues there gets more ahead each time."""
    blocks_ahead: int = 0

    @property
    def identity(self) -> Identity:
        """Device and inode there."""
        return identity_of(self.facts)

    @property
    def size(self) -> int:
        """Length in bytes when it was opened."""
        return int(self.facts[6])


@dataclass(slots=True)
class _Block:
    """A block of a file. While it is fetched, ``future`` is set, and it is number ``index`` of that answer."""

    data: bytes = b""
    asked_at: float = 0.0
    is_fetched: bool = False
    answered_ranges: set[tuple[int, int]] = field(default_factory=set)
    request: dict[str, Any] | None = None
    future: Future[Answer] | None = None
    index: int = 0


class BlockCache:
    """The blocks of a machine's files. ``prefix`` before a path there is the path that the user sees."""

    def __init__(
        self, connection: SshConnection, listings: RemoteListings, prefix: str, clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._listings = listings
        self._prefix = prefix
        self._clock = clock
        self._lock = threading.RLock()
        self._blocks: OrderedDict[tuple[Identity, int], _Block] = OrderedDict()
        self._cached_bytes = 0

    def clear(self) -> None:
        """Forget all blocks."""
        with self._lock:
            self._blocks.clear()
            self._cached_bytes = 0

    def put_first(self, identity: Identity, data: bytes, asked_at: float) -> None:
        """Keep the first block of a file, which was asked for at ``asked_at`` of the clock."""
        with self._lock:
            self._drop((identity, 0))
            self._blocks[identity, 0] = _Block(data, asked_at, is_fetched=True)
            self._cached_bytes += len(data)

    def ask_for_first(self, file: RemoteFile) -> None:
        """Ask for the first block of a file if it is not here, without waiting."""
        with self._lock:
            if (file.identity, 0) not in self._blocks and file.size:
                block = self._blocks[file.identity, 0] = _Block()
                self._send(file, [(0, block)])

    def read(self, file: RemoteFile, size: int, position: int) -> bytes:
        """Return at most ``size`` bytes from ``position`` on. Raises ``OSError``."""
        if size <= 0:
            return b""
        with contextlib.suppress(OSError):  # the read that follows reports what is wrong
            self._listings.refresh()
        first, last = position // BLOCK_BYTES, (position + size - 1) // BLOCK_BYTES
        pieces = []
        for run_first in range(first, last + 1, MAX_AHEAD_BLOCKS):  # a large read does not push out its own blocks
            run_last = min(run_first + MAX_AHEAD_BLOCKS - 1, last)
            start, end = max(position, run_first * BLOCK_BYTES), min(position + size, (run_last + 1) * BLOCK_BYTES)
            blocks = self._ask_for(file, run_first, run_last, start, end)
            for number, block in enumerate(blocks, run_first):
                data = self._wait(file, number, block)
                block_start = number * BLOCK_BYTES
                pieces.append(data[max(0, start - block_start) : max(0, end - block_start)])
                if len(data) < BLOCK_BYTES:  # the file ends here
                    return b"".join(pieces)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _ask_for(self, file: RemoteFile, first: int, last: int, start: int, end: int) -> list[_Block]:
        """Return the blocks ``first`` to ``last`` for a read of the bytes ``start`` to ``end``. Sends requests for
        those that are missing or must be compared, and for some behind them if the reader goes through the file.
        """
        now = self._clock()
        with self._lock:
            self._count_ahead(file, first, last)
            missing: list[tuple[int, _Block]] = []
            blocks = []
            for number in range(first, last + 1):
                block = self._blocks.get((file.identity, number))
                span = (max(start, number * BLOCK_BYTES), min(end, (number + 1) * BLOCK_BYTES))
                if block is None:
                    block = self._blocks[file.identity, number] = _Block()
                    missing.append((number, block))
                elif not self._may_answer(file.identity, block, span, now):
                    missing.append((number, block))
                    block.answered_ranges.clear()
                if not self._listings.is_quiet:
                    block.answered_ranges.add(span)
                self._blocks.move_to_end((file.identity, number))
                blocks.append(block)
            file_end = -(-file.size // BLOCK_BYTES)
            for number in range(last + 1, min(last + 1 + file.blocks_ahead, file_end)):
                if (file.identity, number) not in self._blocks:
                    block = self._blocks[file.identity, number] = _Block()
                    missing.append((number, block))
            self._send(file, missing)
        return blocks

    @staticmethod
    def _count_ahead(file: RemoteFile, first: int, last: int) -> None:
        """Decide how many blocks behind ``last`` are asked for: twice as many each time that the reader goes on."""
        if not first or first not in {file.next_block, file.next_block - 1}:
            file.blocks_ahead = 0
        elif last >= file.next_block:
            file.blocks_ahead = min(MAX_AHEAD_BLOCKS, max(2, 2 * file.blocks_ahead))
        file.next_block = last + 1

    def _may_answer(self, identity: Identity, block: _Block, span: tuple[int, int], now: float) -> bool:
        """Return True if what was asked for answers a question about ``span``, now or once it is here."""
        since = self._listings.unchanged_since(identity)
        if since is not None:
            return block.asked_at >= since
        max_age = MAX_AGE_S if block.answered_ranges else MAX_AHEAD_AGE_S
        is_new_range = span not in block.answered_ranges and len(block.answered_ranges) < MAX_RANGES
        return now - block.asked_at <= max_age and is_new_range

    def _send(self, file: RemoteFile, missing: list[tuple[int, _Block]]) -> None:
        """Ask for blocks, each run of neighbours in one request."""
        asked_at, start = self._clock(), 0
        for index in range(1, len(missing) + 1):
            is_run = index < len(missing) and missing[index][0] == missing[index - 1][0] + 1
            if is_run and index - start < MAX_RUN_BLOCKS:
                continue
            run = missing[start:index]
            request = {
                "request": "read",
                "path": file.path,
                "identity": file.identity,
                "position": run[0][0] * BLOCK_BYTES,
                "size": len(run) * BLOCK_BYTES,
                "known": [_hash(block.data) if block.is_fetched else None for _, block in run],
            }
            future = self._connection.send(request)
            for index_in_answer, (_, block) in enumerate(run):
                block.request, block.future = request, future
                block.index, block.asked_at = index_in_answer, asked_at
            start = index

    def _wait(self, file: RemoteFile, number: int, block: _Block) -> bytes:
        """Return the data of a block, once its answer is here. Raises ``OSError``."""
        with self._lock:
            request, future = block.request, block.future
            if future is None or request is None:
                return block.data
        try:
            answer, data = self._connection.request_for(f"{self._prefix}{file.path}", request, future)
        except OSError:
            with self._lock:
                if block.future is future:
                    self._drop((file.identity, number))
            raise
        with fitting_answer():
            lengths = answer["lengths"]  # −1 for a block with the known hash
            length = lengths[block.index]
            if not -1 <= length <= BLOCK_BYTES or sum(item for item in lengths if item > 0) != len(data):
                raise ValueError
        with self._lock:
            if block.future is future:
                if length >= 0:
                    start = sum(item for item in lengths[: block.index] if item > 0)
                    self._cached_bytes += length - len(block.data)
                    block.data = data[start : start + length]
                block.request = block.future = None
                block.is_fetched = True
                self._make_room()
            return block.data

    def _drop(self, key: tuple[Identity, int]) -> None:
        block = self._blocks.pop(key, None)
        if block is not None:
            self._cached_bytes -= len(block.data)

    def _make_room(self) -> None:
        """Forget the blocks that were used longest ago."""
        while self._cached_bytes > CACHE_BYTES:
            self._drop(next(iter(self._blocks)))


def _hash(data: bytes) -> str:
    return str(block_hash(data))  # type: ignore[no-untyped-call]

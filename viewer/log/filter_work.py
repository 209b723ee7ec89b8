"""Work of the worker process: a filter looks for its units in the log. No Qt.

Called as ``jobs.in_worker(title, "viewer.log.filter_work:scan", …)``. Hits are sent as they are found. A limit cuts
the rest off.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.codec.unit_scan import Stop

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.config import MessageStoreConfig
    from engine.inspection.log_reader import LogReader
    from viewer.runtime.worker import WorkerControl


FIRST_HITS = 0.03
"""Seconds after which the first hits are sent; later ones go every :data:`LATER_HITS` seconds."""
LATER_HITS = 0.15


@dataclass(frozen=True, slots=True)
class Hits:
    """Offsets of units that match, in order, and how far the log has been looked at (absolute offset)."""

    offsets: tuple[int, ...]
    looked: int


@dataclass(frozen=True, slots=True)
class ScanEnd:
    """End of a scan: ``looked`` is where to continue; ``complete`` if nothing is left to search."""

    looked: int
    units: int
    complete: bool


def scan(
    control: WorkerControl,
    path: Path,
    config: MessageStoreConfig | None,
    text: str,
    now_ms: int,
    start: int,
    end: int,
    max_hits: int,
) -> ScanEnd:
    """Search units that match ``text`` from ``start`` on; stops after ``max_hits`` hits, or when cancelled.

    ``end`` is the end of the log as the window knows it, for the bar only. Emits :class:`Hits`.
    """
    from engine.codec.columns import UNIT, UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection import open_store
    from engine.inspection.block_scan import scan_log
    from engine.query import parse

    unit_filter = parse(text, now_ms=now_ms)
    topics = TopicTable()
    sender = _Sender(control)
    units, hit_count, looked = 0, 0, start
    with open_store(path, config) as store:
        crc = "crc" in unit_filter.fields
        matcher = unit_filter.on_blocks(topics, store.log.file_name, crc=crc)
        for block in scan_log(store.log, start, crc=crc, topics=topics):
            if isinstance(block, Stop):
                sender.flush(max(looked, block.offset))
                return ScanEnd(max(looked, block.offset), units, True)
            if not isinstance(block, UnitColumns):
                looked = block.offset + block.size
                continue
            hits = block.offset[matcher.rows(block)].tolist()
            units += int((block["kind"] == UNIT).sum())
            looked = int(block.offset[block.count - 1]) + int(block.size[block.count - 1])
            if hit_count + len(hits) >= max_hits:
                hits = hits[: max_hits - hit_count]
                looked = _behind(block, hits[-1]) if hits else looked
                sender.add(hits)
                sender.flush(looked)
                return ScanEnd(looked, units, False)
            hit_count += len(hits)
            sender.add(hits)
            sender.send_now_and_then(looked)
            control.report(looked - start, max(end - start, 1))
            if control.cancelled:
                sender.flush(looked)
                return ScanEnd(looked, units, False)
    return ScanEnd(looked, units, True)


def first_look(log: LogReader, text: str, now_ms: int, start: int, stop: int) -> tuple[Hits, bool]:
    """Search from ``start`` to ``stop``, unit by unit without numba: for the first hits, before the worker is ready.

    The second value says that the log ended before ``stop``.
    """
    from engine.codec.unit_scan import Stop
    from engine.query import parse

    unit_filter = parse(text, now_ms=now_ms)
    test = unit_filter.compile(log.file_name)
    offsets: list[int] = []
    looked, complete = start, False
    for item in log.walk(start, stop, crc="crc" in unit_filter.fields):
        if isinstance(item, Stop):
            complete = item.kind != "limit"
            break
        looked = item.offset + item.size
        if isinstance(item, Unit) and test(item):
            offsets.append(item.offset)
    return Hits(tuple(offsets), looked), complete


def _behind(block: UnitColumns, offset: int) -> int:
    import numpy as np

    row = int(np.searchsorted(block["offset"], offset))
    return offset + int(block.size[row])


class _Sender:
    """Batches hits: the first ones at once, then a few times a second."""

    def __init__(self, control: WorkerControl) -> None:
        self._control = control
        self._held: list[int] = []
        self._due = time.monotonic() + FIRST_HITS

    def add(self, offsets: list[int]) -> None:
        self._held += offsets

    def send_now_and_then(self, looked: int) -> None:
        now = time.monotonic()
        if now >= self._due:
            self.flush(looked)
            self._due = now + LATER_HITS

    def flush(self, looked: int) -> None:
        self._control.emit(Hits(tuple(self._held), looked))
        self._held = []


NONE: tuple[int, ...] = ()

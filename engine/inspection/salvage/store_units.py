"""The units that a store's own walk of the log reaches: salvage leaves them out."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.codec import dledger
from engine.codec.columns import BAD, BLANK, UnitColumns
from engine.codec.log_copies import PageDigests, count_whole_rows
from engine.codec.message import BORN_HOST_V6, STORE_HOST_V6
from engine.codec.unit_scan import Damage, Stop
from engine.codec.unit_search import FOLLOWING_BYTES, judge_end
from engine.inspection.block_scan import scan_log
from engine.inspection.log_reader import LogReader
from engine.inspection.snapshot import StoreSnapshot

_MAX_WITHOUT_CRC = 1000
_HOSTS = 128
"""Units of a block whose hosts are noted."""
_MARK_ROWS = 64
"""Units from one whose number is noted to the next."""
_STEP_BYTES = 1 << 16
Int64 = npt.NDArray[np.int64]


@dataclass(slots=True)
class StoreUnits:
    """The bytes that the store's own walk reaches.

    ``live`` are ranges of the log that hold whole units, ``damage`` the ranges between them, ``bad`` the units with a
    wrong body CRC: their offsets and sizes.
    """

    end_offset: int = 0
    gap_bytes: int = 0
    """Bytes between two units: the header of an entry in a DLedger log, which counts as a part of the range."""
    damage: list[Damage] = field(default_factory=list)
    bad: list[tuple[int, int]] = field(default_factory=list)
    blanks: list[tuple[int, int]] = field(default_factory=list)
    doubtful: list[tuple[int, int]] = field(default_factory=list)
    """Units that are read as whole, although nothing proves it: no CRC is stored, or their end may be of another page.
    """
    hosts: set[bytes] = field(default_factory=set)
    """Raw store hosts of some of the units."""
    _starts: list[int] = field(default_factory=list)
    _stops: list[int] = field(default_factory=list)
    _last_units: list[int] = field(default_factory=list)
    _count: int = 0
    _mark_offsets: array[int] = field(default_factory=lambda: array("q"))
    """Offsets of some units: the first of each range, then every 64th."""
    _mark_numbers: array[int] = field(default_factory=lambda: array("q"))
    """The number of units in front of each of them."""
    _arrays: tuple[Int64, Int64] | None = None
    pages: PageDigests = field(default_factory=lambda: PageDigests(0, 0))

    def add(self, offsets: Int64, stop: int) -> None:
        """Add whole units at ``offsets``, back to back up to ``stop``, behind the ones before."""
        start, last_unit = int(offsets[0]), int(offsets[-1])
        marks = offsets[::_MARK_ROWS].tolist()
        self._mark_offsets.extend(marks)
        self._mark_numbers.extend(range(self._count, self._count + len(offsets), _MARK_ROWS))
        self._count += len(offsets)
        if self._stops and start - self._stops[-1] in (0, self.gap_bytes):
            self._stops[-1], self._last_units[-1] = stop, last_unit
        else:
            self._starts.append(start)
            self._stops.append(stop)
            self._last_units.append(last_unit)
        self._arrays = None

    def end_of_range(self, offset: int) -> int:
        """Return the end of the range of live units that holds ``offset`` or ends there; ``offset`` without one."""
        index = bisect_left(self._starts, offset) - 1
        return max(self._stops[index], offset) if index >= 0 else offset

    def whole_before(self, offset: int, log: LogReader) -> tuple[int, int]:
        """Return the end of the last unit that ends at or in front of ``offset``, in the range of live units there, and
        how many units of the log are in front of that end.
        """
        index = bisect_left(self._mark_offsets, offset) - 1
        if index < 0:
            return 0, 0
        unit, number = self._mark_offsets[index], self._mark_numbers[index]
        end, data, base = unit, b"", unit
        while True:
            if unit + 4 > base + len(data):
                data, base = log.read(unit, _STEP_BYTES), unit
            size = int.from_bytes(data[unit - base : unit - base + 4], "big")
            if size == dledger.MAGIC:
                unit += dledger.HEADER_SIZE
            elif size <= 0 or unit + size > offset:
                return end, number
            else:
                end, number = unit + size, number + 1
                unit = end

    def drop_unsound_ends(self, log: LogReader) -> None:
        """Take the last unit of a range for damaged if its end may be of another file or place."""
        damage_starts = {damage.offset for damage in self.damage}
        for number, (stop, last_unit) in enumerate(zip(self._stops, self._last_units, strict=True)):
            is_log_end = stop == self.end_offset
            if stop not in damage_starts and not is_log_end:
                continue
            data = log.read(last_unit, stop - last_unit + FOLLOWING_BYTES)
            unit, following = data[: stop - last_unit], data[stop - last_unit :]
            verdict = judge_end(unit, last_unit, following)
            if verdict == "proven" or (is_log_end and verdict != "wrong"):
                continue
            self._stops[number] = last_unit
            (self.bad if verdict == "wrong" else self.doubtful).append((last_unit, stop - last_unit))
        self._arrays = None

    @property
    def live(self) -> list[tuple[int, int]]:
        """Ranges of the log that hold whole units, ascending."""
        return list(zip(self._starts, self._stops, strict=True))

    def ranges(self) -> tuple[Int64, Int64]:
        """Return the starts and the stops of :attr:`live`."""
        if self._arrays is None:
            self._arrays = np.array(self._starts, np.int64), np.array(self._stops, np.int64)
        return self._arrays

    def covers(self, starts: Int64, stops: Int64) -> npt.NDArray[np.bool_]:
        """Return which of the ranges [start, stop) lie in live units as a whole."""
        live_starts, live_stops = self.ranges()
        if not len(live_starts):
            return np.zeros(len(starts), np.bool_)
        index = np.searchsorted(live_starts, starts, "right") - 1
        covered: npt.NDArray[np.bool_] = (index >= 0) & (stops <= live_stops[np.maximum(index, 0)])
        return covered

    def overlap(self, starts: Int64, stops: Int64) -> npt.NDArray[np.bool_]:
        """Return which of the ranges [start, stop) have a byte that belongs to a live unit."""
        live_starts, live_stops = self.ranges()
        if not len(live_starts):
            return np.zeros(len(starts), np.bool_)
        index = np.searchsorted(live_starts, stops, "left") - 1
        overlap: npt.NDArray[np.bool_] = (index >= 0) & (live_stops[np.maximum(index, 0)] > starts)
        return overlap

    def overlaps(self, start: int, stop: int) -> bool:
        """Return True if a byte of [start, stop) belongs to a live unit."""
        index = bisect_left(self._starts, stop) - 1
        return index >= 0 and self._stops[index] > start


def walk_store(store: StoreSnapshot, on_progress: Callable[[int], None], *, with_digests: bool = False) -> StoreUnits:
    """Walk the log with its CRCs up to its end, behind which no start reads. ``on_progress`` gets the bytes done."""
    units = StoreUnits(store.log.max_offset, dledger.HEADER_SIZE if store.commit_log.dledger is not None else 0)
    begin = max(store.log.min_offset, 0)
    if with_digests:
        units.pages = PageDigests(begin, units.end_offset)
    for block in scan_log(store.log, stop=units.end_offset, with_tags=False):
        if isinstance(block, Damage):
            units.damage.append(block)
            on_progress(block.offset + block.size - begin)
        elif not isinstance(block, Stop) and block.count:
            _add_block(units, block)
            on_progress(int(block.offset[block.count - 1]) - begin)
    units.drop_unsound_ends(store.log)
    return units


def _add_block(units: StoreUnits, block: UnitColumns) -> None:
    count = block.count - int(block.kind[block.count - 1] == BLANK)
    if count < block.count:
        units.blanks.append((int(block.offset[count]), int(block.size[count])))
    _add_hosts(units, block, np.arange(0, count, max(count // _HOSTS, 1)))
    if not count:
        return
    offsets, stop = block.offset[:count], int(block.offset[count - 1]) + int(block.size[count - 1])
    units.pages.add(block, int(offsets[0]), stop)
    if count_whole_rows(block, count, units.gap_bytes) == count:
        units.add(offsets, stop)
        return
    good = (block.crc[:count] != BAD) | (block.body_crc[:count] == 0)  # 0: the writer stored none
    good &= block.physical_offset[:count] == offsets
    stops = offsets + block.size[:count]
    without_crc = np.flatnonzero((block.crc[:count] == BAD) & good)
    for row in without_crc[: _MAX_WITHOUT_CRC - len(units.doubtful)].tolist() if len(without_crc) else ():
        units.doubtful.append((int(offsets[row]), int(block.size[row])))
    gaps = offsets[1:] - stops[:-1]
    breaks = np.flatnonzero(((gaps != 0) & (gaps != units.gap_bytes)) | ~good[1:] | ~good[:-1]) + 1
    for start, stop in zip([0, *breaks.tolist()], [*breaks.tolist(), count], strict=True):
        if start == stop:
            continue
        if good[start]:
            units.add(offsets[start:stop], int(stops[stop - 1]))
        else:
            units.bad += zip(offsets[start:stop].tolist(), block.size[start:stop].tolist(), strict=True)


def _add_hosts(units: StoreUnits, block: UnitColumns, rows: Int64) -> None:
    sys_flags = block.sys_flag[rows]
    positions = block.offset[rows] - block.base + np.where(sys_flags & BORN_HOST_V6, 76, 64)
    is_wide = (sys_flags & STORE_HOST_V6) != 0
    for width, host_positions in ((20, positions[is_wide]), (8, positions[~is_wide])):
        hosts = block.buffer[host_positions[:, None] + np.arange(width)]
        is_other = (hosts[1:] != hosts[:-1]).any(axis=1)
        units.hosts.update(host.tobytes() for host in hosts[np.flatnonzero(np.append(len(hosts) > 0, is_other))])

"""The sparse side index of a commit log: row numbers for offsets, and a summary of each file, kept outside the store.

One segment per log file: its number of rows (units, blanks, spans of damage), an anchor (row → offset) every so many
rows, bytes by topic, first and last store time. The segment of a finished file is cached for the user and checked by
the file's size, time and head bytes. A file that is still written is walked on from its last anchor. The cache may be
deleted at any time.

Units have no fixed size, so row 9,000 can only be found by walking. The anchors make that walk short::

    file            00000000000000000000              00000000001073741824
    first row       0                                 10,000
    anchors         row 0     row 4,096  row 8,192    row 0      row 4,096
                    at 0      at 440 MB  at 880 MB    at 1 GiB   at 1.5 GB

    offset_of(9,000)   last first row ≤ 9,000: the first file; its last anchor ≤ 9,000: at 880 MB; walk 808 rows
    number_at(offset)  the same with offsets, counting the rows walked

An exact index of 10 million units would take 80 MB; the anchors take 40 kB.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

from engine.callbacks import Cancelled, Progress
from engine.codec.unit_scan import Blank, Damage, Stop
from engine.inspection.log_cache import LogCacheFile, stamp_of
from engine.inspection.log_reader import LogReader
from engine.mapped.read_only import ReadOnlyFile

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable


ROWS_PER_ANCHOR = 4096
"""Rows between two anchors: the longest walk to find a row's exact number."""
MAX_CACHE_BYTES = 256 << 20
"""Bytes that all side indexes together may take; the least recently used are deleted first."""
SUFFIX = ".idx"
MAX_DAMAGES = 64
FORMAT = 2
_ANCHOR = struct.Struct("<qq")


@dataclass(slots=True)
class Segment:
    """Index of one log file. ``anchors`` are (row in the file, absolute offset); times in ms, sizes in bytes."""

    name: str
    start_offset: int
    size: int
    modified_ns: int
    head: str
    rows: int = 0
    units: int = 0
    end: int = 0
    complete: bool = False
    first_time: int = 0
    last_time: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    damages: list[tuple[int, int]] = field(default_factory=list)
    anchors: list[tuple[int, int]] = field(default_factory=list)


class SideIndex:
    """The row numbers of a log. :meth:`build` may be cancelled and continued; safe to read from any thread."""

    def __init__(self, log: LogReader, cache: Path | None = None) -> None:
        self._log = log
        self._cache = cache if cache is not None else user_cache_path("storescope") / "side-index"
        self.segments: list[Segment] = []
        self._first_rows: list[int] = []

    @property
    def complete(self) -> bool:
        """True if every file of the log has been walked to its end."""
        return len(self.segments) == len(self._log.files) and all(s.complete for s in self.segments)

    @property
    def total(self) -> int:
        """Number of rows counted so far."""
        return self._first_rows[-1] + self.segments[-1].rows if self.segments else 0

    @property
    def end(self) -> int:
        """Offset behind the counted part; 0 if nothing is counted."""
        return self.segments[-1].end if self.segments else 0

    @property
    def units(self) -> int:
        """Number of message units counted so far."""
        return sum(segment.units for segment in self.segments)

    def build(self, cancelled: Cancelled | None = None, progress: Progress | None = None) -> bool:
        """Walk the files that are not indexed yet. Return True when all are indexed, False if cancelled. Damage in the
        store raises nothing.
        """
        cached = {segment.name: segment for segment in (*self._load(), *self.segments)}
        files = list(self._log.files)
        total = sum(file.size for file in files)
        done = 0
        built: list[Segment] = []
        for number, file in enumerate(files):
            is_last = number + 1 == len(files)
            stop = file.end_offset if is_last else files[number + 1].start_offset
            segment = self._valid_segment(cached.get(file.name), file)
            if segment is None or not segment.complete or is_last:
                segment = self._walk(segment, file, stop, cancelled)
                if segment is None:
                    return False
            built.append(segment)
            self._publish(built)
            done += file.size
            if progress:
                progress(done, total)
        self._save()
        return True

    def load(self) -> bool:
        """Use the cached segments that are still valid, without walking; True if they cover everything."""
        cached = {segment.name: segment for segment in self._load()}
        valid: list[Segment] = []
        for file in self._log.files:
            segment = self._valid_segment(cached.get(file.name), file)
            if segment is None:
                break
            valid.append(segment)
        self._publish(valid)
        return len(valid) == len(self._log.files)

    def number_at(self, offset: int) -> int | None:
        """Return the row number of the item that begins at ``offset``; None if it is not counted yet."""
        segment_index = bisect_right([s.start_offset for s in self.segments], offset) - 1
        if segment_index < 0 or offset >= self.segments[segment_index].end:
            return None
        segment = self.segments[segment_index]
        anchor = bisect_right([a[1] for a in segment.anchors], offset) - 1
        row, start = segment.anchors[max(anchor, 0)] if segment.anchors else (0, segment.start_offset)
        for item in self._log.walk(start, offset + 1, crc=False):
            if isinstance(item, Stop) or item.offset >= offset:
                break
            row += 1
        return self._first_rows[segment_index] + row

    def offset_of(self, number: int) -> int | None:
        """Return the offset of the row with this number; None if it is not counted yet."""
        segment_index = bisect_right(self._first_rows, number) - 1
        if segment_index < 0 or number >= self.total:
            return None
        segment = self.segments[segment_index]
        row_in_file = number - self._first_rows[segment_index]
        anchor = bisect_right([a[0] for a in segment.anchors], row_in_file) - 1
        row, start = segment.anchors[max(anchor, 0)] if segment.anchors else (0, segment.start_offset)
        for item in self._log.walk(start, segment.end, crc=False):
            if isinstance(item, Stop):
                return None
            if row == row_in_file:
                return item.offset
            row += 1
        return None

    def _publish(self, segments: list[Segment]) -> None:
        first_rows, row = [], 0
        for segment in segments:
            first_rows.append(row)
            row += segment.rows
        self._first_rows, self.segments = first_rows, list(segments)

    # -- walking

    def _valid_segment(self, segment: Segment | None, file: ReadOnlyFile) -> Segment | None:
        if segment is None or (segment.start_offset, segment.size) != (file.start_offset, file.size):
            return None
        modified, head = stamp_of(file)
        if not head:  # unreadable now: a segment stays valid only if the file was unreadable before, too
            return segment if not segment.head and not segment.complete else None
        is_same = segment.head == head and (segment.modified_ns == modified or not segment.complete)
        return segment if is_same else None

    def _walk(
        self, cached: Segment | None, file: ReadOnlyFile, stop: int, cancelled: Cancelled | None
    ) -> Segment | None:
        """Walk the file's segment from the last anchor that is still valid; None if the walk was cancelled."""
        from engine.codec.topic_table import TopicTable
        from engine.inspection.block_scan import scan_log

        modified, head = stamp_of(file)
        segment = Segment(file.name, file.start_offset, file.size, modified, head, end=file.start_offset)
        if cached is not None and cached.anchors and not cached.damages:
            segment.anchors, start = self._valid_anchors(cached)
        else:
            start = file.start_offset
        if segment.anchors:
            segment = _reset_to_last_anchor(cached, segment) if cached is not None else segment
        topics = TopicTable()
        counter = _Counter(segment, topics)
        all_read = True
        for block in scan_log(self._log, start, stop, crc=False, topics=topics):
            if cancelled is not None and cancelled():
                return None
            if isinstance(block, Stop):
                segment.complete = block.kind == "limit" and all_read
                break
            if isinstance(block, Damage):
                all_read &= not block.unread
                counter.damage(block)
            else:
                counter.block(block)
        counter.close()
        return segment

    def _valid_anchors(self, cached: Segment) -> tuple[list[tuple[int, int]], int]:
        """Return the anchors up to the last one at which a unit still begins, and the offset to continue from."""
        anchors = list(cached.anchors)
        while anchors:
            item = self._log.unit_at(anchors[-1][1], crc=False)
            if not isinstance(item, (Stop, Blank)):
                return anchors, anchors[-1][1]
            anchors.pop()
        return [], cached.start_offset

    # -- the cache

    @property
    def _file(self) -> LogCacheFile:
        return LogCacheFile.of(self._log, self._cache, SUFFIX, MAX_CACHE_BYTES)

    def _load(self) -> Iterator[Segment]:
        try:
            raw = self._file.read()
            size = int.from_bytes(raw[:8], "little")
            head = json.loads(raw[8 : 8 + size])
            if head["format"] != FORMAT:
                return
            position = 8 + size
            for fields in head["segments"]:
                count = fields.pop("anchorCount")
                anchors = list(_ANCHOR.iter_unpack(raw[position : position + count * _ANCHOR.size]))
                position += count * _ANCHOR.size
                damages = [(offset, length) for offset, length in fields.pop("damages")]
                yield Segment(**fields, damages=damages, anchors=anchors)
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return  # a cache: unreadable parts are built again

    def _save(self) -> None:
        listed = []
        anchors = bytearray()
        for segment in self.segments:
            fields = asdict(segment)
            fields["anchorCount"] = len(fields.pop("anchors"))
            listed.append(fields)
            for anchor in segment.anchors:
                anchors += _ANCHOR.pack(*anchor)
        head = json.dumps({"format": FORMAT, "segments": listed}).encode()
        self._file.write(len(head).to_bytes(8, "little") + head + anchors)


class _Counter:
    """Adds blocks and damage to a segment."""

    def __init__(self, segment: Segment, topics: TopicTable) -> None:
        self._segment = segment
        self._topics = topics
        self._bytes: dict[int, int] = {}
        self._next_anchor = segment.anchors[-1][0] + ROWS_PER_ANCHOR if segment.anchors else 0

    def block(self, block: UnitColumns) -> None:
        import numpy as np

        from engine.codec.columns import BLANK

        segment, count = self._segment, block.count
        if not count:
            return
        offsets = block["offset"][:count]
        while self._next_anchor < segment.rows + count:
            segment.anchors.append((self._next_anchor, int(offsets[self._next_anchor - segment.rows])))
            self._next_anchor += ROWS_PER_ANCHOR
        units = block["kind"][:count] != BLANK
        numbers, sizes = block["topic_id"][:count][units], block["size"][:count][units]
        if len(numbers):
            for number, size in enumerate(np.bincount(numbers, sizes)):
                if size:
                    self._bytes[number] = self._bytes.get(number, 0) + int(size)
            times = block["store_timestamp"][:count][units]
            segment.first_time = segment.first_time or int(times[0])
            segment.last_time = int(times[-1])
        segment.units += int(np.count_nonzero(units))
        segment.rows += count
        segment.end = int(offsets[-1]) + max(int(block["size"][count - 1]), 8)

    def damage(self, item: Damage) -> None:
        segment = self._segment
        if self._next_anchor <= segment.rows:
            segment.anchors.append((segment.rows, item.offset))
            self._next_anchor = segment.rows + ROWS_PER_ANCHOR
        segment.rows += 1
        segment.end = item.offset + item.size
        if len(segment.damages) < MAX_DAMAGES and not item.unread:
            segment.damages.append((item.offset, item.size))

    def close(self) -> None:
        """Add the bytes by topic to the segment, under the topics' names."""
        names = self._topics.names
        for number, size in self._bytes.items():
            self._segment.topics[names[number]] = self._segment.topics.get(names[number], 0) + size


def _reset_to_last_anchor(cached: Segment, segment: Segment) -> Segment:
    """Reset ``segment`` to its last anchor; sums that cannot be reduced exactly are scaled from ``cached``."""
    segment.rows, segment.end = segment.anchors[-1]
    segment.units = segment.rows
    segment.first_time, segment.last_time = cached.first_time, cached.last_time
    share = segment.rows / cached.rows if cached.rows else 0.0
    segment.topics = {name: int(size * share) for name, size in cached.topics.items()}
    return segment

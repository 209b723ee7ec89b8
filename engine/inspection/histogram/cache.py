"""Keeps the histograms of log files in the user's cache: a side index over store time, outside of the store.

One cache file per log, with a part for each log file, checked by the file's size, time and head bytes like the side
index of row numbers. The part of the file that is still written also has its last unit: while that unit is in its
place, the walk goes on behind it. The cache may be deleted at any time.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.codec.message import Unit
from engine.inspection.histogram.time_bins import MAX_BINS, OTHERS, Ints, TimeBins
from engine.inspection.histogram.unit_bins import LogHistogram
from engine.inspection.log_cache import LogCacheFile, stamp_of

if TYPE_CHECKING:
    from engine.inspection.log_reader import LogReader
    from engine.mapped.read_only import ReadOnlyFile

FORMAT = 1
SUFFIX = ".times"
MAX_CACHE_BYTES = 128 << 20
"""Bytes that the histograms of all logs together may take; the least recently used are deleted first."""
_COUNTS = ("units", "damaged", "unread", "steps_back", "largest_step_ms", "looked_to", "is_complete")


@dataclass
class Segment:
    """The histogram of one log file, in its saved form. ``last`` are offset, size and store time of the last unit."""

    name: str
    start_offset: int
    size: int
    modified_ns: int
    head: str
    last: tuple[int, int, int] | None = None
    width: int = 1
    topics: list[str] = field(default_factory=lambda: [OTHERS])
    counts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, file: ReadOnlyFile) -> Segment:
        """Return an empty one with the file's present stamp."""
        return cls(file.name, file.start_offset, file.size, *stamp_of(file))

    def holds(self, file: ReadOnlyFile) -> bool:
        """Return True if the file is still the one that was walked to its end."""
        return (
            bool(self.counts.get("is_complete"))
            and bool(self.head)
            and (self.start_offset, self.size) == (file.start_offset, file.size)
            and (self.modified_ns, self.head) == stamp_of(file)
        )

    def may_go_on(self, file: ReadOnlyFile, log: LogReader) -> bool:
        """Return True if the file has only grown, so that the walk can go on behind its last unit."""
        if self.last is None or not self.head or self.counts["damaged"] or self.counts["unread"]:
            return False
        if self.start_offset != file.start_offset or stamp_of(file)[1] != self.head:
            return False
        unit = log.unit_at(self.last[0], crc=False)
        return isinstance(unit, Unit) and (unit.offset, unit.size, unit.store_timestamp) == self.last

    def pack(self, histogram: LogHistogram) -> None:
        """Take a histogram."""
        self.width, self.topics = histogram.bins.width, histogram.bins.topics
        self.counts = {name: getattr(histogram, name) for name in _COUNTS}
        self.arrays = histogram.bins.arrays()

    def histogram(self, max_bins: int = MAX_BINS) -> LogHistogram:
        """Return the histogram as a value of its own. Raises ``ValueError`` and others if it was damaged."""
        return LogHistogram(TimeBins.from_arrays(self.width, self.topics, self.arrays, max_bins), **self.counts)


class HistogramCache:
    """The cached histograms of the files of ``log``, below ``folder``."""

    def __init__(self, log: LogReader, folder: Path) -> None:
        self._file = LogCacheFile.of(log, folder, SUFFIX, MAX_CACHE_BYTES)

    def load(self) -> dict[str, Segment]:
        """Return the cached parts by file name; none if there are none or they cannot be used."""
        try:
            with np.load(io.BytesIO(self._file.read()), allow_pickle=False) as saved:
                arrays = {name: saved[name] for name in saved.files}
            head = json.loads(arrays.pop("head").tobytes())
            if head["format"] != FORMAT:
                return {}
            positions = dict.fromkeys(arrays, 0)
            segments = [_decoded(fields, arrays, positions) for fields in head["segments"]]
        except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile):
            return {}  # a cache: what is unreadable is read from the log again
        return {segment.name: segment for segment in segments}

    def save(self, segments: Sequence[Segment]) -> None:
        """Write these parts; raises nothing."""
        parts = [segment.arrays for segment in segments]
        head = json.dumps({"format": FORMAT, "segments": [_encoded(segment) for segment in segments]}).encode()
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
        buffer = io.BytesIO()
        np.savez(buffer, head=np.frombuffer(head, np.uint8), **arrays)  # type: ignore[arg-type]
        self._file.write(buffer.getvalue())


def _encoded(segment: Segment) -> dict[str, Any]:
    return {
        "name": segment.name,
        "start_offset": segment.start_offset,
        "size": segment.size,
        "modified_ns": segment.modified_ns,
        "head": segment.head,
        "last": segment.last,
        "width": segment.width,
        "topics": segment.topics,
        "counts": segment.counts,
        "lengths": {name: len(array) for name, array in segment.arrays.items()},
    }


def _decoded(fields: dict[str, Any], arrays: dict[str, Ints], positions: dict[str, int]) -> Segment:
    part = {}
    for name, length in fields.pop("lengths").items():
        part[name] = arrays[name][positions[name] : positions[name] + length]
        positions[name] += length
    last = fields.pop("last")
    segment = Segment(**fields, last=(last[0], last[1], last[2]) if last is not None else None, arrays=part)
    segment.histogram()  # raises if it cannot be used
    return segment

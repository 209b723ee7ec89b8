"""Compare the times at which index files were made (their names) with the store times of their messages.

An index file is named after the local time at which it was made, to the millisecond, and is made for its first message.
A name much later than that message is an index that was built again: at a start after a crash, or by a rebuild. The
broker's zone is not stored; it is the one in which most names agree with their messages.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.errors import CannotRead

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

LATE_MS = 2000
"""An index file that was made this much later than its first message was stored is late."""
ZONE_STEP_MS = 900_000
"""Zones differ from each other by a multiple of this."""
_MIN_ZONE_MS, _MAX_ZONE_MS = -12 * 3_600_000, 14 * 3_600_000
_NAME = re.compile(r"\d{17}")


@dataclass(frozen=True, slots=True)
class LateIndexFile:
    """``created_ms``: when the file was made; ``first_stored``: store time of its first message, at ``offset`` (ms)."""

    name: str
    created_ms: int
    first_stored: int
    offset: int


@dataclass(frozen=True, slots=True)
class IndexTimes:
    """``zone_ms``: the broker's distance from UTC, None if the names do not show it. Then ``unsettled`` are files that
    are late in every zone, each made at ``created_ms`` or a number of quarters of an hour later.
    """

    late: tuple[LateIndexFile, ...]
    zone_ms: int | None
    files: int
    unsettled: tuple[LateIndexFile, ...] = ()


def read_index_times(store: StoreSnapshot) -> IndexTimes:
    """Compare the names of the index files with their headers; a header that cannot be read is passed over."""
    files = []
    for file in store.index.files(note_undecoded=False):
        local = _local_ms(file.name)
        try:
            header = file.header
        except CannotRead:
            continue
        if local is not None and header.begin_timestamp > 0 and header.index_count > 1:
            files.append((file.name, local, header.begin_timestamp, header.begin_phy_offset))
    zone = _zone_of([local - begin for _, local, begin, _ in files])
    if zone is None:
        unsettled = [
            LateIndexFile(name, begin + (local - begin) % ZONE_STEP_MS, begin, offset)
            for name, local, begin, offset in files
            if (local - begin) % ZONE_STEP_MS >= LATE_MS
        ]
        return IndexTimes((), None, len(files), tuple(unsettled))
    late = [
        LateIndexFile(name, local - zone, begin, offset)
        for name, local, begin, offset in files
        if local - zone - begin >= LATE_MS
    ]
    return IndexTimes(tuple(late), zone, len(files))


def _zone_of(differences: list[int]) -> int | None:
    """Return the distance from UTC in which the names of at least half of the files fit to their messages."""
    zones = Counter(
        difference // ZONE_STEP_MS * ZONE_STEP_MS for difference in differences if difference % ZONE_STEP_MS < LATE_MS
    )
    if not zones:
        return None
    zone, count = zones.most_common(1)[0]
    return zone if 2 * count >= len(differences) and _MIN_ZONE_MS <= zone <= _MAX_ZONE_MS else None


def _local_ms(name: str) -> int | None:
    if _NAME.fullmatch(name) is None:
        return None
    try:
        moment = datetime.strptime(name[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1000 + int(name[14:])

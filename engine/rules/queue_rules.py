"""Rules over queue entries and the units that they should point at."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.sentences import plural, sentence

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Verdict = Literal["missing", "empty", "prefilled", "size", "tag", "duplicate", "backward", "offset", "unit"]

RULE_OF: dict[Verdict, str] = {
    "missing": "CQ03",
    "empty": "CQ03",
    "prefilled": "CQ03",
    "size": "CQ04",
    "tag": "CQ09",
    "duplicate": "CQ05",
    "backward": "CQ12",
    "offset": "CQ04",
    "unit": "CL09",
}


class Entries(NamedTuple):
    """Entries as columns; the offset is −1 if no file holds the entry."""

    physical: Int64
    size: Int64
    tags: Int64


class ComparedEntry(NamedTuple):
    """A queue entry, or the entry that a unit requires."""

    physical: int
    size: int
    tags: int


def differing(entries: Entries, physical: Int64, size: Int64, tags: Int64, tags_known: bool = True) -> Mask:
    """Mark entries that differ from those their units require; tags of ext addresses are already resolved."""
    wrong: Mask = (entries.physical != physical) | (entries.size != size)
    if tags_known:
        wrong |= entries.tags != tags
    return wrong


def plausible_delay(code: int, store_timestamp: int) -> bool:
    """Return True if a delay topic's code can be a delivery time under unknown delay levels."""
    delay = code - store_timestamp
    return 0 < delay <= 40 * 86_400_000 and delay % 1000 == 0


def verdict(entry: ComparedEntry, required: ComparedEntry, previous: ComparedEntry | None) -> Verdict:
    """Explain why ``entry`` is not the one of its unit; ``previous`` is the entry in front of it."""
    if entry.physical < 0:
        return "missing"
    if entry == (0, 0, 0) or entry.size <= 0:
        return "empty"
    if entry.size == PREFILLED_SIZE and entry.physical == 0:
        return "prefilled"
    if entry.physical == required.physical:
        return "size" if entry.size != required.size else "tag"
    if previous is not None and previous.physical >= 0 and previous.size != PREFILLED_SIZE:
        if entry.physical == previous.physical and entry.size == previous.size:
            return "duplicate"
        if entry.physical < previous.physical:
            return "backward"
    return "offset"


def words(
    reason: Verdict,
    entry: ComparedEntry,
    required: ComparedEntry,
    *,
    in_rocksdb: bool = False,
    is_delayed: bool = False,
) -> str:
    """Describe the expected and the actual entry in one clause. With ``is_delayed`` it is of the delay topic."""
    match reason:
        case "tag" if is_delayed and -(1 << 31) <= entry.tags < 1 << 31:  # as RocketMQ 4.9 writes it while it recovers
            return sentence(
                "has the code of tags ({code}) in place of the time of delivery {found} of its unit at {at:,}: a "
                "broker delivers the message at once",
                code=entry.tags,
                at=required.physical,
                found=required.tags,
            )
        case "missing":
            if in_rocksdb:
                return sentence("has no row in the RocksDB; its unit is at {at:,}", at=required.physical)
            if entry.physical < -1:
                return sentence(
                    "points to {found:,}, before the log; its unit is at {at:,}",
                    found=entry.physical,
                    at=required.physical,
                )
            return sentence("is in no file; its unit is at {at:,}", at=required.physical)
        case "empty":
            return sentence("is empty; its unit is at {at:,}", at=required.physical)
        case "prefilled":
            return sentence("is pre-filled; its unit is at {at:,}", at=required.physical)
        case "size":
            return plural(
                "says {n:,} byte, its unit at {at:,} has {found:,}",
                "says {n:,} bytes, its unit at {at:,} has {found:,}",
                n=entry.size,
                at=required.physical,
                found=required.size,
            )
        case "tag":
            return sentence(
                "has tag code {code}, its unit at {at:,} gives {found}",
                code=entry.tags,
                at=required.physical,
                found=required.tags,
            )
        case "duplicate":
            return sentence(
                "repeats the entry before it (offset {offset:,}); its unit is at {at:,}",
                offset=entry.physical,
                at=required.physical,
            )
        case "backward":
            return sentence(
                "points back to {offset:,}; its unit is at {at:,}", offset=entry.physical, at=required.physical
            )
        case "offset":
            return sentence("points to {offset:,}; its unit is at {at:,}", offset=entry.physical, at=required.physical)
        case "unit":
            return sentence("points to its message, which has queue offset {n:,}", n=entry.tags)

"""Rules over queue entries and the units that they should point at."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.consume_queue import PREFILLED_SIZE

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
    """Entries as columns; an offset of −1 stands where no file holds an entry."""

    physical: Int64
    size: Int64
    tags: Int64


class Side(NamedTuple):
    """One entry, or what a unit asks for."""

    physical: int
    size: int
    tags: int


def differing(entries: Entries, physical: Int64, size: Int64, tags: Int64, tags_known: bool = True) -> Mask:
    """Which entries are not what their units ask for; tags of ext addresses have been looked up already."""
    wrong: Mask = (entries.physical != physical) | (entries.size != size)
    if tags_known:
        wrong |= entries.tags != tags
    return wrong


def plausible_delay(code: int, store_timestamp: int) -> bool:
    """Whether a delay topic's code can be a delivery time under levels that are not known here."""
    delay = code - store_timestamp
    return 0 < delay <= 40 * 86_400_000 and delay % 1000 == 0


def verdict(entry: Side, wanted: Side, before: Side | None) -> Verdict:
    """Why ``entry`` is not the one of its unit; ``before`` is the entry in front of it."""
    if entry.physical < 0:
        return "missing"
    if entry == (0, 0, 0) or entry.size <= 0:
        return "empty"
    if entry.size == PREFILLED_SIZE and entry.physical == 0:
        return "prefilled"
    if entry.physical == wanted.physical:
        return "size" if entry.size != wanted.size else "tag"
    if before is not None and before.physical >= 0 and before.size != PREFILLED_SIZE:
        if entry.physical == before.physical and entry.size == before.size:
            return "duplicate"
        if entry.physical < before.physical:
            return "backward"
    return "offset"


def words(seen: Verdict, entry: Side, wanted: Side) -> str:
    """One clause that says what was expected and what was found."""
    match seen:
        case "missing":
            return f"no file holds it; its unit is at {wanted.physical:,}"
        case "empty":
            return f"is empty; its unit is at {wanted.physical:,}"
        case "prefilled":
            return f"is pre-filled; its unit is at {wanted.physical:,}"
        case "size":
            return f"says {entry.size:,} bytes, its unit at {wanted.physical:,} has {wanted.size:,}"
        case "tag":
            return f"has tag code {entry.tags}, its unit at {wanted.physical:,} gives {wanted.tags}"
        case "duplicate":
            return f"repeats the entry in front of it (offset {entry.physical:,}); its unit is at {wanted.physical:,}"
        case "backward":
            return f"points back to {entry.physical:,}; its unit is at {wanted.physical:,}"
        case "offset":
            return f"points to {entry.physical:,}; its unit is at {wanted.physical:,}"
        case "unit":
            return f"points at its unit, which itself says queue offset {entry.tags:,}"

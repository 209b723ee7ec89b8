"""What became of bytes of the log that are not what was written, in a clause: what an incident begins with.

A write that was lost leaves whole pages of zeros, one that was torn a beginning, flipped bits a body that one of them
explains, a reused file units of an older life.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from engine.codec.flips import Explanation

# Whole pages of zeros inside what was written: the mark of a write that never reached the disk.

PAGE = 4096
_ZEROS = re.compile(rb"\0{%d,}" % PAGE)


def zero_pages(data: bytes, base: int) -> tuple[int, int] | None:
    """(offset, bytes) of the longest run of whole zero pages in ``data``, which begins at ``base`` of the log; None
    where there is none. A file of the log begins on a page, and its name is its first offset.
    """
    best: tuple[int, int] | None = None
    for found in _ZEROS.finditer(data):
        low = -(-(base + found.start()) // PAGE) * PAGE
        high = (base + found.end()) // PAGE * PAGE
        if high > low and (best is None or high - low > best[1]):
            best = (low, high - low)
    return best


def of_stretch(data: bytes, start: int, size: int, fields: Collection[str] = ()) -> str:
    """``size`` bytes from ``start`` of the log on that are no unit; ``data`` is their beginning, ``fields`` are those
    of the unit there that contradict the rest of it.
    """
    zeros = zero_pages(data, start)
    if data and not any(data):
        return f"{size:,} bytes of the commit log from {start:,} on are zero: they were never written, or lost"
    if zeros is not None:
        return f"whole pages of the commit log from {zeros[0]:,} on are zero ({zeros[1]:,} bytes): their write was lost"
    if fields:
        return f"the head of the message at {start:,} of the commit log was changed ({', '.join(fields)})"
    return f"{size:,} bytes of the commit log from {start:,} on were overwritten"


def of_torn_end(data: bytes, start: int, size: int) -> str:
    """What is no whole unit at the end of the log."""
    zeros = zero_pages(data, start)
    if zeros is not None and any(data):
        return f"whole pages of the commit log from {zeros[0]:,} on are zero ({zeros[1]:,} bytes): their write was lost"
    return f"the write of the last message was torn, at {start:,} of the commit log ({size:,} bytes)"


def of_lost_tail(data: bytes, end: int, *, torn: bool) -> str:
    """The log ends at ``end``, and others know what came behind; ``data`` is what stands there."""
    if torn:
        return f"the write of a message was torn at {end:,} of the commit log, and all behind it was lost"
    if not data:
        return f"the commit log ends at {end:,}: the files that went on there are gone, or were cut"
    if not any(data):
        return f"the commit log is zero from {end:,} on: what stood there never reached the disk, or is an older copy's"
    return f"the commit log is broken from {end:,} on"


def of_body(body: bytes, at: int, body_at: int, stored: int, explained: Explanation) -> str:
    """The body of the unit at ``at`` does not have the CRC that was ``stored``."""
    if explained.flips:
        return (
            f"bits flipped in the body of the message at {at:,} of the commit log: on the disk, in memory or in a copy"
        )
    if stored == 0:
        return f"the message at {at:,} of the commit log was stored without a CRC"
    if zero_pages(body, body_at) is not None:
        return f"whole pages of the body of the message at {at:,} of the commit log are zero: their write was lost"
    return f"the body of the message at {at:,} of the commit log is not what was stored: it was torn or changed"


def of_properties(at: int, zeros: int, length: int) -> str:
    """The properties of the unit at ``at`` are others: of their ``length`` bytes ``zeros`` at an end are zero."""
    if zeros:
        return f"the write of the message at {at:,} of the commit log was torn: {zeros:,} of its properties' {length:,} bytes are zero"  # noqa: E501
    return f"the properties of the message at {at:,} of the commit log are not what was stored"


def of_stale(units: int, at: int, *, twice: bool) -> str:
    """``units`` from ``at`` on say that they belong elsewhere; ``twice`` where their own bytes stand there, too."""
    if twice:
        return f"units of the commit log were written a second time, at {at:,} ({units:,} units)"
    what = "bytes of another place or of an older life of the file"
    return f"{what} stand in the commit log from {at:,} on ({units:,} units)"

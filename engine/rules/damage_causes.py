"""Describe bytes of the log that differ from what was written; an incident begins with such a clause.

A lost write leaves whole pages of zeros, a torn one only a beginning; flipped bits leave a body that a few flips
explain; a reused file has units of an earlier use.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from engine.codec.flipped_bits import Explanation

PAGE = 4096
OLD_COPY_BYTES = 64 << 10
"""From so many zeros up to the end of a broken place on, they may be an older copy of the file."""
_ZEROS = re.compile(rb"\0{%d,}" % PAGE)


def zero_pages(data: bytes, base: int) -> tuple[int, int] | None:
    """(offset, bytes) of the longest run of whole zero pages in ``data``, which begins at ``base`` of the log; None if
    there is none.

    A file of the log begins on a page, and its name is its first offset.
    """
    best: tuple[int, int] | None = None
    for match in _ZEROS.finditer(data):
        start = -(-(base + match.start()) // PAGE) * PAGE
        end = (base + match.end()) // PAGE * PAGE
        if end > start and (best is None or end - start > best[1]):
            best = (start, end - start)
    return best


def of_stretch(data: bytes, start: int, size: int, fields: Collection[str] = ()) -> str:
    """``size`` bytes from ``start`` of the log on that are no unit; ``data`` is their beginning, ``fields`` are those
    of the unit there that contradict the rest of it.
    """
    zeros = zero_pages(data, start)
    if data and not any(data):
        return f"{size:,} bytes of the commit log from {start:,} on are zero: they were never written, or lost"
    if zeros is not None and zeros[1] >= OLD_COPY_BYTES and sum(zeros) == start + size:
        return (
            f"the commit log is zero from {zeros[0]:,} to the end of the damage ({zeros[1]:,} bytes): the write was "
            "lost, or an older copy of the file stands there"
        )
    if zeros is not None:
        return f"whole pages of the commit log from {zeros[0]:,} on are zero ({zeros[1]:,} bytes): their write was lost"
    if fields:
        return f"the head of the message at {start:,} of the commit log was changed ({', '.join(fields)})"
    return f"{size:,} bytes of the commit log from {start:,} on were overwritten"


def of_overflow(start: int, stored_length: int, length: int) -> str:
    """The properties of the message at ``start`` are too long for their 16-bit length field."""
    return (
        f"a batch of 4.x stored a message with {length:,} bytes of properties at {start:,} of the commit log: their "
        f"16-bit length overflowed to {stored_length:,}, so no broker dispatches the message"
    )


def of_torn_end(data: bytes, start: int, size: int) -> str:
    """The incomplete unit at the end of the log."""
    zeros = zero_pages(data, start)
    if zeros is not None and any(data):
        return f"whole pages of the commit log from {zeros[0]:,} on are zero ({zeros[1]:,} bytes): their write was lost"
    return f"the last message was written only in part, at {start:,} of the commit log ({size:,} bytes)"


def of_lost_tail(data: bytes, end: int, *, torn: bool) -> str:
    """The log ends at ``end``, but other files know later messages; ``data`` are the bytes there."""
    if torn:
        return f"a message was written only in part at {end:,} of the commit log, and everything after it was lost"
    if not data:
        return f"the commit log ends at {end:,}: the files after it are missing or were cut"
    if not any(data):
        return (
            f"the commit log is zero from {end:,} on: what was there never reached the disk, or this is an older copy"
        )
    return f"the commit log is broken from {end:,} on"


def of_body(body: bytes, offset: int, body_at: int, stored: int, explained: Explanation) -> str:
    """The body of the unit at ``offset`` does not have the CRC that was ``stored``."""
    if explained.flips:
        return (
            f"bits flipped in the body of the message at {offset:,} of the commit log: "
            "on the disk, in memory or in a copy"
        )
    if stored == 0:
        return f"the message at {offset:,} of the commit log was stored without a CRC"
    if zero_pages(body, body_at) is not None:
        return f"whole pages of the body of the message at {offset:,} of the commit log are zero: their write was lost"
    return (
        f"the body of the message at {offset:,} of the commit log differs from what was stored: it was written only "
        "in part, or changed"
    )


def of_properties(offset: int, zeros: int, length: int) -> str:
    """The properties of the unit at ``offset`` have changed: of their ``length`` bytes ``zeros`` at one end are
    zero.
    """
    if zeros:
        return (
            f"the message at {offset:,} of the commit log was written only in part: {zeros:,} of its properties' "
            f"{length:,} bytes are zero"
        )
    return f"the properties of the message at {offset:,} of the commit log differ from what was stored"


def of_stale(units: int, offset: int, *, is_copy: bool) -> str:
    """``units`` from ``offset`` on name another place as their own; ``is_copy`` if the same bytes are at that place
    too.
    """
    if is_copy:
        return f"units of the commit log were written a second time, at {offset:,} ({units:,} units)"
    origin = "bytes from another place or from an earlier use of the file"
    return f"{origin} are in the commit log from {offset:,} on ({units:,} units)"

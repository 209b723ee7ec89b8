"""Describe bytes of the log that differ from what was written; an incident begins with such a clause.

A lost write leaves whole pages of zeros, a torn one only a beginning; flipped bits leave a body that a few flips
explain; a reused file has units of an earlier use.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from engine.codec.flipped_bits import Explanation
from engine.sentences import plural, sentence

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


def of_damaged_range(data: bytes, start: int, size: int, fields: Collection[str] = ()) -> str:
    """``size`` bytes from ``start`` of the log on that are no unit; ``data`` is their beginning, ``fields`` are those
    of the unit there that contradict the rest of it.
    """
    zeros = zero_pages(data, start)
    if data and not any(data):
        return plural(
            "{n:,} byte of the commit log from {start:,} on is zero: it was never written, or lost",
            "{n:,} bytes of the commit log from {start:,} on are zero: they were never written, or lost",
            n=size,
            start=start,
        )
    if zeros is not None and zeros[1] >= OLD_COPY_BYTES and sum(zeros) == start + size:
        return plural(
            "the commit log is zero from {start:,} to the end of the damage ({n:,} byte): the write was "
            "lost, or an older copy of the file stands there",
            "the commit log is zero from {start:,} to the end of the damage ({n:,} bytes): the write was "
            "lost, or an older copy of the file stands there",
            start=zeros[0],
            n=zeros[1],
        )
    if zeros is not None:
        return plural(
            "whole pages of the commit log from {start:,} on are zero ({n:,} byte): their write was lost",
            "whole pages of the commit log from {start:,} on are zero ({n:,} bytes): their write was lost",
            start=zeros[0],
            n=zeros[1],
        )
    if fields:
        return sentence(
            "the head of the message at {at:,} of the commit log was changed ({fields})",
            at=start,
            fields=", ".join(fields),
        )
    return plural(
        "{n:,} byte of the commit log from {start:,} on was overwritten",
        "{n:,} bytes of the commit log from {start:,} on were overwritten",
        n=size,
        start=start,
    )


def of_overflow(start: int, stored_length: int, length: int) -> str:
    """The properties of the message at ``start`` are too long for their 16-bit length field."""
    return plural(
        "a batch of 4.x stored a message with {n:,} byte of properties at {offset:,} of the commit "
        "log: their 16-bit length overflowed to {says:,}, so no broker dispatches the message",
        "a batch of 4.x stored a message with {n:,} bytes of properties at {offset:,} of the commit "
        "log: their 16-bit length overflowed to {says:,}, so no broker dispatches the message",
        n=length,
        offset=start,
        says=stored_length,
    )


def of_torn_end(data: bytes, start: int, size: int) -> str:
    """The incomplete unit at the end of the log."""
    zeros = zero_pages(data, start)
    if zeros is not None and any(data):
        return plural(
            "whole pages of the commit log from {start:,} on are zero ({n:,} byte): their write was lost",
            "whole pages of the commit log from {start:,} on are zero ({n:,} bytes): their write was lost",
            start=zeros[0],
            n=zeros[1],
        )
    return plural(
        "the last message was written only in part, at {at:,} of the commit log ({n:,} byte)",
        "the last message was written only in part, at {at:,} of the commit log ({n:,} bytes)",
        at=start,
        n=size,
    )


def of_lost_tail(data: bytes, end: int, *, torn: bool) -> str:
    """The log ends at ``end``, but other files know later messages; ``data`` are the bytes there."""
    if torn:
        return sentence(
            "a message was written only in part at {at:,} of the commit log, and everything after it was lost", at=end
        )
    if not data:
        return sentence("the commit log ends at {end:,}: the files after it are missing or were cut", end=end)
    if not any(data):
        return sentence(
            "the commit log is zero from {end:,} on: what was there never reached the disk, or this is an older copy",
            end=end,
        )
    return sentence("the commit log is broken from {end:,} on", end=end)


def of_body(body: bytes, offset: int, body_at: int, stored: int, explained: Explanation) -> str:
    """The body of the unit at ``offset`` does not have the CRC that was ``stored``."""
    if explained.flips:
        return sentence(
            "bits flipped in the body of the message at {at:,} of the commit log: on the disk, in memory or in a copy",
            at=offset,
        )
    if stored == 0:
        return sentence("the message at {at:,} of the commit log was stored without a CRC", at=offset)
    if zero_pages(body, body_at) is not None:
        return sentence(
            "whole pages of the body of the message at {at:,} of the commit log are zero: their write was lost",
            at=offset,
        )
    return sentence(
        "the body of the message at {at:,} of the commit log differs from what was stored: it was "
        "written only in part, or changed",
        at=offset,
    )


def of_properties(offset: int, zeros: int, length: int, *, is_cut: bool) -> str:
    """The properties of the unit at ``offset`` have changed: of their ``length`` bytes ``zeros`` are zero; with
    ``is_cut`` at one end.
    """
    if zeros and not is_cut:
        return plural(
            "{zeros:,} zero byte overwrote properties of the message at {at:,} of the commit log",
            "{zeros:,} zero bytes overwrote properties of the message at {at:,} of the commit log",
            n=zeros,
            zeros=zeros,
            at=offset,
        )
    if zeros:
        return plural(
            "the message at {at:,} of the commit log was written only in part: {zeros:,} of its "
            "properties' {n:,} byte is zero",
            "the message at {at:,} of the commit log was written only in part: {zeros:,} of its "
            "properties' {n:,} bytes are zero",
            at=offset,
            zeros=zeros,
            n=length,
        )
    return sentence("the properties of the message at {at:,} of the commit log differ from what was stored", at=offset)


def of_stale(units: int, offset: int, *, is_copy: bool) -> str:
    """``units`` from ``offset`` on name another place as their own; ``is_copy`` if the same bytes are at that place
    too.
    """
    if is_copy:
        return plural(
            "units of the commit log were written a second time, at {at:,} ({n:,} unit)",
            "units of the commit log were written a second time, at {at:,} ({n:,} units)",
            at=offset,
            n=units,
        )
    return plural(
        "bytes from another place or from an earlier use of the file are in the commit log from {at:,} on ({n:,} unit)",
        "bytes from another place or from an earlier use of the file are in the commit log from {at:,} on "
        "({n:,} units)",
        at=offset,
        n=units,
    )

"""Times in a filter: ISO texts in the reader's zone or with an offset of their own."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from engine.errors import BadFilter
from engine.query.tree import EPOCH

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d\d:?\d\d)?)?"
)
_EARLIEST = -62135596800000
_LATEST = 253402300799999


def parse_time(text: str, zone: tzinfo | None, at: int, length: int) -> int:
    """Milliseconds of an ISO date or time; without an offset it is meant in ``zone`` (None: the machine's).

    A date alone is its first moment. Raises :class:`BadFilter` at ``at``.
    """
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise BadFilter(f'{text!r} is no time; write it like "2026-11-20 09:41:07"', at, length)
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    ms = int((fraction or "0")[:3].ljust(3, "0"))
    try:
        moment = datetime(  # noqa: DTZ001 - the zone is put on below
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), ms * 1000
        )
        aware = moment.replace(tzinfo=_offset(offset) if offset else zone) if offset or zone else moment.astimezone()
        found = (aware - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError, OSError):
        raise BadFilter(f"there is no such time as {text!r}", at, length) from None
    if not _EARLIEST <= found <= _LATEST:
        raise BadFilter(f"{text!r} lies outside the years 1 to 9999", at, length)
    return found


def _offset(text: str) -> tzinfo:
    if text in ("Z", "z"):
        return UTC
    hours, minutes = int(text[1:3]), int(text[-2:])
    away = timedelta(hours=hours, minutes=minutes)
    return timezone(-away if text[0] == "-" else away)

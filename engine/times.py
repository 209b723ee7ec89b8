"""Times and durations as text. Times are ms since the epoch. Pure, no Qt.

Sentences of the engine contain times in UTC (:func:`time_text`), so that a record is the same on every machine. The
command line shows them in the zone of its machine (:func:`with_local_times`); the window formats them by itself.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from engine.sentences import sentence

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_YEAR_MS = 31_557_600_000
_DURATION_UNITS = (
    (2 * _YEAR_MS, _YEAR_MS, "{n} years"),
    (_DAY_MS, _DAY_MS, "{n} days"),
    (3_600_000, 3_600_000, "{n} h"),
    (60_000, 60_000, "{n} min"),
    (1000, 1000, "{n} s"),
)
"""Units of time: minimum duration (ms) for which a unit is used, its length (ms), the words."""
_UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def time_text(ms: int) -> str:
    """Return a time as ISO text in UTC, ``2026-11-20T01:41:07.220Z``; the bare number if no calendar has it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return str(ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def local_time_text(ms: int) -> str:
    """Return a time in the zone of this machine, ``2026-11-20 09:41:07.220+08:00``; the bare number if no calendar has
    it.
    """
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(ms)


def with_local_times(text: str) -> str:
    """Return ``text`` with each time of :func:`time_text` in the form of :func:`local_time_text`."""
    return _UTC_TIME.sub(_local, text)


def _local(utc_time: re.Match[str]) -> str:
    try:
        moment = datetime.fromisoformat(utc_time[0])
    except ValueError:  # digits in the form of a time that are none, such as month 13
        return utc_time[0]
    return local_time_text((moment - _EPOCH) // timedelta(milliseconds=1))


def duration_text(ms: int) -> str:
    """Return a duration in the largest suitable unit, as ``56.9 years``, ``400 days``, ``2.8 h``, ``12 ms``; years
    only from two on.
    """
    for least, length, unit in _DURATION_UNITS:
        if abs(ms) >= least:
            count = f"{ms / length:,.1f}".removesuffix(".0")
            return sentence("{n} day" if count == "1" and length == _DAY_MS else unit, n=count)
    return sentence("{n} ms", n=ms)

"""Formats of numbers, times and sizes; each form exists once. No Qt.

Numbers have ``,`` every three digits in every language. Times are ms since the epoch, shown in one zone: by default the
machine's.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from viewer.look.catalogue import Catalogue

_EARLIEST = -62_135_596_800_000
_LATEST = 253_402_300_799_999


class _Shown:
    """The time zone of this process; None is that of the machine."""

    zone: tzinfo | None = None
    translations = Catalogue()


def set_translations(translations: Catalogue) -> None:
    """Use this catalogue for lengths of time; an empty one means English."""
    _Shown.translations = translations


def set_zone(zone: tzinfo | None) -> None:
    """Show times in ``zone``; None means the zone of the machine."""
    _Shown.zone = zone
    _clock_parts.cache_clear()


def number(value: int | None) -> str:
    """``81,604,377,362``; nothing for None."""
    return "" if value is None else f"{value:,}"


def number_span(start: int, end: int) -> str:
    """Return ``49–102``, or one number if both are the same."""
    return f"{start:,}" if start == end else f"{start:,}–{end:,}"


def hexadecimal(value: int, digits: int = 8) -> str:
    """``0x5F7A8341`` of a 32-bit number, sign dropped; more digits for wider fields."""
    return f"0x{value & (1 << 4 * digits) - 1:0{digits}X}"


@lru_cache(maxsize=4096)
def _clock_parts(seconds: int) -> tuple[str, str]:
    moment = datetime.fromtimestamp(seconds, UTC).astimezone(_Shown.zone)
    return moment.strftime("%Y-%m-%d"), moment.strftime("%H:%M:%S")


def clock(ms: int | None) -> str:
    """Return ``09:41:07.225``; "" for None, the number itself if no calendar has such a time."""
    if ms is None:
        return ""
    if not _EARLIEST + 86_400_000 < ms < _LATEST - 86_400_000:
        return f"{ms:,}"
    return f"{_clock_parts(ms // 1000)[1]}.{ms % 1000:03d}"


def day(ms: int | None) -> str:
    """Return ``2026-11-20``; "" if no calendar has such a time."""
    if ms is None or not _EARLIEST + 86_400_000 < ms < _LATEST - 86_400_000:
        return ""
    return _clock_parts(ms // 1000)[0]


def moment(ms: int | None) -> str:
    """``2026-11-20 09:41:07.225``."""
    date = day(ms)
    return f"{date} {clock(ms)}" if date else clock(ms)


_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def stamps_shown(text: str) -> str:
    """Return ``text`` of the engine with its UTC times in the zone that is shown."""

    def shown(match: re.Match[str]) -> str:
        return moment(round(datetime.fromisoformat(match[0]).timestamp() * 1000))

    return _STAMP.sub(shown, text)


def full_moment(ms: int | None) -> str:
    """``2026-11-20 09:41:07.225 +08:00``."""
    return f"{moment(ms)} {zone_text(ms)}" if day(ms) else clock(ms)


def zone_text(ms: int | None = None) -> str:
    """``+08:00``: the offset in force at ``ms``, or now."""
    when = datetime.now(UTC) if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
    offset = when.astimezone(_Shown.zone).utcoffset() or timedelta()
    text = timezone(offset).tzname(None).removeprefix("UTC")
    return text or "+00:00"


def size(count: float | None) -> str:
    """``1.00 GiB``, ``358 B``: three figures are enough to compare by eye."""
    if count is None:
        return ""
    if abs(count) < 1024:
        return f"{count:,.0f} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        value /= 1024
        if abs(value) < 999.5 or unit == "EiB":
            break
    return (
        f"{value:.2f} {unit}"
        if abs(value) < 10
        else f"{value:.1f} {unit}"
        if abs(value) < 100
        else f"{value:.0f} {unit}"
    )


_YEAR = 8766
"""Hours, as calendars have them on average."""


def span(ms: int) -> str:
    """A length of time: ``4 ms``, ``12.5 s``, ``3 h 12 min``, ``5 d 2 h``, ``56.9 y``; in words of the language."""
    sign, ms = ("−" if ms < 0 else ""), abs(ms)
    if ms < 1000:
        return f"{sign}{ms} ms"
    if ms < 60_000:
        return f"{sign}{ms / 1000:.1f} s"
    minutes = ms // 60_000
    if minutes < 60:
        return sign + _translated("{minutes} min {seconds} s", minutes=minutes, seconds=ms // 1000 % 60)
    hours = minutes // 60
    if hours < 48:
        return sign + _translated("{hours} h {minutes} min", hours=hours, minutes=minutes % 60)
    if hours < 2 * _YEAR:
        return sign + _translated("{days} d {hours} h", days=hours // 24, hours=hours % 24)
    return sign + _translated("{years:,.1f} y", years=hours / _YEAR)


def _translated(form: str, **values: float) -> str:
    return (_Shown.translations.find(form) or form).format(**values)


def plain(text: str) -> str:
    """``text`` on one line: control characters, line ends and bidirectional marks as their visible pictures."""
    if text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�" if 0xD800 <= code < 0xE000 else "·"


def shorten_middle(text: str, keep: int) -> str:
    """Shorten a name to at most ``keep`` characters: its beginning and its end, which distinguish names."""
    if len(text) <= keep:
        return text
    if keep < 3:
        return "…"[:keep]
    tail = (keep - 1) // 2
    return f"{text[: keep - 1 - tail]}…{text[len(text) - tail :]}"


def shorten_end(text: str, keep: int) -> str:
    """Shorten a sentence to at most ``keep`` characters of its beginning."""
    return text if len(text) <= keep else f"{text[: max(0, keep - 1)]}…"


def shorten_start(text: str, keep: int) -> str:
    """Shorten a name to at most ``keep`` characters of its end."""
    return text if len(text) <= keep else f"…{text[len(text) - max(0, keep - 1) :]}"


def short_ms(duration_ms: float) -> str:
    """``0.29 ms``, or ``< 0.01 ms``."""
    return "< 0.01 ms" if duration_ms < 0.01 else f"{duration_ms:,.2f} ms"


def store_name(path: str) -> str:
    """The short name of the store at ``path``: of its directory, without ``store`` and ``commitlog``."""
    parts = [part for part in path.split("/") if part]
    while len(parts) > 1 and parts[-1] in {"store", "commitlog"}:
        parts.pop()
    return parts[-1] if parts else path

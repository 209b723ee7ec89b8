"""Drawings of a report as SVG inside its HTML: bars, and a line of the log with what stands where. Pure text.

Colours come from the report's style sheet: a drawing is light or dark with the page, and needs nothing from elsewhere.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

WIDE = 1040
ROW = 20
LABEL = 300
"""Px for the names beside bars."""
INK = {"error": "var(--error)", "warn": "var(--warn)", "note": "var(--note)", "ok": "var(--ok)"}


@dataclass(frozen=True, slots=True)
class Bars:
    """Names with a length each and the words behind it; ``words`` says what is drawn."""

    words: str
    rows: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place of the log: a kind of finding, or none for a position that has a name."""

    offset: int
    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """The log from ``low`` to ``high`` (bytes) with marks on it."""

    words: str
    low: int
    high: int
    marks: tuple[Mark, ...]


Figure = Bars | LogLine


def svg(figure: Figure) -> str:
    """The drawing as an ``svg`` element; its words are its name for those who do not see it."""
    inner, height = _bars(figure) if isinstance(figure, Bars) else _line(figure)
    return (
        f'<svg role="img" aria-label="{html.escape(figure.words)}" viewBox="0 0 {WIDE} {height}" width="100%">'
        f"{''.join(inner)}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", quiet: bool = False) -> str:
    ink = "var(--quiet)" if quiet else "var(--text)"
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="12" text-anchor="{anchor}" fill="{ink}">{html.escape(text)}</text>'
    )


def _bars(figure: Bars) -> tuple[list[str], int]:
    longest = max((size for _, size, _ in figure.rows), default=0) or 1
    room = WIDE - LABEL - 170
    made = []
    for number, (name, size, words) in enumerate(figure.rows):
        y = number * ROW
        shown = name if len(name) <= 44 else f"{name[:42]}…"
        width = max(1.0, size / longest * room)
        made += [
            _text(LABEL - 8, y + 14, shown, "end"),
            f'<rect x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="{ROW - 8}" fill="var(--accent)"/>',
            _text(LABEL + width + 8, y + 14, words, quiet=True),
        ]
    return made, max(1, len(figure.rows)) * ROW + 4


def _line(figure: LogLine) -> tuple[list[str], int]:
    span = max(1, figure.high - figure.low)

    def place(offset: int) -> float:
        return 4 + min(1.0, max(0.0, (offset - figure.low) / span)) * (WIDE - 8)

    made = [
        _text(4, 12, f"{figure.low:,}", quiet=True),
        _text(WIDE - 4, 12, f"{figure.high:,}", "end", quiet=True),
        f'<rect x="4" y="20" width="{WIDE - 8}" height="12" fill="var(--raised)" stroke="var(--hair)"/>',
    ]
    y = 32
    for mark in sorted(figure.marks, key=lambda one: one.offset):
        x, y = place(mark.offset), y + ROW
        ink = INK.get(mark.kind, "var(--accent)")
        left = x > WIDE * 0.6
        made += [
            f'<line x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="{y - 4}" stroke="{ink}"/>',
            f'<circle cx="{x:.1f}" cy="26" r="4" fill="{ink}"/>' if mark.kind else "",
            _text(x + (-6 if left else 6), y, f"{mark.name} {mark.offset:,}", "end" if left else "start"),
        ]
    return made, y + 8

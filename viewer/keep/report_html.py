"""A report as one HTML file: words, tables, bytes and pictures, nothing from elsewhere; opens offline, prints well.

Pure text, drawings are SVG inside it: what stands in a report is given by :mod:`viewer.keep.report`.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

STYLE = """
:root{color-scheme:light dark;--text:#1a1e26;--quiet:#667080;--pane:#fff;--raised:#f8f9fb;--hair:#e2e5ea;
--accent:#4549c9;--error:#be2a1b;--warn:#8a5a00;--note:#2b6390;--ok:#23724a}
@media (prefers-color-scheme:dark){:root{--text:#e6e9ef;--quiet:#8a94a4;--pane:#1b1f27;--raised:#222731;--hair:#2b313c;
--accent:#a5a8ff;--error:#ff8a78;--warn:#f0be54;--note:#84bdeb;--ok:#6ccb97}}
body{font:14px/1.5 Inter,"Segoe UI","SF Pro Text","Noto Sans","Noto Sans CJK SC","PingFang SC",
"Microsoft YaHei UI",sans-serif;color:var(--text);background:var(--pane);max-width:1120px;margin:0 auto;padding:24px}
h1{font-size:24px;margin:0}h2{font-size:18px;margin:32px 0 8px;border-bottom:1px solid var(--hair);padding-bottom:4px}
h3{font-size:15px;margin:20px 0 4px}p{margin:4px 0}.quiet{color:var(--quiet)}
table{border-collapse:collapse;width:100%;margin:8px 0;font-size:13px}
th{text-align:left;font-weight:500;color:var(--quiet);background:var(--raised)}
th,td{padding:3px 10px 3px 0;vertical-align:top;border-bottom:1px solid var(--hair)}
td.n{text-align:right}
td.n,td.c,pre,code{font-family:"JetBrains Mono","Cascadia Mono","SF Mono","DejaVu Sans Mono",monospace;
font-size:12px}
pre{background:var(--raised);border:1px solid var(--hair);padding:8px;overflow-x:auto;line-height:1.45}
.error{color:var(--error)}.warn{color:var(--warn)}.note{color:var(--note)}.ok{color:var(--ok)}
img{max-width:100%;border:1px solid var(--hair)}nav a{color:var(--accent);margin-right:14px}
@media print{body{max-width:none}pre{white-space:pre-wrap}}
"""
COVER = "••"
MARKS = {"error": "◆", "warn": "▲", "note": "●", "chat": "○", "ok": "✓", "out": "–", "live": "◉"}


@dataclass(frozen=True, slots=True)
class Table:
    """Heads and cells; cells that are numbers stand right. A cell ``(kind, text)`` has a mark in front."""

    heads: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG with the words beneath it."""

    png: bytes
    words: str


@dataclass(frozen=True, slots=True)
class Part:
    """Something below a heading: sentences, a table, bytes as text, pictures."""

    title: str = ""
    sentences: tuple[str, ...] = ()
    table: Table | None = None
    listing: str = ""
    pictures: tuple[Picture, ...] = ()
    kind: str = ""
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its parts."""

    key: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything; ``data`` is the same for a program, as JSON."""

    language: str
    title: str
    head: tuple[str, ...]
    sections: tuple[Section, ...]
    data: dict[str, Any] = field(default_factory=dict)


def render(report: Report) -> str:
    """The HTML file's text."""
    nav = "".join(f'<a href="#{one.key}">{_e(one.title)}</a>' for one in report.sections)
    body = "".join(_section(one) for one in report.sections)
    head = "".join(f'<p class="quiet">{_e(line)}</p>' for line in report.head)
    # "</" must not end the script; JSON reads \u003c as the same letter.
    data = json.dumps(report.data, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    return (
        f'<!DOCTYPE html>\n<html lang="{_e(report.language)}"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{_e(report.title)}</title><style>{STYLE}</style></head>\n<body><h1>{_e(report.title)}</h1>{head}"
        f'<nav>{nav}</nav>\n{body}\n<script type="application/json" id="storescope-report">{data}</script>\n'
        "</body></html>\n"
    )


def hex_listing(
    data: bytes, start: int, width: int = 16, meant: Container[int] = (), hidden: Container[int] = ()
) -> str:
    """``offset  bytes  text``, a line every ``width`` bytes; a ``>`` stands before the bytes ``meant``, those that are
    ``hidden`` are covered. Both by their positions in ``data``.
    """
    lines = []
    for at in range(0, len(data), width):
        part = range(at, min(at + width, len(data)))
        figures = "".join(
            f"{'>' if n in meant else ' '}{COVER if n in hidden else format(data[n], '02X')}" for n in part
        )
        text = "".join("•" if n in hidden else chr(data[n]) if 32 <= data[n] < 127 else "·" for n in part)
        lines.append(f"{start + at:>20,} {figures:<{width * 3 + 1}} {text}")
    return "\n".join(lines)


def _section(section: Section) -> str:
    parts = "".join(_part(part) for part in section.parts)
    return f'<section id="{_e(section.key)}"><h2>{_e(section.title)}</h2>{parts}</section>\n'


def _part(part: Part) -> str:
    made = []
    if part.title:
        made.append(f'<h3 class="{_e(part.kind)}">{_mark(part.kind)}{_e(part.title)}</h3>')
    made += [f"<p>{_e(line)}</p>" for line in part.sentences if line]
    if part.figure is not None:
        made.append(svg(part.figure))
    if part.table is not None:
        made.append(_table(part.table))
    if part.listing:
        made.append(f"<pre>{_e(part.listing)}</pre>")
    for picture in part.pictures:
        source = base64.b64encode(picture.png).decode("ascii")
        made.append(f'<p><img alt="{_e(picture.words)}" src="data:image/png;base64,{source}"></p>')
        made.append(f'<p class="quiet">{_e(picture.words)}</p>')
    return "".join(made)


def _table(table: Table) -> str:
    heads = "".join(f"<th>{_e(head)}</th>" for head in table.heads)
    rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table.rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(cell: object) -> str:
    match cell:
        case None:
            return "<td></td>"
        case bool():
            return f"<td>{str(cell).lower()}</td>"
        case int():
            return f'<td class="n">{cell:,}</td>'
        case (str(kind), str(text)):
            return f'<td class="{_e(kind)}">{_mark(kind)}{_e(text)}</td>'
    return f"<td>{_e(str(cell))}</td>"


def _mark(kind: str) -> str:
    return f"{MARKS[kind]} " if kind in MARKS else ""


def _e(text: str) -> str:
    return html.escape(text)


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
    for place, (name, length, said) in enumerate(figure.rows):
        y = place * ROW
        shown = name if len(name) <= 44 else f"{name[:42]}…"
        width = max(1.0, length / longest * room)
        made += [
            _text(LABEL - 8, y + 14, shown, "end"),
            f'<rect x="{LABEL}" y="{y + 4}" width="{width:.1f}" height="{ROW - 8}" fill="var(--accent)"/>',
            _text(LABEL + width + 8, y + 14, said, quiet=True),
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

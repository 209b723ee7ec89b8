"""Writes a report as one HTML file that opens offline and prints well.

Plain text: drawings are inline SVG, nothing is loaded from elsewhere.
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
    """Headings and cells; numbers are right-aligned. A cell ``(kind, text)`` has a mark in front."""

    heads: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG with its caption."""

    png: bytes
    words: str


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a section: sentences, a table, bytes as text, pictures."""

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
    """A whole report; ``data`` is the same content for programs, as JSON."""

    language: str
    title: str
    head: tuple[str, ...]
    sections: tuple[Section, ...]
    data: dict[str, Any] = field(default_factory=dict)


def render(report: Report) -> str:
    """Return the text of the HTML file."""
    nav = "".join(f'<a href="#{section.key}">{_escape(section.title)}</a>' for section in report.sections)
    body = "".join(_section(section) for section in report.sections)
    head = "".join(f'<p class="quiet">{_escape(line)}</p>' for line in report.head)
    # "</" must not end the script; JSON reads \u003c as the same letter.
    data = json.dumps(report.data, ensure_ascii=False, indent=1).replace("<", "\\u003c")
    return (
        f'<!DOCTYPE html>\n<html lang="{_escape(report.language)}"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{_escape(report.title)}</title><style>{STYLE}</style></head>\n<body><h1>{_escape(report.title)}</h1>{head}"
        f'<nav>{nav}</nav>\n{body}\n<script type="application/json" id="storescope-report">{data}</script>\n'
        "</body></html>\n"
    )


def hex_listing(
    data: bytes, start: int, width: int = 16, marked: Container[int] = (), hidden: Container[int] = ()
) -> str:
    """Format bytes as lines ``offset  bytes  text`` of ``width`` bytes.

    A ``>`` stands before each byte in ``marked``; bytes in ``hidden`` are covered. Both are positions in
    ``data``.
    """
    lines = []
    for line_start in range(0, len(data), width):
        line = range(line_start, min(line_start + width, len(data)))
        digits = "".join(
            f"{'>' if position in marked else ' '}{COVER if position in hidden else format(data[position], '02X')}"
            for position in line
        )
        text = "".join(
            "•" if position in hidden else chr(data[position]) if 32 <= data[position] < 127 else "·"
            for position in line
        )
        lines.append(f"{start + line_start:>20,} {digits:<{width * 3 + 1}} {text}")
    return "\n".join(lines)


def _section(section: Section) -> str:
    parts = "".join(_part(part) for part in section.parts)
    return f'<section id="{_escape(section.key)}"><h2>{_escape(section.title)}</h2>{parts}</section>\n'


def _part(part: Part) -> str:
    elements = []
    if part.title:
        elements.append(f'<h3 class="{_escape(part.kind)}">{_mark(part.kind)}{_escape(part.title)}</h3>')
    elements += [f"<p>{_escape(line)}</p>" for line in part.sentences if line]
    if part.figure is not None:
        elements.append(svg(part.figure))
    if part.table is not None:
        elements.append(_table(part.table))
    if part.listing:
        elements.append(f"<pre>{_escape(part.listing)}</pre>")
    for picture in part.pictures:
        source = base64.b64encode(picture.png).decode("ascii")
        elements.append(f'<p><img alt="{_escape(picture.words)}" src="data:image/png;base64,{source}"></p>')
        elements.append(f'<p class="quiet">{_escape(picture.words)}</p>')
    return "".join(elements)


def _table(table: Table) -> str:
    heads = "".join(f"<th>{_escape(head)}</th>" for head in table.heads)
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
            return f'<td class="{_escape(kind)}">{_mark(kind)}{_escape(text)}</td>'
    return f"<td>{_escape(str(cell))}</td>"


def _mark(kind: str) -> str:
    return f"{MARKS[kind]} " if kind in MARKS else ""


def _escape(text: str) -> str:
    return html.escape(text)


FIGURE_WIDTH = 1040
BAR_HEIGHT = 20
LABEL_WIDTH = 300
"""Px for the names beside bars."""
INK = {"error": "var(--error)", "warn": "var(--warn)", "note": "var(--note)", "ok": "var(--ok)"}


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars: a name, a length and its text each; ``words`` describes the figure."""

    words: str
    rows: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on the log: ``kind`` is the severity of a finding, empty for a position."""

    offset: int
    name: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """The log from ``start_offset`` to ``end_offset`` (bytes) with marks on it."""

    words: str
    start_offset: int
    end_offset: int
    marks: tuple[Mark, ...]


Figure = Bars | LogLine


def svg(figure: Figure) -> str:
    """Return the figure as an ``svg`` element; its description is the accessible name."""
    inner, height = _bars(figure) if isinstance(figure, Bars) else _line(figure)
    return (
        f'<svg role="img" aria-label="{html.escape(figure.words)}" viewBox="0 0 {FIGURE_WIDTH} {height}" width="100%">'
        f"{''.join(inner)}</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", quiet: bool = False) -> str:
    ink = "var(--quiet)" if quiet else "var(--text)"
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="12" text-anchor="{anchor}" fill="{ink}">{html.escape(text)}</text>'
    )


def _bars(figure: Bars) -> tuple[list[str], int]:
    longest = max((size for _, size, _ in figure.rows), default=0) or 1
    max_width = FIGURE_WIDTH - LABEL_WIDTH - 170
    elements = []
    for number, (name, length, value_text) in enumerate(figure.rows):
        y = number * BAR_HEIGHT
        shown = name if len(name) <= 44 else f"{name[:42]}…"
        width = max(1.0, length / longest * max_width)
        elements += [
            _text(LABEL_WIDTH - 8, y + 14, shown, "end"),
            f'<rect x="{LABEL_WIDTH}" y="{y + 4}" width="{width:.1f}" height="{BAR_HEIGHT - 8}" fill="var(--accent)"/>',
            _text(LABEL_WIDTH + width + 8, y + 14, value_text, quiet=True),
        ]
    return elements, max(1, len(figure.rows)) * BAR_HEIGHT + 4


def _line(figure: LogLine) -> tuple[list[str], int]:
    span = max(1, figure.end_offset - figure.start_offset)

    def place(offset: int) -> float:
        return 4 + min(1.0, max(0.0, (offset - figure.start_offset) / span)) * (FIGURE_WIDTH - 8)

    elements = [
        _text(4, 12, f"{figure.start_offset:,}", quiet=True),
        _text(FIGURE_WIDTH - 4, 12, f"{figure.end_offset:,}", "end", quiet=True),
        f'<rect x="4" y="20" width="{FIGURE_WIDTH - 8}" height="12" fill="var(--raised)" stroke="var(--hair)"/>',
    ]
    y = 32
    for mark in sorted(figure.marks, key=lambda drawn_mark: drawn_mark.offset):
        x, y = place(mark.offset), y + BAR_HEIGHT
        ink = INK.get(mark.kind, "var(--accent)")
        label_left_of_mark = x > FIGURE_WIDTH * 0.6
        elements += [
            f'<line x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="{y - 4}" stroke="{ink}"/>',
            f'<circle cx="{x:.1f}" cy="26" r="4" fill="{ink}"/>' if mark.kind else "",
            _text(
                x + (-6 if label_left_of_mark else 6),
                y,
                f"{mark.name} {mark.offset:,}",
                "end" if label_left_of_mark else "start",
            ),
        ]
    return elements, y + 8

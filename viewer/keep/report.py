"""What stands in the report on a store: findings with their bytes, the recovery plan, positions, groups, bookmarks.

Gathered in a thread from the open snapshot and from what the window has worked out. What is masked is left
out, and with it notes on bookmarks and pictures of the window: what is left are drawings, places, sizes, times, names
of topics (and of groups and light queues, where these are not masked), and of the bytes those that tell nothing of a
message.

A report as one HTML file: words, tables, bytes and pictures, nothing from elsewhere; opens offline, prints well.

Pure text, drawings are SVG inside it: what stands in a report is given by :mod:`viewer.keep.report`.
"""

from __future__ import annotations

import base64
import html
import json
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.codec.unit_fields import BY_NAME, OF_BYTES
from engine.errors import StoreError
from engine.rules.catalogue import RULES
from engine.rules.findings import SEVERITIES, Finding
from engine.rules.masking import Masking
from viewer.look.assets import language, tr
from viewer.look.engine_words import engine_words
from viewer.look.field_words import MASKS
from viewer.look.formats import full_moment, number, size
from viewer.look.rule_pages import GROUPS, WORDS
from viewer.pane.finding_facts import (
    BYTES_SHOWN,
    bytes_of,
    evidence_facts,
    next_steps,
    place_text,
    title,
)
from viewer.pane.group_rows import order, read_groups, sentence
from viewer.pane.plan_words import plan_rows
from viewer.pane.position_facts import NAMES
from viewer.runtime.bookmarks import Bookmark, Kept
from viewer.runtime.jobs import Control
from viewer.runtime.survey import Survey
from viewer.widgets.hex_pages import HexField, hex_fields

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.store.recovery.plan import RecoveryPlan


MOST_FINDINGS = 500
HIDDEN = "•••"
MOST_BARS = 20
MOST_MARKS = 40
_AT_ONE_PLACE = [name for name, _ in takewhile(lambda one: one[1].width, OF_BYTES)]
HARMLESS = {"size", "tagsCode", *(name for name in _AT_ONE_PLACE if not BY_NAME[name].masked)}
"""Fields whose bytes a masked report shows: of a unit those before the first that may lie elsewhere."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the window knows and the report is to say."""

    survey: Survey | None
    findings: tuple[Finding, ...]
    complete: bool
    plan: RecoveryPlan | None
    kept: Kept
    versions: str
    mask: Masking = field(default_factory=Masking)
    harmed: bool = False
    """Whether something is lost or wrong already, whatever a start does."""
    pictures: tuple[Picture, ...] = ()


def gather(control: Control, store: StoreSnapshot, wanted: Wanted) -> Report:
    """The whole report; reads the disk."""
    mask = wanted.mask
    steps: tuple[Callable[[], Section | None], ...] = (
        lambda: _store(store, wanted, mask),
        lambda: _findings(control, store, wanted, mask),
        lambda: _recovery(wanted, mask),
        lambda: _positions(store, mask),
        lambda: _groups(store, mask),
        lambda: _bookmarks(store, wanted, mask),
        lambda: _configuration(store, mask),
        lambda: _pictures(wanted),
        lambda: Section("versions", tr("Versions"), (Part(listing=mask.words(wanted.versions)),)),
    )
    sections = []
    for done, step in enumerate(steps):
        control.check()
        control.report(done, len(steps))
        made = step()
        if made is not None:
            sections.append(made)
    name = wanted.survey.name if wanted.survey is not None else store.path.name
    head = [full_moment(round(time.time() * 1000)), f"Storescope {__version__}"]
    if mask.any:
        parts = ", ".join(tr(MASKS[part]) for part in mask.parts)
        head.append(tr("Masked: {parts}. Notes and pictures are left out.", parts=parts))
    heading = tr("Report on {name}", name=name.rsplit("/", 1)[-1] if mask.any else name)
    return Report(language().replace("_", "-"), heading, tuple(head), tuple(sections), _data(wanted, mask))


def _store(store: StoreSnapshot, wanted: Wanted, mask: Masking) -> Section:
    seen = wanted.survey
    rows: list[tuple[object, ...]] = [(tr("Path"), mask.words(str(store.path)))]
    if seen is not None:
        rows += [
            (tr("State"), (seen.state[0], tr(seen.state[1]))),
            (tr("Format"), seen.kinds),
            (tr("Commit log"), tr("{n:,} files, {size}, {low:,} to {high:,}", n=seen.log_files,
                                  size=size(seen.log_bytes), low=seen.min_offset, high=seen.max_offset)),
            (tr("First message"), full_moment(seen.first_time)),
            (tr("Last message"), full_moment(seen.last_time)),
            (tr("Topics"), len(seen.topics)),
            (tr("Messages"), seen.messages),
            (tr("Index files"), len(seen.index)),
            (tr("Consumer groups"), seen.groups),
        ]  # fmt: skip
    notes = tuple(mask.words(engine_words(note)) for note in (seen.notes if seen is not None else ()))
    own = () if mask.any else tuple(wanted.kept.notes.splitlines())
    topics = _topics(seen, mask) if seen is not None else ()
    parts = (
        Part(table=Table(("", ""), tuple(rows)), sentences=notes),
        Part(tr("Notes"), own) if own else Part(),
        *topics,
    )
    return Section("store", tr("Store"), parts)


def _topics(seen: Survey, mask: Masking) -> tuple[Part, ...]:
    largest = [(mask.topic(topic.name), topic) for topic in sorted(seen.topics, key=lambda one: -one.bytes)]
    rows = tuple((name, len(topic.queues), topic.count, size(topic.bytes)) for name, topic in largest)
    heads = (tr("Topic"), tr("Queues"), tr("Messages"), tr("about"))
    bars = tuple((name, topic.bytes, size(topic.bytes)) for name, topic in largest[:MOST_BARS])
    drawn = Bars(tr("Bytes of each topic in the log"), bars)
    return (Part(tr("Topics"), figure=drawn, table=Table(heads, rows)),) if rows else ()


def _findings(control: Control, store: StoreSnapshot, wanted: Wanted, mask: Masking) -> Section:
    if not wanted.findings:
        said = tr("Nothing to complain about: every rule looked at the whole store.")
        return Section("findings", tr("Findings"), (Part(
            sentences=(said if wanted.complete else tr("This store has not been checked."),)),))  # fmt: skip
    heads = ("", tr("Rule"), tr("Finding"), tr("Place"))
    rows = tuple(
        ((one.severity, tr(WORDS[one.severity])), one.id, title(one), mask.words(place_text(one)))
        for one in wanted.findings[:MOST_FINDINGS]
    )
    edge: tuple[str, ...] = ()
    if not wanted.complete:
        unread = any(not one.id for one in wanted.findings)
        edge = (tr("Incomplete: unread files were not checked.") if unread
                else tr("The check was stopped: this is what the part it saw shows."),)  # fmt: skip
    if len(wanted.findings) > MOST_FINDINGS:
        edge += (tr("The first {n:,} of {all:,} findings.", n=MOST_FINDINGS, all=len(wanted.findings)),)
    parts = [Part(sentences=edge, figure=_where(store, wanted.findings), table=Table(heads, rows))]
    for one in wanted.findings[:MOST_FINDINGS]:
        control.check()
        parts.append(_finding(store, one, mask))
    return Section("findings", tr("Findings"), tuple(parts))


def _where(store: StoreSnapshot, findings: Sequence[Finding]) -> LogLine | None:
    """The log with its findings, the gravest first where there are many; None where none of them lies in it."""
    log = store.log
    found = [one for one in findings if one.group == "log" and one.offset is not None]
    found.sort(key=lambda one: -SEVERITIES.index(one.severity))
    marks = tuple(Mark(one.offset or 0, one.id, one.severity) for one in found[:MOST_MARKS])
    if not marks:
        return None
    return LogLine(tr("Where the findings lie in the log"), max(log.min_offset, 0), log.end_offset, marks)


def _finding(store: StoreSnapshot, one: Finding, mask: Masking) -> Part:
    rule = RULES.get(one.id)
    steps = [f"{n}. {step} {words}".strip() for n, (step, words) in enumerate(next_steps(one, str(store.path)), 1)]
    seen = replace(one, evidence=mask.evidence("", one.evidence), file=mask.path(one.file)) if mask.any else one
    facts = [fact for fact in evidence_facts(seen) if fact[0] != tr("File")]
    facts.append((tr("File"), mask.path(one.file) or ""))
    if one.offset is not None:
        facts.append((tr("Offset"), number(one.offset)))
    issues, group = ", ".join(one.known_issues), str(one.evidence.get("group") or "")
    return Part(
        f"{one.id} {title(one)}",
        (
            mask.about(group, engine_words(one.message)),
            tr(rule.explanation) if rule is not None else "",
            f"{tr(WORDS[one.severity])} · {tr(GROUPS[one.group])}",
            *(mask.about(group, step) for step in steps),
            tr("Known issues: {issues}", issues=issues) if issues else "",
        ),
        Table(("", ""), tuple(facts)),
        _bytes(store, one, mask),
        kind=one.severity,
    )


def _bytes(store: StoreSnapshot, one: Finding, mask: Masking) -> str:
    """The bytes meant; masked, those of bodies, hosts and properties are covered, and all where no unit can be told."""
    log = store.log
    try:
        found = bytes_of(one, log.read, log.end_offset)
        if found.read is None or found.size <= 0:
            return ""
        size = min(found.size, BYTES_SHOWN)
        plain = not mask.any or one.group in {"checkpoint", "state"}
        hidden = frozenset[int]() if plain else _covered(found.fields, size)
        if len(hidden) == size:
            return ""
        meant = {at - found.start for at, length, _ in found.frames for at in range(at, at + length)}
        return hex_listing(found.read(found.start, size), found.start, meant=meant, hidden=hidden)
    except (StoreError, OSError) as error:
        return mask.words(str(error))


def _covered(fields: Sequence[HexField], size: int) -> frozenset[int]:
    """Positions that a masked report covers: whatever is not known to be harmless."""
    told = {at for field in fields if field.name in HARMLESS for at in range(field.position, field.end)}
    return frozenset(range(size)) - told


def _recovery(wanted: Wanted, mask: Masking) -> Section | None:
    if wanted.plan is None:
        return None
    groups = {beyond.group for beyond in wanted.plan.groups_beyond}
    rows = tuple(
        (
            (row.mark, row.what),
            mask.group(row.value) if row.value in groups else mask.words(row.value),
            mask.words(row.why),
        )
        for row in plan_rows(wanted.plan, harmed=wanted.harmed)
    )
    said = tr("What the next start of a broker would do with this store; nothing was changed.")
    table = Table((tr("What"), tr("Value"), tr("Why")), rows)
    return Section("recovery", tr("Recovery"), (Part(sentences=(said,), table=table),))


def _positions(store: StoreSnapshot, mask: Masking) -> Section:
    from engine.inspection.positions import positions

    found = positions(store)
    named = {name: getattr(found, name) for name in ("min", "wrote", "committed", "flushed", "confirm", "dispatched",
                                                     "queue_max", "index_end")} | found.checkpoint  # fmt: skip
    rows = tuple(
        (tr(NAMES.get(name, name)), one.offset, mask.words(engine_words(one.how or one.why or "")))
        for name, one in named.items()
    )
    heads = (tr("Position"), tr("Offset"), tr("How it is known, or why not"))
    marks = tuple(Mark(one.offset, tr(NAMES.get(name, name))) for name, one in named.items()
                  if one.offset is not None and name not in found.checkpoint)  # fmt: skip
    log = store.log
    drawn = LogLine(tr("Where the positions stand in the log"), max(log.min_offset, 0), log.end_offset, marks)
    return Section("positions", tr("Positions"), (Part(figure=drawn if marks else None, table=Table(heads, rows)),))


def _groups(store: StoreSnapshot, mask: Masking) -> Section | None:
    try:
        rows = order(read_groups(store).rows)
    except StoreError as error:
        return Section("groups", tr("Consumer groups"), (Part(sentences=(str(error),)),))
    if not rows:
        return None
    shown = tuple(
        (
            mask.group(one.group),
            mask.topic(one.topic),
            one.queue_id,
            one.offset,
            one.max_offset,
            one.behind,
            mask.about(one.group, sentence(row)),
        )
        for row in rows
        for one in (row.progress,)
    )
    heads = (tr("Group"), tr("Topic"), tr("Queue"), tr("Next offset"), tr("Queue's end"), tr("Behind"), "")
    return Section("groups", tr("Consumer groups"), (Part(table=Table(heads, shown)),))


def _bookmarks(store: StoreSnapshot, wanted: Wanted, mask: Masking) -> Section | None:
    if not wanted.kept.marks:
        return None
    parts = tuple(_bookmark(store, one, mask) for one in wanted.kept.marks)
    return Section("bookmarks", tr("Bookmarks"), parts)


def _bookmark(store: StoreSnapshot, one: Bookmark, mask: Masking) -> Part:
    from engine.codec.message import Unit, parts

    said = [mask.words(one.place)] + ([] if mask.any else one.note.splitlines())
    listing = ""
    if one.offset is not None:
        try:
            unit = store.log.unit_at(one.offset)
            if isinstance(unit, Unit):
                said.append(
                    f"{mask.topic(unit.topic)}/{unit.queue_id}/{unit.queue_offset:,} · {size(unit.size)} · "
                    f"{full_moment(unit.store_timestamp)} · CRC {unit.crc}"
                )
            length = min(unit.size, BYTES_SHOWN) if isinstance(unit, Unit) else 64
            data = store.log.read(one.offset, length)
            fields = hex_fields(parts(data)) if mask.any and isinstance(unit, Unit) else ()
            hidden = _covered(fields, length) if mask.any else frozenset[int]()
            listing = "" if len(hidden) == length else hex_listing(data, one.offset, hidden=hidden)
        except (StoreError, OSError) as error:
            said.append(str(error))
    return Part(HIDDEN if mask.any else one.name, tuple(said), listing=listing, kind=one.kind)


def _configuration(store: StoreSnapshot, mask: Masking) -> Section:
    geometry = store.geometry
    rows: list[tuple[object, ...]] = [
        (name, value if isinstance(value, int) else str(value)) for name, value in _fields(geometry)
    ]
    parts = [Part(tr("Sizes, as worked out from the files"), table=Table(("", ""), tuple(rows)))]
    if store.config is not None:
        told = [(key, mask.evidence(key, str(value))) for key, value in _fields(store.config)]
        parts.append(Part(tr("The broker's configuration"), table=Table(("", ""), tuple(told))))
    return Section("configuration", tr("Config"), tuple(parts))


def _fields(value: object) -> Sequence[tuple[str, Any]]:
    names = getattr(type(value), "__dataclass_fields__", {})
    return [(name, getattr(value, name)) for name in names]


def _pictures(wanted: Wanted) -> Section | None:
    if wanted.mask.any or not wanted.pictures:
        return None
    return Section("pictures", tr("Pictures"), (Part(pictures=wanted.pictures),))


def _data(wanted: Wanted, mask: Masking) -> dict[str, Any]:
    """The same for a program: findings as ``storescope check --json`` prints them, and the bookmarks."""
    found = []
    for one in wanted.findings[:MOST_FINDINGS]:
        found.append(mask.record(one.record()))
    marks = [{"place": mask.words(one.place)} | ({} if mask.any else {"name": one.name, "note": one.note})
             for one in wanted.kept.marks]  # fmt: skip
    return {"program": f"storescope {__version__}", "masked": mask.any, "complete": wanted.complete, "findings": found,
            "bookmarks": marks}  # fmt: skip


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

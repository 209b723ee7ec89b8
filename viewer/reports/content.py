"""Content of the report on a store: findings with their bytes, recovery plan, positions, groups, bookmarks.

It is gathered in a thread from the open snapshot and from what the window has worked out. Masked parts are left out,
and with them notes on bookmarks and pictures of the window. Drawings, places, sizes, times and names of topics stay
(names of groups and light queues too, unless they are masked), and of the bytes those that reveal nothing of a
message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from engine import __version__
from engine.codec.unit_fields import BY_NAME, OF_BYTES
from engine.errors import StoreError
from engine.rules.catalogue import RULES
from engine.rules.findings import SEVERITIES, Finding
from engine.rules.masking import Masking
from viewer.look.assets import language, tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.field_words import MASKS
from viewer.look.formats import full_moment, number, size
from viewer.look.rule_pages import GROUPS, WORDS
from viewer.pane.finding_bytes import BYTES_SHOWN, bytes_of
from viewer.pane.finding_facts import (
    evidence_facts,
    next_steps,
    place_text,
    title,
)
from viewer.pane.group_rows import order, read_groups, sentence
from viewer.pane.incident_words import incident_of, lost_kind, lost_rows
from viewer.pane.plan_words import plan_rows, release_name
from viewer.pane.position_facts import NAMES
from viewer.reports.report_html import Bars, LogLine, Mark, Part, Picture, Report, Section, Table, hex_listing
from viewer.runtime.bookmarks import Bookmark, SavedBookmarks
from viewer.runtime.jobs import Control
from viewer.runtime.survey import Survey
from viewer.widgets.hex_pages import HexField, hex_fields

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.store.recovery.plan import RecoveryPlan


MAX_FINDINGS = 500
HIDDEN = "•••"
MAX_BARS = 20
MAX_MARKS = 40
_FIXED_POSITION_FIELDS = [name for name, _ in takewhile(lambda field: field[1].width, OF_BYTES)]
HARMLESS = {"size", "tagsCode", *(name for name in _FIXED_POSITION_FIELDS if not BY_NAME[name].masked)}
"""Fields whose bytes a masked report shows: those of a unit at fixed positions, unless they are masked."""


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """Input of the report: the window's facts about the store, and the masking."""

    survey: Survey | None
    findings: tuple[Finding, ...]
    complete: bool
    plan: RecoveryPlan | None
    saved: SavedBookmarks
    versions: str
    mask: Masking = field(default_factory=Masking)
    harmed: bool = False
    """True if something is lost or damaged already, independent of a start."""
    pictures: tuple[Picture, ...] = ()
    incident: Mapping[str, Any] | None = None
    """The ``incident`` of the check's summary; also None if a part of the store could not be read."""


def gather(control: Control, store: StoreSnapshot, inputs: ReportInputs) -> Report:
    """Build the whole report; reads the disk."""
    mask = inputs.mask
    steps: tuple[Callable[[], Section | None], ...] = (
        lambda: _incident(inputs, mask),
        lambda: _store(store, inputs, mask),
        lambda: _findings(control, store, inputs, mask),
        lambda: _recovery(inputs, mask),
        lambda: _positions(store, mask),
        lambda: _groups(store, mask),
        lambda: _bookmarks(store, inputs, mask),
        lambda: _configuration(store, mask),
        lambda: _pictures(inputs),
        lambda: Section("versions", tr("Versions"), (Part(listing=mask.words(inputs.versions)),)),
    )
    sections = []
    for done_count, step in enumerate(steps):
        control.check()
        control.report(done_count, len(steps))
        section = step()
        if section is not None:
            sections.append(section)
    name = inputs.survey.name if inputs.survey is not None else store.path.name
    head = [full_moment(round(time.time() * 1000)), f"Storescope {__version__}"]
    if mask.any:
        parts = ", ".join(tr(MASKS[part]) for part in mask.parts)
        head.append(tr("Masked: {parts}. Notes and pictures are left out.", parts=parts))
    heading = tr("Report on {name}", name=name.rsplit("/", 1)[-1] if mask.any else name)
    return Report(language().replace("_", "-"), heading, tuple(head), tuple(sections), _data(inputs, mask))


def _incident(inputs: ReportInputs, mask: Masking) -> Section | None:
    """Build the section on what happened, what is lost, what a start will do, and the first steps."""
    incident = incident_of(inputs.incident, complete=inputs.complete)
    if incident is None:
        return None
    answers = (
        (tr("What happened"), incident.happened),
        (tr("Lost already"), incident.lost),
        (incident.start_title, incident.start),
    )
    rows = tuple(
        (name, (answer.mark or "out", mask.words(answer.clause)), mask.words(answer.why)) for name, answer in answers
    )
    steps = tuple(
        mask.words(f"{number_}. {text}" + (f" {command}" if command else ""))
        for number_, (text, command) in enumerate(incident.steps, 1)
    )
    parts = [
        Part(table=Table(("", "", tr("Why")), rows)),
        Part(tr("First steps"), steps),
        *(
            Part(title_, table=_lost_table(queues, mask))
            for title_, queues in ((tr("Lost already"), incident.already), (incident.start_title, incident.to_come))
            if queues
        ),
    ]
    return Section("incident", tr("Incident"), tuple(parts))


def _lost_table(queues: Sequence[Mapping[str, Any]], mask: Masking) -> Table:
    """Return the table "Lost by topic": each topic's sum, its queues, and the total."""
    rows = lost_rows(queues)
    columns = lost_kind(rows).columns
    cells = tuple(
        tuple(
            mask.topic(column.text(row)) if column.key == "topic" and row.topic else column.text(row)
            for column in columns
        )
        for row in rows
    )
    return Table(tuple(tr(column.title) for column in columns), cells)


def _store(store: StoreSnapshot, inputs: ReportInputs, mask: Masking) -> Section:
    survey = inputs.survey
    rows: list[tuple[object, ...]] = [(tr("Path"), mask.words(str(store.path)))]
    if survey is not None:
        rows += [
            (tr("State"), (survey.state[0], tr(survey.state[1]))),
            (tr("Format"), survey.kinds),
            (
                tr("Commit log"),
                tr_plural(
                    "{n:,} file, {size}, {low:,} to {high:,}",
                    "{n:,} files, {size}, {low:,} to {high:,}",
                    n=survey.log_files,
                    size=size(survey.log_bytes),
                    low=survey.min_offset,
                    high=survey.max_offset,
                ),
            ),
            (tr("First message"), full_moment(survey.first_time)),
            (tr("Last message"), full_moment(survey.last_time)),
            (tr("Topics"), len(survey.topics)),
            (tr("Messages"), survey.messages),
            (tr("Index files"), len(survey.index)),
            (tr("Consumer groups"), survey.groups),
        ]
    notes = tuple(mask.words(engine_words(note)) for note in (survey.notes if survey is not None else ()))
    user_notes = () if mask.any else tuple(inputs.saved.notes.splitlines())
    topics = _topics(survey, mask) if survey is not None else ()
    parts = (
        Part(table=Table(("", ""), tuple(rows)), sentences=notes),
        Part(tr("Notes"), user_notes) if user_notes else Part(),
        *topics,
    )
    return Section("store", tr("Store"), parts)


def _topics(survey: Survey, mask: Masking) -> tuple[Part, ...]:
    by_size = [
        (mask.topic(topic.name), topic)
        for topic in sorted(survey.topics, key=lambda topic_account: -topic_account.bytes)
    ]
    rows = tuple((name, len(topic.queues), topic.count, size(topic.bytes)) for name, topic in by_size)
    heads = (tr("Topic"), tr("Queues"), tr("Messages"), tr("about"))
    bars = tuple((name, topic.bytes, size(topic.bytes)) for name, topic in by_size[:MAX_BARS])
    figure = Bars(tr("Bytes of each topic in the log"), bars)
    return (Part(tr("Topics"), figure=figure, table=Table(heads, rows)),) if rows else ()


def _findings(control: Control, store: StoreSnapshot, inputs: ReportInputs, mask: Masking) -> Section:
    if not inputs.findings:
        message = tr("No problems found: every rule checked the whole store.")
        return Section(
            "findings",
            tr("Findings"),
            (Part(sentences=(message if inputs.complete else tr("This store has not been checked."),)),),
        )
    heads = ("", tr("Rule"), tr("Finding"), tr("Place"))
    rows = tuple(
        ((finding.severity, tr(WORDS[finding.severity])), finding.id, title(finding), mask.words(place_text(finding)))
        for finding in inputs.findings[:MAX_FINDINGS]
    )
    remarks: tuple[str, ...] = ()
    if not inputs.complete:
        has_unread_files = any(not finding.id for finding in inputs.findings)
        remarks = (
            tr("Incomplete: unread files were not checked.")
            if has_unread_files
            else tr("The check was stopped: these are the findings up to there."),
        )
    if len(inputs.findings) > MAX_FINDINGS:
        remarks += (
            tr_plural(
                "The first {part:,} of {n:,} finding.",
                "The first {part:,} of {n:,} findings.",
                part=MAX_FINDINGS,
                n=len(inputs.findings),
            ),
        )
    parts = [Part(sentences=remarks, figure=_findings_line(store, inputs.findings), table=Table(heads, rows))]
    for finding in inputs.findings[:MAX_FINDINGS]:
        control.check()
        parts.append(_finding(store, finding, mask))
    return Section("findings", tr("Findings"), tuple(parts))


def _findings_line(store: StoreSnapshot, findings: Sequence[Finding]) -> LogLine | None:
    """Draw the log with its findings, the gravest first; None if no finding lies in the log."""
    log = store.log
    log_findings = [finding for finding in findings if finding.group == "log" and finding.offset is not None]
    log_findings.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    marks = tuple(Mark(finding.offset or 0, finding.id, finding.severity) for finding in log_findings[:MAX_MARKS])
    if not marks:
        return None
    return LogLine(tr("Findings in the log"), max(log.min_offset, 0), log.end_offset, marks)


def _finding(store: StoreSnapshot, finding: Finding, mask: Masking) -> Part:
    rule = RULES.get(finding.id)
    steps = [f"{n}. {step} {words}".strip() for n, (step, words) in enumerate(next_steps(finding, str(store.path)), 1)]
    shown_finding = (
        replace(finding, evidence=mask.evidence("", finding.evidence), file=mask.path(finding.file))
        if mask.any
        else finding
    )
    facts = [fact for fact in evidence_facts(shown_finding) if fact[0] != tr("File")]
    facts.append((tr("File"), mask.path(finding.file) or ""))
    if finding.offset is not None:
        facts.append((tr("Offset"), number(finding.offset)))
    issues, group = ", ".join(finding.known_issues), str(finding.evidence.get("group") or "")
    return Part(
        f"{finding.id} {title(finding)}",
        (
            mask.about(group, engine_words(finding.message)),
            tr(rule.explanation) if rule is not None else "",
            f"{tr(WORDS[finding.severity])} · {tr(GROUPS[finding.group])}",
            *(mask.about(group, step) for step in steps),
            tr("Known issues: {issues}", issues=issues) if issues else "",
        ),
        Table(("", ""), tuple(facts)),
        _bytes(store, finding, mask),
        kind=finding.severity,
    )


def _bytes(store: StoreSnapshot, finding: Finding, mask: Masking) -> str:
    """List the bytes of a finding; in a masked report, bytes of bodies, hosts and properties are covered."""
    log = store.log
    try:
        finding_bytes = bytes_of(finding, log.read, log.end_offset, store.reading)
        if finding_bytes.read is None or finding_bytes.size <= 0:
            return ""
        size = min(finding_bytes.size, BYTES_SHOWN)
        shows_all = not mask.any or finding.group in {"checkpoint", "state"}
        hidden = frozenset[int]() if shows_all else _covered(finding_bytes.fields, size)
        if len(hidden) == size:
            return ""
        marked = {
            position - finding_bytes.start
            for position, length, _ in finding_bytes.frames
            for position in range(position, position + length)
        }
        return hex_listing(
            finding_bytes.read(finding_bytes.start, size), finding_bytes.start, marked=marked, hidden=hidden
        )
    except (StoreError, OSError) as error:
        return mask.words(engine_words(str(error)))


def _covered(fields: Sequence[HexField], size: int) -> frozenset[int]:
    """Return the positions that a masked report covers: all except the fields in ``HARMLESS``."""
    shown = {position for field in fields if field.name in HARMLESS for position in range(field.position, field.end)}
    return frozenset(range(size)) - shown


def _recovery(inputs: ReportInputs, mask: Masking) -> Section | None:
    if inputs.plan is None:
        return None
    groups = {group_beyond.group for group_beyond in inputs.plan.groups_beyond}
    rows = tuple(
        (
            (row.mark, row.subject),
            mask.group(row.amount) if row.amount in groups else mask.words(row.amount),
            mask.words(row.reason),
        )
        for row in plan_rows(inputs.plan, harmed=inputs.harmed)
    )
    sentence = tr(
        "What the next start of {release} would do with this store; nothing was changed.",
        release=release_name(inputs.plan),
    )
    table = Table((tr("What"), tr("Value"), tr("Why")), rows)
    return Section("recovery", tr("Recovery"), (Part(sentences=(sentence,), table=table),))


def _positions(store: StoreSnapshot, mask: Masking) -> Section:
    from engine.inspection.positions import positions

    store_positions = positions(store)
    by_name = {
        name: getattr(store_positions, name)
        for name in ("min", "wrote", "committed", "flushed", "confirm", "dispatched", "queue_max", "index_end")
    } | store_positions.checkpoint
    rows = tuple(
        (tr(NAMES.get(name, name)), position.offset, mask.words(engine_words(position.source or position.why or "")))
        for name, position in by_name.items()
    )
    heads = (tr("Position"), tr("Offset"), tr("How it is known, or why not"))
    marks = tuple(
        Mark(position.offset, tr(NAMES.get(name, name)))
        for name, position in by_name.items()
        if position.offset is not None and name not in store_positions.checkpoint
    )
    log = store.log
    figure = LogLine(tr("Positions in the log"), max(log.min_offset, 0), log.end_offset, marks)
    return Section("positions", tr("Positions"), (Part(figure=figure if marks else None, table=Table(heads, rows)),))


def _groups(store: StoreSnapshot, mask: Masking) -> Section | None:
    try:
        rows = order(read_groups(store).rows)
    except StoreError as error:
        return Section("groups", tr("Consumer groups"), (Part(sentences=(engine_words(str(error)),)),))
    if not rows:
        return None
    shown = tuple(
        (
            mask.group(progress.group),
            mask.topic(progress.topic),
            progress.queue_id,
            progress.offset,
            progress.max_offset,
            progress.behind,
            mask.about(progress.group, sentence(row)),
        )
        for row in rows
        for progress in (row.progress,)
    )
    heads = (tr("Group"), tr("Topic"), tr("Queue"), tr("Next offset"), tr("Queue's end"), tr("Behind"), "")
    return Section("groups", tr("Consumer groups"), (Part(table=Table(heads, shown)),))


def _bookmarks(store: StoreSnapshot, inputs: ReportInputs, mask: Masking) -> Section | None:
    if not inputs.saved.marks:
        return None
    parts = tuple(_bookmark(store, bookmark, mask) for bookmark in inputs.saved.marks)
    return Section("bookmarks", tr("Bookmarks"), parts)


def _bookmark(store: StoreSnapshot, bookmark: Bookmark, mask: Masking) -> Part:
    from engine.codec.message import Unit, list_fields

    sentences = [mask.words(bookmark.place)] + ([] if mask.any else bookmark.note.splitlines())
    listing = ""
    if bookmark.offset is not None:
        try:
            unit = store.log.unit_at(bookmark.offset)
            if isinstance(unit, Unit):
                sentences.append(
                    f"{mask.topic(unit.topic)}/{unit.queue_id}/{unit.queue_offset:,} · {size(unit.size)} · "
                    f"{full_moment(unit.store_timestamp)} · CRC {unit.crc}"
                )
            length = min(unit.size, BYTES_SHOWN) if isinstance(unit, Unit) else 64
            data = store.log.read(bookmark.offset, length)
            fields = hex_fields(list_fields(data)) if mask.any and isinstance(unit, Unit) else ()
            hidden = _covered(fields, length) if mask.any else frozenset[int]()
            listing = "" if len(hidden) == length else hex_listing(data, bookmark.offset, hidden=hidden)
        except (StoreError, OSError) as error:
            sentences.append(engine_words(str(error)))
    return Part(HIDDEN if mask.any else bookmark.name, tuple(sentences), listing=listing, kind=bookmark.kind)


def _configuration(store: StoreSnapshot, mask: Masking) -> Section:
    geometry = store.geometry
    rows: list[tuple[object, ...]] = [
        (name, value if isinstance(value, int) else str(value)) for name, value in _fields(geometry)
    ]
    parts = [Part(tr("Sizes, as worked out from the files"), table=Table(("", ""), tuple(rows)))]
    if store.config is not None:
        settings = [(key, mask.evidence(key, str(value))) for key, value in _fields(store.config)]
        parts.append(Part(tr("The broker's configuration"), table=Table(("", ""), tuple(settings))))
    return Section("configuration", tr("Config"), tuple(parts))


def _fields(value: object) -> Sequence[tuple[str, Any]]:
    names = getattr(type(value), "__dataclass_fields__", {})
    return [(name, getattr(value, name)) for name in names]


def _pictures(inputs: ReportInputs) -> Section | None:
    if inputs.mask.any or not inputs.pictures:
        return None
    return Section("pictures", tr("Pictures"), (Part(pictures=inputs.pictures),))


def _data(inputs: ReportInputs, mask: Masking) -> dict[str, Any]:
    """Return the report's data for programs: findings as ``storescope check --json`` prints them, and the bookmarks."""
    findings = []
    for item in inputs.findings[:MAX_FINDINGS]:
        findings.append(mask.record(item.record()))
    marks = [
        {"place": mask.words(item.place)} | ({} if mask.any else {"name": item.name, "note": item.note})
        for item in inputs.saved.marks
    ]
    return {
        "program": f"storescope {__version__}",
        "masked": mask.any,
        "complete": inputs.complete,
        "incident": mask.nested(inputs.incident),
        "findings": findings,
        "bookmarks": marks,
    }

"""What stands in the report on a store: findings with their bytes, the recovery plan, positions, groups, bookmarks.

Gathered in a thread from the open snapshot and from what the window has worked out. What is masked is left
out, and with it notes on bookmarks and pictures of the window: what is left are drawings, places, sizes, times, names
of topics (and of groups and light queues, where these are not masked), and of the bytes those that tell nothing of a
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
from viewer.keep.report_html import Bars, LogLine, Mark, Part, Picture, Report, Section, Table, hex_listing
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
from viewer.pane.incident_words import incident_of, lost_kind, lost_rows
from viewer.pane.plan_words import plan_rows, release_name
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
    incident: Mapping[str, Any] | None = None
    """The ``incident`` of the check's summary; None also where a part of the store could not be read."""


def gather(control: Control, store: StoreSnapshot, wanted: Wanted) -> Report:
    """The whole report; reads the disk."""
    mask = wanted.mask
    steps: tuple[Callable[[], Section | None], ...] = (
        lambda: _incident(wanted, mask),
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


def _incident(wanted: Wanted, mask: Masking) -> Section | None:
    """What happened, what is lost and will be, and what to do first: the answers of the incident card."""
    found = incident_of(wanted.incident, complete=wanted.complete)
    if found is None:
        return None
    answers = (
        (tr("What happened"), found.happened),
        (tr("Lost already"), found.lost),
        (found.start_title, found.start),
    )
    rows = tuple(
        (name, (answer.mark or "out", mask.words(answer.said)), mask.words(answer.why)) for name, answer in answers
    )
    steps = tuple(
        mask.words(f"{number_}. {text}" + (f": {command}" if command else ""))
        for number_, (text, command) in enumerate(found.steps, 1)
    )
    parts = [
        Part(table=Table(("", "", tr("Why")), rows)),
        Part(tr("First steps"), steps),
        *(
            Part(title_, table=_lost_table(queues, mask))
            for title_, queues in ((tr("Lost already"), found.already), (tr("By the next start"), found.to_come))
            if queues
        ),
    ]
    return Section("incident", tr("Incident"), tuple(parts))


def _lost_table(queues: Sequence[Mapping[str, Any]], mask: Masking) -> Table:
    """The rows of "Lost by topic": each topic's sum, its queues, and the sum of all."""
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


def _store(store: StoreSnapshot, wanted: Wanted, mask: Masking) -> Section:
    seen = wanted.survey
    rows: list[tuple[object, ...]] = [(tr("Path"), mask.words(str(store.path)))]
    if seen is not None:
        rows += [
            (tr("State"), (seen.state[0], tr(seen.state[1]))),
            (tr("Format"), seen.kinds),
            (
                tr("Commit log"),
                tr(
                    "{n:,} files, {size}, {low:,} to {high:,}",
                    n=seen.log_files,
                    size=size(seen.log_bytes),
                    low=seen.min_offset,
                    high=seen.max_offset,
                ),
            ),
            (tr("First message"), full_moment(seen.first_time)),
            (tr("Last message"), full_moment(seen.last_time)),
            (tr("Topics"), len(seen.topics)),
            (tr("Messages"), seen.messages),
            (tr("Index files"), len(seen.index)),
            (tr("Consumer groups"), seen.groups),
        ]
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
        return Section(
            "findings",
            tr("Findings"),
            (Part(sentences=(said if wanted.complete else tr("This store has not been checked."),)),),
        )
    heads = ("", tr("Rule"), tr("Finding"), tr("Place"))
    rows = tuple(
        ((one.severity, tr(WORDS[one.severity])), one.id, title(one), mask.words(place_text(one)))
        for one in wanted.findings[:MOST_FINDINGS]
    )
    edge: tuple[str, ...] = ()
    if not wanted.complete:
        unread = any(not one.id for one in wanted.findings)
        edge = (
            tr("Incomplete: unread files were not checked.")
            if unread
            else tr("The check was stopped: this is what the part it saw shows."),
        )
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
    said = tr(
        "What the next start of {release} would do with this store; nothing was changed.",
        release=release_name(wanted.plan),
    )
    table = Table((tr("What"), tr("Value"), tr("Why")), rows)
    return Section("recovery", tr("Recovery"), (Part(sentences=(said,), table=table),))


def _positions(store: StoreSnapshot, mask: Masking) -> Section:
    from engine.inspection.positions import positions

    found = positions(store)
    named = {
        name: getattr(found, name)
        for name in ("min", "wrote", "committed", "flushed", "confirm", "dispatched", "queue_max", "index_end")
    } | found.checkpoint
    rows = tuple(
        (tr(NAMES.get(name, name)), one.offset, mask.words(engine_words(one.how or one.why or "")))
        for name, one in named.items()
    )
    heads = (tr("Position"), tr("Offset"), tr("How it is known, or why not"))
    marks = tuple(
        Mark(one.offset, tr(NAMES.get(name, name)))
        for name, one in named.items()
        if one.offset is not None and name not in found.checkpoint
    )
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
    marks = [
        {"place": mask.words(one.place)} | ({} if mask.any else {"name": one.name, "note": one.note})
        for one in wanted.kept.marks
    ]
    return {
        "program": f"storescope {__version__}",
        "masked": mask.any,
        "complete": wanted.complete,
        "incident": mask.nested(wanted.incident),
        "findings": found,
        "bookmarks": marks,
    }

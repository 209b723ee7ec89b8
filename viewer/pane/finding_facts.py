"""Findings as rows and as facts: where a finding leads, which bytes show it, what was expected and found; no Qt."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.message import list_fields
from engine.counted import capital
from engine.errors import CannotRead
from engine.layout import parse_file_name
from engine.mapped.reading import Reading
from engine.rules.catalogue import RULES
from engine.rules.findings import HAPPENED, SEVERITIES, SNAPSHOT_FIRST, STORED_FROM, STORED_TO, Finding, rank
from viewer.look.assets import language, tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, hexadecimal, number, number_span
from viewer.look.rule_pages import GROUPS, WORDS
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.runtime.unread import UnreadLedger
from viewer.widgets.columns import Chip, Column, RecordKind, chip_column
from viewer.widgets.hex_pages import HexField, hex_fields

COUNTS = {
    "error": ("1 error", "{n:,} errors"),
    "warn": ("1 warning", "{n:,} warnings"),
    "note": ("1 note", "{n:,} notes"),
    "chat": ("1 remark", "{n:,} remarks"),
}
NAMES = {"lost": words("Lost"), "queues": words("Queues")}
"""Lists of queues, by their name in the evidence."""
BROKER_LOG = "brokerLog"
"""Lines of a broker's log, in its own words: they are what one looks for there."""
WITNESSES = "witnesses"
"""Sentences, one of each finding that tells of the same fault."""
CRC_RULES = frozenset({"CL03"})
"""Rules that hold one CRC against another."""
LONGEST_VALUE, SHORT_VALUE = 400, 32
BYTES_SHOWN = 256


@dataclass(frozen=True, slots=True)
class Fold:
    """What a click on the line of a cause's followers asks for: to show them, or to hide them again."""

    rule: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding in the list; ``first`` of its group, which has ``of`` findings. ``inside``: it follows from the cause
    above it. A row with ``folded`` is the line that stands for these followers of its finding's rule; ``opened`` where
    they are shown behind it.
    """

    finding: Finding
    first: bool
    of: int
    inside: bool = False
    folded: tuple[Finding, ...] = ()
    opened: bool = False

    @property
    def place(self) -> Place | Fold | None:
        """Where it is seen best."""
        return Fold(self.finding.id) if self.folded else place_of(self.finding)


def finding_rows(
    found: Sequence[Finding], severities: frozenset[str], opened: frozenset[str] = frozenset()
) -> list[FindingRow]:
    """The findings of these severities by group, the group with the gravest first, inside it the gravest first. What
    follows from a finding is one line below it; behind that line each where the rule of the cause is ``opened``.
    """
    shown = [one for one in found if one.severity in severities]
    followers = _followers(shown)
    inside = {id(one) for members in followers.values() for one in members}
    groups: dict[str, list[Finding]] = {}
    for one in shown:
        if id(one) not in inside:
            groups.setdefault(one.group, []).append(one)
    for members in groups.values():
        members.sort(key=rank)
    order = sorted(groups, key=lambda group: (-_grave(groups[group][0]), list(GROUPS).index(group)))
    rows = []
    for group in order:
        for number_, one in enumerate(groups[group]):
            rows.append(FindingRow(one, number_ == 0, len(groups[group])))
            rows += _fold_of(one, tuple(followers.pop(one.id, ())), one.id in opened)
    return rows


def _fold_of(cause: Finding, followers: tuple[Finding, ...], opened: bool) -> Iterator[FindingRow]:
    if followers:
        yield FindingRow(cause, False, 0, True, followers, opened)
    for one in followers if opened else ():
        yield FindingRow(one, False, 0, True)


def _followers(found: Sequence[Finding]) -> dict[str, list[Finding]]:
    """What follows, at first hand or later, from a finding of each rule that nothing here explains."""
    causes = {one.id: one.caused_by for one in found}
    made: dict[str, list[Finding]] = {}
    for one in found:
        root, seen = one.caused_by, {one.id}
        while root in causes and causes[root] in causes and root not in seen:
            seen.add(root)
            root = causes[root]
        if root in causes and root != one.id:
            made.setdefault(root, []).append(one)
    return made


def fold_words(row: FindingRow) -> str:
    """``▸ 16 more follow from it: CF02 16×``."""
    counts: dict[str, int] = {}
    for one in row.folded:
        counts[one.id] = counts.get(one.id, 0) + 1
    rules = ", ".join(f"{rule} {count:,}×" for rule, count in counts.items())
    many = len(row.folded)
    said = tr("1 more follows from it") if many == 1 else tr("{n:,} more follow from it", n=many)
    return f"{'▾' if row.opened else '▸'} {said}: {rules}"


def unread_findings(unread: UnreadLedger) -> list[Finding]:
    """What could not be read, as the check lists it: no rule's finding, and the gravest of all; then what is not
    decoded.
    """
    step = tr("Give this user the right to read it, or look at the disk; then look again.")
    ask = tr("Ask a broker, or the tools of that library.")
    unreadable = [
        Finding("", "error", "disk", one.file, None, engine_words(one.reason), {}, (), step)
        for one in unread.unreadable
    ]
    return unreadable + [
        Finding("", "note", "disk", one.file, None, engine_words(one.reason), {}, (), ask) for one in unread.undecoded
    ]


def _grave(one: Finding) -> int:
    return SEVERITIES.index(one.severity)


def _rank(one: Finding) -> tuple[int, str, str, int]:
    return -_grave(one), one.id, one.file or "", one.offset or 0


def finding_kind() -> RecordKind:
    """The table of findings."""
    columns = (
        Column("group", words("Part"), 100, _group, lambda row: row.finding.group, elide="never"),
        chip_column("severity", "", 28, lambda row: Chip(_worst(row) if row.finding.id else "unread")),
        Column(
            "id", words("Rule"), 50, _rule, lambda row: row.finding.id, mono=True, elide="never", tone=lambda _: "text3"
        ),
        Column(
            "offset",
            words("Place"),
            130,
            _place,
            lambda row: row.finding.offset,
            mono=True,
            jump=lambda row: None if row.folded else row.place,
            elide="middle",
        ),
        Column(
            "message",
            words("Finding"),
            110,
            _message,
            lambda row: row.finding.message,
            jump=lambda row: row.place if row.folded else None,
            tip=_tip,
            wrap=True,
        ),
    )

    return RecordKind(
        "finding",
        columns,
        verdict=lambda row: tr(WORDS[row.finding.severity]) if row.finding.id else tr("cannot be read"),
        record=_record,
        command=command,
    )


def _record(row: FindingRow) -> dict[str, Any]:
    if row.folded:
        return {"type": "followers", "causedBy": row.finding.id, "findings": len(row.folded)}
    return row.finding.record()


def command(row: FindingRow) -> list[str]:
    """The command that finds the same."""
    return ["storescope", "check", "STORE", *(["--only", row.finding.id] if row.finding.id else []), "--json"]


def title(one: Finding) -> str:
    """The rule's name in the language of the window."""
    rule = RULES.get(one.id)
    return tr(rule.title) if rule is not None else one.message


def _worst(row: FindingRow) -> str:
    return max((one.severity for one in row.folded), key=SEVERITIES.index, default=row.finding.severity)


def _rule(row: FindingRow) -> str:
    return "" if row.folded else row.finding.id


def _place(row: FindingRow) -> str:
    return "" if row.folded else place_text(row.finding)


def _message(row: FindingRow) -> str:
    if row.folded:
        return fold_words(row)
    return f"    {title(row.finding)}" if row.inside else title(row.finding)


def _tip(row: FindingRow) -> str:
    return fold_words(row) if row.folded else engine_words(row.finding.message)


def _group(row: FindingRow) -> str:
    if not row.first:
        return ""
    return f"{tr(GROUPS[row.finding.group])}  {row.of}"


# ---- places
# --------------------------------------------------------------------------------------------------------------


def place_of(one: Finding) -> Place | None:
    """Where the finding is seen best."""
    file = Path(one.file) if one.file else None
    if file is None:
        return None
    if _in_log(file) and one.offset is not None:
        return places.log(one.offset)
    queue = _queue_of(file)
    if queue is not None:
        topic, queue_id, start = queue
        if start is None or one.offset is None:
            return places.queue(topic, queue_id)
        return places.queue(topic, queue_id, (start + one.offset) // CQ_UNIT_SIZE)
    if file.parent.name == "index":
        entry = one.evidence.get("entry")
        if isinstance(entry, int):
            return places.index(file.name, "entry", entry)
        slot = one.evidence.get("slot")
        return places.index(file.name, "slot", slot) if isinstance(slot, int) else places.index(file.name)
    if file.name in {"checkpoint", "abort"}:
        return Place("checkpoint")
    if file.parent.name == "config":
        return Place("config", name=file.name)
    return None


def place_text(one: Finding) -> str:
    """The place in the words of its subject."""
    place = place_of(one)
    if place is None:
        return Path(one.file).name if one.file else ""
    if place.kind == "log":
        return number(place.offset)
    if place.kind == "queue":
        tail = "" if place.queue_offset is None else f"/{place.queue_offset:,}"
        return f"{place.topic}/{place.queue_id}{tail}"
    return Path(one.file or "").name


def _in_log(file: Path) -> bool:
    """Whether a file is one of the commit log: a number that stands in no folder of another kind."""
    others = {"consumequeue", "batchconsumequeue", "consumequeue_ext", "index", "timerlog"}
    return parse_file_name(file.name) is not None and not others & set(file.parts[-4:-1])


def _queue_of(file: Path) -> tuple[str, int, int | None] | None:
    """(topic, queue id, start of the file) of a consume queue's file or folder."""
    if "consumequeue" not in file.parts:
        return None
    tail = file.parts[file.parts.index("consumequeue") + 1 :]
    if len(tail) < 2 or parse_file_name(tail[1]) is None:
        return None
    start = parse_file_name(tail[2]) if len(tail) > 2 else None
    return tail[0], int(tail[1]), start


# ---- facts and bytes
# -----------------------------------------------------------------------------------------------------


def evidence_facts(one: Finding) -> list[tuple[str, str]]:
    """(name, value) pairs: expected and found first, then what was lost, a queue a line, then everything else that was
    seen: short values in one line, others in a line each; last the file.
    """
    told = {name: value for name, value in one.evidence.items() if name not in (HAPPENED, STORED_FROM, STORED_TO)}
    lists = {name: told.pop(name) for name, value in list(told.items()) if _are_queues(value)}
    crcs = ("expected", "found") if one.id in CRC_RULES else ()
    seen = {name: _value(value, "crc" if name in crcs else name) for name, value in told.items()}
    facts = [(tr(name.capitalize()), seen.pop(name)) for name in ("expected", "found") if name in seen]
    facts += [(tr(NAMES.get(name, name)), _rows(rows, _total(told))) for name, rows in lists.items()]
    said = {name for name, value in told.items() if isinstance(value, str) and value in one.message}
    rest = [(name, value) for name, value in seen.items() if value not in one.message and name not in said]
    short = [f"{_words(name)} {value}" for name, value in rest if _is_short(told[name], value)]
    if short:
        facts.append((tr("Also seen"), " · ".join(short)))
    facts += [(_caption(name), value) for name, value in rest if not _is_short(told[name], value)]
    if one.caused_by:
        facts.append((tr("Follows from"), f"{one.caused_by} {tr(RULES[one.caused_by].title)}"))
    if one.file and place_of(one) is None:
        facts.append((tr("File"), one.file))
    return facts


def _are_queues(value: Any) -> bool:
    """Whether it is a list of queues with the messages of each."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and _count(one) for one in value)


def _count(row: dict[str, Any]) -> int:
    count = row.get("messages", row.get("units", 0))
    return count if isinstance(count, int) else 0


def _total(evidence: dict[str, Any]) -> int:
    """Messages of all queues, those that are not listed too."""
    return next((evidence[name] for name in ("queueEntries", "messages", "units") if name in evidence), 0)


def _rows(rows: list[dict[str, Any]], total: int) -> str:
    """``AuditTrail/0 49–102 (54 messages)`` a line, first their sum where there are several."""
    lines, listed = [_row(row) for row in rows], sum(_count(row) for row in rows)
    if len(rows) > 1:
        lines.insert(0, f"{tr('{n:,} messages', n=listed)} · {tr('{n:,} queues', n=len(rows))}")
    if total > listed:
        lines.append(tr("and {n:,} more", n=total - listed))
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    queue = row.get("queue") or f"{row.get('topic')}/{row.get('queueId')}"
    first, last = row.get("first", row.get("firstQueueOffset")), row.get("last", row.get("lastQueueOffset"))
    if first is None and "end" in row:
        first, last = row["end"], row["end"] + _count(row) - 1
    span = "" if first is None or last is None else f" {number_span(first, last)}"
    return f"{queue}{span} ({tr('{n:,} messages', n=_count(row))})"


def _is_short(value: Any, shown: str) -> bool:
    """Whether it has room beside others in one line."""
    return not isinstance(value, dict) and len(shown) <= SHORT_VALUE and "\n" not in shown


def _words(name: str) -> str:
    """``bytePositions`` → ``byte positions``; a rule's id, and a field where the window speaks no English, stay."""
    if name in RULES or language() != "en":
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _caption(name: str) -> str:
    said = _words(name)
    return said[:1].upper() + said[1:]


def _value(value: Any, name: str = "") -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int) and name.endswith("Timestamp") and value > 0:
        return full_moment(value)
    if name == BROKER_LOG:
        return str(value)
    if isinstance(value, int) and "crc" in name.lower():
        return hexadecimal(value)
    if name == WITNESSES:
        return "\n".join(engine_words(str(part)) for part in value)
    if isinstance(value, dict):
        return " · ".join(f"{name} {_value(one, name)}" for name, one in value.items())
    if isinstance(value, int):
        return number(value)
    text = ", ".join(_value(part) for part in value) if isinstance(value, (list, tuple)) else engine_words(str(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"


def next_steps(one: Finding, path: str) -> list[tuple[str, str]]:
    """(step, words) in the order of doing: the snapshot comes first wherever something is wrong."""
    steps = []
    advice = one.next_step
    if advice.startswith(SNAPSHOT_FIRST):
        said = tr("storescope snapshot {path} DST: every file byte for byte, with a manifest; work on that", path=path)
        steps.append((tr("Take a snapshot"), said))
        advice = advice.removeprefix(SNAPSHOT_FIRST)
    advice = engine_words(capital(advice))
    head, *tail = re.split("[;；]", advice, maxsplit=1)
    steps.append((head.rstrip("."), tail[0].strip() if tail else ""))
    if one.command:
        steps.append((tr("By command"), one.command))
    return steps


@dataclass(frozen=True, slots=True)
class Bytes:
    """What the hex view shows:

    a reader, where to begin, painted fields, marked bytes; ``why`` where there is nothing.
    """

    read: Callable[[int, int], bytes] | None
    start: int = 0
    size: int = 0
    fields: tuple[HexField, ...] = ()
    low: int = 0
    high: int = 0
    frames: tuple[tuple[int, int, str], ...] = ()
    damage: tuple[tuple[int, int], ...] = ()


def bytes_of(one: Finding, log_read: Callable[[int, int], bytes], log_end: int) -> Bytes:
    """The bytes around a finding; reads the disk."""
    file = Path(one.file) if one.file else None
    if file is None or one.offset is None:
        return Bytes(None)
    if _in_log(file):
        head = log_read(one.offset, 1 << 16)
        fields = tuple(hex_fields(list_fields(head)))
        size = max((field.end for field in fields), default=0) or min(_span(one), BYTES_SHOWN)
        marked = one.evidence.get("bytePositions")
        frames = tuple((at, 1, "live") for at in marked[:64]) if isinstance(marked, list) else ()
        damage = () if fields else ((one.offset, one.offset + size),)
        return Bytes(log_read, one.offset, size, fields, 0, log_end, frames, damage)
    try:
        length = file.stat().st_size
    except OSError:
        return Bytes(None)
    unit = CQ_UNIT_SIZE if "consumequeue" in file.parts or file.parent.name == "index" else 8
    fields = (
        HexField("physicalOffset", 0, 8, "id"),
        HexField("size", 8, 4, "frame"),
        HexField("tagsCode", 12, 8, "topic"),
    )
    shown = fields if "consumequeue" in file.parts else ()
    return Bytes(_file_reader(str(file)), one.offset, min(unit, max(0, length - one.offset)), shown, 0, length)


def _span(one: Finding) -> int:
    for name in ("size", "bytes", "length"):
        value = one.evidence.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return 64


def _file_reader(path: str) -> Callable[[int, int], bytes]:
    def read(offset: int, size: int) -> bytes:
        reading = Reading()
        try:
            descriptor = reading.open(path)
        except CannotRead:
            return b""
        try:
            return reading.read(path, descriptor, size, max(0, offset), 0)
        except CannotRead:
            return b""
        finally:
            os.close(descriptor)

    return read


def finding_markdown(one: Finding) -> str:
    """The finding as Markdown, for a ticket or a mail."""
    rule = RULES.get(one.id)
    head = f"### {one.id} · {tr(WORDS[one.severity])} · {title(one)}".replace("###  · ", "### ")
    lines = [head, "", engine_words(one.message), ""]
    lines += [f"- {name}: {value}" for name, value in [(tr("Place"), place_text(one)), *evidence_facts(one)] if value]
    if rule is not None:
        lines += ["", tr(rule.explanation)]
    lines += ["", f"**{tr('Safe next steps')}**", "", engine_words(one.next_step)]
    if one.command:
        lines += ["", f"    {one.command}"]
    return "\n".join(lines) + "\n"

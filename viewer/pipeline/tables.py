"""The results of pipeline jobs as tables: records of the command line under columns, every place in them a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.rules.findings import SEVERITIES, Finding
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.field_words import VERDICTS
from viewer.look.formats import number, plain, size
from viewer.look.rule_pages import GROUPS, WORDS
from viewer.pane.finding_facts import place_of, place_text, title
from viewer.pane.finding_rows import FindingRow, finding_kind
from viewer.pipeline.state import JobState, Record, RuleCount
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    chip_column,
    gutter,
    moment_column,
    number_column,
    text_column,
    topic_column,
)


def _queue_place(row: Record) -> Place | None:
    return places.queue(row["topic"], row.get("queueId")) if row.get("topic") else None


def _messages() -> Column:
    return number_column("messages", words("Units"), 88, filterable=False)


def _bytes() -> Column:
    return Column(
        "bytes",
        words("Bytes"),
        96,
        lambda row: size(row.get("bytes")),
        lambda row: row.get("bytes"),
        right=True,
        mono=True,
        tip=lambda row: f"{row.get('bytes') or 0:,} B",
        filterable=False,
    )


def _topic(width: int = 150) -> Column:
    return topic_column(width=width, jump=_queue_place)


def _rate(key: str, title_: str, tell: Callable[[float], str]) -> Column:
    return Column(
        key,
        title_,
        92,
        lambda row: tell(row.get(key) or 0),
        lambda row: row.get(key),
        right=True,
        mono=True,
        filterable=False,
    )


STATS: dict[str, RecordKind] = {
    "statsTopic": RecordKind(
        "statsTopic",
        (
            _topic(),
            _messages(),
            _bytes(),
            number_column("keys", words("Keys, about"), 98, filterable=False),
            number_column("mean", words("Mean"), 78, filterable=False, slim=True),
            number_column("p99", words("p99 size"), 76, filterable=False),
            number_column(
                "badCrc",
                words("Wrong CRC"),
                92,
                filterable=False,
                slim=True,
                tone=lambda row: "error" if row.get("badCrc") else "text3",
            ),
        ),
    ),
    "statsQueue": RecordKind(
        "statsQueue", (_topic(), number_column("queueId", words("Queue"), 64), _messages(), _bytes())
    ),
    "statsTag": RecordKind("statsTag", (_topic(), text_column("tags", "Tag", 140, mono=True), _messages(), _bytes())),
    "statsProducer": RecordKind(
        "statsProducer", (text_column("bornHost", words("Producer"), 150, mono=True), _topic(), _messages(), _bytes())
    ),
    "statsHour": RecordKind(
        "statsHour",
        (
            moment_column("hour", words("Hour"), 176, filterable=False),
            _topic(148),
            _messages(),
            _bytes(),
            _rate("perSecond", words("Units/s"), lambda value: f"{value:,.3f}"),
            _rate("bytesPerSecond", words("Bytes/s"), lambda value: f"{size(value)}/s"),
        ),
    ),
    "statsFile": RecordKind(
        "statsFile",
        (
            Column(
                "path",
                words("File"),
                210,
                lambda row: Path(str(row.get("path"))).name,
                lambda row: row.get("path"),
                mono=True,
                elide="middle",
                jump=lambda row: places.log(row["startOffset"]),
                tip=lambda row: plain(str(row.get("path"))),
                filterable=False,
            ),
            _messages(),
            Column(
                "bytes",
                words("Units, bytes"),
                108,
                lambda row: number(row.get("units")),
                lambda row: row.get("units"),
                right=True,
                mono=True,
                filterable=False,
            ),
            number_column(
                "damage",
                words("Damage"),
                84,
                filterable=False,
                tone=lambda row: "error" if row.get("damage") else "text3",
            ),
            number_column("stale", words("Stale"), 74, filterable=False),
            number_column("zeros", words("Zeros"), 96, filterable=False),
            text_column("broker", "Broker", 100, filterable=False),
        ),
    ),
}
STATS_TABS = (
    ("statsTopic", words("Topic")),
    ("statsQueue", words("Queue")),
    ("statsTag", "Tag"),
    ("statsProducer", words("Producer")),
    ("statsHour", words("Hour")),
    ("statsFile", words("File")),
)
RENAMED = {"statsTag": ("tag", "tags"), "statsProducer": ("host", "bornHost")}
"""Names of the records → those of the filter language, so that a cell can become a filter of the log."""


def stats_rows(kind: str, job: JobState) -> list[Record]:
    """The rows of one table of ``stats``."""
    rows = job.rows.get(kind, [])
    if kind not in RENAMED:
        return rows
    old, new = RENAMED[kind]
    return [{**row, new: row.get(old)} for row in rows]


# ---- findings


def as_finding(record: Record) -> Finding:
    """A ``finding`` record as the value that the views of findings read."""
    return Finding(
        str(record.get("id", "")),
        record.get("severity", "note"),
        record.get("group", "log"),
        record.get("file"),
        record.get("offset"),
        str(record.get("message", "")),
        record.get("evidence") or {},
        tuple(record.get("knownIssues") or ()),
        str(record.get("nextStep") or ""),
        str(record.get("title") or ""),
        str(record.get("explanation") or ""),
        record.get("command"),
        record.get("causedBy"),
    )


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule that found something, and the first place."""

    rule: RuleCount
    finding: Finding

    @property
    def store(self) -> str:
        return str(self.rule.first_finding.get("store") or "")


@dataclass(frozen=True, slots=True)
class EachRow(FindingRow):
    """A finding, and the store that has it."""

    store: str = ""


def rule_rows(job: JobState) -> list[RuleRow]:
    """The rules that found something, the gravest first."""
    rows = [RuleRow(rule, as_finding(rule.first_finding)) for rule in job.rules.values()]
    return sorted(rows, key=lambda row: (-_grave(row.rule.severity), row.rule.id))


def each_rows(job: JobState) -> list[EachRow]:
    """Return every finding that was kept, the most serious first."""
    rows = [
        EachRow(as_finding(record), True, 1, store=str(record.get("store") or ""))
        for record in job.rows.get("finding", [])
    ]
    return sorted(rows, key=lambda row: -_grave(row.finding.severity))


def _grave(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def _group_words(row: RuleRow) -> str:
    return tr(GROUPS.get(row.rule.group, row.rule.group))


RULES = RecordKind(
    "findingRule",
    (
        chip_column("severity", "", 28, lambda row: Chip(row.rule.severity)),
        Column("id", words("Rule"), 58, lambda row: row.rule.id, lambda row: row.rule.id, mono=True, filterable=False),
        Column("group", words("Part"), 96, _group_words, lambda row: row.rule.group, filterable=False),
        Column(
            "count",
            words("Count"),
            76,
            lambda row: number(row.rule.count),
            lambda row: row.rule.count,
            right=True,
            mono=True,
            filterable=False,
        ),
        Column(
            "offset",
            words("First place"),
            180,
            lambda row: place_text(row.finding),
            lambda row: row.finding.offset,
            mono=True,
            jump=lambda row: place_of(row.finding),
            elide="middle",
            filterable=False,
        ),
        Column(
            "message",
            words("Finding"),
            200,
            lambda row: title(row.finding),
            lambda row: row.finding.message,
            tip=lambda row: engine_words(row.finding.message),
            filterable=False,
        ),
    ),
    verdict=lambda row: tr(WORDS.get(row.rule.severity, row.rule.severity)),
    record=lambda row: {**row.rule.first_finding, "count": row.rule.count},
)


# ---- rebuild, trace, and what other jobs tell

BUILT = RecordKind(
    "dispatched",
    (
        text_column("path", words("Place"), 260, mono=True, elide="middle", filterable=False),
        number_column("units", words("Units"), 90, filterable=False),
        number_column("queues", words("Queues"), 74, filterable=False),
        number_column("entries", words("Entries"), 90, filterable=False),
        number_column("indexFiles", words("Index files"), 86, filterable=False),
        number_column("indexEntries", words("Keys"), 90, filterable=False),
        number_column(
            "leftBehind",
            words("Damaged"),
            80,
            filterable=False,
            tone=lambda row: "error" if row.get("leftBehind") else "text3",
        ),
    ),
)


def _difference_place(row: Record) -> Place | None:
    if row.get("what") == "index":
        offset = next((row[key] for key in _FIRST_PLACE_FIELDS if isinstance(row.get(key), int)), None)
        return places.log(offset) if offset is not None else places.index()
    queue_offset = next((row[key] for key in _FIRST_PLACE_FIELDS if isinstance(row.get(key), int)), None)
    return places.queue(row["topic"], row.get("queueId"), queue_offset) if row.get("topic") else None


_FIRST_PLACE_FIELDS = ("firstDifferent", "firstMissing", "firstExtra")


def _difference_text(row: Record) -> str:
    first_number = next((row[key] for key in _FIRST_PLACE_FIELDS if isinstance(row.get(key), int)), None)
    return number(first_number)


DIFFERENCES = RecordKind(
    "difference",
    (
        gutter(12),
        Column(
            "what",
            words("What"),
            62,
            lambda row: tr(str(row.get("what", ""))),
            lambda row: row.get("what"),
            filterable=False,
        ),
        topic_column(width=130),
        number_column("queueId", words("Queue"), 66, filterable=False),
        number_column("missing", words("Missing"), 74, filterable=False),
        number_column("extra", words("Extra"), 62, filterable=False),
        number_column("different", words("Different"), 80, filterable=False),
        number_column("expired", words("Expired"), 72, filterable=False, slim=True),
        Column(
            "first",
            words("First place"),
            110,
            _difference_text,
            _difference_text,
            right=True,
            mono=True,
            jump=_difference_place,
            filterable=False,
        ),
    ),
)


def _verdict(row: Record) -> Chip:
    kind, label, _ = VERDICTS.get(str(row.get("verdict")), ("chat", str(row.get("verdict")), ""))
    return Chip(kind, tr(label))


def _entry(row: Record) -> str:
    return f"{row['topic']}/{row.get('queueId')}/{number(row.get('queueOffset'))}" if row.get("topic") else ""


def _entry_place(row: Record) -> Place | None:
    return places.queue(row["topic"], row.get("queueId"), row.get("queueOffset")) if row.get("topic") else None


def _unit_place(row: Record) -> Place | None:
    return places.log(row["physicalOffset"]) if row.get("physicalOffset") is not None else None


TRACED = RecordKind(
    "tracedKey",
    (
        text_column("keys", "Key", 130, mono=True, elide="middle", jump=lambda row: Place("where", key=row["key"])),
        chip_column("verdict", words("Verdict"), 136, _verdict, filterable=False),
        number_column("physicalOffset", words("Physical offset"), 118, jump=_unit_place),
        Column(
            "topic",
            words("Queue entry"),
            160,
            _entry,
            lambda row: row.get("topic"),
            mono=True,
            elide="middle",
            jump=_entry_place,
        ),
        text_column("broker", "Broker", 80, filterable=False, slim=True),
        Column(
            "nextStep",
            words("What to do"),
            90,
            lambda row: engine_words(str(row.get("nextStep") or "")),
            lambda row: row.get("nextStep"),
            filterable=False,
        ),
    ),
    verdict=lambda row: _verdict(row).word,
    record=lambda row: {key: value for key, value in row.items() if key != "keys"},
)


def traced_rows(job: JobState) -> list[Record]:
    """Return the outcome for each key."""
    return [{**row, "keys": row.get("key")} for row in job.rows.get("whereResult", [])]


Rows = Callable[[JobState], list[Any]]
TABLES: dict[str, tuple[tuple[str, str, RecordKind, Rows], ...]] = {
    "stats": tuple((name, title, STATS[name], partial(stats_rows, name)) for name, title in STATS_TABS),
    "verify": (
        ("rule", words("By rule"), RULES, rule_rows),
        ("each", words("Each"), finding_kind(), each_rows),
    ),
    "rebuild": (
        ("difference", words("Differences"), DIFFERENCES, lambda job: job.rows.get("difference", [])),
        ("dispatched", words("What was built"), BUILT, lambda job: job.rows.get("dispatched", [])),
    ),
    "trace": (("whereResult", words("Keys"), TRACED, traced_rows),),
}
"""Job → its tables: name, label of the tab, kind of rows, source of the rows."""


def store_of(row: Any) -> str:
    """Return the store of a row; "" if it has none."""
    return str(row.get("store") or "") if isinstance(row, dict) else str(getattr(row, "store", "") or "")

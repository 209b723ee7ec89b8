"""What the verdicts on a message mean, and the two tables of the view that asks where one is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viewer.assets import tr, words
from viewer.bridge import places
from viewer.bridge.places import Place
from viewer.bridge.where_work import place_of, place_of_result, place_words
from viewer.models.columns import Chip, Column, RecordKind, RowLook, chip_column, gutter, number_column, text_column
from viewer.models.formats import number
from viewer.sayings import engine_words

if TYPE_CHECKING:
    from engine.inspection.where import Evidence, WhereResult

VERDICTS = {
    "found": ("ok", words("It is there"), words("The unit is intact and its queue leads to it.")),
    "expired": ("warn", words("Deleted by retention"), words("Its file was deleted; the log begins behind it.")),
    "truncated": ("error", words("Cut off"),
                  words("It stands behind the end of the log, or did: a start cuts it off, or one has.")),
    "damaged": ("error", words("Damaged"),
                words("Its bytes cannot be read as a unit, or its body is not what was stored.")),
    "notInQueue": ("error", words("Not in its queue"),
                   words("The log has it and no queue entry leads to it: nobody consumes it.")),
    "notInIndex": ("warn", words("Not in the index"), words("It can be consumed; a query by key does not find it.")),
    "half": ("warn", words("Half message"),
             words("Its transaction is open: it is invisible until the producer commits.")),
    "rolledBack": ("note", words("Rolled back"), words("Its transaction was rolled back: it is not to be delivered.")),
    "delayed": ("note", words("Delayed"), words("It waits for its time of delivery.")),
    "retried": ("warn", words("Retried"), words("A delivery failed; it was put back for the group.")),
    "deadLetter": ("error", words("Dead letter"), words("The group gave it up after its last delivery.")),
    "hiddenByTag": ("error", words("Hidden by its tag"), words("The group's filter passes it over.")),
    "notYetDispatched": ("warn", words("Not dispatched yet"), words("The log has it; dispatch has not come so far.")),
    "consumed": ("ok", words("Consumed"), words("The group has passed it.")),
    "notConsumed": ("note", words("Not consumed yet"), words("The group has not come so far.")),
    "neverSeen": ("note", words("Never seen"), words("Nothing in this store speaks of it.")),
    "unknown": ("warn", words("Not knowable"), words("The files do not tell.")),
}  # fmt: skip
FROM_ABSENCE = frozenset(
    ("expired", "truncated", "damaged", "notInQueue", "notInIndex", "half", "notYetDispatched", "notConsumed",
     "neverSeen")
)  # fmt: skip
"""Verdicts that say that something is not there: bytes, an entry, an operation."""
WHATS = {
    "unit": words("Unit"), "queue entry": words("Queue entry"), "queue": words("Queue"), "index": words("Index"),
    "group": words("Consumer group"), "filter": words("Filter of the group"), "commit log": words("Commit log"),
    "body CRC": words("CRC of the body"), "end of the log": words("End of the log"), "checkpoint": words("checkpoint"),
    "op message": words("Op message"), "lock": words("Lock"), "abort": "abort", "abort.bak": "abort.bak",
    "id": words("Message id"), "unique key": words("Unique key"),
}  # fmt: skip
_AGAINST = re.compile(
    r"^(no |holds no|.* has no |names no)|is stored, the body has|no unit|a stale entry|does not match"
)
_JSON = ("verdict", "physical_offset", "topic", "queue_id", "queue_offset", "next_step")


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One link of the chain: its number, what was looked at, where, and what it says."""

    number: int
    what: str
    where: str
    holds: str
    place: Place | None
    evidence: Evidence

    @property
    def against(self) -> bool:
        """Whether it speaks against the message being where it belongs."""
        return self.evidence.what in {"body CRC", "end of the log"} or bool(_AGAINST.search(self.evidence.holds))


def only_seen(result: WhereResult) -> WhereResult:
    """The result where not all of the store could be read: what rests on something not being there is not knowable."""
    return replace(result, verdict="unknown") if result.verdict in FROM_ABSENCE else result


def verdict_chip(result: WhereResult) -> Chip:
    """The verdict as shape and word."""
    kind, word, _ = VERDICTS.get(result.verdict, ("chat", result.verdict, ""))
    return Chip(kind, tr(word))


def verdict_meaning(result: WhereResult) -> str:
    """The verdict as a sentence."""
    return tr(VERDICTS[result.verdict][2]) if result.verdict in VERDICTS else ""


def evidence_rows(result: WhereResult) -> list[EvidenceRow]:
    """The chain of evidence, in the order in which it was found."""
    rows = []
    for at, one in enumerate(result.evidence, 1):
        place = place_of(one, result)
        what = tr(WHATS.get(one.what, one.what))
        rows.append(EvidenceRow(at, what, place_words(one, place), engine_words(one.holds), place, one))
    return rows


def entry_text(result: WhereResult) -> str:
    """``topic/queue/offset`` of the result's unit."""
    if result.topic is None:
        return ""
    return f"{result.topic}/{result.queue_id}/{number(result.queue_offset)}"


def entry_place(result: WhereResult) -> Place | None:
    """The queue entry of the result's unit."""
    if result.topic is None:
        return None
    return places.queue(result.topic, result.queue_id, result.queue_offset)


RESULTS = RecordKind(
    "whereResult",
    (
        gutter(12),
        chip_column("verdict", words("Verdict"), 150, verdict_chip),
        number_column("physicalOffset", words("Physical offset"), 120, jump=place_of_result),
        Column(
            "topic",
            words("Queue entry"),
            190,
            entry_text,
            lambda row: row.topic,
            mono=True,
            elide="middle",
            jump=entry_place,
        ),
    ),
    verdict=lambda row: verdict_chip(row).word,
    record=lambda row: {"type": "whereResult", **{key: getattr(row, key) for key in _JSON}},
)
EVIDENCE = RecordKind(
    "evidence",
    (
        gutter(26),
        Column("number", "", 28, lambda row: str(row.number), lambda row: row.number, right=True, mono=True,
               tone=lambda _: "text3"),
        text_column("what", words("Looked at"), 126),
        text_column("where", words("Place"), 210, mono=True, jump=lambda row: row.place, elide="middle"),
        text_column("holds", words("It says"), 260, tip=lambda row: row.holds),
    ),
    look=lambda row: RowLook(mark="warn") if row.against else RowLook(mark="ok"),
    verdict=lambda row: tr("against it") if row.against else "",
    record=lambda row: {"what": row.evidence.what, "file": row.evidence.file, "offset": row.evidence.offset,
                        "holds": row.evidence.holds},
)  # fmt: skip
__all__ = ["EVIDENCE", "RESULTS", "EvidenceRow", "entry_text", "evidence_rows", "verdict_chip", "verdict_meaning"]

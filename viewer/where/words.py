"""Texts for the verdicts on a message, and the tables of the view."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.field_words import VERDICTS
from viewer.look.formats import number, plain
from viewer.runtime import places
from viewer.runtime.places import Place
from viewer.where.work import place_of, place_of_result, place_of_route, place_words
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    chip_column,
    gutter,
    number_column,
    text_column,
    time_column,
)

if TYPE_CHECKING:
    from engine.inspection.where.evidence import Evidence, WhereResult
    from engine.rules.where import Route

PARTIAL_NAME = ("note", words("Incomplete name"), words("Other names begin with it."))
NOT_RULED_OUT = (
    "warn",
    words("Cannot be ruled out"),
    words("No readable byte mentions it, but unreadable bytes may contain it."),
)
"""Verdicts ``unknown`` for a known reason."""
ROUTE_KINDS = {
    "offset": words("Offset"),
    "queue": words("Queue entry"),
    "key": words("Key"),
    "uniqueKey": words("Unique key"),
    "group": words("Group"),
}
ROUTE_VERDICTS = {
    "found": ("ok", words("Leads to it")),
    "notInIndex": ("warn", words("Not reachable")),
    "notInQueue": ("error", words("Does not lead to it")),
    "half": ("note", words("No queue lists a half message")),
    "rolledBack": ("note", words("No queue lists what was rolled back")),
    "consumed": ("ok", words("Has read past it")),
    "notConsumed": ("note", words("Has not reached it yet")),
    "beyondQueue": ("error", words("Is beyond the end of the queue")),
    "neverSeen": ("note", words("Nothing there")),
}
"""Chip of a route, if it differs from the verdict's."""
REFUSED = ("warn", words("The broker refuses it"))
"""Chip of a group that may not consume and has not read past the message."""
ABSENCE_VERDICTS = frozenset(
    (
        "expired",
        "truncated",
        "damaged",
        "notInQueue",
        "notInIndex",
        "half",
        "passedOver",
        "replaced",
        "notYetDispatched",
        "notConsumed",
        "beyondQueue",
        "neverSeen",
    )
)
"""Verdicts that rest on something being absent: bytes, an entry, an operation."""
EVIDENCE_KINDS = {
    "unit": words("Unit"),
    "queue entry": words("Queue entry"),
    "queue": words("Queue"),
    "index": words("Index"),
    "group": words("Consumer group"),
    "filter": words("Filter of the group"),
    "commit log": words("Commit log"),
    "body CRC": words("CRC of the body"),
    "end of the log": words("End of the log"),
    "checkpoint": words("checkpoint"),
    "op message": words("Op message"),
    "lock": words("Lock"),
    "abort": "abort",
    "abort.bak": "abort.bak",
    "id": words("Message id"),
    "unique key": words("Unique key"),
    "beginning": words("Names that begin with it"),
    "not ruled out": words("Cannot be ruled out"),
    "not read": words("Not read"),
    "was": words("It was"),
    "wrong field": words("Wrong field"),
    "permission": words("Permission"),
    "service": words("Service"),
    "compaction": words("Compaction"),
    "tiered": words("Tiered storage"),
}
ALWAYS_AGAINST = frozenset(
    ("body CRC", "end of the log", "not ruled out", "not read", "wrong field", "permission", "service")
)
MAX_PLACE_CHARACTERS = 24
"""Maximum letters of a place in a row; offsets are shorter."""
MAX_TOPIC_CHARACTERS = 16
"""Maximum letters of a topic in a row."""
_AGAINST_PATTERN = re.compile(
    r"^(no |holds no|.* has no |names no)|is stored, the body has|no unit|a stale entry|does not match"
    r"|is a wrong one|is empty|it may not consume"
)
_JSON = ("verdict", "physical_offset", "topic", "queue_id", "queue_offset", "next_step")


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """A row of evidence: its number, the examined part, the place, and the statement."""

    number: int
    what: str
    where: str
    holds: str
    place: Place | None
    evidence: Evidence
    store_timestamp: int | None = None

    @property
    def says(self) -> str:
        """Text of the row. A long topic is shortened in its middle, so that similar topics stay distinguishable."""
        topic, slash, tail = self.holds.partition("/")
        if self.evidence.what != "unit" or len(topic) <= MAX_TOPIC_CHARACTERS:
            return self.holds
        return f"{topic[:6]}…{topic[7 - MAX_TOPIC_CHARACTERS :]}{slash}{tail}"

    @property
    def short_place(self) -> str:
        """Place of the row, shortened in its middle if it is long: the sentence needs the width."""
        if len(self.where) <= MAX_PLACE_CHARACTERS:
            return self.where
        return f"{self.where[: MAX_PLACE_CHARACTERS // 2]}…{self.where[1 - MAX_PLACE_CHARACTERS // 2 :]}"

    @property
    def is_against(self) -> bool:
        """Return True if it speaks against the message being where it belongs."""
        return self.evidence.what in ALWAYS_AGAINST or bool(_AGAINST_PATTERN.search(self.evidence.holds))


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route to the message of ``result``."""

    route: Route
    result: WhereResult

    @property
    def chip(self) -> Chip:
        """Verdict on the route as a chip."""
        verdict = self.route.verdict
        kind, word = REFUSED if self.route.barred else ROUTE_VERDICTS.get(verdict) or VERDICTS[verdict][:2]
        return Chip(kind, tr(word))

    @property
    def explanation(self) -> str:
        """Evidence for the verdict, with the reason for which the broker refuses the message."""
        parts = dict.fromkeys(engine_words(text) for text in (self.route.why, self.route.barred) if text)
        return ". ".join(parts)


def without_absence_verdicts(result: WhereResult) -> WhereResult:
    """Return the result with each verdict that rests on absence replaced by ``unknown``.

    For stores of which a part could not be read: absence proves nothing there.
    """
    routes = tuple(
        replace(route, verdict="unknown") if route.verdict in ABSENCE_VERDICTS else route for route in result.routes
    )
    return replace(result, verdict="unknown" if result.verdict in ABSENCE_VERDICTS else result.verdict, routes=routes)


def verdict_chip(result: WhereResult) -> Chip:
    """Return the verdict as shape and word."""
    kind, word, _ = _verdict_row(result)
    return Chip(kind, tr(word))


def verdict_meaning(result: WhereResult) -> str:
    """Return the verdict as a sentence."""
    return tr(_verdict_row(result)[2])


def _verdict_row(result: WhereResult) -> tuple[str, str, str]:
    subjects = {evidence.what for evidence in result.evidence} if result.verdict == "unknown" else set()
    if "not ruled out" in subjects:
        return NOT_RULED_OUT
    return PARTIAL_NAME if "beginning" in subjects else VERDICTS.get(result.verdict, ("chat", result.verdict, ""))


def route_rows(result: WhereResult) -> list[RouteRow]:
    """Return every route to the message."""
    return [RouteRow(route, result) for route in result.routes]


def evidence_rows(result: WhereResult) -> list[EvidenceRow]:
    """Return the evidence in the order in which it was collected."""
    rows = []
    for position, evidence in enumerate(result.evidence, 1):
        place = place_of(evidence, result)
        subject = tr(EVIDENCE_KINDS.get(evidence.what, evidence.what))
        rows.append(
            EvidenceRow(
                position,
                subject,
                place_words(evidence, place),
                engine_words(evidence.holds),
                place,
                evidence,
                evidence.timestamp,
            )
        )
    return rows


def entry_text(result: WhereResult) -> str:
    """Return ``topic/queue/offset`` of the result's unit."""
    if result.topic is None:
        return ""
    return f"{result.topic}/{result.queue_id}/{number(result.queue_offset)}"


def entry_place(result: WhereResult) -> Place | None:
    """Return the queue entry of the result's unit."""
    if result.topic is None:
        return None
    return places.queue(result.topic, result.queue_id, result.queue_offset)


RESULTS = RecordKind(
    "whereResult",
    (
        gutter(12),
        chip_column("verdict", words("Verdict"), 136, verdict_chip),
        number_column("physicalOffset", words("Physical offset"), 120, jump=place_of_result, hides=True),
        Column(
            "topic",
            words("Queue entry"),
            150,
            entry_text,
            lambda row: row.topic,
            mono=True,
            elide="middle",
            hides=True,
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
        Column(
            "number",
            "",
            36,
            lambda row: str(row.number),
            lambda row: row.number,
            right=True,
            mono=True,
            tone=lambda _: "text3",
        ),
        text_column("what", words("Looked at"), 122, elide="never"),
        Column(
            "where",
            words("Place"),
            156,
            lambda row: plain(row.short_place),
            lambda row: row.where,
            mono=True,
            jump=lambda row: row.place,
            elide="middle",
            tip=lambda row: row.where,
            hides=True,
        ),
        time_column("storeTimestamp", words("Stored"), 104, hides=True),
        Column(
            "holds",
            words("Contents"),
            300,
            lambda row: plain(row.says),
            lambda row: row.holds,
            tip=lambda row: row.holds,
            wrap=True,
        ),
    ),
    look=lambda row: RowAppearance(mark="warn") if row.is_against else RowAppearance(mark="ok"),
    verdict=lambda row: tr("against it") if row.is_against else "",
    record=lambda row: {
        "what": row.evidence.what,
        "file": row.evidence.file,
        "offset": row.evidence.offset,
        "holds": row.evidence.holds,
        "storeTimestamp": row.evidence.timestamp,
    },
)
ROUTES = RecordKind(
    "route",
    (
        gutter(12),
        Column(
            "by", words("By"), 104, lambda row: tr(ROUTE_KINDS[row.route.by]), lambda row: row.route.by, elide="never"
        ),
        Column(
            "value",
            words("Value"),
            150,
            lambda row: plain(row.route.value),
            lambda row: row.route.value,
            mono=True,
            jump=lambda row: place_of_route(row.route, row.result),
            elide="middle",
            tip=lambda row: row.route.value,
        ),
        chip_column("verdict", words("Verdict"), 170, lambda row: row.chip, tip=lambda row: row.explanation),
    ),
    verdict=lambda row: row.chip.word,
    record=lambda row: {
        "by": row.route.by,
        "value": row.route.value,
        "verdict": row.route.verdict,
        "why": row.route.why,
        "barred": row.route.barred or None,
    },
)
__all__ = [
    "EVIDENCE",
    "RESULTS",
    "ROUTES",
    "EvidenceRow",
    "RouteRow",
    "entry_text",
    "evidence_rows",
    "route_rows",
    "verdict_chip",
    "verdict_meaning",
]

"""Places in a store: values that links, history, ``--at`` and the go-to box speak of.

Written ``log:123456`` · ``queue:Topic/0/42`` · ``trace:Topic/Key`` · ``index:FILE`` · ``positions`` ·
``findings:CQ03`` · ``groups:NAME`` · ``config:topics`` · ``rows:timer`` · ``waiting:retry`` · ``timeline:crash`` ·
``sql:SELECT …`` · ``compare:PATH`` ·
``cluster:HOST:PORT`` · ``requests:FILE`` · ``filter:topic = "X"`` (the log, filtered); each kind by itself is the view
as a whole. And the places visited (:class:`History`). Pure, no Qt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Literal, get_args

from engine.sentences import sentence

Kind = Literal[
    "log",
    "queue",
    "index",
    "trace",
    "positions",
    "findings",
    "space",
    "groups",
    "config",
    "rows",
    "waiting",
    "timeline",
    "sql",
    "compare",
    "lab",
    "checkpoint",
    "abort",
    "filter",
    "where",
    "conversation",
    "bookmarks",
    "pipeline",
    "cluster",
    "requests",
]
"""Every view is a kind (:data:`viewer.shell.views.VIEWS`), and so is what a view shows apart (:data:`SHOWN_IN`)."""
REQUESTS_LIVE = "live"
"""Name of the requests of the broker that the lab runs, in the place of a file's."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SHOWN_IN: dict[Kind, Kind] = {"trace": "index", "checkpoint": "positions", "abort": "findings", "filter": "log"}
"""Kinds that are no view of their own, and the view that shows them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere in a store; which fields count depends on ``kind``.

    ``offset``: byte in the log, or the number of an entry or slot in an index file (``part`` says which). ``name``:
    index file, rule, group, table or what rows are about. ``field``: a field of the unit to choose. A trace that began
    at a unit has its ``offset`` and store ``time`` (ms); both stay out of the written form. ``new_window`` asks for a
    window of its own.
    """

    kind: Kind
    offset: int | None = None
    topic: str = ""
    queue_id: int | None = None
    queue_offset: int | None = None
    key: str = ""
    name: str = ""
    part: str = ""
    field: str = ""
    time: int | None = None
    new_window: bool = False

    @property
    def names_row(self) -> bool:
        """True if it is one row of a table, not a view or a file as a whole."""
        return self.offset is not None or self.queue_offset is not None

    @property
    def may_be_missing(self) -> bool:
        """True if it names something that a store or the program may not have: a row, topic, file, rule, group or
        table.
        """
        is_named = self.kind in {"index", "groups", "config", "rows", "waiting", "timeline", "findings"} and bool(
            self.name
        )
        return self.names_row or is_named or (self.kind == "queue" and bool(self.topic))

    @property
    def view(self) -> Kind:
        """The view that shows it."""
        return SHOWN_IN.get(self.kind, self.kind)


def log(offset: int | None = None, field: str = "") -> Place:
    """A byte of the commit log."""
    return Place("log", offset=offset, field=field)


def queue(topic: str, queue_id: int | None = None, queue_offset: int | None = None) -> Place:
    """A topic, a queue of it, or an entry."""
    return Place("queue", topic=topic, queue_id=queue_id, queue_offset=queue_offset)


def index(name: str = "", part: str = "", number: int | None = None) -> Place:
    """An index file, or its ``slot`` or ``entry`` of that number."""
    return Place("index", name=name, part=part, offset=number)


RECOVERY = "recovery"
"""Name of the recovery plan, in the place of a rule's."""


def recovery() -> Place:
    """The recovery plan, which stands in the findings."""
    return Place("findings", name=RECOVERY)


def trace(topic: str, key: str, offset: int | None = None, time: int | None = None) -> Place:
    """The chain of a key, as far as the unit at ``offset``, stored at ``time`` (ms), where one is named."""
    return Place("trace", offset, topic, key=key, time=time)


def filtered(action_name: str, term: str) -> Place:
    """The log under a filter. ``action_name`` is one of :data:`viewer.widgets.cell_filter.CONDITION_KINDS`."""
    return Place("filter", name=term, part=action_name)


@dataclass(frozen=True, slots=True)
class Search:
    """Something that only the store can turn into a place: ``time`` (``ms``), ``id`` or ``key`` (``text``)."""

    kind: Literal["time", "id", "key"]
    text: str
    ms: int = 0
    topic: str = ""
    dated: bool = True
    """Whether ``text`` names the day and the year of a time; else those of the store's messages count."""


class UnknownPlace(ValueError):
    """The text names no place; says which forms there are."""


def text_of(place: Place) -> str:
    """Return ``place`` as ``--at`` and the history write it."""
    match place.kind:
        case "log":
            tail = "" if place.offset is None else str(place.offset)
        case "queue":
            parts = [place.topic, place.queue_id, place.queue_offset]
            tail = "/".join(str(part) for part in parts if part is not None and part != "")
        case "trace":
            tail = f"{place.topic}/{place.key}" if place.topic and place.key else ""
        case "where" | "conversation":
            tail = place.key
        case "index" if place.part and place.offset is not None:
            tail = f"{place.name}/{place.part}/{place.offset}"
        case _:
            tail = place.name
    return f"{place.kind}:{tail}" if tail else place.kind


def parse(text: str) -> Place | Search:
    """Parse ``text``: a place's own form, or anything the go-to box understands.

    Raises :class:`UnknownPlace` for text that cannot mean anything.
    """
    text = text.strip()
    if not text:
        raise UnknownPlace(sentence("expected a place: an offset, topic/queue/offset, a time, a message id or a key"))
    kind, colon, tail = text.partition(":")
    if kind in KINDS and (colon or not tail):
        return _parse_form(kind, tail.strip(), text)
    number = parse_number(text)
    if number is not None:
        return log(number)
    time_text = text.removeprefix("@").strip()
    ms = parse_time(time_text)
    if ms is not None:
        return Search("time", time_text, ms, dated=is_dated(time_text))
    entry = _queue_parts(text)
    if entry is not None and entry.queue_offset is not None:
        return entry
    bare = text.removeprefix("#").strip()
    if re.fullmatch(r"[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56}", bare):
        return Search("id", bare.upper())
    topic, sign, key = text.partition("#")
    if sign and topic and key:
        return trace(topic, key)
    return Search("key", bare)


def _parse_form(kind: str, tail: str, text: str) -> Place | Search:
    match kind:
        case "log":
            return _parse_log(tail, text)
        case "queue":
            entry = _queue_parts(tail) if tail else Place("queue")
            return entry if entry is not None else Place("queue", topic=tail)
        case "trace":
            topic, slash, key = tail.partition("/")
            if tail and not (slash and topic and key):
                raise UnknownPlace(sentence("expected {form}, found {found}", form="trace:TOPIC/KEY", found=text))
            return trace(topic, key) if tail else Place("index")
        case "index":
            name, *parts = tail.split("/")
            if len(parts) == 2 and parts[0] in {"slot", "entry"} and (number := parse_number(parts[1])) is not None:
                return index(name, parts[0], number)
            return index(tail)
        case "where" | "conversation":
            return Place(kind, key=tail)
        case _:
            return Place(kind, name=tail)  # type: ignore[arg-type]


def _parse_log(tail: str, text: str) -> Place | Search:
    if not tail:
        return log()
    number = parse_number(tail)
    if number is not None:
        return log(number)
    ms = parse_time(tail)
    if ms is not None:
        return Search("time", tail, ms, dated=is_dated(tail))
    raise UnknownPlace(sentence("expected log:OFFSET or log:TIME, found {found}", found=text))


def _queue_parts(text: str) -> Place | None:
    """``topic/queue/offset`` or ``topic/queue``, read from its end: a topic's name may hold anything."""
    head, slash, number_text = text.rpartition("/")
    number = parse_number(number_text)
    if not slash or not head or number is None:
        return None
    topic, slash, middle = head.rpartition("/")
    queue_id = parse_number(middle)
    if slash and topic and queue_id is not None:
        return queue(topic, queue_id, number)
    return queue(head, number)


def parse_number(text: str) -> int | None:
    """``123456``, ``0x1E240``, ``123_456`` or ``123,456``; None where it is no such number, or one above 64 bits."""
    text = text.strip()
    if re.fullmatch(r"0[xX][0-9A-Fa-f]+(_[0-9A-Fa-f]+)*", text):
        number = int(text, 16)
    elif re.fullmatch(r"[0-9]+(_[0-9]+)*|[0-9]{1,3}(,[0-9]{3})+", text):
        number = int(text.replace(",", ""))
    else:
        return None
    return number if number < 1 << 63 else None


_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
_SHORT_DAY = re.compile(r"\d{2}-\d{2}[ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
"""As tables and the Line print a time of a day that is not told otherwise."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?\s*(Z|[+-]\d{2}:?\d{2})?")


def parse_time(text: str, today: date | None = None) -> int | None:
    """Ms since the epoch of ``2026-11-20 09:41:07.225`` or its parts, with or without a zone. What ``09:41`` and
    ``11-20 09:41`` leave out is that of ``today``.
    """
    try:
        if _SHORT_DAY.fullmatch(text):
            year = (today or datetime.now().astimezone().date()).year
            text = f"{year:04d}-{text}"
        if _CLOCK.fullmatch(text):
            moment = datetime.combine(today or datetime.now().astimezone().date(), time.fromisoformat(_padded(text)))
        elif _DAY.fullmatch(text):
            moment = datetime.fromisoformat(_padded_day(text))
        else:
            return None
        return (
            round(moment.astimezone().timestamp() * 1000) if moment.tzinfo is None else round(moment.timestamp() * 1000)
        )
    except (ValueError, OverflowError, OSError):
        return None


def is_dated(text: str) -> bool:
    """True if ``text``, which :func:`parse_time` reads, names its day and year."""
    return not (_CLOCK.fullmatch(text) or _SHORT_DAY.fullmatch(text))


def _padded(clock: str) -> str:
    clock = clock if clock[1] != ":" else f"0{clock}"
    seconds, dot, part = clock.partition(".")
    return f"{seconds}.{part.ljust(6, '0')}" if dot else seconds


def _padded_day(text: str) -> str:
    match = re.fullmatch(r"(\S{10})(?:[ T](\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?\s*(Z|[+-]\d{2}:?\d{2})?", text)
    assert match is not None
    day, clock, zone = match.groups()
    return f"{day}T{_padded(clock) if clock else '00:00'}{zone or ''}"


MAX_HISTORY = 200


class History:
    """Visited places and the current one. ``on_place`` is called with every place that was gone to."""

    def __init__(self, on_place: Callable[[Place], object] = lambda _place: None) -> None:
        self._places: list[Place] = []
        self._at = -1
        self._on_place = on_place

    @property
    def current(self) -> Place | None:
        """The current place."""
        return self._places[self._at] if self._at >= 0 else None

    @property
    def places(self) -> tuple[Place, ...]:
        """Every place up to the current one, oldest first."""
        return tuple(self._places[: self._at + 1])

    def visit(self, place: Place) -> None:
        """Add a step; forgets the steps ahead."""
        if place == self.current:
            return
        del self._places[self._at + 1 :]
        self._places.append(place)
        del self._places[:-MAX_HISTORY]
        self._at = len(self._places) - 1
        self._on_place(place)

    def move(self, place: Place) -> None:
        """The selection moved: this step is now there."""
        if self._at >= 0:
            self._places[self._at] = place
            self._on_place(place)
        else:
            self.visit(place)

    @property
    def can_go_back(self) -> bool:
        return self._at > 0

    @property
    def can_go_forward(self) -> bool:
        return self._at + 1 < len(self._places)

    def back(self) -> Place | None:
        """Go one step back; None at the first."""
        return self._step(-1) if self.can_go_back else None

    def forward(self) -> Place | None:
        """Go one step forward; None at the last."""
        return self._step(1) if self.can_go_forward else None

    def clear(self) -> None:
        """Forget all places: another store was opened."""
        self._places.clear()
        self._at = -1

    def _step(self, by: int) -> Place:
        self._at += by
        return self._places[self._at]

"""Where is my message: the evidence for it gathered from log, queues, index and tables, and the verdict on it.

The question of every incident: "SEND_OK, and it is gone". An identifier names a unit (offset id, topic/queue/offset) or
messages (unique key, key); one result a message. The verdicts are of :mod:`engine.rules.where`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from engine.codec import properties as props
from engine.codec.batch import Member, walk
from engine.codec.compression import unpack
from engine.codec.index_keys import TAG, key_text
from engine.codec.message import COMPRESSED, INNER_BATCH, Unit, host_text, parse_offset_message_id
from engine.errors import CorruptUnit, Undecoded
from engine.inspection.byte_scan import items_with, units_with
from engine.inspection.entry_verdict import resolve
from engine.inspection.lookup import by_key, parse_number
from engine.inspection.queue_place import bounds_by_queue, units_at
from engine.inspection.where.facts import Evidence, FactFinder
from engine.inspection.where.lost import LostFinder, WhereResult
from engine.releases import name_next_start
from engine.rules import where as rules

if TYPE_CHECKING:
    from engine.inspection.queue_reader import QueueReader
    from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import release_of

WHOLE_SCAN = 4 << 30
"""Bytes of a log that are looked through for a key that the index leads to; for one that it does not know, all are."""
FAMILY_SCAN = 256 << 20
"""Bytes of a log that are looked through for the units of one message; in a larger one the index is believed."""
SOME = 16
"""Messages whose units are looked for one message at a time; those of more are found in one pass."""
SEEN: frozenset[rules.Verdict] = frozenset({"found", "consumed"})
"""Verdicts that what was read proves; every other one says that something is not there."""
MOST_UNREAD = 8
"""Files that could not be read which the evidence names."""
MOST_BATCHES = 100_000
"""Batch units of a queue that are looked into for a key of a message inside them."""
MOST_NAMES = 10_000
"""Names that begin with half an id which are counted."""
AT_HAND = 16
"""Units that a question keeps: it comes back to those of one message."""
Progress = Callable[[int], None]

__all__ = ["Evidence", "KnownPlaces", "WhereResult", "where", "where_tagged"]


def where(
    store: StoreSnapshot,
    text: str,
    topic: str | None = None,
    group: str | None = None,
    progress: Progress | None = None,
) -> Iterator[WhereResult]:
    """One result for each message that ``text`` names, at least one.

    With ``topic`` only keys of messages of that topic are meant; with ``group`` the verdict speaks of that group's
    progress, its filter and its own retries and dead letters.
    """
    for result in _Search(store, topic, group, progress).run(text):
        yield _of_release(store, _as_far_as_read(store, _as_far_as_compacted(store, result, topic)))


def where_tagged(
    store: StoreSnapshot,
    tags: str,
    topic: str | None = None,
    group: str | None = None,
    progress: Progress | None = None,
) -> Iterator[WhereResult]:
    """One result for each message to which the index leads by ``tags``, newest first; none where it leads to none. Only
    RocketMQ 5.4 and later index tags, so a message without an entry may be in the log all the same.
    """
    search = _Search(store, topic, group, progress)
    for unit in by_key(store, key_text(tags, TAG), topic):
        yield _of_release(store, _as_far_as_read(store, search.of_unit(unit)))


def _of_release(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    """``result`` with the name of the store's release in each sentence about the next start."""
    release = release_of(store)
    evidence = [replace(one, holds=name_next_start(one.holds, release)) for one in result.evidence]
    return replace(result, evidence=evidence, next_step=name_next_start(result.next_step, release))


def _as_far_as_compacted(store: StoreSnapshot, result: WhereResult, topic: str | None) -> WhereResult:
    """``unknown`` in place of ``expired`` where the message may live on in the compaction log of its topic."""
    part = next((part for part in store.undecoded if part.compacted), None)
    if result.verdict != "expired" or part is None:
        return result
    topic = result.topic or next((one.topic for one in result.evidence if one.topic is not None), topic)
    queues = [
        queue
        for queue in part.compacted
        if topic in {None, queue.rpartition("/")[0]}
        and (result.queue_id is None or queue == f"{topic}/{result.queue_id}")
    ]
    if not queues:
        return result
    folder = store.path / part.folder
    named = ", ".join(queues[:MOST_UNREAD])
    holds = f"may live on in {part.folder}/{named}, which is not decoded"
    store.reading.note_undecoded(folder, holds)
    return replace(
        result,
        verdict="unknown",
        evidence=[*result.evidence, Evidence("compaction", str(folder), None, holds)],
        next_step=rules.COMPACTED_STEP,
    )


def _as_far_as_read(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    """The verdict, or ``unknown`` where it was concluded over a file that could not be read, or over a part that is not
    decoded: it may hold the answer.
    """
    unread_parts = (*store.unread, *store.reading.undecoded)
    if not unread_parts or result.verdict in SEEN:
        return result
    told = {(one.file, one.holds) for one in result.evidence}
    unread = [
        Evidence("not read", one.file, None, one.error)
        for one in unread_parts[:MOST_UNREAD]
        if (one.file, one.error) not in told
    ]
    routes = [one if one.verdict in SEEN else replace(one, verdict="unknown") for one in result.routes]
    kept = result.next_step in (rules.UNDECODED_STEP, rules.COMPACTED_STEP)
    step = result.next_step if kept else rules.NEXT_STEPS["unknown"]
    return replace(
        result, verdict="unknown", evidence=[*result.evidence, *unread], next_step=step, routes=tuple(routes)
    )


class KnownPlaces:
    """:func:`where` for many keys, whose units somebody has found already: nothing is scanned for them.

    ``relatives``: unique key → offsets of all units of the log that have it, of every key that the asked units have.
    """

    def __init__(
        self,
        store: StoreSnapshot,
        relatives: Mapping[str, Sequence[int]],
        topic: str | None = None,
        group: str | None = None,
    ) -> None:
        self._store, self._topic = store, topic
        self._search = _Search(store, topic, group, None)
        self._search.know(relatives)

    def ask(
        self, text: str, offsets: Sequence[int], unreadable: tuple[int, int] | None = None
    ) -> Iterator[WhereResult]:
        """One result for each message that ``text`` names: ``offsets`` are those of all units that have it as a key.

        ``unreadable``: a place where it stands in bytes that are no unit, and where those begin.
        """
        self._search.tell(offsets, unreadable)
        for result in self._search.run(text):
            yield _as_far_as_read(self._store, _as_far_as_compacted(self._store, result, self._topic))


@dataclass(slots=True)
class _Beginning:
    """Names that begin with what was asked: half an id names them all."""

    text: str
    names: set[str] = field(default_factory=set)

    def take(self, unit: Unit) -> None:
        """Look at the names of one unit."""
        if len(self.names) < MOST_NAMES:
            names = {unit.unique_key, rules.own_key(unit), *unit.keys}
            self.names |= {name for name in names if name is not None and name.startswith(self.text)}


class _Search:
    def __init__(self, store: StoreSnapshot, topic: str | None, group: str | None, progress: Progress | None) -> None:
        self._store, self._topic, self._group, self._progress = store, topic, group, progress
        self._facts = FactFinder(store, group)
        self._lost = LostFinder(store, self._facts, topic, progress)
        self._unreadable: tuple[int, int] | None = None
        """First place where the key's text stands in bytes that are no unit, and where those begin."""
        self._gathered: dict[str, list[int]] = {}
        """Unique key → offsets of the units that have it, where many were looked for at once."""
        self._known: Sequence[int] | None = None
        """Offsets of the units that are named, where somebody else has looked for them."""
        self._at_hand: dict[int, Unit | None] = {}
        self._members: dict[int, Member] = {}
        """Offset of a batch unit → the message inside it that has the asked key."""

    def know(self, relatives: Mapping[str, Sequence[int]]) -> None:
        """Nothing is to be scanned: these are all units that share a unique key."""
        self._gathered = {key: list(offsets) for key, offsets in relatives.items()}
        self._known = ()

    def tell(self, offsets: Sequence[int], unreadable: tuple[int, int] | None) -> None:
        """Which units the next question names."""
        self._known, self._unreadable, self._members = offsets, unreadable, {}

    # -- what the identifier names

    def of_unit(self, unit: Unit) -> WhereResult:
        """The verdict on the message of a unit that somebody else found."""
        return self._judge([unit], asked=unit)

    def run(self, text: str) -> Iterator[WhereResult]:
        place = _queue_place(text)
        if place is not None and place[0] in self._facts.topics:
            yield self._by_queue(*place)
            return
        parsed = parse_offset_message_id(text)
        if parsed is not None:
            unit = self._store.log.seen_at(parsed[1])
            if isinstance(unit, Unit) and unit.offset_msg_id == text.upper():
                yield self._judge(self._family(unit), asked=unit)
                return
        found = False
        beginning = _Beginning(text)
        for family in self._by_key(text, beginning):
            found = True
            yield self._judge(family, asked=None, key=text)
        for offset, member in self._batches_with(text).items() if not found or self._members else ():
            batch = self._unit_at(offset)
            if batch is not None:
                found = True
                yield self._judge_member(batch, member, text)
        if found:
            return
        if place is not None:
            yield self._by_queue(*place)
        elif parsed is not None and self._is_store_host(parsed[0]):
            yield _asked("offset", text, self._lost.offset(parsed[1], text))
        elif parsed is not None and isinstance(other := self._store.log.seen_at(parsed[1]), Unit):
            yield self._of_another_host(text, parsed[0], other)
        elif (number := parse_number(text)) is not None and len(text) not in {32, 56} and self._topic is None:
            yield self._by_offset(number)
        else:
            names = sorted(beginning.names)
            host = parsed[0] if parsed else None
            yield _asked("key", text, self._lost.key(text, host, self._unreadable, names))

    def _batches_with(self, text: str) -> Mapping[int, Member]:
        """Batch units that hold a message with this key, by offset: those that were met on the way, and packed ones."""
        if self._known is None and text:
            for queues in self._store.topics().values():
                for queue in queues.values():
                    if queue.kind == "batch":
                        self._look_into_packed(queue, text)
        return self._members

    def _look_into_packed(self, queue: QueueReader, text: str) -> None:
        """Look into the packed batches of one queue: their keys do not stand in the bytes of the log."""
        if self._topic not in {None, queue.topic}:
            return
        for entry in islice(queue.entries(max(queue.min_offset, 0)), MOST_BATCHES):
            unit = self._store.log.seen_at(entry.physical_offset, crc=False) if entry.state == "entry" else None
            if isinstance(unit, Unit) and unit.sys_flag & COMPRESSED:
                self._note_member(unit, text)

    def _note_member(self, unit: Unit, text: str) -> None:
        """Keep the message of a batch unit that has the key ``text``."""
        if not unit.sys_flag & INNER_BATCH or not self._wanted(unit):
            return
        for member in walk(unpack(unit.body, unit.sys_flag).data):
            if isinstance(member, Member) and (text == member.unique_key or text in member.keys):
                self._members.setdefault(unit.offset, member)
                return

    def _judge_member(self, unit: Unit, member: Member, text: str) -> WhereResult:
        """The verdict on a message inside a batch unit: it is read where the unit is, and no index leads to it."""
        result = self._judge(self._family(unit), asked=unit)
        holds = (
            f"member {member.index:,} of the batch at {unit.offset:,}, message "
            f"{unit.topic}/{unit.queue_id}/{unit.queue_offset + member.index}; no index holds keys of members"
        )
        route = rules.Route("uniqueKey" if text == member.unique_key else "key", text, "notInIndex", holds)
        evidence = [self._facts.at(unit, "batch", holds), *result.evidence]
        return replace(
            result,
            queue_offset=unit.queue_offset + member.index,
            evidence=evidence,
            routes=(*result.routes, route),
        )

    def _of_another_host(self, text: str, host: bytes, unit: Unit) -> WhereResult:
        """An offset id that names another broker, of a place where this log has a unit of its own."""
        holds = (
            f"{text} names the broker {host_text(host)}; at this offset this log has a unit that {unit.store_host} "
            f"stored: {unit.topic}/{unit.queue_id}/{unit.queue_offset}"
        )
        evidence = [self._facts.at(unit, "id", holds)]
        result = WhereResult("unknown", None, None, None, None, evidence, rules.OTHER_HOST_STEP)
        return _asked("offset", text, result)

    def _by_queue(self, topic: str, queue_id: int, offset: int) -> WhereResult:
        """The unit that the queue's entry leads to, else the one of the log that was given this queue offset."""
        queue = None
        with contextlib.suppress(Undecoded):  # the log's units tell; what is said of the queue comes with the evidence
            queue = self._store.queue(topic, queue_id)
        if queue is not None and queue.min_offset <= offset < queue.max_offset:
            entry = queue.entry(offset)
            resolved = resolve(self._store.log, topic, queue_id, entry, crc=True) if entry is not None else None
            if resolved is not None and resolved.unit is not None and resolved.verdict in {"ok", "wrongTag"}:
                return self._judge(self._family(resolved.unit), asked=resolved.unit)
        found = list(self._units_of_place(queue, topic, queue_id, offset))
        if not found:
            said = f"{topic}/{queue_id}/{offset}"
            return _asked("queue", said, self._lost.queue_place(topic, queue_id, offset))
        kept = [unit for unit in found if unit.offset < self._store.log.max_offset] or found
        return self._judge(self._family(kept[-1]), asked=kept[-1])

    def _units_of_place(self, queue: QueueReader | None, topic: str, queue_id: int, offset: int) -> Iterator[Unit]:
        """Units of the log with this queue offset, looked for between the entries around it."""
        start, stop = bounds_by_queue(queue, offset) if queue is not None else (0, self._store.log.end_offset)
        start = max(start, self._store.log.min_offset, 0)
        stop = min(stop, self._store.log.end_offset)
        if offset >= 0 and start < stop:
            yield from units_at(self._store.log, topic, queue_id, offset, start, stop, self._progress)

    def _by_offset(self, offset: int) -> WhereResult:
        unit = self._store.log.seen_at(offset)
        if isinstance(unit, Unit):
            return self._judge(self._family(unit), asked=unit)
        return _asked("offset", f"{offset:,}", self._lost.offset(offset, f"{offset:,}"))

    def _by_key(self, text: str, beginning: _Beginning) -> Iterator[list[Unit]]:
        """The units of each message with this unique key, else with this key among KEYS; the newest message first.

        Places are kept, not units: a key may be that of a whole log.
        """
        found: dict[int, str | None] = {}
        own: set[int] = set()
        for unit in self._named(text, beginning):
            found[unit.offset] = unit.unique_key
            if text in {unit.unique_key, rules.own_key(unit)}:
                own.add(unit.offset)
        offsets = sorted(own or found, reverse=True)
        if len(offsets) > SOME and self._known is None:
            self._gather({key for offset in offsets if (key := found[offset])})
        seen: set[int] = set()
        for offset in offsets:
            asked = self._unit_at(offset) if offset not in seen else None
            if asked is not None:
                family = self._family(asked)
                seen |= {one.offset for one in family}
                yield family

    def _named(self, text: str, beginning: _Beginning) -> Iterator[Unit]:
        """Units with this key of either kind, found by the index and by their bytes."""
        if self._known is not None:
            for unit in map(self._unit_at, self._known):
                if unit is None or not self._wanted(unit):
                    continue
                if unit.sys_flag & INNER_BATCH and text not in {unit.unique_key, rules.own_key(unit), *unit.keys}:
                    self._note_member(unit, text)
                else:
                    yield unit
            return
        none = True
        for unit in by_key(self._store, text, self._topic):
            none = False
            yield unit
        if text and (none or self._store.log.sequence.total_size <= WHOLE_SCAN):
            needle = text.encode()
            for place, item in items_with(self._store.log, needle, progress=self._progress, word=True):
                if not isinstance(item, Unit):
                    self._unreadable = self._unreadable or (place, item.offset)
                    continue
                beginning.take(item)
                self._note_member(item, text)
                if text in {item.unique_key, rules.own_key(item), *item.keys} and self._wanted(item):
                    yield item

    def _unit_at(self, offset: int) -> Unit | None:
        """The unit at ``offset`` with its body's CRC checked; the last :data:`AT_HAND` are not read again."""
        if offset in self._at_hand:
            return self._at_hand[offset]
        found = self._store.log.seen_at(offset)
        if len(self._at_hand) == AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
        unit = self._at_hand[offset] = found if isinstance(found, Unit) else None
        return unit

    def _wanted(self, unit: Unit) -> bool:
        return self._topic in {None, unit.topic, unit.properties.get(props.REAL_TOPIC)}

    def _family(self, unit: Unit) -> list[Unit]:
        """Every unit of the same message, oldest first."""
        key = unit.unique_key
        if not key:
            return [unit]
        found = {unit.offset: unit}
        if self._known is None or key not in self._gathered:
            for other in by_key(self._store, key):
                if other.unique_key == key:
                    found[other.offset] = other
        for other in self._relatives(key):
            if other.unique_key == key:
                found[other.offset] = self._unit_at(other.offset) or other
        parted = rules.messages([found[offset] for offset in sorted(found)])
        return next(family for family in parted if any(one.offset == unit.offset for one in family))

    def _relatives(self, key: str) -> Iterator[Unit]:
        """Units that may have this unique key, found by their bytes."""
        if key in self._gathered:
            units = (self._unit_at(offset) for offset in self._gathered[key])
            return (unit for unit in units if unit is not None)
        return units_with(self._store.log, f"{props.UNIQUE_KEY}\x01{key}".encode(), self._family_start())

    def _gather(self, keys: set[str]) -> None:
        """Find the units of many messages in one pass."""
        self._gathered = {key: [] for key in keys}
        for unit in units_with(self._store.log, f"{props.UNIQUE_KEY}\x01".encode(), self._family_start()):
            if unit.unique_key in self._gathered:
                self._gathered[unit.unique_key].append(unit.offset)

    def _family_start(self) -> int | None:
        return None if self._store.log.sequence.total_size <= FAMILY_SCAN else self._behind_index()

    def _behind_index(self) -> int:
        """Offset from which on the index knows nothing."""
        end = max(self._store.log.min_offset, 0)
        for reader in self._store.index_files():
            try:
                end = max(end, reader.header.end_phy_offset)
            except CorruptUnit:
                continue
        return end

    def _is_store_host(self, host: bytes) -> bool:
        log = self._store.log
        unit = log.seen_at(log.min_offset, crc=False) if log.files else None
        tail = log.items_before(log.max_offset, 1, crc=False)
        return any(isinstance(one, Unit) and one.store_host_raw == host for one in (unit, *tail))

    # -- the verdict

    def _judge(self, family: list[Unit], asked: Unit | None, key: str | None = None) -> WhereResult:
        """The verdict on a message; shown first is the unit that was asked for, else the one that consumers read."""
        told = rules.of_group(family, self._group) or family
        unit = rules.deciding_unit(told)
        shown = asked or unit
        evidence = [self._facts.unit(one) for one in sorted(family, key=lambda one: one is not shown)]
        facts = self._facts.facts(told, unit, evidence, key)
        if unit.crc == "bad":
            holds = f"0x{unit.body_crc:08X} is stored, the body has 0x{unit.raw_crc or 0:08X}"
            evidence.append(self._facts.at(unit, "body CRC", holds))
        if unit.offset >= facts.log_end:
            holds = "a broker's log ends here; the next start drops what stands behind, or the last one has"
            evidence.append(Evidence("end of the log", None, facts.log_end, holds))
        verdict = rules.with_group(rules.conclude(told, facts), unit, facts)
        step = rules.next_step(verdict, unit, facts)
        place = (shown.offset, shown.topic, shown.queue_id, shown.queue_offset)
        return WhereResult(
            verdict, *place, evidence, step, tuple(rules.routes(unit, facts)), rules.life(told, unit, facts)
        )


def _asked(by: rules.By, value: str, result: WhereResult) -> WhereResult:
    """A result without a unit, with the one way that was tried."""
    told = [one.holds for one in result.evidence if one.what not in {"not ruled out", "beginning"}]
    return replace(result, routes=(rules.Route(by, value, result.verdict, told[-1] if told else ""),))


def _queue_place(text: str) -> tuple[str, int, int] | None:
    """``topic/queue/offset``; a topic may hold slashes itself."""
    pieces = text.rsplit("/", 2)
    if len(pieces) != 3 or not pieces[0]:
        return None
    queue_id, offset = parse_number(pieces[1]), parse_number(pieces[2])
    return (pieces[0], queue_id, offset) if queue_id is not None and offset is not None else None

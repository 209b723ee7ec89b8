"""Locates a message: gathers the evidence from log, queues, index and tables, and gives the verdict.

The question of every incident: "SEND_OK, and it is gone". An identifier names a unit (offset id, topic/queue/offset) or
messages (unique key, key); one result per message. :mod:`engine.rules.where` has the verdicts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from engine.callbacks import OffsetProgress
from engine.codec import properties as props
from engine.codec.batch import Member, walk
from engine.codec.compression import unpack
from engine.codec.index_keys import TAG, key_text
from engine.codec.message import COMPRESSED, INNER_BATCH, Unit, host_text, parse_offset_message_id
from engine.errors import CorruptUnit, Undecoded
from engine.inspection import undecoded
from engine.inspection.byte_scan import items_with, units_with
from engine.inspection.entry_verdict import resolve
from engine.inspection.lookup import by_key, parse_number
from engine.inspection.misnamed_files import misnamed_log_files
from engine.inspection.older_front import older_front
from engine.inspection.queue_place import bounds_by_queue, units_at
from engine.inspection.where.compacted import settle_compacted
from engine.inspection.where.facts import Evidence, FactFinder
from engine.inspection.where.lost import LostFinder, WhereResult
from engine.inspection.where.tiered import settle_tiered
from engine.releases import name_next_start
from engine.rules import where as rules
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue
from engine.inspection.written_release import release_of

WHOLE_SCAN_BYTES = 4 << 30
"""Bytes of a log that are searched for a key that the index knows; for an unknown key all are."""
FAMILY_SCAN_BYTES = 256 << 20
"""Bytes of a log that are searched for the units of one message; in a larger log the index is trusted."""
MAX_SINGLE_SEARCHES = 16
"""Number of messages whose units are searched one message at a time; for more, all are found in one pass."""
PROVEN_VERDICTS: frozenset[rules.Verdict] = frozenset({"found", "consumed"})
"""Verdicts that the read bytes prove; every other one states that something is missing."""
_NOT_REACHED: frozenset[rules.Verdict] = frozenset({"notInQueue", "notYetDispatched", "notInIndex", "damaged"})
_GONE: frozenset[rules.Verdict] = frozenset({"expired", "damaged", "truncated", "neverSeen"})
"""Verdicts on a message of which the log has no unit."""
MAX_UNREAD = 8
"""Number of unreadable files that the evidence names."""
MAX_BATCHES = 100_000
"""Number of batch units of a queue that are searched for a key of a message inside them."""
MAX_NAMES = 10_000
"""Number of names beginning with half an id that are counted."""
MAX_CACHED_UNITS = 16
"""Number of units that a question keeps in memory: it returns to those of one message."""

__all__ = ["Evidence", "KnownPlaces", "WhereResult", "where", "where_tagged"]


def where(
    store: StoreSnapshot,
    text: str,
    topic: str | None = None,
    group: str | None = None,
    progress: OffsetProgress | None = None,
) -> Iterator[WhereResult]:
    """Yield a result for each message that ``text`` names, at least one.

    With ``topic`` only keys of messages of that topic count; with ``group`` the verdict covers that group's progress,
    its filter and its own retries and dead letters.
    """
    for result in _Search(store, topic, group, progress).run(text):
        settled = settle_compacted(store, text, _expired_if_older(store, result), topic)
        settled = _unknown_if_misnamed(store, settle_tiered(store, text, settled, topic))
        yield _unknown_if_unread(store, _of_release(store, settled))


def where_tagged(
    store: StoreSnapshot,
    tags: str,
    topic: str | None = None,
    group: str | None = None,
    progress: OffsetProgress | None = None,
) -> Iterator[WhereResult]:
    """Yield a result for each message that the index finds by ``tags``, newest first; nothing if it finds none.

    Only RocketMQ 5.4 and later index tags, so the log may hold messages without an entry.
    """
    search = _Search(store, topic, group, progress)
    for unit in by_key(store, key_text(tags, TAG), topic):
        yield _unknown_if_unread(store, _of_release(store, search.of_unit(unit)))


def _of_release(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    """Return ``result`` with the name of the store's release in each sentence about the next start."""
    release = release_of(store)
    evidence = [replace(item, holds=name_next_start(item.holds, release)) for item in result.evidence]
    return replace(result, evidence=evidence, next_step=name_next_start(result.next_step, release))


def _expired_if_older(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    """Replace the verdict on a message that no queue leads to, or that no file holds, by ``expired`` if retention had
    deleted its place and an older copy brought files of it back.
    """
    if result.verdict not in _NOT_REACHED:
        return result
    offset = result.physical_offset
    if offset is None:
        offset = next((item.offset for item in result.evidence if item.what == "queue entry"), None)
    older = older_front(store) if offset is not None else None
    if older is None or offset is None or not older.holds(offset):
        return result
    statement = sentence(
        "retention had deleted the log in front of {start:,}; an older copy brought files of it back", start=older.start
    )
    evidence = [*result.evidence, Evidence("commit log", older.files[0].path, older.begin, statement)]
    next_step = rules.OLDER_STEP if offset < older.end else rules.NEXT_STEPS["expired"]
    return replace(result, verdict="expired", evidence=evidence, next_step=next_step)


def _unknown_if_misnamed(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    """Replace the verdict on a message that the log does not hold by ``unknown`` if a file of the log that is not read,
    because of its name, may hold it.
    """
    if result.verdict not in _GONE or result.life:
        return result
    files = list(islice(misnamed_log_files(store), MAX_UNREAD))
    if not files:
        return result
    evidence = [
        Evidence(
            "not read",
            file.path,
            None,
            sentence("a file of the log from {offset:,} on, packed or under another name", offset=file.offset),
        )
        for file in files
    ]
    routes = tuple(replace(route, verdict="unknown") for route in result.routes)
    return replace(
        result,
        verdict="unknown",
        evidence=[*result.evidence, *evidence],
        next_step=rules.MISNAMED_STEP,
        routes=routes,
    )


def _unknown_if_unread(store: StoreSnapshot, result: WhereResult) -> WhereResult:
    """Replace the verdict by ``unknown`` if an unreadable file or an undecoded part may hold the answer."""
    unread_parts = (*store.unread, *store.reading.undecoded)
    if not unread_parts or result.verdict in PROVEN_VERDICTS:
        return result
    listed = {(item.file, item.holds) for item in result.evidence}
    unread = [
        Evidence("not read", item.file, None, item.error)
        for item in unread_parts[:MAX_UNREAD]
        if (item.file, item.error) not in listed
    ]
    routes = [item if item.verdict in PROVEN_VERDICTS else replace(item, verdict="unknown") for item in result.routes]
    has_special_step = result.next_step in (rules.UNDECODED_STEP, rules.COMPACTED_STEP)
    step = result.next_step if has_special_step else rules.NEXT_STEPS["unknown"]
    unread_files = {item.file for item in unread_parts}
    if any(item.what == "group" and item.file in unread_files for item in result.evidence):
        step = rules.GROUP_UNKNOWN_STEP
    evidence = result.evidence
    if undecoded.has_dledger_log(store):
        has_units = undecoded.has_units_beside_dledger(store)
        step = rules.SOME_UNDECODED_STEP if has_units else rules.LOG_UNDECODED_STEP
        evidence = [
            replace(item, holds=rules.NO_UNIT_BESIDE_DLEDGER_HAS_KEY) if item.holds == rules.NO_UNIT_HAS_KEY else item
            for item in evidence
            if has_units or item.holds != rules.NO_UNIT_HAS_KEY
        ]
    return replace(result, verdict="unknown", evidence=[*evidence, *unread], next_step=step, routes=tuple(routes))


class KnownPlaces:
    """:func:`where` for many keys whose units are already known: nothing is scanned for them.

    ``relatives``: unique key → offsets of all units of the log that have it, for every key of the requested units.
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
        """Yield a result for each message that ``text`` names; ``offsets`` are those of all units that have it as a
        key.

        ``unreadable``: a place at which the text is in bytes that are no unit, and the start of those bytes.
        """
        self._search.tell(offsets, unreadable)
        for result in self._search.run(text):
            settled = settle_compacted(self._store, text, _expired_if_older(self._store, result), self._topic)
            settled = settle_tiered(self._store, text, settled, self._topic)
            yield _unknown_if_unread(self._store, settled)


@dataclass(slots=True)
class _Beginning:
    """Names that begin with the requested text: half an id matches all of them."""

    text: str
    names: set[str] = field(default_factory=set)

    def take(self, unit: Unit) -> None:
        """Look at the names of one unit."""
        if len(self.names) < MAX_NAMES:
            names = {unit.unique_key, rules.own_key(unit), *unit.keys}
            self.names |= {name for name in names if name is not None and name.startswith(self.text)}


class _Search:
    def __init__(
        self, store: StoreSnapshot, topic: str | None, group: str | None, progress: OffsetProgress | None
    ) -> None:
        self._store, self._topic, self._group, self._progress = store, topic, group, progress
        self._facts = FactFinder(store, group)
        self._lost = LostFinder(store, self._facts, topic, progress)
        self._unreadable: tuple[int, int] | None = None
        """First place of the key's text in bytes that are no unit, and the start of those bytes."""
        self._gathered: dict[str, list[int]] = {}
        """Unique key → offsets of the units that have it, if many were searched at once."""
        self._known: Sequence[int] | None = None
        """Offsets of the named units, if the caller knows them."""
        self._at_hand: dict[int, Unit | None] = {}
        self._members: dict[int, Member] = {}
        """Offset of a batch unit → the message inside it that has the requested key."""

    def know(self, relatives: Mapping[str, Sequence[int]]) -> None:
        """Nothing is to be scanned: these are all units that share a unique key."""
        self._gathered = {key: list(offsets) for key, offsets in relatives.items()}
        self._known = ()

    def tell(self, offsets: Sequence[int], unreadable: tuple[int, int] | None) -> None:
        """Which units the next question names."""
        self._known, self._unreadable, self._members = offsets, unreadable, {}

    # -- what the identifier names

    def of_unit(self, unit: Unit) -> WhereResult:
        """The verdict on the message of a given unit."""
        return self._judge([unit], requested=unit)

    def run(self, text: str) -> Iterator[WhereResult]:
        place = _queue_place(text)
        if place is not None and place[0] in self._facts.topics:
            yield self._by_queue(*place)
            return
        parsed = parse_offset_message_id(text)
        if parsed is not None:
            unit = self._store.log.seen_at(parsed[1])
            if isinstance(unit, Unit) and unit.offset_msg_id == text.upper():
                yield self._judge(self._family(unit), requested=unit)
                return
        has_result = False
        beginning = _Beginning(text)
        for family in self._by_key(text, beginning):
            has_result = True
            yield self._judge(family, requested=None, key=text)
        for offset, member in self._batches_with(text).items() if not has_result or self._members else ():
            batch = self._unit_at(offset)
            if batch is not None:
                has_result = True
                yield self._judge_member(batch, member, text)
        if has_result:
            in_dledger = self._lost.key_in_dledger(text)
            if in_dledger is not None:
                yield _with_only_route("key", text, in_dledger)
            return
        if place is not None:
            yield self._by_queue(*place)
        elif parsed is not None and self._is_store_host(parsed[0]):
            yield _with_only_route("offset", text, self._lost.offset(parsed[1], text))
        elif parsed is not None and isinstance(unit_at_offset := self._store.log.seen_at(parsed[1]), Unit):
            yield self._of_another_host(text, parsed[0], unit_at_offset)
        elif (number := parse_number(text)) is not None and len(text) not in {32, 56} and self._topic is None:
            yield self._by_offset(number)
        else:
            names = sorted(beginning.names)
            host = parsed[0] if parsed else None
            yield _with_only_route("key", text, self._lost.key(text, host, self._unreadable, names))

    def _batches_with(self, text: str) -> Mapping[int, Member]:
        """Batch units that hold a message with this key, by offset: those that were met on the way, and packed ones."""
        if self._known is None and text:
            for queues in self._store.queues.by_topic().values():
                for queue in queues.values():
                    if queue.kind == "batch":
                        self._look_into_packed(queue, text)
        return self._members

    def _look_into_packed(self, queue: AnyQueue, text: str) -> None:
        """Look into the packed batches of one queue: their keys do not stand in the bytes of the log."""
        if self._topic not in {None, queue.topic}:
            return
        for entry in islice(queue.entries(max(queue.min_offset, 0)), MAX_BATCHES):
            unit = self._store.log.seen_at(entry.physical_offset, crc=False) if entry.state == "entry" else None
            if isinstance(unit, Unit) and unit.sys_flag & COMPRESSED:
                self._note_member(unit, text)

    def _note_member(self, unit: Unit, text: str) -> None:
        """Keep the message of a batch unit that has the key ``text``."""
        if not unit.sys_flag & INNER_BATCH or not self._wanted(unit):
            return
        capsule = self._store.capsule
        if capsule is not None and (unit.sys_flag & COMPRESSED or capsule.masks_units):
            self._store.note_body_left_out(unit.offset)
            return
        for member in walk(unpack(unit.body, unit.sys_flag).data):
            if isinstance(member, Member) and (text == member.unique_key or text in member.keys):
                self._members.setdefault(unit.offset, member)
                return

    def _judge_member(self, unit: Unit, member: Member, text: str) -> WhereResult:
        """The verdict on a message inside a batch unit: consumers read it with the unit, and no index finds it."""
        result = self._judge(self._family(unit), requested=unit)
        statement = sentence(
            "member {n:,} of the batch at {offset:,}, message {place}; no index holds keys of members",
            n=member.index,
            offset=unit.offset,
            place=f"{unit.topic}/{unit.queue_id}/{unit.queue_offset + member.index}",
        )
        route = rules.Route("uniqueKey" if text == member.unique_key else "key", text, "notInIndex", statement)
        evidence = [self._facts.at(unit, "batch", statement), *result.evidence]
        return replace(
            result,
            queue_offset=unit.queue_offset + member.index,
            evidence=evidence,
            routes=(*result.routes, route),
        )

    def _of_another_host(self, text: str, host: bytes, unit: Unit) -> WhereResult:
        """Handle an offset id that names another broker, if this log has a unit of its own at that offset."""
        statement = sentence(
            "{name} names the broker {host}; at this offset this log has a unit that {own} stored: {place}",
            name=text,
            host=host_text(host),
            own=unit.store_host,
            place=f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}",
        )
        evidence = [self._facts.at(unit, "id", statement)]
        result = WhereResult("unknown", None, None, None, None, evidence, rules.OTHER_HOST_STEP)
        return _with_only_route("offset", text, result)

    def _by_queue(self, topic: str, queue_id: int, offset: int) -> WhereResult:
        """The unit that the queue's entry points to, else the unit of the log with this queue offset."""
        queue = None
        with contextlib.suppress(Undecoded):  # the log's units decide; the evidence has the state of the queue
            queue = self._store.queues.find(topic, queue_id)
        if queue is not None and queue.min_offset <= offset < queue.max_offset:
            entry = queue.entry(offset)
            resolved = resolve(self._store.log, topic, queue_id, entry, crc=True) if entry is not None else None
            if resolved is not None and resolved.unit is not None and resolved.verdict in {"ok", "wrongTag"}:
                return self._judge(self._family(resolved.unit), requested=resolved.unit)
        units = list(self._units_of_place(queue, topic, queue_id, offset))
        if not units:
            place_text = f"{topic}/{queue_id}/{offset}"
            return _with_only_route("queue", place_text, self._lost.queue_place(topic, queue_id, offset))
        readable = [unit for unit in units if unit.offset < self._store.log.max_offset] or units
        return self._judge(self._family(readable[-1]), requested=readable[-1])

    def _units_of_place(self, queue: AnyQueue | None, topic: str, queue_id: int, offset: int) -> Iterator[Unit]:
        """Units of the log with this queue offset, looked for between the entries around it."""
        start, stop = bounds_by_queue(queue, offset) if queue is not None else (0, self._store.log.end_offset)
        start = max(start, self._store.log.min_offset, 0)
        stop = min(stop, self._store.log.end_offset)
        if offset >= 0 and start < stop:
            yield from units_at(self._store.log, topic, queue_id, offset, start, stop, self._progress)

    def _by_offset(self, offset: int) -> WhereResult:
        unit = self._store.log.seen_at(offset)
        if isinstance(unit, Unit):
            return self._judge(self._family(unit), requested=unit)
        return _with_only_route("offset", f"{offset:,}", self._lost.offset(offset, f"{offset:,}"))

    def _by_key(self, text: str, beginning: _Beginning) -> Iterator[list[Unit]]:
        """The units of each message with this unique key, else with this key among KEYS; the newest message first.

        Keeps offsets, not units: all units of a log may have the same key.
        """
        key_of_unit: dict[int, str | None] = {}
        own_offsets: set[int] = set()
        for unit in self._named(text, beginning):
            key_of_unit[unit.offset] = unit.unique_key
            if text in {unit.unique_key, rules.own_key(unit)}:
                own_offsets.add(unit.offset)
        offsets = sorted(own_offsets or key_of_unit, reverse=True)
        if len(offsets) > MAX_SINGLE_SEARCHES and self._known is None:
            self._gather({key for offset in offsets if (key := key_of_unit[offset])})
        done_offsets: set[int] = set()
        for offset in offsets:
            unit_of_key = self._unit_at(offset) if offset not in done_offsets else None
            if unit_of_key is not None:
                family = self._family(unit_of_key)
                done_offsets |= {member.offset for member in family}
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
        if text and (none or self._store.log.sequence.total_size <= WHOLE_SCAN_BYTES):
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
        """The unit at ``offset`` with its body's CRC checked; the last :data:`MAX_CACHED_UNITS` are not read again."""
        if offset in self._at_hand:
            return self._at_hand[offset]
        item = self._store.log.seen_at(offset)
        if len(self._at_hand) == MAX_CACHED_UNITS:
            del self._at_hand[next(iter(self._at_hand))]
        unit = self._at_hand[offset] = item if isinstance(item, Unit) else None
        return unit

    def _wanted(self, unit: Unit) -> bool:
        return self._topic in {None, unit.topic, unit.properties.get(props.REAL_TOPIC)}

    def _family(self, unit: Unit) -> list[Unit]:
        """Every unit of the same message, oldest first."""
        key = unit.unique_key
        if not key:
            return [unit]
        units = {unit.offset: unit}
        if self._known is None or key not in self._gathered:
            for relative in by_key(self._store, key):
                if relative.unique_key == key:
                    units[relative.offset] = relative
        for relative in self._relatives(key):
            if relative.unique_key == key:
                units[relative.offset] = self._unit_at(relative.offset) or relative
        parted = rules.messages([units[offset] for offset in sorted(units)])
        return next(family for family in parted if any(member.offset == unit.offset for member in family))

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
        return None if self._store.log.sequence.total_size <= FAMILY_SCAN_BYTES else self._behind_index()

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
        return any(isinstance(item, Unit) and item.store_host_raw == host for item in (unit, *tail))

    # -- the verdict

    def _judge(self, family: list[Unit], requested: Unit | None, key: str | None = None) -> WhereResult:
        """The verdict on a message; first the requested unit, if any, else the one that consumers read."""
        deciding_family = rules.of_group(family, self._group) or family
        unit = rules.deciding_unit(deciding_family)
        shown = requested or unit
        evidence = [self._facts.unit(member) for member in sorted(family, key=lambda member: member is not shown)]
        facts = self._facts.facts(deciding_family, unit, evidence, key)
        if unit.crc == "bad":
            statement = sentence(
                "0x{stored:08X} is stored, the body has 0x{found:08X}", stored=unit.body_crc, found=unit.raw_crc or 0
            )
            evidence.append(self._facts.at(unit, "body CRC", statement))
        if unit.offset >= facts.log_end:
            statement = sentence("a broker's log ends here; the next start drops what follows, or the last start did")
            evidence.append(Evidence("end of the log", None, facts.log_end, statement))
        verdict = rules.with_group(rules.conclude(deciding_family, facts), unit, facts)
        step = rules.next_step(verdict, unit, facts)
        place = (shown.offset, shown.topic, shown.queue_id, shown.queue_offset)
        return WhereResult(
            verdict, *place, evidence, step, tuple(rules.routes(unit, facts)), rules.life(deciding_family, unit, facts)
        )


def _with_only_route(by: rules.By, value: str, result: WhereResult) -> WhereResult:
    """Return a result without a unit, with the only way that was tried."""
    statements = [item.holds for item in result.evidence if item.what not in {"not ruled out", "beginning"}]
    return replace(result, routes=(rules.Route(by, value, result.verdict, statements[-1] if statements else ""),))


def _queue_place(text: str) -> tuple[str, int, int] | None:
    """``topic/queue/offset``; a topic may hold slashes itself."""
    pieces = text.rsplit("/", 2)
    if len(pieces) != 3 or not pieces[0]:
        return None
    queue_id, offset = parse_number(pieces[1]), parse_number(pieces[2])
    return (pieces[0], queue_id, offset) if queue_id is not None and offset is not None else None

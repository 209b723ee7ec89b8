"""Where is my message: the evidence for it gathered from log, queues, index and tables, and the verdict on it.

The question of every incident: "SEND_OK, and it is gone". An identifier names a unit (offset id, topic/queue/offset) or
messages (unique key, key); one result a message. The verdicts are of :mod:`engine.rules.where`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from engine.codec import properties as props
from engine.codec.config_tables import consumer_filters, consumer_offsets
from engine.codec.java import index_key_hash
from engine.codec.message import Unit, host_text, parse_offset_message_id, parse_unique_key
from engine.errors import StoreError
from engine.inspection.byte_scan import units_with
from engine.inspection.entry_verdict import resolve
from engine.inspection.key_trace import indexed_keys
from engine.inspection.lookup import by_key, known_topics, parse_number
from engine.inspection.tables import read_table
from engine.rules import where as rules

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot

WHOLE_SCAN = 4 << 30
"""Bytes of a log that are always looked through; a larger one only where the index knows nothing."""
_OP_LIMIT = 200_000
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was found: ``file`` and ``offset`` (bytes) where it can be seen, ``holds`` what it says."""

    what: str
    file: str | None
    offset: int | None
    holds: str


@dataclass(frozen=True, slots=True)
class WhereResult:
    """The verdict on one message; place and offsets of the unit asked for, else of the message's newest unit."""

    verdict: rules.Verdict
    physical_offset: int | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    evidence: list[Evidence] = field(default_factory=list)
    next_step: str = ""


def where(
    store: StoreSnapshot,
    text: str,
    topic: str | None = None,
    group: str | None = None,
    progress: Progress | None = None,
) -> Iterator[WhereResult]:
    """One result for each message that ``text`` names, at least one."""
    yield from _Search(store, topic, group, progress).run(text)


class _Search:
    def __init__(self, store: StoreSnapshot, topic: str | None, group: str | None, progress: Progress | None) -> None:
        self._store, self._topic, self._group, self._progress = store, topic, group, progress
        self._settled: frozenset[int] | None = None

    # -- what the identifier names

    def run(self, text: str) -> Iterator[WhereResult]:
        place = _queue_place(text)
        if place is not None and place[0] in set(known_topics(self._store)):
            yield self._by_queue(*place)
            return
        parsed = parse_offset_message_id(text)
        if parsed is not None:
            unit = self._store.log.unit_at(parsed[1])
            if isinstance(unit, Unit) and unit.offset_msg_id == text.upper():
                yield self._judge(self._family(unit), asked=unit)
                return
        families = list(self._by_key(text))
        if families:
            for family in families:
                yield self._judge(family, asked=None)
            return
        if parsed is not None and self._is_store_host(parsed[0]):
            yield self._lost_offset(parsed[1], text)
        elif (offset := parse_number(text)) is not None and len(text) not in (32, 56) and self._topic is None:
            yield self._by_offset(offset)
        else:
            yield self._lost_key(text, parsed)

    def _by_queue(self, topic: str, queue_id: int, offset: int) -> WhereResult:
        queue = self._store.queue(topic, queue_id)
        said = f"{topic}/{queue_id}/{offset}"
        if queue is None:
            return self._gone("neverSeen", [Evidence("queue", None, None, f"{topic}/{queue_id} has no folder")])
        low, high = queue.min_offset, queue.max_offset
        bounds = Evidence("queue", str(queue.sequence.folders[0]), None, f"holds offsets {low:,} to {high:,}")
        entry = queue.entry(offset)
        if offset < low:
            return self._gone("expired", [bounds], topic, queue_id, offset)
        if offset >= high:
            stale = entry is not None and entry.state == "entry"
            beyond = [e for e in self._group_evidence(topic, queue_id) if e[1] > offset]
            if stale or beyond:
                return self._gone("truncated", [bounds, *(e[0] for e in beyond)], topic, queue_id, offset)
            return self._gone("neverSeen", [bounds], topic, queue_id, offset)
        resolved = resolve(self._store.log, topic, queue_id, entry) if entry is not None else None
        if resolved is None or resolved.unit is None:
            what = Evidence("queue entry", bounds.file, None, f"{said}: {resolved.what if resolved else 'no entry'}")
            verdict: rules.Verdict = "expired" if resolved and resolved.verdict == "belowMinOffset" else "damaged"
            return self._gone(verdict, [bounds, what], topic, queue_id, offset)
        if resolved.verdict in ("wrongTopic", "wrongQueueOffset", "wrongSize"):
            what = Evidence("queue entry", bounds.file, resolved.entry.physical_offset, f"{said}: {resolved.what}")
            return self._gone("damaged", [bounds, what], topic, queue_id, offset)
        return self._judge(self._family(resolved.unit), asked=resolved.unit)

    def _by_offset(self, offset: int) -> WhereResult:
        unit = self._store.log.unit_at(offset)
        if isinstance(unit, Unit):
            return self._judge(self._family(unit), asked=unit)
        return self._lost_offset(offset, f"{offset:,}")

    def _by_key(self, text: str) -> Iterator[list[Unit]]:
        """Units with this unique key as one family; units with this key among KEYS grouped by their own unique keys."""
        found = {unit.offset: unit for unit in by_key(self._store, text, self._topic)}
        if not found or self._store.log.sequence.total_size <= WHOLE_SCAN:
            for unit in units_with(self._store.log, text.encode(), progress=self._progress):
                if (unit.unique_key == text or text in unit.keys) and self._topic in (
                    None,
                    unit.topic,
                    _real_topic(unit),
                ):
                    found[unit.offset] = unit
        own = [unit for unit in found.values() if unit.unique_key == text]
        if own:
            yield self._family(own[0])
            return
        families: dict[str, list[Unit]] = {}
        for unit in sorted(found.values(), key=lambda u: u.offset):
            families.setdefault(unit.unique_key or f"@{unit.offset}", []).append(unit)
        for units in reversed(families.values()):
            yield self._family(units[-1])

    def _family(self, unit: Unit) -> list[Unit]:
        """Every unit of the same message, oldest first."""
        key = unit.unique_key
        if key is None:
            return [unit]
        found = {unit.offset: unit}
        for other in by_key(self._store, key):
            if other.unique_key == key:
                found[other.offset] = other
        if self._store.log.sequence.total_size <= WHOLE_SCAN:
            needle = f"{props.UNIQUE_KEY}\x01{key}".encode()
            for other in units_with(self._store.log, needle, progress=self._progress):
                if other.unique_key == key:
                    found[other.offset] = other
        return [found[offset] for offset in sorted(found)]

    # -- a message that is there

    def _judge(self, family: list[Unit], asked: Unit | None) -> WhereResult:
        unit = rules.deciding_unit(family)
        shown = asked or family[-1]
        evidence = [self._unit_evidence(one) for one in family]
        place = self._place(unit, evidence)
        facts = rules.Facts(
            place=place,
            in_index=self._in_index(unit, evidence),
            settled_halves=self._settled_halves(family, evidence),
            log_end=self._store.log.max_offset,
            group_offset=self._group_offset(unit, evidence),
            group_known=self._group is not None,
            filter_matches=self._filter_matches(unit, evidence),
        )
        if unit.crc == "bad":
            evidence.append(
                self._at(unit, "body CRC", f"0x{unit.body_crc:08X} is stored, the body has 0x{unit.raw_crc or 0:08X}")
            )
        if unit.offset >= facts.log_end:
            evidence.append(
                Evidence("end of the log", None, facts.log_end, "the next start ends the log here and drops the rest")
            )
        verdict = rules.with_group(rules.conclude(family, facts), unit.queue_offset, facts)
        return WhereResult(
            verdict, shown.offset, shown.topic, shown.queue_id, shown.queue_offset, evidence, rules.NEXT_STEPS[verdict]
        )

    def _unit_evidence(self, unit: Unit) -> Evidence:
        words = rules.ROLE_WORDS[rules.role(unit)]
        due = unit.properties.get(props.TIMER_OUT_MS)
        if rules.role(unit) in ("delayed", "retryWaiting"):
            due = str(unit.tags_code)
        when = f", due {_time(int(due))}" if due is not None and due.isdigit() else ""
        return self._at(unit, "unit", f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}: {words}{when}")

    def _place(self, unit: Unit, evidence: list[Evidence]) -> rules.QueuePlace:
        if unit.transaction_type in (0x4, 0xC):
            return rules.QueuePlace("notNeeded")
        queue = self._store.queue(unit.topic, unit.queue_id)
        behind = unit.offset >= self._dispatched()
        if queue is None:
            evidence.append(Evidence("queue", None, None, f"{unit.topic}/{unit.queue_id} has no folder"))
            return rules.QueuePlace("behind" if behind else "noQueue")
        folder = str(queue.sequence.folders[0])
        entry = queue.entry(unit.queue_offset) if unit.queue_offset < queue.max_offset else None
        if entry is None or entry.state != "entry" or entry.physical_offset != unit.offset:
            span = f"it goes from {queue.min_offset:,} to {queue.max_offset:,}"
            what = f"holds no entry for offset {unit.queue_offset:,}; {span}"
            evidence.append(Evidence("queue", folder, None, what))
            return rules.QueuePlace("behind" if behind else "absent")
        evidence.append(
            Evidence(
                "queue entry", folder, unit.queue_offset * queue.unit_size, f"entry {unit.queue_offset:,} points at it"
            )
        )
        found = resolve(self._store.log, unit.topic, unit.queue_id, entry)
        if found.verdict == "wrongTag":
            evidence.append(Evidence("queue entry", folder, unit.queue_offset * queue.unit_size, found.what))
            return rules.QueuePlace("otherTag")
        return rules.QueuePlace("listed")

    def _dispatched(self) -> int:
        """End of the newest unit that a queue entry points at."""
        newest = (q.newest() for queues in self._store.topics().values() for q in queues.values())
        return max((offset + size for offset, size in (n for n in newest if n is not None)), default=0)

    def _in_index(self, unit: Unit, evidence: list[Evidence]) -> bool | None:
        keys = indexed_keys(unit)
        readers = self._store.index_files()
        if not keys or not readers or unit.transaction_type == 0xC:
            return None
        for reader in readers:
            try:
                header = reader.header
                if not header.begin_phy_offset <= unit.offset <= header.end_phy_offset or reader.geometry is None:
                    continue
                if _listed(reader, index_key_hash(unit.topic, keys[0]), unit.offset):
                    evidence.append(Evidence("index", reader.path, None, f"{unit.topic}#{keys[0]} leads to it"))
                    return True
            except StoreError:
                continue
        evidence.append(Evidence("index", None, None, f"no entry for {unit.topic}#{keys[0]} leads to it"))
        return False

    def _settled_halves(self, family: list[Unit], evidence: list[Evidence]) -> frozenset[int]:
        """Half-queue offsets that op messages name, looked up only for a transaction."""
        if not any(unit.topic == rules.HALF_TOPIC for unit in family):
            return frozenset()
        if self._settled is None:
            self._settled = frozenset(self._read_ops())
        named = sorted(
            u.queue_offset for u in family if u.topic == rules.HALF_TOPIC and u.queue_offset in self._settled
        )
        if named:
            evidence.append(
                Evidence("op message", None, None, f"names half message {', '.join(str(n) for n in named)} as settled")
            )
        return self._settled

    def _read_ops(self) -> Iterator[int]:
        seen = 0
        for queue in self._store.topics().get(rules.OP_TOPIC, {}).values():
            for entry in queue.entries(max(queue.min_offset, 0)):
                unit = self._store.log.unit_at(entry.physical_offset) if entry.state == "entry" else None
                if isinstance(unit, Unit):
                    for piece in unit.body.decode("ascii", "replace").split(","):
                        if piece.strip().isdigit():
                            yield int(piece)
                seen += 1
                if seen > _OP_LIMIT:
                    return

    # -- groups

    def _group_evidence(self, topic: str, queue_id: int) -> list[tuple[Evidence, int]]:
        found = []
        for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
            table = read_table(self._store, name)
            for row in consumer_offsets(table.value).rows if table else ():
                if row.topic == topic and queue_id in row.offsets and self._group in (None, row.group):
                    offset = row.offsets[queue_id]
                    found.append(
                        (
                            Evidence(
                                "group", table.file if table else None, None, f"{row.group} reads {offset:,} next"
                            ),
                            offset,
                        )
                    )
        return found

    def _group_offset(self, unit: Unit, evidence: list[Evidence]) -> int | None:
        if rules.role(unit) not in ("plain", "committed"):
            return None
        offsets = self._group_evidence(unit.topic, unit.queue_id)
        evidence.extend(one for one, _ in offsets)
        if self._group is None:
            return None
        if not offsets:
            evidence.append(
                Evidence("group", None, None, f"{self._group} has no offset in {unit.topic}/{unit.queue_id}")
            )
        return max((offset for _, offset in offsets), default=None)

    def _filter_matches(self, unit: Unit, evidence: list[Evidence]) -> bool | None:
        if self._group is None:
            return None
        table = read_table(self._store, "consumerFilter.json")
        for row in consumer_filters(table.value).rows if table else ():
            if (row.topic, row.group) == (unit.topic, self._group) and row.expression_type == "SQL92":
                from engine.query.sql92 import compile_sql

                try:
                    matches = compile_sql(row.expression)(unit.properties)
                except StoreError:
                    return None
                said = "matches" if matches else "does not match"
                evidence.append(Evidence("filter", table.file if table else None, None, f"{row.expression} {said}"))
                return matches
        return None

    # -- a message that is not there

    def _lost_offset(self, offset: int, said: str) -> WhereResult:
        log = self._store.log
        span = Evidence("commit log", None, log.min_offset, f"holds {log.min_offset:,} to {log.max_offset:,}")
        if offset < log.min_offset:
            return self._gone("expired", [span], offset=offset)
        if offset >= log.max_offset:
            reach = log.end_offset + log.sequence.file_size
            verdict: rules.Verdict = "truncated" if offset < reach else "neverSeen"
            return self._gone(verdict, [span], offset=offset)
        at = log.align(offset)
        found = log.unit_at(at)
        if isinstance(found, Unit) and found.offset < offset:
            inside = self._at(found, "unit", f"{said} lies inside the unit that begins here")
            return self._gone("truncated" if self._crashed_before() else "neverSeen", [span, inside], offset=offset)
        return self._gone(
            "damaged", [span, Evidence("commit log", None, offset, "no unit can be read here")], offset=offset
        )

    def _lost_key(self, text: str, parsed: tuple[bytes, int] | None) -> WhereResult:
        evidence = [Evidence("commit log", None, None, "no unit of the log has this key")]
        if parsed is not None:
            evidence.append(
                Evidence("id", None, None, f"read as an offset id it names the broker {host_text(parsed[0])}")
            )
        expired = self._expired_entry(text)
        if expired is not None:
            return self._gone("expired", [*evidence, expired])
        made = parse_unique_key(text)
        if made is not None and made.ms_in_month < 32 * 86_400_000:
            return self._by_time(made.ms_in_month, evidence)
        return self._gone("neverSeen", evidence)

    def _by_time(self, ms_in_month: int, evidence: list[Evidence]) -> WhereResult:
        """A unique key tells when it was made, counted from the first of a month: before the log begins, or behind
        its end?
        """
        first, last = self._span_of_times()
        if first is None or last is None:
            return self._gone("unknown", evidence)
        month = (
            datetime.fromtimestamp(last / 1000).astimezone().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        )
        made = int(month.timestamp() * 1000) + ms_in_month
        evidence.append(
            Evidence(
                "unique key",
                None,
                None,
                f"was made at {_time(made)}, the log goes from {_time(first)} to {_time(last)}",
            )
        )
        if made < first and self._store.log.min_offset > 0:
            return self._gone("expired", evidence)
        if made >= last - 1000 and self._crashed_before():
            return self._gone("truncated", evidence)
        return self._gone("neverSeen", evidence)

    def _span_of_times(self) -> tuple[int | None, int | None]:
        log = self._store.log
        head = log.unit_at(log.min_offset, crc=False) if log.files else None
        tail = log.items_before(log.max_offset, 1, crc=False)
        first = head.store_timestamp if isinstance(head, Unit) else None
        last = tail[-1].store_timestamp if tail and isinstance(tail[-1], Unit) else None
        return first, last

    def _expired_entry(self, key: str) -> Evidence | None:
        """An index entry with the key's hash that points in front of the log."""
        least = self._store.log.min_offset
        topics = [self._topic] if self._topic else list(known_topics(self._store))
        for reader in self._store.index_files():
            try:
                if reader.geometry is None or reader.header.begin_phy_offset >= least:
                    continue
                for topic in topics:
                    offset = _first_below(reader, index_key_hash(topic, key), least)
                    if offset is not None:
                        return Evidence(
                            "index", reader.path, offset, f"an entry for {topic}#{key} points in front of the log"
                        )
            except StoreError:
                continue
        return None

    def _crashed_before(self) -> bool:
        """Whether the store was left without a clean stop, now or (5.x) before its last start."""
        if self._store.abort:
            return True
        paths = self._store.paths
        return bool(paths and self._store.small_file(paths.abort_bak))

    def _is_store_host(self, host: bytes) -> bool:
        unit = self._store.log.unit_at(self._store.log.min_offset, crc=False) if self._store.log.files else None
        tail = self._store.log.items_before(self._store.log.max_offset, 1, crc=False)
        return any(isinstance(one, Unit) and one.store_host_raw == host for one in (unit, *tail))

    def _gone(
        self,
        verdict: rules.Verdict,
        evidence: list[Evidence],
        topic: str | None = None,
        queue_id: int | None = None,
        queue_offset: int | None = None,
        offset: int | None = None,
    ) -> WhereResult:
        return WhereResult(verdict, offset, topic, queue_id, queue_offset, evidence, rules.NEXT_STEPS[verdict])

    def _at(self, unit: Unit, what: str, holds: str) -> Evidence:
        file = self._store.log.sequence.find(unit.offset)
        return Evidence(what, file.name if file else None, unit.offset, holds)


def _queue_place(text: str) -> tuple[str, int, int] | None:
    """``topic/queue/offset``; a topic may hold slashes itself."""
    pieces = text.rsplit("/", 2)
    if len(pieces) != 3 or not pieces[0]:
        return None
    queue_id, offset = parse_number(pieces[1]), parse_number(pieces[2])
    return (pieces[0], queue_id, offset) if queue_id is not None and offset is not None else None


def _real_topic(unit: Unit) -> str | None:
    return unit.properties.get(props.REAL_TOPIC)


def _listed(reader: object, key_hash: int, offset: int) -> bool:
    return any(found == offset for found in _chain(reader, key_hash))


def _first_below(reader: object, key_hash: int, least: int) -> int | None:
    return next((found for found in _chain(reader, key_hash) if found < least), None)


def _chain(reader: object, key_hash: int) -> Iterator[int]:
    """Offsets of a key hash's entries in one index file, loops survived."""
    from engine.inspection.index_reader import IndexReader

    assert isinstance(reader, IndexReader)
    number = reader.slot(key_hash % reader.slots)
    seen: set[int] = set()
    while number > 0 and number not in seen:
        seen.add(number)
        entry = reader.entry(number)
        if entry is None:
            return
        if entry.key_hash == key_hash:
            yield entry.phy_offset
        number = entry.prev


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(ms)

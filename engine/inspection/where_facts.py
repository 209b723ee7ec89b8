"""What bears on the verdict over one message: its place in queue and index, op messages, groups and their filters.

Each finder gives a fact and appends the evidence for it. Tables are read once, at the first question that needs them;
of log, queues and index nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from engine.codec import properties as props
from engine.codec.config_tables import consumer_filters, consumer_offsets
from engine.codec.java import index_key_hash
from engine.codec.message import PREPARED, ROLLBACK, Unit
from engine.errors import CorruptUnit, StoreError
from engine.inspection.entry_verdict import compare
from engine.inspection.key_trace import indexed_keys
from engine.inspection.lookup import known_topics
from engine.inspection.tables import read_table
from engine.rules import where as rules

if TYPE_CHECKING:
    from engine.codec.tables import Table
    from engine.inspection.index_reader import IndexReader
    from engine.inspection.snapshot import StoreSnapshot

_OP_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was found: ``file`` and ``offset`` (bytes) where it can be seen, ``holds`` what it says."""

    what: str
    file: str | None
    offset: int | None
    holds: str


class FactFinder:
    """Looks up facts of messages of ``store`` for ``group`` (None: no group is asked about)."""

    def __init__(self, store: StoreSnapshot, group: str | None) -> None:
        self._store, self._group = store, group

    def facts(self, family: list[Unit], unit: Unit, evidence: list[Evidence]) -> rules.Facts:
        """Everything beside the units themselves that the verdict on ``unit``'s message needs."""
        return rules.Facts(
            place=self._place(unit, evidence),
            in_index=self._in_index(unit, evidence),
            settled_halves=self._settled_halves(family, evidence),
            log_end=self._store.log.max_offset,
            group_offset=self._group_offset(unit, evidence),
            group_known=self._group is not None,
            filter_matches=self._filter_matches(unit, evidence),
        )

    def at(self, unit: Unit, what: str, holds: str) -> Evidence:
        """Evidence that can be seen at ``unit``."""
        file = self._store.log.sequence.find(unit.offset)
        return Evidence(what, file.name if file else None, unit.offset, holds)

    def unit(self, unit: Unit) -> Evidence:
        """A unit, its part in the message's life, and when it is due."""
        part = rules.role(unit)
        due = unit.properties.get(props.TIMER_OUT_MS) if part in {"timer", "recall"} else None
        if part in {"delayed", "retryWaiting"}:
            due = str(unit.tags_code)
        when = f", due {time_text(int(due))}" if due is not None and due.isdecimal() else ""
        return self.at(
            unit, "unit", f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}: {rules.ROLE_WORDS[part]}{when}"
        )

    # -- queue and index

    def _place(self, unit: Unit, evidence: list[Evidence]) -> rules.QueuePlace:
        if unit.transaction_type in {PREPARED, ROLLBACK}:
            return rules.QueuePlace("notNeeded")
        if self._store.paths is None:
            evidence.append(Evidence("queue", None, None, "queues are no part of what was opened"))
            return rules.QueuePlace("notNeeded")
        queue = self._store.queue(unit.topic, unit.queue_id)
        behind = self._not_dispatched(unit)
        if queue is None:
            declared = unit.topic in self._store.table_topics()
            why = "" if declared or not self._store.table_topics() else "; nor is the topic declared: it was deleted"
            evidence.append(Evidence("queue", None, None, f"{unit.topic}/{unit.queue_id} has no folder{why}"))
            return rules.QueuePlace("behind" if behind else "noQueue")
        folder = str(queue.sequence.folders[0])
        position = unit.queue_offset * queue.unit_size if queue.kind == "simple" else None
        entry = queue.entry(unit.queue_offset) if unit.queue_offset < queue.max_offset else None
        if entry is None or entry.state != "entry" or entry.physical_offset != unit.offset:
            span = f"it goes from {queue.min_offset:,} to {queue.max_offset:,}"
            evidence.append(Evidence("queue", folder, None, f"holds no entry for offset {unit.queue_offset:,}; {span}"))
            return rules.QueuePlace("behind" if behind else "absent")
        evidence.append(Evidence("queue entry", folder, position, f"entry {unit.queue_offset:,} points at it"))
        verdict, what = compare(unit.topic, unit.queue_id, entry, unit)
        if verdict == "wrongTag":
            evidence.append(Evidence("queue entry", folder, position, what))
            return rules.QueuePlace("otherTag")
        return rules.QueuePlace("listed")

    def _not_dispatched(self, unit: Unit) -> bool:
        """No queue holds anything newer, and the checkpoint does not say that queues had come so far."""
        if unit.offset < self._dispatched_end:
            return False
        try:
            checkpoint = self._store.checkpoint()
        except CorruptUnit:
            return True
        return checkpoint is None or unit.store_timestamp > checkpoint.logics_msg_timestamp

    @cached_property
    def _dispatched_end(self) -> int:
        """End of the newest unit that a queue entry points at."""
        newest = (q.newest() for queues in self._store.topics().values() for q in queues.values())
        return max((offset + size for offset, size in (n for n in newest if n is not None)), default=0)

    def _in_index(self, unit: Unit, evidence: list[Evidence]) -> bool | None:
        keys = indexed_keys(unit)
        readers = self._store.index_files()
        if not keys or not readers or unit.transaction_type == ROLLBACK:
            return None
        key_hash = index_key_hash(unit.topic, keys[0])
        for reader in readers:
            try:
                header = reader.header
                if not header.begin_phy_offset <= unit.offset <= header.end_phy_offset or reader.geometry is None:
                    continue
                if any(offset == unit.offset for offset in chain(reader, key_hash)):
                    evidence.append(Evidence("index", reader.path, None, f"{unit.topic}#{keys[0]} leads to it"))
                    return True
            except CorruptUnit:
                continue
        evidence.append(Evidence("index", None, None, f"no entry for {unit.topic}#{keys[0]} leads to it"))
        return False

    # -- transactions

    def _settled_halves(self, family: list[Unit], evidence: list[Evidence]) -> frozenset[int]:
        """Half-queue offsets that op messages name, looked up only for a transaction."""
        halves = [unit.queue_offset for unit in family if unit.topic == rules.HALF_TOPIC]
        if not halves:
            return frozenset()
        named = sorted(offset for offset in halves if offset in self._settled)
        if named:
            text = ", ".join(str(offset) for offset in named)
            evidence.append(Evidence("op message", None, None, f"names half message {text} as settled"))
        return self._settled

    @cached_property
    def _settled(self) -> frozenset[int]:
        return frozenset(self._read_ops())

    def _read_ops(self) -> Iterator[int]:
        seen = 0
        for queue in self._store.topics().get(rules.OP_TOPIC, {}).values():
            for entry in queue.entries(max(queue.min_offset, 0)):
                unit = self._store.log.seen_at(entry.physical_offset) if entry.state == "entry" else None
                if isinstance(unit, Unit):
                    for piece in unit.body.decode("ascii", "replace").split(","):
                        if piece.strip().isdecimal():
                            yield int(piece)
                seen += 1
                if seen > _OP_LIMIT:
                    return

    # -- groups

    def groups_in(self, topic: str, queue_id: int) -> list[tuple[Evidence, int]]:
        """What the asked group, or every group, reads next in a queue: evidence and offset."""
        found = []
        for group, offset, file in self._progress.get((topic, queue_id), ()):
            if self._group in {None, group}:
                found.append((Evidence("group", file, None, f"{group} reads {offset:,} next"), offset))
        return found

    @cached_property
    def _progress(self) -> dict[tuple[str, int], list[tuple[str, int, str | None]]]:
        """(topic, queue) → groups with the offset that they read next and the table that says so."""
        found: dict[tuple[str, int], list[tuple[str, int, str | None]]] = {}
        for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
            table = read_table(self._store, name)
            for row in consumer_offsets(table.value).rows if table else ():
                for queue_id, offset in row.offsets.items():
                    found.setdefault((row.topic, queue_id), []).append(
                        (row.group, offset, table.file if table else None)
                    )
        return found

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Every topic that a unit may stand under."""
        return tuple(known_topics(self._store))

    def _group_offset(self, unit: Unit, evidence: list[Evidence]) -> int | None:
        if rules.role(unit) not in {"plain", "committed", "retry"}:
            return None
        offsets = self.groups_in(unit.topic, unit.queue_id)
        evidence.extend(one for one, _ in offsets)
        if self._group is None:
            return None
        if not offsets:
            where = f"{unit.topic}/{unit.queue_id}"
            evidence.append(Evidence("group", None, None, f"{self._group} has no offset in {where}"))
        return max((offset for _, offset in offsets), default=None)

    @cached_property
    def _filters(self) -> Table | None:
        return read_table(self._store, "consumerFilter.json")

    def _filter_matches(self, unit: Unit, evidence: list[Evidence]) -> bool | None:
        if self._group is None or rules.role(unit) not in {"plain", "committed"}:
            return None
        table = self._filters
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


def chain(reader: IndexReader, key_hash: int) -> Iterator[int]:
    """Commit-log offsets of a key hash's entries in one index file, newest first, loops survived."""
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


def time_text(ms: int) -> str:
    """A time in ms as ISO with zone; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(ms)

"""Finds the facts for the verdict on a message: its place in queue and index, op messages, groups and their filters.

Each finder returns a fact and appends the evidence for it. Tables are read once, at the first question that needs them;
nothing of log, queues and index is kept.

Index lookups follow the key's own chain, like a broker (docs/formats/index-file.md#query). A chain that loops, leaves
its file or ends in missing bytes hides the entries behind it: the message is in the log, and no query by that key finds
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from engine.codec import index as codec
from engine.codec import properties as props
from engine.codec import timer
from engine.codec.config_tables import consumer_filters, consumer_offsets
from engine.codec.java import index_key_hash
from engine.codec.message import PREPARED, ROLLBACK, Unit
from engine.errors import CorruptUnit, StoreError, Undecoded
from engine.inspection.check.timer import offsets_read_later
from engine.inspection.deleted_topics import topics_known
from engine.inspection.entry_verdict import compare
from engine.inspection.groups import Permissions, read_permissions
from engine.inspection.key_trace import indexed_keys
from engine.inspection.lookup import known_topics
from engine.inspection.stalled_dispatch import stalled_dispatch
from engine.inspection.stalled_services import (
    SETTLE_MS,
    LevelBeyondQueue,
    StalledService,
    levels_beyond_queues,
    stalled_revives,
    stalled_services,
    unrevived_checkpoint,
)
from engine.inspection.tables import broken_offsets, read_table
from engine.rules import where as rules
from engine.rules.where import KeyReach
from engine.sentences import join, msgid, sentence
from engine.system_names import HALF_TOPIC, OP_TOPIC, ROCKSDB_HALF_TOPIC, ROCKSDB_OP_TOPIC, SCHEDULE_TOPIC
from engine.times import duration_text, local_time_text

if TYPE_CHECKING:
    from engine.codec.config_tables import Table
    from engine.inspection.index_reader import IndexReader
    from engine.inspection.queue_reader import CqEntry
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue


_OP_LIMIT = 200_000
CATCH_UP_MS = 10_000
"""Time before a start from which timers in a RocksDB are delivered if none was delivered so far."""


class FactFinder:
    """Finds facts about messages of ``store`` for ``group`` (None: no particular group)."""

    def __init__(self, store: StoreSnapshot, group: str | None) -> None:
        self._store, self._group = store, group
        self._services: list[StalledService] | None = None

    def facts(
        self, family: list[Unit], unit: Unit, evidence: list[Evidence], asked_key: str | None = None
    ) -> rules.Facts:
        """Everything that the verdict on ``unit``'s message needs besides the units themselves."""
        place = self._place(unit, evidence)
        self._add_popped(unit, evidence)
        keys = tuple(key_reaches(self._store, unit, evidence))
        groups = self._groups(unit, evidence)
        return rules.Facts(
            place=place,
            in_index=rules.in_index(keys, asked_key),
            settled_halves=self._settled_halves(family, evidence),
            settled_offsets=self._settled_offsets(family, evidence),
            log_end=self._store.log.max_offset,
            group_offset=max((group_reach.offset for group_reach in groups), default=None)
            if self._group is not None
            else None,
            group_known=self._group is not None,
            filter_matches=self._filter_matches(unit, evidence),
            keys=keys,
            groups=groups,
            stalled=self._stalled_service_text(unit, evidence),
            level_beyond_queue=self._level_beyond_queue(unit, evidence),
            passed_over=self._passed_over(family, unit, evidence),
            barred=self._barred(unit, evidence),
            unrevived=self._is_unrevived(unit, evidence),
            dispatch_stalled=self._is_behind_stalled_dispatch(unit, place, evidence),
        )

    def _stalled_service_text(self, unit: Unit, evidence: list[Evidence]) -> str:
        """Words for the stalled service for which a message waits; else ""."""
        part = rules.role(unit)
        if part not in {"delayed", "retryWaiting", "timer", "half"} or self._store.paths is None:
            return ""
        newest = self._newest_time
        for service in self._stalled_services(newest):
            if (service.topic, service.queue_id) != (unit.topic, unit.queue_id):
                continue
            if unit.queue_offset < service.next_offset:
                continue
            due = due_time(unit)
            if due is not None and due <= newest:
                late = sentence(
                    "this message is overdue by {span} at the newest message of the store",
                    span=duration_text(newest - due),
                )
                evidence.append(Evidence("service", None, None, join("; ", [service.words, late]), newest))
                return service.words
            if part == "half" or service.overdue_ms < 0:
                evidence.append(Evidence("service", None, None, service.words, newest))
                return service.words
        return ""

    def _is_behind_stalled_dispatch(self, unit: Unit, place: rules.QueuePlace, evidence: list[Evidence]) -> bool:
        """Return True if dispatch stopped at an earlier message, so that no queue has this one."""
        if place.state != "behind":
            return False
        stalled = stalled_dispatch(self._store)
        if stalled is None or unit.offset <= stalled.unit.offset:
            return False
        evidence.append(self.at(stalled.unit, "service", stalled.words))
        return True

    def _is_unrevived(self, unit: Unit, evidence: list[Evidence]) -> bool:
        """Return True if a group has popped the message and not acknowledged it, and the revive of pops is stalled."""
        if rules.role(unit) not in {"plain", "committed", "retry"} or self._store.paths is None:
            return False
        for service in self._stalled_revives:
            checkpoint = unrevived_checkpoint(self._store, service, unit)
            if checkpoint is None or self._group not in (None, checkpoint.group):
                continue
            statement = sentence(
                "group {group} popped it at {time} and has not acknowledged it; its checkpoint waits for the revive",
                group=checkpoint.group,
                time=local_time_text(checkpoint.pop_time),
            )
            evidence.append(Evidence("service", None, None, join("; ", [statement, service.words]), checkpoint.due))
            return True
        return False

    def _add_popped(self, unit: Unit, evidence: list[Evidence]) -> None:
        """Add the rows of groups that popped the message and did not acknowledge it."""
        rows = self._store.rocksdb_rows
        if self._store.paths is None or not rows.exist("pop") or self._store.why_unknown("pop") is not None:
            return
        for row in rows.rows("pop"):
            if row.physical_offset != unit.offset or self._group not in (None, row.group):
                continue
            statement = sentence(
                "group {group} popped it and has not acknowledged it: it comes again at {time}",
                group=row.group,
                time=local_time_text(row.time or 0),
            )
            evidence.append(Evidence("service", rows.folder("pop"), None, statement, row.time))

    @cached_property
    def _stalled_revives(self) -> list[StalledService]:
        return list(stalled_revives(self._store, self._newest_time))

    def _level_beyond_queue(self, unit: Unit, evidence: list[Evidence]) -> bool:
        """Return True if the message waits in a delay level whose offset is beyond its queue (CF09)."""
        if unit.topic != SCHEDULE_TOPIC or self._store.paths is None:
            return False
        for level in self._levels_beyond_queues:
            if level.queue_id == unit.queue_id:
                file = str(self._store.paths.config / "delayOffset.json")
                evidence.append(Evidence("service", file, None, level.words))
                return True
        return False

    def _passed_over(self, family: list[Unit], unit: Unit, evidence: list[Evidence]) -> bool:
        """Return True if the timer has read on behind the time at which this message was due, without delivering it
        (TM05).
        """
        due = due_time(unit)
        if rules.role(unit) != "timer" or unit is not family[-1] or due is None or self._store.paths is None:
            return False
        if self._store.lock_state == "held":
            return False
        if self._store.why_unknown("timer") is not None:
            return False
        if self._store.rocksdb_rows.has_timers:
            return self._passed_over_in_rocksdb(unit, due, evidence)
        data = self._store.small_file(self._store.paths.timercheck)
        try:
            check = timer.decode_check(data) if data else None
        except CorruptUnit:
            return False
        if check is None or unit.queue_offset >= check.queue_offset:
            return False
        if due >= check.last_read_time:
            evidence.append(self._last_start(due))
            return False
        if due > self._newest_time - SETTLE_MS:
            return False
        if unit.offset in offsets_read_later(self._store, check.last_read_time):
            evidence.append(self._last_start(check.last_read_time))
            return False
        statement = sentence(
            "the timer has read up to {time}, and the log does not have the message again",
            time=local_time_text(check.last_read_time),
        )
        evidence.append(Evidence("service", str(self._store.paths.timercheck), 0, statement))
        return True

    def _passed_over_in_rocksdb(self, unit: Unit, due: int, evidence: list[Evidence]) -> bool:
        """The same for timers in a RocksDB (TM06); the row of a waiting message is evidence."""
        rows = self._store.rocksdb_rows
        progress = rows.timer_progress()
        if unit.queue_offset >= (progress.scanned or 0):
            return False
        folder = rows.folder("timer")
        if progress.timeline is not None and due < progress.timeline:
            if due > self._newest_time - SETTLE_MS:
                return False
            statement = sentence(
                "the timer has read up to {time}, and the log does not have the message again",
                time=local_time_text(progress.timeline),
            )
            evidence.append(Evidence("service", folder, None, statement))
            return True
        row = next((row for row in rows.rows("timer") if row.physical_offset == unit.offset), None)
        has_row = row is not None and row.verdict == "match"
        statement = (
            sentence("its row waits until it is due") if has_row else sentence("it has no row: it is never delivered")
        )
        evidence.append(Evidence("service", folder, None, statement))
        if has_row and progress.timeline is None:
            late = sentence(
                "a broker that starts later than {time} passes over it", time=local_time_text(due + CATCH_UP_MS)
            )
            evidence.append(Evidence("service", None, None, late))
        return not has_row

    def _last_start(self, due: int) -> Evidence:
        """The time of the last start that delivers a message which waits in the timer wheel."""
        precision_ms = 1000 if self._store.config is None else self._store.config.timer_precision_ms
        statement = sentence(
            "a broker that starts later than {time} passes over it",
            time=local_time_text(due + timer.CATCH_UP_SLOTS * precision_ms),
        )
        return Evidence("service", None, None, statement)

    @cached_property
    def _levels_beyond_queues(self) -> list[LevelBeyondQueue]:
        return list(levels_beyond_queues(self._store))

    @cached_property
    def _newest_time(self) -> int:
        """Store time of the last unit of the log, ms; 0 without one."""
        last_items = self._store.log.items_before(self._store.log.max_offset, 1, crc=False)
        return last_items[-1].store_timestamp if last_items and isinstance(last_items[-1], Unit) else 0

    def _barred(self, unit: Unit, evidence: list[Evidence]) -> str:
        """Words for why the broker refuses the topic to everybody, or to the requested group; else ""."""
        if rules.role(unit) not in {"plain", "committed", "retry"} or self._store.paths is None:
            return ""
        permissions = self._permissions
        of_topic, of_group = permissions.of_topic(unit.topic), permissions.of_group(self._group or "")
        config = self._store.paths.config
        for words, name in ((of_topic, "topics.json"), (of_group, "subscriptionGroup.json")):
            if words:
                evidence.append(Evidence("permission", str(config / name), None, words))
        return of_group or of_topic

    @cached_property
    def _permissions(self) -> Permissions:
        """The permissions of groups and topics; none where a table is not decoded."""
        try:
            return read_permissions(self._store)
        except Undecoded:
            return Permissions()

    def _stalled_services(self, newest: int) -> list[StalledService]:
        if self._services is None:
            self._services = list(stalled_services(self._store, newest))
        return self._services

    def at(self, unit: Unit, subject: str, statement: str) -> Evidence:
        """Evidence located at ``unit``."""
        file = self._store.log.sequence.find(unit.offset)
        return Evidence(subject, file.name if file else None, unit.offset, statement, unit.store_timestamp)

    def unit(self, unit: Unit) -> Evidence:
        """A unit, its part in the message's life, and when it is due."""
        part = rules.role(unit)
        due = due_time(unit)
        statement = sentence(
            "{place}: {role}" if due is None else "{place}: {role}, due {due}",
            place=f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}",
            role=sentence(rules.ROLE_WORDS[part]),
            due="" if due is None else local_time_text(due),
        )
        return self.at(unit, "unit", statement)

    # -- queue and index

    def _place(self, unit: Unit, evidence: list[Evidence]) -> rules.QueuePlace:
        if unit.transaction_type in {PREPARED, ROLLBACK}:
            return rules.QueuePlace("notNeeded")
        queue_evidence, place = self._queue_evidence(unit)
        evidence.extend(queue_evidence)
        why = queue_evidence[-1].holds
        if place in rules.NOT_LISTED and self._not_dispatched(unit):
            return rules.QueuePlace("behind", why)
        return rules.QueuePlace(place, why)

    def _queue_evidence(self, unit: Unit) -> tuple[list[Evidence], rules.PlaceState]:
        if self._store.paths is None:
            return [Evidence("queue", None, None, sentence("what was opened has no queues"))], "notOpened"
        try:
            queue = self._store.queues.find(unit.topic, unit.queue_id)
        except Undecoded as error:
            queue = self._store.queues.find_beside_dledger(unit.topic, unit.queue_id)
            if queue is not None:
                evidence, state = self._entry_evidence(queue, unit, queue.entry(unit.queue_offset))
                if state in {"listed", "otherTag"}:
                    return evidence, state
            return [Evidence("queue", error.file, None, error.what)], "undecoded"
        if queue is None:
            statement = self.absent_queue(unit.topic, unit.queue_id)
            other_case = self._topic_in_other_case(unit.topic)
            if other_case is not None and self._has_own_units(other_case):
                statement += "; " + sentence(
                    "{other} has one: a file system that ignores case makes one folder of both", other=other_case
                )
                return [Evidence("queue", None, None, statement)], "noQueue"
            if other_case is not None:
                statement += "; " + sentence("{other} has one, a name in another case", other=other_case)
                return [Evidence("queue", None, None, statement)], "noQueue"
            if self._is_deleted(unit):
                statement += ", " + sentence("and the topic is not declared: it was deleted")
                return [Evidence("queue", None, None, statement)], "deletedTopic"
            return [Evidence("queue", None, None, statement)], "noQueue"
        entry = queue.entry(unit.queue_offset) if unit.queue_offset < queue.max_offset else None
        return self._entry_evidence(queue, unit, entry)

    def _entry_evidence(
        self, queue: AnyQueue, unit: Unit, entry: CqEntry | None
    ) -> tuple[list[Evidence], rules.PlaceState]:
        """Compare ``entry``, the queue's entry with the number of ``unit``, with that unit."""
        folder, position = str(queue.folder), queue.entry_position(unit.queue_offset)
        number = unit.queue_offset
        if entry is None or entry.state == "prefilled":
            statement = sentence(
                "holds no entry for offset {n:,}; it goes from {low:,} to {high:,}",
                n=number,
                low=queue.min_offset,
                high=queue.max_offset,
            )
            return [Evidence("queue", folder, None, statement)], "absent"
        if entry.state != "entry":
            return [
                Evidence("queue entry", folder, position, sentence("entry {n:,} is empty: zero bytes", n=number))
            ], "absent"
        if entry.physical_offset != unit.offset:
            statement = sentence(
                "entry {n:,} is wrong: it points at {place}", n=number, place=self._what_is_at(entry.physical_offset)
            )
            return [Evidence("queue entry", folder, position, statement)], "absent"
        evidence = [Evidence("queue entry", folder, position, sentence("entry {n:,} points at it", n=number))]
        verdict, difference = compare(unit.topic, unit.queue_id, entry, unit)
        if verdict == "wrongTag":
            return [*evidence, Evidence("queue entry", folder, position, difference)], "otherTag"
        return evidence, "listed"

    def absent_queue(self, topic: str, queue_id: int) -> str:
        """Words for a queue that does not exist."""
        rocksdb_queues = self._store.queues.rocksdb
        queue = f"{topic}/{queue_id}"
        if rocksdb_queues is not None:
            return sentence("{queue} is not in the RocksDB {folder}", queue=queue, folder=rocksdb_queues.folder.name)
        return sentence("{queue} has no folder", queue=queue)

    def _topic_in_other_case(self, topic: str) -> str | None:
        """A folder of queues whose name differs from the topic's in upper and lower case only."""
        if topic in self._store.queues.by_topic():
            return None
        return next((name for name in self._store.queues.by_topic() if name.lower() == topic.lower()), None)

    def _has_own_units(self, topic: str) -> bool:
        """Return True if the first entry of one of the topic's queues leads to a unit of the topic."""
        for queue in self._store.queues.by_topic()[topic].values():
            entry = queue.entry(max(queue.min_offset, 0)) if queue.max_offset > queue.min_offset else None
            if entry is not None and entry.state == "entry":
                unit = self._store.log.seen_at(entry.physical_offset, crc=False)
                if isinstance(unit, Unit) and unit.topic == topic:
                    return True
        return False

    def _what_is_at(self, offset: int) -> str:
        item = self._store.log.seen_at(offset, crc=False)
        if isinstance(item, Unit):
            place = f"{item.topic}/{item.queue_id}/{item.queue_offset}"
            return sentence("{offset:,}, the unit of {place}", offset=offset, place=place)
        return sentence("{offset:,}, where no unit can be read", offset=offset)

    def _is_deleted(self, unit: Unit) -> bool:
        """Return True if the topic was deleted and not lost: then dispatch gives it no queue
        (docs/formats/cleaning.md).
        """
        return bool(topics_known(self._store).deleted({unit.topic: unit.offset}))

    def _not_dispatched(self, unit: Unit) -> bool:
        """Return True if no queue holds anything newer, and the checkpoint does not say that the queues were
        this far.
        """
        if unit.offset < self._dispatched_end:
            return False
        if self._store.queues.rocksdb is not None:
            return True
        try:
            checkpoint = self._store.checkpoint()
        except CorruptUnit:
            return True
        return checkpoint is None or unit.store_timestamp > checkpoint.logics_msg_timestamp

    @cached_property
    def _dispatched_end(self) -> int:
        """End of the newest unit that a queue entry points at; in a RocksDB of queues the end of dispatch."""
        rocksdb_queues = self._store.queues.rocksdb
        if rocksdb_queues is not None:
            return rocksdb_queues.dispatched_offset()
        newest = (q.newest() for queues in self._store.queues.by_topic().values() for q in queues.values())
        return max((offset + size for offset, size in (n for n in newest if n is not None)), default=0)

    # -- transactions

    def _settled_halves(self, family: list[Unit], evidence: list[Evidence]) -> frozenset[int]:
        """Half-queue offsets that op messages name, looked up only for a transaction."""
        halves = [unit.queue_offset for unit in family if unit.topic == HALF_TOPIC]
        if not halves:
            return frozenset()
        for offset in sorted(offset for offset in halves if offset in self._settled):
            place = self._settled[offset]
            statement = sentence("names half message {n} as settled", n=offset)
            evidence.append(Evidence("op message", self._store.log.file_name(place), place, statement))
        return frozenset(self._settled)

    def _settled_offsets(self, family: list[Unit], evidence: list[Evidence]) -> frozenset[int]:
        """Log offsets of half messages with rows in a RocksDB that an op message names; the row of one that is open is
        evidence.
        """
        settled = set()
        for unit in family:
            if unit.topic != ROCKSDB_HALF_TOPIC:
                continue
            place = self._ops_by_offset.get(unit.offset)
            if place is not None:
                settled.add(unit.offset)
                statement = sentence("names half message {n} as settled", n=unit.queue_offset)
                evidence.append(Evidence("op message", self._store.log.file_name(place), place, statement))
            else:
                evidence.append(self._row_of_half(unit))
        return frozenset(settled)

    def _row_of_half(self, unit: Unit) -> Evidence:
        rows = self._store.rocksdb_rows
        reason = self._store.why_unknown("transactions")
        if reason is not None:
            error = self._store.note_undecoded("transactions")
            return Evidence("op message", error.file if error is not None else None, None, reason)
        row = rows.open_transaction(unit)
        if row is None:
            statement = sentence("it has no row: the broker does not ask its producer any more")
        else:
            statement = sentence("its row is open; its producer was asked {n:,} times", n=row.count or 0)
        return Evidence("service", rows.folder("transactions"), None, statement)

    @cached_property
    def _ops_by_offset(self) -> dict[int, int]:
        """Log offset of a half message with a row → log offset of its op message."""
        places: dict[int, int] = {}
        queue = self._store.queues.by_topic().get(ROCKSDB_OP_TOPIC, {}).get(0)
        if queue is None:
            return places
        for entry in queue.entries(max(queue.min_offset, queue.max_offset - _OP_LIMIT)):
            unit = self._store.log.seen_at(entry.physical_offset, crc=False)
            text = unit.properties.get(props.TRANSACTION_OFFSET, "") if isinstance(unit, Unit) else ""
            if isinstance(unit, Unit) and text.isdecimal():
                places.setdefault(int(text), unit.offset)
        return places

    @cached_property
    def _settled(self) -> dict[int, int]:
        """Half-queue offset → physical offset of the first op message that names it."""
        places: dict[int, int] = {}
        for offset, place in self._read_ops():
            places.setdefault(offset, place)
        return places

    def _read_ops(self) -> Iterator[tuple[int, int]]:
        entry_count = 0
        for queue in self._store.queues.by_topic().get(OP_TOPIC, {}).values():
            for entry in queue.entries(max(queue.min_offset, 0)):
                unit = self._store.log.seen_at(entry.physical_offset) if entry.state == "entry" else None
                if isinstance(unit, Unit):
                    for piece in unit.body.decode("ascii", "replace").split(","):
                        if piece.strip().isdecimal():
                            yield int(piece), unit.offset
                entry_count += 1
                if entry_count > _OP_LIMIT:
                    return

    # -- groups

    def groups_in(self, topic: str, queue_id: int, number: int) -> list[tuple[Evidence, rules.GroupReach]]:
        """The next offset of the requested group, or of every group, in a queue, and whether that is behind entry
        ``number``.
        """
        reaches = []
        try:
            queue = self._store.queues.find(topic, queue_id)
        except Undecoded:  # the evidence names it
            queue = None
        end = queue.max_offset if queue is not None else None
        for group, offset, file in self._progress.get((topic, queue_id), ()):
            if self._group in {None, group}:
                statement = sentence(
                    _progress_words(offset, end, number), group=group, n=offset, number=number, end=end
                )
                barred = self._permissions.why_barred(group, topic)
                if self._permissions.of_group(group) and not 0 <= number < offset:
                    statement += "; " + sentence("it may not consume (consumeEnable=false in subscriptionGroup.json)")
                reach = rules.GroupReach(group, offset, statement, end, barred)
                reaches.append((Evidence("group", file, None, reach.why), reach))
        return reaches

    @cached_property
    def _progress(self) -> dict[tuple[str, int], list[tuple[str, int, str | None]]]:
        """(topic, queue) → groups with their next offset and the table that says so."""
        groups_by_queue: dict[tuple[str, int], list[tuple[str, int, str | None]]] = {}
        if self._store.why_unknown("offsets") is not None:  # the evidence names it
            return groups_by_queue
        for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
            table = read_table(self._store, name)
            for row in consumer_offsets(table.value).rows if table else ():
                for queue_id, offset in row.offsets.items():
                    groups_by_queue.setdefault((row.topic, queue_id), []).append(
                        (row.group, offset, table.file if table else None)
                    )
        return groups_by_queue

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Every topic that a unit may stand under."""
        return tuple(known_topics(self._store))

    def _groups(self, unit: Unit, evidence: list[Evidence]) -> tuple[rules.GroupReach, ...]:
        if rules.role(unit) not in {"plain", "committed", "retry"}:
            return ()
        reaches = self.groups_in(unit.topic, unit.queue_id, unit.queue_offset)
        evidence.extend(item for item, _ in reaches)
        undecoded, reason = self._store.undecoded_part("offsets"), self._store.why_unknown("offsets")
        if undecoded is not None and reason is not None:
            if self._group is not None:
                self._store.note_undecoded("offsets")
            file = str(self._store.path / undecoded.folder)
            evidence.append(Evidence("group", file, None, reason))
        elif self._group is not None and (broken := broken_offsets(self._store)) is not None:
            evidence.append(Evidence("group", broken.file, None, broken.what))
        elif self._group is not None and not reaches:
            where = f"{unit.topic}/{unit.queue_id}"
            evidence.append(
                Evidence(
                    "group", None, None, sentence("{group} has no offset in {where}", group=self._group, where=where)
                )
            )
        return tuple(reach for _, reach in reaches)

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
                statement = sentence(
                    "{expression} matches" if matches else "{expression} does not match", expression=row.expression
                )
                evidence.append(Evidence("filter", table.file if table else None, None, statement))
                return matches
        return None


def _progress_words(offset: int, end: int | None, number: int) -> str:
    """Return the template for a group that reads ``offset`` next in a queue that ends at ``end``: what that says of
    entry ``number``.
    """
    if end is not None and offset > end:
        return msgid(
            "{group} reads {n:,} next: beyond the end of the queue ({end:,}), so this says nothing about {number:,}"
        )
    if offset < 0:
        return msgid("{group} reads {n:,} next: below zero, so it has not begun here and {number:,} is still before it")
    if offset > number:
        return msgid("{group} reads {n:,} next: it has read past {number:,}")
    return msgid("{group} reads {n:,} next: {number:,} is still before it")


def due_time(unit: Unit) -> int | None:
    """Delivery time (ms) of a delayed, timed or recalled message; None for every other one."""
    part = rules.role(unit)
    if part in {"delayed", "retryWaiting"}:
        return unit.tags_code if unit.tags_code > 0 else None
    due = unit.properties.get(props.TIMER_OUT_MS, "") if part in {"timer", "recall"} else ""
    return int(due) if due.isdecimal() else None


def key_reaches(store: StoreSnapshot, unit: Unit, evidence: list[Evidence]) -> Iterator[KeyReach]:
    """Yield the reach of each key of ``unit`` that dispatch puts into the index; appends the evidence."""
    if unit.transaction_type == ROLLBACK:
        return
    for key in dict.fromkeys(indexed_keys(unit)):
        reached, key_evidence = _reach(store, unit, key)
        evidence.append(key_evidence)
        yield KeyReach(key, reached, key_evidence.holds)


def _reach(store: StoreSnapshot, unit: Unit, key: str) -> tuple[bool | None, Evidence]:
    name = f"{unit.topic}#{key}"
    rows = store.index.rocksdb
    if rows is not None:
        folder, time = str(rows.folder), unit.store_timestamp
        if any(offset == unit.offset for offset, _ in rows.units(unit.topic, key, None, time, time)):
            return True, Evidence("index", folder, None, sentence("{key} leads to it", key=name))
        if rows.is_complete():
            return False, Evidence("index", folder, None, sentence("no entry for {key} leads to it", key=name))
        statement = sentence("no row for {key} leads to it, and the newest rows are not in the files yet", key=name)
        return None, Evidence("index", folder, None, statement)
    unasked = _not_to_be_asked(store)
    if unasked:
        return None, Evidence("index", None, None, unasked)
    readers = store.index_files()
    if not readers:
        return False, Evidence(
            "index", None, None, sentence("no entry for {key} leads to it: there is no index", key=name)
        )
    key_hash = index_key_hash(unit.topic, key)
    broken: tuple[str, str] | None = None
    for reader in sorted(readers, key=lambda candidate: not _covers(candidate, unit.offset)):
        ended = _follow_chain(reader, key_hash, unit.offset)
        if ended is None:
            return True, Evidence("index", reader.path, None, sentence("{key} leads to it", key=name))
        if ended and broken is None and _covers(reader, unit.offset):
            broken = (reader.path, ended)
    if broken is None:
        return False, Evidence("index", None, None, sentence("no entry for {key} leads to it", key=name))
    statement = sentence("no entry for {key} leads to it: {why}", key=name, why=broken[1])
    return False, Evidence("index", broken[0], None, statement)


def _not_to_be_asked(store: StoreSnapshot) -> str:
    if store.paths is None:
        return sentence("what was opened has no index")
    undecoded = store.undecoded_part("index")
    if undecoded is not None and not store.index_files():
        return undecoded.reason("index")
    config = store.config
    if config is not None and "messageIndexEnable" in config.given and not config.message_index_enable:
        return sentence("the broker builds no index: messageIndexEnable is false")
    return ""


def _covers(reader: IndexReader, offset: int) -> bool:
    """Return True if the file's header says that it covers units around ``offset``, or if the header is unreadable."""
    try:
        header = reader.header
    except CorruptUnit:
        return True
    return header.begin_phy_offset <= offset <= header.end_phy_offset


def _follow_chain(reader: IndexReader, key_hash: int, offset: int) -> str | None:
    """Follow the key's chain in one file. None if it reaches the unit at ``offset``, "" if it does not, else the place
    at which it is broken.
    """
    try:
        header, slots = reader.header, reader.slots
        number = reader.slot(key_hash % slots)
        count = max(header.index_count, 1)
        if number == 0 or count <= 1:
            return ""
        visited: set[int] = set()
        while True:
            if number in visited:
                return sentence("its chain has a loop at entry {n:,} of {file}", n=number, file=reader.name)
            visited.add(number)
            entry = reader.entry(number) if number <= count else None
            if entry is None:
                return sentence(
                    "its chain leads to entry {n:,}, which {file} does not hold", n=number, file=reader.name
                )
            if entry.key_hash == key_hash and entry.phy_offset == offset:
                return None
            if entry.time_diff < 0 or entry.prev == 0:
                return ""
            if not codec.chain_continues(entry.prev, number, count):
                return sentence(
                    "its chain has a loop at entry {n:,} of {file}"
                    if entry.prev == number
                    else "its chain leaves the file after entry {n:,} of {file}",
                    n=number,
                    file=reader.name,
                )
            number = entry.prev
    except CorruptUnit:
        return sentence("{file} cannot be decoded", file=reader.name)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A piece of evidence: ``file`` and ``offset`` (bytes) of its place, ``holds`` its statement.

    ``timestamp``: store time (ms) of the unit in question; ``topic``: the topic of an index entry.
    """

    what: str
    file: str | None
    offset: int | None
    holds: str
    timestamp: int | None = None
    topic: str | None = None

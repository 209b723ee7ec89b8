"""Mend rows of the tables in ``config/`` that queues and log contradict: topics, offsets of groups and of delay levels
(docs/formats/repair.md#rows).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.codec import pop
from engine.codec.columns import BLANK, UnitColumns
from engine.codec.config_tables import ConsumerOffset, Table, consumer_offsets, delay_offsets, load_table
from engine.codec.message import Unit
from engine.codec.topic_table import TopicTable
from engine.inspection import tables
from engine.inspection.block_scan import scan_log
from engine.inspection.check.groups import offsets_beyond
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.stalled_services import was_delivered
from engine.inspection.store_queues import AnyQueue
from engine.inspection.tables import OFFSET_TABLES, read_table
from engine.inspection.written_release import release_of
from engine.patching.patches import Patch
from engine.patching.table_edits import Row, edit_table, put
from engine.releases import rules_of
from engine.repair.repair import Certainty, Repair
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import join, plural, sentence
from engine.system_names import LMQ_PREFIX, OP_TOPIC, REVIVE_GROUP, SCHEDULE_TOPIC, TRANSACTION_GROUP, is_system_topic

TOPICS_NAME, OFFSETS_NAME, DELAY_NAME = "topics", "offsets", "delay-offsets"
_MAX_NAMED = 20
_PERM_ALL = 6
_UNRELIABLE = frozenset({"CL11", "CL12", "CL14", "CF12", "CF14"})
"""Rules after which offsets may be right, and the log or the tables the wrong ones."""
_MEMORIES = frozenset({"CQ13", "IX07", "messages"})
"""Evidence of CL11: queues or index have entries of the lost messages."""


@dataclass(slots=True)
class _TableChange:
    """The changes in one table, in words."""

    done: list[str] = field(default_factory=list)
    costs: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        return join("; ", [*self.done[:_MAX_NAMED], *(["…"] if len(self.done) > _MAX_NAMED else [])])


# -- topics


def repair_topics(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the topics table: topics that it lacks, hidden queues, and a kind of queues that the topic
    does not have. None if there is nothing to mend. Raises :class:`engine.errors.CannotRead`.
    """
    chosen = _chosen(findings, mendable.TOPICS)
    is_lost = _is_lost("topics.json", chosen)
    table = _empty_table(store, "topics.json") if is_lost else _json_table(store, "topics.json")
    if not chosen or table is None or any(finding.id == "CF14" for finding in findings):
        return None
    topics = _TopicRows(store, table)
    if is_lost:
        topics.declare_all()
    for finding in chosen:
        topic = Path(finding.file).name if finding.id == "CQ11" and finding.file else finding.evidence.get("topic")
        if not isinstance(topic, str):
            continue
        match finding.id:
            case "CQ14":
                topics.declare(topic)
            case "CF07" if finding.evidence.get("field") == "readQueueNums":
                topics.show_queues(topic, finding)
            case "CF19" if finding.kind == "queues":
                topics.give_queues(topic, _queues_of_mapping(topic, chosen))
            case "CQ11":
                topics.set_kind(topic)
    if not topics.new_rows:
        return None

    def set_rows(value: Row) -> None:
        for name, row in topics.new_rows.items():
            put(value, ("topicConfigTable",), name, row)

    patch = _edited(store, table, set_rows, topics.change, TOPICS_NAME)
    gains = sentence("clients find the topics, and consumers get the messages in all of their queues")
    title = sentence("Let topics.json say what the queues are")
    return Repair(TOPICS_NAME, mendable.TOPICS, title, (patch,), gains, patch.costs, "likely")


def _queues_of_mapping(topic: str, findings: Collection[Finding]) -> int:
    """Return the number of queues that a static topic needs for its mapping."""
    return max(
        int(finding.evidence["expected"])
        for finding in findings
        if finding.kind == "queues" and finding.evidence.get("topic") == topic
    )


class _TopicRows:
    """New rows of the topics table, and what they change."""

    def __init__(self, store: StoreSnapshot, table: Table) -> None:
        self._store = store
        rows = table.value.get("topicConfigTable")
        self._rows: Mapping[Any, Any] = rows if isinstance(rows, dict) else {}
        self.new_rows: dict[str, Row] = {}
        self.change = _TableChange()

    def declare_all(self) -> None:
        """Declare every topic that has queues: the table is lost."""
        for topic, queues in self._store.queues.by_topic().items():
            if not is_system_topic(topic) and not topic.startswith(LMQ_PREFIX):
                self.new_rows[topic] = _new_topic(self._store, topic, queues)
        if self.new_rows:
            text = plural(
                "{n:,} topic has queues and is declared",
                "{n:,} topics have queues and are declared",
                n=len(self.new_rows),
            )
            self.change.done.append(text)
            self.change.costs.append(
                sentence(
                    "permissions, attributes, and numbers of queues without messages are not those of the lost table"
                )
            )

    def declare(self, topic: str) -> None:
        """Declare a topic that the table does not have."""
        if topic in self._rows:
            return
        queues = self._store.queues.by_topic().get(topic, {})
        self.new_rows[topic] = _new_topic(self._store, topic, queues)
        text = plural(
            "topic {topic} is declared with {n:,} queue",
            "topic {topic} is declared with {n:,} queues",
            n=max(queues, default=0) + 1,
            topic=topic,
        )
        self.change.done.append(text)
        self.change.costs.append(sentence("a topic that was deleted on purpose exists again"))

    def show_queues(self, topic: str, finding: Finding) -> None:
        """Let consumers read all queues, if they miss messages, or will: queues that all groups have read may be hidden
        on purpose.
        """
        config = (tables.topics(self._store) or {}).get(topic)
        row = self._row(topic)
        if config is None or row is None:
            return
        is_written = config.write_queue_nums > config.read_queue_nums
        if is_written or finding.evidence.get("unread"):
            count = max(int(finding.evidence["expected"]), config.write_queue_nums)
            self.new_rows[topic] = {**row, "readQueueNums": count}
            text = sentence("consumers read {n:,} queues of topic {topic}", n=count, topic=topic)
            self.change.done.append(text)

    def give_queues(self, topic: str, count: int) -> None:
        """Give a static topic the queues that its mapping names."""
        row = self._row(topic)
        if row is None:
            return
        members = ("readQueueNums", "writeQueueNums")
        numbers: Row = {member: max(count, int(row.get(member) or 0)) for member in members}
        if any(row.get(member) != number for member, number in numbers.items()):
            self.new_rows[topic] = {**row, **numbers}
            text = sentence("topic {topic} has the {n:,} queues that its mapping names", n=count, topic=topic)
            self.change.done.append(text)

    def set_kind(self, topic: str) -> None:
        """Give a topic the kind that all of its queues have."""
        kind, row = _kind_of_queues(self._store, topic), self._row(topic)
        if kind is not None and row is not None:
            attributes = row.get("attributes")
            members = attributes if isinstance(attributes, dict) else {}
            self.new_rows[topic] = {**row, "attributes": {**members, "queue.type": kind}}
            text = sentence("topic {topic} is of the kind {kind}, as its queues are", topic=topic, kind=kind)
            self.change.done.append(text)

    def _row(self, topic: str) -> Row | None:
        row = self.new_rows.get(topic, self._rows.get(topic))
        return row if isinstance(row, dict) else None


def _new_topic(store: StoreSnapshot, topic: str, queues: Mapping[int, AnyQueue]) -> Row:
    count = max(queues, default=0) + 1
    row: Row = {
        "order": False,
        "perm": _PERM_ALL,
        "readQueueNums": count,
        "topicFilterType": "SINGLE_TAG",
        "topicName": topic,
        "topicSysFlag": 0,
        "writeQueueNums": count,
    }
    attributes = {}
    if any(queue.kind == "batch" for queue in queues.values()):
        attributes["queue.type"] = "BatchCQ"
    if any(queue.topic == topic for queue in store.compacted_queues()):
        attributes["cleanup.policy"] = "COMPACTION"
    return {"attributes": attributes, **row} if rules_of(release_of(store)).tables_of_5 else row


def _kind_of_queues(store: StoreSnapshot, topic: str) -> str | None:
    """The kind of all queues of a topic; None if it has queues of both kinds, or none."""
    kinds = {queue.kind for queue in store.queues.used_files().get(topic, {}).values()}
    has_both = all(store.reading.exists(store.path / name / topic) for name in ("consumequeue", "batchconsumequeue"))
    if len(kinds) != 1 or has_both:
        return None
    return "BatchCQ" if kinds == {"batch"} else "SimpleCQ"


# -- offsets of groups


def _leaves_offsets(finding: Finding) -> bool:
    """Return True if offsets may be right. Where only the checkpoint knows of a longer log, no queue has the lost
    entries any more: the broker gives their numbers to new messages, and a group behind them skips these.
    """
    is_forgotten = finding.id == "CL11" and not _MEMORIES & finding.evidence.keys()
    return finding.id in _UNRELIABLE and not is_forgotten


def repair_offsets(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of groups' offsets: rows of topics that are gone are removed, offsets beyond the end of a queue
    set back. None if there is nothing to mend. Raises :class:`engine.errors.CannotRead`.
    """
    chosen = _chosen(findings, mendable.OFFSETS)
    if not chosen or any(_leaves_offsets(finding) for finding in findings):
        return None
    gone_topics = {finding.evidence.get("topic") for finding in chosen if finding.id == "CF08"}
    groups = {finding.evidence.get("group") for finding in chosen if finding.id == "CF02"}
    revives = [
        str(finding.evidence.get("queue"))
        for finding in chosen
        if finding.id == "CF13" and finding.kind == "unreadable"
    ]
    patches: list[Patch] = []
    for name in OFFSET_TABLES:
        table = _json_table(store, name)
        if table is None:
            continue
        offsets = _GroupOffsets(store)
        for queue_name in revives if name == OFFSET_TABLES[0] else ():
            offsets.pass_over_unreadable(queue_name, table)
        for row in consumer_offsets(table.value).rows:
            if row.mode != "broadcast" and row.topic in gone_topics:
                offsets.removed.append(row)
            elif row.group in groups:
                offsets.set_back(row)
        offsets.say_removed()
        if offsets.removed or offsets.new_offsets:
            patches.append(_edited(store, table, offsets.apply, offsets.change, OFFSETS_NAME))
    if not patches:
        return None
    gains = sentence("the groups get the next messages of these queues, and of topics with these names")
    title = sentence("Set offsets of groups that no queue has")
    costs = join("; ", list(dict.fromkeys(patch.costs for patch in patches if patch.costs)))
    return Repair(OFFSETS_NAME, mendable.OFFSETS, title, tuple(patches), gains, costs, "likely")


class _GroupOffsets:
    """Rows of a table of offsets that are removed, and offsets that are set, by row and queue id."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self.removed: list[ConsumerOffset] = []
        self.new_offsets: list[tuple[ConsumerOffset, int, int]] = []
        self.change = _TableChange()

    def set_back(self, row: ConsumerOffset) -> None:
        """Let the group go on at the end of each queue that ends before its offset; at the first message of a queue
        that is a new one.
        """
        for beyond in offsets_beyond(self._store, row.topic, row.offsets):
            queue = self._store.queues.find(beyond.topic, beyond.queue_id)
            is_new = queue is None or _began_again(self._store, row, beyond.queue_id)
            offset = 0 if queue is None or is_new else queue.max_offset
            self.new_offsets.append((row, beyond.queue_id, offset))
            text = sentence(
                "group {group} goes on at offset {offset:,} of {queue}",
                group=row.group,
                offset=offset,
                queue=f"{beyond.topic}/{beyond.queue_id}",
            )
            self.change.done.append(text)
            if not is_new:
                self.change.costs.append(
                    sentence(
                        "a group that has not read such a queue to its end skips the messages in between, as with a "
                        "broker"
                    )
                )

    def pass_over_unreadable(self, queue_name: str, table: Table) -> None:
        """Let the revive of pops go on behind the first record that it cannot read: its offset is that of the last one
        that it handled.
        """
        topic, _, number = queue_name.rpartition("/")
        queue = self._store.queues.find(topic, int(number)) if number.isdigit() else None
        if queue is None:
            return
        key = f"{topic}@{REVIVE_GROUP}"
        rows = {row.key: row for row in consumer_offsets(table.value).rows}
        row = rows.get(key, ConsumerOffset(key, topic, REVIVE_GROUP, "cluster", {}))
        first = max(row.offsets.get(queue.queue_id, -1) + 1, queue.min_offset, 0)
        for entry in queue.entries(first, queue.max_offset):
            unit = self._store.log.seen_at(entry.physical_offset, crc=False)
            is_record = isinstance(unit, Unit) and unit.tags in (pop.CHECK_POINT_TAG, pop.ACK_TAG, pop.BATCH_ACK_TAG)
            if not isinstance(unit, Unit) or not is_record or pop.is_record(unit.body):
                continue
            self.new_offsets.append((row, queue.queue_id, entry.queue_offset))
            text = sentence(
                "the revive of pops goes on behind entry {n:,} of {queue}", n=entry.queue_offset, queue=queue_name
            )
            self.change.done.append(text)
            count = entry.queue_offset - first
            if count:
                text = plural(
                    "popped messages of {n:,} record in front of it do not come back",
                    "popped messages of {n:,} records in front of it do not come back",
                    n=count,
                )
                self.change.costs.append(text)
            return

    def say_removed(self) -> None:
        """Put the rows that are removed into words."""
        if self.removed:
            text = plural(
                "{n:,} row of topics that the store does not have is removed",
                "{n:,} rows of topics that the store does not have are removed",
                n=len(self.removed),
            )
            self.change.done.append(text)
            self.change.costs.append(sentence("if such a topic comes back with its messages, its groups start anew"))

    def apply(self, value: Row) -> None:
        """Change the content of the table."""
        topics_by_group = value.get("groupTopicMap")
        for row in self.removed:
            for name in ("offsetTable", "lmqOffsetTable"):
                rows = value.get(name)
                if isinstance(rows, dict):
                    rows.pop(row.key, None)
            if isinstance(topics_by_group, dict):
                topics = topics_by_group.get(row.group)
                if isinstance(topics, list) and row.topic in topics:
                    topics.remove(row.topic)
                    if not topics:
                        del topics_by_group[row.group]
        for row, queue_id, offset in self.new_offsets:
            if row.mode == "lmq":
                put(value, ("lmqOffsetTable",), row.key, offset)
            else:
                put(value, ("offsetTable", row.key), queue_id, offset)


def _began_again(store: StoreSnapshot, row: ConsumerOffset, queue_id: int) -> bool:
    """Return True if the queue is a new one: the log has older messages of its name in front of its first message. Then
    the group has read nothing of it. The queue of transaction answers begins again when it is deleted.
    """
    if row.group == TRANSACTION_GROUP and row.topic == OP_TOPIC:
        return True
    queue = store.queues.find(row.topic, queue_id)
    first = queue.entry(max(queue.first_in_log, 0)) if queue is not None and queue.max_offset > 0 else None
    if first is None or first.queue_offset != 0:
        return False
    names = TopicTable()
    for block in scan_log(store.log, store.log.min_offset, first.physical_offset, crc=False, topics=names):
        if isinstance(block, UnitColumns):
            units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
            is_of_queue = (block.topic_id[:units] == names.find(row.topic)) & (block.queue_id[:units] == queue_id)
            if np.any(is_of_queue & (block.offset[:units] < first.physical_offset)):
                return True
    return False


# -- delay levels


def repair_delay_offsets(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of delay levels: each goes on with its first message that was not delivered. None if there is
    nothing to mend. Raises :class:`engine.errors.CannotRead`.
    """
    chosen = _chosen(findings, mendable.DELAY_OFFSETS)
    is_lost = _is_lost("delayOffset.json", chosen)
    table = _empty_table(store, "delayOffset.json") if is_lost else _json_table(store, "delayOffset.json")
    if not is_lost and not any(finding.id == "CF09" for finding in chosen):
        return None
    if table is None or any(_leaves_offsets(finding) for finding in findings):
        return None
    newest = _newest_time(store)
    levels, _ = delay_offsets(table.value)
    change = _TableChange()
    new_offsets: dict[int, int] = {}
    certainty: Certainty = "certain"
    for queue_id, queue in sorted(store.queues.by_topic().get(SCHEDULE_TOPIC, {}).items()):
        current = levels.get(queue_id + 1)
        if current is not None and current <= queue.max_offset:
            continue
        offset, is_proven = _first_undelivered(store, queue, newest)
        if offset == current:
            continue
        new_offsets[queue_id + 1] = offset
        certainty = certainty if is_proven else "likely"
        change.done.append(
            sentence("delay level {level} goes on at offset {offset:,}", level=queue_id + 1, offset=offset)
        )
    if not new_offsets:
        return None

    def set_levels(value: Row) -> None:
        for level, offset in new_offsets.items():
            put(value, ("offsetTable",), level, offset)

    patch = _edited(store, table, set_levels, change, DELAY_NAME)
    gains = sentence("delayed messages that were not delivered are delivered, and none of the others again")
    title = sentence("Let delay levels go on with their first message that was not delivered")
    return Repair(DELAY_NAME, mendable.DELAY_OFFSETS, title, (patch,), gains, "", certainty)


def _first_undelivered(store: StoreSnapshot, queue: AnyQueue, newest: int) -> tuple[int, bool]:
    """Return the offset of the level's first message that was not delivered, and True if the log proves it.

    A level delivers its messages in their order, so the place is found by halving. A message without a unique key
    counts as delivered if it was due.
    """
    lower, upper = max(queue.first_in_log, 0), queue.max_offset
    is_proven = True
    while lower < upper:
        middle = (lower + upper) // 2
        entry = queue.entry(middle)
        unit = store.log.seen_at(entry.physical_offset, crc=False) if entry is not None else None
        is_due = entry is not None and 0 < entry.tags_code <= newest
        has_key = isinstance(unit, Unit) and bool(unit.unique_key)
        if is_due and (not has_key or (isinstance(unit, Unit) and was_delivered(store, unit))):
            is_proven &= has_key
            lower = middle + 1
        else:
            upper = middle
    return lower, is_proven


def _newest_time(store: StoreSnapshot) -> int:
    """Store time (ms) of the newest message that any queue has."""
    newest = (queue.newest() for queues in store.queues.by_topic().values() for queue in queues.values())
    offset = max((entry[0] for entry in newest if entry), default=-1)
    unit = store.log.seen_at(offset, crc=False) if offset >= 0 else None
    return unit.store_timestamp if isinstance(unit, Unit) else 0


# -- all


def _chosen(findings: Collection[Finding], rules: frozenset[str]) -> list[Finding]:
    return [finding for finding in findings if finding.id in rules and at_least(finding.severity, "warn")]


def _is_lost(name: str, findings: Collection[Finding]) -> bool:
    """Return True if a broker begins without this table, or does not start because of it."""
    return any(
        finding.id in ("CF01", "CF03") and Path(finding.file or "").name in (name, "config") for finding in findings
    )


def _empty_table(store: StoreSnapshot, name: str) -> Table | None:
    """A table without rows in the place of one that no broker can load; None if one can."""
    table = read_table(store, name) if store.paths is not None and store.kind == "store" else None
    if table is not None and table.used not in ("defaults", "nothing"):
        return None
    return load_table(name, lambda _: None, release_of(store))


def _json_table(store: StoreSnapshot, name: str) -> Table | None:
    """The table, if a broker loads it from its JSON file."""
    table = read_table(store, name) if store.paths is not None and store.kind == "store" else None
    return table if table is not None and table.used == "main" else None


def _edited(store: StoreSnapshot, table: Table, change: Callable[[Row], None], what: _TableChange, name: str) -> Patch:
    assert store.paths is not None
    old = store.small_file(store.paths.config / table.name)
    patch = edit_table(table, old, change, what.words)
    return replace(patch, name=name, costs=join("; ", list(dict.fromkeys(what.costs))))

"""Groups and topics against the queues: CF02, CF06–CF09, CQ14 (docs/formats/delays.md#delivery,
docs/formats/config-tables.md#tables).
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from engine.codec import config_tables
from engine.codec.config_tables import PERM_READ, PERM_WRITE, TopicConfig, delay_offsets
from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.inspection import tables
from engine.inspection.check.places import Span
from engine.inspection.deleted_topics import topics_known
from engine.inspection.groups import read_permissions
from engine.inspection.rocksdb_queue import RocksQueueReader
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.stalled_services import levels_beyond_queues, was_delivered
from engine.inspection.store_queues import AnyQueue
from engine.inspection.tables import read_table, table_place
from engine.rules import catalogue, catalogue_tables
from engine.rules.findings import HAPPENED, Finding, Severity
from engine.sentences import join, plural, sentence
from engine.system_names import (
    LMQ_PREFIX,
    OP_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TRANSACTION_GROUP,
    is_system_group,
    is_system_topic,
)

MAX_LISTED = 20
MIN_UNIT_BYTES = 91
"""Size of a unit with a one-letter topic and nothing else: limits the number of entries of a queue."""
_NO_TOPIC = "mqadmin updateTopic -b BROKER -t {topic} -r {queues} -w {queues} -p 6"


def findings(
    store: StoreSnapshot,
    queues_without_folder: Collection[tuple[str, int]],
    newest: int,
    short_queues: Mapping[tuple[str, int], int],
) -> Iterator[Finding]:
    """CF06–CF09, CF15 and CQ14 of a store.

    ``queues_without_folder``: queues without a folder whose units are still in the log; ``newest``: the newest store
    time (ms); ``short_queues``: for queues that lack units, the number at which they should end.

    Raises :class:`CannotRead` if a table or a folder could not be read.
    """
    if store.paths is None or not store.queues.by_topic():
        return
    store.queues.require()
    groups = _Groups(store, {topic for topic, _ in queues_without_folder})
    yield from groups.before_the_log()
    yield from groups.below_zero()
    yield from groups.of_topics_without_queues()
    yield from groups.unknown_topics()
    yield from groups.hidden_queues()
    yield from groups.barred_groups()
    yield from _delay_offset_findings(store, newest, short_queues)


class _Groups:
    """Compares the offset tables of a store with its queues and topics."""

    def __init__(self, store: StoreSnapshot, queues_without_folder: Collection[str]) -> None:
        assert store.paths is not None
        self._store = store
        self._queues_without_folder = queues_without_folder
        self._rows = [row for row in tables.offsets(store) if row.mode != "broadcast"]
        self._topics = tables.topics(store)
        self._light: Severity | None = "note" if store.abort else None

    @cached_property
    def _offsets(self) -> str:
        """The table that the offsets stand in."""
        light = any(row.mode == "lmq" for row in self._rows)
        return table_place(self._store, "lmqConsumerOffset.json" if light else "consumerOffset.json")

    def before_the_log(self) -> Iterator[Finding]:
        """CF06: the next messages of these groups were deleted with the oldest files of the log."""
        lost: dict[str, dict[str, dict[str, int]]] = {}
        for row in self._rows:
            if is_system_group(row.group) or is_system_topic(row.topic) or self._is_compacted(row.topic):
                continue
            for queue_id, offset in sorted(row.offsets.items()):
                queue = self._store.queues.by_topic().get(row.topic, {}).get(queue_id)
                first_in_log = self._first_in_log(queue) if queue is not None else 0
                if queue is not None and 0 <= offset < first_in_log:
                    place = f"{row.topic}/{queue_id}"
                    lost.setdefault(row.group, {})[place] = {
                        "offset": offset,
                        "first": first_in_log,
                        "lost": first_in_log - offset,
                    }
        for group, queues in sorted(lost.items(), key=lambda item: -_sum(item[1]))[:MAX_LISTED]:
            places = ", ".join(f"{place} {row['lost']:,}" for place, row in list(queues.items())[:3])
            text = sentence(
                "Group {group} lost unread messages, {n:,} in all: the log has deleted them ({rest})",
                group=group,
                n=_sum(queues),
                rest=places,
            )
            evidence = {"group": group, "lost": _sum(queues), "queues": dict(list(queues.items())[:MAX_LISTED])}
            yield catalogue_tables.CF06.finding(text, self._offsets, None, evidence, self._light)

    def _is_compacted(self, topic: str) -> bool:
        """Messages of the topic live on in the compaction log when the commit log has deleted them."""
        config = (self._topics or {}).get(topic)
        if config is not None and config.attributes.get("cleanup.policy") == "COMPACTION":
            return True
        return any(queue.startswith(f"{topic}/") for part in self._store.undecoded for queue in part.compacted)

    def below_zero(self) -> Iterator[Finding]:
        """CF11: offsets below zero, which a broker treats as missing; JavaScript clients write −1."""
        negative_offsets: dict[str, dict[str, int]] = {}
        for row in self._rows:
            for queue_id, offset in sorted(row.offsets.items()):
                if offset < 0 and not is_system_group(row.group):
                    negative_offsets.setdefault(row.group, {})[f"{row.topic}/{queue_id}"] = offset
        for group, queues in list(negative_offsets.items())[:MAX_LISTED]:
            places = ", ".join(f"{place} {offset:,}" for place, offset in list(queues.items())[:3])
            text = sentence(
                "Group {group} has offsets below zero ({n:,}): {rest}: it has not started there",
                group=group,
                n=len(queues),
                rest=places,
            )
            evidence = {
                "group": group,
                "expected": sentence("an offset from 0 on"),
                "found": dict(list(queues.items())[:MAX_LISTED]),
            }
            kind = "" if all(offset == -1 for offset in queues.values()) else "other"
            yield catalogue_tables.CF11.finding(text, self._offsets, None, evidence, self._light, kind=kind)

    def _first_in_log(self, queue: AnyQueue) -> int:
        with contextlib.suppress(CannotRead):
            return queue.first_in_log
        return 0

    def of_topics_without_queues(self) -> Iterator[Finding]:
        """CF08: a recreated topic begins at 0, and these groups are already further."""
        groups_by_topic: dict[str, dict[str, int]] = {}
        for row in self._rows:
            furthest = max(row.offsets.values(), default=0)
            if furthest <= 0 or row.topic in self._store.queues.by_topic() or self._lost_its_queues(row.topic):
                continue
            groups_by_topic.setdefault(row.topic, {})[row.group] = furthest
        for topic, groups in sorted(groups_by_topic.items())[:MAX_LISTED]:
            names = ", ".join(f"{group} {offset:,}" for group, offset in list(groups.items())[:3])
            text = sentence(
                "Topic {topic} has no queues, and groups have offsets in it ({n:,}): {rest}",
                topic=topic,
                n=len(groups),
                rest=names,
            )
            evidence: dict[str, Any] = {
                "topic": topic,
                "expected": sentence("no offsets, or queues"),
                "found": dict(list(groups.items())[:MAX_LISTED]),
            }
            evidence["groups"] = list(evidence["found"])
            yield catalogue_tables.CF08.finding(text, self._offsets, None, evidence)

    def _lost_its_queues(self, topic: str) -> bool:
        """Return True if the log has units of the topic and it was not deleted: CQ10 reports that."""
        if topic not in self._queues_without_folder:
            return False
        return topic.startswith(LMQ_PREFIX) or topic in (self._topics or ()) or not topics_known(self._store).are_known

    def unknown_topics(self) -> Iterator[Finding]:
        """CQ14: the broker tells clients that the topic does not exist."""
        if self._topics is None:
            return
        shown = 0
        for topic, queues in self._store.queues.by_topic().items():
            is_known = topic in self._topics or topic.startswith(LMQ_PREFIX) or is_system_topic(topic)
            messages = 0 if is_known else sum(self._messages(queue) for queue in queues.values())
            if not messages or shown >= MAX_LISTED:
                continue
            shown += 1
            unread = self._unread(topic, queues)
            text = sentence(
                "Topic {topic} is not in topics.json, but its queues hold messages ({n:,})", topic=topic, n=messages
            )
            text += _unread_words(unread)
            evidence: dict[str, Any] = {
                "topic": topic,
                "queues": list(queues)[:MAX_LISTED],
                "messages": messages,
                "unread": unread,
            }
            evidence["groups"] = list(unread)
            command = _NO_TOPIC.format(topic=shlex.quote(topic), queues=max(queues) + 1)
            folder = _topic_folder(next(iter(queues.values())))
            grave: Severity | None = "error" if unread and not self._light else self._light
            yield catalogue_tables.CQ14.finding(text, str(folder), None, evidence, grave, command=command)

    def hidden_queues(self) -> Iterator[Finding]:
        """CF07: queues that topics.json hides from consumers or producers."""
        shown = 0
        for topic, config in (self._topics or {}).items():
            queues = self._store.queues.by_topic().get(topic, {})
            if not queues or is_system_topic(topic) or shown >= MAX_LISTED:
                continue
            for finding in self._hidden_queue_findings(config, queues):
                shown += 1
                yield finding

    def _hidden_queue_findings(self, config: TopicConfig, queues: Mapping[int, AnyQueue]) -> Iterator[Finding]:
        beyond = {number: queue for number, queue in queues.items() if number >= config.read_queue_nums}
        unread = self._unread(config.name, beyond)
        message_count = sum(self._messages(queue) for queue in beyond.values())
        needed_queues = max(queues) + 1
        if message_count:
            text = sentence(
                "Topic {topic} has readQueueNums {n:,}, but queues beyond that ({rest}) hold messages ({held:,})",
                topic=config.name,
                n=config.read_queue_nums,
                rest=", ".join(map(str, list(beyond)[:8])),
                held=message_count,
            )
            yield self._of_topic(config, text, unread, "beyond", "readQueueNums", needed_queues, config.read_queue_nums)
        elif config.write_queue_nums > config.read_queue_nums:
            text = sentence(
                "Topic {topic} has writeQueueNums {n:,} and readQueueNums {read:,}: nobody reads what "
                "producers put into the queues beyond that",
                topic=config.name,
                n=config.write_queue_nums,
                read=config.read_queue_nums,
            )
            needed_queues = config.write_queue_nums
            yield self._of_topic(config, text, {}, "wider", "readQueueNums", needed_queues, config.read_queue_nums)
        if not config.perm & PERM_READ:
            unread = self._unread(config.name, queues)
            text = sentence("Topic {topic} may not be read (perm {perm})", topic=config.name, perm=config.perm)
            yield self._of_topic(config, text, unread, "unreadable", "perm", PERM_READ | config.perm, config.perm)
        elif not config.perm & PERM_WRITE:
            text = sentence("Topic {topic} may not be written (perm {perm})", topic=config.name, perm=config.perm)
            yield self._of_topic(config, text, {}, "unwritable", "perm", PERM_WRITE | config.perm, config.perm)

    def _of_topic(
        self, config: TopicConfig, text: str, unread: dict[str, int], kind: str, field: str, expected: int, actual: int
    ) -> Finding:
        text += _unread_words(unread)
        evidence: dict[str, Any] = {"topic": config.name, "field": field, "expected": expected, "found": actual}
        evidence |= {"unread": unread, "groups": list(unread)}
        queues = expected if field == "readQueueNums" else config.read_queue_nums
        perm = expected if field == "perm" else config.perm
        name, writes = shlex.quote(config.name), config.write_queue_nums
        command = f"mqadmin updateTopic -b BROKER -t {name} -r {queues} -w {writes} -p {perm}"
        grave: Severity | None = "error" if unread else None
        path = table_place(self._store, "topics.json")
        return catalogue_tables.CF07.finding(text, path, None, evidence, grave, kind=kind, command=command)

    def barred_groups(self) -> Iterator[Finding]:
        """CF15: groups that may not consume and have not read everything."""
        for group in sorted(read_permissions(self._store).barred_groups)[:MAX_LISTED]:
            waiting = self._waiting(group)
            if not waiting:
                continue
            places = ", ".join(f"{place} {count:,}" for place, count in list(waiting.items())[:3])
            text = sentence(
                "Group {group} may not consume (consumeEnable=false), and messages wait for it ({n:,} in all): {rest}",
                group=group,
                n=sum(waiting.values()),
                rest=places,
            )
            evidence = {
                "group": group,
                "expected": True,
                "found": False,
                "unread": dict(list(waiting.items())[:MAX_LISTED]),
            }
            evidence[HAPPENED] = sentence(
                "the group {group} may not consume: subscriptionGroup.json says consumeEnable=false", group=group
            )
            path = table_place(self._store, "subscriptionGroup.json")
            command = f"mqadmin updateSubGroup -b BROKER -g {shlex.quote(group)} -s true"
            yield catalogue_tables.CF15.finding(text, path, None, evidence, self._light, command=command)

    def _waiting(self, group: str) -> dict[str, int]:
        """Messages that the group has not read, by queue; all of its retry queues, where it has no offset in them."""
        offsets = {row.topic: row.offsets for row in self._rows if row.group == group}
        waiting = {}
        for topic in dict.fromkeys((*offsets, f"{RETRY_PREFIX}{group}")):
            for queue_id, queue in self._store.queues.by_topic().get(topic, {}).items():
                if queue_id in offsets.get(topic, {}) or topic.startswith(RETRY_PREFIX):
                    unread = self._behind(queue, max(offsets.get(topic, {}).get(queue_id, 0), 0))
                    if unread:
                        waiting[f"{topic}/{queue_id}"] = unread
        return waiting

    def _unread(self, topic: str, queues: Mapping[int, AnyQueue]) -> dict[str, int]:
        """For each group that reads the topic: messages of these queues that it has not read and the log still has."""
        unread_by_group: dict[str, int] = {}
        for row in self._rows:
            if row.topic != topic or is_system_group(row.group):
                continue
            unread = sum(self._behind(queue, row.offsets.get(number, 0)) for number, queue in queues.items())
            if unread:
                unread_by_group[row.group] = unread
        return unread_by_group

    def _behind(self, queue: AnyQueue, offset: int) -> int:
        return max(queue.max_offset - max(offset, self._first_in_log(queue)), 0)

    def _messages(self, queue: AnyQueue) -> int:
        return self._behind(queue, 0)


def _topic_folder(queue: AnyQueue) -> Path:
    """The folder of a topic's queues; that of all queues in a RocksDB."""
    return queue.folder if isinstance(queue, RocksQueueReader) else queue.sequence.folders[0].parent


def _unread_words(unread: dict[str, int]) -> str:
    words = ", ".join(f"{group} {count:,}" for group, count in list(unread.items())[:3])
    return "; " + sentence("unread by {groups}", groups=words) if words else ""


def _sum(queues: dict[str, dict[str, int]]) -> int:
    return sum(row["lost"] for row in queues.values())


def _delay_offset_findings(
    store: StoreSnapshot, newest: int, short_queues: Mapping[tuple[str, int], int]
) -> Iterator[Finding]:
    """CF09: offsets of delay levels that are not those of their queues."""
    table = tables.loaded(store, "delayOffset.json")
    queues = store.queues.by_topic().get(SCHEDULE_TOPIC, {})
    if store.paths is None or table is None or not queues or store.lock_state == "held":
        return
    levels, _ = delay_offsets(table)
    path = str(store.paths.config / "delayOffset.json")
    missing: list[int] = []
    for beyond in levels_beyond_queues(store):
        evidence = {
            "level": beyond.level,
            "queue": f"{SCHEDULE_TOPIC}/{beyond.queue_id}",
            "expected": beyond.queue_end,
            "found": beyond.next_offset,
        }
        cause = "CQ10" if beyond.next_offset <= short_queues.get((SCHEDULE_TOPIC, beyond.queue_id), -1) else None
        yield catalogue_tables.CF09.finding(
            beyond.words, path, None, evidence, "note" if store.abort else None, kind="beyond", caused_by=cause
        )
    for number, queue in queues.items():
        if number + 1 not in levels and _has_delivered(store, queue, newest):
            missing.append(number + 1)
    if missing:
        redelivered = sum(queues[level - 1].max_offset - max(queues[level - 1].min_offset, 0) for level in missing)
        text = sentence(
            "delayOffset.json has no offset for delay levels whose messages were delivered ({levels}): "
            "all of them are delivered again (messages: {again:,})",
            levels=", ".join(map(str, missing)),
            again=redelivered,
        )
        evidence = {"levels": missing, "messages": redelivered, "found": sorted(levels)}
        yield catalogue_tables.CF09.finding(text, path, None, evidence, "note" if store.abort else None, kind="missing")


def _has_delivered(store: StoreSnapshot, queue: AnyQueue, newest: int) -> bool:
    """Return True if the level's first message was delivered: it was due before the store's newest unit, and the log
    holds it again under its real topic. If the log cannot show that, a message that was due counts as delivered.

    A store that a broker left earlier, and another release continued, may have levels of which nothing was delivered.
    """
    first_entry = queue.entry(max(queue.min_offset, 0)) if queue.max_offset > queue.min_offset else None
    if first_entry is None or not 0 < first_entry.tags_code <= newest:
        return False
    unit = store.log.seen_at(first_entry.physical_offset, crc=False)
    return not isinstance(unit, Unit) or not unit.unique_key or was_delivered(store, unit)


MIN_SHORTER_QUEUES = 2
"""Least number of queues shorter than their groups' offsets: a single one may be one wrong offset."""
_EXPLAINED_BY_NEW_LOG = frozenset({"CF02", "CF08"})
_LOST_TAIL = frozenset({"CL01", "CL11", "CL12", "CQ10", "CQ13"})
"""Rules that explain why queues are shorter than their groups' offsets."""


def of_new_log(store: StoreSnapshot, units: int, findings: list[Finding]) -> list[Finding]:
    """Return ``findings``; if the log was started again, CF12 comes first and the findings that it explains follow from
    it.

    A log that begins at byte 0 never held more messages than it has ``units``. Where the groups have read more than
    twice as many, and no group stands inside its queue, their offsets are of another log. Raises :class:`CannotRead`.
    """
    if store.paths is None or store.log.min_offset != 0 or any(finding.id in _LOST_TAIL for finding in findings):
        return findings
    furthest: dict[tuple[str, int], int] = {}
    groups: set[str] = set()
    beyond: list[str] = []
    shorter: set[tuple[str, int]] = set()
    for row in tables.offsets(store):
        if is_system_group(row.group) or is_system_topic(row.topic):
            continue
        for queue_id, offset in sorted(row.offsets.items()):
            queue = store.queues.find(row.topic, queue_id)
            if offset <= 0 or (queue is not None and queue.kind != "simple"):
                continue
            if queue is not None and offset <= queue.max_offset:
                return findings
            key = (row.topic, queue_id)
            furthest[key] = max(furthest.get(key, 0), offset)
            groups.add(row.group)
            if queue is not None:
                shorter.add(key)
                place = f"{row.topic}/{queue_id}@{row.group}"
                beyond.append(sentence("{place}: {n:,} of {end:,}", place=place, n=offset, end=queue.max_offset))
    read = sum(furthest.values())
    if len(shorter) < MIN_SHORTER_QUEUES or read <= 2 * units:
        return findings
    text = sentence(
        "Groups have read more than this log ever held: it holds {n:,} messages from byte 0 on, they have read "
        "{read:,} ({groups:,} groups, {queues:,} queues): {rest}",
        n=units,
        read=read,
        groups=len(groups),
        queues=len(furthest),
        rest=join(", ", beyond[:3]),
    )
    text += " · " + sentence("the log was begun anew, or is an older copy, or the offsets are of another store")
    evidence = {
        "expected": sentence("at most {n}", n=units),
        "found": read,
        "groups": sorted(groups)[:MAX_LISTED],
        "queues": beyond[:MAX_LISTED],
    }
    evidence[HAPPENED] = sentence(
        "groups have read more messages than the log ever held: the log was begun anew or is an older copy, or the "
        "offsets in consumerOffset.json are of another store"
    )
    path = table_place(store, "consumerOffset.json")
    cause = catalogue_tables.CF12.finding(text, path, None, evidence)
    return [cause, *(finding.follows("CF12") if _follows_new_log(finding) else finding for finding in findings)]


def _follows_new_log(finding: Finding) -> bool:
    return finding.id in _EXPLAINED_BY_NEW_LOG and finding.caused_by is None


class OffsetBeyondEnd(NamedTuple):
    """A queue in which a group's offset is beyond the end."""

    topic: str
    queue_id: int
    offset: int
    end: int

    @property
    def words(self) -> str:
        place = f"{self.topic}/{self.queue_id}"
        return sentence("{place}: {n:,} of {end:,}", place=place, n=self.offset, end=self.end)


def offset_findings(
    store: StoreSnapshot, short_queues: Mapping[tuple[str, int], int], broken_spans: Iterable[Span] = ()
) -> Iterator[Finding]:
    """CF02 for each group. ``short_queues`` gives the number at which queues that lack units should end: up to there a
    group is right. Notes in ``broken_spans`` which groups stand there.
    """
    broken_spans = [span for span in broken_spans if span.queues]
    if store.paths is None:
        return
    shown = 0
    for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
        table = read_table(store, name)
        if table is None:
            continue
        path = str(store.paths.config / (table.file or name))
        groups: dict[str, list[OffsetBeyondEnd]] = {}
        for row in config_tables.consumer_offsets(table.value).rows:
            groups.setdefault(row.group, []).extend(offsets_beyond(store, row.topic, row.offsets))
            for span in broken_spans:
                for queue_id, offset in sorted(row.offsets.items()):
                    span.stand(row.group, f"{row.topic}/{queue_id}", offset)
        for group, beyond in groups.items():
            right = [
                beyond_end
                for beyond_end in beyond
                if beyond_end.offset <= short_queues.get((beyond_end.topic, beyond_end.queue_id), -1)
            ]
            for queues, cause in (
                (right, "CQ10"),
                ([beyond_end for beyond_end in beyond if beyond_end not in right], None),
            ):
                if queues and shown < MAX_LISTED:
                    shown += 1
                    yield _offset_finding(store, path, group, queues, cause)


def offsets_beyond(store: StoreSnapshot, topic: str, offsets: Mapping[int, int]) -> Iterator[OffsetBeyondEnd]:
    """Yield the offsets by queue id that are beyond the end of their queue. Raises :class:`CannotRead`."""
    for queue_id, offset in sorted(offsets.items()):
        queue = store.queues.find(topic, queue_id)
        if queue is None:
            continue
        # a table is written after its queue, so in a copy of a running store it may be ahead
        queue_end = max(queue.max_offset, queue.raw_end // queue.unit_size if queue.kind == "simple" else 0)
        if offset > queue_end:
            yield OffsetBeyondEnd(topic, queue_id, offset, queue_end)


def _offset_finding(
    store: StoreSnapshot, path: str, group: str, queues: list[OffsetBeyondEnd], cause: str | None
) -> Finding:
    queue = queues[0]
    text = sentence(
        "Group {group} will ask {queue} for offset {n:,}, but that queue ends at {end:,}",
        group=group,
        queue=f"{queue.topic}/{queue.queue_id}",
        n=queue.offset,
        end=queue.end,
    )
    if len(queues) > 1:
        text += "; " + plural(
            "{n:,} more queue of the group ends before its offset",
            "{n:,} more queues of the group end before its offset",
            n=len(queues) - 1,
        )
    evidence: dict[str, Any] = {
        "expected": queue.end,
        "found": queue.offset,
        "group": group,
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "queues": [beyond_end.words for beyond_end in queues[:MAX_LISTED]],
    }
    longest = store.log.end_offset // MIN_UNIT_BYTES
    kind = "impossible" if cause is None and all(beyond_end.offset > longest for beyond_end in queues) else ""
    if cause is None and not store.abort and group == TRANSACTION_GROUP and queue.topic == OP_TOPIC:
        kind = "answers"
        name = f"{queue.topic}/{queue.queue_id}"
        text = sentence(
            "The queue {queue} of transaction answers was deleted and began again: the transaction check is at "
            "{n:,}, the queue ends at {end:,}; the check does not see the answers in it, and their half messages are "
            "checked again",
            queue=name,
            n=queue.offset,
            end=queue.end,
        )
        evidence[HAPPENED] = sentence("the queue {queue} was deleted and began again", queue=name)
    light: Severity | None = "note" if store.abort and not kind else None
    return catalogue.CF02.finding(text, path, None, evidence, light, kind=kind, caused_by=cause)

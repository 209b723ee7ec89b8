"""The tables under ``config/`` of a store that is written: loaded, changed, saved with a ``.bak``
(docs/formats/config-tables.md).

What a table holds beyond what is changed here stays as it was read. A save first copies what was there to ``.bak`` and
puts the new text in place by a rename: a crash leaves either the old or the new table, and a broker reads both.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.callbacks import Clock
from engine.codec import config_tables as codec
from engine.codec.config_tables import BACKUP, SubscriptionGroup, TopicConfig, load_table
from engine.codec.json_dialect import RowTexts, render
from engine.errors import CannotRead, StoreError, UsageError
from engine.files.layout import MAX_NAME_BYTES, MAX_TOPIC_BYTES, StorePaths
from engine.mapped.disk import Disk, put_file
from engine.releases import NEWEST, Release, rules_of
from engine.sentences import sentence
from engine.system_names import DLQ_PREFIX, LMQ_PREFIX, RETRY_PREFIX

TOPICS = "topics.json"
GROUPS = "subscriptionGroup.json"
CONSUMER_OFFSETS = "consumerOffset.json"
LIGHT_OFFSETS = "lmqConsumerOffset.json"
LIGHT_TABLE = "lmqOffsetTable"
DELAY_OFFSETS = "delayOffset.json"
MAX_QUEUES = 65_536
_log = logging.getLogger(__name__)


class BadTable(StoreError):
    """Neither the table nor its ``.bak`` can be read: a broker does not start either."""


class ConfigTables:
    """Topics, subscription groups, consumer offsets and delay offsets of one store; safe to use from any thread.

    Changes live in memory until :meth:`save`; only tables that were changed are written. ``light`` says that consumer
    offsets are kept in ``lmqConsumerOffset.json`` (``enableLmq``).
    """

    def __init__(
        self, paths: StorePaths, disk: Disk, clock: Clock, *, release: Release = NEWEST, light: bool = False
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._release = release
        self._batch_folder = paths.batchconsumequeue
        self._light = light
        self._offsets_file = LIGHT_OFFSETS if light else CONSUMER_OFFSETS
        self._tables = {
            name: ConfigTable(paths.config / name, disk) for name in (TOPICS, GROUPS, self._offsets_file, DELAY_OFFSETS)
        }
        for name, rows in ((TOPICS, "topicConfigTable"), (GROUPS, "subscriptionGroupTable")):
            self._tables[name].rows = rows
        self._lock = threading.RLock()
        self._batch: frozenset[str] = frozenset()
        self._topics: dict[str, TopicConfig] | None = None
        self._groups: dict[str, SubscriptionGroup] | None = None
        """The groups as parsed from the table, None after a change. Callers get this object: it is never modified."""

    def load(self) -> None:
        """Read every table; raises :class:`BadTable` where a broker would not start."""
        with self._lock:
            for table in self._tables.values():
                table.load()
            self._topics = self._groups = None
            self._batch = frozenset(topic.name for topic in self.topics().values() if topic.batch)
            if not self.knows_topics():
                self._batch = frozenset(self._disk.folders(self._batch_folder))

    def is_batch_topic(self, topic: str) -> bool:
        """True if the topic's queues are batch queues (attribute ``queue.type`` = ``BatchCQ``). Without a topics
        table those are that have batch queues already.
        """
        return topic in self._batch

    def knows_topics(self) -> bool:
        """True if there is a topics table."""
        return bool(self._tables[TOPICS].value)

    def topics(self) -> Mapping[str, TopicConfig]:
        """Every declared topic by name, as it is now."""
        with self._lock:
            if self._topics is None:
                self._topics = {topic.name: topic for topic in codec.topics(self._tables[TOPICS].value).rows}
            return self._topics

    def groups(self) -> Mapping[str, SubscriptionGroup]:
        """Every declared consumer group by name, as it is now."""
        with self._lock:
            if self._groups is None:
                rows = codec.subscription_groups(self._tables[GROUPS].value).rows
                self._groups = {group.name: group for group in rows}
            return self._groups

    def group_row(self, name: str) -> dict[str | int, Any] | None:
        """A group as its table has it, with whatever this release does not know."""
        with self._lock:
            row = self._members(GROUPS, "subscriptionGroupTable").get(name)
            return dict(row) if isinstance(row, dict) else None

    def text(self, name: str) -> str:
        """A table (:data:`TOPICS` and the like) as it would be saved now; since 5.x with a ``dataVersion``, without
        which a slave of RocketMQ takes none of it.
        """
        with self._lock:
            table = self._ready(name)
            if rules_of(self._release).tables_of_5 and "dataVersion" not in table.value:
                none = {"counter": 0, "stateVersion": 0, "timestamp": self._clock()}
                table.value = {"dataVersion": none, **table.value}
            return table.text()

    def create_topic(
        self, name: str, queues: int = 8, *, perm: int = 6, attributes: Mapping[str, str] | None = None
    ) -> TopicConfig:
        """Declare a topic, or declare it again, with as many queues for reading as for writing; saved at once.
        ``attributes={"queue.type": "BatchCQ"}`` gives it batch queues.

        Raises :class:`UsageError` for a name that no broker takes or a number of queues outside 1 to 65,536.
        """
        _refuse_topic(name, queues)
        with self._lock:
            old = self.topics().get(name)
            new_attributes = dict(attributes) if attributes is not None else old.attributes if old else {}
            order, flag, kind = (
                (old.order, old.topic_sys_flag, old.topic_filter_type) if old else (False, 0, "SINGLE_TAG")
            )
            self.declare_topics([TopicConfig(name, queues, queues, perm, order, flag, kind, new_attributes)])
            return self.topics()[name]

    def declare_topics(self, topics: Iterable[TopicConfig], *, save: bool = True) -> None:
        """Declare topics, or declare them again, in one change of the table; saved at once, or by the next
        :meth:`save_declared`. Raises :class:`UsageError` as :meth:`create_topic` does; none is declared then.
        """
        new_topics = list(topics)
        for topic in new_topics:
            _refuse_topic(topic.name, max(topic.read_queue_nums, topic.write_queue_nums, 1))
        if not new_topics:
            return
        with self._lock:
            old_topics, changed = self.topics(), {}
            table_rows = self._members(TOPICS, "topicConfigTable")
            for topic in new_topics:
                row = dict(_as_object(table_rows.get(topic.name)))
                row.update(
                    {
                        "order": topic.order,
                        "perm": topic.perm,
                        "readQueueNums": topic.read_queue_nums,
                        "topicFilterType": topic.topic_filter_type,
                        "topicName": topic.name,
                        "topicSysFlag": topic.topic_sys_flag,
                        "writeQueueNums": topic.write_queue_nums,
                    }
                )
                if rules_of(self._release).tables_of_5:
                    row["attributes"] = dict(topic.attributes)
                table_rows[topic.name] = changed[topic.name] = dict(sorted(row.items()))
            self._changed(TOPICS)
            changed_topics = {topic.name: topic for topic in codec.topics({"topicConfigTable": changed}).rows}
            self._topics = {**old_topics, **changed_topics}
            self._batch = (self._batch - changed_topics.keys()) | {
                topic.name for topic in changed_topics.values() if topic.batch
            }
            if save:
                self._save(TOPICS)

    def delete_topics(self, names: Iterable[str]) -> int:
        """Remove topics and their consumer offsets from the tables; returns how many of them were declared. Raises
        ``OSError`` if the tables cannot be written now: the topics are removed all the same, and the next
        :meth:`save` writes that.
        """
        deleted_names = set(names)
        with self._lock:
            deleted = _drop_rows(self._members(TOPICS, "topicConfigTable"), deleted_names.__contains__)
            offsets = _drop_rows(
                self._members(self._offsets_file, "offsetTable"), lambda key: key.partition("@")[0] in deleted_names
            )
            self._batch -= deleted_names
            changed = [name for name, rows in ((TOPICS, deleted), (self._offsets_file, offsets)) if rows]
            for name in changed:
                self._changed(name)
            for name in changed:
                self._save(name)
        return deleted

    def create_group(
        self,
        name: str,
        *,
        retry_queues: int = 1,
        retry_max_times: int = 16,
        extra_members: Mapping[str, Any] | None = None,
        save: bool = True,
    ) -> SubscriptionGroup:
        """Declare a consumer group with a broker's defaults, or declare it again; saved at once, or by the next
        :meth:`save_declared`. A group may have an empty name, as in RocketMQ. ``extra_members`` are members of its row
        by Java's names, over the others.
        """
        if len(name) > 255:
            raise UsageError(sentence("group: expected at most 255 characters, found {n}", n=len(name)))
        with self._lock:
            old_groups = self.groups()
            table_rows = self._members(GROUPS, "subscriptionGroupTable")
            row: dict[str | int, Any] = {
                "brokerId": 0,
                "consumeBroadcastEnable": True,
                "consumeEnable": True,
                "consumeFromMinEnable": True,
                "groupName": name,
                "notifyConsumerIdsChangedEnable": True,
                "whichBrokerWhenConsumeSlowly": 1,
            }
            if rules_of(self._release).tables_of_5:
                row |= {
                    "attributes": {},
                    "consumeMessageOrderly": False,
                    "consumeTimeoutMinute": 15,
                    "groupSysFlag": 0,
                    "groupRetryPolicy": {"type": "CUSTOMIZED"},
                }
            row |= _as_object(table_rows.get(name))
            row |= {"retryMaxTimes": retry_max_times, "retryQueueNums": retry_queues}
            for member, value in (extra_members or {}).items():
                row[member] = value
            table_rows[name] = dict(sorted(row.items(), key=lambda item: str(item[0])))
            if rules_of(self._release).tables_of_5:
                self._tables[GROUPS].value.setdefault("forbiddenTable", {})
            self._changed(GROUPS)
            (group,) = codec.subscription_groups({"subscriptionGroupTable": {name: table_rows[name]}}).rows
            self._groups = {**old_groups, name: group}
            if save:
                self._save(GROUPS)
            return group

    def delete_group(self, name: str, *, offsets: bool = True) -> bool:
        """Remove a consumer group from the tables, with its ``offsets`` or without; False if it was not declared."""
        with self._lock:
            deleted = _drop_rows(self._members(GROUPS, "subscriptionGroupTable"), name.__eq__)
            if deleted:
                self._changed(GROUPS, save=True)
            for table in ("offsetTable", LIGHT_TABLE) if offsets else ():
                rows = _as_object(self._tables[self._offsets_file].value.get(table))
                if _drop_rows(rows, lambda key: key.split("@")[1:] == [name]):
                    self._changed(self._offsets_file, save=True)
        return bool(deleted)

    def topics_of(self, group: str) -> list[str]:
        """The topics that a group has offsets of, in the order of the table."""
        with self._lock:
            keys = [str(key) for key in self._members(self._offsets_file, "offsetTable")]
        return [key.partition("@")[0] for key in keys if key.split("@")[1:] == [group]]

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have offsets of a topic, in the order of the table."""
        with self._lock:
            keys = [str(key) for key in self._members(self._offsets_file, "offsetTable")]
        return [pieces[1] for key in keys if len(pieces := key.split("@")) == 2 and pieces[0] == topic]

    def groups_with_offsets(self) -> list[str]:
        """Groups that have an offset in any topic."""
        with self._lock:
            return list(codec.topics_by_group(self._members(self._offsets_file, "offsetTable")))

    def consumer_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The queue offset that ``group`` reads next; −1 if none is known."""
        with self._lock:
            if self._is_light(group):
                offset = self._members(self._offsets_file, LIGHT_TABLE).get(f"{topic}@{group}", -1)
                return offset if isinstance(offset, int) else -1
            row = _as_object(self._members(self._offsets_file, "offsetTable").get(f"{topic}@{group}"))
            return int(row.get(queue_id, row.get(str(queue_id), -1)))

    def commit_consumer_offset(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Set the offset that ``group`` reads next to ``queue_offset``; written by the next :meth:`save`."""
        if "@" in topic or "@" in group:
            raise UsageError(sentence("expected a topic and a group without '@'"))
        with self._lock:
            if self._is_light(group):
                self._members(self._offsets_file, LIGHT_TABLE)[f"{topic}@{group}"] = queue_offset
                self._changed(self._offsets_file)
                return
            offsets = self._members(self._offsets_file, "offsetTable")
            row = dict(_as_object(offsets.get(f"{topic}@{group}")))
            row.pop(str(queue_id), None)
            row[queue_id] = queue_offset
            offsets[f"{topic}@{group}"] = row
            self._changed(self._offsets_file)

    def _is_light(self, group: str) -> bool:
        """True for a light group, where the release keeps those: it has one offset of each topic, and no row of its
        own.
        """
        return self._light and group.startswith(LMQ_PREFIX)

    def delay_offset(self, level: int) -> int:
        """The queue offset of the delay level (1 …) that is delivered next; 0 if none is known."""
        with self._lock:
            row = self._members(DELAY_OFFSETS, "offsetTable")
            return int(row.get(level, row.get(str(level), 0)))

    def set_delay_offset(self, level: int, queue_offset: int) -> None:
        """Let delivery of the delay level go on at ``queue_offset``; written by the next :meth:`save`."""
        with self._lock:
            row = self._members(DELAY_OFFSETS, "offsetTable")
            row.pop(str(level), None)
            row[level] = queue_offset
            self._changed(DELAY_OFFSETS)

    def complete(self) -> None:
        """Make the next :meth:`save` write empty tables too: a broker's end leaves all of them, and one that is
        missing counts as lost.
        """
        with self._lock:
            for name, key in (
                (TOPICS, "topicConfigTable"),
                (GROUPS, "subscriptionGroupTable"),
                (self._offsets_file, "offsetTable"),
                (DELAY_OFFSETS, "offsetTable"),
            ):
                if not self._tables[name].stands:
                    self._members(name, key)
                    self._changed(name)
            if self._light and LIGHT_TABLE not in self._tables[LIGHT_OFFSETS].value:
                self._members(LIGHT_OFFSETS, LIGHT_TABLE)
                self._changed(LIGHT_OFFSETS)

    def save(self) -> int:
        """Write every table that was changed since it was written; returns how many. Raises ``OSError``; a table
        that was not written stays to be written. Readers and writers of a table never wait for the disk.
        """
        return sum(self._save(name) for name, table in self._tables.items() if table.changed)

    def save_declared(self) -> None:
        """:meth:`save` for topics and groups alone."""
        for name in (TOPICS, GROUPS):
            if self._tables[name].changed:
                self._save(name)

    @property
    def offsets_file(self) -> str:
        """The table that consumer offsets are kept in."""
        return self._offsets_file

    def _members(self, name: str, key: str) -> dict[str | int, Any]:
        value = self._tables[name].value
        members = value.get(key)
        if not isinstance(members, dict):
            members = value[key] = {}
        return members

    def _changed(self, name: str, *, save: bool = False) -> None:
        table = self._tables[name]
        table.changed = True
        if name == TOPICS:
            self._topics = None
        elif name == GROUPS:
            self._groups = None
        if rules_of(self._release).tables_of_5 or name in {TOPICS, GROUPS}:
            version = _as_object(table.value.get("dataVersion"))
            states = {"stateVersion": version.get("stateVersion", 0)} if rules_of(self._release).tables_of_5 else {}
            counter = int(version.get("counter", 0)) + 1
            table.value["dataVersion"] = {"counter": counter, **states, "timestamp": self._clock()}
        if save:
            self._save(name)

    def _ready(self, name: str) -> ConfigTable:
        """A table with what is derived, in the order in which it is written."""
        table = self._tables[name]
        if name == self._offsets_file and rules_of(self._release).tables_of_5:
            table.value["groupTopicMap"] = codec.topics_by_group(_as_object(table.value.get("offsetTable")))
        table.value = dict(sorted(table.value.items(), key=lambda item: str(item[0])))
        return table

    def _save(self, name: str) -> bool:
        with self._lock:
            text = self._ready(name).taken()
        self._tables[name].write(*text)
        return True


class ConfigTable:
    """The file of one table: ``value`` as it was read or changed since, ``changed`` until it is written."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.value: dict[str | int, Any] = {}
        self.changed = False
        self.rows = ""
        """The member that holds the rows, where no row is changed in its place: then unchanged ones are not spelled
        again.
        """
        self._texts = RowTexts()
        self._disk = disk
        self._main_is_readable = False  # a broker can read the file: it may become the .bak
        self._writing = threading.Lock()
        self._taken = self._written = 0

    def load(self) -> None:
        """Load the file, else its ``.bak``; raises :class:`BadTable` where both are bad, :class:`CannotRead` where
        one that counts cannot be read.
        """
        loaded = load_table(self.path.name, self._read)
        if not loaded.will_load:
            raise BadTable(loaded.why, file=str(self.path))
        if loaded.used == "bak":
            _log.warning("%s: %s", self.path, loaded.why)
        self.value = loaded.value
        self._main_is_readable = loaded.used == "main"
        self.changed = False

    def _read(self, name: str) -> bytes | None:
        path = self.path.with_name(name)
        try:
            return self._disk.read_file(path)
        except IsADirectoryError:
            raise  # there is no table of this name; the loader reports it
        except OSError as error:  # not a missing table: a broker with other rights may have it
            raise CannotRead(sentence("cannot be read: {error}", error=error.strerror), file=str(path)) from error

    @property
    def stands(self) -> bool:
        """True if the file holds a table: it was read from there, or has been written."""
        return self._main_is_readable or self._written > 0

    def taken(self) -> tuple[int, bytes]:
        """The text as it is now, and its number: nothing is changed that it does not have."""
        self._taken += 1
        self.changed = False
        return self._taken, self.text().encode("utf-8", "replace")

    def text(self) -> str:
        """The table as it is now."""
        return self._texts.render(self.value, self.rows) if self.rows else render(self.value)

    def write(self, number: int, text: bytes) -> None:
        """Copy the sound file to ``.bak``, then put ``text`` in its place, unless a later one is there already; raises
        ``OSError``.
        """
        with self._writing:
            if number < self._written:
                return
            try:
                old = self._disk.read_file(self.path) if self._main_is_readable else None
                if old:
                    put_file(self._disk, self.path.with_name(self.path.name + BACKUP), old)
                put_file(self._disk, self.path, text)
            except BaseException:
                self.changed = True
                raise
            self._main_is_readable, self._written = True, number


def _as_object(value: Any) -> dict[str | int, Any]:
    return value if isinstance(value, dict) else {}


def _drop_rows(members: dict[str | int, Any], is_deleted: Callable[[str], bool]) -> int:
    names = [key for key in members if is_deleted(str(key))]
    for name in names:
        del members[name]
    return len(names)


def _refuse_topic(name: str, queues: int) -> None:
    length = len(name.encode("utf-8", "replace"))
    longest = MAX_NAME_BYTES if name.startswith((RETRY_PREFIX, DLQ_PREFIX)) else MAX_TOPIC_BYTES
    if not 1 <= length <= longest or name in {".", ".."} or any(sign in name for sign in "/\0@"):
        raise UsageError(
            sentence(
                "topic: expected 1 to {longest} bytes without '/' and '@', found {name} ({length} bytes)",
                longest=longest,
                name=repr(name[:80]),
                length=length,
            )
        )
    if not 1 <= queues <= MAX_QUEUES:
        raise UsageError(
            sentence("queues: expected 1 to {most_queues:,}, found {queues:,}", most_queues=MAX_QUEUES, queues=queues)
        )

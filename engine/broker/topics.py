"""Topics and groups that a broker declares by itself: at its start, by a first send, by a first heartbeat
(docs/protocol/behaviour.md#topics, #groups).

Java: ``TopicConfigManager``, ``SubscriptionGroupManager``, ``TopicValidator``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache, partial

from engine.broker.config import BrokerConfig
from engine.codec.config_tables import SubscriptionGroup, TopicConfig
from engine.codec.pop import revive_topic
from engine.files.layout import MAX_GROUP_BYTES, MAX_TOPIC_BYTES
from engine.releases import NEWEST, Release, rules_of
from engine.store.config_tables import ConfigTables
from engine.system_names import (
    BENCHMARK_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    LMQ_PREFIX,
    NOT_SENT_TO,
    OFFSET_MOVED_TOPIC,
    OP_TOPIC,
    RETRY_PREFIX,
    ROCKSDB_HALF_TOPIC,
    ROCKSDB_OP_TOPIC,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYNC_MEMBER_PREFIX,
    TEMPLATE_TOPIC,
    TIMER_TOPIC,
    TRANSACTION_GROUP,
    is_system_topic,
)

READ, WRITE, INHERIT = 4, 2, 1
"""Bits of a topic's ``perm``."""
OWN_GROUPS = (
    TRANSACTION_GROUP,
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)
"""Groups that every broker declares; the first one since 5.x."""
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")


def wrong_name(topic: str, release: Release) -> str | None:
    """Return why no topic can have this name, in RocketMQ's words (Java: ``TopicValidator.validateTopic``). Each send
    asks: valid names are remembered.
    """
    return (_wrong_name if len(topic) <= MAX_GROUP_BYTES else _wrong_name.__wrapped__)(topic, release)


@lru_cache(maxsize=4096)
def _wrong_name(topic: str, release: Release) -> str | None:
    rules = rules_of(release)
    quoted = f": {topic}," if rules.quotes_wrong_topics else ""
    if not topic.strip():
        return "The specified topic is blank."
    if not _NAME.fullmatch(topic):
        return f"The specified topic{quoted} contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if rules.longest_retry_topic > MAX_TOPIC_BYTES and topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        if len(topic) > rules.longest_retry_topic:
            return (
                f"The specified topic is DLQ or Retry topic: {topic}, and it's longer than topic max length: "
                f"{rules.longest_retry_topic}"
            )
        return None
    if len(topic) > MAX_TOPIC_BYTES:  # also if a broker declared it for a group: nobody can send to it
        end = f": {MAX_TOPIC_BYTES}" if quoted else "."
        return f"The specified topic{quoted} is longer than topic max length{end}"
    return None


def wrong_group_name(group: str, longest: int) -> str | None:
    """Return why no group can have this name, in RocketMQ's words (Java: ``TopicValidator.validateGroup``)."""
    if not group.strip():
        return "The specified group is blank."
    if not _NAME.fullmatch(group):
        return f"The specified group: {group}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(group) > longest:
        return f"The specified group: {group}, is longer than group max length: {longest}"
    return None


class Topics:
    """The declared topics and groups, and how further ones are declared. ``changed`` is called with new and changed
    topics, for the name servers. ``soon`` calls a function at the end of this turn of the loop, so that all that
    sends and heartbeats of a turn declare is saved at once. Without it each is saved by itself.
    """

    def __init__(
        self,
        tables: ConfigTables,
        config: Callable[[], BrokerConfig],
        release: Release = NEWEST,
        *,
        light: bool = False,
    ) -> None:
        self._tables = tables
        self._light = light
        self._pops = rules_of(release).pop
        self._has_rocksdb_transactions = rules_of(release).has_rocksdb_transactions
        self._longest_group = rules_of(release).longest_group_letters
        self._nameless_groups = rules_of(release).nameless_groups
        """C++ clients send a group without a name."""
        self._config = config
        self.changed: Callable[[list[TopicConfig]], None] = lambda _: None
        self.soon: Callable[[Callable[[], None]], object] | None = None
        self._unsaved = False

    def get(self, name: str) -> TopicConfig | None:
        """Return a declared topic; a light queue is a topic of one queue, and needs no declaration."""
        if self._light and name.startswith(LMQ_PREFIX):
            return plain_topic(name, 1)
        return self._tables.topics().get(name)

    def group(self, name: str) -> SubscriptionGroup | None:
        """Return a declared group; declare it now if ``autoCreateSubscriptionGroup`` allows it."""
        if self._light and name.startswith(LMQ_PREFIX):
            return SubscriptionGroup(name, True, True, True, False, 1, 16, {})
        group = self._tables.groups().get(name)
        if group is None and self._config().auto_create_group:
            if wrong_group_name(name, self._longest_group) is not None and not (name == "" and self._nameless_groups):
                return None
            self._tables.create_group(name, save=False)
            self._save_soon()
            return self._tables.groups().get(name)
        return group

    def is_group(self, name: str) -> bool:
        """Return True if a group is declared, or belongs to a light queue; a blank name is no group, as in RocketMQ."""
        return (self._light and name.startswith(LMQ_PREFIX)) or (name.strip() != "" and name in self._tables.groups())

    def declare(self, *topics: TopicConfig) -> None:
        """Declare topics again, and call ``changed``. Light queues are left out."""
        if self._light:
            topics = tuple(topic for topic in topics if not topic.name.startswith(LMQ_PREFIX))
        self._tables.declare_topics(topics, save=False)
        self.changed(list(topics))
        self._save_soon()

    def _create(self, topic: TopicConfig) -> None:
        self._tables.declare_topics([topic], save=False)
        self.changed([topic])
        self._save_soon()

    def _save_soon(self) -> None:
        was_unsaved, self._unsaved = self._unsaved, True
        if self.soon is None:
            self.save_created()
        elif not was_unsaved:
            self.soon(self.save_created)

    def save_created(self) -> None:
        """Save what sends and heartbeats have declared since the last time; called before a send is answered."""
        if self._unsaved:
            self._unsaved = False
            _kept_soon(self._tables.save_declared)

    def own_names(self) -> set[str]:
        """The names of the broker's own topics (Java: ``TopicValidator``)."""
        config = self._config()
        since_5: set[str] = set()
        if self._pops:
            since_5 = {
                revive_topic(config.cluster),
                TIMER_TOPIC,
                SYNC_MEMBER_PREFIX + config.broker_name,
                "CHECKPOINT_TOPIC",
            }
        return since_5 | {
            *NOT_SENT_TO,
            TEMPLATE_TOPIC,
            BENCHMARK_TOPIC,
            config.trace_topic,
            config.cluster,
            config.broker_name,
            f"{config.cluster}_REPLY_TOPIC",
        }

    def create_at_start(self) -> None:
        """Declare the broker's own topics and groups that are not declared yet."""
        config, declared = self._config(), self._tables.topics()
        own_topics = {
            SELF_TEST_TOPIC: (1, READ | WRITE),
            BENCHMARK_TOPIC: (1024, READ | WRITE),
            config.cluster: (16, (READ | WRITE if config.cluster_topic else 0) | INHERIT),
            config.broker_name: (1, (READ | WRITE if config.broker_topic else 0) | INHERIT),
            OFFSET_MOVED_TOPIC: (1, READ | WRITE),
            SCHEDULE_TOPIC: (18, READ | WRITE),
            f"{config.cluster}_REPLY_TOPIC": (1, READ | WRITE),
            HALF_TOPIC: (1, READ | WRITE),
        }
        if config.auto_create_topic:
            own_topics[TEMPLATE_TOPIC] = (config.default_topic_queues, READ | WRITE | INHERIT)
        if self._pops:
            own_topics[revive_topic(config.cluster)] = (config.revive_queues, READ | WRITE)
            own_topics |= {
                TIMER_TOPIC: (1, READ | WRITE),
                OP_TOPIC: (1, READ | WRITE),
                SYNC_MEMBER_PREFIX + config.broker_name: (1, INHERIT),
            }
        if self._has_rocksdb_transactions:
            own_topics |= {ROCKSDB_HALF_TOPIC: (1, READ | WRITE), ROCKSDB_OP_TOPIC: (1, READ | WRITE)}
        if config.trace_topic_enable:
            own_topics[config.trace_topic] = (1, READ | WRITE)
        new = [plain_topic(name, queues, perm) for name, (queues, perm) in own_topics.items() if name not in declared]
        _kept_soon(lambda: self._tables.declare_topics(new))
        groups = OWN_GROUPS if self._pops else OWN_GROUPS[1:]
        for name in (group for group in groups if group not in self._tables.groups()):
            _kept_soon(partial(self._tables.create_group, name))

    def is_own(self, name: str) -> bool:
        """Return True if the topic is the broker's own: no administrator declares or deletes it."""
        return is_system_topic(name) or name in self.own_names()

    def create_by_send(self, name: str, template: str, queues: int, sys_flag: int = 0) -> TopicConfig | None:
        """Create the topic of a send to an unknown topic after ``template``; return None if the template allows
        none.
        """
        default = self.get(template)
        if default is None or not default.perm & INHERIT or (template == TEMPLATE_TOPIC and not self._may_create):
            return None
        count = max(0, min(queues, default.write_queue_nums))
        topic = TopicConfig(name, count, count, default.perm & ~INHERIT, False, sys_flag, default.topic_filter_type, {})
        self._create(topic)
        return topic

    @property
    def _may_create(self) -> bool:
        return self._config().auto_create_topic

    def create_plain(self, name: str, queues: int, perm: int = READ | WRITE, sys_flag: int = 0) -> TopicConfig:
        """Return a declared topic, or declare it now: for retry topics and dead letters."""
        topic = self.get(name)
        if topic is None:
            topic = plain_topic(name, queues, perm, sys_flag)
            self._create(topic)
        return topic


def _kept_soon(change: Callable[[], object]) -> None:
    """Change a table. A change that cannot be written now still counts, as in RocketMQ, and a later try saves it."""
    try:
        change()
    except OSError as error:
        _log.warning("a table is changed and not saved yet: %s", error)


def plain_topic(name: str, queues: int, perm: int = READ | WRITE, sys_flag: int = 0) -> TopicConfig:
    """A topic without anything special."""
    return TopicConfig(name, queues, queues, perm, False, sys_flag, "SINGLE_TAG", {})

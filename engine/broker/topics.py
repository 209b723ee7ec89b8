"""Topics and groups as a broker makes them: at its start, by a first send, by a first heartbeat
(docs/protocol/behaviour.md#topics, #groups).

Java: ``TopicConfigManager``, ``SubscriptionGroupManager``, ``TopicValidator``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache, partial

from engine.broker.config import BrokerConfig
from engine.codec.config_tables import LMQ_PREFIX, SubscriptionGroup, TopicConfig
from engine.codec.pop import revive_topic
from engine.layout import LONGEST_GROUP, LONGEST_TOPIC
from engine.releases import NEWEST, Release, of
from engine.rules.system_names import TIMER_TOPIC, is_system_topic
from engine.store.config_tables import ConfigTables

READ, WRITE, INHERIT = 4, 2, 1
"""Bits of a topic's ``perm``."""
TEMPLATE = "TBW102"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TOO_OFTEN_CHECKED = "TRANS_CHECK_MAX_TIME_TOPIC"
RETRY, DEAD_LETTERS = "%RETRY%", "%DLQ%"
REFUSES_SENDS = frozenset({SCHEDULE, HALF, OP_HALF, TOO_OFTEN_CHECKED, "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT"})
"""Topics of the broker's own that no client sends to."""
MEMBERS = "rmq_sys_SYNC_BROKER_MEMBER_"
"""What the topic by which brokers of one name tell each other of themselves begins with (5.x)."""
OWN_GROUPS = (
    "CID_RMQ_SYS_TRANS",
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)
"""Groups that are there from the start; the first since 5.x."""
_log = logging.getLogger(__name__)
_NAME = re.compile(r"[%|a-zA-Z0-9_-]+")


def wrong_name(topic: str) -> str | None:
    """Why no topic is called so, in RocketMQ's words. Each send asks: names that may be right are remembered."""
    return (_wrong_name if len(topic) <= LONGEST_GROUP else _wrong_name.__wrapped__)(topic)


@lru_cache(maxsize=4096)
def _wrong_name(topic: str) -> str | None:
    if not topic.strip():
        return "The specified topic is blank."
    if not _NAME.fullmatch(topic):
        return "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(topic) > LONGEST_TOPIC:  # also where a broker has made it for a group: nobody can send there
        return "The specified topic is longer than topic max length."
    return None


def wrong_group_name(group: str, longest: int) -> str | None:
    """Why no group is called so, in RocketMQ's words (Java: ``TopicValidator.validateGroup``)."""
    if not group.strip():
        return "The specified group is blank."
    if not _NAME.fullmatch(group):
        return f"The specified group: {group}, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    if len(group) > longest:
        return f"The specified group: {group}, is longer than group max length: {longest}"
    return None


class Topics:
    """The declared topics and groups, and how further ones come to be. ``changed`` is told of topics that are new or
    other than before: the name servers are to know. ``soon`` calls what it is given at the end of this turn of the
    loop: all that sends and heartbeats of a turn declare is saved at once then. Without it each is saved for itself.
    """

    def __init__(
        self,
        tables: ConfigTables,
        config: Callable[[], BrokerConfig],
        like: Release = NEWEST,
        *,
        light: bool = False,
    ) -> None:
        self._tables = tables
        self._light = light
        self._pops = of(like).pop
        self._longest_group = of(like).longest_group_letters
        self._nameless_groups = of(like).nameless_groups
        """C++ clients tell of a group without a name."""
        self._config = config
        self.changed: Callable[[list[TopicConfig]], None] = lambda _: None
        self.soon: Callable[[Callable[[], None]], object] | None = None
        self._unsaved = False

    def get(self, name: str) -> TopicConfig | None:
        """A topic as it is declared; a light queue is a topic of one queue, and needs no declaration."""
        if self._light and name.startswith(LMQ_PREFIX):
            return plain_topic(name, 1)
        return self._tables.topics().get(name)

    def group(self, name: str) -> SubscriptionGroup | None:
        """A group as it is declared; declared now where it is not and ``autoCreateSubscriptionGroup`` allows it."""
        if self._light and name.startswith(LMQ_PREFIX):
            return SubscriptionGroup(name, True, True, True, False, 1, 16, {})
        found = self._tables.groups().get(name)
        if found is None and self._config().auto_create_group:
            if wrong_group_name(name, self._longest_group) is not None and not (name == "" and self._nameless_groups):
                return None
            self._tables.create_group(name, save=False)
            self._save_soon()
            return self._tables.groups().get(name)
        return found

    def is_group(self, name: str) -> bool:
        """Whether a group is declared, or a light queue's; one whose name is blank is not, as in RocketMQ."""
        return (self._light and name.startswith(LMQ_PREFIX)) or (name.strip() != "" and name in self._tables.groups())

    def declare(self, *topics: TopicConfig) -> None:
        """Declare topics anew, and tell. Light queues are left out."""
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
        before, self._unsaved = self._unsaved, True
        if self.soon is None:
            self.save_created()
        elif not before:
            self.soon(self.save_created)

    def save_created(self) -> None:
        """Save what sends and heartbeats declared since; whoever answers a send does it before."""
        if self._unsaved:
            self._unsaved = False
            _kept_soon(self._tables.save_declared)

    def own_names(self) -> set[str]:
        """The names of the broker's own topics (Java: ``TopicValidator``)."""
        config = self._config()
        since_5: set[str] = set()
        if self._pops:
            since_5 = {revive_topic(config.cluster), TIMER_TOPIC, MEMBERS + config.broker_name, "CHECKPOINT_TOPIC"}
        return since_5 | {
            *REFUSES_SENDS,
            TEMPLATE,
            "BenchmarkTest",
            config.trace_topic,
            config.cluster,
            config.broker_name,
            f"{config.cluster}_REPLY_TOPIC",
        }

    def create_at_start(self) -> None:
        """The broker's own topics, where they are not declared yet."""
        config, known = self._config(), self._tables.topics()
        wanted = {
            "SELF_TEST_TOPIC": (1, READ | WRITE),
            "BenchmarkTest": (1024, READ | WRITE),
            config.cluster: (16, (READ | WRITE if config.cluster_topic else 0) | INHERIT),
            config.broker_name: (1, (READ | WRITE if config.broker_topic else 0) | INHERIT),
            "OFFSET_MOVED_EVENT": (1, READ | WRITE),
            SCHEDULE: (18, READ | WRITE),
            f"{config.cluster}_REPLY_TOPIC": (1, READ | WRITE),
            HALF: (1, READ | WRITE),
        }
        if config.auto_create_topic:
            wanted[TEMPLATE] = (config.default_topic_queues, READ | WRITE | INHERIT)
        if self._pops:
            wanted[revive_topic(config.cluster)] = (config.revive_queues, READ | WRITE)
            wanted |= {
                TIMER_TOPIC: (1, READ | WRITE),
                OP_HALF: (1, READ | WRITE),
                MEMBERS + config.broker_name: (1, INHERIT),
            }
        if config.trace_topic_enable:
            wanted[config.trace_topic] = (1, READ | WRITE)
        new = [plain_topic(name, queues, perm) for name, (queues, perm) in wanted.items() if name not in known]
        _kept_soon(lambda: self._tables.declare_topics(new))
        groups = OWN_GROUPS if self._pops else OWN_GROUPS[1:]
        for name in (one for one in groups if one not in self._tables.groups()):
            _kept_soon(partial(self._tables.create_group, name))

    def is_own(self, name: str) -> bool:
        """Whether no administrator declares or deletes a topic of that name: it is the broker's own."""
        return is_system_topic(name) or name in self.own_names()

    def create_by_send(self, name: str, template: str, queues: int, sys_flag: int = 0) -> TopicConfig | None:
        """The topic that a send to an unknown one makes out of ``template``; None where that gives nothing away."""
        default = self.get(template)
        if default is None or not default.perm & INHERIT or (template == TEMPLATE and not self._may_create):
            return None
        count = max(0, min(queues, default.write_queue_nums))
        made = TopicConfig(name, count, count, default.perm & ~INHERIT, False, sys_flag, default.topic_filter_type, {})
        self._create(made)
        return made

    @property
    def _may_create(self) -> bool:
        return self._config().auto_create_topic

    def create_plain(self, name: str, queues: int, perm: int = READ | WRITE, sys_flag: int = 0) -> TopicConfig:
        """The topic as it is declared, or declared now: retry topics and dead letters."""
        found = self.get(name)
        if found is None:
            found = plain_topic(name, queues, perm, sys_flag)
            self._create(found)
        return found


def _kept_soon(change: Callable[[], object]) -> None:
    """Change a table. What a disk does not take now holds all the same, as in RocketMQ, and is saved by a later try."""
    try:
        change()
    except OSError as error:
        _log.warning("a table is changed and not saved yet: %s", error)


def plain_topic(name: str, queues: int, perm: int = READ | WRITE, sys_flag: int = 0) -> TopicConfig:
    """A topic without anything special."""
    return TopicConfig(name, queues, queues, perm, False, sys_flag, "SINGLE_TAG", {})

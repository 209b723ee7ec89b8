"""State of a broker: its store, and the tables that outlive a request. Passive; processors and services change it.

Java: the fields of ``BrokerController``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from engine.broker.access import Access
from engine.broker.clients import Clients, ConsumerGroup
from engine.broker.config import BrokerConfig
from engine.broker.consumer_offsets import Resets
from engine.broker.filters import FILE as FILTERS
from engine.broker.filters import ConsumerFilters
from engine.broker.lite_topics import LiteTopics
from engine.broker.pop_checkpoints import PopState
from engine.broker.pop_holds import PopHolds
from engine.broker.pop_orders import FILE as ORDERS
from engine.broker.pop_orders import PopOrders
from engine.broker.pull_message import HeldPulls
from engine.broker.queue_locks import QueueLocks
from engine.broker.send_message import PendingSends
from engine.broker.slave_waits import SlaveWaits
from engine.broker.static_topics import AskBroker, StaticTopics
from engine.broker.stats import HALF_COUNTS, BrokerStats, Rates
from engine.broker.topics import READ, Topics
from engine.broker.transactions import OpMessages
from engine.callbacks import Clock, system_clock
from engine.codec.queue_mappings import MAPPINGS_FILE
from engine.message_store import MessageStore
from engine.remoting.codes import RequestCode
from engine.remoting.connection import Connection
from engine.remoting.frame import ONE_WAY, Command
from engine.store.config_tables import ConfigTable
from engine.store.timers.messages import TimerMessages


async def _ask_nobody(name: str, _request: Command) -> Command:
    raise ConnectionError(f"cannot find addr for broker {name}")


async def _no_leaders(_topic: str) -> dict[int, str]:
    return {}


def timers_of(store: MessageStore, now: Clock) -> TimerMessages | None:
    """Return the service of timer messages, if the release and the configuration have one."""
    if not store.rules.timers or not store.config.timer_wheel_enable:
        return None
    return TimerMessages(store.parts, store.put_message, now)


Header = Mapping[str, Any]
"""A request's header fields with their types; None for what is absent."""
Processor = Callable[["Broker", Command, Header, Connection], Command | None]
"""Answers a request; None if the answer comes later, or never (docs/protocol/broker.md#transactions)."""
REQUEST_MODES = "messageRequestMode.json"


class Follower(Protocol):
    """A slave: its address, the log offset up to which data was sent, and the offset that it acknowledged."""

    peer: str
    sent: int
    acknowledged: int


class Broker:
    """A broker over one open store. All of it runs in one event loop; ``now`` returns ms since the epoch."""

    def __init__(self, store: MessageStore, config: BrokerConfig | None = None, now: Clock = system_clock) -> None:
        self.store = store
        self.config = config or BrokerConfig()
        if not self.config.transaction_metric_flush_ms:
            default_flush_ms = store.rules.transaction_metric_flush_ms
            self.config = replace(self.config, transaction_metric_flush_ms=default_flush_ms)
        self.now = now
        self.topics = Topics(store.tables, lambda: self.config, store.release, light=store.config.enable_lmq)
        self.clients = Clients()
        self.held = HeldPulls()
        self.sends = PendingSends()
        self.slaves = SlaveWaits(store.config, store.release, lambda: store.parts.files.wrote_offset)
        self.ops = OpMessages()
        self.resets = Resets()
        clock = lambda: self.now()  # noqa: E731, PLW0108  a clock that is set later holds too
        self.locks = QueueLocks(clock)
        self.timers = timers_of(store, clock)
        self.timers_wait = False
        """More timer messages wait than one step takes."""
        self.pops = PopHolds(clock, lambda: (self.config.pop_holds, self.config.pop_holds_at))
        self.notices = PopHolds(clock, lambda: (self.config.pop_holds, self.config.pop_holds_at))
        self.popped = PopState()
        self.orders = PopOrders(ConfigTable(store.parts.paths.config / ORDERS, store.parts.disk), clock)
        self.lite = LiteTopics(PopOrders(ConfigTable(store.parts.paths.config / ORDERS, store.parts.disk), clock))
        """Subscriptions to lite topics. What is popped of them is in memory only: its table is never saved."""
        self.request_modes = ConfigTable(store.parts.paths.config / REQUEST_MODES, store.parts.disk)
        """Which groups pop, by topic."""
        mappings_table = ConfigTable(store.parts.paths.config / MAPPINGS_FILE, store.parts.disk)
        self.static_topics = StaticTopics(mappings_table, clock)
        self.filters = ConsumerFilters(ConfigTable(store.parts.paths.config / FILTERS, store.parts.disk), clock)
        self.filters.load()
        if store.rules.major >= 5:
            self.orders.load()
            self.request_modes.load()
            self.static_topics.load()
        self.cold_thresholds: dict[str, int] = {}
        """Bytes a second that groups may read from pages that are not in memory (2001)."""
        self.access: Access | None = None
        """Access control; None: every request is allowed."""
        self.stats = BrokerStats()
        self.rates = Rates(
            self.stats,
            store.counters,
            clock,
            self.config.cluster,
            store.put_times,
            lambda: {slave.peer: slave.sent for slave in self.followers()},
        )
        self.half_file = store.parts.paths.config / HALF_COUNTS
        if store.rules.major >= 5:
            self.stats.half.load(store.parts.disk, self.half_file)
        self.pulled: dict[tuple[str, str, int], int] = {}
        """Offset up to which groups got messages, by group, topic and queue; behind their committed offset these are
        in flight.
        """
        self.started = now()
        self.address = ""
        """``ip:port`` as routes name it, once it accepts."""
        self.ha_address = ""
        """``ip:port`` where slaves follow the log; empty: nowhere."""
        self.followers: Callable[[], Sequence[Follower]] = tuple
        """Returns the slaves that follow the log now."""
        self.master_address = ""
        """``ip:port`` of a slave's master, and of its HA port, as name servers report them; empty while none did."""
        self.master_ha_address = ""
        self.dispatched: Callable[[], None] = lambda: None
        """Called behind a put: held pulls may have their messages now."""
        self.route_of: Callable[[str], Awaitable[dict[str, int] | None]] = self._own_route
        """Returns the brokers of a topic with their number of readable queues; None if it is unknown."""
        self.ask_broker: AskBroker = _ask_nobody
        """Sends a request to the master of a broker name, and returns its answer."""
        self.leaders_of: Callable[[str], Awaitable[dict[int, str]]] = _no_leaders
        """Returns the broker that leads each logical queue of a static topic, as a name server knows them."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Tasks of answers that come later."""
        self._connect_tables()

    def _connect_tables(self) -> None:
        """Set what the tables call among themselves; :class:`engine.broker.server.ListeningBroker` connects the rest.

        ::

            a group loses its last member ─────► filters.unregister: its SQL filters end after a while
            a unit is dispatched ──────────────► filters.bit_map: which SQL groups want it, for its ext unit
            a timer message comes or goes ─────► stats: it is counted
        """
        self.clients.emptied = self.filters.unregister
        if self.config.calc_bit_map and self.store.config.enable_consume_queue_ext:
            self.store.parts.dispatcher.bit_map = self.filters.bit_map
        if self.timers is not None:
            self.timers.on_enqueued, self.timers.on_dequeued = self.stats.count_timer_in, self.stats.count_timer_out
            self.timers.on_put = self.stats.count_own_put

    @property
    def is_slave(self) -> bool:
        """True if the store follows a master: the broker takes no message, and delivers nothing by itself."""
        return self.store.config.broker_role == "SLAVE"

    def tell_members(self, group: ConsumerGroup) -> None:
        """Send NOTIFY_CONSUMER_IDS_CHANGED to every member: the group's members or subscriptions changed
        (docs/protocol/broker.md#calls-to-consumers).
        """
        if not self.config.notify_consumers or group.model == "BROADCASTING":
            return
        for connection in list(group.members):
            notice = Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group.name}, flag=ONE_WAY)
            connection.send(notice)

    async def _own_route(self, topic: str) -> dict[str, int] | None:
        topic_config = self.topics.get(topic)
        return (
            {self.config.broker_name: topic_config.read_queue_nums}
            if topic_config is not None and topic_config.perm & READ
            else None
        )

    @property
    def has_waiting_requests(self) -> bool:
        """True if any client waits for messages to arrive."""
        return bool(len(self.held) or len(self.pops) or len(self.notices))

    def forget_readers(self, group: str = "", topics: Sequence[str] = ()) -> None:
        """Forget pulled offsets and pops in flight of a deleted group, or of deleted topics."""
        for table in (self.pulled, self.popped.in_flight):
            for key in [reader for reader in table if reader[0] == group or reader[1] in topics]:
                del table[key]
        self.popped.popping_groups = {
            reader for reader in self.popped.popping_groups if reader[0] != group and reader[1] not in topics
        }

    def disconnected(self, connection: Connection) -> None:
        """Forget a closed connection, and notify its groups."""
        for table in (self.held, self.pops, self.notices):
            table.forget(connection)
        for group in self.clients.disconnected(connection):
            self.tell_members(group)

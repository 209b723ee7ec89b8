"""Figures of a broker in Prometheus' text form, under the names that RocketMQ's own exporter has (5.x,
``metricsExporterType=PROM``; Java: ``BrokerMetricsManager``, ``ConsumerLagCalculator``).

Served by ``prometheus_client`` from a thread of its own; each answer is taken on the broker's loop.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import TimeoutError as TooLate
from typing import Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.broker.broker import Broker
from engine.broker.queries import store_time_at
from engine.broker.stats import RPC_BUCKETS
from engine.broker.topics import RETRY
from engine.errors import CannotRead
from engine.remoting.frame import release_of
from engine.rules.system_names import is_system_group, is_system_topic

PATIENCE = 5.0
"""Seconds after which an answer that the loop has not given stays empty."""
_COMMON = ("cluster", "node_type", "node_id")
_STORAGE = (*_COMMON, "storage_type", "storage_medium")
_PROTOCOL = "remoting"


class MetricsServer:
    """``with``: figures of ``broker`` at ``http://host:port/metrics``, port 0 for a free one. To be entered in the
    broker's loop. Raises :class:`CannotRead` where the port is taken.
    """

    def __init__(self, broker: Broker, host: str, port: int) -> None:
        self._broker = broker
        self._host = host
        self._port = port
        self.address = ""
        """``ip:port``, once it answers."""

    def __enter__(self) -> Self:
        """Answer from here on."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_OfBroker(self._broker, asyncio.get_running_loop()))
        try:
            self._server, self._thread = start_http_server(self._port, self._host, registry)
        except OSError as error:
            raise CannotRead(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}") from error
        self.address = f"{self._host}:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _OfBroker(Collector):
    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop

    def describe(self) -> Iterable[Metric]:
        """Nothing is looked at for a registration."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Taken on the loop; empty where it does not come to it."""

        async def take() -> list[Metric]:
            return list(families(self._broker))

        try:
            return asyncio.run_coroutine_threadsafe(take(), self._loop).result(PATIENCE)
        except (TooLate, RuntimeError):  # the loop is busy, or has ended
            return []


def families(broker: Broker) -> Iterator[Metric]:
    """Every figure as it is now. In the broker's loop."""
    yield from _of_store(broker)
    yield from _of_messages(broker)
    yield from _of_clients(broker)
    yield from _of_groups(broker)
    yield from _of_requests(broker)


def _names(broker: Broker) -> tuple[str, str, str]:
    return broker.config.cluster, "broker", broker.config.broker_name


def _of_store(broker: Broker) -> Iterator[Metric]:
    store, names = broker.store, _names(broker)
    tables, at = store.tables, store.positions()
    for name, words, value in (
        ("rocketmq_broker_permission", "4 read, 2 write", broker.config.permission),
        ("rocketmq_topic_number", "Declared topics", len(tables.topics())),
        ("rocketmq_consumer_group_number", "Declared consumer groups", len(tables.groups())),
    ):
        yield _gauge(name, words, _COMMON, [(names, value)])
    oldest = store.earliest_message_time()
    disk = [*names, "local", "disk"]
    for name, words, value in (
        ("rocketmq_storage_size_bytes", "What is used of the store's disk", _used(broker)),
        ("rocketmq_storage_flush_behind_bytes", "Bytes of the log that a power loss would take", at.unflushed),
        ("rocketmq_storage_dispatch_behind_bytes", "Bytes of the log that queues and index lack", at.behind),
        (
            "rocketmq_storage_message_reserve_time_milliseconds",
            "Age of the oldest message",
            max(broker.now() - oldest, 0) if oldest >= 0 else 0,
        ),
    ):
        yield _gauge(name, words, _STORAGE, [(disk, value)])


def _used(broker: Broker) -> int:
    try:
        return shutil.disk_usage(broker.store.parts.paths.root).used
    except OSError:
        return 0


def _of_messages(broker: Broker) -> Iterator[Metric]:
    names, stats = _names(broker), broker.stats
    labels = (*_COMMON, "topic", "message_type", "is_system")
    put = [((*names, topic, kind, _system(topic)), flow) for (topic, kind), flow in stats.put.items()]
    yield _counter("rocketmq_messages_in", "Messages stored", labels, [(row, flow.messages) for row, flow in put])
    yield _counter("rocketmq_throughput_in", "Bytes stored", labels, [(row, flow.size) for row, flow in put])
    labels = (*_COMMON, "topic", "consumer_group", "is_system")
    got = [((*names, topic, group, _system(topic, group)), flow) for (group, topic), flow in stats.got.items()]
    yield _counter("rocketmq_messages_out", "Messages handed out", labels, [(row, flow.messages) for row, flow in got])
    yield _counter("rocketmq_throughput_out", "Bytes handed out", labels, [(row, flow.size) for row, flow in got])


def _of_clients(broker: Broker) -> Iterator[Metric]:
    names = _names(broker)
    producing = Counter(
        (*names, member.language.lower(), _release(member.version), _PROTOCOL)
        for members in broker.clients.producers.values()
        for member in members.values()
    )
    labels = (*_COMMON, "language", "version", "protocol_type")
    yield _gauge("rocketmq_producer_connections", "Producers that are connected", labels, producing.items())
    consuming = Counter(
        (
            *names,
            member.language.lower(),
            _release(member.version),
            _PROTOCOL,
            group.name,
            _mode(group.kind),
            _system("", group.name),
        )
        for group in broker.clients.consumers.values()
        for member in group.members.values()
    )
    more = (*labels, "consumer_group", "consume_mode", "is_system")
    yield _gauge("rocketmq_consumer_connections", "Consumers that are connected", more, consuming.items())


def _release(ordinal: int) -> str:
    return f"v{release_of(ordinal)}".replace(".", "_").lower()


def _mode(kind: str) -> str:
    return "push" if kind == "CONSUME_PASSIVELY" else "pull"


def _of_groups(broker: Broker) -> Iterator[Metric]:
    """What each group has not read yet of each topic that it has an offset in."""
    tables, names, now = broker.store.tables, _names(broker), broker.now()
    labels = (*_COMMON, "consumer_group", "topic", "is_retry", "is_system")
    lags, ages = [], []
    for group in tables.groups_with_offsets():
        for topic in tables.topics_of(group):
            declared = broker.topics.get(topic)
            if declared is None:
                continue
            retry = "true" if topic.startswith(RETRY) else "false"
            row = (*names, group, topic, retry, _system(topic, group))
            lag, oldest = _unread(broker, group, topic, declared.read_queue_nums)
            lags.append((row, lag))
            ages.append((row, max(now - oldest, 0) if oldest > 0 else 0))
    yield _gauge("rocketmq_consumer_lag_messages", "Messages that a group has not read yet", labels, lags)
    yield _gauge("rocketmq_consumer_lag_latency_milliseconds", "Age of the oldest of them", labels, ages)


def _unread(broker: Broker, group: str, topic: str, queues: int) -> tuple[int, int]:
    """How many messages, and the store time of the oldest; −1 where there is none."""
    lag, oldest = 0, -1
    for queue_id in range(queues):
        read = broker.store.tables.consumer_offset(group, topic, queue_id)
        end = broker.store.max_offset_in_queue(topic, queue_id)
        if read < 0 or end <= read:
            continue
        lag += end - read
        stored = store_time_at(broker, topic, queue_id, read)
        if stored > 0 and (oldest < 0 or stored < oldest):
            oldest = stored
    return lag, oldest


def _system(topic: str, group: str = "") -> str:
    return "true" if is_system_topic(topic) or is_system_group(group) else "false"


def _of_requests(broker: Broker) -> Iterator[Metric]:
    """How long requests took, where somebody looks at the frames."""
    if broker.stats.rpc is None:
        return
    labels = (*_COMMON, "protocol_type", "request_code", "response_code", "is_long_polling", "result")
    family = HistogramMetricFamily("rocketmq_rpc_latency_milliseconds", "Rpc latency", labels=labels)
    for kind, spread in broker.stats.rpc.spreads.items():
        so_far, buckets = 0, []
        for end, count in zip((*(f"{end:.1f}" for end in RPC_BUCKETS), "+Inf"), spread.counts, strict=True):
            so_far += count
            buckets.append((end, so_far))
        held = "true" if kind.is_long_polling else "false"
        row = [*_names(broker), _PROTOCOL, kind.request, kind.response, held, kind.result]
        family.add_metric(row, buckets, spread.total)
    yield family


Rows = Iterable[tuple[Iterable[str], float]]


def _gauge(name: str, words: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = GaugeMetricFamily(name, words, labels=labels)
    for values, value in rows:
        family.add_metric(list(values), value)
    return family


def _counter(name: str, words: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = CounterMetricFamily(name, words, labels=labels)
    for values, value in rows:
        family.add_metric(list(values), value)
    return family

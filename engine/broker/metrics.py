"""Figures of a broker in Prometheus' text form, under the names that RocketMQ's own exporter has (5.x,
``metricsExporterType=PROM``; Java: ``BrokerMetricsManager``, ``ConsumerLagCalculator``).

Served by ``prometheus_client`` from a thread of its own; each answer is taken on the broker's loop.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Self

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from engine.broker.query_message import store_time_at
from engine.broker.stats import RpcKind, ValueHistogram
from engine.codec.pop import retry_topic, revive_topic
from engine.errors import CannotRead
from engine.remoting.frame import release_of
from engine.remoting.subscriptions import TAG
from engine.sentences import sentence
from engine.store.message_filter import TagFilter
from engine.store.query_message import earliest_message_time
from engine.store.queue_entry import unit_at
from engine.store.timers.messages import TimerMessages
from engine.system_names import RETRY_PREFIX, is_system_group, is_system_topic

if TYPE_CHECKING:
    from engine.broker.broker import Broker


TIMEOUT_S = 5.0
"""Seconds after which an answer that the loop has not given stays empty."""
_COMMON = ("cluster", "node_type", "node_id")
_STORAGE = (*_COMMON, "storage_type", "storage_medium")
_PROTOCOL = "remoting"
PROCESSORS = (
    "send",
    "async_put",
    "pull",
    "ack",
    "query_message",
    "client_manager",
    "heartbeat",
    "lite_pull",
    "transaction",
    "consumer_manager",
    "admin",
    "reply",
)
"""Queues of requests in RocketMQ; here only sends wait, for the disk."""
POPS = "CONSUME_POP"
TIMER_BOUNDS = (5, 60, 300, 900, 3_600, 14_400, 28_800, 86_400)
"""Upper bounds (seconds until delivery) of the rows of timer messages."""
MAX_COUNTED = 4_096
"""Maximum number of queue entries examined for a group that filters by tags."""


class MetricsServer:
    """Serves the figures of ``broker`` at ``http://host:port/metrics`` within a ``with`` block in the broker's loop;
    port 0 takes a free one. Raises :class:`CannotRead` if the port is taken.
    """

    def __init__(self, broker: Broker, host: str, port: int) -> None:
        self._broker = broker
        self._host = host
        self._port = port
        self.address = ""
        """``ip:port``, once it answers."""

    def __enter__(self) -> Self:
        """Start the server."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_OfBroker(self._broker, asyncio.get_running_loop()))
        try:
            self._server, self._thread = start_http_server(self._port, self._host, registry)
        except OSError as error:
            raise CannotRead(
                sentence(
                    "cannot listen on {place}: {why}",
                    place=f"{self._host}:{self._port}",
                    why=sentence(error.strerror or str(error)),
                )
            ) from error
        self.address = f"{self._host}:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _OfBroker(Collector):
    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop

    def describe(self) -> Iterable[Metric]:
        """Registration needs no figures."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Compute the figures on the loop; empty if the loop does not get to it in time."""

        async def take() -> list[Metric]:
            return list(families(self._broker))

        try:
            return asyncio.run_coroutine_threadsafe(take(), self._loop).result(TIMEOUT_S)
        except (TooLate, RuntimeError):  # the loop is busy, or has ended
            return []


def families(broker: Broker) -> Iterator[Metric]:
    """Yield every current figure. Runs in the broker's loop."""
    yield from _of_store(broker)
    yield from _of_messages(broker)
    yield from _of_clients(broker)
    yield from _of_groups(broker)
    yield from _of_transactions(broker)
    if broker.timers is not None:
        yield from _of_timers(broker, broker.timers)
    if broker.store.rules.major >= 5:
        yield from _of_pops(broker)
    yield from _of_requests(broker)


def _names(broker: Broker) -> tuple[str, str, str]:
    return broker.config.cluster, "broker", broker.config.broker_name


def _of_store(broker: Broker) -> Iterator[Metric]:
    store, names = broker.store, _names(broker)
    tables, positions = store.tables, store.positions()
    for name, words, value in (
        ("rocketmq_broker_permission", "4 read, 2 write", broker.config.permission),
        ("rocketmq_topic_number", "Declared topics", len(tables.topics())),
        ("rocketmq_consumer_group_number", "Declared consumer groups", len(tables.groups())),
    ):
        yield _gauge(name, words, _COMMON, [(names, value)])
    waiting = [
        ((*names, processor), len(broker.sends.waiting) if processor == "send" else 0) for processor in PROCESSORS
    ]
    yield _gauge("rocketmq_processor_watermark", "Requests that wait", (*_COMMON, "processor"), waiting)
    oldest = earliest_message_time(store.parts.log)
    disk = _disk(broker)
    for name, words, value in (
        ("rocketmq_storage_size_bytes", "What is used of the store's disk", _used(broker)),
        ("rocketmq_storage_flush_behind_bytes", "Bytes of the log that a power loss would take", positions.unflushed),
        ("rocketmq_storage_dispatch_behind_bytes", "Bytes of the log that queues and index lack", positions.behind),
        (
            "rocketmq_storage_message_reserve_time_milliseconds",
            "Age of the oldest message",
            max(broker.now() - oldest, 0) if oldest >= 0 else 0,
        ),
    ):
        yield _gauge(name, words, _STORAGE, [(disk, value)])


def _disk(broker: Broker) -> list[str]:
    return [*_names(broker), "local", "disk"]


def _used(broker: Broker) -> int:
    try:
        return shutil.disk_usage(broker.store.parts.paths.root).used
    except OSError:
        return 0


def _of_messages(broker: Broker) -> Iterator[Metric]:
    names, stats = _names(broker), broker.stats
    labels: tuple[str, ...] = (*_COMMON, "topic", "message_type", "is_system")
    put = [((*names, topic, kind, _system(topic)), flow) for (topic, kind), flow in stats.put.items()]
    yield _counter("rocketmq_messages_in", "Messages stored", labels, [(row, flow.messages) for row, flow in put])
    yield _counter("rocketmq_throughput_in", "Bytes stored", labels, [(row, flow.size) for row, flow in put])
    sizes = [((*names, topic, kind, _system(topic)), spread) for (topic, kind), spread in stats.sizes.items()]
    yield _histogram("rocketmq_message_size", "Bytes of a message in the log", labels, sizes)
    for of_topics, kind in ((True, "topic"), (False, "consumer_group")):
        labels = (*_COMMON, "invocation_status", "is_system") if of_topics else (*_COMMON, "invocation_status")
        rows = [
            ((*names, "success" if ok else "failure", *((_word(is_system),) if of_topics else ())), spread)
            for (ok, is_system), spread in stats.declaring.items()
            if (is_system is not None) == of_topics
        ]
        words = f"How long declaring a {kind.replace('_', ' ')} took"
        yield _histogram(f"rocketmq_{kind}_create_execution_time_milliseconds", words, labels, rows)
    labels = (*_COMMON, "topic", "consumer_group", "is_system")
    dead_letters = [
        ((*names, topic, group, _system(topic, group)), count) for (group, topic), count in stats.dead.items()
    ]
    yield _counter("rocketmq_send_to_dlq_messages", "Messages that became dead letters", labels, dead_letters)
    labels = (*labels, "is_retry")  # of pops only
    handed_out = [
        ((*names, topic, group, _system(topic, group), None if is_retry is None else _word(is_retry)), flow)
        for (group, topic, is_retry), flow in stats.got.items()
    ]
    yield _counter(
        "rocketmq_messages_out", "Messages handed out", labels, [(row, flow.messages) for row, flow in handed_out]
    )
    yield _counter(
        "rocketmq_throughput_out", "Bytes handed out", labels, [(row, flow.size) for row, flow in handed_out]
    )


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
    consumer_labels = (*labels, "consumer_group", "consume_mode", "is_system")
    yield _gauge("rocketmq_consumer_connections", "Consumers that are connected", consumer_labels, consuming.items())


def _release(ordinal: int) -> str:
    return f"v{release_of(ordinal)}".replace(".", "_").lower()


def _mode(kind: str) -> str:
    return "push" if kind == "CONSUME_PASSIVELY" else "pull"


@dataclass(slots=True)
class GroupProgress:
    """A group's progress in a topic, or in the retry topic of its pops. Times are ms; 0: nothing waits."""

    group: str
    topic: str
    is_retry: bool = False
    consumes: bool = True
    lag: int = 0
    """Messages that the group has not consumed; ``oldest`` is the store time of the first of them."""
    oldest: int = 0
    in_flight: int = 0
    """Messages that the group got, but has not consumed."""
    ready: int = 0
    """Messages that the group did not get yet; ``oldest_ready`` is the store time of the first of them."""
    oldest_ready: int = 0


def iter_group_progress(broker: Broker) -> Iterator[GroupProgress]:
    """Yield progress as RocketMQ computes it for groups that consume: a row for each topic that they subscribe to,
    or read without a subscription; where they pop, another row for the retry topic. Other groups, which RocketMQ
    leaves out, have a row for each topic that they have an offset in.
    """
    tables, consumers = broker.store.tables, broker.clients.consumers
    reads = {(group, topic) for group, topic, _ in broker.pulled}
    for name in sorted({*tables.groups(), *tables.groups_with_offsets()}):
        if is_system_group(name):
            continue
        group = consumers.get(name)
        for topic in sorted(group.subscriptions) if group is not None else tables.topics_of(name):
            pops = group.kind == POPS if group is not None else (name, topic) in broker.popped.popping_groups
            consumes = group is not None or pops or (name, topic) in reads
            is_retry = topic.startswith(RETRY_PREFIX)
            if broker.topics.get(topic) is None or (is_retry and consumes):
                continue
            yield _summed(broker, GroupProgress(name, topic, is_retry, consumes), topic, pops=pops)
            if pops:
                retry_name = _popped_again(broker, topic, name)
                yield _summed(broker, GroupProgress(name, topic, is_retry=True), retry_name, pops=True)


def _popped_again(broker: Broker, topic: str, group: str) -> str:
    """Return the retry topic of messages that a group popped."""
    preferred = retry_topic(topic, group, v2=broker.config.retry_topic_v2)
    if broker.topics.get(preferred) is None and broker.config.pop_from_retry_v1:
        return retry_topic(topic, group, v2=False)
    return preferred


def _summed(broker: Broker, row: GroupProgress, topic: str, *, pops: bool) -> GroupProgress:
    """Return ``row`` with the sums over the queues of ``topic``."""
    declared = broker.topics.get(topic)
    for queue_id in range(declared.write_queue_nums if declared is not None else 0):
        (_add_popped if pops else _add_pulled)(broker, row, topic, queue_id)
    return row


def _add_pulled(broker: Broker, row: GroupProgress, topic: str, queue_id: int) -> None:
    end = max(broker.store.max_offset_in_queue(topic, queue_id), 0)
    read = broker.store.tables.consumer_offset(row.group, topic, queue_id)
    handed_offset = broker.pulled.get((row.group, topic, queue_id), -1)
    row.lag += unread(broker, row.group, topic, queue_id, end if read < 0 else read, end)
    row.oldest = _oldest_time(row.oldest, store_time_at(broker, topic, queue_id, end if read < 0 else read))
    if row.consumes:
        row.in_flight += unread(broker, row.group, topic, queue_id, handed_offset if read < 0 else read, handed_offset)
        row.ready += unread(broker, row.group, topic, queue_id, end if handed_offset < 0 else handed_offset, end)
        row.oldest_ready = _oldest_time(row.oldest_ready, store_time_at(broker, topic, queue_id, max(handed_offset, 0)))


def _add_popped(broker: Broker, row: GroupProgress, topic: str, queue_id: int) -> None:
    end = max(broker.store.max_offset_in_queue(topic, queue_id), 0)
    handed_offset = broker.popped.latest(row.group, topic, queue_id)
    if handed_offset < 0:
        handed_offset = broker.store.tables.consumer_offset(row.group, topic, queue_id)
    if handed_offset < 0:
        handed_offset = end
    in_flight = broker.popped.in_flight[row.group, topic, queue_id]
    ready = unread(broker, row.group, topic, queue_id, handed_offset, end)
    row.lag += ready + in_flight
    row.in_flight += in_flight
    row.ready += ready
    row.oldest = _oldest_time(row.oldest, store_time_at(broker, topic, queue_id, handed_offset - in_flight))
    row.oldest_ready = _oldest_time(row.oldest_ready, store_time_at(broker, topic, queue_id, handed_offset))


def unread(broker: Broker, group: str, topic: str, queue_id: int, start: int, end: int) -> int:
    """Count messages from ``start`` to ``end`` that match a group's tags; a long range is estimated from its first
    part.
    """
    if end <= start:
        return 0
    subscription = broker.clients.subscription(group, topic)
    queue = broker.store.parts.queues.queue(topic, queue_id)
    if (
        subscription is None
        or subscription.kind != TAG
        or subscription.is_all
        or queue is None
        or queue.kind == "batch"
    ):
        return end - start
    tags, examined, matching = TagFilter(subscription.expression, subscription.codes), 0, 0
    while examined < min(end - start, MAX_COUNTED):
        entry = unit_at(queue, start + examined)
        if entry is None or entry.state != "entry":
            break
        matching += tags.matches_entry(entry.real_tags_code, entry.ext)
        examined += 1
    return round(matching * (end - start) / examined) if examined else end - start


def _oldest_time(first_time: int, second_time: int) -> int:
    return min((time for time in (first_time, second_time) if time > 0), default=0)


def _of_groups(broker: Broker) -> Iterator[Metric]:
    names, now, rows = _names(broker), broker.now(), list(iter_group_progress(broker))
    labels = (*_COMMON, "consumer_group", "topic", "is_retry", "is_system")

    def row(
        name: str, words: str, value: Callable[[GroupProgress], int], rows_of_metric: Iterable[GroupProgress]
    ) -> Metric:
        samples = [
            (
                (
                    *names,
                    progress.group,
                    progress.topic,
                    _word(progress.is_retry),
                    _system(progress.topic, progress.group),
                ),
                value(progress),
            )
            for progress in rows_of_metric
        ]
        return _gauge(f"rocketmq_consumer_{name}", words, labels, samples)

    yield row("lag_messages", "Messages that a group is not done with", lambda progress: progress.lag, rows)
    yield row(
        "lag_latency_milliseconds", "Age of the oldest of them", lambda progress: _age(now, progress.oldest), rows
    )
    consuming = [progress for progress in rows if progress.consumes]
    yield row("inflight_messages", "Messages that a group was handed", lambda progress: progress.in_flight, consuming)
    words = "Age of the oldest that a group was not handed yet"
    yield row("queueing_latency_milliseconds", words, lambda progress: _age(now, progress.oldest_ready), consuming)
    yield row("ready_messages", "Messages that a group was not handed yet", lambda progress: progress.ready, consuming)


def _age(now: int, time: int) -> int:
    return max(now - time, 0) if time else 0


def _word(flag: object) -> str:
    return "true" if flag else "false"


def _of_transactions(broker: Broker) -> Iterator[Metric]:
    names, stats, labels = _names(broker), broker.stats, (*_COMMON, "topic")
    half = [((*names, topic), count) for topic, count in stats.half.items()]
    yield _gauge("rocketmq_half_messages", "Half messages that are not decided, over all starts", labels, half)
    for name, words, counts in (
        ("commit", "Transactions that were committed", stats.committed),
        ("rollback", "Transactions that were rolled back", stats.rolled_back),
    ):
        rows = [((*names, topic), count) for topic, count in counts.items()]
        yield _counter(f"rocketmq_{name}_messages", words, labels, rows)
    # the name says milliseconds in RocketMQ, too
    spreads = [((*names, topic), spread) for topic, spread in stats.finishing.items()]
    words = "Seconds from the birth of a half message to its commit"
    yield _histogram("rocketmq_finish_message_latency_milliseconds", words, labels, spreads)


def _of_timers(broker: Broker, timers: TimerMessages) -> Iterator[Metric]:
    late, waiting = timers.behind()
    disk, stats = _disk(broker), broker.stats
    for name, words, value in (
        ("enqueue_lag", "Timer messages that the wheel lacks", waiting),
        ("enqueue_latency_milliseconds", "Age of the oldest of them", _age(broker.now(), timers.oldest_waiting())),
        ("dequeue_lag", "Timer messages of the wheel", timers.left_to_put()),
        # the name says milliseconds in RocketMQ, too
        ("dequeue_latency_milliseconds", "Seconds that the wheel is behind", late // 1000),
    ):
        yield _gauge(f"rocketmq_timer_{name}", words, _STORAGE, [(disk, value)])
    ends = [0, *TIMER_BOUNDS]
    counts = [((*disk, str(end)), timers.count(start * 1000, end * 1000)) for start, end in pairwise(ends)]
    words = "Timer messages by the seconds until they are due"
    yield _gauge("rocketmq_timer_message_snapshot", words, (*_STORAGE, "timer_bound_s"), counts)
    labels = (*_STORAGE, "topic")
    open_ = [((*disk, topic), count) for topic, count in timers.counts().items()]
    yield _gauge("rocketmq_timing_messages", "Timer messages that wait", labels, open_)
    for name, words, table in (
        ("enqueue", "Timer messages that reached the wheel", stats.timers_in),
        ("dequeue", "Timer messages that left it", stats.timers_out),
    ):
        rows = [((*disk, topic), count) for topic, count in table.items()]
        yield _counter(f"rocketmq_timer_{name}", words, labels, rows)
    spreads = [((*disk, topic), spread) for topic, spread in stats.delays.items()]
    words = "Seconds from the birth of a timer message to its time"
    yield _histogram("rocketmq_delay_message_latency_seconds", words, labels, spreads)


def _of_pops(broker: Broker) -> Iterator[Metric]:
    names, stats, popped = _names(broker), broker.stats, broker.popped
    for name, words, value in (
        ("offset", "Offsets that wait for their checkpoints", sum(map(len, popped.pending_offsets.values()))),
        ("checkpoint", "Checkpoints that are not stored yet", len(popped.unstored)),
    ):
        yield _gauge(f"rocketmq_pop_{name}_buffer_size", words, _COMMON, [(names, value)])
    topic, now, lags, latencies = revive_topic(broker.config.cluster), broker.now(), [], []
    for queue_id, queue in enumerate(popped.revive_queues):
        remaining = max(broker.store.max_offset_in_queue(topic, queue_id) - queue.handled_offset, 0)
        oldest = min(queue.check_points.values(), key=lambda point: point.revive_offset, default=None)
        lags.append(((*names, str(queue_id)), remaining))
        latencies.append(
            ((*names, str(queue_id)), _age(now, oldest.due) if oldest is not None and remaining > 1 else 0)
        )
    labels: tuple[str, ...] = (*_COMMON, "queue_id")
    # the name says milliseconds in RocketMQ, too
    yield _gauge("rocketmq_pop_revive_lag_milliseconds", "Records that are not handled yet", labels, lags)
    yield _gauge("rocketmq_pop_revive_latency_milliseconds", "Age of the first of them", labels, latencies)
    records_in = [
        ((*names, topic_name, group, kind, status), n)
        for (group, topic_name, kind, status), n in stats.revive_in.items()
    ]
    labels = (*_COMMON, "topic", "consumer_group", "revive_message_type", "put_status")
    yield _counter("rocketmq_pop_revive_in_message", "Records put into the revive topic", labels, records_in)
    records_out = [
        ((*names, topic_name, group, kind, str(revive_queue)), n)
        for (group, topic_name, revive_queue, kind), n in stats.revive_out.items()
    ]
    labels = (*_COMMON, "topic", "consumer_group", "revive_message_type", "queue_id")
    yield _counter("rocketmq_pop_revive_out_message", "Records read of the revive topic", labels, records_out)
    retries = [((*names, topic_name, group, status), n) for (group, topic_name, status), n in stats.revived.items()]
    labels = (*_COMMON, "topic", "consumer_group", "put_status")
    yield _counter("rocketmq_pop_revive_retry_messages", "Popped messages that came again", labels, retries)


def _system(topic: str, group: str = "") -> str:
    return _word(is_system_topic(topic) or is_system_group(group))


def _of_requests(broker: Broker) -> Iterator[Metric]:
    """Durations of requests, if the frames are observed."""
    if broker.stats.rpc is None:
        return
    labels = (*_COMMON, "protocol_type", "request_code", "response_code", "is_long_polling", "result")
    names = *_names(broker), _PROTOCOL
    rows = [
        ((*names, kind.request, kind.response, _long_polling(kind), kind.result), spread)
        for kind, spread in broker.stats.rpc.spreads.items()
    ]
    yield _histogram("rocketmq_rpc_latency_milliseconds", "Rpc latency", labels, rows)


def _long_polling(kind: RpcKind) -> str | None:
    """RocketMQ leaves this label out where it sends messages straight from its files to the connection."""
    lends = kind.request in {"query_message", "view_message_by_id"} and kind.response == "success"
    return None if lends else _word(kind.is_long_polling)


Rows = Iterable[tuple[Iterable[str | None], float]]
"""Values of labels (None: no value), and a number."""


def _gauge(name: str, words: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    return _family(name, "", "gauge", words, labels, rows)


def _counter(name: str, words: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    return _family(name, "_total", "counter", words, labels, rows)


def _family(name: str, end: str, kind: str, words: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = Metric(name, words, kind)
    for values, number in rows:
        family.add_sample(name + end, _labels(labels, values), number)
    return family


def _labels(names: tuple[str, ...], values: Iterable[str | None]) -> dict[str, str]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _histogram(
    name: str, words: str, labels: tuple[str, ...], rows: Iterable[tuple[Iterable[str | None], ValueHistogram]]
) -> Metric:
    family = Metric(name, words, "histogram")
    for values, spread in rows:
        series_labels = _labels(labels, values)
        ends = (*(f"{end:.1f}" for end in spread.ends), "+Inf")
        for end, count in zip(ends, accumulate(spread.counts), strict=True):
            family.add_sample(f"{name}_bucket", {**series_labels, "le": end}, count)
        family.add_sample(f"{name}_count", series_labels, sum(spread.counts))
        family.add_sample(f"{name}_sum", series_labels, spread.total)
    return family

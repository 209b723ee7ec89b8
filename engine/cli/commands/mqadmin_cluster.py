"""mqadmin's commands that read a running cluster, under its names and options: figures of brokers, topics and their
statistics, epochs of masters, messages of queues, and how far a RocksDB has the queues of the files.

They register nothing at brokers and name servers. What a store alone can answer is answered with ``--store``, too.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from engine.cli.commands.units import COLUMNS as UNIT_COLUMNS
from engine.cli.commands.units import unit_of
from engine.cli.connecting import add_credentials, new_client
from engine.cli.options import add_command, common_options, count, moment, number, open_named_store
from engine.cli.output import Column, Output
from engine.cli.serving import address_list
from engine.client import broker_api
from engine.client.admin import Admin
from engine.client.errors import BrokerRefused, ClientError
from engine.client.instance import ClientInstance
from engine.client.routes import MASTER, MessageQueue, TopicRoute
from engine.client.topic_reader import MAX_PULLED, TOOLS_GROUP, TopicReader
from engine.cluster import answers
from engine.cluster.state import BrokerPart
from engine.codec.message import Unit
from engine.errors import CannotRead, StoreError, UsageError, cause_of
from engine.inspection import epochs as epoch_table
from engine.inspection import records, tables
from engine.inspection.key_trace import MAX_TIME_MS
from engine.inspection.queue_sides import check_write_progress
from engine.inspection.snapshot import StoreSnapshot
from engine.remoting.answers import UnexpectedAnswer, json_object, reading
from engine.remoting.codes import RequestCode, ResponseCode
from engine.sentences import sentence
from engine.system_names import DLQ_PREFIX, RETRY_PREFIX

DEFAULT_MESSAGE_COUNT = 128
CHECKED_DAYS = 30
CHECK_OK, CHECK_NOT_OK, CHECK_IN_PROGRESS, CHECK_ERROR = range(4)
"""Java: ``CheckRocksdbCqWriteResult.CheckStatus``."""
_DAY_MS = 86_400_000
_SYSTEM_PREFIXES = (RETRY_PREFIX, DLQ_PREFIX)

_FIGURES = (Column("Broker", "address"), Column("Figure", "name"), Column("Value", "value", "prose"))
_STATISTICS = (
    Column("Topic", "topic"),
    Column("Group", "group"),
    Column("Accumulation", "accumulation", "number"),
    Column("In TPS", "inTps", "plain"),
    Column("Out TPS", "outTps", "plain"),
    Column("In 24 h", "inMessages", "number"),
    Column("Out 24 h", "outMessages", "number"),
)
_TOPICS = (Column("Topic", "topic"),)
_TOPICS_WITH_GROUPS = (Column("Cluster", "cluster"), Column("Topic", "topic"), Column("Group", "group"))
_EPOCHS = (
    Column("Broker", "brokerName"),
    Column("Id", "brokerId", "plain"),
    Column("Address", "address"),
    Column("Epoch", "epoch", "plain"),
    Column("Start offset", "startOffset", "number"),
    Column("End offset", "endOffset", "number"),
)
_PROGRESS = (
    Column("Broker", "brokerName"),
    Column("Address", "address"),
    Column("Status", "checkStatus"),
    Column("Result", "checkResult", "prose"),
)
_STATUS_NAMES = {CHECK_OK: "ok", CHECK_NOT_OK: "notOk", CHECK_IN_PROGRESS: "inProgress", CHECK_ERROR: "error"}


def register(commands: Any) -> None:
    """Add the commands."""
    parser = _add(
        commands,
        "brokerStatus",
        _broker_status,
        "-b 127.0.0.1:10911",
        reads_stores=False,
    )
    _add_broker(parser)
    parser = _add(
        commands,
        "statsAll",
        _statistics,
        "-n 127.0.0.1:9876",
        reads_stores=False,
    )
    _add_name_servers(parser, required=True)
    parser.add_argument(
        "-a", "--activeTopic", dest="active", action="store_true", help="only topics with messages in the last 24 hours"
    )
    parser.add_argument("-t", "--topic", metavar="TOPIC", help="the topic (default: all)")
    parser = _add(commands, "topicList", _topic_list, "-n 127.0.0.1:9876", "-s ~/store")
    _add_sources(parser, "-s")
    parser.add_argument(
        "-c", "--clusterModel", dest="groups", action="store_true", help="also show the cluster and the groups"
    )
    parser = _add(
        commands,
        "getBrokerEpoch",
        _epochs,
        "-n 127.0.0.1:9876 -b broker-a",
        "-s ~/store",
    )
    _add_sources(parser, "-s")
    parser.add_argument("-b", "--brokerName", dest="broker", metavar="NAME", help="the broker name (default: all)")
    parser.add_argument("-c", "--clusterName", dest="cluster", metavar="CLUSTER", help="the cluster (default: all)")
    parser = _add(
        commands,
        "consumeMessage",
        _consume,
        "-n 127.0.0.1:9876 -t Orders -c 10",
        "--store ~/store -t Orders -i 0 -o 100",
    )
    _add_sources(parser)
    _add_message_choice(parser)
    parser = _add(
        commands,
        "checkRocksdbCqWriteProgress",
        _check_progress,
        "-n 127.0.0.1:9876 -c DefaultCluster",
        "-s ~/store",
    )
    _add_sources(parser, "-s")
    parser.add_argument("-c", "--cluster", metavar="CLUSTER", help="the cluster (default: all)")
    parser.add_argument("-t", "--topic", default="", metavar="TOPIC", help="the topic (default: all)")
    text = "check entries stored since then, ms since 1970 (default: the last 30 days)"
    parser.add_argument("-cf", "--checkFrom", dest="since", type=number, metavar="MS", help=text)


def _add(commands: Any, name: str, run: Any, *options: str, reads_stores: bool = True) -> argparse.ArgumentParser:
    examples = [f"{name} {words}" for words in options]
    parents = [common_options(store=reads_stores)]
    parser = add_command(commands, name, *examples, parents=parents)
    add_credentials(parser)
    parser.set_defaults(run=run)
    return parser


def _add_name_servers(parser: argparse._ActionsContainer, *, required: bool = False) -> None:
    text = "the cluster's name servers"
    parser.add_argument(
        "-n", "--namesrvAddr", dest="namesrv", type=address_list, required=required, metavar="ADDR[;ADDR]", help=text
    )


def _add_sources(parser: argparse.ArgumentParser, *short: str) -> None:
    """Name servers, or a store."""
    group = parser.add_mutually_exclusive_group(required=True)
    _add_name_servers(group)
    group.add_argument(*short, "--store", metavar="STORE", help="the store: the folder that contains commitlog/")


def _add_broker(parser: argparse.ArgumentParser) -> None:
    _add_name_servers(parser)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("-b", "--brokerAddr", dest="address", metavar="ADDR", help="the broker's address, HOST:PORT")
    group.add_argument("-c", "--clusterName", dest="cluster", metavar="CLUSTER", help="all brokers of a cluster (-n)")


def _add_message_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-t", "--topic", required=True, metavar="TOPIC", help="the topic")
    parser.add_argument("-b", "--brokerName", dest="broker", metavar="NAME", help="the broker name (default: all)")
    parser.add_argument("-i", "--queueId", dest="queue", type=number, metavar="QUEUE", help="the queue id")
    text = "the first queue offset; needs -i (default: the oldest)"
    parser.add_argument("-o", "--offset", type=number, metavar="OFFSET", help=text)
    text = f"the group that reads; its offsets do not change (default: {TOOLS_GROUP})"
    parser.add_argument("-g", "--consumerGroup", dest="group", default=TOOLS_GROUP, metavar="GROUP", help=text)
    form = "ms since 1970, or yyyy-MM-dd#HH:mm:ss:SSS in local time"
    text = f"earliest store time: {form} (default: 0)"
    parser.add_argument("-s", "--beginTimestamp", dest="begin", type=moment, default=0, metavar="TIME", help=text)
    text = f"latest store time: {form} (default: none)"
    parser.add_argument("-e", "--endTimestamp", dest="end", type=moment, default=MAX_TIME_MS, metavar="TIME", help=text)
    text = "print at most N messages (default: %(default)s)"
    parser.add_argument(
        "-c", "--MessageNumber", dest="max_count", type=count, default=DEFAULT_MESSAGE_COUNT, metavar="N", help=text
    )


class _Cluster:
    """Requests of administrators to name servers and brokers. All raise :class:`ClientError`, ``OSError``,
    ``TimeoutError`` or :class:`CannotRead`.
    """

    def __init__(self, instance: ClientInstance) -> None:
        self.instance = instance

    async def _ask_names(self, code: RequestCode) -> bytes:
        """Return the body of the first name server's answer that comes."""
        failures = []
        for address in self.instance.name_servers:
            try:
                return bytes((await self.instance.call(address, code, {})).body)
            except (OSError, TimeoutError) as error:
                failures.append(f"{address}: {cause_of(error)}")
        raise CannotRead(sentence("no name server answers: {words}", words="; ".join(failures)))

    async def brokers(self, cluster: str | None = None, name: str | None = None) -> list[BrokerPart]:
        """Return the registered brokers of a cluster, and of a name; at least one."""
        code = RequestCode.GET_BROKER_CLUSTER_INFO
        body = await self._ask_names(code)
        with reading(code):
            brokers = answers.brokers(body)
        chosen = [part for part in brokers if cluster in {None, part.cluster} and name in {None, part.name}]
        if not chosen:
            names = ", ".join(sorted({f"{part.cluster}/{part.name}" for part in brokers}))
            raise UsageError(sentence("the name servers know no such broker; they know: {names}", names=names or "-"))
        return chosen

    async def topics(self) -> list[str]:
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        body = await self._ask_names(code)
        with reading(code):
            return sorted(map(str, json_object(body).get("topicList") or ()))

    async def route(self, topic: str) -> TopicRoute:
        route = await self.instance.fresh_route(topic)
        return route if route is not None else TopicRoute(topic)

    async def groups(self, route: TopicRoute) -> list[str]:
        """Return the groups that consume a topic, by the first broker that knows."""
        code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
        for addresses in route.brokers.values():
            answer = await self.instance.call(next(iter(addresses.values())), code, {"topic": route.topic})
            with reading(code):
                return sorted(map(str, json_object(answer.body).get("groupList") or ()))
        return []

    async def statistics(self, route: TopicRoute, name: str, key: str) -> tuple[float, int]:
        """Return messages a second of the last minute, and messages of the last 24 hours, of all masters."""
        rate, total = 0.0, 0
        for addresses in route.brokers.values():
            if MASTER not in addresses:
                continue
            try:
                fields = {"statsName": name, "statsKey": key}
                answer = await self.instance.call(addresses[MASTER], RequestCode.VIEW_BROKER_STATS_DATA, fields)
            except BrokerRefused as error:
                if error.code != ResponseCode.SYSTEM_ERROR:
                    raise
                continue  # nothing was counted
            with reading(RequestCode.VIEW_BROKER_STATS_DATA):
                periods = json_object(answer.body)
                rate += float(periods["statsMinute"]["tps"])
                sums = (int(periods[period]["sum"]) for period in ("statsDay", "statsHour", "statsMinute"))
                total += next((number_ for number_ in sums if number_), 0)
        return rate, total


@asynccontextmanager
async def _connected(args: argparse.Namespace, out: Output) -> AsyncIterator[_Cluster]:
    instance = new_client(args, out, args.namesrv or [args.address])
    try:
        yield _Cluster(instance)
    finally:
        await instance.kill()


def _ask(args: argparse.Namespace, out: Output, work: Callable[[_Cluster], Awaitable[int]]) -> int:
    """Run ``work`` with a connected cluster, and return its exit code."""

    async def asking() -> int:
        async with _connected(args, out) as cluster:
            return await work(cluster)

    try:
        return asyncio.run(asking())
    except (ClientError, UnexpectedAnswer, OSError, TimeoutError) as error:
        raise CannotRead(cause_of(error)) from error


def _broker_status(args: argparse.Namespace, out: Output) -> int:
    if args.address is None and args.namesrv is None:
        raise UsageError(sentence("-c CLUSTER needs the name servers: -n ADDR"))

    async def work(cluster: _Cluster) -> int:
        if args.address is not None:
            addresses = [args.address]
        else:
            addresses = [part.address for part in await cluster.brokers(args.cluster)]
        for address in addresses:
            answer = await cluster.instance.call(address, RequestCode.GET_BROKER_RUNTIME_INFO, {})
            with reading(RequestCode.GET_BROKER_RUNTIME_INFO, address):
                figures = answers.runtime(bytes(answer.body))
            for name, value in sorted(figures.items()):
                out.record({"type": "brokerStatus", "address": address, "name": name, "value": value}, _FIGURES)
        return 0

    return _ask(args, out, work)


def _statistics(args: argparse.Namespace, out: Output) -> int:
    async def work(cluster: _Cluster) -> int:
        admin = Admin(instance=cluster.instance)
        await admin.start()
        topics = [name for name in await cluster.topics() if not name.startswith(_SYSTEM_PREFIXES)]
        chosen = [name for name in topics if args.topic in {None, name}]
        if not chosen and args.topic is not None:
            raise UsageError(sentence("the name servers know no topic {topic}", topic=args.topic))
        for topic in chosen:
            route = await cluster.route(topic)
            in_rate, in_count = await cluster.statistics(route, "TOPIC_PUT_NUMS", topic)
            groups = await cluster.groups(route)
            for group in groups:
                out_rate, out_count = await cluster.statistics(route, "GROUP_GET_NUMS", f"{topic}@{group}")
                if args.active and not in_count and not out_count:
                    continue
                lag = sum(queue.lag for queue in await admin.lag(group, topic))
                record = _statistics_record(topic, group, in_rate, in_count)
                record |= {"accumulation": max(lag, 0), "outTps": round(out_rate, 2), "outMessages": out_count}
                out.record(record, _STATISTICS)
            if not groups and (in_count or not args.active):
                out.record(_statistics_record(topic, None, in_rate, in_count), _STATISTICS)
        return 0

    return _ask(args, out, work)


def _statistics_record(topic: str, group: str | None, in_rate: float, in_count: int) -> dict[str, Any]:
    return {
        "type": "topicStatistics",
        "topic": topic,
        "group": group,
        "accumulation": 0,
        "inTps": round(in_rate, 2),
        "outTps": None,
        "inMessages": in_count,
        "outMessages": None,
    }


def _topic_list(args: argparse.Namespace, out: Output) -> int:
    if args.store is not None:
        with open_named_store(args, out) as store:
            for topic, groups in _topics_of_store(store):
                _print_topic(args, out, topic, None, groups)
        return 0

    async def work(cluster: _Cluster) -> int:
        cluster_names = {part.name: part.cluster for part in await cluster.brokers()} if args.groups else {}
        for topic in await cluster.topics():
            if not args.groups:
                _print_topic(args, out, topic, None, [])
            elif not topic.startswith(_SYSTEM_PREFIXES):
                route = await cluster.route(topic)
                cluster_name = next((cluster_names.get(name) for name in route.brokers), None)
                _print_topic(args, out, topic, cluster_name, await cluster.groups(route))
        return 0

    return _ask(args, out, work)


def _topics_of_store(store: StoreSnapshot) -> Iterator[tuple[str, list[str]]]:
    """Yield the topics that a broker of this store registers, with the groups that have offsets in each."""
    topics = tables.topics(store)
    if topics is None:
        raise StoreError(
            sentence("expected the table {table}, found none", table="topics"), file=str(store.path / "config")
        )
    groups: dict[str, set[str]] = {}
    for row in (row for row in tables.offsets(store) if row.mode == "cluster"):
        groups.setdefault(row.topic, set()).add(row.group)
    for topic in sorted(topics):
        yield topic, sorted(groups.get(topic, ()))


def _print_topic(args: argparse.Namespace, out: Output, topic: str, cluster: str | None, groups: list[str]) -> None:
    columns = _TOPICS_WITH_GROUPS if args.groups else _TOPICS
    rows: list[str | None] = [*groups] if args.groups and groups else [None]
    for group in rows:
        out.record({"type": "topicList", "topic": topic, "cluster": cluster, "group": group}, columns)


def _epochs(args: argparse.Namespace, out: Output) -> int:
    if args.store is not None:
        with open_named_store(args, out) as store:
            table = epoch_table.read_epochs(store)
            rows = [(row.epoch, row.start_offset) for row in table.epochs] if table is not None else []
            end = store.log.max_offset
        if not rows:
            out.say_nothing(sentence("the store has no epochs: no broker in controller mode wrote it"))
            return 1
        _print_epochs(out, {"brokerName": None, "brokerId": None, "address": None}, rows, end)
        return 0

    async def work(cluster: _Cluster) -> int:
        for part in await cluster.brokers(args.cluster, args.broker):
            answer = await cluster.instance.call(part.address, RequestCode.GET_BROKER_EPOCH_CACHE, {})
            with reading(RequestCode.GET_BROKER_EPOCH_CACHE, part.address):
                body = json_object(answer.body)
                rows = [(int(row["epoch"]), int(row["startOffset"])) for row in body.get("epochList") or ()]
                end = int(body["maxOffset"])
            broker = {"brokerName": part.name, "brokerId": part.broker_id, "address": part.address}
            _print_epochs(out, broker, rows, end)
        return 0

    return _ask(args, out, work)


def _print_epochs(out: Output, broker: Mapping[str, object], rows: list[tuple[int, int]], end: int) -> None:
    ends = [start for _, start in rows[1:]] + [end]
    for (epoch, start), end_offset in zip(rows, ends, strict=True):
        offsets = {"epoch": epoch, "startOffset": start, "endOffset": end_offset}
        out.record({"type": "brokerEpoch", **broker, **offsets}, _EPOCHS)


def _consume(args: argparse.Namespace, out: Output) -> int:
    if args.offset is not None and args.queue is None:
        raise UsageError(sentence("-o OFFSET needs the queue: -i QUEUE"))
    if args.store is not None:
        with open_named_store(args, out) as store:
            return _print_units(args, out, _units_of_store(store, args))

    async def work(cluster: _Cluster) -> int:
        units = [item async for item in _pulled_units(cluster, args)]
        return _print_units(args, out, iter(units))

    return _ask(args, out, work)


def _print_units(args: argparse.Namespace, out: Output, units: Iterator[tuple[str | None, Unit]]) -> int:
    printed = 0
    for file, unit in units:
        if printed == args.max_count:
            break
        printed += 1
        out.record(records.unit(unit, file), UNIT_COLUMNS)
    if not printed:
        out.say_nothing(sentence("no message of {topic} matches", topic=args.topic))
    return 0 if printed else 1


def _units_of_store(store: StoreSnapshot, args: argparse.Namespace) -> Iterator[tuple[str | None, Unit]]:
    queues = store.queues.by_topic().get(args.topic, {})
    if not queues:
        store.queues.require()
        raise StoreError(
            sentence("expected queues of topic {topic}, found no folder for it", topic=args.topic), file=str(store.path)
        )
    for queue_id, queue in queues.items():
        if args.queue not in {None, queue_id}:
            continue
        for entry in queue.entries(max(queue.min_offset, args.offset or 0)):
            unit = unit_of(store, entry)
            if unit is not None and args.begin <= unit.store_timestamp <= args.end:
                yield store.log.file_name(unit.offset), unit


async def _pulled_units(cluster: _Cluster, args: argparse.Namespace) -> AsyncIterator[tuple[str | None, Unit]]:
    """Yield up to ``args.max_count`` units with the address of their broker."""
    route = await cluster.route(args.topic)
    queues = [
        queue
        for queue in route.subscribe_queues
        if args.broker in {None, queue.broker} and args.queue in {None, queue.queue_id}
    ]
    if not queues:
        raise UsageError(sentence("the name servers know no such queue of topic {topic}", topic=args.topic))
    remaining = args.max_count
    for queue in queues:
        address = cluster.instance.address(queue.broker)
        async for unit in _units_of_queue(cluster.instance, queue, args):
            yield address, unit
            remaining -= 1
            if not remaining:
                return


async def _units_of_queue(
    instance: ClientInstance, queue: MessageQueue, args: argparse.Namespace
) -> AsyncIterator[Unit]:
    offset = await broker_api.min_offset(instance, queue)
    end = await broker_api.max_offset(instance, queue)
    if args.begin:
        offset = max(offset, await broker_api.search_offset(instance, queue, args.begin))
    offset = max(offset, args.offset or 0)
    reader = TopicReader(instance, args.group)
    while offset < end:
        page = await reader.read(queue, offset, min(MAX_PULLED, end - offset))
        for unit in (item.unit for item in page.units):
            if unit.store_timestamp > args.end:
                return
            if unit.store_timestamp >= args.begin:
                yield unit
        if page.next_offset <= offset:
            return
        offset = page.next_offset


def _check_progress(args: argparse.Namespace, out: Output) -> int:
    since = args.since if args.since is not None else int(time.time() * 1000) - CHECKED_DAYS * _DAY_MS
    if args.store is not None:
        with open_named_store(args, out) as store:
            progress = check_write_progress(store, args.topic, since)
        if progress is None:
            raise StoreError(
                sentence("expected queues in files and in a RocksDB, found only one of them"), file=str(store.path)
            )
        status = CHECK_OK if progress.is_complete else CHECK_NOT_OK
        _print_progress(out, None, status, progress.words)
        for topic, queue_id, offset in progress.differing:
            place = {"topic": topic, "queueId": queue_id, "queueOffset": offset}
            out.record({"type": "cqDifference", **place}, _DIFFERENCES)
        return 0 if progress.is_complete else 1

    async def work(cluster: _Cluster) -> int:
        code = RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS
        worst = CHECK_OK
        for part in await cluster.brokers(args.cluster):
            if part.broker_id != MASTER:
                continue
            fields = {"topic": args.topic, "checkStoreTime": since}
            answer = await cluster.instance.call(part.address, code, fields, timeout_s=_CHECK_TIMEOUT_S)
            with reading(code, part.address):
                body = json_object(answer.body)
                status, result = int(body["checkStatus"]), str(body.get("checkResult") or "")
            worst = max(worst, status)
            _print_progress(out, part, status, result)
        return 0 if worst == CHECK_OK else 1

    return _ask(args, out, work)


_CHECK_TIMEOUT_S = 60.0
_DIFFERENCES = (
    Column("Topic", "topic"),
    Column("Queue", "queueId", "plain"),
    Column("First difference", "queueOffset", "number"),
)
_IN_LOG = sentence("the broker answers before it has checked; it writes the result into its log")


def _print_progress(out: Output, part: BrokerPart | None, status: int, result: str) -> None:
    out.record(
        {
            "type": "cqWriteProgress",
            "brokerName": part.name if part is not None else None,
            "address": part.address if part is not None else None,
            "checkStatus": _STATUS_NAMES.get(status, str(status)),
            "checkResult": result or (_IN_LOG if status == CHECK_IN_PROGRESS else ""),
        },
        _PROGRESS,
    )

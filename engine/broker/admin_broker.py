"""Administration of the broker itself and of its store: configuration, figures, cleaning, progress of groups and
slaves, and the tables that a slave of 5.x copies (docs/protocol/broker.md#admin, docs/protocol/mqadmin.md).

Java: ``AdminBrokerProcessor`` (``getBrokerConfig``, ``updateBrokerConfig``, ``prepareRuntimeInfo`` …),
``QueryAssignmentProcessor``'s table of request modes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import system
from engine.broker.admin_groups import queue_progress
from engine.broker.assignments import MODES
from engine.broker.json_bodies import write, write_table
from engine.broker.stats import PerSecond
from engine.codec.epoch_file import decode as decode_epochs
from engine.errors import UsageError
from engine.remoting.codes import NOT_SET, STORE_RELEASE, Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to, ordinal_of
from engine.remoting.settings import key_value_pairs, overlay
from engine.store.query_message import earliest_message_time
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC, SYSTEM_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


DAYS = ("YesterdayMorning", "TodayMorning")
POOLS = {4: ("send", "pull", "query"), 5: ("send", "pull", "litePull", "query", "ack")}
"""Queues of requests in RocketMQ. Here only sends wait, for the disk; other requests are answered as they come. There
is no limit, so that no ``…Capacity`` is reported.
"""
HELD_PULLS = "heldPulls"
"""Field of a request 28 that asks for a figure which RocketMQ's brokers do not have, and the name of that figure:
``[[topic, queue id, consumer group, pulls that are held], …]``.
"""
_UNITS = "KMGTPE"
MAX_LONG = 0x7FFF_FFFF_FFFF_FFFF
"""Java's ``Long.MAX_VALUE``: the end of the last epoch."""
NO_TRANSIENT_POOL = 0x7FFF_FFFF
"""Free buffers of a store without a transient pool, as RocketMQ reports them."""
_SHARES = {"99": 0.99, "999": 0.999}
FIXED = frozenset({"brokerName", "brokerClusterName", "brokerId", "brokerIP1", "listenPort", "namesrvAddr"})
"""Keys of the broker that cannot change while it runs."""


def configuration(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_CONFIG: ``key=value`` lines, of the broker and of its store."""
    numbers = {"counter": 0, "timestamp": broker.started}
    if broker.store.rules.major >= 5:
        numbers["stateVersion"] = 0
    version = json.dumps(dict(sorted(numbers.items())), separators=(",", ":"))
    lines = broker.config.lines() + key_value_pairs(broker.store.config)
    if broker.store.rules.major >= 5:
        lines.append(("useServerSideResetOffset", "true"))
    return answer_to(request, fields={"version": version}, body="".join(f"{k}={v}\n" for k, v in lines).encode())


def reconfigure(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UPDATE_BROKER_CONFIG: apply ``key=value`` lines to the configuration. A key of the store, and a key that cannot
    change while the broker runs, are refused (RocketMQ accepts any line, and applies some of them).
    """
    text = bytes(request.body).decode("utf-8", "replace")
    try:
        config, other_keys = overlay(broker.config, text)
    except UsageError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    old_values, new_values = dict(broker.config.lines()), dict(config.lines())
    store_values = dict(key_value_pairs(broker.store.config))
    requested_values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    fixed = [key for key in sorted(FIXED) if old_values[key] != new_values[key]]
    fixed += [
        key for key in other_keys if key in store_values and requested_values.get(key, "").strip() != store_values[key]
    ]
    if fixed:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"cannot be changed while the broker runs: {', '.join(fixed)}")
    broker.config = config
    return answer_to(request)


def runtime(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_RUNTIME_INFO: runtime figures as texts. Figures that are not counted here are left out. Held pulls are
    reported only to a client that asks for them; all others get what RocketMQ's broker answers.
    """
    store = broker.store
    positions, counters, parts = store.positions(), store.counters(), store.parts
    put, rules = counters["dispatch.units"], store.rules
    major = rules.major
    failed = sum(number for name, number in counters.items() if name.startswith("put.") and name != "put.calls")
    rates = broker.rates.per_second()
    total_rates = [hits + misses for hits, misses in zip(rates.found, rates.missed, strict=True)]
    mornings = broker.rates.yesterday_morning, broker.rates.today_morning
    table = {
        "bootTimestamp": broker.started,
        **({"brokerActive": "true"} if major >= 5 else {}),
        **({"brokerVersion": ordinal_of(rules.patch)} if rules.tells_version_number else {}),
        "brokerVersionDesc": rules.version_name,
        STORE_RELEASE: store.release,
        "earliestMessageTimeStamp": earliest_message_time(store.parts.log),
        "runtime": _uptime_text(broker.now() - broker.started),
        "startAcceptSendRequestTimeStamp": broker.config.accept_sends_from,
        "commitLogMinOffset": max(positions.min, 0),
        "commitLogMaxOffset": positions.wrote,
        "dispatchBehindBytes": positions.behind,
        "commitLogDirCapacity": _capacity(parts.paths.root),
        **({} if store.config.transient_store_pool_enable else {"remainTransientStoreBufferNumbs": NO_TRANSIENT_POOL}),
        "commitLogDiskRatio": parts.disk.usage(parts.paths.commitlog),
        "consumeQueueDiskRatio": parts.disk.usage(parts.queue_folder),
        "putMessageTimesTotal": put,
        "putMessageSizeTotal": counters["dispatch.bytes"],
        "putMessageAverageSize": counters["dispatch.bytes"] / max(put, 1),
        "msgPutTotalTodayNow": put,
        "msgGetTotalTodayNow": broker.rates.totals().got,
        "putMessageFailedTimes": failed,
        "remainHowManyDataToFlush": f"{positions.unflushed} B",
        f"commitLogDiskRatio_{parts.paths.commitlog}": parts.disk.usage(parts.paths.commitlog),
        **{
            f"putLatency{digits}": f"{positions.put_latency.quantile(share) / 1e6:.2f}"
            for digits, share in _SHARES.items()
        },
        "pageCacheLockTimeMills": parts.commit_log.lock_time,
        **{f"{pool}ThreadPoolQueue{name}": 0 for pool in POOLS[major] for name in ("Size", "HeadWaitTimeMills")},
        "sendThreadPoolQueueSize": len(broker.sends.waiting),
        "sendThreadPoolQueueHeadWaitTimeMills": broker.sends.longest_wait_ms(),
        "EndTransactionQueueSize": 0,
        "putTps": _rates(rates.put),
        "getFoundTps": _rates(rates.found),
        "getMissTps": _rates(rates.missed),
        "getTotalTps": _rates(total_rates),
        "getTransferredTps" if major >= 5 else "getTransferedTps": _rates(rates.got),  # spelled so by 4.9
        "putMessageDistributeTime": _put_times(broker.rates.last_minute),
        "putMessageEntireTimeMax": counters["slowest.putMs"],
        "getMessageEntireTimeMax": counters["slowest.getMs"],
        **{f"msgPutTotal{day}": totals.put for day, totals in zip(DAYS, mornings, strict=True)},
        **{f"msgGetTotal{day}": totals.got for day, totals in zip(DAYS, mornings, strict=True)},
        **_levels(broker),
        **_timers(broker, rates),
    }
    if request.fields.get(HELD_PULLS) == "true":
        held_pulls = broker.held.by_group().items()
        rows = [[*queue, group, count] for queue, groups in held_pulls for group, count in groups.items()]
        table[HELD_PULLS] = json.dumps(rows, separators=(",", ":"))
    return answer_to(request, body=write({"table": {name: str(value) for name, value in table.items()}}))


def _capacity(folder: Path) -> str:
    """Size of the folder's disk as RocketMQ writes it."""
    total, free, _ = system.disk_space(folder)  # as Java's getFreeSpace, with the part that only root may fill
    return f"Total : {_readable(total)}, Free : {_readable(free)}."


def _readable(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    exponent = min((size.bit_length() - 1) // 10, len(_UNITS))
    return f"{size / 1024**exponent:.1f} {_UNITS[exponent - 1]}iB"


def _uptime_text(ms: int) -> str:
    days, seconds = divmod(ms // 1000, 86_400)
    return f"[ {days} days, {seconds // 3600} hours, {seconds // 60 % 60} minutes, {seconds % 60} seconds ]"


def _levels(broker: Broker) -> dict[str, str]:
    """Return the offset of each delay level, and the end of its queue; before 5.x only for levels that delivered
    something.
    """
    table, store = {}, broker.store
    for level in range(1, len(store.config.delay_levels()) + 1):
        offset, end = store.tables.delay_offset(level), store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
        if offset > 0 or (end > 0 and store.rules.major >= 5):
            table[f"scheduleMessageOffset_{level}"] = f"{offset},{end}"
    return table


def _rates(values: Sequence[float]) -> str:
    return " ".join(map(str, values))


_PUT_TIMES = (
    *("<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s"),
    *("1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~"),
)


def _put_times(counts: Sequence[int] | None) -> str:
    """Spread of put times in the last complete minute, in RocketMQ's spelling; "null" before there is one."""
    if counts is None:
        return "null"
    return "".join(f"[{words}]:{count} " for words, count in zip(_PUT_TIMES, counts, strict=True))


def _timers(broker: Broker, rates: PerSecond) -> dict[str, str]:
    if broker.timers is None:
        return {}
    delay_ms, waiting = broker.timers.behind()
    return {
        "timerReadBehind": str(delay_ms),
        "timerOffsetBehind": str(waiting),
        "timerCongestNum": str(broker.timers.left_to_put()),
        "timerEnqueueTps": str(rates.timers_in[0]),
        "timerDequeueTps": str(rates.timers_out[0]),
    }


_THRESHOLD = re.compile(r"\s*([^=:\s]+)\s*[=:]\s*(-?\d{1,18})\s*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+")
READ_AHEAD_MODE = "READ_AHEAD_MODE"
MADV_NORMAL, MADV_RANDOM = 0, 1
"""Linux's constants of ``madvise``; Python on Windows does not have them."""
_COLD_OF_GROUP, _COLD_OF_ALL = 3 << 20, 100 << 20
"""Bytes a second that a group, and all groups, may read from pages that are not in memory, as 5.3.3 reports them."""


def clean_queues(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """CLEAN_EXPIRED_CONSUMEQUEUE: delete queues without a message; the store's cleaning does that every ten seconds
    anyway.
    """
    return answer_to(request)


def clean_topics(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """CLEAN_UNUSED_TOPIC: delete the queues of topics that are not declared."""
    declared, own_topics = broker.store.tables.topics(), broker.topics.own_names()
    undeclared = [
        name
        for name in broker.store.parts.queues.topics()
        if name not in declared and name not in own_topics and not name.startswith((SYSTEM_PREFIX, LMQ_PREFIX))
    ]
    broker.store.delete_topics(undeclared)
    return answer_to(request)


def delete_files(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """DELETE_EXPIRED_COMMITLOG: delete files of the log that are older than the retention time, at any hour."""
    broker.store.services.delete_expired_files()
    return answer_to(request)


def statistics(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """VIEW_BROKER_STATS_DATA: sums and rates of a minute, an hour and a day, by topic, by group, and of the broker."""
    name, key = ("null" if header[field] is None else str(header[field]) for field in ("statsName", "statsKey"))
    stats = broker.rates.of(name, key)
    if stats is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
    return answer_to(request, body=write(stats))


def all_progress(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_BROKER_CONSUME_STATS: progress of every group in each queue that it has an offset of."""
    rows, total_lag, total_read = [], 0, 0
    for group in broker.store.tables.groups():
        topic_tables = []
        for name in broker.store.tables.topics_of(group):
            topic = broker.topics.get(name)
            if topic is None or (header["isOrder"] and not topic.order) or _is_given_up(broker, group, name):
                continue
            progress_rows = [
                queue_progress(broker, group, name, queue_id) for queue_id in range(topic.write_queue_nums)
            ]
            for _, row in progress_rows:
                total_lag += row["brokerOffset"] - row["consumerOffset"]
                total_read += row["consumerOffset"]
                if "pullOffset" in row:
                    row["pullOffset"] = 0  # as in RocketMQ, which also uses 0 in its sum
            tps = broker.rates.got_tps(group, name)
            topic_tables.append(write_table("offsetTable", progress_rows, {"consumeTps": tps}).decode())
        rows.append("{" + write(group).decode() + ":[" + ",".join(topic_tables) + "]}")
    text = '{"brokerAddr":%s,"consumeStatsList":[%s],"totalDiff":%d,"totalInflightDiff":%d}'
    return answer_to(
        request, body=(text % (write(broker.address).decode(), ",".join(rows), total_lag, -total_read)).encode()
    )


def _is_given_up(broker: Broker, group: str, topic: str) -> bool:
    """Return True if the group consumes now, but not this topic."""
    consuming = broker.clients.consumers.get(group)
    return consuming is not None and bool(consuming.subscriptions) and topic not in consuming.subscriptions


def ha_status(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_HA_STATUS: the slaves that follow the log, and their offsets."""
    end, max_gap = broker.store.positions().wrote, broker.store.config.ha_max_gap_not_in_sync
    slaves = [
        {
            "addr": slave.peer,
            "diff": end - slave.acknowledged,
            "inSync": end - slave.acknowledged < max_gap,
            "slaveAckOffset": slave.acknowledged,
            "transferFromWhere": slave.sent,
            "transferredByteInSecond": broker.rates.sent_last_second.get(slave.peer, 0),
        }
        for slave in broker.followers()
    ]
    zero_fields = dict.fromkeys(
        ("lastReadTimestamp", "lastWriteTimestamp", "masterFlushOffset", "maxOffset", "transferredByteInSecond"), 0
    )
    body = {
        "haClientRuntimeInfo": {"activated": False, **zero_fields},
        "haConnectionInfo": slaves,
        "inSyncSlaveNums": sum(bool(slave["inSync"]) for slave in slaves),
        "master": True,
        "masterCommitLogMaxOffset": end,
    }
    return answer_to(request, body=write(body))


_ONE_KIND = "It is not CombineConsumeQueueStore, no need check"
_CHECK_OK = 0


def queues_beside(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS: whether a RocksDB holds what the file queues hold. There is none in a store that
    is served. The answer is the result; RocketMQ's broker answers at once, and writes the result into its log.
    """
    return answer_to(request, body=write({"checkResult": _ONE_KIND, "checkStatus": _CHECK_OK}), remark=NOT_SET)


def epochs(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_EPOCH_CACHE: the terms of masters, from the store's ``epochFileCheckpoint``."""
    if not broker.config.controller_mode:
        raise Refused(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")
    data = broker.store.parts.disk.read_file(broker.store.parts.paths.epoch_file)
    rows = decode_epochs(data).epochs if data else ()
    ends = [row.start_offset for row in rows[1:]] + [MAX_LONG]
    body = {
        "brokerId": broker.config.broker_id,
        "brokerName": broker.config.broker_name,
        "clusterName": broker.config.cluster,
        "epochList": [
            {"endOffset": end, "epoch": row.epoch, "startOffset": row.start_offset}
            for row, end in zip(rows, ends, strict=True)
        ],
        "maxOffset": broker.store.positions().wrote,
    }
    return answer_to(request, body=write(body))


def cold_thresholds(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UPDATE_COLD_DATA_FLOW_CTR_CONFIG: ``group=bytes`` lines: bytes a second that groups may read from pages which are
    not in memory. They are stored as long as the broker runs, and slow down no read, as in a RocketMQ without
    ``coldDataFlowControlEnable``.
    """
    for line in bytes(request.body).decode("utf-8", "replace").splitlines():
        if match := _THRESHOLD.fullmatch(line):
            broker.cold_thresholds[match[1]] = int(match[2])
    return answer_to(request)


def forget_threshold(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """REMOVE_COLD_DATA_FLOW_CTR_CONFIG: remove the threshold of the group that the body names."""
    broker.cold_thresholds.pop(bytes(request.body).decode("utf-8", "replace"), None)
    return answer_to(request)


def cold_reads(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_COLD_DATA_FLOW_CTR_INFO: thresholds of groups, and what they have read: that is not counted here, nor by a
    RocketMQ with default settings.
    """
    body = {
        "cgColdReadThreshold": _COLD_OF_GROUP,
        "configTable": broker.cold_thresholds,
        "globalAcc": 0,
        "globalColdReadThreshold": _COLD_OF_ALL,
        "runtimeTable": {},
    }
    return answer_to(request, body=write(body))


def pops_to_files(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """POP_ROLLBACK: move pop records from RocksDB to the revive topic. They are there already: RocksDB is not used."""
    return answer_to(request, remark=NOT_SET)


def read_ahead(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """SET_COMMITLOG_READ_MODE: set whether the system reads ahead in the log's files (0, the default), or not (1)."""
    if not request.fields:
        raise Refused(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode param error")
    text = request.fields.get(READ_AHEAD_MODE, "")
    if not _INTEGER.fullmatch(text) or int(text) not in range(-(1 << 31), 1 << 31):
        raise Refused(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed")
    if int(text) not in (MADV_NORMAL, MADV_RANDOM):
        raise Refused(ResponseCode.INVALID_PARAMETER, "set commitlog readahead mode param value error")
    broker.store.parts.files.advise(int(text))
    return answer_to(request, remark=f"set commitlog readahead mode success, mode: {int(text)}")


def timer_check_point(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_TIMER_CHECK_POINT: progress of timers, as the file ``timercheck`` has it."""
    if broker.timers is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
    return answer_to(request, body=broker.timers.check_point().numbers())


def timer_metrics(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_TIMER_METRICS: timer messages that wait by topic, as the file ``timermetrics`` has them."""
    if broker.timers is None:
        raise Refused(ResponseCode.SYSTEM_ERROR, "The timerMessageStore is null")
    return answer_to(request, body=broker.timers.metrics_text().encode())


def request_modes(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_ALL_MESSAGE_REQUEST_MODE: which groups pop, by topic."""
    return answer_to(request, body=write({MODES: broker.request_modes.value.get(MODES) or {}}))


def take_request_modes(broker: Broker, body: Mapping[str, Any]) -> None:
    """Store the modes of the master's answer to 402. Raises ``OSError`` if they cannot be written."""
    modes, table = body.get(MODES), broker.request_modes
    if isinstance(modes, Mapping) and modes != (table.value.get(MODES) or {}):
        table.value[MODES] = dict(modes)
        table.write(*table.taken())


HANDLERS: dict[int, Processor] = {
    RequestCode.UPDATE_BROKER_CONFIG: reconfigure,
    RequestCode.GET_BROKER_CONFIG: configuration,
    RequestCode.GET_BROKER_RUNTIME_INFO: runtime,
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: queues_beside,
    RequestCode.GET_BROKER_EPOCH_CACHE: epochs,
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: cold_thresholds,
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: forget_threshold,
    RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: cold_reads,
    RequestCode.SET_COMMITLOG_READ_MODE: read_ahead,
    RequestCode.POP_ROLLBACK: pops_to_files,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: clean_queues,
    RequestCode.VIEW_BROKER_STATS_DATA: statistics,
    RequestCode.CLEAN_UNUSED_TOPIC: clean_topics,
    RequestCode.GET_BROKER_CONSUME_STATS: all_progress,
    RequestCode.DELETE_EXPIRED_COMMITLOG: delete_files,
    RequestCode.GET_BROKER_HA_STATUS: ha_status,
    RequestCode.GET_TIMER_CHECK_POINT: timer_check_point,
    RequestCode.GET_TIMER_METRICS: timer_metrics,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: request_modes,
}

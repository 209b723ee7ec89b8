"""Administration of the store behind a broker: cleaning it, and positions of groups and slaves
(docs/protocol/mqadmin.md).

Java: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.broker.admin_groups import queue_progress
from engine.broker.json_bodies import write, write_table
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.system_names import LMQ_PREFIX, SYSTEM_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


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


def queues_beside(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS: progress of copying queues to RocksDB; none is copied, so the answer is the
    status 2 (nothing to report).
    """
    return answer_to(request, body=write({"checkStatus": 2}), remark=NOT_SET)


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


ANSWERS: dict[int, Processor] = {
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: queues_beside,
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
}

"""What administrators ask of the store behind a broker: to clean it, and how groups and slaves stand
(docs/protocol/mqadmin.md).

Java: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

import re

from engine.broker.admin_groups import stands_at
from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import write, write_table
from engine.codec.config_tables import LMQ_PREFIX
from engine.remoting.codes import NOT_SET, Answer, Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

_SYSTEM_PREFIX = "rmq_sys_"
_THRESHOLD = re.compile(r"\s*([^=:\s]+)\s*[=:]\s*(-?\d{1,18})\s*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+")
READ_AHEAD_MODE = "READ_AHEAD_MODE"
MADV_NORMAL, MADV_RANDOM = 0, 1
"""Linux's words to ``madvise``, which Windows has too little of for its Python to name them."""
_COLD_OF_GROUP, _COLD_OF_ALL = 3 << 20, 100 << 20
"""Bytes a second that a group, and all, may read from where no page is in memory, as 5.3.3 says of itself."""


def clean_queues(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """306: queues without a message go; the store's cleaning does that every ten seconds, unasked."""
    return answer_to(request)


def clean_topics(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """316: the queues of topics that are not declared go."""
    declared, own = broker.store.tables.topics(), broker.topics.own_names()
    gone = [
        name
        for name in broker.store.parts.queues.topics()
        if name not in declared and name not in own and not name.startswith((_SYSTEM_PREFIX, LMQ_PREFIX))
    ]
    broker.store.delete_topics(gone)
    return answer_to(request)


def delete_files(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """329: files of the log that are older than they are kept for go, whatever the hour."""
    broker.store.delete_expired_files()
    return answer_to(request)


def statistics(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """315: sums and rates of a minute, an hour and a day, by topic, by group, and of the broker."""
    name, key = ("null" if header[one] is None else str(header[one]) for one in ("statsName", "statsKey"))
    found = broker.rates.of(name, key)
    if found is None:
        raise Refused(Answer.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
    return answer_to(request, body=write(found))


def all_progress(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """317: how far every group is in each queue that it has an offset of."""
    rows, behind, read = [], 0, 0
    for group in broker.store.tables.groups():
        of_group = []
        for name in broker.store.tables.topics_of(group):
            topic = broker.topics.get(name)
            if topic is None or (header["isOrder"] and not topic.order) or _is_given_up(broker, group, name):
                continue
            found = [stands_at(broker, group, name, queue_id) for queue_id in range(topic.write_queue_nums)]
            for _, row in found:
                behind += row["brokerOffset"] - row["consumerOffset"]
                read += row["consumerOffset"]
                if "pullOffset" in row:
                    row["pullOffset"] = 0  # RocketMQ says so here, and reckons with it
            tps = broker.rates.got_tps(group, name)
            of_group.append(write_table("offsetTable", found, {"consumeTps": tps}).decode())
        rows.append("{" + write(group).decode() + ":[" + ",".join(of_group) + "]}")
    text = '{"brokerAddr":%s,"consumeStatsList":[%s],"totalDiff":%d,"totalInflightDiff":%d}'
    return answer_to(request, body=(text % (write(broker.address).decode(), ",".join(rows), behind, -read)).encode())


def _is_given_up(broker: Broker, group: str, topic: str) -> bool:
    """Whether the group consumes now, and not this topic."""
    consuming = broker.clients.consumers.get(group)
    return consuming is not None and bool(consuming.subscriptions) and topic not in consuming.subscriptions


def ha_status(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """907: who follows the log, and how far."""
    end, most = broker.store.positions().wrote, broker.store.config.ha_max_gap_not_in_sync
    slaves = [
        {
            "addr": one.peer,
            "diff": end - one.acknowledged,
            "inSync": end - one.acknowledged < most,
            "slaveAckOffset": one.acknowledged,
            "transferFromWhere": one.sent,
            "transferredByteInSecond": broker.rates.sent_last_second.get(one.peer, 0),
        }
        for one in broker.followers()
    ]
    nobody = dict.fromkeys(
        ("lastReadTimestamp", "lastWriteTimestamp", "masterFlushOffset", "maxOffset", "transferredByteInSecond"), 0
    )
    body = {
        "haClientRuntimeInfo": {"activated": False, **nobody},
        "haConnectionInfo": slaves,
        "inSyncSlaveNums": sum(bool(one["inSync"]) for one in slaves),
        "master": True,
        "masterCommitLogMaxOffset": end,
    }
    return answer_to(request, body=write(body))


def queues_beside(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """354: how far queues are written to RocksDB beside their files; nothing is, so there is nothing to say (2)."""
    return answer_to(request, body=write({"checkStatus": 2}), remark=NOT_SET)


def cold_thresholds(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """2001: ``group=bytes`` lines, what groups may read a second from where no page is in memory. They are kept as long
    as the broker runs, and no read is slowed down, as in a RocketMQ without ``coldDataFlowControlEnable``.
    """
    for line in bytes(request.body).decode("utf-8", "replace").splitlines():
        if found := _THRESHOLD.fullmatch(line):
            broker.cold_thresholds[found[1]] = int(found[2])
    return answer_to(request)


def forget_threshold(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """2002: the group that the body names reads what all groups may."""
    broker.cold_thresholds.pop(bytes(request.body).decode("utf-8", "replace"), None)
    return answer_to(request)


def cold_reads(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """2003: what groups may read, and what they have read: that is not counted here, nor by a RocketMQ as it comes."""
    body = {
        "cgColdReadThreshold": _COLD_OF_GROUP,
        "configTable": broker.cold_thresholds,
        "globalAcc": 0,
        "globalColdReadThreshold": _COLD_OF_ALL,
        "runtimeTable": {},
    }
    return answer_to(request, body=write(body))


def pops_to_files(_broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """200056: what is popped goes from RocksDB to the revive topic. It is there already: RocksDB is not used."""
    return answer_to(request, remark=NOT_SET)


def read_ahead(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """2004: whether the system reads on in the log's files behind what is asked for (0, as it comes), or not (1)."""
    if not request.fields:
        raise Refused(Answer.SYSTEM_ERROR, "set commitlog readahead mode param error")
    text = request.fields.get(READ_AHEAD_MODE, "")
    if not _INTEGER.fullmatch(text) or int(text) not in range(-(1 << 31), 1 << 31):
        raise Refused(Answer.SYSTEM_ERROR, "set commitlog readahead mode failed")
    if int(text) not in (MADV_NORMAL, MADV_RANDOM):
        raise Refused(Answer.INVALID_PARAMETER, "set commitlog readahead mode param value error")
    broker.store.advise_log(int(text))
    return answer_to(request, remark=f"set commitlog readahead mode success, mode: {int(text)}")


ANSWERS: dict[int, Processor] = {
    354: queues_beside,
    2001: cold_thresholds,
    2002: forget_threshold,
    2003: cold_reads,
    2004: read_ahead,
    200056: pops_to_files,
    306: clean_queues,
    315: statistics,
    316: clean_topics,
    317: all_progress,
    329: delete_files,
    907: ha_status,
}

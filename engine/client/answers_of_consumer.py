"""Bodies of what brokers ask consumers and are told: offsets, how a consumer runs
(docs/protocol/broker.md#calls-to-consumers). Pure.

Java: ``ResetOffsetBody``, ``GetConsumerStatusBody``, ``ConsumerRunningInfo``, ``ConsumeMessageDirectlyResult``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.client.process_queue import ProcessQueue
from engine.client.routes import MessageQueue
from engine.codec.json_dialect import ObjectKey
from engine.remoting.answers import json_object


def offset_table(body: bytes | memoryview) -> dict[MessageQueue, int]:
    """RESET_CONSUMER_CLIENT_OFFSET: the offsets that queues get. Both spellings: a table by queue, a list of rows."""
    told = json_object(body).get("offsetTable")
    rows: list[tuple[Any, Any]] = []
    if isinstance(told, Mapping):
        rows = [(key.value, offset) for key, offset in told.items() if isinstance(key, ObjectKey)]
    elif isinstance(told, list):
        rows = [(row, row.get("offset")) for row in told if isinstance(row, Mapping)]
    return {
        MessageQueue(str(row.get("topic")), str(row.get("brokerName")), int(row.get("queueId", -1))): offset
        for row, offset in rows
        if isinstance(offset, int)
    }


def status_body(offsets: Mapping[MessageQueue, int | None]) -> bytes:
    """GET_CONSUMER_STATUS_FROM_CLIENT: where each queue is read."""
    rows = {queue: -1 if offset is None else offset for queue, offset in offsets.items()}
    return ('{"messageQueueTable":' + _by_queue(rows) + "}").encode()


def _by_queue(rows: Mapping[MessageQueue, Any]) -> str:
    return "{" + ",".join(f"{_text(queue.record())}:{_text(value)}" for queue, value in rows.items()) + "}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def running_info(
    properties: Mapping[str, str],
    queues: Iterable[tuple[ProcessQueue, int | None]],
    subscriptions: Sequence[Mapping[str, Any]],
) -> bytes:
    """GET_CONSUMER_RUNNING_INFO: settings, what is held of each queue with its offset (None: none), subscriptions."""
    table = {}
    for one, offset in queues:
        low = one.lowest
        table[one.queue] = {
            "cachedMsgCount": one.count,
            "cachedMsgMaxOffset": one.highest if one.count else 0,
            "cachedMsgMinOffset": low or 0,
            "cachedMsgSizeInMiB": one.size >> 20,
            "commitOffset": -1 if offset is None else offset,
            "droped": one.dropped,
            "lastConsumeTimestamp": one.consumed_at,
            "lastLockTimestamp": one.locked_at,
            "lastPullTimestamp": one.pulled_at,
            "locked": one.locked,
            "transactionMsgCount": 0,
            "transactionMsgMaxOffset": 0,
            "transactionMsgMinOffset": 0,
            "tryUnlockTimes": 0,
        }
    told = {
        "mqPopTable": "{}",
        "mqTable": _by_queue(table),
        "properties": _text(properties),
        "statusTable": "{}",
        "subscriptionSet": _text(subscriptions),
        "userConsumerInfo": "{}",
    }
    return ("{" + ",".join(f'"{name}":{text}' for name, text in told.items()) + "}").encode()


def consumed_directly(*, order: bool, result: str, remark: str | None, spent: int) -> bytes:
    """CONSUME_MESSAGE_DIRECTLY: what came of one message. ``spent`` is ms."""
    told = {"autoCommit": True, "consumeResult": result, "order": order, "remark": remark, "spentTimeMills": spent}
    return _text(told).encode()

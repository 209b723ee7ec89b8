"""Bodies of requests from brokers to consumers, and of the answers: offsets, how a consumer runs
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
    """RESET_CONSUMER_CLIENT_OFFSET: read the new offsets of queues. Both spellings: a table by queue, a list of
    rows.
    """
    table = json_object(body).get("offsetTable")
    rows: list[tuple[Any, Any]] = []
    if isinstance(table, Mapping):
        rows = [(key.value, offset) for key, offset in table.items() if isinstance(key, ObjectKey)]
    elif isinstance(table, list):
        rows = [(row, row.get("offset")) for row in table if isinstance(row, Mapping)]
    return {
        MessageQueue(str(row.get("topic")), str(row.get("brokerName")), int(row.get("queueId", -1))): offset
        for row, offset in rows
        if isinstance(offset, int)
    }


def status_body(offsets: Mapping[MessageQueue, int | None]) -> bytes:
    """GET_CONSUMER_STATUS_FROM_CLIENT: the next offset of each queue."""
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
    """GET_CONSUMER_RUNNING_INFO: settings, the messages held of each queue with its offset (None: none),
    subscriptions.
    """
    table = {}
    for process_queue, offset in queues:
        lowest_offset = process_queue.lowest
        table[process_queue.queue] = {
            "cachedMsgCount": process_queue.count,
            "cachedMsgMaxOffset": process_queue.highest if process_queue.count else 0,
            "cachedMsgMinOffset": lowest_offset or 0,
            "cachedMsgSizeInMiB": process_queue.size >> 20,
            "commitOffset": -1 if offset is None else offset,
            "droped": process_queue.dropped,
            "lastConsumeTimestamp": process_queue.consumed_at,
            "lastLockTimestamp": process_queue.locked_at,
            "lastPullTimestamp": process_queue.pulled_at,
            "locked": process_queue.locked,
            "transactionMsgCount": 0,
            "transactionMsgMaxOffset": 0,
            "transactionMsgMinOffset": 0,
            "tryUnlockTimes": 0,
        }
    members = {
        "mqPopTable": "{}",
        "mqTable": _by_queue(table),
        "properties": _text(properties),
        "statusTable": "{}",
        "subscriptionSet": _text(subscriptions),
        "userConsumerInfo": "{}",
    }
    return ("{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}").encode()


def consumed_directly(*, order: bool, result: str, remark: str | None, spent: int) -> bytes:
    """CONSUME_MESSAGE_DIRECTLY: the result of one message. ``spent`` is ms."""
    fields = {"autoCommit": True, "consumeResult": result, "order": order, "remark": remark, "spentTimeMills": spent}
    return _text(fields).encode()

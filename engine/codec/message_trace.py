"""Bodies of ``RMQ_SYS_TRACE_TOPIC``: what clients report about messages that they sent and received.

One body holds several traces, each ending with 0x02; its fields are separated by 0x01 (Java: ``TraceDataEncoder``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Action = Literal["send", "receive", "consumed", "endTransaction", "recall"]
"""``receive``: before a listener got the message; ``consumed``: after it."""
_FIELD, _TRACE = "\x01", "\x02"
_MESSAGE_TYPES = ("normal", "half", "commit", "delayed", "ordered")
_RESULTS = ("success", "timeout", "exception", "returnedNull", "failed")
_NONE = {"", "null"}


@dataclass(frozen=True, slots=True)
class MessageTrace:
    """A message trace. Times in ms; None and "" where the trace has no value.

    ``message_id``: the unique key. ``request_id`` joins ``receive`` and ``consumed``. ``result`` of a listener, or the
    state of a transaction.
    """

    action: Action
    message_id: str
    time: int | None = None
    group: str = ""
    topic: str = ""
    keys: str = ""
    broker: str = ""
    cost_ms: int | None = None
    is_success: bool | None = None
    result: str = ""
    message_type: str = ""
    retry_times: int | None = None
    request_id: str = ""
    offset_message_id: str = ""


def decode(body: bytes) -> Iterator[MessageTrace]:
    """Yield the traces of a body; those of unknown kinds and with too few fields are passed over."""
    for text in body.decode("utf-8", "replace").split(_TRACE):
        fields = ["" if field in _NONE else field for field in text.split(_FIELD)]
        read = _READERS.get(fields[0])
        if read is not None and len(fields) >= read[0]:
            yield read[1](fields)


def _send(fields: list[str]) -> MessageTrace:
    # Pub, time, region, group, topic, id, tags, keys, broker, body length, cost, type, then: offset id and success;
    # success alone in releases before 4.3.
    success = fields[13] if len(fields) > 13 else fields[12]
    return MessageTrace(
        "send",
        fields[5],
        _number(fields[1]),
        fields[3],
        fields[4],
        fields[7],
        fields[8],
        _number(fields[10]),
        success == "true",
        message_type=_named(_MESSAGE_TYPES, fields[11]),
        offset_message_id=fields[12] if len(fields) > 13 else "",
    )


def _receive(fields: list[str]) -> MessageTrace:
    # SubBefore, time, region, group, request id, message id, retry times, keys
    return MessageTrace(
        "receive",
        fields[5],
        _number(fields[1]),
        fields[3],
        keys=fields[7],
        retry_times=_number(fields[6]),
        request_id=fields[4],
    )


def _consumed(fields: list[str]) -> MessageTrace:
    # SubAfter, request id, message id, cost, success, keys, result; since 4.5 also time and group
    return MessageTrace(
        "consumed",
        fields[2],
        _number(fields[7]) if len(fields) > 7 else None,
        fields[8] if len(fields) > 8 else "",
        keys=fields[5],
        cost_ms=_number(fields[3]),
        is_success=fields[4] == "true",
        result=_named(_RESULTS, fields[6]) if len(fields) > 6 else "",
        request_id=fields[1],
    )


def _end_transaction(fields: list[str]) -> MessageTrace:
    # EndTransaction, time, region, group, topic, id, tags, keys, broker, type, transaction id, state, from a check
    return MessageTrace(
        "endTransaction",
        fields[5],
        _number(fields[1]),
        fields[3],
        fields[4],
        fields[7],
        fields[8],
        result=fields[11],
        message_type=_named(_MESSAGE_TYPES, fields[9]),
    )


def _recall(fields: list[str]) -> MessageTrace:
    # Recall, time, region, group, topic, id, success
    return MessageTrace("recall", fields[5], _number(fields[1]), fields[3], fields[4], is_success=fields[6] == "true")


_READERS = {
    "Pub": (13, _send),
    "SubBefore": (8, _receive),
    "SubAfter": (6, _consumed),
    "EndTransaction": (13, _end_transaction),
    "Recall": (7, _recall),
}
"""Kind of trace → its fewest fields, and its reader."""


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _named(names: tuple[str, ...], text: str) -> str:
    number = _number(text)
    return names[number] if number is not None and 0 <= number < len(names) else text

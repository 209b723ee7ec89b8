"""Fields of the request filter, in the language of the log's filter. No Qt.

``properties.NAME`` is a header field of the request under its long name (``properties.consumerGroup``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.query import Filter, parse, quote
from engine.query.fields import FieldSpec, Kind
from engine.remoting.codes import answer_name
from viewer.requests.request_log import ANSWER, REQUEST, ShownRow


def _spec(name: str, kind: Kind, about: str, read: Callable[[ShownRow], Any], words: tuple[str, ...] = ()) -> FieldSpec:
    return FieldSpec(name, kind, about, read, read, None, words)


def _answer(row: ShownRow) -> str | None:
    code = row.exchange.answer_code
    return None if code is None else answer_name(code)


_ALL = (
    _spec("time", "time", "when the request was seen", lambda row: row.time),
    _spec("request", "text", "the request's name", lambda row: row.name or None),
    _spec("code", "number", "the request's code", lambda row: row.code if row.name else None),
    _spec("answer", "text", "the answer's name", _answer),
    _spec("answerCode", "number", "the answer's code", lambda row: row.exchange.answer_code),
    _spec("ms", "number", "milliseconds until the answer", lambda row: None if row.ms is None else round(row.ms)),
    _spec("topic", "text", "the topic", lambda row: row.topic or None),
    _spec("queueId", "number", "the queue", lambda row: row.queue_id),
    _spec("offset", "number", "the queue offset", lambda row: row.offset),
    _spec("group", "text", "the group", lambda row: row.group or None),
    _spec("client", "text", "the short name of the client", lambda row: row.client),
    _spec("peer", "text", "the client's address", lambda row: row.peer or None),
    _spec("connection", "number", "the connection", lambda row: row.exchange.connection),
    _spec("server", "text", "who was asked", lambda row: row.exchange.server, ("broker", "namesrv")),
    _spec("direction", "text", "who asks; of a frame who sent it", lambda row: row.direction, ("in", "out")),
    _spec("opaque", "number", "what ties the answer to it", lambda row: row.opaque),
    _spec(
        "frame",
        "text",
        "which half of an exchange a frame is; none for a row that is both",
        lambda row: getattr(row, "frame", None),
        (REQUEST, ANSWER),
    ),
    _spec("bytes", "number", "bytes of both frames; of a frame its own", lambda row: row.bytes),
    _spec("oneWay", "condition", "no answer is wanted", lambda row: row.exchange.one_way),
    _spec("held", "condition", "a pull that was kept until something came", lambda row: row.exchange.held),
    _spec("waits", "condition", "its answer is still to come", lambda row: row.exchange.waits),
    _spec("broken", "condition", "bytes that are no frame", lambda row: row.exchange.broken),
)
FIELDS: dict[str, FieldSpec] = {spec.name: spec for spec in _ALL}
"""All fields by name."""
NOT_OK = 'answerCode != 0 and answer != "PULL_NOT_FOUND"'
PILLS = {
    "not0": f"({NOT_OK}) or broken",
    "held": "held",
    "sends": 'request startswith "SEND"',
    "beats": 'not (request = "HEART_BEAT")',
}
"""Filters of the buttons beside the field."""


def request_filter(text: str, now_ms: int | None = None) -> Filter:
    """Parse a filter. Raises :class:`engine.errors.BadFilter` with the position of the error."""
    return parse(text, now_ms=now_ms, fields=FIELDS)


def term_of(name: str, value: object) -> str:
    """Return the condition that a field of :data:`FIELDS` has this value."""
    if value is None:
        return f"{name} is null"
    return f"{name} = {quote(value)}" if isinstance(value, str) else f"{name} = {value}"

"""Message objects as columns, for tests of functions that take columns."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from engine.codec.encode import Message, property_text
from engine.codec.message_columns import MessageColumns


def columns_of(messages: Sequence[Message]) -> MessageColumns:
    """Return every field of ``messages`` but their store hosts."""
    topics, hosts = (
        [*dict.fromkeys(names)] for names in ([m.topic for m in messages], [m.born_host for m in messages])
    )
    texts = [property_text(message) for message in messages]
    born = [message.born_timestamp for message in messages]
    return MessageColumns(
        topics,
        b"".join(m.body for m in messages),
        array("i", [len(m.body) for m in messages]),
        b"".join(texts),
        array("i", map(len, texts)),
        array("i", [m.queue_id for m in messages]),
        array("i", [topics.index(m.topic) for m in messages]),
        array("i", [m.flag for m in messages]),
        array("i", [m.sys_flag for m in messages]),
        None if None in born else array("q", born),
        array("i", [hosts.index(m.born_host) for m in messages]),
        None,
        array("i", [m.reconsume_times for m in messages]),
        array("q", [m.prepared_transaction_offset for m in messages]),
        hosts,
    )

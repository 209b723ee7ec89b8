"""Table of every request that a broker answers, by the modules that answer it (docs/protocol/broker.md).

Java: ``BrokerController.registerProcessor``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.broker import (
    ack_message,
    admin_broker,
    admin_groups,
    admin_lite_topics,
    admin_topics,
    assignments,
    clients,
    consumer_offsets,
    lite_topics,
    peek_message,
    plain_acl,
    pop_message,
    pull_message,
    query_message,
    queue_locks,
    recall_message,
    reply_message,
    send_message,
    static_topics,
    transactions,
    users,
)
from engine.releases import NAMES
from engine.remoting.codes import BROKER, NOT_SET, Refused, RequestCode, ResponseCode, by_code, unknown_requests
from engine.remoting.connection import Connection, not_supported
from engine.remoting.frame import Command
from engine.system_names import is_system_topic

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


MODULES = (
    ack_message,
    admin_broker,
    admin_groups,
    admin_lite_topics,
    admin_topics,
    assignments,
    clients,
    consumer_offsets,
    lite_topics,
    peek_message,
    plain_acl,
    pop_message,
    pull_message,
    query_message,
    queue_locks,
    recall_message,
    reply_message,
    send_message,
    transactions,
    users,
)
HANDLERS: dict[int, Processor] = {code: answer for module in MODULES for code, answer in module.HANDLERS.items()}
_REQUESTS = by_code(BROKER)
_UNKNOWN = {release: unknown_requests(release) for release in NAMES}
"""Requests that a release does not know."""
_SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
    }
)
_PULLS = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})
DECLARES_TOPICS = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.DELETE_TOPIC_IN_BROKER_LIST,
    }
)
"""Requests of administrators that change topics: answered once name servers know the change."""
_DECLARES = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_TOPIC_IN_BROKER,
    }
)
_DECLARES_ANY = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    }
)
"""Requests whose duration is counted."""
_DECIDES, _RESETS = RequestCode.END_TRANSACTION, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
_BUSY = "[REJECTREQUEST]system busy, start flow control for a while"
_AT_THE_MASTER = "Can't modify topic or subscription group from slave broker, please execute it from master broker."


def answer(broker: Broker, request: Command, connection: Connection) -> Command | None:
    """Return the answer to ``request``; None if it comes later, or never. Raises
    :class:`engine.remoting.codes.Refused`.
    """
    if broker.access is not None:
        broker.access.check(request, connection.peer)
    processor = HANDLERS.get(request.code)
    if processor is None or request.code in _UNKNOWN[broker.store.release]:
        return not_supported(request)
    if broker.is_slave:
        _refuse_on_slave(broker, request.code)
    header: Header = _REQUESTS[request.code].read(request)
    if broker.static_topics.mappings and request.code in static_topics.TRANSLATED:
        translated = static_topics.translate(broker, request, header, connection)
        if translated is None:
            return None
        header = translated
    if request.code not in _DECLARES_ANY:
        return processor(broker, request, header, connection)
    start, succeeded = time.monotonic(), False
    try:
        response = processor(broker, request, header, connection)
        succeeded = True
        return response
    finally:
        of_own = is_system_topic(str(header.get("topic") or "")) if request.code in DECLARES_TOPICS else None
        broker.stats.declaring[succeeded, of_own].add(int((time.monotonic() - start) * 1000))


def _refuse_on_slave(broker: Broker, code: int) -> None:
    """Raises :class:`Refused` for requests that a slave refuses without looking at them. Puts of 4.9 are not among
    them: the slave's store refuses them. Nor are topics and groups of 5.x: a slave declares them, and forgets
    them when it copies its master's.
    """
    since_5 = broker.store.rules.major >= 5
    if code == _DECIDES:
        raise Refused(ResponseCode.SLAVE_NOT_AVAILABLE, NOT_SET)
    if since_5 and (code in _SENDS or (code in _PULLS and not broker.config.slave_read)):
        raise Refused(ResponseCode.SYSTEM_BUSY, _BUSY)
    if since_5 and code == _RESETS:
        raise Refused(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
    if not since_5 and code in _DECLARES:
        raise Refused(ResponseCode.SYSTEM_ERROR, _AT_THE_MASTER)

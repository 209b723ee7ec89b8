"""Connected clients, and which groups read which topics (docs/protocol/broker.md#admin). Java:
``AdminBrokerProcessor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.clients import Member
from engine.broker.json_bodies import write
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


def consumer_connections(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_CONSUMER_CONNECTION_LIST: the clients of a group, and its subscriptions."""
    name = str(header["consumerGroup"])
    group = broker.clients.consumers.get(name)
    if group is None:
        raise Refused(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
    body = {
        "connectionSet": _connections(group.members),
        "consumeFromWhere": group.start,
        "consumeType": group.kind,
        "messageModel": group.model,
        "subscriptionTable": {topic: subscription.record() for topic, subscription in group.subscriptions.items()},
    }
    return answer_to(request, body=write(body))


def producer_connections(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_PRODUCER_CONNECTION_LIST: the clients of a producer group."""
    name = str(header["producerGroup"])
    members = broker.clients.producers.get(name)
    if not members:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
    return answer_to(request, body=write({"connectionSet": _connections(members)}))


def all_producers(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_ALL_PRODUCER_INFO: connected producers by group."""
    producers = {
        group: [
            {
                "clientId": member.client_id,
                "language": member.language,
                "lastUpdateTimestamp": member.heartbeat_ms,
                "remoteIP": connection.peer,
                "version": member.version,
            }
            for connection, member in members.items()
        ]
        for group, members in broker.clients.producers.items()
    }
    return answer_to(request, body=write({"data": producers}))


def _connections(members: Mapping[Connection, Member]) -> list[dict[str, Any]]:
    return [
        {
            "clientAddr": connection.peer,
            "clientId": member.client_id,
            "language": member.language,
            "version": member.version,
        }
        for connection, member in members.items()
    ]


def groups_of_topic(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_TOPIC_CONSUME_BY_WHO: groups that subscribe to a topic now, or have offsets in it."""
    topic, tables = str(header["topic"]), broker.store.tables
    online = [name for name, group in broker.clients.consumers.items() if topic in group.subscriptions]
    groups_with_offsets = [name for name in tables.groups_with_offsets() if topic in tables.topics_of(name)]
    return answer_to(request, body=write({"groupList": list(dict.fromkeys(online + groups_with_offsets))}))


def topics_of_group(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_TOPICS_BY_CONSUMER: topics that a group has offsets in."""
    topics = broker.store.tables.topics_of(str(header["group"]))
    return answer_to(request, body=write({"brokerAddr": broker.address, "topicList": topics}))


ANSWERS: dict[int, Processor] = {
    RequestCode.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: producer_connections,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: groups_of_topic,
    RequestCode.GET_ALL_PRODUCER_INFO: all_producers,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
}

"""Lite topics as an administrator looks at them: figures, subscribers, and waiting pops (docs/protocol/broker.md#lite).

Java: ``LiteManagerProcessor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.broker.json_bodies import write
from engine.broker.lite_topics import BIND_TOPIC, is_lite, waiting_key, wake_pop
from engine.broker.query_message import store_time_at
from engine.codec.config_tables import SubscriptionGroup, TopicConfig
from engine.codec.lite_topics import lite_queue_name, split_lite_queue
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.system_names import LMQ_PREFIX

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_EXPIRATION = "lite.topic.expiration"
"""Attribute of a topic: minutes."""
_MAX_LISTED_QUEUES = 10_000
_MAX_LIGHT_QUEUES = 20_000
"""Default of ``maxLmqConsumeQueueNum``."""


def _lite_queues(broker: Broker) -> list[str]:
    return [name for name in broker.store.parts.queues.topics() if split_lite_queue(name) is not None]


def _get_parent_topic(broker: Broker, name: str) -> TopicConfig:
    declared = broker.topics.get(name)
    if declared is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"Topic [{name}] not exist.")
    if not is_lite(declared):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"Topic [{name}] type not match.")
    return declared


def _expiration_minutes(topic: TopicConfig) -> int:
    return int(topic.attributes.get(_EXPIRATION, "-1"))


def _groups_by_topic(broker: Broker) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, group in sorted(broker.store.tables.groups().items()):
        if (topic := group.attributes.get(BIND_TOPIC)) is not None:
            groups.setdefault(topic, []).append(name)
    return groups


def broker_info(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_LITE_INFO: figures about all lite topics."""
    tables, queues = broker.store.tables, broker.store.parts.queues.topics()
    body = {
        "cqTableSize": len(broker.store.parts.queues),
        "currentLmqNum": sum(name.startswith(LMQ_PREFIX) for name in queues),
        "eventMapSize": len(broker.lite.clients),
        "groupMeta": _groups_by_topic(broker),
        "liteSubscriptionCount": sum(len(subscription.queues) for subscription in broker.lite.clients.values()),
        "maxLmqNum": _MAX_LIGHT_QUEUES,
        "offsetTableSize": sum(len(tables.topics_of(group)) for group in tables.groups_with_offsets()),
        "orderInfoCount": len(broker.lite.orders),
        "storeType": "default",
        "topicMeta": {topic.name: _expiration_minutes(topic) for topic in tables.topics().values() if is_lite(topic)},
    }
    return answer_to(request, body=write(body))


def topic_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_PARENT_TOPIC_INFO: expiry, groups and number of lite topics of a topic."""
    topic = _get_parent_topic(broker, str(header["topic"]))
    light_queues = [name for name in _lite_queues(broker) if (split_lite_queue(name) or ("",))[0] == topic.name]
    body: dict[str, object] = {
        "liteTopicCount": len(light_queues),
        "topic": topic.name,
        "ttl": _expiration_minutes(topic),
    }
    body["lmqNum"] = sum(name.startswith(LMQ_PREFIX) for name in broker.store.parts.queues.topics())
    if topic.name in (groups := _groups_by_topic(broker)):
        body["groups"] = groups[topic.name]
    return answer_to(request, body=write(body))


def lite_topic_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_LITE_TOPIC_INFO: bounds and subscribers of a lite topic."""
    topic, lite_topic = _get_parent_topic(broker, str(header["parentTopic"])), str(header["liteTopic"])
    queue = lite_queue_name(topic.name, lite_topic)
    end = max(broker.store.max_offset_in_queue(queue, 0), 0)
    body = {
        "liteTopic": lite_topic,
        "parentTopic": topic.name,
        "shardingToBroker": True,
        "subscriber": [
            {"clientId": client_id, "group": subscription.group}
            for client_id, subscription in broker.lite.subscribers(queue)
        ],
        "topicOffset": {
            "lastUpdateTimestamp": store_time_at(broker, queue, 0, end - 1) if end else 0,
            "maxOffset": end,
            "minOffset": max(broker.store.min_offset_in_queue(queue, 0), 0) if end else 0,
        },
    }
    return answer_to(request, body=write(body))


def _get_group(broker: Broker, name: str) -> SubscriptionGroup:
    declared = broker.topics.group(name)
    if declared is None:
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group [{name}] not exist.")
    return declared


def client_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_LITE_CLIENT_INFO: the light queues of a client."""
    topic = _get_parent_topic(broker, str(header["parentTopic"]))
    group, client_id = _get_group(broker, str(header["group"])), str(header["clientId"])
    if group.attributes.get(BIND_TOPIC) != topic.name:
        words = f"Subscription [{group.name}]-[{topic.name}] not match."
        raise Refused(ResponseCode.INVALID_PARAMETER, words)
    subscription = broker.lite.clients.get(client_id)
    body: dict[str, object] = {
        "clientId": client_id,
        "group": group.name,
        "lastAccessTime": subscription.last_pop_ms if subscription else -1,
        "lastConsumeTime": 0,
        "liteTopicCount": len(subscription.queues) if subscription else -1,
        "parentTopic": topic.name,
    }
    if subscription:
        max_listed = min(int(header["maxCount"] or 0), _MAX_LISTED_QUEUES)
        body["liteTopicSet"] = list(subscription.queues)[:max_listed]
    return answer_to(request, body=write(body))


def group_info(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_LITE_GROUP_INFO: how far a group is in a lite topic, or in all of its topic."""
    group, lite_topic = _get_group(broker, str(header["group"])), str(header["liteTopic"] or "")
    if not (topic := group.attributes.get(BIND_TOPIC)):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"Group [{group.name}] is not a LITE group.")
    body: dict[str, object] = {"group": group.name, "parentTopic": topic}
    body |= {"totalLagCount": -1, "earliestUnconsumedTimestamp": -1}
    if lite_topic:
        body["liteTopic"] = lite_topic
    queue = lite_queue_name(topic, lite_topic)
    end = broker.store.max_offset_in_queue(queue, 0)
    committed = broker.store.tables.consumer_offset(group.name, queue, 0)
    if end > 0:
        body |= {"totalLagCount": 0, "earliestUnconsumedTimestamp": 0}
    if end > 0 and committed >= 0:
        last_read_time = store_time_at(broker, queue, 0, committed - 1) if committed else 0
        body |= {
            "totalLagCount": end - committed,
            "earliestUnconsumedTimestamp": store_time_at(broker, queue, 0, committed),
            "liteTopicOffsetWrapper": {
                "brokerOffset": end,
                "consumerOffset": committed,
                "lastTimestamp": last_read_time,
                "pullOffset": 0,
            },
        }
    return answer_to(request, body=write(body), remark=NOT_SET)


def trigger_dispatch(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """TRIGGER_LITE_DISPATCH: retry the pops of a client, or of a group, that wait."""
    group = _get_group(broker, str(header["group"]))
    if not group.attributes.get(BIND_TOPIC):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"Group [{group.name}] is not a LITE group.")
    for client_id, subscription in list(broker.lite.clients.items()):
        if subscription.group == group.name and str(header["clientId"] or client_id) == client_id:
            wake_pop(broker, waiting_key(client_id, group.name))
    return answer_to(request, remark=NOT_SET)


HANDLERS: dict[int, Processor] = {
    RequestCode.GET_BROKER_LITE_INFO: broker_info,
    RequestCode.GET_PARENT_TOPIC_INFO: topic_info,
    RequestCode.GET_LITE_TOPIC_INFO: lite_topic_info,
    RequestCode.GET_LITE_CLIENT_INFO: client_info,
    RequestCode.GET_LITE_GROUP_INFO: group_info,
    RequestCode.TRIGGER_LITE_DISPATCH: trigger_dispatch,
}

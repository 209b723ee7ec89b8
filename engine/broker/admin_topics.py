"""Topics as an administrator declares, deletes and counts them (docs/protocol/broker.md#admin). Java:
``AdminBrokerProcessor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.attributes import FIXED_OF_TOPICS, changed_attributes, topic_attributes
from engine.broker.json_bodies import (
    as_number,
    as_objects,
    as_text,
    read_object,
    read_object_or_none,
    write,
    write_table,
)
from engine.broker.query_message import store_time_at
from engine.broker.registration import topic_row
from engine.broker.static_topics import put_mapping
from engine.broker.table_pages import PagedTable, table_answer
from engine.broker.topics import wrong_name
from engine.codec.config_tables import TopicConfig
from engine.codec.pop import retry_topic
from engine.errors import UsageError
from engine.releases import JsonParser, Release
from engine.remoting.codes import NOT_SET, Refused, RequestCode, ResponseCode, invalid
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.config_tables import TOPICS

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_TOPIC_PAGES = PagedTable(TOPICS, "topicConfigTable", "topicSeq", "maxTopicNum", "totalTopicNum")
FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


def declare(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_TOPIC: create a topic, or change it."""
    name = str(header["topic"])
    _check_name(broker, name)
    kind = "SINGLE_TAG" if header["topicFilterType"] is None else str(header["topicFilterType"])
    if kind not in FILTER_TYPES:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"topicFilterType = [{kind}] value invalid")
    old = broker.topics.get(name)
    attributes = (
        {} if broker.store.rules.major < 5 else _attributes(old, str(header["attributes"] or ""), broker.store.release)
    )
    topic = TopicConfig(
        name,
        int(header["readQueueNums"]),
        int(header["writeQueueNums"]),
        int(header["perm"]),
        bool(header["order"]),
        int(header["topicSysFlag"] or 0),
        kind,
        attributes,
    )
    try:
        broker.topics.declare(topic)
    except UsageError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    return answer_to(request, remark=NOT_SET)


def declare_static(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_STATIC_TOPIC: declare a static topic, with the logical queues that this broker knows. A mapping
    that is refused leaves the declared topic, as in RocketMQ.
    """
    name, kind = str(header["topic"]), str(header["topicFilterType"])
    _check_name(broker, name)
    if kind not in FILTER_TYPES:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"topicFilterType = [{kind}] value invalid")
    old = broker.topics.get(name)
    numbers = int(header["readQueueNums"]), int(header["writeQueueNums"]), int(header["perm"])
    attributes = old.attributes if old else {}
    topic = TopicConfig(name, *numbers, False, int(header["topicSysFlag"] or 0), kind, attributes)
    try:
        broker.topics.declare(topic)
    except UsageError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    put_mapping(broker, request, force=bool(header["force"]))
    return answer_to(request, remark=NOT_SET)


def _check_name(broker: Broker, name: str) -> None:
    """Check a topic's name. Raises :class:`Refused` for a topic that administrators cannot declare."""
    if (wrong := wrong_name(name, broker.store.release)) is not None:
        raise Refused(invalid(broker.store.release), wrong)
    if broker.topics.is_own(name):
        raise Refused(invalid(broker.store.release), f"The topic[{name}] is conflict with system topic.")


def declare_many(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_TOPIC_LIST: declare several topics, all of them or none."""
    topics, parser = [], broker.store.rules.json_parser
    for row in as_objects(read_object(request.body).get("topicConfigList"), "topicConfigList"):
        name = as_text(row.get("topicName"), parser) or ""
        _check_name(broker, name)
        old = broker.topics.get(name)
        attributes = row.get("attributes")
        text = (
            ",".join(f"{key}={value}" for key, value in attributes.items()) if isinstance(attributes, Mapping) else ""
        )
        reads, writes, perm, flag = (
            as_number(row.get(key), f"topic {name}: {key}", default, parser)
            for key, default in (("readQueueNums", 16), ("writeQueueNums", 16), ("perm", 6), ("topicSysFlag", 0))
        )
        topics.append(
            TopicConfig(
                name,
                reads,
                writes,
                perm,
                bool(row.get("order")),
                flag,
                str(row.get("topicFilterType") or "SINGLE_TAG"),
                _attributes(old, text, broker.store.release),
            )
        )
    try:
        broker.topics.declare(*topics)
    except UsageError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    return answer_to(request, remark=NOT_SET)


def _attributes(old: TopicConfig | None, text: str, release: Release) -> dict[str, str]:
    """Apply ``+key=value,-key`` to the attributes of the old topic. Raises :class:`Refused`. Java:
    ``AttributeParser``, ``AttributeUtil``.
    """
    changes: dict[str, str | None] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        if (sign := "+" if equals else "-") not in key:
            action = "add/alter" if equals else "delete"
            raise Refused(ResponseCode.SYSTEM_ERROR, f"{action} attribute format is wrong: {key}")
        if key in changes:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"key duplication: {key}")
        if len(key) < len(sign) + 1:
            raise Refused(ResponseCode.SYSTEM_ERROR, "kv string format wrong.")
        changes[key] = value if equals else None
    attributes = changed_attributes(
        old.attributes if old else {}, changes, topic_attributes(release), FIXED_OF_TOPICS if old else frozenset()
    )
    if attributes.get("message.type") == "MIXED":
        raise Refused(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")
    return attributes


def delete(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """DELETE_TOPIC_IN_BROKER: delete a topic with its queues, its offsets and the retry topics of its pops; its
    messages stay in the log.
    """
    name = str(header["topic"] or "")
    if not name.strip():
        raise Refused(invalid(broker.store.release), "The specified topic is blank.")
    if broker.store.rules.major < 5 and (wrong := wrong_name(name, broker.store.release)) is not None:
        raise Refused(ResponseCode.SYSTEM_ERROR, wrong)
    if broker.topics.is_own(name):
        raise Refused(invalid(broker.store.release), f"The topic[{name}] is conflict with system topic.")
    _delete(broker, name)
    broker.topics.changed([])
    return answer_to(request)


def _delete(broker: Broker, name: str) -> None:
    groups = broker.store.tables.groups_of(name)
    retry_topics = [retry_topic(name, group, v2=v2) for group in groups for v2 in (False, True)]
    broker.static_topics.delete(name)
    broker.store.delete_topics([name, *(retry for retry in retry_topics if broker.topics.get(retry) is not None)])
    broker.forget_readers(topics=[name, *retry_topics])


def delete_many(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """DELETE_TOPIC_IN_BROKER_LIST: delete several topics, each as with 215; none if one cannot be deleted."""
    names = as_names(request.body, "topicList", "topic", broker.store.rules.json_parser)
    for name in names:
        if broker.topics.is_own(name):
            raise Refused(invalid(broker.store.release), f"The topic[{name}] is conflict with system topic.")
    for name in names:
        _delete(broker, name)
    broker.topics.changed([])
    return answer_to(request)


def as_names(body: bytes | memoryview, member: str, kind: str, parser: JsonParser) -> list[str]:
    """Return the names in a body's list, each once. Raises :class:`Refused` for a list that is empty or has a blank
    name.
    """
    names = read_object_or_none(body).get(member)
    if not names:
        raise Refused(ResponseCode.INVALID_PARAMETER, f"The specified {kind} list is blank.")
    if not isinstance(names, list):
        names = [names]
    texts = [as_text(name, parser) or "" for name in names]
    if not all(text.strip() for text in texts):
        raise Refused(ResponseCode.INVALID_PARAMETER, f"The specified {kind} is blank.")
    return list(dict.fromkeys(texts))


def all_topics(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_ALL_TOPIC_CONFIG: the table of topics, as its file has it, or a page of it."""
    mappings = broker.static_topics.mappings
    extra_members: dict[str, Any] = {}
    if mappings:
        extra_members = {
            "mappingDataVersion": dict(broker.static_topics.data_version),
            "topicQueueMappingDetailMap": {name: mapping.record() for name, mapping in mappings.items()},
            "topicQueueMappingInfoMap": {},
        }
    body, fields = table_answer(broker, header, _TOPIC_PAGES, extra_members, extra_rows="topicQueueMappingDetailMap")
    return answer_to(request, body=body, fields=fields)


def one_topic(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_TOPIC_CONFIG: a declared topic; with ``lo`` also the mapping of a static topic."""
    topic = broker.topics.get(str(header["topic"]))
    if topic is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {header['topic']}")
    mapping = broker.static_topics.mappings.get(topic.name) if header["lo"] else None
    detail = {} if mapping is None else {"mappingDetail": mapping.record()}
    return answer_to(request, body=write({**topic_row(topic), **detail}))


def statistics(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_TOPIC_STATS_INFO: bounds of every write queue, and the time of its last message."""
    name = str(header["topic"])
    topic = broker.topics.get(name)
    if topic is None:
        raise Refused(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    rows = []
    broker.store.services.dispatch_now()
    for queue_id in range(topic.write_queue_nums):
        min_offset = max(broker.store.min_offset_in_queue(name, queue_id), 0)
        end = max(broker.store.max_offset_in_queue(name, queue_id), 0)
        last_timestamp = store_time_at(broker, name, queue_id, end - 1) if end > 0 else 0
        bounds = {"lastUpdateTimestamp": last_timestamp, "maxOffset": end, "minOffset": min_offset}
        rows.append((queue_key(broker, name, queue_id), bounds))
    extra_members = {} if broker.store.rules.major < 5 else {"topicPutTps": broker.rates.put_tps(name)}
    return answer_to(request, body=write_table("offsetTable", rows, extra_members))


def queue_key(broker: Broker, topic: str, queue_id: int) -> dict[str, object]:
    """Return a queue as tables name it."""
    return {"brokerName": broker.config.broker_name, "queueId": queue_id, "topic": topic}


def system_topics(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_SYSTEM_TOPIC_LIST_FROM_BROKER: the broker's own topics."""
    names = broker.topics.own_names()
    return answer_to(request, body=write({"topicList": sorted(names)}))


HANDLERS: dict[int, Processor] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: declare,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: declare_many,
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: declare_static,
    RequestCode.GET_ALL_TOPIC_CONFIG: all_topics,
    RequestCode.GET_TOPIC_STATS_INFO: statistics,
    RequestCode.DELETE_TOPIC_IN_BROKER: delete,
    RequestCode.DELETE_TOPIC_IN_BROKER_LIST: delete_many,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: system_topics,
    RequestCode.GET_TOPIC_CONFIG: one_topic,
}

"""Administration of consumer groups: declare and delete them, read their settings and offsets
(docs/protocol/broker.md#admin).

Java: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.admin_topics import as_names, queue_key
from engine.broker.attributes import changed_attributes, group_attributes
from engine.broker.json_bodies import as_number, as_objects, as_text, read_object, write, write_table
from engine.broker.query_message import store_time_at
from engine.broker.table_pages import PagedTable, table_answer
from engine.broker.topics import wrong_group_name
from engine.errors import UsageError
from engine.remoting.codes import Refused, RequestCode, ResponseCode, WrongRequest, invalid
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.store.config_tables import GROUPS

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_GROUP_PAGES = PagedTable(GROUPS, "subscriptionGroupTable", "groupSeq", "maxGroupNum", "totalGroupNum")
_SWITCHES = frozenset(
    {
        "consumeEnable",
        "consumeFromMinEnable",
        "consumeBroadcastEnable",
        "consumeMessageOrderly",
        "notifyConsumerIdsChangedEnable",
    }
)


def declare(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: create a group, or change it; the body is its row."""
    _declare(broker, read_object(request.body))
    return answer_to(request)


def _group_name(broker: Broker, row: Mapping[Any, Any]) -> str | None:
    """Return the group's name in a row. Raises :class:`Refused` if the store's release allows no group of that name."""
    rules = broker.store.rules
    name = as_text(row.get("groupName"), rules.json_parser)
    if not rules.nameless_groups and (fault := wrong_group_name(name or "", rules.longest_group_letters)) is not None:
        raise Refused(invalid(broker.store.release), fault)
    return name


def _declare(broker: Broker, row: Mapping[Any, Any]) -> None:
    row = {key: value for key, value in row.items() if value is not None and (value != "" or key == "groupName")}
    parser = broker.store.rules.json_parser
    name = _group_name(broker, row)
    if name is None:
        raise WrongRequest("expected a groupName")
    row["groupName"] = name
    retry_queues = as_number(row.get("retryQueueNums"), "retryQueueNums", 1, parser)
    max_retries = as_number(row.get("retryMaxTimes"), "retryMaxTimes", 16, parser)
    for key in _SWITCHES & row.keys():
        if not isinstance(row[key], int):
            raise WrongRequest(f"{key}: expected true or false, found {row[key]!r}")
        row[key] = row[key] == 1
    if broker.store.rules.tables_of_5:
        row["attributes"] = _attributes(broker, name, row.get("attributes"))
    row |= {
        key: number for key, number in (("retryQueueNums", retry_queues), ("retryMaxTimes", max_retries)) if key in row
    }
    try:
        broker.store.tables.create_group(
            name, retry_queues=retry_queues, retry_max_times=max_retries, extra_members=row
        )
    except UsageError as error:
        raise WrongRequest(str(error)) from error


def _attributes(broker: Broker, name: str, changes: Any) -> dict[str, str]:
    """Return the group's attributes with the changes of a request. Raises :class:`Refused`."""
    declared = broker.store.tables.groups().get(name)
    texts = {str(word): str(value) for word, value in changes.items()} if isinstance(changes, Mapping) else {}
    rules = group_attributes(broker.store.release)
    return changed_attributes(declared.attributes if declared else {}, texts, rules)


def delete(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """DELETE_SUBSCRIPTIONGROUP: delete a group; with ``cleanOffset`` its offsets, too."""
    tables, name = broker.store.tables, str(header["groupName"])
    tables.delete_group(name, offsets=bool(header["cleanOffset"]))
    broker.forget_readers(group=name)
    return answer_to(request)


def delete_many(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """DELETE_SUBSCRIPTIONGROUP_LIST: delete several groups, each as DELETE_SUBSCRIPTIONGROUP does."""
    parser = broker.store.rules.json_parser
    names = as_names(request.body, "groupNameList", "group name", parser)
    cleans_offsets = read_object(request.body).get("cleanOffset") is True
    for name in names:
        broker.store.tables.delete_group(name, offsets=cleans_offsets)
        broker.forget_readers(group=name)
    return answer_to(request)


def all_groups(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG: the table of groups, as its file has it, or a page of it."""
    body, fields = table_answer(broker, header, _GROUP_PAGES)
    return answer_to(request, body=body, fields=fields)


def group_config(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_SUBSCRIPTIONGROUP_CONFIG: the settings of a group; an unknown one is declared now if that is allowed."""
    broker.topics.group(str(header["group"]))
    row = broker.store.tables.group_row(str(header["group"]))
    if row is None:
        raise Refused(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
    return answer_to(request, body=write(row))


def progress(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """GET_CONSUME_STATS: offsets of a group in each queue of a topic, or of all topics that it has read."""
    group, tables = str(header["consumerGroup"]), broker.store.tables
    topics = [str(header["topic"])] if header["topic"] else tables.topics_of(group)
    rows = []
    for name in topics:
        topic = broker.topics.get(name)
        rows += [
            queue_progress(broker, group, name, queue_id) for queue_id in range(topic.read_queue_nums if topic else 0)
        ]
    tps = sum(broker.rates.got_tps(group, name) for name in topics)
    return answer_to(request, body=write_table("offsetTable", rows, {"consumeTps": tps}))


def queue_progress(broker: Broker, group: str, topic: str, queue_id: int) -> tuple[dict[str, object], dict[str, int]]:
    """Return a queue and a group's offsets in it, with the store time (ms) of the last message that it read.

    Since 5.x ``pullOffset`` is the end of its last pull, or the committed offset if that is larger.
    """
    end = max(broker.store.max_offset_in_queue(topic, queue_id), 0)
    no_offset = -1 if topic in broker.static_topics.mappings else 0  # -1: the offset may be in another broker
    next_offset = max(broker.store.tables.consumer_offset(group, topic, queue_id), no_offset)
    last_timestamp = store_time_at(broker, topic, queue_id, next_offset - 1) if next_offset > 0 else 0
    row = {"brokerOffset": end, "consumerOffset": next_offset, "lastTimestamp": max(last_timestamp, 0)}
    if broker.store.rules.major >= 5:
        row["pullOffset"] = max(next_offset, broker.pulled.get((group, topic, queue_id), no_offset))
    return queue_key(broker, topic, queue_id), row


def subscription(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """QUERY_SUBSCRIPTION_BY_CONSUMER: a group's current subscription to a topic; without ``subscriptionData`` if it
    does not consume it.
    """
    group, topic = str(header["group"]), str(header["topic"])
    current = broker.clients.subscription(group, topic)
    fields = {"group": group, "topic": topic}
    return answer_to(
        request, body=write(fields if current is None else {**fields, "subscriptionData": current.record()})
    )


def clone_offsets(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """CLONE_GROUP_OFFSET: copy a group's offsets to another group, for one topic or for all."""
    source, target = str(header["srcGroup"]), str(header["destGroup"])
    tables, topic = broker.store.tables, header["topic"]
    for name in [str(topic)] if topic else tables.topics_of(source):
        declared = broker.topics.get(name)
        if declared is None:
            continue
        for queue_id in range(max(declared.read_queue_nums, declared.write_queue_nums)):
            offset = tables.consumer_offset(source, name, queue_id)
            if offset >= 0:
                tables.commit_consumer_offset(target, name, queue_id, offset)
    return answer_to(request)


def declare_many(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: declare several groups, each as UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    does; none if one of the names is refused.
    """
    rows = list(as_objects(read_object(request.body).get("groupConfigList"), "groupConfigList"))
    for row in rows:
        _group_name(broker, row)
    for row in rows:
        _declare(broker, row)
    return answer_to(request)


HANDLERS: dict[int, Processor] = {
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: declare,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all_groups,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: delete,
    RequestCode.DELETE_SUBSCRIPTIONGROUP_LIST: delete_many,
    RequestCode.GET_CONSUME_STATS: progress,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: declare_many,
    RequestCode.CLONE_GROUP_OFFSET: clone_offsets,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: subscription,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: group_config,
}

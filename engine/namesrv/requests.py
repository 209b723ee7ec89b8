"""The requests that a name server answers (docs/protocol/name-server.md#requests).

Java: ``DefaultRequestProcessor``, ``ClientRequestProcessor``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any

from engine.callbacks import Clock
from engine.codec.json_dialect import parse
from engine.errors import UsageError
from engine.files.atomic_file import write_atomically
from engine.namesrv.config import UNCHANGEABLE, NameServerConfig
from engine.namesrv.registration_body import check_crc, read_body
from engine.namesrv.routes import (
    ORDER_TOPIC_CONFIG,
    Change,
    DataVersion,
    Queues,
    Registration,
    Routes,
)
from engine.remoting.codes import NAME_SERVER, RequestCode, ResponseCode, WrongRequest, by_code
from engine.remoting.frame import Command, answer_to
from engine.remoting.settings import overlay

STANDARD_JSON_SINCE = 401
"""Version of a client (4.9.4) from which routes have quoted keys (docs/protocol/frames.md#versions)."""
_NO_CODE_SET = "not set any response code"
"""Remark of RocketMQ's answer to 901, beside its success: the text that every answer begins with."""
_REQUESTS = by_code(NAME_SERVER)
_Header = dict[str, Any]
_NO_ROUTE = (
    "No topic route info in name server for the topic: {}\n"
    "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)


class NameServer:
    """The tables, and the answer to each request; ``now`` gives milliseconds since the epoch."""

    def __init__(self, now: Clock, config: NameServerConfig | None = None) -> None:
        self.config = config or NameServerConfig()
        self.routes = Routes(drop_topics=self.config.delete_topic_with_registration)
        self._now = now
        self._kv = _read_kv_file(self.config.kv_config_path)
        self.changed: Callable[[Change], None] = lambda _: None
        """Told of brokers that come and go."""
        self._answers: dict[int, Callable[[Command, _Header, Hashable], Command]] = {
            RequestCode.PUT_KV_CONFIG: self._put_kv,
            RequestCode.GET_KV_CONFIG: self._get_kv,
            RequestCode.DELETE_KV_CONFIG: self._delete_kv,
            RequestCode.REGISTER_BROKER: self._register,
            RequestCode.UNREGISTER_BROKER: self._unregister,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster_info,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self._wipe_write,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._all_topics,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV: self._register_topic,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self._kv_list,
            RequestCode.GET_TOPICS_BY_CLUSTER: self._topics_of_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self._unit_topics,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self._unit_topics,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._unit_topics,
            RequestCode.UPDATE_NAMESRV_CONFIG: self._update_config,
            RequestCode.GET_NAMESRV_CONFIG: self._get_config,
            RequestCode.QUERY_DATA_VERSION: self._data_version,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self._add_write,
            RequestCode.GET_BROKER_MEMBER_GROUP: self._member_group,
            RequestCode.BROKER_HEARTBEAT: self._heartbeat,
        }

    def knows(self, code: int) -> bool:
        """Return True if there is an answer to the request of that code."""
        return code in self._answers

    def answer(self, request: Command, connection: Hashable) -> Command:
        """Answer ``request``, which came over ``connection``. Raises :class:`WrongRequest`."""
        row = _REQUESTS[request.code]
        return self._answers[request.code](request, row.read(request), connection)

    def expire(self) -> list[Hashable]:
        """Drop brokers that were silent too long; return the connections that must be closed."""
        expired = self.routes.expire(self._now())
        for change, _ in expired:
            self.changed(change)
        return [connection for _, connection in expired]

    def disconnected(self, connection: Hashable) -> None:
        """Remove the brokers of a connection that has ended."""
        for change in self.routes.disconnected(connection):
            self.changed(change)

    def _register(self, request: Command, header: _Header, connection: Hashable) -> Command:
        check_crc(request.body, header["bodyCrc32"] or 0)
        body = read_body(request.body, compressed=bool(header["compressed"]))
        registration = Registration(
            header["clusterName"],
            header["brokerName"],
            header["brokerAddr"],
            header["brokerId"],
            header["haServerAddr"],
            body.version,
            body.topics,
            body.filter_servers,
            header["heartbeatTimeoutMillis"],
            header["enableActingMaster"],
            request.fields.get("__ZONE_NAME"),
            body.mappings,
        )
        is_new = (registration.cluster, registration.address) not in self.routes.live_brokers
        result = self.routes.register(registration, self._now(), connection)
        if result is None:
            return answer_to(request, ResponseCode.SYSTEM_ERROR, remark="register broker failed")
        if is_new:
            self.changed(Change("registered", registration.broker, registration.address))
        fields = {"haServerAddr": result.ha_address, "masterAddr": result.master_address}
        orders = self._kv.get(ORDER_TOPIC_CONFIG) if self.config.return_order_config else None
        answer_body = _json({"table": orders}) if orders else b""
        return answer_to(request, fields={name: value for name, value in fields.items() if value}, body=answer_body)

    def _unregister(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        change = self.routes.unregister(header["clusterName"], header["brokerName"], header["brokerAddr"])
        if change is not None:
            self.changed(change)
        return answer_to(request)

    def _heartbeat(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        timeout_ms = header["heartbeatTimeoutMills"]
        self.routes.heartbeat(header["clusterName"], header["brokerAddr"], self._now(), timeout_ms)
        return answer_to(request)

    def _data_version(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        registered_version = self.routes.version_of(header["clusterName"], header["brokerAddr"])
        sent_version = DataVersion.of(_object(request.body))
        changed = registered_version is None or registered_version != sent_version
        if not changed:
            self.routes.heartbeat(header["clusterName"], header["brokerAddr"], self._now())
        body = b"" if registered_version is None else _json(registered_version.record())
        return answer_to(request, fields={"changed": str(changed).lower()}, body=body)

    def _route(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        topic = header["topic"]
        route = self.routes.route(topic)
        if route is None:
            return answer_to(request, ResponseCode.TOPIC_NOT_EXIST, remark=_NO_ROUTE.format(topic))
        if self.config.order_message_enable:
            order = self._kv.get(ORDER_TOPIC_CONFIG, {}).get(topic)
            route |= {} if order is None else {"orderTopicConf": order}
        standard = request.version >= STANDARD_JSON_SINCE or bool(header["acceptStandardJsonOnly"])
        if request.fields.get("__ZONE_MODE", "").lower() == "true" and (zone := request.fields.get("__ZONE_NAME")):
            route, standard = _of_zone(route, zone), False  # RocketMQ writes it again there, with bare keys
        return answer_to(request, body=_json(route, bare=not standard))

    def _cluster_info(self, request: Command, _header: _Header, _connection: Hashable) -> Command:
        return answer_to(request, body=_json(self.routes.cluster_info(), bare=True))

    def _member_group(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        broker = self.routes.brokers.get(header["brokerName"])
        group = {
            "brokerAddrs": dict(broker.addresses) if broker is not None else {},
            "brokerName": header["brokerName"],
            "cluster": header["clusterName"],
        }
        return answer_to(request, body=_json({"brokerMemberGroup": group}, bare=True), remark=_NO_CODE_SET)

    def _all_topics(self, request: Command, _header: _Header, _connection: Hashable) -> Command:
        if not self.config.enable_all_topic_list:
            return answer_to(request, ResponseCode.SYSTEM_ERROR, remark="disable")
        return self._topic_list(request, list(self.routes.topics))

    def _topics_of_cluster(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        return self._topic_list(request, self.routes.topics_of(header["cluster"]))

    def _system_topics(self, request: Command, _header: _Header, _connection: Hashable) -> Command:
        names = [*self.routes.clusters]
        for cluster in self.routes.clusters.values():
            names += sorted(cluster)
        addresses = [address for broker in self.routes.brokers.values() for address in broker.addresses.values()]
        return self._topic_list(request, names, addresses[0] if addresses else None)

    def _unit_topics(self, request: Command, _header: _Header, _connection: Hashable) -> Command:
        bits = {311: (1, 0), 312: (2, 0), 313: (2, 1)}[request.code]
        required_bits, excluded_bits = bits
        topic_names = [
            topic
            for topic, by in self.routes.topics.items()
            if (queues := next(iter(by.values()), None)) is not None
            and queues.sys_flag & required_bits
            and not queues.sys_flag & excluded_bits
        ]
        return self._topic_list(request, topic_names)

    def _topic_list(self, request: Command, topics: list[str], address: str | None = None) -> Command:
        if not self.config.enable_topic_list:
            return answer_to(request, ResponseCode.SYSTEM_ERROR, remark="disable")
        topic_list: dict[str, Any] = {"topicList": topics}
        return answer_to(request, body=_json(topic_list if address is None else {"brokerAddr": address, **topic_list}))

    def _wipe_write(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        count = self.routes.set_write(header["brokerName"], allowed=False)
        return answer_to(request, fields={"wipeTopicCount": str(count)})

    def _add_write(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        count = self.routes.set_write(header["brokerName"], allowed=True)
        return answer_to(request, fields={"addTopicCount": str(count)})

    def _delete_topic(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        self.routes.delete_topic(header["topic"], header["clusterName"] or None)
        return answer_to(request)

    def _register_topic(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        route_data = _object(request.body)
        for queue_data in route_data.get("queueDatas") or ():
            numbers = [queue_data.get(name) for name in ("readQueueNums", "writeQueueNums", "perm", "topicSysFlag")]
            if queue_data.get("brokerName") in self.routes.brokers and all(
                isinstance(number, int) for number in numbers[:3]
            ):
                by = self.routes.topics.setdefault(header["topic"], {})
                by[queue_data["brokerName"]] = Queues(numbers[0], numbers[1], numbers[2], numbers[3] or 0)
        return answer_to(request)

    def _put_kv(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        self._kv.setdefault(header["namespace"], {})[header["key"]] = header["value"]
        self._write_kv_file()
        return answer_to(request)

    def _get_kv(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        namespace, key = header["namespace"], header["key"]
        value = self._kv.get(namespace, {}).get(key)
        if value is None:
            remark = f"No config item, Namespace: {namespace} Key: {key}"
            return answer_to(request, ResponseCode.QUERY_NOT_FOUND, remark=remark)
        return answer_to(request, fields={"value": value})

    def _delete_kv(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        self._kv.get(header["namespace"], {}).pop(header["key"], None)
        self._write_kv_file()
        return answer_to(request)

    def _kv_list(self, request: Command, header: _Header, _connection: Hashable) -> Command:
        namespace = header["namespace"]
        table = self._kv.get(namespace)
        if table is None:
            remark = f"No config item, Namespace: {namespace}"
            return answer_to(request, ResponseCode.QUERY_NOT_FOUND, remark=remark)
        return answer_to(request, body=_json({"table": table}))

    def _get_config(self, request: Command, _header: _Header, _connection: Hashable) -> Command:
        return answer_to(request, body=self.config.lines().encode())

    def _update_config(self, request: Command, _header: _Header, _connection: Hashable) -> Command:
        text = bytes(request.body).decode("utf-8", "replace")
        keys = [line.partition("=")[0].strip() for line in text.splitlines()]
        if any(key in UNCHANGEABLE for key in keys):
            return answer_to(request, ResponseCode.NO_PERMISSION, remark="Can not update config in black list.")
        try:
            self.config, _ = overlay(self.config, text)
        except UsageError as error:
            raise WrongRequest(str(error)) from error
        self.routes.drop_topics = self.config.delete_topic_with_registration
        return answer_to(request)

    def _write_kv_file(self) -> None:
        if self.config.kv_config_path:
            write_atomically(Path(self.config.kv_config_path), _json({"configTable": self._kv}))


def _of_zone(route: dict[str, Any], zone: str) -> dict[str, Any]:
    """Remove brokers of other zones and their queues; brokers without a master stay (2.3)."""
    brokers = [row for row in route["brokerDatas"] if row.get("zoneName") == zone or 0 not in row["brokerAddrs"]]
    names = {row["brokerName"] for row in brokers}
    queues = [row for row in route["queueDatas"] if row["brokerName"] in names]
    return {**route, "brokerDatas": brokers, "queueDatas": queues}


def _object(body: bytes | memoryview) -> Mapping[Any, Any]:
    value = parse(bytes(body)).value if body else None
    return value if isinstance(value, Mapping) else {}


def _read_kv_file(path: str) -> dict[str, dict[str, str]]:
    """Read the stored key-value table; empty if there is no file. Raises :class:`UsageError` if the file is no
    table.
    """
    if not path or not Path(path).exists():
        return {}
    read = parse(Path(path).read_bytes())
    table = read.value.get("configTable") if isinstance(read.value, Mapping) else None
    if not isinstance(table, Mapping):
        raise UsageError(read.complaint or "expected the key-value table of a name server", file=path)
    return {str(name): {str(key): str(value) for key, value in values.items()} for name, values in table.items()}


def _json(value: Any, *, bare: bool = False) -> bytes:
    """Keys in their order; with ``bare`` integer keys without quotes, as RocketMQ writes them for older clients."""
    return _encode(value, bare).encode()


def _encode(value: Any, bare: bool) -> str:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (isinstance(key, str), key))
        return "{" + ",".join(f"{_key(key, bare)}:{_encode(value[key], bare)}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_encode(item, bare) for item in value) + "]"
    return json.dumps(value, ensure_ascii=not bare)


def _key(key: str | int, bare: bool) -> str:
    return str(key) if bare and isinstance(key, int) else json.dumps(str(key), ensure_ascii=not bare)

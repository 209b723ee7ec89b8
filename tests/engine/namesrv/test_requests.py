"""Each request to a name server, handled without a socket."""

from __future__ import annotations

import json

import pytest

from engine.errors import UsageError
from engine.namesrv.config import NameServerConfig
from engine.namesrv.requests import NameServer
from engine.remoting.codes import NAME_SERVER, ResponseCode
from engine.remoting.frame import Command

BROKER_FIELDS = {
    "brokerName": "a",
    "brokerAddr": "h:10911",
    "clusterName": "C",
    "haServerAddr": "h:10912",
    "brokerId": "0",
}
VERSION = {"stateVersion": 0, "timestamp": 5, "counter": 1}


def server(**config):
    clock = [1_000_000]
    name_server = NameServer(lambda: clock[0], NameServerConfig(**config))
    name_server.clock = clock
    return name_server


def register(names, *topics):
    shape = {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
    table = {name: {"topicName": name, **shape} for name in topics}
    body = {"topicConfigSerializeWrapper": {"topicConfigTable": table, "dataVersion": VERSION}}
    return names.answer(Command(103, dict(BROKER_FIELDS), json.dumps(body).encode()), "link")


def test_a_broker_registers_and_its_topic_has_a_route():
    names = server()
    reports = []
    names.changed = reports.append
    assert register(names, "T", "U").code == 0
    assert [item.word for item in reports] == ["registered"]
    route = json.loads(bytes(names.answer(Command(105, {"topic": "T"}, version=500), 0).body))
    assert route["queueDatas"][0]["readQueueNums"] == 4
    missing = names.answer(Command(105, {"topic": "none"}), 0)
    assert (missing.code, "No topic route info" in missing.remark) == (ResponseCode.TOPIC_NOT_EXIST, True)


def test_a_silent_broker_is_removed_and_its_connection_closed():
    names = server()
    register(names, "T", "U")
    names.clock[0] += 3_600_000
    assert names.expire() == ["link"]
    assert names.answer(Command(105, {"topic": "T"}), 0).code == ResponseCode.TOPIC_NOT_EXIST


def test_keys_and_values_are_saved_and_loaded(tmp_path):
    path = str(tmp_path / "kv.json")
    names = server(kv_config_path=path)
    request_fields = {"namespace": "N", "key": "k"}
    assert names.answer(Command(101, request_fields), 0).code == ResponseCode.QUERY_NOT_FOUND
    names.answer(Command(100, {**request_fields, "value": "v"}), 0)
    second_server = server(kv_config_path=path)
    assert second_server.answer(Command(101, request_fields), 0).fields == {"value": "v"}
    second_server.answer(Command(102, request_fields), 0)
    assert server(kv_config_path=path).answer(Command(101, request_fields), 0).code == ResponseCode.QUERY_NOT_FOUND
    (tmp_path / "kv.json").write_text("[]")
    with pytest.raises(UsageError, match="key-value table"):
        server(kv_config_path=path)


def test_settings_are_shown_and_all_but_fixed_ones_can_be_set():
    names = server()
    assert names.answer(Command(318, {}, b"enableTopicList=false"), 0).code == 0
    assert b"enableTopicList=false" in bytes(names.answer(Command(319, {}), 0).body)
    assert names.answer(Command(318, {}, b"listenPort=1"), 0).code == ResponseCode.NO_PERMISSION
    assert names.answer(Command(206, {}), 0).remark == "disable"


def test_every_request_of_the_protocol_page_has_an_answer():
    names = server()
    assert all(names.knows(row.code) for row in NAME_SERVER)
    assert not names.knows(9_999)

"""The name server over its socket: requests, answers, and removal of disconnected brokers."""

from __future__ import annotations

import asyncio
import json
import zlib

import pytest

from engine.errors import CannotRead
from engine.namesrv.config import NameServerConfig
from engine.namesrv.server import ListeningNameServer
from engine.remoting.codes import NAME_SERVER
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import BINARY, ONE_WAY, Command

BROKER_FIELDS = {
    "brokerName": "a",
    "brokerAddr": "127.0.0.1:10911",
    "clusterName": "C",
    "haServerAddr": "127.0.0.1:10912",
    "brokerId": "0",
}
TOPIC = {
    "order": False,
    "perm": 6,
    "readQueueNums": 8,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "writeQueueNums": 8,
}
BODY = json.dumps(
    {
        "filterServerList": [],
        "topicConfigSerializeWrapper": {
            "dataVersion": {"counter": 1, "stateVersion": 0, "timestamp": 1700000000000},
            "topicConfigTable": {name: {**TOPIC, "topicName": name} for name in ("Orders", "Größe")},
        },
    }
).encode()


def packed() -> bytes:
    def piece(text: str) -> bytes:
        return len(text.encode()).to_bytes(4, "big") + text.encode()

    version = piece('{"counter":1,"stateVersion":0,"timestamp":1700000000000}')
    topics = piece("Orders 8 8 6 SINGLE_TAG") + piece("Größe 8 8 6 SINGLE_TAG {}")
    return zlib.compress(version + (2).to_bytes(4, "big") + topics + piece("[]") + bytes(4), 9)


def run_beside_server(work, config: NameServerConfig | None = None):
    """Return the result of ``work(connection, server)``, run beside a name server on a free port."""

    async def run_work():
        async with ListeningNameServer(config, port=0) as server:
            host, port = server.address.split(":")
            connection = await connect(host, int(port))
            try:
                return await work(connection, server)
            finally:
                connection.close()

    return asyncio.run(asyncio.wait_for(run_work(), 60))


async def registered(connection: Connection, **options: str) -> Command:
    return await connection.ask(Command(103, {**BROKER_FIELDS, **options}, BODY))


@pytest.mark.parametrize("form", [0, BINARY])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_broker_registers_and_a_client_finds_it(form, compressed):
    async def work(connection, _server):
        body = packed() if compressed else BODY
        crc = str(zlib.crc32(body) & 0x7FFFFFFF)
        fields = {**BROKER_FIELDS, "compressed": str(compressed).lower(), "bodyCrc32": crc}
        done = await connection.ask(Command(103, fields, body, form=form))
        route = await connection.ask(Command(105, {"topic": "Größe"}, form=form))
        old = await connection.ask(Command(105, {"topic": "Größe"}, version=317))
        wrong = await connection.ask(Command(103, {**fields, "bodyCrc32": "5"}, body))
        return done, route, old, wrong

    done, route, old, wrong = run_beside_server(work)
    assert (done.code, done.form) == (0, form)
    assert json.loads(bytes(route.body))["queueDatas"][0]["readQueueNums"] == 8
    assert b'{"0":"127.0.0.1:10911"}' in bytes(route.body)
    assert b'{0:"127.0.0.1:10911"}' in bytes(old.body)
    assert (wrong.code, wrong.remark) == (1, "crc32 not match")


def test_an_unknown_topic_and_an_unknown_request_have_rocketmqs_messages():
    async def work(connection, _server):
        return await connection.ask(Command(105, {"topic": "X"})), await connection.ask(Command(4711))

    topic, request = run_beside_server(work)
    assert topic.code == 17
    assert topic.remark.startswith("No topic route info in name server for the topic: X")
    assert (request.code, request.remark) == (3, " request type 4711 not supported")


def test_every_request_is_answered_even_without_its_fields():
    async def work(connection, _server):
        await registered(connection)
        return {row.name: await connection.ask(Command(row.code)) for row in NAME_SERVER}

    for name, answer in run_beside_server(work).items():
        needs = any(field.mandatory for field in next(row for row in NAME_SERVER if row.name == name).fields)
        assert answer.code == (1 if needs else 0), (name, answer.remark)
        if needs:
            assert answer.remark.startswith(f"the request {name} needs the field ")


def test_a_one_way_request_gets_no_answer_not_even_an_error():
    async def work(connection, _server):
        for code in (105, 4711):
            connection.send(Command(code, opaque=99, flag=ONE_WAY))
        waiting = asyncio.get_running_loop().create_future()
        connection._waiting[99] = waiting
        await connection.ask(Command(106))
        return waiting.done()

    assert run_beside_server(work) is False


def test_a_disconnected_broker_is_removed_at_once():
    async def work(connection, server):
        changes = []
        server.names.changed = changes.append
        host, port = server.address.split(":")
        broker = await connect(host, int(port))
        await registered(broker)
        assert (await connection.ask(Command(105, {"topic": "Orders"}))).code == 0
        broker.close()
        while len(changes) < 2:
            await asyncio.sleep(0.01)
        return changes, await connection.ask(Command(105, {"topic": "Orders"}))

    changes, route = run_beside_server(work)
    assert [(change.word, change.broker) for change in changes] == [("registered", "a"), ("gone", "a")]
    assert route.code == 17


def test_a_silent_broker_is_dropped_and_its_connection_closed():
    async def work(connection, server):
        host, port = server.address.split(":")
        broker = await connect(host, int(port))
        await registered(broker, heartbeatTimeoutMillis="1")
        await broker.closed.wait()
        return await connection.ask(Command(105, {"topic": "Orders"}))

    assert run_beside_server(work, NameServerConfig(scan_interval=20)).code == 17


def test_the_key_value_table_is_saved_at_the_configured_path(tmp_path):
    config = NameServerConfig(kv_config_path=str(tmp_path / "kvConfig.json"), order_message_enable=True)

    async def put(connection, _server):
        key = {"namespace": "ORDER_TOPIC_CONFIG", "key": "Orders"}
        assert (await connection.ask(Command(101, key))).code == 22
        await connection.ask(Command(100, {**key, "value": "a:8"}))
        return await registered(connection)

    async def read_and_delete(connection, _server):
        await registered(connection)
        route = await connection.ask(Command(105, {"topic": "Orders"}))
        listed = await connection.ask(Command(219, {"namespace": "ORDER_TOPIC_CONFIG"}))
        await connection.ask(Command(102, {"namespace": "ORDER_TOPIC_CONFIG", "key": "Orders"}))
        return route, listed, await connection.ask(Command(101, {"namespace": "ORDER_TOPIC_CONFIG", "key": "Orders"}))

    assert json.loads(bytes(run_beside_server(put, config).body)) == {"table": {"Orders": "a:8"}}
    route, listed, deleted = run_beside_server(read_and_delete, config)
    assert json.loads(bytes(route.body))["orderTopicConf"] == "a:8"
    assert json.loads(bytes(listed.body)) == {"table": {"Orders": "a:8"}}
    assert deleted.code == 22


def test_an_invalid_frame_ends_only_its_connection():
    async def work(connection, server):
        host, port = server.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        return await connection.ask(Command(106))

    assert run_beside_server(work).code == 0


def test_an_occupied_port_is_a_one_line_error():
    async def work(_connection, server):
        with pytest.raises(CannotRead, match="cannot listen on"):
            await ListeningNameServer(port=int(server.address.split(":")[1])).__aenter__()

    run_beside_server(work)


def test_the_configuration_is_readable_and_changeable_except_fixed_keys():
    async def work(connection, _server):
        shown = await connection.ask(Command(319))
        refused = await connection.ask(Command(318, body=b"kvConfigPath=/tmp/x\n"))
        done = await connection.ask(Command(318, body=b"enableTopicList=false\n"))
        wrong = await connection.ask(Command(318, body=b"enableTopicList=perhaps\n"))
        return shown, refused, done, wrong, await connection.ask(Command(206))

    shown, refused, done, wrong, topics = run_beside_server(work)
    assert b"scanNotActiveBrokerInterval=5000\n" in bytes(shown.body)
    assert (refused.code, done.code, wrong.code) == (16, 0, 1)
    assert (topics.code, topics.remark) == (1, "disable")

"""The same requests to a real name server and to ours: code, remark, header fields and body are compared."""

from __future__ import annotations

import asyncio
import json
import zlib

import pytest
import real_cluster

from engine.codec.json_dialect import parse
from engine.namesrv.server import ListeningNameServer
from engine.remoting.connection import connect
from engine.remoting.frame import BINARY, Command

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]


def topic(name: str, queues: int = 8, perm: int = 6, flag: int = 0) -> dict:
    return {
        "attributes": {},
        "order": False,
        "perm": perm,
        "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": flag,
        "writeQueueNums": queues,
    }


def register(
    broker: str, port: int, *topics: dict, counter: int = 1, number: int = 0, state: int = 0, **options
) -> Command:
    version = {"counter": counter, "stateVersion": state, "timestamp": 1700000000000}
    table = {record["topicName"]: record for record in topics}
    body = {"filterServerList": [], "topicConfigSerializeWrapper": {"dataVersion": version, "topicConfigTable": table}}
    fields = {
        "brokerName": broker,
        "brokerAddr": f"127.0.0.1:{port}",
        "clusterName": "C",
        "brokerId": str(number),
        "haServerAddr": f"127.0.0.1:{port + 1}",
        "compressed": "false",
        "bodyCrc32": "0",
        **options,
    }
    return Command(103, fields, json.dumps(body).encode())


def packed(broker: str, port: int, *topics: str) -> Command:
    def piece(text: str) -> bytes:
        return len(text.encode()).to_bytes(4, "big") + text.encode()

    parts = [piece('{"counter":9,"stateVersion":0,"timestamp":1}'), len(topics).to_bytes(4, "big")]
    parts += [piece(f"{item} 4 4 6 SINGLE_TAG") for item in topics]
    body = zlib.compress(b"".join([*parts, piece("[]"), bytes(4)]), 9)
    request = register(broker, port)
    request.body = body
    request.fields |= {"compressed": "true", "bodyCrc32": str(zlib.crc32(body) & 0x7FFFFFFF)}
    return request


def facts(code: int, broker: str = "a", port: int = 30911, body: bytes = b"", **options: str) -> Command:
    fields = {"brokerName": broker, "brokerAddr": f"127.0.0.1:{port}", "clusterName": "C", "brokerId": "0"}
    return Command(code, fields | options, body)


def route(name: str, **how) -> Command:
    fields = how.pop("fields", {})
    return Command(105, {"topic": name, **fields}, **how)


VERSION = b'{"counter":1,"stateVersion":0,"timestamp":1700000000000}'
OTHER = b'{"counter":2,"stateVersion":0,"timestamp":1700000000000}'
STEPS = {
    "nothing is known": (
        route("A"),
        Command(106),
        Command(206),
        Command(304),
        Command(224, {"cluster": "C"}),
        facts(104),
        facts(904),
        facts(322, body=VERSION),
        facts(901),
        Command(205, {"brokerName": "a"}),
        Command(327, {"brokerName": "a"}),
        Command(216, {"topic": "A"}),
        Command(4711),
        Command(11),
    ),
    "one topic alone": (register("a", 30911, topic("A")), route("A"), Command(106)),
    "a master": (
        register("a", 30911, topic("A"), topic("Ü", 3), topic("O", 2, 7, 1), topic("S", 2, 6, 2)),
        route("A"),
        route("A", version=317),
        route("A", version=317, fields={"acceptStandardJsonOnly": "true"}),
        route("A", form=BINARY),
        route("Ü"),
        route("Ü", version=317),
        route("X"),
        Command(106),
        Command(206),
        Command(304),
        Command(224, {"cluster": "C"}),
        Command(224, {"cluster": "D"}),
        Command(311),
        Command(312),
        Command(313),
        facts(322, body=VERSION),
        facts(322, body=OTHER),
        facts(904),
        facts(901),
    ),
    "a change": (register("a", 30911, topic("N"), counter=2), route("N"), route("A"), facts(322, body=VERSION)),
    "permissions": (
        Command(205, {"brokerName": "a"}),
        route("A"),
        Command(205, {"brokerName": "b"}),
        Command(327, {"brokerName": "a"}),
        route("A"),
        route("O"),
    ),
    "a slave": (
        register("a", 31911, topic("A"), topic("Z"), number=1),
        route("A"),
        route("Z"),
        Command(106),
        facts(901),
        register("a", 32911, topic("A"), topic("Z"), number=2, enableActingMaster="true"),
        route("A"),
    ),
    "another state of the same id": (
        register("a", 30911, topic("A"), topic("N"), state=5, counter=3),
        register("a", 39911, topic("A"), topic("Q"), state=4),
        route("A"),
        route("Q"),
    ),
    "another broker, packed": (
        packed("b", 33911, "A", "P1", "P2"),
        route("A"),
        route("P1"),
        Command(106),
        Command(224, {"cluster": "C"}),
    ),
    "wrong bodies": (
        Command(103, {**register("c", 34911).fields, "bodyCrc32": "5"}, b"{}"),
        Command(106),
    ),
    "keys and values": (
        Command(101, {"namespace": "N", "key": "k"}),
        Command(219, {"namespace": "N"}),
        Command(100, {"namespace": "N", "key": "k", "value": "v=1"}),
        Command(101, {"namespace": "N", "key": "k"}),
        Command(219, {"namespace": "N"}),
        Command(102, {"namespace": "N", "key": "k"}),
        Command(101, {"namespace": "N", "key": "k"}),
        Command(219, {"namespace": "N"}),
        Command(100, {"namespace": "ORDER_TOPIC_CONFIG", "key": "A", "value": "a:8"}),
        route("A"),
        register("a", 30911, topic("A"), topic("N"), state=5, counter=3),
    ),
    "topics go": (
        Command(216, {"topic": "P1"}),
        route("P1"),
        Command(216, {"topic": "A", "clusterName": "C"}),
        route("A"),
        Command(216, {"topic": "A", "clusterName": "D"}),
        Command(
            217,
            {"topic": "W"},
            json.dumps(
                {
                    "queueDatas": [
                        {"brokerName": "a", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6, "topicSysFlag": 0}
                    ],
                    "brokerDatas": [],
                }
            ).encode(),
        ),
        route("W"),
    ),
    "zones": (
        register("z", 35911, topic("A"), topic("N"), __ZONE_NAME="east"),
        route("A", fields={"__ZONE_MODE": "true", "__ZONE_NAME": "east"}),
        route("A", fields={"__ZONE_MODE": "true", "__ZONE_NAME": "west"}),
        route("A"),
    ),
}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    with real_cluster.real(tmp_path_factory.mktemp("names"), "--namesrv-port", real_cluster.free_port()) as output:
        yield output["namesrv"]


def plain(answer: Command) -> dict:
    """Return an answer without the parts that may differ: opaque, language, version, form of the header, order of
    its parts.
    """
    body = bytes(answer.body)
    value = parse(body).value if body[:1] == b"{" else body
    return {"code": answer.code, "remark": answer.remark, "fields": answer.fields, "body": sorted_lists(value)}


def sorted_lists(value):
    """Sort the lists of a route, which come in the order of a hash map."""
    if isinstance(value, dict):
        return {str(key): sorted_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((sorted_lists(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


async def name_server_answers(address: str) -> dict[str, list[Command]]:
    host, port = address.split(":")
    connection = await connect(host, int(port))
    results = {}
    for name, requests in STEPS.items():
        results[name] = []
        for request in requests:
            request.opaque = 0
            results[name].append(await connection.ask(request, 60))
            if request.code in (104, 205, 216, 327):
                await asyncio.sleep(0.05)
    connection.close()
    return results


@pytest.fixture(scope="module")
def paired_answers(theirs) -> list[tuple[str, Command, Command, Command]]:
    """Return (step, request, the real answer, ours)."""

    async def ours() -> dict[str, list[Command]]:
        async with ListeningNameServer(port=0) as server:
            return await name_server_answers(server.address)

    real_answers, our_answers = asyncio.run(name_server_answers(theirs)), asyncio.run(ours())
    return [
        (name, *three)
        for name, requests in STEPS.items()
        for three in zip(requests, real_answers[name], our_answers[name], strict=True)
    ]


def test_each_answer_is_the_real_ones(paired_answers):
    different = [
        f"{name}, {request.code} {request.fields}:\n  real {expected}\n  ours {results}"
        for name, request, real, our_answer in paired_answers
        if (expected := plain(real)) != (results := plain(our_answer))
    ]
    assert not different, "\n".join(different)
    assert len(paired_answers) > 70


def test_integer_keys_are_bare_where_they_are_in_the_real_answer(paired_answers):
    spelled = [
        (name, request.code, *(b"{0:" in bytes(item.body) for item in (real, our_answer)))
        for name, request, real, our_answer in paired_answers
    ]
    assert [row for row in spelled if row[2] != row[3]] == []
    assert {row[2] for row in spelled} == {True, False}

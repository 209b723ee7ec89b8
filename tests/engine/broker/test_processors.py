"""Each request of the protocol page has exactly one processor."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import BrokerClient, run_scenario

from engine.broker.processors import HANDLERS, MODULES
from engine.broker.server import ListeningBroker
from engine.message_store import MessageStore
from engine.remoting.codes import BROKER, SINCE_5, UNTIL_4_9, RequestCode
from engine.remoting.connection import bind


def test_every_request_is_answered() -> None:
    assert set(HANDLERS) == {item.code for item in BROKER}


def test_no_request_has_two_processors() -> None:
    assert sum(len(module.HANDLERS) for module in MODULES) == len(HANDLERS)


def test_a_processor_is_described_by_the_name_of_its_request() -> None:
    """A search for a request's name finds the function that answers it, by its docstring."""
    for code, answer in HANDLERS.items():
        assert RequestCode(code).name in (answer.__doc__ or "").partition(":")[0].replace(",", " ").split(), answer


@pytest.mark.parametrize(
    ("release", "codes"), [("4.9", [item.code for item in SINCE_5]), ("5.3", [item.code for item in UNTIL_4_9])]
)
def test_a_release_refuses_requests_of_the_other(release: str, codes: list[int], tmp_path: Path) -> None:
    async def scenario() -> None:
        with MessageStore(tmp_path, release=release) as store, bind("127.0.0.1", 0) as position:  # type: ignore[arg-type]
            async with ListeningBroker(store, listening_socket=position) as server:
                client = BrokerClient(server)
                await client.open()
                for code in codes:
                    answer = await client.ask(code)
                    assert (answer.code, answer.remark) == (3, f" request type {code} not supported")
                known_values = "rmq_sys_REVIVE_LOG_DefaultCluster" in store.tables.topics()
                client.close()
        assert known_values == (release == "5.3")
        assert (tmp_path / "config" / "consumerOrderInfo.json").exists() == (release == "5.3")

    run_scenario(scenario)


_SEND = {"b": "Orders", "e": "0", "f": "0", "g": "1700000000000", "h": "0", "i": "", "k": "false"}
_WHERE = {"topic": "Orders", "consumerGroup": "readers"}
_TOPIC = {"topic": "Orders", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6", "topicFilterType": "SINGLE_TAG"}
_ODD: list[tuple[int, dict[str, str], bytes, int, str | None]] = [
    (320, {**_SEND, "m": "false"}, b"one message", 0, None),
    (310, {**_SEND, "m": "true"}, b"no batch", 13, None),
    (310, {**_SEND, "j": "x"}, b"body", 1, None),
    (310, {**_SEND, "i": "DELAY\x01x\x02"}, b"body", 1, None),
    (310, {**_SEND, "b": "Nowhere"}, b"body", 1, None),
    (15, {"topic": "Orders", "queueId": "0", "commitOffset": "1"}, b"", 26, "Group null not exist!"),
    (15, {**_WHERE, "commitOffset": "1"}, b"", 29, "QueueId is null, topic is Orders"),
    (15, {**_WHERE, "queueId": "0", "commitOffset": "x"}, b"", 29, "Offset is null, topic is Orders"),
    (321, {"topic": "Orders"}, b"", 0, None),
    (12, {"topic": "Orders", "key": "k", "maxNum": "-1", "beginTimestamp": "0", "endTimestamp": "1"}, b"", 1, None),
    (46, {}, b"", 0, None),
    (46, {}, b'{"subscriptionData":5}', 1, None),
    (200151, {}, b"null", 208, None),
    (200151, {}, b'{"acks":5}', 1, None),
    (
        37,
        {"producerGroup": "p", "tranStateTableOffset": "0", "commitLogOffset": "0", "commitOrRollback": "5"},
        b"",
        1,
        "commitOrRollback field wrong",
    ),
    (215, {}, b"", 29, "The specified topic is blank."),
    (307, {"consumerGroup": "readers"}, b"", 1, "The Consumer <readers> <null> not online"),
    (17, {**_TOPIC, "attributes": "+message.type=FIFO,+message.type=DELAY"}, b"", 1, "key duplication: +message.type"),
    (
        17,
        {**_TOPIC, "attributes": "+queue.type=BatchCQ"},
        b"",
        1,
        "attempt to update an unchangeable attribute. key: queue.type",
    ),
    (17, {**_TOPIC, "attributes": "+reserve.time=x"}, b"", 1, 'For input string: "x"'),
    (17, {**_TOPIC, "attributes": "-"}, b"", 1, "kv string format wrong."),
    (200, {}, b'{"groupName":"made","consumeEnable":"odd"}', 1, None),
    (200, {}, b'{"groupName":"made","retryQueueNums":null,"retryMaxTimes":""}', 0, None),
    (400, {}, b'{"topic":"Orders","consumerGroup":"readers","clientId":"me","strategyName":"AVG"}', 1, None),
    (41, {}, b'{"clientId":"me","mqSet":[{}]}', 1, None),
    (
        11,
        {
            **_WHERE,
            "queueId": "0",
            "queueOffset": "0",
            "maxMsgNums": "1",
            "sysFlag": "4",
            "subscription": "||",
            "commitOffset": "0",
        },
        b"",
        23,
        "parse the consumer's subscription failed",
    ),
]


def test_partly_invalid_requests_are_answered_as_by_rocketmq(tmp_path: Path) -> None:
    """Codes and messages are those of a broker of 5.3.3. Our broker recognized a batch by the request code alone,
    ignored invalid numbers in every request, and accepted any text for a group's switches.
    """

    async def scenario() -> None:
        with MessageStore(tmp_path) as store, bind("127.0.0.1", 0) as position:
            async with ListeningBroker(store, listening_socket=position) as server:
                client = BrokerClient(server)
                await client.open()
                assert (await client.ask(17, **_TOPIC)).code == 0
                assert (await client.ask(200, b'{"groupName":"readers"}')).code == 0
                for code, fields, body, expected, words in _ODD:
                    store.wait_dispatched()
                    answer = await client.ask(code, body, **fields)
                    assert answer.code == expected, (code, fields, body, answer)
                    assert words is None or answer.remark == words, (code, fields, answer)
                client.close()

    run_scenario(scenario)


def test_4_9_returns_zero_as_first_offset_whatever_the_request_says(tmp_path: Path) -> None:
    """``setZeroIfNotFound`` exists since 5.x. Our 4.9 broker refused a group's first offset if a client sent that
    field.
    """

    async def scenario() -> None:
        with MessageStore(tmp_path, release="4.9") as store, bind("127.0.0.1", 0) as position:
            async with ListeningBroker(store, listening_socket=position) as server:
                client = BrokerClient(server)
                await client.open()
                assert (await client.send("Orders", b"first")).code == 0
                store.wait_dispatched()
                request_fields = {
                    "consumerGroup": "new",
                    "topic": "Orders",
                    "queueId": "0",
                    "setZeroIfNotFound": "false",
                }
                answer = await client.ask(14, **request_fields)
                assert (answer.code, answer.fields) == (0, {"offset": "0"})
                client.close()

    run_scenario(scenario)

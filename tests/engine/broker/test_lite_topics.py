"""Lite topics: subscriptions of clients to light queues, and pops from them. The expected answers are those of a real
5.5.1 broker that was asked the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario, units

from engine.codec.message import decode
from engine.config import MessageStoreConfig
from engine.remoting.frame import Command

LIGHT = MessageStoreConfig(enable_lmq=True, enable_multi_dispatch=True)
TOPIC = {"defaultTopic": "TBW102", "perm": 6, "topicFilterType": "SINGLE_TAG", "readQueueNums": 2, "writeQueueNums": 2}


@contextlib.asynccontextmanager
async def lite_broker(path: Path) -> AsyncIterator[BrokerClient]:
    """A broker with the LITE topic ``Parent``, another one, and two groups of it."""
    async with asking_broker(path, store_config=LIGHT, release="5.5") as client:
        attributes = "+message.type=LITE,+lite.topic.expiration=60"
        assert (await client.ask(17, **TOPIC, topic="Parent", attributes=attributes)).code == 0
        assert (await client.ask(17, **TOPIC, topic="Plain")).code == 0
        for name, model in (("shared", "Shared"), ("exclusive", "Exclusive")):
            row = {"groupName": name, "attributes": {"+lite.bind.topic": "Parent", "+lite.sub.model": model}}
            assert (await client.ask(200, json.dumps(row).encode())).code == 0
        yield client


async def send(client: BrokerClient, body: bytes, lite_topic: str) -> None:
    await client.send("Parent", body, 0, f"__LITE_TOPIC\x01{lite_topic}\x02")
    client.server.broker.store.wait_dispatched()


async def subscribe(
    client: BrokerClient, action: str, client_id: str, *names: str, group: str = "shared", **more: object
) -> Command:
    row = {"action": action, "clientId": client_id, "group": group, "topic": "Parent", "liteTopicSet": names, **more}
    return await client.ask(200071, json.dumps({"subscriptionSet": [row]}).encode())


async def pop(client: BrokerClient, client_id: str, group: str = "shared", **options: object) -> Command:
    fields = {
        "clientId": client_id,
        "consumerGroup": group,
        "topic": "Parent",
        "maxMsgNum": 32,
        "invisibleTime": 60_000,
        "pollTime": 0,
        "bornTime": 0,
    }
    return await client.ask(200070, **{**fields, **options})


def bodies(answer: Command) -> list[bytes]:
    found: list[bytes] = []
    position = 0
    while position < len(answer.body):
        unit = decode(answer.body, position, 0)
        found.append(unit.body)
        position += unit.size
    return found


def of_message(answer: Command, offset: int) -> dict[str, object]:
    handle = f"0 {answer.fields['popTime']} 60000 999 0 broker-a 0 {offset}"
    return {"consumerGroup": "shared", "topic": "Parent", "queueId": 0, "offset": offset, "extraInfo": handle}


def test_a_message_of_a_lite_topic_goes_to_its_light_queue(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await send(client, b"one", "a")
            (unit,) = units(client, "%LMQ%$Parent$a")
            assert (unit.topic, unit.properties["INNER_MULTI_DISPATCH"]) == ("Parent", "%LMQ%$Parent$a")

    run_scenario(scenario)


def test_a_client_pops_the_light_queues_that_it_subscribes_to_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            for body, name in ((b"a0", "a"), (b"a1", "a"), (b"b0", "b"), (b"c0", "c")):
                await send(client, body, name)
            assert ((await pop(client, "one")).code, (await pop(client, "one")).body) == (210, b"")
            assert (await subscribe(client, "PARTIAL_ADD", "one", "a", "b")).code == 0
            answer = await pop(client, "one")
            assert (answer.code, bodies(answer)) == (0, [b"a0", b"a1", b"b0"])
            assert (answer.fields["reviveQid"], answer.fields["orderCountInfo"]) == ("999", "0;0;0")
            assert (await pop(client, "one")).code == 210
            for offset, code in ((0, 0), (1, 0), (9, 208)):
                acknowledged = await client.ask(200051, **of_message(answer, offset), liteTopic="a")
                assert acknowledged.code == code
            offset_of_group = await client.ask(14, consumerGroup="shared", topic="%LMQ%$Parent$a", queueId=0)
            assert offset_of_group.fields["offset"] == "2"
            postponed = await client.ask(200053, **of_message(answer, 0), liteTopic="b", invisibleTime=0)
            assert (postponed.code, postponed.fields["reviveQid"]) == (0, "999")
            again = await pop(client, "one")
            assert (bodies(again), again.fields["orderCountInfo"]) == ([b"b0"], "0 qo0%0 1")

    run_scenario(scenario)


def test_a_pop_waits_for_a_message_and_for_a_subscription(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await send(client, b"b0", "b")
            for change in (lambda: subscribe(client, "PARTIAL_ADD", "one", "a", "b"), lambda: send(client, b"a0", "a")):
                waiting = asyncio.create_task(pop(client, "one", pollTime=60_000))
                while not len(client.server.broker.pops):
                    await asyncio.sleep(0.001)
                await change()
                assert (await waiting).code == 0

    run_scenario(scenario)


def test_an_exclusive_group_gives_a_light_queue_to_its_newest_client(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await send(client, b"a0", "a")
            first = {"type": "POLICY", "value": 1}
            await subscribe(client, "PARTIAL_ADD", "one", "a", group="exclusive", offsetOption=first)
            assert bodies(await pop(client, "one", "exclusive", invisibleTime=0)) == [b"a0"]
            await subscribe(client, "PARTIAL_ADD", "two", "a", group="exclusive")
            assert (await pop(client, "one", "exclusive")).code == 210
            assert bodies(await pop(client, "two", "exclusive")) == [b"a0"]
            notice = client.requests[-1]
            assert notice.code == 200073
            assert notice.fields == {"clientId": "one", "consumerGroup": "exclusive", "liteTopic": "a"}

    run_scenario(scenario)


def test_a_complete_subscription_replaces_the_old_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            lite = client.server.broker.lite
            await subscribe(client, "PARTIAL_ADD", "one", "a", "b")
            await subscribe(client, "COMPLETE_ADD", "one", "b", "c", version=1)
            assert set(lite.clients["one"].queues) == {"%LMQ%$Parent$b", "%LMQ%$Parent$c"}
            await subscribe(client, "PARTIAL_REMOVE", "one", "b")
            assert list(lite.clients["one"].queues) == ["%LMQ%$Parent$c"]
            await subscribe(client, "COMPLETE_REMOVE", "one")
            assert not lite.clients
            await subscribe(client, "PARTIAL_ADD", "one", "a")
            broker, now = client.server.broker, client.server.broker.now
            broker.now = lambda: now() + 200_000
            await subscribe(client, "PARTIAL_ADD", "two", "a")
            assert list(lite.clients) == ["two"]

    run_scenario(scenario)


def test_refusals_have_the_words_of_5_5_1(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await client.ask(200, b'{"groupName":"other"}')
            for options, code, words in (
                ({"topic": "Plain"}, 29, "the topic [Plain] message type not match"),
                ({"topic": "Nowhere"}, 17, "topic [Nowhere] not exist, apply first please! "),
                ({"consumerGroup": "other"}, 29, "subscription bind topic not match, other"),
                ({"maxMsgNum": 33}, 29, "the broker[127.0.0.1] pop message's num is greater than 32"),
            ):
                answer = await pop(client, "one", **options)
                assert (answer.code, (answer.remark or "").split("\n")[0]) == (code, words)
            for body, words in (
                (b"", "Request body is null."),
                (b"{}", "LiteSubscriptionCtlRequestBody is empty."),
            ):
                answer = await client.ask(200071, body)
                assert (answer.code, answer.remark) == (604, words)

    run_scenario(scenario)


def test_figures_of_lite_topics(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await send(client, b"a0", "a")
            await send(client, b"a1", "a")
            await subscribe(client, "PARTIAL_ADD", "one", "a")

            async def figures(code: int, **fields: object) -> dict[str, object]:
                answer = await client.ask(code, **fields)
                assert answer.code == 0, answer.remark
                return dict(json.loads(bytes(answer.body)))

            whole = await figures(200074)
            assert (whole["groupMeta"], whole["topicMeta"]) == ({"Parent": ["exclusive", "shared"]}, {"Parent": 60})
            assert (whole["currentLmqNum"], whole["liteSubscriptionCount"]) == (1, 1)
            parent = await figures(200075, topic="Parent")
            assert (parent["ttl"], parent["liteTopicCount"]) == (60, 1)
            lite_topic = await figures(200076, parentTopic="Parent", liteTopic="a")
            assert lite_topic["subscriber"] == [{"clientId": "one", "group": "shared"}]
            assert dict(lite_topic["topicOffset"])["maxOffset"] == 2  # type: ignore[call-overload]
            of_client = await figures(200077, parentTopic="Parent", group="shared", clientId="one", maxCount=10)
            assert of_client["liteTopicSet"] == ["%LMQ%$Parent$a"]
            answer = await pop(client, "one", maxMsgNum=1)
            await client.ask(200051, **of_message(answer, 0), liteTopic="a")
            of_group = await figures(200078, group="shared", liteTopic="a")
            assert of_group["totalLagCount"] == 1
            assert (await client.ask(200079, group="shared")).code == 0
            notice = await client.ask(
                200054,
                consumerGroup="shared",
                topic="Parent",
                queueId=-1,
                pollTime=0,
                bornTime=0,
                isLiteConsumer=True,
                clientId="one",
            )
            assert notice.fields["hasMsg"] == "true"

    run_scenario(scenario)


def test_names_of_further_queues_do_not_stop_dispatch(tmp_path: Path) -> None:
    """Real brokers of 5.5 dispatch nothing behind such messages."""

    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await send(client, b"dollar", "a$b")
            await client.send("Plain", b"unnumbered", 0, "INNER_MULTI_DISPATCH\x01x,%LMQ%a\x02")
            await client.send("Plain", b"behind", 0)
            client.server.broker.store.wait_dispatched()
            assert [unit.body for unit in units(client, "Plain")] == [b"unnumbered", b"behind"]
            await subscribe(client, "PARTIAL_ADD", "one", "a$b")
            assert bodies(await pop(client, "one")) == [b"dollar"]

    run_scenario(scenario)

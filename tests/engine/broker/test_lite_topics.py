"""Lite topics: subscriptions of clients to light queues, and pops from them. The expected answers are those of a real
5.5.1 broker that was asked the same.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from brokers import run_scenario, units
from lite_brokers import bodies, lite_broker, of_message, pop, send, subscribe


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

"""Acknowledgements and visibility changes of popped messages: which records are stored, and in which order."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario, units
from pops import GROUP, pop, sent

from engine.codec.pop import Ack, CheckPoint

WHERE = {"consumerGroup": GROUP, "topic": "Orders", "queueId": 0}


def waiting(client: BrokerClient) -> list[tuple[str, bytes]]:
    """Return tag and body of each message for the revive topic that has not been handled yet."""
    return [(unit.tags or "", unit.body) for unit in units(client, "rmq_sys_wheel_timer")]


def test_an_acknowledgement_is_stored_before_it_is_answered(tmp_path: Path) -> None:
    """The broker accepts a second acknowledgement, and a handle with a proxy's ninth field."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            answer = await pop(client)
            popped_at = answer.fields["popTime"]
            handle = f"0 {popped_at} 60000 0 0 broker-a 0 1"
            for text in (handle, f"{handle} 4711"):
                acked = await client.ask(200051, **WHERE, offset=1, extraInfo=text)
                assert (acked.code, acked.fields) == (0, {})
            ack = Ack("Orders", GROUP, 0, 0, int(popped_at), "broker-a", 1)
            assert waiting(client)[1:] == [("ack", ack.body())] * 2
            timer_unit = units(client, "rmq_sys_wheel_timer")[-1]
            assert timer_unit.properties["TIMER_DELIVER_MS"] == str(int(popped_at) + 60_000)

    run_scenario(scenario)


def test_invalid_acknowledgements_are_refused_with_rocketmqs_messages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            await pop(client)
            handle = "0 1 60000 0 0 broker-a 0 0"
            refused = await client.ask(200051, **WHERE, offset=99, extraInfo=handle)
            assert (refused.code, refused.remark) == (208, "offset is illegal, key:Orders@0, commit:99, store:0~1")
            assert (await client.ask(200051, **{**WHERE, "topic": "No"}, offset=0, extraInfo=handle)).code == 17
            assert (await client.ask(200051, **{**WHERE, "queueId": 7}, offset=0, extraInfo=handle)).code == 13
            truncated_handle = await client.ask(200051, **WHERE, offset=0, extraInfo="0 1 2")
            assert truncated_handle.code == 1
            assert "getBrokerName fail, extraInfoStrs length 3" in (truncated_handle.remark or "")
            nothing = await client.ask(200053, **WHERE, offset=1, extraInfo=handle, invisibleTime=1000)
            zeros = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0"}
            assert (nothing.code, nothing.fields) == (208, zeros)

    run_scenario(scenario)


def test_a_batch_is_one_record_for_each_entry(tmp_path: Path) -> None:
    """Offsets outside the checkpoint's range are skipped. An entry of a retry topic names the retry topic of that
    group.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two", b"three")
            popped_at = int((await pop(client)).fields["popTime"])
            entry = {
                "b": base64.b64encode(b"\xff\x01").decode(),
                "c": GROUP,
                "it": 60_000,
                "pt": popped_at,
                "q": 0,
                "r": "0",
                "rq": 5,
                "so": 0,
                "t": "Orders",
            }
            extra = {**entry, "r": "1", "b": "AQ=="}
            body = json.dumps({"acks": [entry, extra], "brokerName": "broker-a"}).encode()
            assert (await client.ask(200151, body)).code == 0
            (_, checkpoint), (tag, batch_ack), (_, retry_checkpoint) = waiting(client)
            assert b'"reviveTime"' in checkpoint
            assert (tag, batch_ack) == (
                "bAck",
                Ack("Orders", GROUP, 0, 0, popped_at, "broker-a", offsets=(0, 1, 2, 3)).body(),
            )
            assert json.loads(retry_checkpoint)["t"] == f"%RETRY%{GROUP}_Orders"
            for wrong in (b"", b'{"acks":[]}'):
                assert (await client.ask(200151, wrong)).code == 208
            assert (await client.ask(200151, json.dumps({"acks": [{**entry, "r": "7"}]}).encode())).code == 1

    run_scenario(scenario)


def test_a_change_stores_the_new_checkpoint_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one", b"two")
            popped_at = int((await pop(client)).fields["popTime"])
            handle = f"0 {popped_at} 60000 3 0 broker-a 0 1"
            changed = await client.ask(200053, **WHERE, offset=1, extraInfo=handle, invisibleTime=10_000)
            now = int(changed.fields["popTime"])
            assert (changed.code, changed.fields["invisibleTime"], changed.fields["reviveQid"]) == (0, "10000", "3")
            assert now >= popped_at
            _, anew, done = waiting(client)
            assert anew == ("ck", CheckPoint("Orders", GROUP, 0, 1, now, 10_000, "broker-a", (0,)).body())
            assert done == ("ack", Ack("Orders", GROUP, 0, 0, popped_at, "broker-a", 1).body())
            assert {unit.properties["REAL_QID"] for unit in units(client, "rmq_sys_wheel_timer")[1:]} == {"3"}

    run_scenario(scenario)


def test_a_change_that_is_not_stored_acknowledges_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"one")
            popped_at = int((await pop(client)).fields["popTime"])
            handle, count_before = f"0 {popped_at} 60000 3 0 broker-a 0 0", len(waiting(client))
            too_long = 400 * 86_400_000
            changed = await client.ask(200053, **WHERE, offset=0, extraInfo=handle, invisibleTime=too_long)
            assert (changed.code, changed.fields["popTime"]) == (1, "0")
            assert len(waiting(client)) == count_before

    run_scenario(scenario)


def test_an_orderly_acknowledgement_moves_the_offset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await sent(client, b"0", b"1", b"2")
            answer = await pop(client, order=True)
            handle = f"0 {answer.fields['popTime']} 60000 999 0 broker-a 0"
            tables = client.server.broker.store.tables
            offsets = []
            for offset in (1, 0, 2):
                acked = await client.ask(200051, **WHERE, offset=offset, extraInfo=f"{handle} {offset}")
                assert acked.code == 0
                offsets.append(tables.consumer_offset(GROUP, "Orders", 0))
            assert offsets == [0, 2, 3]
            assert (await client.ask(200051, **WHERE, offset=0, extraInfo=f"{handle} 0")).code == 0
            illegal = await client.ask(200051, **WHERE, offset=3, extraInfo=f"{handle} 3")
            assert illegal.code == 13
            assert (illegal.remark or "").startswith(
                f"offset is illegal, key:Orders@{GROUP}@0, old:3, commit:3, next:-1"
            )
            late = await client.ask(200053, **WHERE, offset=1, extraInfo=f"{handle} 1", invisibleTime=5)
            assert (late.code, late.fields["popTime"]) == (0, "0")

    run_scenario(scenario)

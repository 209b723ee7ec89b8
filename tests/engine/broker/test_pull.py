"""Pulls: what is there at once, what comes while they are held, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

from brokers import asking, run

from engine.codec.message import decode


def bodies(answer_body: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(answer_body):
        unit = decode(answer_body, at, 0)
        found.append(unit.body)
        at += unit.size
    return found


def test_what_is_there_is_answered_with_the_units_as_they_are_stored(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            for body in (b"one", b"two", b"three"):
                await client.send("Orders", body)
            client.server.broker.store.wait_dispatched()
            answer = await client.pull("Orders", 1)
            assert answer.code == 0
            assert bodies(bytes(answer.body)) == [b"two", b"three"]
            assert (answer.fields["nextBeginOffset"], answer.fields["maxOffset"]) == ("3", "3")

    run(told)


def test_a_pull_by_tag_is_given_its_tags_only(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            for body, tag in ((b"one", "paid"), (b"two", "open"), (b"three", "paid")):
                await client.send("Orders", body, properties=f"TAGS\x01{tag}\x02")
            client.server.broker.store.wait_dispatched()
            answer = await client.pull("Orders", 0, subscription="paid || late")
            assert bodies(bytes(answer.body)) == [b"one", b"three"]

    run(told)


def test_a_held_pull_is_answered_by_the_next_message(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            held = asyncio.create_task(client.pull("Orders", 1, sysFlag=6, suspendTimeoutMillis=30_000))
            while not len(client.server.broker.held):
                await asyncio.sleep(0.005)
            await client.send("Orders", b"two")
            assert bodies(bytes((await held).body)) == [b"two"]
            assert not len(client.server.broker.held)

    run(told)


def test_a_held_pull_of_a_connection_that_ended_is_forgotten(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            held = asyncio.create_task(client.pull("Orders", 1, sysFlag=6, suspendTimeoutMillis=30_000))
            while not len(client.server.broker.held):
                await asyncio.sleep(0.005)
            client.close()
            assert isinstance((await asyncio.gather(held, return_exceptions=True))[0], ConnectionError)
            while len(client.server.broker.held):
                await asyncio.sleep(0.005)

    run(told)


def test_what_a_group_may_not_read_is_refused(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            assert (await client.pull("Nowhere", 0)).code == 17
            assert (await client.pull("Orders", 0, queue_id=9)).code == 29
            assert (await client.pull("Orders", 0, sysFlag=0)).code == 24

    run(told)


def test_beyond_the_end_the_offset_has_moved(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            await client.send("Orders", b"one")
            client.server.broker.store.wait_dispatched()
            answer = await client.pull("Orders", 7)
            assert (answer.code, answer.fields["nextBeginOffset"]) == (21, "1")

    run(told)

"""``storescope serve`` is killed (-9) while clients send and pop: messages without acknowledgement come again, and
acknowledged ones do not within one life. Two kills, unless ``--serve-kills`` sets more.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from real_cluster import free_port

from engine.codec.message import Unit, decode
from engine.inspection.snapshot import open_store
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command

pytestmark = pytest.mark.timeout(3600)
TOPIC, QUEUES = "Orders", 4
SEND_FIELDS = {
    "producerGroup": "senders",
    "topic": TOPIC,
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": str(QUEUES),
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "0",
    "properties": "",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}


@dataclass
class Account:
    """The broker's address, and the number of its life."""

    life: int = 0
    address: str = ""


class ServeProcess:
    """A process of ``serve``."""

    def __init__(self, store: Path, port: int) -> None:
        self._words = [
            sys.executable,
            "-m",
            "engine.cli",
            "serve",
            str(store),
            "--port",
            str(port),
            "--namesrv-port",
            "0",
            "--no-backup",
            "--json",
        ]
        self.process: asyncio.subprocess.Process | None = None
        self.address = ""

    async def begin(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self._words, stdout=asyncio.subprocess.PIPE, env=os.environ
        )
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "it ended before it accepted; why stands on standard error"
        self.address = json.loads(line)["broker"]

    async def end(self, how: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return await self.process.wait()


async def opened(account: Account) -> Connection:
    """Return a connection to the life that accepts."""
    while True:
        host, _, port = account.address.rpartition(":")
        try:
            return await connect(host, int(port))
        except (OSError, TimeoutError, ValueError):
            await asyncio.sleep(0.05)


def units_of(body: bytes) -> Iterator[Unit]:
    """Return the units of a pull's body."""
    position = 0
    while position < len(body):
        unit = decode(body, position)
        yield unit
        position += unit.size


INVISIBLE_MS = 2_000
FORGOTTEN = 5
"""One in so many messages is not acknowledged when it comes first: it has to come again."""


@dataclass
class Popped:
    """Results of popping consumers: bodies by number of deliveries, and those whose acknowledgement was accepted."""

    came: dict[bytes, int] = field(default_factory=lambda: defaultdict(int))
    done: dict[bytes, int] = field(default_factory=dict)
    """Body to the life in which it was acknowledged first."""
    in_time: set[bytes] = field(default_factory=set)
    """Those that were acknowledged before they were visible again."""
    again: list[tuple[bytes, int]] = field(default_factory=list)
    """Which of these came once more, and in which life."""


async def pop(account: Account, popped: Popped, ended: asyncio.Event) -> None:
    """Acknowledge every delivery, except for those that are forgotten the first time."""
    while not ended.is_set():
        connection, life = await opened(account), account.life
        with contextlib.suppress(OSError, TimeoutError):
            while not ended.is_set():
                await _pop_once(popped, connection, life)
        connection.close()


async def _pop_once(popped: Popped, connection: Connection, life: int) -> None:
    fields = {
        "consumerGroup": "popping",
        "topic": TOPIC,
        "queueId": "-1",
        "maxMsgNums": "32",
        "bornTime": "0",
        "invisibleTime": str(INVISIBLE_MS),
        "pollTime": "400",
        "initMode": "0",
        "order": "false",
    }
    answer = await connection.ask(Command(200050, fields, version=479))
    if answer.code != 0:
        await asyncio.sleep(0.02)
        return
    actual_fields = answer.fields
    starts = {tuple(word.split()[:2]): word.split()[2] for word in actual_fields["startOffsetInfo"].split(";")}
    for unit in units_of(bytes(answer.body)):
        popped.came[unit.body] += 1
        if unit.body in popped.in_time:
            popped.again.append((unit.body, life))
        if popped.came[unit.body] == 1 and int(unit.body.split()[1]) % FORGOTTEN == 0:
            continue
        mark = "1" if "POP_CK" in unit.properties else "0"
        start = starts[mark, str(unit.queue_id)]
        popped_at, revive_queue = actual_fields["popTime"], actual_fields["reviveQid"]
        handle = f"{start} {popped_at} {INVISIBLE_MS} {revive_queue} {mark} broker-a {unit.queue_id}"
        acked = {
            "consumerGroup": "popping",
            "topic": f"%RETRY%popping_{TOPIC}" if mark == "1" else TOPIC,
            "queueId": str(unit.queue_id),
            "offset": str(unit.queue_offset),
            "extraInfo": f"{handle} {unit.queue_offset}",
        }
        if (await connection.ask(Command(200051, acked, version=479))).code == 0:
            popped.done.setdefault(unit.body, life)
            if time.time() * 1000 < int(actual_fields["popTime"]) + INVISIBLE_MS:
                popped.in_time.add(unit.body)


async def send_some(account: Account, sent: set[bytes], ended: asyncio.Event) -> None:
    """Send each again until it is acknowledged; its body is its queue and a number."""
    connection = await opened(account)
    for number in itertools.count():
        if ended.is_set():
            return
        body = b"%d %d" % (number % QUEUES, number)
        while True:
            request = Command(10, {**SEND_FIELDS, "queueId": str(number % QUEUES)}, body=body, version=477)
            with contextlib.suppress(OSError, TimeoutError):
                if (await connection.ask(request)).code == 0:
                    sent.add(body)
                    break
            connection = await opened(account)
        await asyncio.sleep(0.005)


async def popping_rounds(store: Path, kills: int, seed: int) -> tuple[Popped, set[bytes], Account]:
    """Run lives, each killed but the last, in which every open message comes again and is acknowledged."""
    account, popped, chance = Account(), Popped(), random.Random(seed)
    sent: set[bytes] = set()
    enough, ended = asyncio.Event(), asyncio.Event()
    # not one of those that the system gives to connections: while it is dead somebody's would have its port
    port = free_port()
    life = ServeProcess(store, port)
    await life.begin()
    account.address = life.address
    sender = asyncio.create_task(send_some(account, sent, enough))
    poppers = [asyncio.create_task(pop(account, popped, ended)) for _ in range(2)]
    for _ in range(kills):
        await asyncio.sleep(chance.uniform(0.5, 2.5))
        assert await life.end(signal.SIGKILL) == -signal.SIGKILL
        account.life += 1
        life = ServeProcess(store, port)
        await life.begin()
    await asyncio.sleep(0.3)
    enough.set()
    await sender
    async with asyncio.timeout(120):
        while not sent <= popped.done.keys():
            await asyncio.sleep(0.05)
    ended.set()
    await asyncio.gather(*poppers)
    assert await life.end(signal.SIGINT) == 0
    return popped, sent, account


def test_popped_messages_without_acknowledgement_come_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Over kills, too. An acknowledged message came again only in a later life: offsets are saved every few seconds, so
    a killed broker pops some messages anew, as RocketMQ does.
    """
    kills = request.config.getoption("--serve-kills")
    popped, sent, account = asyncio.run(popping_rounds(tmp_path / "store", kills, seed=kills))
    assert account.life == kills
    assert len(sent) > 20 * kills
    assert sent <= popped.done.keys()
    assert [body for body, life in popped.again if life == 0] == []
    with open_store(tmp_path / "store") as snapshot:
        units = [item for item in snapshot.log.walk() if isinstance(item, Unit)]
    tags = [unit.tags for unit in units if unit.topic == "rmq_sys_wheel_timer"]
    assert tags.count("ck") > 0
    assert tags.count("ack") >= len(popped.done)

"""A master and its slave are killed (-9) at random while clients send, over a link that is slow and is cut: every
message acknowledged under SYNC_MASTER is in both logs, and both have the same bytes. Five kills, unless
``--replica-kills`` sets more.
"""

from __future__ import annotations

import asyncio
import contextlib
import filecmp
import itertools
import json
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faulty_link import Link

from engine.cli.main import main
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command

pytestmark = pytest.mark.timeout(3600)
TOPIC, QUEUES = "Orders", 4
TIMEOUT_S = 60.0
SIZES = (
    "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"
    "maxMessageSize=8192\ncommitLogRecoverMaxNum=10000\n"
)
MASTER = SIZES + "brokerRole=SYNC_MASTER\ninSyncReplicas=2\nslaveTimeout=1000\n"
SLAVE = SIZES + "brokerRole=SLAVE\nbrokerId=1\nhaMasterAddress=127.0.0.1:{port}\n"
SEND = {
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


class ServeProcess:
    """Processes of ``serve`` over one store, one after another."""

    def __init__(self, folder: Path, config: str) -> None:
        folder.mkdir()
        self.store = folder / "store"
        (folder / "broker.conf").write_text(config)
        self._words = [
            sys.executable,
            "-m",
            "engine.cli",
            "serve",
            str(self.store),
            "--config",
            str(folder / "broker.conf"),
            "--namesrv-port",
            "0",
            "--port",
            "0",
            "--no-backup",
            "--json",
            *(("--register", "--yes") if "haMasterAddress" in config else ()),
        ]
        self._output_file = folder / "output.log"
        self._process: asyncio.subprocess.Process | None = None
        self.address = self.ha = ""

    async def begin(self) -> None:
        with self._output_file.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._words, stdout=asyncio.subprocess.PIPE, stderr=output, env=os.environ
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line, self.words()
        record = json.loads(line)
        self.address, self.ha = record["broker"], record["ha"]

    async def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self.address = self.ha = ""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(how)
        return await self._process.wait()

    def words(self) -> str:
        return self._output_file.read_text("utf-8")[-3000:]


@dataclass
class Account:
    """Messages acknowledged with a slave, and those that only the master had in time."""

    master: ServeProcess
    acknowledged: set[tuple[int, int]] = field(default_factory=set)
    stored: set[tuple[int, int]] = field(default_factory=set)
    sending: bool = True


async def opened(account: Account) -> Connection:
    while True:
        host, _, port = account.master.address.rpartition(":")
        try:
            return await connect(host, int(port or 1))
        except (OSError, TimeoutError, ValueError):
            await asyncio.sleep(0.05)


async def send(account: Account, queue: int) -> None:
    """Send one by one; repeat messages without an answer."""
    connection = await opened(account)
    for number in itertools.count():
        if not account.sending:
            break
        body = b"%d " % number + bytes(number * 37 % 1500)
        with contextlib.suppress(OSError, TimeoutError):
            answer = await connection.ask(Command(10, {**SEND, "queueId": str(queue)}, body=body, version=477), 10)
            assert answer.code in (0, 12), answer
            (account.acknowledged if answer.code == 0 else account.stored).add((queue, number))
            continue
        connection.close()
        connection = await opened(account)
    connection.close()


def written(store: Path) -> list[str]:
    """Return files of the log with data: one more may have been made ahead, on either side."""
    return sorted(file.name for file in (store / "commitlog").iterdir() if file.read_bytes().strip(b"\0"))


def same(master: Path, slave: Path) -> bool:
    """Return True if the slave has every file of the master with data, byte for byte, and no other."""
    names = written(master)
    return names == written(slave) and all(
        filecmp.cmp(master / "commitlog" / name, slave / "commitlog" / name, shallow=False) for name in names
    )


async def rounds(folder: Path, kills: int, seed: int) -> tuple[Account, ServeProcess, ServeProcess]:
    chance = random.Random(seed)
    master = ServeProcess(folder / "master", MASTER)
    account = Account(master)
    link = Link(lambda: master.ha)
    await link.open()
    try:
        slave = ServeProcess(folder / "slave", SLAVE.format(port=link.port))
        try:
            await master.begin()
            await slave.begin()
            senders = [asyncio.create_task(send(account, queue)) for queue in range(QUEUES)]
            for _ in range(kills):
                acknowledged_before = len(account.acknowledged)
                async with asyncio.timeout(TIMEOUT_S):
                    while len(account.acknowledged) < acknowledged_before + 20:
                        await asyncio.sleep(0.02)
                link.slow = chance.random() < 0.4
                await asyncio.sleep(chance.uniform(0.1, 0.8))
                if chance.random() < 0.4:
                    link.cut()
                    await asyncio.sleep(chance.uniform(0, 0.5))
                killed = chance.choice([[master], [slave], [master, slave], [slave, master]])
                for life in killed:
                    assert await life.end(signal.SIGKILL) == -signal.SIGKILL, life.words()
                for life in chance.sample(killed, len(killed)):
                    await asyncio.sleep(chance.uniform(0, 0.3))
                    await life.begin()
                link.slow = False
            account.sending = False
            await asyncio.gather(*senders)
            async with asyncio.timeout(TIMEOUT_S):
                while not same(master.store, slave.store):
                    await asyncio.sleep(0.2)
            for life in (master, slave):
                assert await life.end(signal.SIGINT) == 0, life.words()
        except BaseException:
            for life in (master, slave):
                with contextlib.suppress(Exception):
                    await life.end(signal.SIGKILL)
            raise
    finally:
        await link.close()
    return account, master, slave


def test_master_and_slave_have_acknowledged_messages_and_the_same_bytes(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kills, seed = request.config.getoption("--replica-kills"), request.config.getoption("--kill-first")
    account, master, slave = asyncio.run(rounds(tmp_path, kills, seed))
    assert len(account.acknowledged) >= 20 * kills
    assert same(master.store, slave.store)
    assert len(list((slave.store / "commitlog").iterdir())) >= 3
    for life in (master, slave):
        with open_store(life.store) as snapshot:
            units = [item for item in snapshot.log.walk() if isinstance(item, Unit) and item.topic == TOPIC]
        stored = {(unit.queue_id, int(unit.body.split(b" ")[0])) for unit in units}
        assert account.acknowledged | account.stored <= stored
        assert main(["check", str(life.store)]) == 0

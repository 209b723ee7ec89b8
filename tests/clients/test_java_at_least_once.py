"""RocketMQ's Java clients send and consume while our broker is killed (-9), restarted, cut off, its disk slow and full,
and one of them is killed. Every acknowledged message is stored and delivered at least once, orderly queues stay in
order, and each duplicate has its reason. In full form; ``--java-fault-rounds`` sets the number of rounds.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from delivery_account import Account, QueueReading, settle
from fault_rounds import BATCHED, GROUPS, QUEUES, TIMEOUT_S, TOPIC, campaign, ends_of, make_topic, units_of

from engine.cli.main import main
from engine.client.producer import Producer

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(7200)]
Line = dict[str, Any]
PAUSE_MS = 20
CONCURRENT, ORDERLY = GROUPS


class JavaProcess:
    """A process of ``tests/clients/java/counted``; each of its lines goes to ``on_line``."""

    def __init__(self, home: Path, on_line: Callable[[Line], None]) -> None:
        self._home, self._on_line = home, on_line
        self._kinds: set[str] = set()
        self._reader: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, *words: object) -> None:
        """Start the process and wait until its clients have started."""
        self._home.mkdir()
        with (self._home / "errors.log").open("wb") as errors:
            self._process = await asyncio.create_subprocess_exec(
                "bash",
                str(real_cluster.JAVA / "counted"),
                "5.3.3",
                *map(str, words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**real_cluster.environment(), "COUNTED_HOME": str(self._home)},
            )
        self._reader = asyncio.create_task(self._read())
        await self._until("started")

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for text in self._process.stdout:
            if not text.endswith(b"\n"):  # killed in the middle of it
                return
            line = json.loads(text)
            self._kinds.add(line["kind"])
            self._on_line(line)

    async def _until(self, kind: str) -> None:
        assert self._reader is not None
        async with asyncio.timeout(TIMEOUT_S):
            while kind not in self._kinds:
                errors = self._home / "errors.log"
                assert not self._reader.done(), errors.read_text("utf-8", "replace")[-2000:]
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        """Let its clients say goodbye; sends are acknowledged before."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._until("ended")
        await self._over()

    async def kill(self) -> None:
        """Kill the process like ``kill -9``, if it still runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._over()

    async def _over(self) -> None:
        assert self._process is not None
        assert self._reader is not None
        await self._process.wait()
        await self._reader


class JavaClients:
    """Senders in one process, and two with a consumer of each group (:class:`fault_rounds.Clients`)."""

    def __init__(self, account: Account, namesrv: str, folder: Path) -> None:
        self.account, self._namesrv, self._folder = account, namesrv, folder
        self._asker = Producer("askers", namesrv)
        self._senders = JavaProcess(folder / "senders", self._sent)
        self._readers: dict[int, JavaProcess] = {}
        self._joined = 0
        self._received: list[tuple[int, Line]] = []
        self.behind, self.tails = [0] * QUEUES, [0] * QUEUES

    async def start(self, broker: str) -> None:
        await self._asker.start()
        await make_topic(self._asker.instance, broker)
        for _ in range(2):
            await self._join()
        await self._senders.start(self._namesrv, TOPIC, "senders", QUEUES, BATCHED, PAUSE_MS)

    async def _join(self) -> None:
        self._joined += 1
        number = self._joined
        if self._readers:
            self.account.note("a consumer that joined")
        process = JavaProcess(self._folder / f"readers{number}", lambda line: self._got(number, line))
        self._readers[number] = process
        await process.start(self._namesrv, TOPIC, "readers", CONCURRENT, ORDERLY)

    async def replace(self, group: str, chance: random.Random) -> None:
        await self._readers.pop(chance.choice(list(self._readers))).kill()
        await self._join()

    def _sent(self, line: Line) -> None:
        account, kind = self.account, line["kind"]
        if kind in ("started", "ended"):
            return
        queue, first_number = line["queue"], line["first"]
        numbers = [(queue, number) for number in range(first_number, first_number + line["count"])]
        if kind == "acknowledged":
            account.acknowledge(numbers, line["status"])
            self.behind[queue] = first_number + line["count"]
            self.tails[queue] = max(self.tails[queue], line["offset"] + line["count"])
        elif kind == "refused":
            account.refused[line["code"], line["remark"]] += 1
        else:
            account.miss(numbers, line["at"])

    def _got(self, process: int, line: Line) -> None:
        if line["kind"] == "received":
            self._received.append((process, line))
            group, queue, offset = line["group"], line["queue"], line["offset"]
            self.account.order[group][queue].append(offset)
            self.account.distinct[group][queue].add(offset)

    def book(self) -> None:
        """Book the deliveries of all processes by their common clock, each in the reading that delivered it."""
        account = self.account
        account.order.clear()
        readings: dict[tuple[Any, ...], QueueReading] = {}
        for process, line in sorted(self._received, key=lambda item: item[1]["at"]):
            group, queue, offset = line["group"], line["queue"], line["offset"]
            key = process, group, queue
            reading = readings.get(key if line["reading"] < 0 else (*key, line["reading"]))
            if reading is None:
                reading = account.take(group, queue, offset, line["at"])
                readings[*key, line["reading"]] = readings[key] = reading
            if not GROUPS[group]:
                reading.start = min(reading.start, offset)
            account.deliver(group, reading, queue, offset, (line["of"], line["number"]))

    async def end_sending(self) -> None:
        await self._senders.end()

    async def ends(self) -> list[int]:
        return await ends_of(self._asker.instance)

    async def stop(self) -> None:
        await self._senders.kill()
        for reader in self._readers.values():
            await (reader.end() if sys.exc_info()[0] is None else reader.kill())
        await self._asker.stop()


def test_java_clients_get_every_acknowledged_message_at_least_once(
    tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds, seed = request.config.getoption("--java-fault-rounds"), request.config.getoption("--kill-first")
    java_clients: list[JavaClients] = []

    def clients(account: Account, namesrv: str) -> JavaClients:
        java_clients.append(JavaClients(account, namesrv, tmp_path))
        return java_clients[-1]

    account, life = asyncio.run(campaign(tmp_path, rounds, seed, clients))
    java_clients[0].book()
    report = settle(account, units_of(life.store), [ORDERLY], [BATCHED])
    capsys.readouterr()
    with capsys.disabled():
        sys.stdout.write(f"\n{rounds} rounds: {report.line()}\n")
    assert {code for code, _ in account.refused} <= {1, 14}
    assert report.copies.total() > 0
    assert main(["check", str(life.store)]) == 0, capsys.readouterr().out
    assert "Traceback" not in life.output

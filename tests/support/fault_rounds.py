"""Rounds of faults around a broker with clients: kills (-9), restarts, cut and half closed connections, lost answers,
slow, full and nearly full disks, killed consumers. The test provides the clients; an :class:`delivery_account.Account`
keeps their answers.

Locks of queues (``queue_locks``) live shorter than RocketMQ's minute here, and clients renew them sooner: the queues of
a killed orderly consumer are free again after :data:`troubled_disk.LOCKS_MS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol

from delivery_account import Account
from faulty_link import Link
from troubled_disk import DiskTrouble

from engine.client import broker_api
from engine.client.instance import ClientInstance
from engine.client.routes import MessageQueue
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.namesrv.server import ListeningNameServer

ROOT = Path(__file__).resolve().parents[2]
TOPIC, QUEUES, BEHIND = "Orders", 4, "127.0.0.2"
"""The broker listens at another address of the loopback than it tells its clients: there is the link."""
BATCHED = 3
"""The queue whose messages come in batches of :data:`BATCH`."""
BATCH = 3
TIMEOUT_S = 120.0
RENEWAL, OWN_LOCKS_MS = 1.0, 5_000
"""Seconds between two renewals of a client's locks, and milliseconds after which it counts one as lost."""
CONFIG = (
    "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"
    "maxMessageSize=8192\ncleanResourceInterval=100\ncleanFileForciblyEnable=false\nsyncFlushTimeout=150\n"
)
GROUPS = {"readers": False, "in-order": True}
"""Groups, and whether they consume in order."""
WITHOUT_ROOM = (
    "messages cannot be stored",
    "the log cannot grow",
    "dispatch waits",
    "tables are not saved",
    "the checkpoint is not written",
    "queues are not flushed",
)
FOR_GOOD = ("messages are refused, queue write error", "messages are refused, index write error")
"""After so many tries RocketMQ's store takes nothing more until it is started anew; ours does the same."""


class Clients(Protocol):
    """Senders, one a queue, and two consumers of each group."""

    account: Account
    behind: list[int]
    """The number of the last acknowledged message of each queue."""
    tails: list[int]
    """Of each queue the offset behind its last acknowledged message."""

    async def start(self, broker: str) -> None:
        """Make the topic, and begin to send and to consume."""

    async def replace(self, group: str, chance: random.Random) -> None:
        """Kill a consumer of a group, and start another one."""

    async def end_sending(self) -> None:
        """Stop sending; afterwards every message is acknowledged."""

    async def ends(self) -> list[int]:
        """Return the number of messages of each queue, as soon as the broker answers."""

    async def stop(self) -> None:
        """Let all clients say goodbye."""


async def make_topic(instance: ClientInstance, broker: str) -> None:
    """Make the topic, and wait until the name server knows it."""
    fields = {
        "topic": TOPIC,
        "defaultTopic": "TBW102",
        "readQueueNums": QUEUES,
        "writeQueueNums": QUEUES,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
    }
    await instance.call(broker, 17, fields)
    async with asyncio.timeout(TIMEOUT_S):
        while await instance.fresh_route(TOPIC) is None:
            await asyncio.sleep(0.02)


async def ends_of(instance: ClientInstance) -> list[int]:
    """Return the queue offset after the last message of each queue."""
    queues = [MessageQueue(TOPIC, "broker-a", queue) for queue in range(QUEUES)]
    return [await broker_api.max_offset(instance, queue) for queue in queues]


class ServeProcess:
    """Processes of ``serve``, one after another, over one store, on a disk with faults."""

    def __init__(self, folder: Path, namesrv: str, link: Link) -> None:
        self.store, self._output, self._config = folder / "store", folder / "stderr.log", folder / "broker.conf"
        self.trouble = DiskTrouble(folder / "trouble")
        self.flush = "SYNC_FLUSH"
        self._words = [
            sys.executable,
            str(ROOT / "tests/support/troubled_disk.py"),
            str(folder / "trouble"),
            "serve",
            str(self.store),
            "--config",
            str(self._config),
            "--listen",
            BEHIND,
            "--port",
            str(link.port),
            "--namesrv",
            namesrv,
            "--no-backup",
            "--json",
        ]
        self._link = link
        self._began = 0
        self._process: asyncio.subprocess.Process | None = None

    async def begin(self) -> bool:
        """Start the process; return True if it accepts connections. Otherwise it has ended and printed its reason."""
        self._config.write_text(f"{CONFIG}flushDiskType={self.flush}\n")
        with self._output.open("ab") as output:
            self._began = output.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._words, stdout=asyncio.subprocess.PIPE, stderr=output, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            assert await self._process.wait() != 0
            return False
        assert json.loads(line)["broker"] == f"127.0.0.1:{self._link.port}"
        await self._link.open()
        return True

    async def end(self, how: signal.Signals) -> int:
        """End the process by a signal."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(how)
        code = await self._process.wait()
        await self._link.close()
        return code

    async def where(self) -> str:
        """Return the positions of its threads, and its earlier output."""
        assert self._process is not None
        if self._process.returncode is not None:
            return f"it has ended with {self._process.returncode}: {self.output[-2000:]}"
        self._process.send_signal(signal.SIGUSR1)
        await asyncio.sleep(1.0)
        return self.output[-26_000:]

    @property
    def output(self) -> str:
        """Its output on standard error, over all lives."""
        return self._output.read_text("utf-8")

    def reports_any(self, *troubles: str) -> bool:
        """Return True if the process has reported one of these troubles and not its end."""
        current_troubles: set[str] = set()
        for line in self.output[self._began :].splitlines():
            trouble, _, name = line.removeprefix("storescope: ").partition(": ")
            if trouble == "over":
                current_troubles.discard(name)
            else:
                current_troubles.add(trouble)
        return not current_troubles.isdisjoint(troubles)


class FaultRounds:
    """Faults, and the conditions that must hold before the next one."""

    def __init__(self, clients: Clients, life: ServeProcess, link: Link, chance: random.Random) -> None:
        self._clients, self._life, self._link, self._chance = clients, life, link, chance
        self._account = clients.account

    async def round(self, *faults: str) -> None:
        """Cause one fault after another; after each of them every sender must continue."""
        for fault in faults:
            self._account.strike(fault)
            await getattr(self, "_" + fault.replace(" ", "_"))()
            self._life.trouble.be()
            acknowledged_before = list(self._clients.behind)

            def goes_on(acknowledged_before=acknowledged_before) -> bool:
                return all(map(int.__gt__, self._clients.behind, acknowledged_before))

            await self._until(lambda: goes_on() or self._life.reports_any(*FOR_GOOD), fault)
            if not goes_on():
                await self._a_restart()
                await self._until(goes_on, f"{fault}, and a restart")

    async def _until(self, condition: Callable[[], object], words: str) -> None:
        """Wait until the condition holds; if it does not in time, fail with the state of broker and senders."""
        acknowledged_before = list(self._clients.behind)
        try:
            await wait_until(condition, words)
        except AssertionError as error:
            text = f"senders went from {acknowledged_before} to {self._clients.behind}; {self._link}"
            raise AssertionError(f"{error}; {text}; the broker: {await self._life.where()}") from None

    async def settle_down(self) -> None:
        """Wait until every group has every message acknowledged up to now."""
        ends = list(self._clients.tails)
        for group in GROUPS:
            await self.until_it_has(group, ends)

    async def until_it_has(self, group: str, ends: Sequence[int]) -> None:
        """Wait until each queue offset before these was delivered to a group; fail if it makes no progress. A consumer
        may have to begin anew: offsets that were not saved when a broker was killed are lost, as with RocketMQ.
        """
        queues = self._account.order[group]
        while not self._account.has_all(group, ends):
            total = sum(map(len, queues.values()))
            await self._until(
                lambda arguments=total: (
                    sum(map(len, queues.values())) > arguments or self._account.has_all(group, ends)
                ),
                f"{group} goes on; it has {[len(item) for item in self._account.distinct[group].values()]} of {ends}",
            )

    async def all_dispatched(self) -> list[int]:
        """Return the number of messages of each queue, after all acknowledged ones are dispatched: this may take a
        while after a full disk.
        """
        async with asyncio.timeout(TIMEOUT_S):
            while any(map(int.__lt__, ends := await self._clients.ends(), self._clients.tails)):
                await asyncio.sleep(0.05)
        return ends

    async def _moment(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.05, 0.3))

    async def _a_kill(self) -> None:
        assert await self._life.end(signal.SIGKILL) == -signal.SIGKILL, self._life.output
        self._life.flush = self._chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))
        assert await self._life.begin(), self._life.output

    async def _a_restart(self) -> None:
        assert await self._life.end(signal.SIGINT) == 0, self._life.output
        self._life.flush = self._chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))
        assert await self._life.begin(), self._life.output

    async def _a_cut(self) -> None:
        self._link.cut()

    async def _half_a_cut(self) -> None:
        self._link.half_close()

    async def _lost_answers(self) -> None:
        self._link.answers_are_lost = True
        lost_before = self._link.lost
        await wait_until(lambda: self._link.lost >= lost_before + QUEUES, "answers are lost")
        self._link.cut()
        self._link.answers_are_lost = False

    async def _a_slow_link(self) -> None:
        self._link.slow = True
        acknowledged_before = list(self._clients.behind)
        await wait_until(lambda: all(map(int.__gt__, self._clients.behind, acknowledged_before)), "a slow link")
        if self._chance.random() < 0.5:
            self._link.cut()
        self._link.slow = False

    async def _a_slow_disk(self) -> None:
        account = self._account
        timeouts_before = account.statuses["FLUSH_DISK_TIMEOUT"]
        self._life.trouble.be(flush_ms=250)
        if self._life.flush == "SYNC_FLUSH":
            await wait_until(lambda: account.statuses["FLUSH_DISK_TIMEOUT"] > timeouts_before, "a slow disk")
        else:
            await self._moment()

    async def _a_kill_on_a_slow_disk(self) -> None:
        self._life.trouble.be(flush_ms=400)
        await self._moment()
        await self._a_kill()

    async def _a_full_disk(self) -> None:
        refused_before = self._account.refused.total()
        self._life.trouble.be(full=True)
        await wait_until(lambda: self._account.refused.total() > refused_before, "a full disk refuses")
        await wait_until(lambda: self._life.reports_any(*WITHOUT_ROOM, *FOR_GOOD), "a full disk is told")

    async def _a_cut_on_a_full_disk(self) -> None:
        await self._a_full_disk()
        self._link.cut()
        await self._moment()

    async def _a_kill_on_a_full_disk(self) -> None:
        await self._a_full_disk()
        assert await self._life.end(signal.SIGKILL) == -signal.SIGKILL, self._life.output
        assert not await self._life.begin(), "it started on a full disk"
        self._life.trouble.be()
        assert await self._life.begin(), self._life.output

    async def _a_nearly_full_disk(self) -> None:
        def refusals() -> int:
            return sum(count for (code, _), count in self._account.refused.items() if code == 14)

        refused_before = refusals()
        self._life.trouble.be(used=0.95)
        await wait_until(lambda: refusals() > refused_before, "a nearly full disk refuses")
        if self._chance.random() < 0.5:
            await self._a_cut()
        await wait_until(
            lambda: self._life.reports_any("messages are refused, disk full"), "a nearly full disk is told"
        )

    async def _a_killed_consumer(self) -> None:
        group = self._chance.choice(list(GROUPS)) if len(self._account.faults) > len(FIRST) else "readers"
        await self._clients.replace(group, self._chance)


FIRST = (
    ("a kill", "a killed consumer"),
    ("lost answers", "half a cut"),
    ("a slow disk",),
    ("a full disk", "a cut"),
    ("a nearly full disk", "a kill on a full disk"),
)
"""What the first rounds do; those behind them do what chance says."""
ALL = (
    "a kill",
    "a kill",
    "a restart",
    "a cut",
    "half a cut",
    "lost answers",
    "a slow link",
    "a slow disk",
    "a kill on a slow disk",
    "a full disk",
    "a cut on a full disk",
    "a kill on a full disk",
    "a nearly full disk",
    "a killed consumer",
    "a killed consumer",
)


async def wait_until(condition: Callable[[], object], words: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait until the condition holds; fail with ``words`` if it does not in time."""
    try:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"still not so: {words}") from None


@contextlib.asynccontextmanager
async def standing(folder: Path) -> AsyncIterator[tuple[ServeProcess, Link, str]]:
    """Run a name server, a broker and the link before it; the broker is gone after the block."""
    async with ListeningNameServer(port=0) as names:
        link = Link(lambda: f"{BEHIND}:{link.port}")
        await link.open()
        life = ServeProcess(folder, names.address, link)
        try:
            yield life, link, names.address
        finally:
            await life.end(signal.SIGKILL)
            await link.close()


async def campaign(
    folder: Path, rounds: int, seed: int, make_clients: Callable[[Account, str], Clients]
) -> tuple[Account, ServeProcess]:
    """Run so many rounds around the clients that ``made(account, name server)`` returns. ``rounds.log`` in ``folder``
    gets a line for each ended round.
    """
    account, chance = Account(), random.Random(seed)
    async with standing(folder) as (life, link, namesrv):
        assert await life.begin(), life.output
        clients = make_clients(account, namesrv)
        try:
            await clients.start(f"127.0.0.1:{link.port}")
            rounds_of = FaultRounds(clients, life, link, chance)
            for number in range(rounds):
                faults = FIRST[number] if number < len(FIRST) else chance.sample(ALL, chance.randint(1, 3))
                await rounds_of.round(*faults)
                if number % len(FIRST) == 0 or number > len(FIRST):
                    await rounds_of.settle_down()
                with (folder / "rounds.log").open("a") as log:
                    log.write(f"{number}: {', '.join(faults)}; {len(account.acknowledged)} acknowledged\n")
            await clients.end_sending()
            for group in GROUPS:
                await rounds_of.until_it_has(group, await rounds_of.all_dispatched())
        finally:
            await clients.stop()
        assert await life.end(signal.SIGINT) == 0, life.output
    return account, life


def units_of(store: Path) -> list[Unit]:
    """Return the units of the topic, in the order of the log."""
    with open_store(store) as snapshot:
        return [unit for unit in snapshot.log.walk() if isinstance(unit, Unit) and unit.topic == TOPIC]

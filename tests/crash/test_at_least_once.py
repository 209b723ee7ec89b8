"""Clients send and consume while their broker is killed (-9), restarted, cut off, half closed, its disk slow, full and
nearly full: what was acknowledged is stored and delivered at least once, queues that are consumed in order stay in
order, and each double has its reason. Five rounds, unless ``--fault-rounds`` says more.
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
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from counted_deliveries import Account, Reading, body_of, number_of, settle
from faulty_link import Link
from stumbling_disk import Trouble

from engine.cli.main import main
from engine.client import consuming, questions
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import BrokerRefused, ClientError
from engine.client.events import Event, EventStream, QueueTaken
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.namesrv.server import ListeningNameServer

pytestmark = pytest.mark.timeout(7200)
ROOT = Path(__file__).resolve().parents[2]
TOPIC, QUEUES, BEHIND = "Orders", 4, "127.0.0.2"
"""The broker listens at another address of the loopback than it tells its clients: there is the link."""
BATCHED = 3
"""The queue whose messages come in batches."""
PATIENCE = 60.0
LOCKED = 180.0
"""A killed consumer's queues stay locked for a minute, as with RocketMQ: nobody else consumes them in order before."""
CONFIG = (
    "mappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"
    "maxMessageSize=8192\ncleanResourceInterval=100\ncleanFileForciblyEnable=false\nsyncFlushTimeout=150\n"
)
GROUPS = {"readers": False, "in-order": True}
"""Groups, and whether they consume in order."""
WITHOUT_ROOM = (
    "messages cannot be stored", "the log cannot grow", "dispatch waits", "tables are not saved",
    "the checkpoint is not written", "queues are not flushed",
)  # fmt: skip
FOR_GOOD = ("messages are refused, queue write error", "messages are refused, index write error")
"""After so many tries RocketMQ's store takes nothing more until it is started anew; ours does the same."""


class Life:
    """One process of ``serve`` after the other over one store, on a disk that stumbles."""

    def __init__(self, folder: Path, namesrv: str, link: Link) -> None:
        self.store, self._said, self._config = folder / "store", folder / "said.log", folder / "broker.conf"
        self.trouble = Trouble(folder / "trouble")
        self.flush = "SYNC_FLUSH"
        self._words = [
            sys.executable, str(ROOT / "tests/support/stumbling_disk.py"), str(folder / "trouble"), "serve",
            str(self.store), "--config", str(self._config), "--listen", BEHIND, "--port", str(link.port),
            "--namesrv", namesrv, "--no-backup", "--json",
        ]  # fmt: skip
        self._link = link
        self._began = 0
        self._process: asyncio.subprocess.Process | None = None

    async def begin(self) -> bool:
        """Start; whether it accepts. Where it does not it has ended, and said why."""
        self._config.write_text(f"{CONFIG}flushDiskType={self.flush}\n")
        with self._said.open("ab") as said:
            self._began = said.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self._words, stdout=asyncio.subprocess.PIPE, stderr=said, env={**os.environ, "PYTHONPATH": str(ROOT)}
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
        """End the process, by whatever signal."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(how)
        code = await self._process.wait()
        await self._link.close()
        return code

    @property
    def words(self) -> str:
        """What it said on standard error, over all lives."""
        return self._said.read_text("utf-8")

    def says(self, *troubles: str) -> bool:
        """Whether it has one of these troubles now, as it says itself."""
        known: set[str] = set()
        for line in self.words[self._began :].splitlines():
            what, _, rest = line.removeprefix("storescope: ").partition(": ")
            if what == "over":
                known.discard(rest)
            else:
                known.add(what)
        return not known.isdisjoint(troubles)


class Clients:
    """Senders, one a queue, and two consumers of each group, all of ours."""

    def __init__(self, account: Account, namesrv: str) -> None:
        self.account, self._namesrv = account, namesrv
        self.producer = Producer("senders", namesrv)
        self.consumers: dict[str, list[Consumer]] = {group: [] for group in GROUPS}
        self._senders: list[asyncio.Task[None]] = []
        self._sending = True
        self.behind = [0] * QUEUES
        """The number of the last acknowledged message of each queue."""

    async def start(self, broker: str) -> None:
        await self.producer.start()
        fields = {
            "topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": QUEUES, "writeQueueNums": QUEUES, "perm": 6,
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
        }  # fmt: skip
        await self.producer.instance.call(broker, 17, fields)
        async with asyncio.timeout(PATIENCE):
            while await self.producer.instance.fresh_route(TOPIC) is None:
                await asyncio.sleep(0.02)
        for group in GROUPS:
            for _ in range(2):
                await self.join(group)
        self._senders = [asyncio.create_task(self._send(queue)) for queue in range(QUEUES)]

    async def join(self, group: str) -> None:
        """One more consumer of a group."""
        readings: dict[int, Reading] = {}
        events = EventStream()

        def saw(event: Event) -> None:
            if isinstance(event, QueueTaken) and event.queue.topic == TOPIC:
                readings[event.queue.queue_id] = self.account.take(group, event.queue.queue_id, event.offset)

        def listen(messages, context) -> None:
            for one in messages:
                queue = one.queue.queue_id
                self.account.deliver(group, readings[queue], queue, one.queue_offset, number_of(one.body))

        events.subscribe(saw)
        self.account.cause = "a consumer that joined" if self.consumers[group] else self.account.cause
        config = ConsumerConfig(
            start=FROM_FIRST, orderly=GROUPS[group], rebalance_interval=1.0, commit_interval=0.5, hold=2.0
        )
        made = Consumer(group, listen, self._namesrv, config, events=events)
        made.subscribe(TOPIC)
        await made.start()
        self.consumers[group].append(made)

    async def _send(self, queue: int) -> None:
        size = 3 if queue == BATCHED else 1
        for first in itertools.count(0, size):
            if not self._sending:
                return
            numbers = [(queue, number) for number in range(first, first + size)]
            await self._send_until_acknowledged(queue, numbers, [Message(TOPIC, body_of(*one)) for one in numbers])
            self.behind[queue] = first + size
            await asyncio.sleep(0.005)

    async def _send_until_acknowledged(
        self, queue: int, numbers: list[tuple[int, int]], messages: list[Message]
    ) -> None:
        account, what = self.account, messages if queue == BATCHED else messages[0]
        while True:
            try:
                result = await self.producer.send(what, queue=MessageQueue(TOPIC, "broker-a", queue), patience=2.0)
            except BrokerRefused as error:
                account.refused[error.code, error.remark] += 1
            except (ClientError, OSError, TimeoutError) as error:
                if not isinstance(error.__cause__, ConnectionRefusedError):
                    account.unanswered.update(numbers)
            else:
                account.acknowledge(numbers, result.status)
                return
            await asyncio.sleep(0.02)

    async def end_sending(self) -> None:
        """Whatever is on its way is acknowledged."""
        self._sending = False
        await asyncio.gather(*self._senders)

    async def ends(self) -> list[int]:
        """How many messages each queue has, once that answers."""
        queues = [MessageQueue(TOPIC, "broker-a", queue) for queue in range(QUEUES)]
        return [await questions.max_offset(self.producer.instance, queue) for queue in queues]

    async def stop(self) -> None:
        for consumers in self.consumers.values():
            for one in consumers:
                await one.stop()
        await self.producer.stop()


class Rounds:
    """What may happen, and what has to be so before the next thing does."""

    def __init__(self, clients: Clients, life: Life, link: Link, chance: random.Random) -> None:
        self._clients, self._life, self._link, self._chance = clients, life, link, chance
        self._account = clients.account

    async def round(self, *faults: str) -> None:
        """One fault after the other; behind each of them every sender goes on."""
        for fault in faults:
            self._account.strike(fault)
            await getattr(self, "_" + fault.replace(" ", "_"))()
            self._life.trouble.be()
            before = list(self._clients.behind)

            def goes_on(before=before) -> bool:
                return all(map(int.__gt__, self._clients.behind, before))

            await until(lambda: goes_on() or self._life.says(*FOR_GOOD), fault)
            if not goes_on():
                await self._a_restart()
                await until(goes_on, f"{fault}, and a restart")

    async def settle_down(self) -> None:
        """Every group goes on: it has what was acknowledged up to now."""
        ends = list(self._clients.behind)
        for group in GROUPS:
            await self.until_it_has(group, ends)

    async def until_it_has(self, group: str, ends: Sequence[int]) -> None:
        """Until each queue offset before these was delivered to a group; fails where it stands still. A consumer may
        have to begin anew: offsets that were not saved when a broker was killed are lost, as with RocketMQ.
        """
        queues = self._account.order[group]
        while not self._account.has_all(group, ends):
            given = sum(map(len, queues.values()))
            await until(
                lambda given=given: sum(map(len, queues.values())) > given or self._account.has_all(group, ends),
                f"{group} goes on; it has {[len(one) for one in self._account.distinct[group].values()]} of {ends}",
                LOCKED,
            )

    async def _moment(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.05, 0.3))

    async def _a_kill(self) -> None:
        assert await self._life.end(signal.SIGKILL) == -signal.SIGKILL, self._life.words
        self._life.flush = self._chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))
        assert await self._life.begin(), self._life.words

    async def _a_restart(self) -> None:
        assert await self._life.end(signal.SIGINT) == 0, self._life.words
        self._life.flush = self._chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))
        assert await self._life.begin(), self._life.words

    async def _a_cut(self) -> None:
        self._link.cut()

    async def _half_a_cut(self) -> None:
        self._link.half_close()

    async def _lost_answers(self) -> None:
        self._link.answers_are_lost = True
        before = self._link.lost
        await until(lambda: self._link.lost >= before + QUEUES, "answers are lost")
        self._link.cut()
        self._link.answers_are_lost = False

    async def _a_slow_link(self) -> None:
        self._link.slow = True
        before = list(self._clients.behind)
        await until(lambda: all(map(int.__gt__, self._clients.behind, before)), "a slow link")
        if self._chance.random() < 0.5:
            self._link.cut()
        self._link.slow = False

    async def _a_slow_disk(self) -> None:
        account = self._account
        before = account.statuses["FLUSH_DISK_TIMEOUT"]
        self._life.trouble.be(flush_ms=250)
        if self._life.flush == "SYNC_FLUSH":
            await until(lambda: account.statuses["FLUSH_DISK_TIMEOUT"] > before, "a slow disk")
        else:
            await self._moment()

    async def _a_kill_on_a_slow_disk(self) -> None:
        self._life.trouble.be(flush_ms=400)
        await self._moment()
        await self._a_kill()

    async def _a_full_disk(self) -> None:
        before = self._account.refused.total()
        self._life.trouble.be(full=True)
        await until(lambda: self._account.refused.total() > before, "a full disk refuses")
        await until(lambda: self._life.says(*WITHOUT_ROOM, *FOR_GOOD), "a full disk is told")

    async def _a_cut_on_a_full_disk(self) -> None:
        await self._a_full_disk()
        self._link.cut()
        await self._moment()

    async def _a_kill_on_a_full_disk(self) -> None:
        await self._a_full_disk()
        assert await self._life.end(signal.SIGKILL) == -signal.SIGKILL, self._life.words
        assert not await self._life.begin(), "it started on a full disk"
        self._life.trouble.be()
        assert await self._life.begin(), self._life.words

    async def _a_nearly_full_disk(self) -> None:
        def refusals() -> int:
            return sum(count for (code, _), count in self._account.refused.items() if code == 14)

        before = refusals()
        self._life.trouble.be(used=0.95)
        await until(lambda: refusals() > before, "a nearly full disk refuses")
        if self._chance.random() < 0.5:
            await self._a_cut()
        await until(lambda: self._life.says("messages are refused, disk full"), "a nearly full disk is told")

    async def _a_killed_consumer(self) -> None:
        group = self._chance.choice(list(GROUPS)) if len(self._account.faults) > len(FIRST) else "readers"
        consumers = self._clients.consumers[group]
        await consumers.pop(self._chance.randrange(len(consumers))).kill()
        await self._clients.join(group)


FIRST = (
    ("a kill", "a killed consumer"),
    ("lost answers", "half a cut"),
    ("a slow disk",),
    ("a full disk", "a cut"),
    ("a nearly full disk", "a kill on a full disk"),
)
"""What the first rounds do; those behind them do what chance says."""
ALL = (
    "a kill", "a kill", "a restart", "a cut", "half a cut", "lost answers", "a slow link", "a slow disk",
    "a kill on a slow disk", "a full disk", "a cut on a full disk", "a kill on a full disk", "a nearly full disk",
    "a killed consumer", "a killed consumer",
)  # fmt: skip


async def until(what: Callable[[], object], words: str, patience: float = PATIENCE) -> None:
    """Until it is so; fails with ``words`` where it is not in time."""
    try:
        async with asyncio.timeout(patience):
            while not what():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"still not so: {words}") from None


@contextlib.asynccontextmanager
async def standing(folder: Path) -> AsyncIterator[tuple[Life, Link, str]]:
    """A name server, a broker and the link before it; the broker is gone behind the block."""
    async with ListeningNameServer(port=0) as names:
        link = Link(lambda: f"{BEHIND}:{link.port}")
        await link.open()
        life = Life(folder, names.address, link)
        try:
            yield life, link, names.address
        finally:
            await life.end(signal.SIGKILL)
            await link.close()


async def campaign(folder: Path, rounds: int, seed: int) -> tuple[Account, Life]:
    account, chance = Account(), random.Random(seed)
    async with standing(folder) as (life, link, namesrv):
        assert await life.begin(), life.words
        clients = Clients(account, namesrv)
        await clients.start(f"127.0.0.1:{link.port}")
        rounds_of = Rounds(clients, life, link, chance)
        for number in range(rounds):
            faults = FIRST[number] if number < len(FIRST) else chance.sample(ALL, chance.randint(1, 3))
            await rounds_of.round(*faults)
            if number % len(FIRST) == 0 or number > len(FIRST):
                await rounds_of.settle_down()
        await clients.end_sending()
        ends = await clients.ends()
        while ends != (ends := await clients.ends()) or sum(ends) < len(account.acknowledged):
            await asyncio.sleep(0.05)
        for group in GROUPS:
            await rounds_of.until_it_has(group, ends)
        await clients.stop()
        assert await life.end(signal.SIGINT) == 0, life.words
    return account, life


def units_of(store: Path) -> list[Unit]:
    with open_store(store) as snapshot:
        return [one for one in snapshot.log.walk() if isinstance(one, Unit) and one.topic == TOPIC]


def test_what_was_acknowledged_is_stored_and_delivered_at_least_once(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consuming, "LOCK_RENEWAL", 1.0)
    rounds, seed = request.config.getoption("--fault-rounds"), request.config.getoption("--kill-first")
    account, life = asyncio.run(campaign(tmp_path, rounds, seed))
    in_order = [group for group, orderly in GROUPS.items() if orderly]
    report = settle(account, units_of(life.store), in_order, [BATCHED])
    capsys.readouterr()
    with capsys.disabled():
        sys.stdout.write(f"\n{rounds} rounds: {report.line()}\n")
    assert {code for code, _ in account.refused} <= {1, 14}
    assert report.copies > 0
    assert main(["check", str(life.store)]) == 0, capsys.readouterr().out
    assert "Traceback" not in life.words

"""Messages are sent once each, with their results; what is not answered is unknown, what is not written is not sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from brokers import run_scenario
from engine_units import units_of
from handmade_stores import HandmadeStore
from served_broker import ServedBroker, served

from engine.client.instance import ClientInstance
from engine.errors import CannotRead
from engine.message_store import MessageStore
from engine.remoting.codes import RequestCode, ResponseCode
from engine.remoting.connection import Connection, Server, bind, port_of
from engine.remoting.frame import Command, answer_to
from engine.resend import sending
from engine.resend.journal import REFUSED, SENT, UNKNOWN, Journal
from engine.resend.originals import StoredMessage, messages_of
from engine.resend.resend_plan import PlannedMessage, plan_resend
from engine.resend.sending import Destination, NotReached, SendOutcome, resend


class Run:
    """Dead letters in a store, and a run that sends them."""

    def __init__(self, folder: Path, count: int = 3, **more: str) -> None:
        store = HandmadeStore()
        for number in range(count):
            properties = {"RETRY_TOPIC": "Orders", **more}
            store.put("%DLQ%billing", unique=f"U{number}", body=b"%d" % number, more=properties)
        self.units = {unit.offset: unit for unit in units_of(store.write(folder / "source"))}
        self.journal = Journal(folder / "sent.jsonl")
        self.journal.create("source")
        self.plan = plan_resend(self.units.values(), self.journal)
        self.outcomes: list[SendOutcome] = []

    def read(self, planned: PlannedMessage) -> StoredMessage:
        (message,) = messages_of(self.units[planned.identity.physical_offset])
        return message

    async def send(self, address: str, **options) -> int:
        instance = ClientInstance(address)
        try:
            destination = Destination(instance, address)
            assert await destination.find_topics(["Orders"]) == {}
            add = self.outcomes.append
            return await resend(
                self.plan.to_send,
                self.read,
                destination,
                self.journal,
                on_result=lambda _, outcome: add(outcome),
                **options,
            )
        finally:
            await instance.kill()


def with_broker(tmp_path: Path, scenario: Callable, queues: int = 2) -> None:
    with MessageStore(tmp_path / "target") as store:
        store.tables.create_topic("Orders", queues)

    async def run() -> None:
        async with served(tmp_path / "target") as beside:
            await scenario(beside)

    run_scenario(run)


@pytest.mark.parametrize("by_name_server", [False, True])
def test_messages_arrive_in_turn_with_ids_and_places(tmp_path: Path, by_name_server: bool) -> None:
    run = Run(tmp_path)

    async def scenario(beside: ServedBroker) -> None:
        address = beside.namesrv if by_name_server else beside.server.address
        assert await run.send(address) == 3
        stored = sorted(beside.units("Orders"), key=lambda unit: unit.offset)
        assert [(unit.unique_key, unit.queue_id, unit.body) for unit in stored] == [
            ("U0", 0, b"0"),
            ("U1", 1, b"1"),
            ("U2", 0, b"2"),
        ]
        assert [(outcome.state, outcome.queue_id, outcome.queue_offset) for outcome in run.outcomes] == [
            (SENT, 0, 0),
            (SENT, 1, 0),
            (SENT, 0, 1),
        ]
        assert [outcome.offset_msg_id for outcome in run.outcomes] == [unit.offset_msg_id for unit in stored]
        assert {unit.born_timestamp for unit in stored} == {unit.born_timestamp for unit in run.units.values()}

    with_broker(tmp_path, scenario)


def test_messages_with_one_sharding_key_stay_in_one_queue(tmp_path: Path) -> None:
    run = Run(tmp_path, __SHARDINGKEY="order-7")

    async def scenario(beside: ServedBroker) -> None:
        await run.send(beside.server.address)
        assert len({outcome.queue_id for outcome in run.outcomes}) == 1
        assert [outcome.queue_offset for outcome in run.outcomes] == [0, 1, 2]

    with_broker(tmp_path, scenario, queues=8)


def test_the_rate_is_kept_and_a_stop_ends_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, count=5)
    stopped = asyncio.Event()

    async def scenario(beside: ServedBroker) -> None:
        start = time.monotonic()
        asyncio.get_running_loop().call_later(0.25, stopped.set)
        handled = await run.send(beside.server.address, rate=10, stopped=stopped)
        assert handled == len(run.outcomes) <= 3
        assert 0.2 < time.monotonic() - start < 1

    with_broker(tmp_path, scenario)


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def scenario(beside: ServedBroker) -> None:
        for address in (beside.server.address, beside.namesrv):
            instance = ClientInstance(address)
            refused = await Destination(instance, address).find_topics(["Orders", "Payments"])
            assert list(refused) == ["Payments"]
            await instance.kill()

    with_broker(tmp_path, scenario)


@asynccontextmanager
async def broker_that(answer: Callable[[Command, Connection], Command | None]) -> AsyncIterator[str]:
    """A broker with the topic Orders that answers sends as ``answer`` does."""

    def respond(request: Command, connection: Connection) -> Command | None:
        if request.code == RequestCode.GET_ALL_TOPIC_CONFIG:
            row = b'{"topicConfigTable":{"Orders":{"perm":6,"writeQueueNums":1,"readQueueNums":1}}}'
            return answer_to(request, body=row)
        if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return answer_to(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
        return answer(request, connection)

    server, listener = Server(respond), bind("127.0.0.1", 0)
    await server.listen(listener)
    try:
        yield f"127.0.0.1:{port_of(listener)}"
    finally:
        await server.close()


def test_a_refusal_has_its_words_and_the_next_message_is_sent(tmp_path: Path) -> None:
    run = Run(tmp_path)

    async def scenario() -> None:
        def refuse(request: Command, _: Connection) -> Command:
            return answer_to(request, ResponseCode.NO_PERMISSION, remark="not here")

        async with broker_that(refuse) as address:
            assert await run.send(address) == 3

    run_scenario(scenario)
    assert [(outcome.state, outcome.status) for outcome in run.outcomes] == [(REFUSED, "NO_PERMISSION")] * 3
    assert "not here" in (run.outcomes[0].reason or "")
    assert [run.journal.state(item.identity) for item in run.plan.messages] == [REFUSED] * 3


def test_what_is_not_answered_is_unknown_and_three_in_a_row_end_the_run(tmp_path: Path, monkeypatch) -> None:
    run = Run(tmp_path, count=5)
    monkeypatch.setattr(sending, "SEND_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        async with broker_that(lambda *_: None) as address:
            assert await run.send(address) == 3

    run_scenario(scenario)
    states = [run.journal.state(item.identity) for item in run.plan.messages]
    assert states == [UNKNOWN] * 3 + [None] * 2


def test_a_connection_that_ends_leaves_its_message_unknown(tmp_path: Path) -> None:
    run = Run(tmp_path)

    async def scenario() -> None:
        def hang_up(_: Command, connection: Connection) -> None:
            connection.close()

        async with broker_that(hang_up) as address:
            await run.send(address)

    run_scenario(scenario)
    assert run.journal.state(run.plan.messages[0].identity) == UNKNOWN


def test_without_a_connection_nothing_counts_as_sent(tmp_path: Path) -> None:
    run = Run(tmp_path)

    async def scenario(beside: ServedBroker) -> None:
        instance = ClientInstance(beside.server.address)
        destination = Destination(instance, beside.server.address)
        await destination.find_topics(["Orders"])
        destination._topics = {"Orders": (sending.TargetQueue("127.0.0.1:1", None, 0),)}
        with pytest.raises(NotReached):
            await resend(run.plan.to_send, run.read, destination, run.journal, on_result=lambda *_: None)
        with pytest.raises(CannotRead, match="cannot be reached"):
            await Destination(instance, "127.0.0.1:1").find_topics(["Orders"])
        await instance.kill()

    with_broker(tmp_path, scenario)
    assert run.journal.message_state(run.plan.messages[0].identity) is None

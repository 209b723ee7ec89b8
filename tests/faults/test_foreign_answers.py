"""Any answer of another server gives the caller one clear error, a result, or the answer of an absent server; no other
exception escapes, and a slave's tables stay unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served

from engine.broker.registration import ask_routes_at
from engine.client import broker_api
from engine.client.errors import ClientError
from engine.client.messages import Message
from engine.client.producer import Producer
from engine.client.routes import MessageQueue
from engine.cluster.reader import ClusterReader
from engine.codec.json_dialect import parse
from engine.message_store import MessageStore
from engine.remoting.answers import UnexpectedAnswer
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.remoting.subscriptions import Subscription
from engine.replication import master
from engine.store.config_tables import ConfigTables

QUEUE = MessageQueue("Orders", "broker-a", 1)
WRONG_VALUES: tuple[Any, ...] = (None, True, 5, -1, 1.5, "x", "", [], [5], ["x"], {}, {"x": 5}, {"x": None})
EXPECTED = (OSError, TimeoutError, ClientError, UnexpectedAnswer)
"""What who asks may raise."""


def spoiled_answers(answer: Command) -> Iterator[Command]:
    """Yield forms of a good answer that no RocketMQ writes: fields dropped and changed, the body cut off, empty,
    garbage, and each value of its JSON of another type.
    """
    for name in answer.fields:
        yield replace(answer, fields={key: value for key, value in answer.fields.items() if key != name})
        for text in ("", "x", "null", "-", "1.5"):
            yield replace(answer, fields={**answer.fields, name: text})
    body = bytes(answer.body)
    for garbage in (b"", b"null", b"5", b"[]", b"{", b'"x"', b"\0" * 40, b"\xff" * 91, b"<html>", b"[" * 5000):
        yield replace(answer, body=garbage)
    for end in {1, 3, 4, 8, 20, len(body) // 3, len(body) // 2, max(len(body) - 1, 0)}:
        yield replace(answer, body=body[:end])
    value = parse(body).value
    if isinstance(value, dict):
        for path in list(_paths(value, ()))[:16]:
            for wrong in WRONG_VALUES:
                yield replace(answer, body=json.dumps(_with(value, path, wrong)).encode())


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        if len(path) < 4:
            yield from _paths(member, (*path, key))


def _with(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    if isinstance(value, dict):
        return {key: _with(member, path[1:], wrong) if key == path[0] else member for key, member in value.items()}
    return [_with(member, path[1:], wrong) if number == path[0] else member for number, member in enumerate(value)]


class Forger:
    """Replacement for :meth:`Connection.ask`: answers to ``code`` are replaced by ``answer``."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.code = -1
        self.answer: Command | None = None
        self.good: list[Command] = []
        self.words: list[str] = []
        """Of every error."""
        real = Connection.ask

        async def ask(connection: Connection, request: Command, timeout_s: float) -> Command:
            if request.code == self.code and self.answer is not None:
                return self.answer
            answer = await real(connection, request, timeout_s)
            if request.code == self.code and answer.code == 0:
                self.good.append(answer)
            return answer

        patch.setattr(Connection, "ask", ask)

    async def walk(self, code: int, ask: Callable[[], Awaitable[Any]]) -> int:
        """Ask once well, then with each spoiled answer. Return how many of these were errors."""
        self.code, self.answer, self.good = code, None, []
        await ask()
        assert self.good, f"{code} was not asked"
        errors = 0
        for answer in list(spoiled_answers(self.good[0])):
            self.answer = answer
            try:
                await ask()
            except EXPECTED as error:
                errors += 1
                self.words.append(str(error))
            except Exception as error:
                raise AssertionError(f"{code}: {answer.fields} {bytes(answer.body)[:300]!r}") from error
        self.code = -1
        return errors


async def _walk_client(forger: Forger, producer: Producer, beside: ServedBroker) -> None:
    instance = producer.instance
    everything = Subscription("Orders")
    (unit,) = beside.units("Orders", 1)
    message = await broker_api.view_message(instance, QUEUE, unit.offset_msg_id)

    async def popped() -> None:
        result = await broker_api.pop(instance, "poppers", "broker-a", everything, from_first=True, invisible=0.001)
        for popped in result.messages:
            await broker_api.change_invisible(instance, "poppers", popped, 0.001)

    async def fresh_route() -> None:
        await instance.fresh_route("Orders")

    for code, ask in (
        (105, fresh_route),
        (11, lambda: broker_api.pull(instance, "readers", QUEUE, everything, 0)),
        (361, lambda: broker_api.pull(instance, "readers", QUEUE, everything, 0, sys_flag=20)),
        (30, lambda: broker_api.max_offset(instance, QUEUE)),
        (31, lambda: broker_api.min_offset(instance, QUEUE)),
        (29, lambda: broker_api.search_offset(instance, QUEUE, 0)),
        (33, lambda: broker_api.view_message(instance, QUEUE, unit.offset_msg_id)),
        (41, lambda: broker_api.lock(instance, "readers", [QUEUE])),
        (310, lambda: producer.send(Message("Others", b"x"))),
        (400, lambda: broker_api.query_assignment(instance, "poppers", "Orders")),
        (200_050, popped),
    ):
        assert await forger.walk(code, ask) > 0 or code in {41, 310}, code
    assert message.body == b"x"


def test_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            await producer.send(Message("Orders", b"x"), queue=QUEUE)
            forger = Forger(monkeypatch)
            await _walk_client(forger, producer, beside)
            assert any("the answer to GET_MAX_OFFSET" in words for words in forger.words)

    run_scenario(both)


def test_a_slave_its_tables_and_registration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body without groups, or with an unreadable group, counted as a master without these groups: a slave deleted its
    own.
    Other bodies ended the copying of tables with a TypeError.
    """

    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            await producer.send(Message("Orders", b"x"), queue=QUEUE)
            beside.server.broker.store.tables.create_group("readers")
            await broker_api.commit_offset(producer.instance, "readers", QUEUE, 1, one_way=False)
            host, _, port = beside.server.address.rpartition(":")
            forger = Forger(monkeypatch)
            for code, ask in (
                (28, lambda: master.ask_master(host, int(port))),
                (26, lambda: master.ask_master(host, int(port))),
                (907, lambda: master.ask_slaves(host, int(port))),
                (402, lambda: master.ask_request_modes(host, int(port))),
                (106, lambda: ask_routes_at(beside.namesrv)),
            ):
                assert await forger.walk(code, ask) > 0, code
            await _walk_tables(forger, host, int(port), tmp_path / "slave")

    run_scenario(both)


async def _walk_tables(forger: Forger, host: str, port: int, root: Path) -> None:

    with MessageStore(root) as store:
        tables: ConfigTables = store.tables
        assert await master.mirror_tables(host, port, tables)
        assert "readers" in tables.groups()
        tables_before = set(tables.topics()), set(tables.groups())

        async def mirrored() -> None:
            await master.mirror_tables(host, port, tables)
            assert "Orders" in tables.topics()
            assert "readers" in tables.groups()

        for code in (21, 43, 45, 201):
            forger.code, forger.answer, forger.good = code, None, []
            await mirrored()
            for answer in list(spoiled_answers(forger.good[0])):
                forger.answer = answer
                try:
                    await master.mirror_tables(host, port, tables)
                except UnexpectedAnswer as error:
                    forger.words.append(str(error))
                    changed = (set(tables.topics()), set(tables.groups())) != tables_before
                    if changed:
                        pytest.fail(f"{code}: {bytes(answer.body)!r} changed the tables, and was refused")
                tables_before = set(tables.topics()), set(tables.groups())
            forger.answer = None
            await mirrored()
            tables_before = set(tables.topics()), set(tables.groups())


def test_the_cluster_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It notes every answer of another form as a refusal, and goes on."""

    async def both() -> None:
        async with served(tmp_path / "store") as beside, Producer("senders", beside.namesrv) as producer:
            await producer.send(Message("Orders", b"x"), queue=QUEUE)
            forger = Forger(monkeypatch)
            async with ClusterReader([beside.namesrv]) as reader:
                for code in (106, 28, 21, 43, 202, 328, 201):
                    await forger.walk(code, reader.read)
                forger.code = -1
                state = await reader.read()
                assert not state.refusals
            await asyncio.sleep(0)

    run_scenario(both)

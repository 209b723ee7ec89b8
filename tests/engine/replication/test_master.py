"""Information that a broker gives about its log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario

from engine.replication import master
from engine.replication.master import Master, SlavePosition, ask_master, ask_slaves
from engine.replication.source import Slave


def test_a_broker_reports_its_log(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"x")
            host, _, port = client.server.address.rpartition(":")
            end = client.server.broker.store.positions().wrote
            store = client.server.broker.store
            assert await ask_master(host, int(port)) == Master(0, end, 1 << 30, store.release)

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("ordinal", "release"), [("401", "4.9"), ("479", "5.3"), ("493", "5.4"), ("515", "5.5"), ("", None)]
)
def test_a_real_broker_names_its_version(monkeypatch: pytest.MonkeyPatch, ordinal: str, release: str | None) -> None:
    async def answers(*_: object) -> list[bytes]:
        figures = {"commitLogMinOffset": "0", "commitLogMaxOffset": "7", "brokerVersion": ordinal}
        return [json.dumps({"table": figures}).encode(), b"mappedFileSizeCommitLog=4096"]

    monkeypatch.setattr(master, "_ask", answers)
    assert asyncio.run(ask_master("127.0.0.1", 1)) == Master(0, 7, 4096, release)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("enableControllerMode=true", "runs in controller mode: its HA port asks for terms"),
        ("enableDLegerCommitLog=true", "keeps its log in DLedger, which has no HA port"),
        ("enableControllerMode=false", ""),
    ],
)
def test_a_master_that_cannot_be_followed_says_why(monkeypatch: pytest.MonkeyPatch, line: str, words: str) -> None:
    """``replicate`` waited for the bytes of a plain HA port, and ended without a word of the reason."""

    async def answers(*_: object) -> list[bytes]:
        figures = {"commitLogMinOffset": "0", "commitLogMaxOffset": "7", "brokerVersionDesc": "V5_5_1"}
        return [json.dumps({"table": figures}).encode(), f"mappedFileSizeCommitLog=4096\n{line}".encode()]

    monkeypatch.setattr(master, "_ask", answers)
    asked_master = asyncio.run(ask_master("127.0.0.1", 1))
    assert asked_master is not None
    assert words in asked_master.refusal
    assert bool(asked_master.refusal) == bool(words)


@pytest.mark.parametrize(
    ("name", "release"),
    [("V5_4_0", "5.4"), ("V5_5_1", "5.5"), ("V4_9_7", "4.9"), ("V5_4_0_SNAPSHOT", "5.4"), ("x", None)],
)
def test_a_broker_of_5_4_and_later_names_its_version_only(
    monkeypatch: pytest.MonkeyPatch, name: str, release: str | None
) -> None:
    """These releases leave brokerVersion out, so a new replica of a real 5.4.0 was written like 5.5."""

    async def answers(*_: object) -> list[bytes]:
        figures = {"commitLogMinOffset": "0", "commitLogMaxOffset": "7", "brokerVersionDesc": name}
        return [json.dumps({"table": figures}).encode(), b"mappedFileSizeCommitLog=4096"]

    monkeypatch.setattr(master, "_ask", answers)
    assert asyncio.run(ask_master("127.0.0.1", 1)) == Master(0, 7, 4096, release)


def test_a_broker_reports_its_slaves_by_its_own_offsets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            await client.send("Orders", b"x")
            host, _, port = client.server.address.rpartition(":")
            end = client.server.broker.store.positions().wrote
            assert await ask_slaves(host, int(port)) == ()
            client.server.broker.followers = lambda: [Slave("127.0.0.1:5", sent=end, acknowledged=end - 7)]
            (slave,) = await ask_slaves(host, int(port)) or ()
            assert slave == SlavePosition("127.0.0.1:5", end, end, end - 7)
            assert slave.behind == 7

    run_scenario(scenario)


def test_no_server_and_another_server_give_no_answer() -> None:
    async def scenario() -> None:
        async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            assert await ask_master("127.0.0.1", port) is None
        assert await ask_master("127.0.0.1", port) is None
        assert await ask_slaves("127.0.0.1", port) is None

    run_scenario(scenario)

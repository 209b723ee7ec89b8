"""A SYNC_MASTER: recorded answers of real ones of 5.3.3 and 4.9.7 while a slave came, was silent and left, compared
with ours; then real slaves behind our broker, killed and restarted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import lzma
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import real_cluster
from brokers import run_scenario
from sync_masters import PATIENT, SETTINGS, SLOWLY, TIMEOUT, MessageSender, record

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.cli.commands.serve import follow_slaves
from engine.config import parse_properties
from engine.message_store import MessageStore
from engine.remoting.connection import bind, connect, port_of
from engine.replication.source import HaServer

RECORDS = Path(__file__).resolve().parent / "records"
KINDS = [("5.3.3", 1), ("5.3.3", 2), ("5.3.3", 3), ("4.9.7", 1)]
LIKE: dict[str, Literal["4.9", "5.3"]] = {"5.3.3": "5.3", "4.9.7": "4.9"}
TIMEOUT_S = 60.0


def settings(in_sync: int, slowly: int = 1) -> dict[str, str]:
    return {**SETTINGS, "inSyncReplicas": str(in_sync), "slaveTimeout": str(TIMEOUT * slowly)}


def recorded_lines(release: str, in_sync: int) -> list[dict[str, Any]]:
    text = lzma.decompress((RECORDS / f"{release}-sync-master-{in_sync}.jsonl.xz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@contextlib.asynccontextmanager
async def ours(path: Path, release: str, in_sync: int, slowly: int) -> AsyncIterator[tuple[str, int, int]]:
    """Run our broker with an HA port; yield host, port, HA port."""
    text = "".join(f"{name}={value}\n" for name, value in settings(in_sync, slowly).items())
    config, unknown = parse_properties(text)
    assert not unknown
    host = "127.0.0.1"
    with bind(host, 0) as own_socket, bind(host, 0) as ha, MessageStore(path, config, release=LIKE[release]) as store:
        async with (
            HaServer(store, ha) as source,
            ListeningBroker(store, BrokerConfig(), listening_socket=own_socket) as server,
        ):
            follow_slaves(server.broker, source)
            yield host, port_of(own_socket), port_of(ha)


def test_answers_are_those_of_a_real_sync_master(tmp_path: Path) -> None:
    """All cases run at once: they wait most of the time. A different answer is asked for once more with much longer
    patience.
    """

    async def one(release: str, in_sync: int) -> list[dict[str, Any]]:
        for slowly in (1, SLOWLY):
            async with ours(tmp_path / f"{release}-{in_sync}-{slowly}", release, in_sync, slowly) as where:
                lines = await record(*where, slowly)
            if lines == recorded_lines(release, in_sync):
                break
        return lines

    async def scenario() -> None:
        for kind, lines in zip(KINDS, await asyncio.gather(*(one(*kind) for kind in KINDS)), strict=True):
            for ours_said, theirs in zip(lines, recorded_lines(*kind), strict=True):
                assert ours_said == theirs, kind

    run_scenario(scenario)


@pytest.mark.peer
@pytest.mark.timeout(900)
def test_a_real_sync_master_answers_as_it_is_kept(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kinds = KINDS if request.config.getoption("--clients-full") else KINDS[3:]
    for release, in_sync in kinds:
        for slowly in (1, SLOWLY):
            port = real_cluster.free_port()
            options: list[object] = ["--namesrv-port", real_cluster.free_port(), "--port", port, "--small"]
            for name, value in {**settings(in_sync, slowly), **PATIENT}.items():
                options += ["--set", f"{name}={value}"]
            with real_cluster.real(tmp_path / f"{release}-{in_sync}-{slowly}", *options, release=release):
                lines = asyncio.run(record("127.0.0.1", port, port + 1, slowly))
            if lines == recorded_lines(release, in_sync):
                break
        assert lines == recorded_lines(release, in_sync)


def configured(folder: Path) -> Path:
    folder.mkdir()
    lines = {**settings(2), "mappedFileSizeCommitLog": "1048576", "brokerClusterName": "PeerCluster"}
    conf = folder / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return conf


@contextlib.asynccontextmanager
async def served(folder: Path, release: str) -> AsyncIterator[dict[str, Any]]:
    """Run ``storescope serve`` as SYNC_MASTER; yield its first line."""
    conf = configured(folder)
    words = ["serve", folder / "store", "--port", 0, "--namesrv-port", 0, "--json", "--config", conf]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "engine.cli",
        *map(str, words),
        "--like",
        LIKE[release],
        stdout=asyncio.subprocess.PIPE,
        env=os.environ,
    )
    try:
        assert process.stdout is not None
        actual_record = json.loads(await process.stdout.readline())
        yield {**actual_record, "store": str(folder / "store")}
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@contextlib.asynccontextmanager
async def real_master(folder: Path, release: str) -> AsyncIterator[dict[str, Any]]:
    options: list[object] = ["--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small"]
    for name, value in {**settings(2), **PATIENT}.items():
        options += ["--set", f"{name}={value}"]
    with real_cluster.real(folder, *options, release=release) as output:
        yield output


def the_end(store: str) -> tuple[str, bytes]:
    """Return the name and the bytes of the log's last file."""
    last_file = max((Path(store) / "commitlog").iterdir())
    return last_file.name, last_file.read_bytes()


async def send_until_answered(sender: MessageSender, code: int, body: bytes) -> None:
    """Send until the answer has this code: the arrival of a slave, and its end, may be noticed late, and a machine may
    be busy for longer than a send waits.
    """
    until = time.monotonic() + TIMEOUT_S
    while (answer := await sender.ask("send", body)).code != code:
        assert answer.code in {11, 12, 0}, answer
        assert time.monotonic() < until, f"{answer.code} and not {code} for a minute"
        await asyncio.sleep(0.3)


@pytest.mark.clients_full
@pytest.mark.peer
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("release", "master"),
    [
        ("5.3.3", served),
        pytest.param("4.9.7", served, marks=pytest.mark.clients_full),
        pytest.param("5.3.3", real_master, marks=pytest.mark.clients_full),
        pytest.param("4.9.7", real_master, marks=pytest.mark.clients_full),
    ],
)
def test_a_real_slave_is_waited_for_killed_and_back(tmp_path: Path, release: str, master: Any) -> None:
    """Both masters are asked the same: without a slave, with one, with a killed one, and with it again."""
    alone = 12 if release == "5.3.3" else 11

    async def scenario() -> None:
        async with master(tmp_path / "master", release) as addresses:
            host, _, port = addresses["broker"].rpartition(":")
            sender = MessageSender(await connect(host, int(port)))
            assert (await sender.ask("send")).code == alone
            slave_port = real_cluster.free_port()
            options = (
                "--namesrv",
                addresses["namesrv"],
                "--port",
                slave_port,
                "--slave-of",
                addresses["brokerName"],
                "--small",
            )
            for _ in range(2):
                with real_cluster.real(tmp_path / "slave", *options, release=release) as slave:
                    await send_until_answered(sender, 0, b"x")
                    for number in range(200):
                        await send_until_answered(sender, 0, b"%d" % number * 2000)
                    assert the_end(slave["store"]) == the_end(addresses["store"])
                    os.kill(slave["pid"], signal.SIGKILL)
                await send_until_answered(sender, alone, b"x")
                assert (await sender.ask("wait not", properties="WAIT\x01false\x02")).code == 0
            sender.connection.close()

    asyncio.run(scenario())

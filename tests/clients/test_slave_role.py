"""Our broker as a slave of a real master: the same bytes, its tables, its answers, and Java consumers that read
from it when the master is gone; RocketMQ's own broker opens its store afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import filecmp
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import real_cluster
from java_members import JavaMember

from engine.codec.config_tables import topics
from engine.codec.json_dialect import parse
from engine.codec.timer import decode_check
from engine.remoting.connection import connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
TIMEOUT_S = 150.0
NEWER = ("5.4.0", "5.5.1")
TIMER_LOG = 102_400
SEND = {
    "producerGroup": "senders",
    "topic": "Orders",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "0",
    "properties": "",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}


@contextlib.contextmanager
def slave(folder: Path, namesrv: str, release: str, **options: object) -> Iterator[dict[str, Any]]:
    """Run ``storescope serve`` as a slave of ``broker-a``; it must end with 0."""
    folder.mkdir(exist_ok=True)
    lines = {
        "brokerRole": "SLAVE",
        "brokerId": 1,
        "brokerClusterName": "PeerCluster",
        "slaveReadEnable": "true",
        "mappedFileSizeCommitLog": 1 << 20,
        "mappedFileSizeConsumeQueue": 6000,
        "maxHashSlotNum": 100,
        "maxIndexNum": 400,
        **options,
    }
    conf = folder / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    words = ["serve", folder / "store", "--config", conf, "--namesrv", namesrv, "--port", 0, "--json", "--no-backup"]
    command = [sys.executable, "-m", "engine.cli", *map(str, words), "--release", release[:3]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        yield json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def responses_of(address: str, *requests: Command) -> list[Command]:
    async def scenario() -> list[Command]:
        host, _, port = address.rpartition(":")
        connection = await connect(host, int(port))
        answers = [await connection.ask(request, 60) for request in requests]
        connection.close()
        return answers

    return asyncio.run(scenario())


def send(number: int, size: int = 2000) -> Command:
    return Command(10, {**SEND, "queueId": str(number % 4)}, body=b"%d " % number + bytes(size), version=477)


def until(condition: Callable[[], bool], message: str) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, message
        time.sleep(0.3)


def timer(number: int, due: int) -> Command:
    text = f"TIMER_DELIVER_MS\x01{due}\x02UNIQ_KEY\x01K{number}\x02"
    return Command(10, {**SEND, "properties": text}, body=b"%d " % number, version=477)


def entries(store: Path | str) -> int:
    """Return the number of entries in queue 0 of the topic."""
    files = sorted((Path(store) / "consumequeue" / "Orders" / "0").glob("*"))
    data = files[0].read_bytes()[:2000] if files else b""
    return sum(any(data[position : position + 20]) for position in range(0, len(data), 20))


def logs_are_the_same(store: str, copy: Path) -> bool:
    """Return True if every file of the first log is in the other, byte for byte."""
    files = sorted((Path(store) / "commitlog").iterdir())
    return all(
        (copy / "commitlog" / file.name).exists() and filecmp.cmp(file, copy / "commitlog" / file.name, shallow=False)
        for file in files
    )


def declared(store: Path) -> set[str]:
    table = store / "config" / "topics.json"
    return {row.name for row in topics(parse(table.read_bytes()).value or {}).rows} if table.exists() else set()


@pytest.mark.clients_full
@pytest.mark.parametrize("release", ["5.3.3", "4.9.7"])
def test_a_real_master_is_followed_and_stood_in_for(tmp_path: Path, release: str) -> None:
    store = tmp_path / "slave" / "store"
    names = ("--namesrv-port", real_cluster.free_port())
    our_port = real_cluster.free_port()
    with real_cluster.real(tmp_path / "names", *names, release=release) as output:
        namesrv = output["namesrv"]
        options = ("--namesrv", namesrv, "--port", our_port, "--small")
        with (
            real_cluster.real(tmp_path / "master", *options, release=release) as master,
            slave(tmp_path / "slave", namesrv, release) as ours,
        ):
            answers = responses_of(master["broker"], *(send(number) for number in range(1200)))
            assert {response.code for response in answers} == {0}
            until(lambda: logs_are_the_same(master["store"], store), "the slave does not follow")
            assert len(list((store / "commitlog").iterdir())) >= 3
            until(lambda: "Orders" in declared(store), "the slave has not the master's topics")
            member = JavaMember(release, namesrv, "early", "Orders", tmp_path / "early")
            until(lambda: len(member.received) == 1200, "the master does not serve")
            member.stop()
            os.kill(master["pid"], signal.SIGKILL)
            member = JavaMember(release, namesrv, "late", "Orders", tmp_path / "late")
            until(lambda: len(member.received) == 1200, "no consumer is served by the slave")
            member.stop()
            (refused,) = responses_of(ours["broker"], send(0))
            assert refused.code == (2 if release == "5.3.3" else 14)
            with real_cluster.real(tmp_path / "master", *options, release=release) as restarted:
                answers = responses_of(restarted["broker"], *(send(number) for number in range(1200, 1600)))
                assert {response.code for response in answers} == {0}
                until(lambda: logs_are_the_same(restarted["store"], store), "the slave does not go on")
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    moved = tmp_path / "moved"
    moved.mkdir()
    store.rename(moved / "store")
    with real_cluster.real(moved, *options, release=release) as opened:
        (answer,) = responses_of(opened["broker"], send(5000))
        assert (answer.code, answer.fields["queueOffset"]) == (0, "400")


@pytest.mark.clients_full
@pytest.mark.parametrize("release", ["5.3.3", *NEWER])
def test_timers_of_a_real_master_go_on_in_the_store_of_our_slave(tmp_path: Path, release: str) -> None:
    """The real broker opens our slave's store as a master: delivered messages do not come again, waiting ones do."""
    store = tmp_path / "slave" / "store"
    with real_cluster.real(tmp_path / "names", "--namesrv-port", real_cluster.free_port(), release=release) as output:
        options = (
            "--namesrv",
            output["namesrv"],
            "--port",
            real_cluster.free_port(),
            "--small",
            "--set",
            f"mappedFileSizeTimerLog={TIMER_LOG}",
        )
        with (
            real_cluster.real(tmp_path / "master", *options, release=release) as master,
            slave(tmp_path / "slave", output["namesrv"], release, mappedFileSizeTimerLog=TIMER_LOG),
        ):
            now = int(time.time() * 1000)
            late = now + 100_000
            answers = responses_of(
                master["broker"], *(timer(number, now + 3000) for number in range(8)), timer(8, late)
            )
            assert {item.code for item in answers} == {0}
            until(lambda: entries(master["store"]) == 8, "the master does not deliver")
            check = store / "config" / "timercheck"
            until(lambda: check.exists() and decode_check(check.read_bytes()).queue_offset == 9, "no positions come")
            (answer,) = responses_of(master["broker"], Command(61, {}))
            waiting = json.loads(bytes(answer.body))["timingCount"]["Orders"]["count"]
            assert waiting == 1
            metrics = store / "config" / "timermetrics"
            until(lambda: metrics.exists() and b'"count":1' in metrics.read_bytes(), "no balances come")
            until(lambda: decode_check(check.read_bytes()).last_read_time > now + 4000, "the reading time stands still")
            os.kill(master["pid"], signal.SIGKILL)
    options = (
        "--namesrv-port",
        real_cluster.free_port(),
        "--port",
        real_cluster.free_port(),
        "--small",
        "--set",
        f"mappedFileSizeTimerLog={TIMER_LOG}",
    )
    moved = tmp_path / "moved"
    moved.mkdir()
    store.rename(moved / "store")
    with real_cluster.real(moved, *options, release=release):
        assert entries(moved / "store") == 8
        until(lambda: entries(moved / "store") > 8, "the heir does not deliver")
        assert time.time() * 1000 >= late - 1000
        time.sleep(3)  # for one too many
        assert entries(moved / "store") == 9

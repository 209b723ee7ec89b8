"""RocketMQ's own slave finds our broker through our name server and follows it: its log is ours, byte for byte."""

from __future__ import annotations

import filecmp
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import real_cluster

from engine.codec.config_tables import topics
from engine.codec.json_dialect import parse

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
CONF = "mappedFileSizeCommitLog=1048576\nbrokerClusterName=PeerCluster\n"
TIMEOUT_S = 90.0


def sent(namesrv: str) -> None:
    words = ["bash", str(real_cluster.JAVA / "speed"), "5.3.3", namesrv, "send", "2", "2"]
    subprocess.run(words, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True, timeout=120)


def same_end(ours: Path, theirs: Path) -> bool:
    """Return True if the last file is the same in both."""
    last_file = max(ours.iterdir())
    return (theirs / last_file.name).exists() and filecmp.cmp(last_file, theirs / last_file.name, shallow=False)


def names(store: Path) -> set[str]:
    """Return the topics that a store's table declares; none while the broker rewrites the file."""
    table = store / "config" / "topics.json"
    return {row.name for row in topics(parse(table.read_bytes()).value or {}).rows} if table.exists() else set()


def wait_until(condition: Callable[[], bool], message: str) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < until, message
        time.sleep(0.5)


def log_text(slave: Path) -> str:
    return "".join(file.read_text("utf-8", "replace") for file in slave.rglob("broker.log"))


def wait_for_same_end(ours: Path, theirs: Path) -> None:
    wait_until(lambda: same_end(ours, theirs), "the slave does not follow")


def test_a_real_slave_has_our_bytes_and_our_tables(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(CONF)
    store = tmp_path / "store"
    words = ["serve", str(store), "--port", "0", "--namesrv-port", "0", "--json", "--config", tmp_path / "broker.conf"]
    command = [sys.executable, "-m", "engine.cli", *map(str, words), "--release", "5.3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        record = json.loads(process.stdout.readline())
        sent(record["namesrv"])
        options = (
            "--namesrv",
            record["namesrv"],
            "--port",
            real_cluster.free_port(),
            "--slave-of",
            record["brokerName"],
        )
        with real_cluster.real(tmp_path / "slave", *options, "--small", clean_end=True) as slave:
            theirs = Path(slave["store"]) / "commitlog"
            wait_for_same_end(store / "commitlog", theirs)
            for _ in range(40):  # on a busy machine a client that has two seconds may not fill a file
                sent(record["namesrv"])
                wait_for_same_end(store / "commitlog", theirs)
                if len(list(theirs.iterdir())) >= 2:
                    break
            wait_until(lambda: names(store) <= names(Path(slave["store"])), "the slave has not our topics")
            synchronized = "Update slave Message Request Mode from master"
            wait_until(lambda: synchronized in log_text(tmp_path / "slave"), "the slave has not our request modes")
            logs = log_text(tmp_path / "slave")
            assert "Exception, 127.0.0.1" not in logs, "our master refuses what its slave asks (60, 61, 402)"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
    files = sorted(theirs.iterdir())  # a slave begins with the last file that its master has
    assert len(files) >= 2
    for file in files:
        ours = store / "commitlog" / file.name
        if ours.exists():
            assert filecmp.cmp(file, ours, shallow=False), file.name
        else:  # made ahead of need, as a broker that ends in a hurry leaves it
            assert not any(file.read_bytes()), file.name

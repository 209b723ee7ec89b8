"""The log of RocketMQ's own broker, followed through its HA port while clients send, over a kill, byte for byte."""

from __future__ import annotations

import filecmp
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import real_cluster

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
SPEED = real_cluster.JAVA / "speed"


def following(master: str, copy: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The command, once it says that it has begun: before, a signal ends it as any command."""
    words = [sys.executable, "-m", "engine.cli", "replicate", master, str(copy), "--no-backup", *arguments]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"replicating ")
    return process


def ended(process: subprocess.Popen[bytes]) -> int:
    """Its exit code, when it has ended."""
    process.communicate(timeout=60)
    return process.returncode


@pytest.mark.clients_full
def test_a_copy_of_a_real_brokers_log_is_its_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    with real_cluster.real(tmp_path / "real", *options, clean_end=True) as output:
        sending = ["bash", str(SPEED), "5.3.3", output["namesrv"], "send", "4", "4"]
        clients = subprocess.Popen(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment())
        first = following(output["ha"], copy)
        end = time.monotonic() + 60
        while len(list((copy / "commitlog").glob("*"))) < 2 and clients.poll() is None:
            assert time.monotonic() < end, "nothing is copied"
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        ended(first)
        second = following(output["ha"], copy)
        assert clients.wait(120) == 0
        log = Path(output["store"]) / "commitlog"
        for _ in range(20):  # on a busy machine clients that have four seconds may not fill two files
            if len(list(log.iterdir())) >= 3:
                break
            subprocess.run(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True)
        second.send_signal(signal.SIGINT)
        assert ended(second) == 0
        assert ended(following(output["ha"], copy, "--until-caught-up")) == 0
    assert len(list(log.iterdir())) >= 3
    assert not real_cluster.differing_log_files(log, copy / "commitlog")
    assert main(["check", str(copy)]) == 0


@pytest.mark.clients_full
def test_a_real_master_without_a_message_is_waited_for(tmp_path: Path) -> None:
    """A copy of a real broker that had no message yet ended with "has nothing at offset 1". It has to wait, as
    RocketMQ's own slave does; with ``--until-caught-up`` it has all that there is.
    """
    copy, last = tmp_path / "copy", tmp_path / "last"
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    with real_cluster.real(tmp_path / "real", *options, clean_end=True) as output:
        waiting = [following(output["ha"], copy), following(output["ha"], last, "--last-file")]
        assert ended(following(output["ha"], tmp_path / "none", "--until-caught-up")) == 0  # after a heartbeat, 5 s
        assert all(one.poll() is None for one in waiting)
        sending = ["bash", str(SPEED), "5.3.3", output["namesrv"], "send", "1", "1"]
        subprocess.run(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True)
        assert ended(following(output["ha"], tmp_path / "none", "--until-caught-up")) == 0
        for item in waiting:
            item.send_signal(signal.SIGINT)
            assert ended(item) == 0
    first = Path(output["store"]) / "commitlog" / f"{0:020}"
    assert filecmp.cmp(first, tmp_path / "none" / "commitlog" / first.name, shallow=False)
    assert filecmp.cmp(first, copy / "commitlog" / first.name, shallow=False)
    assert filecmp.cmp(first, last / "commitlog" / first.name, shallow=False)

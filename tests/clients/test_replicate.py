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


def following(master: str, copy: Path, *more: str) -> subprocess.Popen[bytes]:
    """The command, once it says that it has begun: before, a signal ends it as any command."""
    words = [sys.executable, "-m", "engine.cli", "replicate", master, str(copy), "--no-backup", *more]
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
    with real_cluster.real(tmp_path / "real", *options, clean_end=True) as said:
        sending = ["bash", str(SPEED), "5.3.3", said["namesrv"], "send", "4", "4"]
        clients = subprocess.Popen(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment())
        first = following(said["ha"], copy)
        end = time.monotonic() + 60
        while len(list((copy / "commitlog").glob("*"))) < 2 and clients.poll() is None:
            assert time.monotonic() < end, "nothing is copied"
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        ended(first)
        second = following(said["ha"], copy)
        assert clients.wait(120) == 0
        log = Path(said["store"]) / "commitlog"
        for _ in range(20):  # on a busy machine clients that have four seconds may not fill two files
            if len(list(log.iterdir())) >= 3:
                break
            subprocess.run(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True)
        second.send_signal(signal.SIGINT)
        assert ended(second) == 0
        assert ended(following(said["ha"], copy, "--until-caught-up")) == 0
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
    with real_cluster.real(tmp_path / "real", *options, clean_end=True) as said:
        waiting = [following(said["ha"], copy), following(said["ha"], last, "--last-file")]
        assert ended(following(said["ha"], tmp_path / "none", "--until-caught-up")) == 0  # after a heartbeat, 5 s
        assert all(one.poll() is None for one in waiting)
        sending = ["bash", str(SPEED), "5.3.3", said["namesrv"], "send", "1", "1"]
        subprocess.run(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True)
        assert ended(following(said["ha"], tmp_path / "none", "--until-caught-up")) == 0
        for one in waiting:
            one.send_signal(signal.SIGINT)
            assert ended(one) == 0
    first = Path(said["store"]) / "commitlog" / f"{0:020}"
    assert filecmp.cmp(first, tmp_path / "none" / "commitlog" / first.name, shallow=False)
    assert filecmp.cmp(first, copy / "commitlog" / first.name, shallow=False)
    assert filecmp.cmp(first, last / "commitlog" / first.name, shallow=False)

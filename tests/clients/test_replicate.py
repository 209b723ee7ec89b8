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


def test_a_copy_of_a_real_brokers_log_is_its_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    with real_cluster.real(tmp_path / "real", *options) as said:
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
        second.send_signal(signal.SIGINT)
        assert ended(second) == 0
        assert ended(following(said["ha"], copy, "--until-caught-up")) == 0
    files = sorted((Path(said["store"]) / "commitlog").iterdir())
    assert len(files) >= 3
    assert [one.name for one in files] == sorted(one.name for one in (copy / "commitlog").iterdir())
    assert all(filecmp.cmp(one, copy / "commitlog" / one.name, shallow=False) for one in files)
    assert main(["check", str(copy)]) == 0

"""Our copy follows the log of RocketMQ's own broker through its HA port while clients send, over a kill, byte for
byte.
"""

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
    """Start the command and wait until it reports its start: a signal before that would end it like any command."""
    words = [sys.executable, "-m", "engine.cli", "replicate", master, str(copy), "--no-backup", *arguments]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"replicating ")
    return process


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait until the process has ended and return its exit code."""
    process.communicate(timeout=60)
    return process.returncode


@pytest.mark.clients_full
def test_a_copy_of_a_real_brokers_log_is_its_bytes(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    with real_cluster.real(tmp_path / "real", *options, clean_end=True) as output:
        sending = ["bash", str(SPEED), "5.3.3", output["namesrv"], "send", "4", "4"]
        clients = subprocess.Popen(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment())
        first_follower = following(output["ha"], copy)
        end = time.monotonic() + 60
        while len(list((copy / "commitlog").glob("*"))) < 2 and clients.poll() is None:
            assert time.monotonic() < end, "nothing is copied"
            time.sleep(0.05)
        first_follower.send_signal(signal.SIGKILL)
        ended(first_follower)
        second_follower = following(output["ha"], copy)
        assert clients.wait(120) == 0
        log = Path(output["store"]) / "commitlog"
        for _ in range(20):  # on a busy machine clients that have four seconds may not fill two files
            if len(list(log.iterdir())) >= 3:
                break
            subprocess.run(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True)
        second_follower.send_signal(signal.SIGINT)
        assert ended(second_follower) == 0
        assert ended(following(output["ha"], copy, "--until-caught-up")) == 0
    assert len(list(log.iterdir())) >= 3
    assert not real_cluster.differing_log_files(log, copy / "commitlog")
    assert main(["check", str(copy)]) == 0


@pytest.mark.clients_full
def test_a_real_master_without_a_message_is_waited_for(tmp_path: Path) -> None:
    """A copy of a real broker without messages ended with "has nothing at offset 1". It must wait, like RocketMQ's own
    slave; with ``--until-caught-up`` it ends at once.
    """
    copy, last_file_only = tmp_path / "copy", tmp_path / "last"
    options = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port(), "--small")
    with real_cluster.real(tmp_path / "real", *options, clean_end=True) as output:
        waiting = [following(output["ha"], copy), following(output["ha"], last_file_only, "--last-file")]
        assert ended(following(output["ha"], tmp_path / "none", "--until-caught-up")) == 0  # after a heartbeat, 5 s
        assert all(follower.poll() is None for follower in waiting)
        sending = ["bash", str(SPEED), "5.3.3", output["namesrv"], "send", "1", "1"]
        subprocess.run(sending, stdout=subprocess.DEVNULL, env=real_cluster.environment(), check=True)
        assert ended(following(output["ha"], tmp_path / "none", "--until-caught-up")) == 0
        for follower in waiting:
            follower.send_signal(signal.SIGINT)
            assert ended(follower) == 0
    first_file = Path(output["store"]) / "commitlog" / f"{0:020}"
    assert filecmp.cmp(first_file, tmp_path / "none" / "commitlog" / first_file.name, shallow=False)
    assert filecmp.cmp(first_file, copy / "commitlog" / first_file.name, shallow=False)
    assert filecmp.cmp(first_file, last_file_only / "commitlog" / first_file.name, shallow=False)

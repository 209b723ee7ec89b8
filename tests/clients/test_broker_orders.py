"""Real Java clients send and consume through ``storescope serve``, and the store that it leaves is whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
import real_cluster

from engine.cli.main import main

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
SMALL = "mappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=6000\nmaxHashSlotNum=100\nmaxIndexNum=400\n"


@pytest.mark.parametrize("release", ["5.3.3", pytest.param("4.9.7", marks=pytest.mark.clients_full)])
def test_real_clients_send_and_consume(release, tmp_path):
    """Sends one by one, asynchronous, one-way and in batches; groups of every kind; admin questions."""
    conf, store = tmp_path / "broker.conf", tmp_path / "store"
    conf.write_text(SMALL)
    words = [sys.executable, "-m", "engine.cli", "serve", store, "--port", "0", "--namesrv-port", "0", "--json"]
    process = subprocess.Popen(
        [*words, "--config", conf], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        said = json.loads(process.stdout.readline())
        told = real_cluster.traffic("orders", 2, tmp_path / "told", said["namesrv"], release)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    assert [one for one in told if one["kind"] == "failure"] == []
    kinds = [one["kind"] for one in told]
    assert kinds.count("send") > 500
    assert kinds.count("received") > 500
    assert main(["check", str(store)]) == 0

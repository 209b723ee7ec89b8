"""Real brokers and real clients find each other through our name server, as through RocketMQ's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import cluster_watch
import pytest
import real_cluster

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]


@pytest.fixture
def namesrv():
    """Start ``storescope namesrv`` like a user; return its address and its later lines."""
    words = [sys.executable, "-m", "engine.cli", "namesrv", "--port", "0", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        record = json.loads(process.stdout.readline())
        assert record["type"] == "serving"
        assert record["pid"] == process.pid
        yield record["namesrv"], process.stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.clients_full
@pytest.mark.parametrize("release", ["5.3.3", "4.9.7"])
def test_real_clients_are_told_the_same_by_both_name_servers(namesrv, release, tmp_path, request):
    """One scenario of sends, batches, groups and admin questions, with a real broker behind our name server; in full
    form the same once more behind RocketMQ's own. The clients must be told the same.
    """
    address, lines = namesrv
    port = real_cluster.free_port()
    options = ("--port", port, "--namesrv", address, "--small", "--for", "orders")
    with real_cluster.real(tmp_path / "ours", *options, release=release, clean_end=True):
        assert json.loads(lines.readline()) == {
            "type": "broker",
            "state": "registered",
            "brokerName": "broker-a",
            "address": f"127.0.0.1:{port}",
        }
        with cluster_watch.watched(address) as states:
            traffic = real_cluster.traffic("orders", 2, tmp_path / "told-ours", address, release)
    cluster_watch.assert_states_fit_java_clients(states)
    assert [record for record in traffic if record["kind"] == "failure"] == []
    assert sum(row["kind"] == "received" for row in traffic) > 500
    assert json.loads(lines.readline())["state"] == "gone"
    if not request.config.getoption("--clients-full"):
        return
    options = ("--namesrv-port", real_cluster.free_port(), "--port", port, "--small", "--for", "orders")
    with real_cluster.real(tmp_path / "theirs", *options, release=release, clean_end=True) as output:
        real_cluster.traffic("orders", 2, tmp_path / "told-theirs", output["namesrv"], release)
    status, difference = real_cluster.same(tmp_path / "told-theirs", tmp_path / "told-ours")
    assert status == 0, difference[:4000]

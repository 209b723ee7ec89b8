"""RocketMQ's own Java client uses TLS with ``storescope serve``; a server that requires TLS answers no plain
request.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
import real_cluster
from certificates import tls_properties
from served_stores import served_to_clients

from engine.cli.main import main
from engine.remoting.connection import connect
from engine.remoting.frame import Command

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
_LEAN = "-Xms128m -Xmx256m -XX:TieredStopAtLevel=1"


async def ask_without_tls(address: str) -> None:
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    try:
        await connection.ask(Command(106))
    finally:
        connection.close()


def test_the_java_client_sends_over_tls(tmp_path: Path) -> None:
    """Name server and broker both; the broker registers over TLS too."""
    store = tmp_path / "store"
    with served_to_clients(store, "", "--tls", str(tls_properties(tmp_path, "enforcing"))) as namesrv:
        done = subprocess.run(
            ["bash", str(real_cluster.JAVA / "speed"), "5.3.3", namesrv, "send", "1", "1"],
            env={**real_cluster.environment(), "SPEED_JVM": f"{_LEAN} -Dtls.enable=true"},
            capture_output=True,
            text=True,
            timeout=200,
        )
        (line,) = [json.loads(line) for line in done.stdout.splitlines()]
        assert line["rate"] > 0
        with pytest.raises(ConnectionError):
            asyncio.run(ask_without_tls(namesrv))
    assert main(["check", str(store)]) == 0

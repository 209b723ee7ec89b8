"""``storescope serve`` in a process of its own, and requests to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.remoting.connection import connect
from engine.remoting.frame import Command

FREE = ["--port", "0", "--namesrv-port", "0"]


@contextlib.contextmanager
def served(store: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run the command in a process of its own; yield it with its first line."""
    command = [sys.executable, "-m", "engine.cli", "serve", str(store), *FREE, "--json", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextlib.contextmanager
def served_to_clients(store: Path, config: str, *arguments: str) -> Iterator[str]:
    """Run ``storescope serve`` like a user and yield its name server; it must end with 0 and without a traceback."""
    conf = store.with_name("broker.conf")
    conf.write_text(config)
    words = [sys.executable, "-m", "engine.cli", "serve", str(store), "--port", "0", "--namesrv-port", "0", "--json"]
    process = subprocess.Popen(
        [*words, "--config", conf, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        yield json.loads(process.stdout.readline())["namesrv"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def bytes_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "lock"}


async def _send_requests(address: str, *requests: Command) -> list[Command]:
    host, _, port = address.rpartition(":")
    connection = await connect(host, int(port))
    try:
        return [await connection.ask(request, 60) for request in requests]
    finally:
        connection.close()


def responses_of(address: str, *requests: Command) -> list[Command]:
    return asyncio.run(_send_requests(address, *requests))


def a_send(body: bytes, topic: str = "Orders", flag: int = 0) -> Command:
    fields = {
        "a": "senders",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": "KEYS\x01K1\x02",
        "j": "0",
        "k": "false",
        "m": "false",
    }
    return Command(310, fields, body=body, flag=flag)

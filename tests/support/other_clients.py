"""Clients of RocketMQ (``tests/clients/go``, ``node``, ``java``): programs that execute a test's commands, one JSON
object a line, and print the answers to their client; and the servers for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import real_cluster

from engine.remoting.connection import connect
from engine.remoting.frame import Command

CLIENTS = Path(__file__).resolve().parent.parent / "clients"
TIMEOUT_S = 90.0
"""Seconds that anything may take; whoever waits, waits for what must come."""
Line = dict[str, Any]


class OtherClient:
    """A program around a client. ``lines`` are its output, in order; ``run`` executes one more command."""

    def __init__(self, language: str, namesrv: str, home: Path) -> None:
        home.mkdir(parents=True)
        self.lines: list[Line] = []
        self._home = home
        self._errors = (home / "errors.log").open("wb")
        self._process = subprocess.Popen(
            ["bash", str(CLIENTS / language / "run_client"), namesrv, str(home / "client.log")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**real_cluster.environment(), "CLIENT_HOME": str(home)},
            cwd=home,
        )
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            with self._changed:
                self.lines.append(json.loads(text))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_until(self, condition: Callable[[list[Line]], object], words: str) -> None:
        """Wait until ``condition`` is true of the lines; fail with ``words`` if it never is."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or condition(self.lines), TIMEOUT_S)
            assert condition(self.lines), f"{words}: {self._last_output()}"

    def _last_output(self) -> str:
        errors = (self._home / "errors.log").read_text("utf-8", "replace")
        return "\n".join([json.dumps(line)[:300] for line in self.lines[-8:]] + [errors[-2000:]])

    def try_command(self, **command: object) -> tuple[list[Line], str | None]:
        """Return the output of one command, and its error."""
        with self._changed:
            count_before = len(self.lines)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        self.wait_until(
            lambda lines: any(record["event"] == "done" for record in lines[count_before:]), f"not done: {command}"
        )
        with self._changed:
            new_lines = self.lines[count_before:]
        return new_lines, next(row for row in new_lines if row["event"] == "done").get("error")

    def run(self, **command: object) -> list[Line]:
        """Run a command like :meth:`try_command`; an error fails."""
        output, error = self.try_command(**command)
        assert error is None, f"{command}: {error}"
        return output

    def received(self, consumer: str) -> list[Line]:
        with self._changed:
            return [record for record in self.lines if record["event"] == "received" and record["consumer"] == consumer]

    def until_received(self, consumer: str, *counts: tuple[str, int]) -> None:
        """Wait until a consumer was handed each key so often."""

        def lacking(lines: list[Line]) -> list[tuple[str, int]]:
            got = Counter(
                record["keys"][0]
                for record in lines
                if record["event"] == "received" and record["consumer"] == consumer
            )
            return [(key, count) for key, count in counts if got[key] < count]

        self.wait_until(lambda lines: not lacking(lines), f"{consumer} did not get all, see {self._home}")

    def end(self) -> None:
        """Close its input; kill the program if it does not end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(60)
        self._errors.close()
        if self._process.stdout is not None:
            self._process.stdout.close()


class ServerPair:
    """A name server and a broker, each ours or RocketMQ's of ``release``, at addresses that a restart keeps. Our broker
    behaves like one of that release.
    """

    def __init__(self, names: str, broker: str, folder: Path, config: dict[str, str], release: str = "5.3.3") -> None:
        self.names, self.kind = names, broker
        self._release = release
        self._folder = folder
        self._config = config
        self._names_port, self._port = real_cluster.free_port(), real_cluster.free_port()
        self.namesrv = f"127.0.0.1:{self._names_port}"
        self.address = f"127.0.0.1:{self._port}"
        self.store = folder / "store"
        self._standing = contextlib.ExitStack()
        self._broker: contextlib.ExitStack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        if self.names != self.kind:
            words = [sys.executable, "-m", "engine.cli", "namesrv", "--port", str(self._names_port), "--json"]
            self._standing.enter_context(
                _ended_cleanly(words)
                if self.names == "ours"
                else real_cluster.real(
                    self._folder / "names", "--namesrv-port", self._names_port, release=self._release
                )
            )
        self._start()
        return self

    def __exit__(self, *arguments: object) -> None:
        self._broker.close()
        self._standing.close()

    def _start(self) -> None:
        """Start the broker; with a name server in the same process if both are of one kind."""
        beside = self.names == self.kind
        if self.kind == "ours":
            conf = self._folder / "broker.conf"
            conf.write_text("".join(f"{key}={value}\n" for key, value in self._config.items()))
            where = ["--namesrv-port", str(self._names_port)] if beside else ["--namesrv", self.namesrv]
            words = [sys.executable, "-m", "engine.cli", "serve", str(self.store), "--port", str(self._port), "--json"]
            release = ["--release", ".".join(self._release.split(".")[:2])]
            self._broker.enter_context(_ended_cleanly([*words, *where, *release, "--config", str(conf)]))
        else:
            where = ["--namesrv-port" if beside else "--namesrv", self._names_port if beside else self.namesrv]
            sets = [word for pair in self._config.items() for word in ("--set", "=".join(pair))]
            options = ("--port", self._port, *where, *sets)
            self._broker.enter_context(real_cluster.real(self._folder, *options, release=self._release, clean_end=True))
        wait_until(lambda: self.ask_names(105, topic="TBW102").code == 0, "the name server does not know the broker")

    def restart(self) -> None:
        """End the broker cleanly and start it again, together with a name server in the same process."""
        self._broker.close()
        self._start()

    def ask(self, code: int, body: bytes = b"", **fields: object) -> Command:
        """Return the broker's answer."""
        return _response_of(self.address, Command(code, {key: str(value) for key, value in fields.items()}, body=body))

    def ask_names(self, code: int, **fields: object) -> Command:
        """Return the name server's answer."""
        return _response_of(self.namesrv, Command(code, {key: str(value) for key, value in fields.items()}))

    def topic(self, name: str, queues: int) -> None:
        """Make a topic, and wait until the name server knows it."""
        answer = self.ask(
            17,
            topic=name,
            defaultTopic="TBW102",
            readQueueNums=queues,
            writeQueueNums=queues,
            perm=6,
            topicFilterType="SINGLE_TAG",
            topicSysFlag=0,
            order="false",
        )
        assert answer.code == 0, answer
        wait_until(lambda: self.ask_names(105, topic=name).code == 0, f"no route of {name}")

    def max_offset(self, topic: str, queue: int) -> int:
        """Return the number of entries of a queue (``GET_MAX_OFFSET``); 0 if there is none."""
        answer = self.ask(30, topic=topic, queueId=queue)
        return int(answer.fields.get("offset", 0))

    def consumed(self, group: str, topic: str, queue: int) -> int | None:
        """Return the offset of a group (``QUERY_CONSUMER_OFFSET``); None if the broker has none."""
        answer = self.ask(14, consumerGroup=group, topic=topic, queueId=queue)
        return int(answer.fields["offset"]) if answer.code == 0 else None


@contextlib.contextmanager
def _ended_cleanly(words: list[str]) -> Iterator[Line]:
    """Run a command of ours that prints one line once it accepts; end it like Ctrl+C, with 0 and without a
    traceback.
    """
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
        reader.start()
        try:
            line = process.stdout.readline()
            assert line, "".join(errors)
            drain = threading.Thread(target=lambda: [None for _ in process.stdout or ()], daemon=True)
            drain.start()
            yield json.loads(line)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, "".join(errors)
            reader.join(60)
            drain.join(60)
            assert "Traceback" not in "".join(errors), "".join(errors)
        finally:
            process.kill()


def wait_until(condition: Callable[[], object], words: str) -> None:
    """Wait until ``condition()`` is true; a refused connection is not yet."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        with contextlib.suppress(OSError):
            if condition():
                return
        assert time.monotonic() < end, words
        time.sleep(0.05)


def _response_of(address: str, request: Command) -> Command:
    async def asking() -> Command:
        host, _, port = address.rpartition(":")
        connection = await connect(host, int(port))
        try:
            return await connection.ask(request, 60)
        finally:
            connection.close()

    return asyncio.run(asking())

"""What real clients get from the real broker on a store, for many stores in one Java process of a release.

::

    with StoreReader("5.5.1", tmp_path / "reader") as reader:
        reading = reader.read(store, config={"mappedFileSizeCommitLog": 65536}, keys=[["Orders", "key 1"]])
        assert reading.is_started, reading.error
        reading.messages["Orders", 0, 7].body  # digest; .physical_offset, .size
        reader.wait_closed(store)  # the broker has written its tables, and let go of the store

Each store is opened **in place** by a broker with a name server and ports of its own. A pull consumer reads every
queue from offset 0 to its end. Further words of a command: ``topics`` (only these), ``properties=True``, ``groups``
(push consumers, each from where its group stands), ``commit`` (offsets that groups commit), ``await`` (as ``{"await":
{topic: count}}``: read on until so many messages came), ``startMs``; see ``StoreReadings.java``. A broker shuts down
while the next store is read. A start that hangs costs its process, and the next store gets a new one.
"""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import real_cluster

BROKERS = {"5.5.1": "5.5.1", "5.5.0": "5.5.0", "5.4.0": "5.4.0", "5.3.3": "5.3.3", "4.9.8": "4.9.7"}
"""The broker that reads stores of a release: that of 4.9.8 is not published."""
READING_TIMEOUT_S = 240.0
STORES_OF_A_PROCESS = 60


class ConsumedMessage(NamedTuple):
    """A message as a client has it; ``body`` is a digest."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    body: str
    properties: dict[str, str] | None = None


Place = tuple[str, int, int]
"""Topic, queue and queue offset."""


@dataclass
class Reading:
    """What clients got from one store."""

    line: dict[str, Any]
    messages: dict[Place, ConsumedMessage] = field(default_factory=dict)
    repeated: list[Place] = field(default_factory=list)

    @property
    def is_started(self) -> bool:
        return bool(self.line["started"])

    @property
    def error(self) -> str:
        return str(self.line.get("error", ""))

    @property
    def queues(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Return each queue's bounds (``min``, ``max``), the broker's corrections of offsets (``moves``), ``error``."""
        return {(row["topic"], row["queue"]): row for row in self.line.get("queues", ())}

    @property
    def answers(self) -> dict[tuple[str, str], list[int] | str]:
        """Return the offsets in the log that the index gives for each key, or the client's error."""
        return {(topic, key): answer for topic, key, answer in self.line.get("answers", ())}

    @property
    def groups(self) -> dict[str, list[ConsumedMessage]]:
        """Return what each group's consumer got."""
        return {group: [ConsumedMessage(*row) for row in rows] for group, rows in self.line.get("groups", {}).items()}


def _reading(line: dict[str, Any]) -> Reading:
    reading = Reading(line)
    for row in line.get("messages", ()):
        message = ConsumedMessage(*row)
        place = (message.topic, message.queue_id, message.queue_offset)
        if place in reading.messages:
            reading.repeated.append(place)
        reading.messages[place] = message
    return reading


class StoreReader:
    """The real brokers of a release, in one process that is started when it is needed."""

    def __init__(self, release: str, work: Path) -> None:
        self.release = release
        self._work = work
        self._process: subprocess.Popen[str] | None = None
        self._read_count = 0
        self._closed: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self, store: Path, **command: Any) -> Reading:
        """Start a broker on the store, and return what clients got from it."""
        if self._process is None or self._process.poll() is not None or self._read_count >= STORES_OF_A_PROCESS:
            self.close()
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._read_count += 1
        self._closed.discard(str(store))
        self._process.stdin.write(json.dumps({"store": str(store), **command}) + "\n")
        self._process.stdin.flush()
        line = self._next_line("reading")
        assert line is not None, f"the process ended while it read {store}: {self._output()}"
        return _reading(line)

    def wait_closed(self, store: Path) -> None:
        """Wait until the broker of the store that was read has shut down, or died with its process."""
        while str(store) not in self._closed and self._next_line("closed") is not None:
            pass

    def close(self) -> None:
        """End the process, once its brokers have shut down."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.poll() is None:
            self._process.stdin.close()
        while self._next_line("closed") is not None:
            pass
        self._process.wait(60)
        self._process.stdout.close()
        self._process = None

    def _start(self) -> None:
        self._work.mkdir(parents=True, exist_ok=True)
        release = BROKERS.get(self.release, self.release)
        words = ["bash", str(real_cluster.JAVA / "store_readings"), release, str(self._work)]
        with (self._work / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                env=real_cluster.environment(),
            )
        self._read_count = 0

    def _next_line(self, kind: str) -> dict[str, Any] | None:
        """Return the next line of a kind; None if the process has ended. Notes which stores are closed."""
        assert self._process is not None
        assert self._process.stdout is not None
        watch = threading.Timer(READING_TIMEOUT_S, self._process.kill)
        watch.start()
        try:
            for text in self._process.stdout:
                line: dict[str, Any] = json.loads(text)
                if line["kind"] == "closed":
                    self._closed.add(line["store"])
                if line["kind"] == kind:
                    return line
        finally:
            watch.cancel()
        return None

    def _output(self) -> str:
        return (self._work / "output.log").read_text("utf-8", "replace")[-3000:]

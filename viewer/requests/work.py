"""What is done off the loop: reading a file of requests, writing one, sending a recording again. No Qt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CannotRead, UsageError
from engine.remoting.exchanges import Exchange, Seen, exchange_of, request_record
from engine.remoting.recording import MAGIC, Recorder, Recording
from engine.remoting.replaying import Replay, Replayed
from engine.whole_file import whole_text
from viewer.requests.request_log import Frame, Shown, frame_record

LARGEST_LINE = 32 << 20
MOST = 64 << 20
"""Bytes of a file of which exchanges are shown, from its end; what lies before is counted."""


@dataclass
class Opened:
    """A file of requests: the frames of a recording, or the exchanges of a log."""

    items: list[Seen]
    exchanges: list[Exchange]
    left_out: int | None = 0
    passed: int = 0
    """Items in front of those that are here: there was no room for them."""


def read_file(path: Path) -> Opened:
    """A recording of ``serve --record``, or a log of ``serve --log-requests``. Raises :class:`CannotRead` where it is
    neither, and ``OSError``.
    """
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
    if begin == MAGIC:
        return _recording(path)
    if begin[:1] == b"{":
        return _log(path)
    raise CannotRead(f"{path} holds no requests: a file of `storescope serve --record` or `--log-requests` is expected")


def _recording(path: Path) -> Opened:
    recording = Recording(path)
    items: list[Seen] = []
    held = passed = first = 0
    for seen in recording:
        items.append(seen)
        held += len(seen.data) + 600
        while held > MOST and first < len(items) - 1:
            held -= len(items[first].data) + 600
            items[first] = Seen(0, 0, -1)
            first += 1
            passed += 1
    return Opened(items[first:], [], recording.left_out, passed)


def _log(path: Path) -> Opened:
    exchanges: list[Exchange] = []
    passed = 0
    with path.open("rb") as file:
        while line := file.readline(LARGEST_LINE):
            if not line.endswith(b"\n"):
                return Opened([], exchanges, None, passed)
            try:
                exchanges.append(exchange_of(json.loads(line), len(exchanges) + passed + 1))
            except ValueError as error:
                raise CannotRead(f"{path}, line {len(exchanges) + passed + 1:,}: {error}") from error
            if len(exchanges) > MOST // 1500:
                drop = len(exchanges) // 4
                del exchanges[:drop]
                passed += drop
    return Opened([], exchanges, 0, passed)


def write_lines(path: Path, rows: Sequence[Shown]) -> int:
    """The rows as lines of JSON: exchanges as ``--log-requests`` writes them, frames as records of their own; how many.
    Raises ``OSError``.
    """
    with whole_text(path) as out:
        for row in rows:
            record = frame_record(row) if isinstance(row, Frame) else request_record(row.exchange)
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
    return len(rows)


def write_recording(path: Path, items: Sequence[Seen]) -> int:
    """The frames as a recording, in a new file; how many. Raises ``OSError``."""
    recorder = Recorder(path)
    try:
        for seen in items:
            recorder.take(seen)
    finally:
        recorder.close()
    return len(items)


def replay_into(folder: Path, exchanges: Sequence[Exchange]) -> Replayed:
    """Send the requests again into a new store in ``folder``, which is absent or empty. Raises ``StoreError``,
    ``OSError``.
    """
    from engine.broker.serving import serving_store

    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: requests are sent again into a new store")

    async def replayed() -> Replayed:
        async with serving_store(folder, port=0) as server:
            return await Replay(exchanges, server.address).run()

    return asyncio.run(replayed())

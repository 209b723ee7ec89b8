"""Work off the loop: read a file of requests, write one, replay a recording. No Qt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CannotRead, UsageError
from engine.files.atomic_file import atomic_text
from engine.remoting.exchanges import Exchange, FrameEvent, exchange_of, request_record
from engine.remoting.recording import MAGIC, Recorder, Recording, Replay, ReplayResult
from engine.sentences import sentence
from viewer.requests.request_log import Frame, ShownRow, frame_record

MAX_LINE_BYTES = 32 << 20
MAX_SHOWN_BYTES = 64 << 20
"""Bytes at the end of a file whose exchanges are shown; earlier ones are counted."""


@dataclass
class OpenedFile:
    """A file of requests: the frames of a recording, or the exchanges of a log."""

    items: list[FrameEvent]
    exchanges: list[Exchange]
    left_out: int | None = 0
    passed: int = 0
    """Number of earlier items that were skipped because of the limit."""
    growing: Recording | None = None
    """The recording if its end is missing: more may be written to it."""


def read_file(path: Path) -> OpenedFile:
    """Read a recording of ``serve --record``, or a log of ``serve --log-requests``.

    Raises :class:`CannotRead` if it is neither, and ``OSError``.
    """
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
    if magic == MAGIC:
        return _recording(path)
    if magic[:1] == b"{":
        return _log(path)
    raise CannotRead(
        sentence(
            ("{path} holds no requests: a file of `storescope serve --record` or `--log-requests` is expected"),
            path=path,
        )
    )


def _recording(path: Path) -> OpenedFile:
    recording = Recording(path)
    items: list[FrameEvent] = []
    stored_bytes = skipped_count = first_index = 0
    for frame in recording:
        items.append(frame)
        stored_bytes += len(frame.data) + 600
        while stored_bytes > MAX_SHOWN_BYTES and first_index < len(items) - 1:
            stored_bytes -= len(items[first_index].data) + 600
            items[first_index] = FrameEvent(0, 0, -1)
            first_index += 1
            skipped_count += 1
    growing = recording if recording.left_out is None else None
    return OpenedFile(items[first_index:], [], recording.left_out, skipped_count, growing)


def _log(path: Path) -> OpenedFile:
    exchanges: list[Exchange] = []
    skipped_count = 0
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            if not line.endswith(b"\n"):
                return OpenedFile([], exchanges, None, skipped_count)
            try:
                exchanges.append(exchange_of(json.loads(line), len(exchanges) + skipped_count + 1))
            except ValueError as error:
                raise CannotRead(
                    sentence(
                        "{path}, line {value:,}: {error}",
                        path=path,
                        value=len(exchanges) + skipped_count + 1,
                        error=error,
                    )
                ) from error
            if len(exchanges) > MAX_SHOWN_BYTES // 1500:
                drop = len(exchanges) // 4
                del exchanges[:drop]
                skipped_count += drop
    return OpenedFile([], exchanges, 0, skipped_count)


def write_lines(path: Path, rows: Sequence[ShownRow]) -> int:
    """Write the rows as JSON lines and return their number.

    Exchanges have the form of ``--log-requests``, frames are records of their own. Raises ``OSError``.
    """
    with atomic_text(path) as out:
        for row in rows:
            record = frame_record(row) if isinstance(row, Frame) else request_record(row.exchange)
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
    return len(rows)


def write_recording(path: Path, items: Sequence[FrameEvent]) -> int:
    """Write the frames as a recording in a new file and return their number. Raises ``OSError``."""
    recorder = Recorder(path)
    try:
        for frame in items:
            recorder.take(frame)
    finally:
        recorder.close()
    return len(items)


def replay_into(folder: Path, exchanges: Sequence[Exchange]) -> ReplayResult:
    """Replay the requests into a new store in ``folder``, which is absent or empty.

    Raises ``StoreError``, ``OSError``.
    """
    from engine.broker.serving import serving_store

    if folder.exists() and any(folder.iterdir()):
        raise UsageError(sentence("{folder} is not empty: requests are sent again into a new store", folder=folder))

    async def replayed() -> ReplayResult:
        async with serving_store(folder, port=0) as server:
            return await Replay(exchanges, server.address).run()

    return asyncio.run(replayed())

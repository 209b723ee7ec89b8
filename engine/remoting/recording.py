"""A recording: every frame of a server's connections whole, as a file that can be shown and sent again.

A line that names the format, then one item after another, big-endian: µs since 1970 (8 bytes), connection (4), kind (1;
:mod:`engine.remoting.exchanges`), bytes of the reason (2), bytes of the data (4), reason, data. Kind 255 ends it: its
reason is how many items were left out once the file was full. A file that ends in the middle of an item (a process was
killed) is read up to there.
"""

from __future__ import annotations

import io
import json
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

from engine.errors import CannotRead
from engine.remoting.exchanges import BROKEN, CAME, LATER, WENT, Exchanges, FrameEvent, command_of, request_record
from engine.remoting.frame import MAX_FRAME_BYTES

MAGIC = b"storescope requests 1\n"
MAX_RECORDING_BYTES = 256 << 20
"""Bytes of a recording beyond which nothing more is written into it."""
_ITEM = struct.Struct(">qIBHI")
_END = 255
_FRAMES = frozenset({CAME, WENT, LATER})


def encode_events(items: Iterable[FrameEvent]) -> bytes:
    """Encode the events as a recording stores them."""
    pieces = []
    for event in items:
        reason = event.reason.encode("utf-8", "replace")[:0xFFFF]
        pieces += [
            _ITEM.pack(event.time, event.connection, event.kind, len(reason), len(event.data)),
            reason,
            event.data,
        ]
    return b"".join(pieces)


def decode_events(source: BinaryIO) -> Iterator[FrameEvent]:
    """Yield the events behind the first line. Raises :class:`CannotRead` where they are none."""
    while len(head := source.read(_ITEM.size)) == _ITEM.size:
        time_us, connection, kind, reason_size, size = _ITEM.unpack(head)
        if size > MAX_FRAME_BYTES or (kind > BROKEN and kind != _END):
            raise CannotRead(f"the recording holds no item before byte {source.tell():,}: kind {kind}, {size:,} bytes")
        reason_bytes, data = source.read(reason_size), source.read(size)
        if len(reason_bytes) < reason_size or len(data) < size:
            return
        reason = reason_bytes.decode("utf-8", "replace")
        command = command_of(data) if kind in _FRAMES else None
        yield FrameEvent(time_us, connection, kind, data, command, reason)


class Recorder:
    """Writes a recording into a new file; :meth:`take` one item after the other, :meth:`close` at the end. Raises
    ``OSError``: ``FileExistsError`` where something is there.
    """

    def __init__(self, path: Path, limit_bytes: int = MAX_RECORDING_BYTES) -> None:
        self._file = path.open("xb")
        self._file.write(MAGIC)
        self._file.flush()
        self._room = limit_bytes - len(MAGIC)
        self.left_out = 0

    def take(self, event: FrameEvent) -> None:
        """Write an event, as long as there is room."""
        item = encode_events([event])
        if self.left_out or len(item) > self._room:
            self.left_out += 1
            return
        self._room -= len(item)
        self._file.write(item)
        self._file.flush()  # whoever follows the file sees it, and a killed process leaves all that it noted

    def close(self) -> None:
        """Write the number of events that were left out, and close the file."""
        if not self._file.closed:
            left_out = str(self.left_out)
            self._file.write(encode_events([FrameEvent(time.time_ns() // 1000, 0, _END, b"", None, left_out)]))
            self._file.close()


class RequestLog:
    """Appends each exchange to a file as a line of JSON, once it is complete; bodies by length and digest. Raises
    ``OSError``.
    """

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8", buffering=1)
        self._exchanges = Exchanges()

    def take(self, event: FrameEvent) -> None:
        """Write the exchanges that an event completes."""
        for exchange in self._exchanges.take(event):
            if not exchange.waits:
                self._file.write(json.dumps(request_record(exchange), ensure_ascii=False) + "\n")

    def close(self) -> None:
        """The end: what has no answer yet gets a line without one."""
        if not self._file.closed:
            for exchange in self._exchanges.give_up():
                self._file.write(json.dumps(request_record(exchange), ensure_ascii=False) + "\n")
            self._file.close()


class Recording:
    """A file of :class:`Recorder`, item by item. ``left_out`` is known behind the last: items for which the file had no
    room; None where its end is missing. ``position`` is the byte behind the last one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: int | None = None
        self.position = 0

    def __iter__(self) -> Iterator[FrameEvent]:
        """Yield every event. Raises :class:`CannotRead` where the file is no recording, and ``OSError``."""
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise CannotRead(f"{self.path} is not a recording of requests")
            self.position = file.tell()
            yield from self._items(file)

    def grown(self, limit_bytes: int = 2 * MAX_FRAME_BYTES) -> list[FrameEvent]:
        """Return the events written behind :attr:`position` since then, up to ``limit_bytes`` bytes. Raises as
        ``__iter__`` does.
        """
        with self.path.open("rb") as file:
            file.seek(self.position)
            begin, data = self.position, file.read(limit_bytes)
        return list(self._items(io.BytesIO(data), begin))

    def _items(self, file: BinaryIO, begin: int = 0) -> Iterator[FrameEvent]:
        for event in decode_events(file):
            self.position = begin + file.tell()
            if event.kind == _END:
                self.left_out = int(event.reason) if event.reason.isdecimal() else 0
            else:
                yield event

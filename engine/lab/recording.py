"""Samples of a run, recorded into one file that only grows, and read back while it is written or later.

The file (numbers big-endian): 8 bytes ``SSLABREC``, then records of ``length`` (4, of what follows but the CRC),
``kind`` (1), payload, CRC-32 of kind and payload (4). Kinds: ``H`` the head, UTF-8 JSON; ``N`` one name (a status or
a service), numbered in the order of the file; ``S`` a sample; ``T`` a text at a time (ms, UTF-8). A file that ends in
the middle of a record was cut off: it is read up to there.
"""

from __future__ import annotations

import json
import struct
import threading
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from engine.codec.checkpoint import Checkpoint
from engine.errors import CannotRead, NotAStore, StoreError
from engine.lab.samples import FlushMark, PositionSample, Rates, ServiceState
from engine.store.latency import BUCKETS, Histogram
from engine.store.positions import Positions

MAGIC: Final = b"SSLABREC"
SUFFIX: Final = ".storescope-record"
MOST_BYTES: Final = 512 << 20
"""Bytes of a recording at which it ends: some twenty hours at ten samples a second."""
_LONGEST: Final = 1 << 24
_FRAME: Final = struct.Struct(">IB")
_CRC: Final = struct.Struct(">I")
_FIXED: Final = struct.Struct(">17qi6d")
_FLUSH: Final = struct.Struct(">qqqqdi")
_SERVICE: Final = struct.Struct(">H?qqqqB")
_COUNT: Final = struct.Struct(">H")
_STATUS: Final = struct.Struct(">Hq")
_BUCKET: Final = struct.Struct(">Bq")
_NONE: Final = -(1 << 63)
_UNITS: Final = ("rounds", "bytes", "units", "queues", "files")


class NotARecording(NotAStore):
    """The file is no recording of samples."""


@dataclass(frozen=True, slots=True)
class Note:
    """A text that was entered while the recording ran, at ``at_ms``."""

    at_ms: int
    text: str


class Recorder:
    """Writes samples to ``path``, which must not be there yet. ``about`` says what is recorded (JSON values).

    Nothing is written any more once the file has ``most_bytes``: :attr:`full` says so. Safe from several threads.
    Raises ``OSError``.
    """

    def __init__(self, path: Path, about: dict[str, Any] | None = None, *, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self.samples = 0
        self.full = False
        self._most = most_bytes
        self._names: dict[str, int] = {}
        self._lock = threading.Lock()
        self._file = path.open("xb", buffering=0)
        self.size = 0
        self._write(MAGIC + _record(b"H", json.dumps(about or {}).encode()))

    def append(self, sample: PositionSample) -> bool:
        """Record one sample; False where the recording is full or closed. Raises ``OSError``: nothing of it counts."""
        with self._lock:
            new: list[str] = []
            payload = _encode(sample, self._number, new)
            text = b"".join(_record(b"N", name.encode()) for name in new) + _record(b"S", payload)
            if self._file.closed or self.full:
                return False
            if self.size + len(text) > self._most:
                self.full = True
                return False
            self._write(text)
            self._names.update({name: len(self._names) + at for at, name in enumerate(new)})
            self.samples += 1
            return True

    def note(self, at_ms: int, text: str) -> None:
        """Enter a text: what somebody did at this moment."""
        with self._lock:
            if not (self._file.closed or self.full):
                self._write(_record(b"T", struct.pack(">q", at_ms) + text.encode()))

    def close(self) -> None:
        """Nothing more is recorded; a second call does nothing."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _number(self, name: str, new: list[str]) -> int:
        known = self._names.get(name)
        if known is not None:
            return known
        if name not in new:
            new.append(name)
        return len(self._names) + new.index(name)

    def _write(self, text: bytes) -> None:
        try:
            written = self._file.write(text)
            if written != len(text):
                raise OSError(28, "No space left on device", str(self.path))
        except OSError:
            self._file.truncate(self.size)
            self._file.seek(self.size)
            raise
        self.size += len(text)


class Recording:
    """A recording, opened for reading: as many samples as were whole when :meth:`refresh` last looked.

    ``about`` is what the recorder was told, ``notes`` the texts, ``cut`` says in words where the file was cut off, ""
    for a whole one. Memory is 16 bytes a sample. Raises :class:`NotARecording`, :class:`CannotRead`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about: dict[str, Any] = {}
        self.notes: list[Note] = []
        self.cut = ""
        self._names: list[str] = []
        self._places = array("q")
        self._times = array("q")
        self._read_to = len(MAGIC)
        try:
            self._file = path.open("rb")
            if self._file.read(len(MAGIC)) != MAGIC:
                self._file.close()
                raise NotARecording("expected a recording of samples, found something else", file=str(path))
        except OSError as error:
            raise CannotRead(error.strerror or str(error), file=str(path)) from error
        self.refresh()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def times_ms(self) -> memoryview:
        """When each sample was taken, ms since 1970: a view of 8-byte numbers."""
        return memoryview(self._times[:])

    def refresh(self) -> int:
        """Take what was recorded since; how many samples came. Raises :class:`CannotRead`."""
        before = len(self._places)
        self.cut = ""
        try:
            for place, kind, payload in self._records():
                self._take(place, kind, payload)
        except OSError as error:
            raise CannotRead(error.strerror or str(error), file=str(self.path)) from error
        return len(self._places) - before

    def at(self, number: int) -> PositionSample:
        """Sample ``number``, from 0. Raises ``IndexError``, :class:`CannotRead`."""
        place = self._places[number]
        self._file.seek(place)
        length, _kind = _FRAME.unpack(self._file.read(_FRAME.size))
        return _decode(self._file.read(length - 1), self._names)

    def before(self, at_ms: int) -> int:
        """Number of the last sample taken at or before ``at_ms``; −1 where all are later."""
        return bisect_right(self._times, at_ms) - 1

    def __iter__(self) -> Iterator[PositionSample]:
        for number in range(len(self)):
            yield self.at(number)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _records(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Whole records from where reading stopped."""
        while True:
            self._file.seek(self._read_to)
            frame = self._file.read(_FRAME.size)
            if not frame:
                return
            length, kind = _FRAME.unpack(frame) if len(frame) == _FRAME.size else (0, 0)
            payload = self._file.read(length - 1 + _CRC.size) if 0 < length <= _LONGEST else b""
            whole = length > 0 and len(payload) == length - 1 + _CRC.size
            if not whole or _CRC.unpack(payload[-4:])[0] != zlib.crc32(bytes([kind]) + payload[:-4]):
                self.cut = f"the recording ends within a record at byte {self._read_to:,}"
                return
            place = self._read_to
            self._read_to += _FRAME.size + len(payload)
            yield place, bytes([kind]), payload[:-4]

    def _take(self, place: int, kind: bytes, payload: bytes) -> None:
        if kind == b"S":
            self._places.append(place)
            self._times.append(struct.unpack_from(">q", payload)[0])
        elif kind == b"N":
            self._names.append(payload.decode())
        elif kind == b"T":
            self.notes.append(Note(struct.unpack_from(">q", payload)[0], payload[8:].decode()))
        elif kind == b"H":
            found = json.loads(payload)
            self.about = found if isinstance(found, dict) else {}


def _record(kind: bytes, payload: bytes) -> bytes:
    text = kind + payload
    if len(text) > _LONGEST:
        raise StoreError(f"a record of {len(text):,} bytes is too long")
    return len(text).to_bytes(4, "big") + text + _CRC.pack(zlib.crc32(text))


def _encode(sample: PositionSample, number: Any, new: list[str]) -> bytes:
    at, rates, point = sample.positions, sample.rates, sample.positions.checkpoint
    parts = [
        _FIXED.pack(
            sample.at_ms, at.min, at.wrote, at.committed, at.flushed, at.dispatched, at.confirm, at.queue_max,
            at.index_end, sample.last_file, sample.file_size, _or_none(at.buffers_left),
            point.physic_msg_timestamp, point.logics_msg_timestamp, point.index_msg_timestamp,
            _or_none(point.master_flushed_offset), _or_none(point.confirm_phy_offset), at.waiting,
            rates.messages, rates.wrote, rates.committed, rates.flushed, rates.dispatched, rates.flushes,
        ),
        _histogram(at.put_latency),
        _histogram(at.flush_latency),
        _COUNT.pack(len(sample.statuses)),
        *(_STATUS.pack(number(name, new), count) for name, count in sample.statuses.items()),
        _COUNT.pack(len(sample.flushes)),
        *(
            _FLUSH.pack(mark.number, mark.at_ms, mark.to_offset, mark.bytes, mark.took_ms, mark.waiters)
            for mark in sample.flushes
        ),
        _COUNT.pack(len(sample.services)),
        *(_service(number(name, new), state) for name, state in sample.services.items()),
        sample.trouble.encode(),
    ]  # fmt: skip
    return b"".join(parts)


def _decode(payload: bytes, names: list[str]) -> PositionSample:
    found = _FIXED.unpack_from(payload)
    at = _FIXED.size
    put, at = _histogram_at(payload, at)
    flush, at = _histogram_at(payload, at)
    statuses, at = _rows(_STATUS, payload, at)
    flushes, at = _rows(_FLUSH, payload, at)
    services, at = _rows(_SERVICE, payload, at)
    checkpoint = Checkpoint(found[12], found[13], found[14], _none_or(found[15]), _none_or(found[16]))
    positions = Positions(
        found[1], found[2], found[3], found[4], found[5], found[6], found[7], found[8], checkpoint, _none_or(found[11]),
        found[17], put, flush,
    )  # fmt: skip
    return PositionSample(
        found[0], positions, Rates(*found[18:24]), {names[row[0]]: row[1] for row in statuses},
        tuple(FlushMark(*row) for row in flushes),
        {
            names[row[0]]: ServiceState(
                row[1], _none_or(row[2]), _none_or(row[3]), row[4], _UNITS[row[6]], _none_or(row[5])
            )
            for row in services
        },
        found[9], found[10], payload[at:].decode(),
    )  # fmt: skip


def _rows(shape: struct.Struct, payload: bytes, at: int) -> tuple[list[tuple[Any, ...]], int]:
    (count,) = _COUNT.unpack_from(payload, at)
    at += _COUNT.size
    stop = at + count * shape.size
    return list(shape.iter_unpack(payload[at:stop])), stop


def _service(number: int, state: ServiceState) -> bytes:
    unit = _UNITS.index(state.unit) if state.unit in _UNITS else 0
    return _SERVICE.pack(
        number, state.paused, _or_none(state.waiting_bytes), _or_none(state.last_ms), state.moved,
        _or_none(state.waiting), unit,
    )  # fmt: skip


def _histogram(histogram: Histogram) -> bytes:
    filled = [(bucket, count) for bucket, count in enumerate(histogram.counts) if count]
    return _COUNT.pack(len(filled)) + b"".join(_BUCKET.pack(*row) for row in filled)


def _histogram_at(payload: bytes, at: int) -> tuple[Histogram, int]:
    rows, at = _rows(_BUCKET, payload, at)
    counts = [0] * BUCKETS
    for bucket, count in rows:
        counts[bucket] = count
    return Histogram(tuple(counts)), at


def _or_none(number: int | None) -> int:
    return _NONE if number is None else number


def _none_or(number: int) -> int | None:
    return None if number == _NONE else number

"""Whole blocks of commit-log bytes as columns: the walk of :mod:`engine.codec.unit_scan` in bulk
(docs/formats/commit-log.md).

Two twins keep one contract: :func:`scan_block_plain` in plain Python, and the compiled one of
:mod:`engine.codec.compiled`. :func:`scan_block` takes the compiled one where numba is there and can compile;
``STORESCOPE_PLAIN=1`` in the environment forbids it. Neither reads a byte outside ``buf[0:n]``, whatever the bytes say.

Stretches of one file that are longer than a block go through one buffer that is used again and again
(:class:`BulkWalk`). The compiled walk reads by ``pread`` in pieces that still lie in the processor's nearest cache when
they are walked. That is why no second thread reads ahead: it would fill another processor's cache. Bytes that only a
call can fetch are fetched a buffer at a time. Nothing is opened here; at the first thing that is no unit a stretch
ends, and :mod:`engine.codec.unit_scan` tells what it is.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.codec import message, properties
from engine.codec.crc import crc31
from engine.codec.java import i64, utf8
from engine.codec.machine_code import FULL, GROW_TOPICS, PATCH, Twins
from engine.codec.machine_code_build import twins
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_flavours import BY_VERSION
from engine.codec.unit_scan import Blank, Stop, find_unit, look

Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Stopped = Literal["full", "blank", "zero", "end", "cut", "damage"]

UNIT, BLANK = 0, 1
UNCHECKED, OK, BAD = 0, 1, 2
NAMES = COLUMNS
"""Name and numpy type of every column, in the order in which the compiled twin takes their addresses."""

_BODY_CRC, _NAMES = 1, 2
_STAGGER = 192
_I64 = struct.Struct(">q")
_HEAD = struct.Struct(">iIiiiqqiq")
_AFTER_HOSTS = struct.Struct(">iqi")
_log = logging.getLogger(__name__)


class UnitColumns:
    """A fixed number of rows, one array a field; the first ``count`` rows of each array are filled.

    Offsets are absolute bytes, positions count from ``buffer[0]``, whose absolute offset is ``base``; ``kind`` is
    UNIT or BLANK, ``crc`` UNCHECKED, OK or BAD; ``topic_id`` is a number of the :class:`TopicTable`, −1 beyond its
    limit. Arrays and buffer are used again by the next block: keep a :meth:`copy`, or copy what must live longer.
    """

    __slots__ = (*(name for name, _ in NAMES), "addresses", "base", "buffer", "capacity", "count")

    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    version: npt.NDArray[np.uint8]
    kind: npt.NDArray[np.uint8]
    queue_id: npt.NDArray[np.int32]
    flag: npt.NDArray[np.int32]
    queue_offset: npt.NDArray[np.int64]
    physical_offset: npt.NDArray[np.int64]
    sys_flag: npt.NDArray[np.int32]
    born_timestamp: npt.NDArray[np.int64]
    store_timestamp: npt.NDArray[np.int64]
    reconsume_times: npt.NDArray[np.int32]
    prepared_transaction_offset: npt.NDArray[np.int64]
    body_crc: npt.NDArray[np.int32]
    body_length: npt.NDArray[np.int32]
    body_position: npt.NDArray[np.int64]
    topic_id: npt.NDArray[np.int32]
    tags_code: npt.NDArray[np.int64]
    properties_position: npt.NDArray[np.int64]
    properties_length: npt.NDArray[np.int32]
    crc: npt.NDArray[np.uint8]

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        self.base = 0
        self.buffer: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        # One block, each column a few cache lines off the last: columns that begin at equal places of a page push each
        # other out of the first-level cache.
        step = [-(-capacity * np.dtype(kind).itemsize // 64) * 64 + _STAGGER for _, kind in NAMES]
        block = np.zeros(sum(step), np.uint8)
        for i, (name, kind) in enumerate(NAMES):
            at = sum(step[:i])
            setattr(self, name, block[at : at + capacity * np.dtype(kind).itemsize].view(kind))
        self.addresses = np.array([getattr(self, name).ctypes.data for name, _ in NAMES], np.int64)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        """The filled rows of the column ``name``: a view."""
        column: npt.NDArray[np.generic] = getattr(self, name)[: self.count]
        return column

    def copy(self) -> UnitColumns:
        """The filled rows in arrays of their own; the buffer is still the shared one."""
        other = UnitColumns(self.count)
        other.count, other.base, other.buffer = self.count, self.base, self.buffer
        for name, _ in NAMES:
            getattr(other, name)[:] = self[name]
        return other

    def copy_into(self, other: UnitColumns, names: Iterable[str]) -> None:
        """The filled rows of the columns ``names`` into ``other``, which has room for them and takes the buffer too."""
        other.count, other.base, other.buffer = self.count, self.base, self.buffer
        for name in names:
            getattr(other, name)[: self.count] = self[name]

    def forget_buffer(self) -> None:
        """Let go of the buffer, so that the memory behind it can be unmapped; the columns stay."""
        self.buffer = np.empty(0, np.uint8)

    def body(self, row: int) -> bytes:
        """Body of a row, as stored."""
        at = int(self.body_position[row])
        return self.buffer[at : at + int(self.body_length[row])].tobytes()

    def raw_properties(self, row: int) -> bytes:
        """Property text of a row, as stored."""
        at = int(self.properties_position[row])
        return self.buffer[at : at + int(self.properties_length[row])].tobytes()

    def raw_topic(self, row: int) -> bytes:
        """Topic of a row, as stored."""
        width = BY_VERSION[int(self.version[row])].topic_width
        at = int(self.body_position[row]) + int(self.body_length[row]) + width
        return self.buffer[at : int(self.properties_position[row]) - 2].tobytes()

    def add_blank(self, offset: int, size: int, position: int) -> None:
        """One row more, for a blank unit."""
        row = self.count
        for name, _ in NAMES:
            getattr(self, name)[row] = 0
        self.offset[row], self.size[row], self.kind[row], self.topic_id[row] = offset, size, BLANK, -1
        self.physical_offset[row], self.body_position[row] = offset, position
        self.count = row + 1


class ScanResult(NamedTuple):
    """Where a scan of a block stopped (position in the buffer), how many rows it filled, and why it stopped.

    ``stopped`` is ``full`` (no row left: go on from here), ``blank`` (the last row is the blank; its ``size`` leads
    to the next file), ``zero``, ``end`` or ``cut`` (more bytes are needed), or ``damage``; ``reason`` says it in words.
    """

    next_position: int
    units: int
    stopped: Stopped
    reason: str


def scan_block(
    buf: Buffer,
    n: int,
    base: int,
    at: int,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool = True,
    want_tags: bool = True,
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS,
) -> ScanResult:
    """Fill ``out`` from its first row on with the units of ``buf`` from position ``at``, as far as they go without a
    break.

    ``n`` bytes of ``buf`` are valid, ``base`` is the absolute offset of ``buf[0]``. Without ``want_tags`` (the walk
    for a side index) topic, tags code, flag, born time, reconsume times and prepared offset are left alone; without
    ``crc`` bodies are not read. ``levels`` are the delays in ms behind the tags codes of the schedule topic.
    """
    compiled = twin()
    if compiled is None:
        return scan_block_plain(buf, n, base, at, out, topics, crc, want_tags, levels)
    data = _bytes_of(buf)
    if not 0 <= at <= n <= len(data):
        raise ValueError(f"expected 0 <= at <= n <= {len(data)}, found at {at} and n {n}")
    window = Window(data, base, at, n)
    full = _run(compiled, window, out, topics, crc, want_tags, levels)
    if full:
        return ScanResult(window.at, out.count, "full", "no row is left")
    return stop_at(window, out)


@dataclass(slots=True)
class Window:
    """The part of a log that is in memory: ``buffer[at:have]`` are bytes not yet walked, ``buffer[0]`` lies at
    ``base``.

    With a ``descriptor``, the compiled walk itself reads on from ``position`` in the file, ``chunk`` bytes at a time,
    while there is room.
    """

    buffer: npt.NDArray[np.uint8]
    base: int
    at: int
    have: int
    descriptor: int = -1
    position: int = 0
    chunk: int = 0


def fill(
    window: Window,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool = True,
    want_tags: bool = True,
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS,
) -> bool:
    """Fill ``out`` from ``window`` and move it on; True where no row was left, False where something else stopped the
    walk.

    What that is, :func:`stop_at` tells. Only the compiled twin reads on by itself.
    """
    compiled = twin()
    if compiled is not None:
        return _run(compiled, window, out, topics, crc, want_tags, levels)
    result = scan_block_plain(
        window.buffer, window.have, window.base, window.at, out, topics, crc, want_tags, levels, look_on=False
    )
    window.at = result.next_position
    return result.stopped == "full"


def _run(
    compiled: Twins,
    window: Window,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool,
    want_tags: bool,
    levels: tuple[int, ...],
) -> bool:
    want = (_BODY_CRC if crc else 0) | (_NAMES if want_tags else 0)
    delays = _delays(levels)
    rows, why = 0, GROW_TOPICS
    while why == GROW_TOPICS:
        window.at, rows, why, window.have, window.position = compiled.read_and_scan(
            window.descriptor,
            window.position,
            window.chunk,
            window.buffer.ctypes.data,
            window.have,
            len(window.buffer),
            window.at,
            window.base,
            out.addresses,
            rows,
            out.capacity,
            topics.table(),
            delays,
            want,
        )
        if why == GROW_TOPICS:
            topics.grow()
    out.count, out.base, out.buffer = rows, window.base, window.buffer
    if want_tags:
        for row in np.flatnonzero(out.tags_code[:rows] == PATCH):
            _patch_tags_code(out, int(row), levels)
    return bool(why == FULL)


def scan_block_plain(
    buf: Buffer,
    n: int,
    base: int,
    at: int,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool = True,
    want_tags: bool = True,
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS,
    look_on: bool = True,
) -> ScanResult:
    """:func:`scan_block` in plain Python, some thirty times slower. Without ``look_on`` it does not say why it
    stopped.
    """
    data = _bytes_of(buf)
    if not 0 <= at <= n <= len(data):
        raise ValueError(f"expected 0 <= at <= n <= {len(data)}, found at {at} and n {n}")
    view = data.data
    row = 0
    while row < out.capacity:
        frame = message.measure(view, at, n)
        if isinstance(frame, str):
            break
        _fill_row(out, row, view, at, base, frame, crc)
        if want_tags:
            raw = bytes(view[at + frame.topic : at + frame.topic + frame.topic_length])
            out.topic_id[row] = topics.number_of(raw)
            found = properties.decode(bytes(view[at + frame.properties : at + frame.size]))
            out.tags_code[row] = i64(message.tags_code_of(utf8(raw), found, int(out.store_timestamp[row]), levels))
            out.flag[row] = int.from_bytes(view[at + 16 : at + 20], "big", signed=True)
            (out.born_timestamp[row],) = _I64.unpack_from(view, at + 40)
            out.reconsume_times[row], out.prepared_transaction_offset[row], _ = _AFTER_HOSTS.unpack_from(
                view, at + frame.after_hosts
            )
        at += frame.size
        row += 1
    out.count, out.base, out.buffer = row, base, data
    if row == out.capacity:
        return ScanResult(at, row, "full", "no row is left")
    return stop_at(Window(data, base, at, n), out) if look_on else ScanResult(at, row, "end", "")


def _fill_row(
    out: UnitColumns, row: int, view: memoryview, at: int, base: int, frame: message.Frame, crc: bool
) -> None:
    _, _, body_crc, queue_id, _, queue_offset, physical, sys_flag, _ = _HEAD.unpack_from(view, at)
    body = at + frame.body
    out.offset[row], out.size[row], out.version[row], out.kind[row] = base + at, frame.size, frame.version, UNIT
    out.queue_id[row], out.queue_offset[row], out.physical_offset[row] = queue_id, queue_offset, physical
    out.sys_flag[row], out.body_crc[row] = sys_flag, body_crc
    (out.store_timestamp[row],) = _I64.unpack_from(view, at + frame.store_timestamp)
    out.body_length[row], out.body_position[row] = frame.body_length, body
    out.properties_position[row], out.properties_length[row] = at + frame.properties, frame.properties_length
    good = crc and (not frame.body_length or crc31(view[body : body + frame.body_length]) == body_crc)
    out.crc[row] = UNCHECKED if not crc else OK if good else BAD


def _patch_tags_code(out: UnitColumns, row: int, levels: tuple[int, ...]) -> None:
    found = properties.decode(out.raw_properties(row))
    stored = int(out.store_timestamp[row])
    out.tags_code[row] = i64(message.tags_code_of(utf8(out.raw_topic(row)), found, stored, levels))


@functools.cache
def _delays(levels: tuple[int, ...]) -> npt.NDArray[np.int64]:
    return np.array(levels, np.int64)


def stop_at(window: Window, out: UnitColumns) -> ScanResult:
    """What stands where the units in ``window`` end; a blank gets a row of its own in ``out``."""
    seen = look(window.buffer.data, window.at, window.have, window.base, crc=False)
    if isinstance(seen, Blank):
        if out.count == out.capacity:
            return ScanResult(window.at, out.count, "full", "no row is left")
        out.add_blank(seen.offset, seen.size, window.at)
        return ScanResult(window.at, out.count, "blank", "the file ends here")
    assert isinstance(seen, Stop), f"the twins differ at offset {window.base + window.at}"
    kind: Stopped = seen.kind  # type: ignore[assignment]
    return ScanResult(window.at, out.count, kind, seen.reason)


def next_unit(buf: Buffer, n: int, base: int, start: int, file_end: int) -> int:
    """:func:`engine.codec.unit_scan.find_unit` over the first ``n`` bytes of a buffer, by the faster twin."""
    data = _bytes_of(buf)
    compiled = twin()
    if compiled is None:
        return find_unit(data[:n].tobytes(), base, start, file_end)
    view = data.data
    at = start
    while True:
        at = int(compiled.find_candidate(data.ctypes.data, n, at, base, file_end))
        if at < 0:
            return -1
        seen = look(view, at, n, base, crc=False)
        if not isinstance(seen, Stop) or (seen.kind == "cut" and int.from_bytes(view[at : at + 4], "big") > n - at):
            return at
        at += 1


def _bytes_of(buf: Buffer) -> npt.NDArray[np.uint8]:
    return buf if isinstance(buf, np.ndarray) else np.frombuffer(buf, np.uint8)


def twin() -> Twins | None:
    """The compiled twins, tried once in a process; None where only plain Python is to be had.

    The first call loads their machine code, which takes several seconds where none is in the user's cache yet.
    """
    if os.environ.get("STORESCOPE_PLAIN") == "1" or any(doubt() for doubt in _doubts):
        return None
    return _try_twin()


_doubts: list[Callable[[], bool]] = []


@contextlib.contextmanager
def without_twins_while(doubt: Callable[[], bool]) -> Iterator[None]:
    """Within the block plain Python answers whoever asks for a twin while ``doubt`` says True: for programs that load
    the twins beside their work.
    """
    _doubts.append(doubt)
    try:
        yield
    finally:
        _doubts.remove(doubt)


@functools.cache
def _try_twin() -> Twins | None:
    try:
        compiled = twins("compiled")
        nothing = Window(np.zeros(256, np.uint8), 0, 0, 256)
        _run(compiled, nothing, UnitColumns(2), TopicTable(), True, True, message.DEFAULT_DELAY_LEVELS)
    except Exception as error:  # noqa: BLE001  numba and LLVM fail in many ways
        _log.warning("compiled walks are not to be had, plain Python is used: %s", error)
        return None
    return compiled


ROWS = 8192
CHUNK = 1 << 17
ROOM = 1 << 22
PAGE = 4096
LINE = 64
"""Bytes of a cache line. The kernel copies five times slower to an address 16 bytes off one (measured on
Zen 3).
"""


class Source(Protocol):
    """What lends the bytes of one file: an open descriptor, or −1 and a call."""

    @property
    def descriptor(self) -> int: ...

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``position`` on; gives the number of bytes, short where the file ends."""


class BulkWalk:
    """One walk's block and buffer; both are good until the next block is asked for."""

    def __init__(
        self,
        crc: bool = True,
        want_tags: bool = True,
        topics: TopicTable | None = None,
        levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
        rows: int = ROWS,
    ) -> None:
        self.how = (crc, want_tags, levels)
        self.topics = TopicTable() if topics is None else topics
        self.out = UnitColumns(rows)
        self._buffer = _aligned(ROOM)

    def stretch(self, source: Source, file_start: int, position: int, stop: int | None = None) -> Iterator[UnitColumns]:
        """Blocks from the unit at ``position`` of the file on, up to the first thing that is no unit (a blank is the
        last row) or to the absolute offset ``stop``; nothing where that is at once.

        Raises what ``source`` raises.
        """
        chunk = CHUNK if source.descriptor >= 0 and twin() else 0
        page = position // PAGE * PAGE
        window = Window(self._buffer, file_start + page, position - page, 0, source.descriptor, page, chunk)
        going = True
        while going:
            going = self._block(window, source)
            if stop is not None:
                self.out.count = int(np.searchsorted(self.out["offset"], stop))
                going = going and window.base + window.at < stop
            if self.out.count:
                yield self.out

    def _block(self, window: Window, source: Source) -> bool:
        """Fill the block from the window; False where the file can give no more units in a row."""
        room = len(window.buffer)
        least = max(window.chunk, 1)
        if window.have + least > room:
            _shift(window)
        crc, want_tags, levels = self.how
        if not window.chunk:
            _read_on(window, source)
        if fill(window, self.out, self.topics, crc, want_tags, levels):
            return True
        left = -(-(window.have - window.at) // LINE) * LINE
        if window.have + least > room >= left + least:
            return True
        if window.have > window.at:
            stop_at(window, self.out)
        return False


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    raw = np.zeros(size + LINE, np.uint8)
    skip = -raw.ctypes.data % LINE
    return raw[skip : skip + size]


def _shift(window: Window) -> None:
    """Move what is not yet walked to the front, so that the next read goes to the beginning of a cache line."""
    left = window.have - window.at
    have = -(-left // LINE) * LINE
    window.buffer[have - left : have] = window.buffer[window.at : window.have].copy()
    window.base += window.at - (have - left)
    window.at, window.have = have - left, have


def _read_on(window: Window, source: Source) -> None:
    view = window.buffer.data
    while window.have < len(window.buffer):
        got = source.read_into(view[window.have :], window.position)
        if got == 0:
            return
        window.have += got
        window.position += got

"""Decode whole blocks of commit-log bytes into columns: the walk of :mod:`engine.codec.unit_scan` in bulk
(docs/formats/commit-log.md).

Two twins keep one contract: :func:`scan_block_plain` in plain Python, and the compiled one of
:mod:`engine.codec.compiled`. :func:`scan_block` takes the compiled one if numba is installed and can compile;
``STORESCOPE_PLAIN=1`` in the environment forbids it. Neither reads a byte outside ``buf[0:n]``, whatever the
bytes contain.

A range of one file that is longer than a block goes through one buffer that is reused (:class:`BulkWalk`). The
compiled walk reads with ``pread`` in pieces small enough to be still in the processor's nearest cache when they
are walked. That is why no second thread reads ahead: it would fill the cache of another processor. Bytes that
only a call can deliver are read one buffer at a time. Nothing is opened here. A walk ends at the first bytes that
are no unit, and :mod:`engine.codec.unit_scan` says what they are.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine import system
from engine.codec import dledger, message, properties
from engine.codec.crc import crc31
from engine.codec.java import i64, utf8
from engine.codec.machine_code import FULL, GROW_TOPICS, PATCH, Twins
from engine.codec.machine_code_build import twins
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.codec.topic_table import TopicTable
from engine.codec.unit_fields import COLUMNS
from engine.codec.unit_flavours import BY_VERSION
from engine.codec.unit_scan import Blank, Stop, decode_entry_item, decode_item, find_unit
from engine.extras import install_line

Buffer = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Stopped = Literal["full", "blank", "zero", "end", "cut", "damage"]

UNIT, BLANK = 0, 1
UNCHECKED, OK, BAD = 0, 1, 2
COLUMN_TYPES = COLUMNS
"""Name and numpy type of every column, in the order of their addresses in ``UnitColumns.addresses``."""

_BODY_CRC, _NAMES, _ENTRIES = 1, 2, 4
_STAGGER = 192
_I64 = struct.Struct(">q")
_HEAD = struct.Struct(">iIiiiqqiq")
_AFTER_HOSTS = struct.Struct(">iqi")
_log = logging.getLogger(__name__)


class UnitColumns:
    """A fixed number of rows, one array per field; the first ``count`` rows of each array are filled.

    Offsets are absolute bytes, positions count from ``buffer[0]``, whose absolute offset is ``base``; ``kind`` is
    UNIT or BLANK, ``crc`` UNCHECKED, OK or BAD; ``topic_id`` is a number of the :class:`TopicTable`, −1 beyond its
    limit. Arrays and buffer are used again by the next block: keep a :meth:`copy`, or copy what must live longer.
    """

    __slots__ = (*(name for name, _ in COLUMN_TYPES), "addresses", "base", "buffer", "capacity", "count")

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
        # One block of memory. Each column is shifted by a few cache lines: columns that begin at equal places of a page
        # would push each other out of the first-level cache.
        strides = [-(-capacity * np.dtype(kind).itemsize // 64) * 64 + _STAGGER for _, kind in COLUMN_TYPES]
        block = np.zeros(sum(strides), np.uint8)
        for i, (name, kind) in enumerate(COLUMN_TYPES):
            start = sum(strides[:i])
            setattr(self, name, block[start : start + capacity * np.dtype(kind).itemsize].view(kind))
        self.addresses = np.array([getattr(self, name).ctypes.data for name, _ in COLUMN_TYPES], np.int64)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        """Return the filled rows of the column ``name``: a view."""
        column: npt.NDArray[np.generic] = getattr(self, name)[: self.count]
        return column

    def copy(self) -> UnitColumns:
        """Return the filled rows in new arrays; the buffer is still the shared one."""
        duplicate = UnitColumns(self.count)
        duplicate.count, duplicate.base, duplicate.buffer = self.count, self.base, self.buffer
        for name, _ in COLUMN_TYPES:
            getattr(duplicate, name)[:] = self[name]
        return duplicate

    def copy_into(self, target: UnitColumns, names: Iterable[str]) -> None:
        """Copy the filled rows of the columns ``names`` into ``target``, which has room for them and shares the
        buffer.
        """
        target.count, target.base, target.buffer = self.count, self.base, self.buffer
        for name in names:
            getattr(target, name)[: self.count] = self[name]

    def forget_buffer(self) -> None:
        """Drop the buffer, so that the memory behind it can be unmapped; the columns stay."""
        self.buffer = np.empty(0, np.uint8)

    def body(self, row: int) -> bytes:
        """Return the body of a row, as stored."""
        start = int(self.body_position[row])
        return self.buffer[start : start + int(self.body_length[row])].tobytes()

    def raw_properties(self, row: int) -> bytes:
        """Return the property text of a row, as stored."""
        start = int(self.properties_position[row])
        return self.buffer[start : start + int(self.properties_length[row])].tobytes()

    def raw_topic(self, row: int) -> bytes:
        """Return the topic of a row, as stored."""
        width = BY_VERSION[int(self.version[row])].topic_width
        start = int(self.body_position[row]) + int(self.body_length[row]) + width
        return self.buffer[start : int(self.properties_position[row]) - 2].tobytes()

    def add_blank(self, offset: int, size: int, position: int) -> None:
        """Append one row for a blank unit."""
        row = self.count
        for name, _ in COLUMN_TYPES:
            getattr(self, name)[row] = 0
        self.offset[row], self.size[row], self.kind[row], self.topic_id[row] = offset, size, BLANK, -1
        self.physical_offset[row], self.body_position[row] = offset, position
        self.count = row + 1


class ScanResult(NamedTuple):
    """The end of a block scan: position in the buffer, number of rows filled, and the reason.

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
    position: int,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool = True,
    with_tags: bool = True,
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS,
    has_entries: bool = False,
) -> ScanResult:
    """Fill ``out`` from its first row with consecutive units of ``buf`` from ``file_position`` on.

    ``n`` bytes of ``buf`` are valid, ``base`` is the absolute offset of ``buf[0]``. Without ``with_tags`` (the walk
    for a side index) topic, tags code, flag, born time, reconsume times and prepared offset are left alone; without
    ``crc`` bodies are not read. ``levels`` are the delays in ms behind the tags codes of the schedule topic. With
    ``has_entries`` headers of DLedger entries around the units are skipped.
    """
    compiled = twin()
    if compiled is None:
        return scan_block_plain(buf, n, base, position, out, topics, crc, with_tags, levels, has_entries=has_entries)
    data = _bytes_of(buf)
    if not 0 <= position <= n <= len(data):
        raise ValueError(f"expected 0 <= at <= n <= {len(data)}, found at {position} and n {n}")
    window = Window(data, base, position, n, has_entries=has_entries)
    full = _run(compiled, window, out, topics, crc, with_tags, levels)
    if full:
        return ScanResult(window.cursor, out.count, "full", "no row is left")
    return stop_at(window, out)


@dataclass(slots=True)
class Window:
    """The part of a log that is in memory: ``buffer[at:have]`` are bytes not yet walked, ``buffer[0]`` lies at
    ``base``.

    With a ``descriptor`` the compiled walk itself reads on from ``file_position`` in the file, ``chunk_size`` bytes
    at a time, while there is room, and never beyond ``readable_end`` in the file.
    """

    buffer: npt.NDArray[np.uint8]
    base: int
    cursor: int
    filled: int
    descriptor: int = -1
    file_position: int = 0
    chunk_size: int = 0
    has_entries: bool = False
    """Units are the bodies of DLedger entries, whose headers are skipped."""
    readable_end: int = sys.maxsize

    @property
    def readable_capacity(self) -> int:
        """Bytes of the buffer that the compiled walk may fill."""
        return min(len(self.buffer), self.filled + max(self.readable_end - self.file_position, 0))


def fill(
    window: Window,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool = True,
    with_tags: bool = True,
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS,
    rows: int = 0,
) -> bool:
    """Fill ``out`` from ``window`` and advance it. Returns True if all rows are used, False if something else
    stopped the walk. The first ``rows`` rows stay; only the compiled twin can add to them.

    :func:`stop_at` says what stopped it. Only the compiled twin reads on by itself.
    """
    compiled = twin()
    if compiled is not None:
        return _run(compiled, window, out, topics, crc, with_tags, levels, rows)
    result = scan_block_plain(
        window.buffer,
        window.filled,
        window.base,
        window.cursor,
        out,
        topics,
        crc,
        with_tags,
        levels,
        explain_stop=False,
        has_entries=window.has_entries,
    )
    window.cursor = result.next_position
    return result.stopped == "full"


def _run(
    compiled: Twins,
    window: Window,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool,
    with_tags: bool,
    levels: tuple[int, ...],
    rows: int = 0,
) -> bool:
    wanted_fields = (_BODY_CRC if crc else 0) | (_NAMES if with_tags else 0) | (_ENTRIES if window.has_entries else 0)
    delays = _delays(levels)
    outcome = GROW_TOPICS
    while outcome == GROW_TOPICS:
        window.cursor, rows, outcome, window.filled, window.file_position = compiled.read_and_scan(
            window.descriptor,
            window.file_position,
            window.chunk_size,
            window.buffer.ctypes.data,
            window.filled,
            window.readable_capacity,
            window.cursor,
            window.base,
            out.addresses,
            rows,
            out.capacity,
            topics.table(),
            delays,
            wanted_fields,
        )
        if outcome == GROW_TOPICS:
            topics.grow()
    out.count, out.base, out.buffer = rows, window.base, window.buffer
    if with_tags:
        for row in np.flatnonzero(out.tags_code[:rows] == PATCH):
            _patch_tags_code(out, int(row), levels)
    return bool(outcome == FULL)


def scan_block_plain(
    buf: Buffer,
    n: int,
    base: int,
    position: int,
    out: UnitColumns,
    topics: TopicTable,
    crc: bool = True,
    with_tags: bool = True,
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS,
    explain_stop: bool = True,
    has_entries: bool = False,
) -> ScanResult:
    """:func:`scan_block` in plain Python, about thirty times slower. Without ``explain_stop`` it does not say why it
    stopped. ``has_entries``: headers of DLedger entries around the units are skipped.
    """
    data = _bytes_of(buf)
    if not 0 <= position <= n <= len(data):
        raise ValueError(f"expected 0 <= at <= n <= {len(data)}, found at {position} and n {n}")
    view = data.data
    row = 0
    while row < out.capacity:
        if has_entries and _is_entry(view, position, n, base):
            position += dledger.HEADER_SIZE
        frame = message.check_frame(view, position, n)
        if isinstance(frame, str):
            break
        _fill_row(out, row, view, position, base, frame, crc)
        if with_tags:
            raw = bytes(view[position + frame.topic : position + frame.topic + frame.topic_length])
            out.topic_id[row] = topics.number_of(raw)
            unit_properties = properties.decode(bytes(view[position + frame.properties : position + frame.size]))
            out.tags_code[row] = i64(
                message.tags_code_of(utf8(raw), unit_properties, int(out.store_timestamp[row]), levels)
            )
            out.flag[row] = int.from_bytes(view[position + 16 : position + 20], "big", signed=True)
            (out.born_timestamp[row],) = _I64.unpack_from(view, position + 40)
            out.reconsume_times[row], out.prepared_transaction_offset[row], _ = _AFTER_HOSTS.unpack_from(
                view, position + frame.after_hosts
            )
        position += frame.size
        row += 1
    out.count, out.base, out.buffer = row, base, data
    if row == out.capacity:
        return ScanResult(position, row, "full", "no row is left")
    if not explain_stop:
        return ScanResult(position, row, "end", "")
    return stop_at(Window(data, base, position, n, has_entries=has_entries), out)


def _is_entry(view: memoryview, position: int, n: int, base: int) -> bool:
    header = dledger.decode_header(view[:n], position)
    return (
        header is not None
        and header.position == base + position
        and dledger.wraps_message(view[position : min(position + dledger.HEAD_BYTES, n)])
    )


def _fill_row(
    out: UnitColumns, row: int, view: memoryview, position: int, base: int, frame: message.Frame, crc: bool
) -> None:
    _, _, body_crc, queue_id, _, queue_offset, physical_offset, sys_flag, _ = _HEAD.unpack_from(view, position)
    body = position + frame.body
    out.offset[row], out.size[row], out.version[row], out.kind[row] = base + position, frame.size, frame.version, UNIT
    out.queue_id[row], out.queue_offset[row], out.physical_offset[row] = queue_id, queue_offset, physical_offset
    out.sys_flag[row], out.body_crc[row] = sys_flag, body_crc
    (out.store_timestamp[row],) = _I64.unpack_from(view, position + frame.store_timestamp)
    out.body_length[row], out.body_position[row] = frame.body_length, body
    out.properties_position[row], out.properties_length[row] = position + frame.properties, frame.properties_length
    crc_matches = crc and (not frame.body_length or crc31(view[body : body + frame.body_length]) == body_crc)
    out.crc[row] = UNCHECKED if not crc else OK if crc_matches else BAD


def _patch_tags_code(out: UnitColumns, row: int, levels: tuple[int, ...]) -> None:
    unit_properties = properties.decode(out.raw_properties(row))
    store_timestamp = int(out.store_timestamp[row])
    out.tags_code[row] = i64(message.tags_code_of(utf8(out.raw_topic(row)), unit_properties, store_timestamp, levels))


@functools.cache
def _delays(levels: tuple[int, ...]) -> npt.NDArray[np.int64]:
    return np.array(levels, np.int64)


def stop_at(window: Window, out: UnitColumns) -> ScanResult:
    """Explain what ends the units in ``window``; a blank gets a row in ``out``."""
    decode = decode_entry_item if window.has_entries else decode_item
    item = decode(window.buffer.data, window.cursor, window.filled, window.base, False)
    if isinstance(item, Blank):
        if out.count == out.capacity:
            return ScanResult(window.cursor, out.count, "full", "no row is left")
        out.add_blank(item.offset, item.size, window.cursor)
        return ScanResult(window.cursor, out.count, "blank", "the file ends here")
    assert isinstance(item, Stop), f"the twins differ at offset {window.base + window.cursor}"
    kind: Stopped = item.kind  # type: ignore[assignment]
    return ScanResult(window.cursor, out.count, kind, item.reason)


def next_unit(buf: Buffer, n: int, base: int, start: int, file_end: int) -> int:
    """:func:`engine.codec.unit_scan.find_unit` over the first ``n`` bytes of a buffer, by the faster twin."""
    data = _bytes_of(buf)
    compiled = twin()
    if compiled is None:
        return find_unit(data[:n].tobytes(), base, start, file_end)
    view = data.data
    position = start
    while True:
        position = int(compiled.find_candidate(data.ctypes.data, n, position, base, file_end))
        if position < 0:
            return -1
        item = decode_item(view, position, n, base, crc=False)
        if not isinstance(item, Stop) or (
            item.kind == "cut" and int.from_bytes(view[position : position + 4], "big") > n - position
        ):
            return position
        position += 1


def _bytes_of(buf: Buffer) -> npt.NDArray[np.uint8]:
    return buf if isinstance(buf, np.ndarray) else np.frombuffer(buf, np.uint8)


def twin() -> Twins | None:
    """Return the compiled twins, tried once per process; None if only plain Python is available.

    The first call loads their machine code, which takes several seconds where none is in the user's cache yet.
    """
    if not system.HAS_POSITIONED_READS:  # the machine code calls pread
        return None
    if os.environ.get("STORESCOPE_PLAIN") == "1" or any(doubt() for doubt in _vetoes):
        return None
    return _try_twin()


_vetoes: list[Callable[[], bool]] = []


@contextlib.contextmanager
def without_twins_while(doubt: Callable[[], bool]) -> Iterator[None]:
    """Within the block, :func:`twin` returns None while ``doubt`` returns True: for programs that load the twins
    beside their work.
    """
    _vetoes.append(doubt)
    try:
        yield
    finally:
        _vetoes.remove(doubt)


@functools.cache
def _try_twin() -> Twins | None:
    if sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return None  # the compiled twins load and store words of 64 bits, low byte first
    try:
        compiled = twins("compiled")
        empty_window = Window(np.zeros(256, np.uint8), 0, 0, 256)
        _run(compiled, empty_window, UnitColumns(2), TopicTable(), True, True, message.DEFAULT_DELAY_LEVELS)
    except ImportError as error:
        _log.warning(
            "compiled code is not available, plain Python is used: %s: %s", error, install_line(error.name or "numba")
        )
        return None
    except Exception as error:  # noqa: BLE001  numba and LLVM fail in many ways
        _log.warning("compiled code is not available, plain Python is used: %s", error)
        return None
    return compiled


BLOCK_ROWS = 8192
CHUNK_BYTES = 1 << 17
BUFFER_BYTES = 1 << 22
PAGE_BYTES = 4096
CACHE_LINE_BYTES = 64
"""Bytes of a cache line. The kernel copies five times slower to an address 16 bytes off a line (measured on Zen 3)."""


class Source(Protocol):
    """The bytes of one file: an open descriptor, or −1 and a read call."""

    @property
    def descriptor(self) -> int: ...

    def read_into(self, view: memoryview, position: int) -> int:
        """Fill ``view`` from ``file_position`` on; returns the number of bytes, fewer at the end of the file."""


class BulkWalk:
    """The block and buffer of one walk; both are valid until the next block is requested."""

    def __init__(
        self,
        crc: bool = True,
        with_tags: bool = True,
        topics: TopicTable | None = None,
        levels: tuple[int, ...] = DEFAULT_DELAY_LEVELS,
        rows: int = BLOCK_ROWS,
    ) -> None:
        self.options = (crc, with_tags, levels)
        self.topics = TopicTable() if topics is None else topics
        self.out = UnitColumns(rows)
        self._buffer = aligned_buffer(BUFFER_BYTES)

    def iter_blocks(
        self,
        source: Source,
        file_start: int,
        position: int,
        stop: int | None = None,
        *,
        has_entries: bool = False,
        plain_end: Callable[[int], int] | None = None,
    ) -> Iterator[UnitColumns]:
        """Yield blocks from the unit at ``file_position`` of the file up to the first bytes that are no unit (a
        blank is the last row) or up to the absolute offset ``stop``. Yields nothing if that comes at once.

        ``has_entries``: the file is one of a DLedger log. ``plain_end`` returns how far the descriptor may be read from
        a position on; the call reads the piece that begins before there and ends behind. Raises what ``source`` raises.
        """
        chunk = CHUNK_BYTES if source.descriptor >= 0 and twin() else 0
        page = position // PAGE_BYTES * PAGE_BYTES
        base = file_start + page
        window = Window(self._buffer, base, position - page, 0, source.descriptor, page, chunk, has_entries)
        has_more = True
        while has_more:
            has_more = self._block(window, source, plain_end)
            if stop is not None:
                self.out.count = int(np.searchsorted(self.out["offset"], stop))
                has_more = has_more and window.base + window.cursor < stop
            if self.out.count:
                yield self.out

    def _block(self, window: Window, source: Source, plain_end: Callable[[int], int] | None) -> bool:
        """Fill the block from the window; False if the file has no more units in a row."""
        capacity = len(window.buffer)
        min_read = max(window.chunk_size, 1)
        if window.filled + min_read > capacity:
            _shift(window)
        crc, with_tags, levels = self.options
        if not window.chunk_size:
            _read_on(window, source)
        rows, has_read = 0, True
        while has_read:
            if plain_end is not None:
                window.readable_end = plain_end(window.file_position)
            if fill(window, self.out, self.topics, crc, with_tags, levels, rows):
                return True
            rows = self.out.count
            has_read = window.chunk_size > 0 and plain_end is not None and _read_piece(window, source)
        remaining = -(-(window.filled - window.cursor) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        if window.filled + min_read > capacity >= remaining + min_read:
            return True
        if window.filled > window.cursor:
            stop_at(window, self.out)
        return False


def aligned_buffer(size: int) -> npt.NDArray[np.uint8]:
    """Return zeros that begin at the beginning of a cache line."""
    raw = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
    skip = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[skip : skip + size]


def _shift(window: Window) -> None:
    """Move the unwalked bytes to the front, so that the next read goes to the beginning of a cache line."""
    remaining = window.filled - window.cursor
    have = -(-remaining // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
    window.buffer[have - remaining : have] = window.buffer[window.cursor : window.filled].copy()
    window.base += window.cursor - (have - remaining)
    window.cursor, window.filled = have - remaining, have


def _read_piece(window: Window, source: Source) -> bool:
    """Read the piece that the compiled walk may not read by itself; False if it may, or without room or bytes."""
    if window.filled + window.chunk_size <= min(window.readable_capacity, len(window.buffer)):
        return False
    if window.filled + window.chunk_size > len(window.buffer):
        return False
    view = window.buffer.data[window.filled : window.filled + window.chunk_size]
    byte_count = source.read_into(view, window.file_position)
    window.filled += byte_count
    window.file_position += byte_count
    return byte_count > 0


def _read_on(window: Window, source: Source) -> None:
    view = window.buffer.data
    while window.filled < len(window.buffer):
        byte_count = source.read_into(view[window.filled :], window.file_position)
        if byte_count == 0:
            return
        window.filled += byte_count
        window.file_position += byte_count

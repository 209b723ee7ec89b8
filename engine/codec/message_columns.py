"""Messages as columns, and encoding their units in one run (docs/formats/commit-log.md#unit): the fast way to put
many.

:func:`encode_rows` has two twins: :mod:`engine.codec.compiled_write`, and :func:`encode_rows_plain` here, chosen
as in :func:`engine.codec.columns.twin`. Neither interprets property text: it is stored as it is, as with
``Message.properties_raw``.

"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from engine.codec import columns, write_job
from engine.codec.crc import crc31
from engine.codec.encode import HEAD_FORMATS, HOST_BITS, Message, host_bits, host_raw
from engine.codec.machine_code_build import import_compiled
from engine.codec.message import INNER_BATCH, NEED_UNWRAP, PREPARED, ROLLBACK, TRANSACTION_MASK
from engine.codec.unit_flavours import MAX_PROPERTIES_BYTES

I32: TypeAlias = "npt.NDArray[np.int32] | array[int]"
I64: TypeAlias = "npt.NDArray[np.int64] | array[int]"
Blob: TypeAlias = "bytes | npt.NDArray[np.uint8] | array[int]"
RULED_BITS = HOST_BITS | INNER_BATCH | NEED_UNWRAP
"""SYSFLAG bits of messages that need more than encoding."""
_ZERO = array("q", [0])
_MAX_COPIED_BYTES = 1 << 16
"""Size up to which copying a blob is faster than asking numpy for its address, in bytes."""


@dataclass(slots=True)
class MessageColumns:
    """Messages as one array per field; ``bodies`` and ``properties`` hold their bytes one behind the other.

    ``topic_id`` is a row of ``topics``; ``born_host`` and ``store_host`` are rows of ``hosts`` (``ip:port``). A
    column of None is 0 in every row (``born_timestamp``: the store time; ``store_host``: the store's own). Times
    are ms since the epoch, lengths bytes. Arrays are numpy's, or those of :mod:`array`, whose addresses are much
    cheaper to get.

    """

    topics: Sequence[str]
    bodies: Blob
    body_length: I32
    properties: Blob = b""
    properties_length: I32 | None = None
    queue_id: I32 | None = None
    topic_id: I32 | None = None
    flag: I32 | None = None
    sys_flag: I32 | None = None
    born_timestamp: I64 | None = None
    born_host: I32 | None = None
    store_host: I32 | None = None
    reconsume_times: I32 | None = None
    prepared_transaction_offset: I64 | None = None
    hosts: Sequence[str] = ("127.0.0.1:0", "127.0.0.1:10911")

    def __len__(self) -> int:
        return len(self.body_length)

    def check(self) -> None:
        """Raise ``ValueError`` if a column has the wrong type or number of rows, or if the blobs have another size
        than the sum of the lengths.
        """
        rows = len(self)
        for name, kind in _KINDS.items():
            column = getattr(self, name)
            if column is None:
                continue
            column = np.asarray(column)
            if column.dtype != kind or len(column) != rows or not column.flags.c_contiguous:
                raise ValueError(f"{name}: expected {rows:,} numbers of type {np.dtype(kind)}, side by side")
        if self.properties_length is None and len(self.properties):
            raise ValueError("properties without their lengths")
        for length, blob, name in (
            (self.body_length, self.bodies, "bodies"),
            (self.properties_length, self.properties, "properties"),
        ):
            if length is None:
                continue
            if rows and int(np.asarray(length).min()) < 0:
                raise ValueError(f"{name}: a length below zero")
            total = int(np.asarray(length).sum(dtype=np.int64))
            if total != len(blob):
                raise ValueError(f"{name}: the lengths make {total:,} bytes, there are {len(blob):,}")


_KINDS: dict[str, type[np.generic]] = {
    "body_length": np.int32,
    "properties_length": np.int32,
    "queue_id": np.int32,
    "topic_id": np.int32,
    "flag": np.int32,
    "sys_flag": np.int32,
    "born_timestamp": np.int64,
    "born_host": np.int32,
    "store_host": np.int32,
    "reconsume_times": np.int32,
    "prepared_transaction_offset": np.int64,
}


class TopicRow:
    """The data of one topic for a run: its field (length and name), its magic number, and the places of its queues."""

    __slots__ = ("alone", "magic", "places", "raw", "row")

    def __init__(self, raw: bytes, magic: int) -> None:
        self.raw = array("B", raw)
        self.magic = magic
        self.places = array("q", [-1] * 8)
        self._pack()

    def set_place(self, queue_id: int, place: int) -> None:
        """Set the place among the numbers at which queue ``queue_id`` counts."""
        if queue_id >= len(self.places):
            longer = max(2 * len(self.places), queue_id + 1)
            self.places = self.places + array("q", [-1] * (longer - len(self.places)))
            self._pack()
        self.places[queue_id] = place

    def _pack(self) -> None:
        self.row = write_job.TOPIC_ROW.pack(
            self.raw.buffer_info()[0], len(self.raw), self.magic, self.places.buffer_info()[0], len(self.places)
        )
        self.alone = array("B", self.row)
        """The table of this topic only."""


class Run:
    """Columns on their way into the log: the next row, the begin of its body and text, and the results of earlier
    rows.
    """

    __slots__ = ("body", "columns", "hosts", "out", "row", "rows", "store_default", "table", "text", "topics")

    def __init__(self, columns: MessageColumns, topics: Sequence[TopicRow], store_host: bytes) -> None:
        self.columns = columns
        self.topics = topics
        self.hosts = [host_raw(host) for host in columns.hosts]
        self.store_default = len(self.hosts)
        self.hosts.append(store_host)
        self.rows = len(columns)
        self.row = 0
        self.body = 0
        self.text = 0
        self.out = _ZERO * (3 * self.rows)
        """Offsets (−1: left out), then queue offsets, then sizes in bytes."""
        self.rebuild_table()

    def rebuild_table(self) -> None:
        """Rebuild the table of topics: other threads may have moved places while the append lock was free."""
        topics = self.topics
        self.table = topics[0].alone if len(topics) == 1 else array("B", b"".join([topic.row for topic in topics]))

    def set_place(self, place: int) -> None:
        """Set the place at which the next row's queue counts."""
        topic = self.topics[self.topic_id]
        room = len(topic.places)
        topic.set_place(self.queue_id, place)
        if len(topic.places) != room:
            self.rebuild_table()

    def message(self) -> Message:
        """Return the next row as a message."""
        columns, row, body_start = self.columns, self.row, self.body
        body = bytes(columns.bodies[body_start : body_start + int(columns.body_length[row])])
        text = bytes(columns.properties[self.text : self.text + self.text_length()])
        return Message(
            columns.topics[_number(columns.topic_id, row)],
            body,
            _number(columns.queue_id, row),
            None,
            text,
            flag=_number(columns.flag, row),
            sys_flag=_number(columns.sys_flag, row),
            born_host=columns.hosts[_number(columns.born_host, row)],
            store_host=None if columns.store_host is None else columns.hosts[_number(columns.store_host, row)],
            born_timestamp=None if columns.born_timestamp is None else int(columns.born_timestamp[row]),
            reconsume_times=_number(columns.reconsume_times, row),
            prepared_transaction_offset=_number(columns.prepared_transaction_offset, row),
        )

    def text_length(self) -> int:
        """Return the size of the next row's property text in bytes."""
        return _number(self.columns.properties_length, self.row)

    def skip(self) -> None:
        """Leave the next row out."""
        self.text += self.text_length()
        self.body += int(self.columns.body_length[self.row])
        self.out[self.row] = -1
        self.row += 1

    def unit_size(self) -> int:
        """Return the size of the next row's unit in bytes."""
        born, stored = self.row_hosts(self.row)
        topic = self.topics[_number(self.columns.topic_id, self.row)]
        fixed = 74 + len(born) + len(stored) + len(topic.raw)
        return fixed + int(self.columns.body_length[self.row]) + self.text_length()

    def max_remaining_bytes(self) -> int:
        """Return an upper bound for the bytes of all remaining units."""
        columns = self.columns
        fixed = 74 + 2 * max(map(len, self.hosts)) + max(len(topic.raw) for topic in self.topics)
        return len(columns.bodies) - self.body + len(columns.properties) - self.text + fixed * (self.rows - self.row)

    def row_hosts(self, row: int) -> tuple[bytes, bytes]:
        """Return raw born and store host of a row."""
        columns = self.columns
        stored = self.store_default if columns.store_host is None else int(columns.store_host[row])
        return self.hosts[_number(columns.born_host, row)], self.hosts[stored]

    @property
    def topic_id(self) -> int:
        """The topic of the next row."""
        return _number(self.columns.topic_id, self.row)

    @property
    def queue_id(self) -> int:
        """The queue of the next row."""
        return _number(self.columns.queue_id, self.row)


def _number(column: npt.NDArray[Any] | array[int] | None, row: int) -> int:
    return 0 if column is None else int(column[row])


class Encoder:
    """Writes the rows of a :class:`Run` as units; for one caller at a time."""

    __slots__ = ("_compiled", "_sheet", "_target", "_target_address")

    def __init__(self) -> None:
        self._sheet = array("q", bytes(8 * len(write_job.NAMES)))
        self._compiled: Compiled | None = None
        self._target: memoryview | None = None
        self._target_address = 0

    @property
    def compiled(self) -> Compiled | None:
        """The compiled twin, None if it is not available."""
        if self._compiled is None:
            self._compiled = twin()
        return self._compiled

    def encode(
        self,
        run: Run,
        target: memoryview,
        position: int,
        limit: int,
        base: int,
        now: int,
        numbers: array[int],
        longest_body: int,
    ) -> tuple[int, int]:
        """Write rows of ``run`` to ``target[position:limit]``, whose first byte has the offset ``base``, at the time
        ``now``.

        Takes queue offsets from ``numbers`` and increments them. Returns why it stopped (``write_job``) and the
        position behind the last unit; advances ``run``.

        """
        compiled = self.compiled
        if compiled is None:
            return encode_rows_plain(run, target, position, limit, base, now, numbers, longest_body)
        if target is not self._target:
            self._target, self._target_address = target, _address(np.frombuffer(target, np.uint8))
        columns, rows, sheet = run.columns, run.rows, self._sheet
        hosts = _host_table(tuple(run.hosts))
        bodies, texts, out = _with_address(columns.bodies), _with_address(columns.properties), run.out.buffer_info()[0]
        body, text = _address(bodies), _address(texts)
        write_job.SHEET.pack_into(
            sheet,
            0,
            run.row,
            position,
            body + run.body,
            text + run.text,
            self._target_address,
            limit,
            base,
            now,
            rows,
            run.store_default,
            _column(columns.topic_id),
            _column(columns.queue_id),
            _column(columns.flag),
            _column(columns.sys_flag),
            _column(columns.born_timestamp),
            _column(columns.born_host),
            _column(columns.store_host),
            _column(columns.reconsume_times),
            _column(columns.prepared_transaction_offset),
            _column(columns.body_length),
            _column(columns.properties_length),
            run.table.buffer_info()[0],
            len(run.topics),
            hosts.buffer_info()[0],
            len(run.hosts),
            numbers.buffer_info()[0],
            out,
            out + 8 * rows,
            out + 16 * rows,
            longest_body,
        )
        outcome = compiled.encode_rows(sheet.buffer_info()[0])
        run.row, position, body_end, text_end = sheet[:4]
        run.body, run.text = body_end - body, text_end - text
        return outcome, position


@functools.lru_cache(maxsize=64)
def _host_table(hosts: tuple[bytes, ...]) -> array[int]:
    return array("B", b"".join(write_job.HOST_ROW.pack(raw, len(raw)) for raw in hosts))


def _with_address(blob: Blob) -> npt.NDArray[np.uint8] | array[int]:
    """Return ``blob`` as an object whose address is available; a copy if that is quicker."""
    if isinstance(blob, (np.ndarray, array)):
        return blob
    return array("B", blob) if len(blob) <= _MAX_COPIED_BYTES else np.frombuffer(blob, np.uint8)


def _address(column: npt.NDArray[Any] | array[int]) -> int:
    if isinstance(column, array):
        return column.buffer_info()[0]
    address: int = column.__array_interface__["data"][0]
    return address


def _column(column: npt.NDArray[Any] | array[int] | None) -> int:
    return 0 if column is None else _address(column)


def encode_rows_plain(
    run: Run, target: memoryview, position: int, limit: int, base: int, now: int, numbers: array[int], longest_body: int
) -> tuple[int, int]:
    """:meth:`Encoder.encode` in plain Python."""
    columns = run.columns
    while run.row < run.rows:
        row, size, text_length = run.row, int(columns.body_length[run.row]), run.text_length()
        queue, flags = _number(columns.queue_id, row), _number(columns.sys_flag, row)
        if not _plain_row(run, queue, flags, size <= longest_body and text_length <= MAX_PROPERTIES_BYTES):
            return write_job.RULED, position
        topic = run.topics[run.topic_id]
        total = run.unit_size()
        if total + 8 > limit - position:
            return write_job.NO_ROOM, position
        queue_offset = 0
        if flags & TRANSACTION_MASK not in (PREPARED, ROLLBACK):
            place = int(topic.places[queue]) if queue < len(topic.places) else -1
            if place < 0:
                return write_job.NO_PLACE, position
            queue_offset = numbers[place]
            numbers[place] += 1
        born, stored = run.row_hosts(row)
        flags |= host_bits(born, stored)
        body = bytes(columns.bodies[run.body : run.body + size])
        head = HEAD_FORMATS[flags & HOST_BITS].pack(
            total,
            topic.magic,
            crc31(body),
            queue,
            _number(columns.flag, row),
            queue_offset,
            base + position,
            flags,
            now if columns.born_timestamp is None else int(columns.born_timestamp[row]),
            born,
            now,
            stored,
            _number(columns.reconsume_times, row),
            _number(columns.prepared_transaction_offset, row),
            size,
        )
        text = bytes(columns.properties[run.text : run.text + text_length])
        parts = (head, body, topic.raw, text_length.to_bytes(2, "big"), text)
        target[position : position + total] = b"".join(parts)
        run.out[row], run.out[run.rows + row], run.out[2 * run.rows + row] = base + position, queue_offset, total
        position += total
        run.row, run.body, run.text = row + 1, run.body + size, run.text + text_length
    return write_job.DONE, position


def _plain_row(run: Run, queue: int, flags: int, within_limits: bool) -> bool:
    """Return True if the next row is encoded as it is; put's rules handle all others."""
    columns, row, topic = run.columns, run.row, run.topic_id
    has_topic = 0 <= topic < len(run.topics) and len(run.topics[topic].raw) > 0
    hosts = (_number(columns.born_host, row), _number(columns.store_host, row))
    return (
        has_topic
        and within_limits
        and queue >= 0
        and not flags & RULED_BITS
        and all(0 <= h < len(run.hosts) for h in hosts)
    )


class Compiled(Protocol):
    """The function of :mod:`engine.codec.compiled_write`."""

    def encode_rows(self, sheet: int) -> int:
        """Write the rows of a job sheet; returns why it stopped."""


def twin() -> Compiled | None:
    """Return the compiled twin; None if only plain Python is available or ``STORESCOPE_PLAIN=1`` asks for it."""
    return None if columns.twin() is None else _load()


@functools.cache
def _load() -> Compiled:
    return cast("Compiled", import_compiled("compiled_write"))

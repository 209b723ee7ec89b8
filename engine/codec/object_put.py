"""Put message objects by compiled code, which writes their units at the end of the log without running Python code.

docs/architecture/machine-code.md says how it works, what is checked before it is used, and how to switch it off.

Only plain messages go this way: topic and born host are in the sheet, properties are text or a map with the same
names as the previous message, the queue has its place, and the file has room. The caller has a slower way with
the same bytes for all others; :class:`ObjectPut` learns new topics, hosts and names.

The *sheet* is a row of 64-bit numbers (:data:`NAMES`), many of them addresses of Python objects and buffers.
ObjectPut keeps a reference to the owner of each address.

"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import sysconfig
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from engine.codec import columns
from engine.codec.encode import Message, encode_unit, host_bits, host_raw, template_of
from engine.codec.machine_code_build import twins
from engine.codec.message_columns import TopicRow

if TYPE_CHECKING:
    from engine.codec.machine_code import Twins

FIELDS = (
    "body",
    "born_host",
    "born_timestamp",
    "flag",
    "prepared_transaction_offset",
    "properties",
    "properties_raw",
    "queue_id",
    "reconsume_times",
    "store_host",
    "sys_flag",
    "topic",
)
"""The fields of a message: the names of its slots."""
NAMES = (
    # addresses of immortal objects: types, None, the number 0, and the set of names that put has rules for
    "message_type",
    "bytes_type",
    "str_type",
    "dict_type",
    "int_type",
    "none",
    "zero",
    "ruled",
    # positions of the references to the fields in a message object
    *FIELDS,
    # names that a map must have, in order: their objects, their text with 0x01 behind each, the end of each
    "names",
    "name_count",
    "name_text",
    "name_ends",
    # tables of topics and of born hosts, and their numbers of rows; the raw host of the store
    "topics",
    "topic_count",
    "hosts",
    "host_count",
    "store_raw",
    "store_size",
    # next queue offsets; the file's address and its offset in the log, the limit for units, bytes of the longest body
    "numbers",
    "target",
    "base",
    "limit",
    "longest_body",
    # one call: time (ms), the position in the file, which advances; the queue offset of the last unit
    "now",
    "position",
    "queue_offset",
    # a call for many messages: the next row, the number of rows, columns to be filled
    "row",
    "rows",
    "out_offset",
    "out_queue_offset",
    "out_size",
    # scratch
    "scratch_1",
    "scratch_2",
    "scratch_3",
)
"""The numbers of the sheet in their order: 64 bits each, in the machine's byte order."""
NOT_PLAIN, UNKNOWN_TOPIC_OR_HOST, OTHER_MAP, NO_PLACE, NO_ROOM = -1, -2, -3, -4, -5
"""Reasons why nothing was written: the message needs the slower way; its topic or host is not in the sheet; its map has
other names; its queue has no place yet; the file, or its part with room on the disk, is full.
"""

TOPIC_WIDTH, HOST_WIDTH = 48, 32
"""Bytes of a table's row: the text object, then a topic's row as :class:`TopicRow` packs it; or address and length of
the raw host and the SYSFLAG bits.
"""
_MAX_ROWS = 64
"""Maximum number of rows of a table. A further row empties it first."""

_AT = {name: number for number, name in enumerate(NAMES)}
_TOPICS, _HOSTS, _SHAPE, _STORE = _AT["topics"], _AT["hosts"], _AT["names"], _AT["store_raw"]
_NUMBERS, _ROW = _AT["numbers"], _AT["row"]
NOW, POSITION, QUEUE_OFFSET = _AT["now"], _AT["position"], _AT["queue_offset"]
_KINDS: tuple[object, ...] = (Message, bytes, str, dict, int, None, 0)
_unpack_topic = struct.Struct("=5q").unpack


class OpenFile(Protocol):
    """A file, as far as this module uses it."""

    @property
    def open_view(self) -> memoryview | None:
        """The file's bytes for appending; None while the file is not open."""


class ObjectPut:
    """The sheet of one log, and the two compiled functions that read it. Use only under the log's append lock.

    ``store_host`` is the log's own, raw. ``ruled`` are the names of properties that put has rules for. ``blank``
    is the number of bytes that must remain free behind every unit. The object keeps everything alive to which the
    sheet has addresses.
    """

    __slots__ = (
        "_blank",
        "_hosts",
        "_names",
        "_owners",
        "_pending_owners",
        "_put_many",
        "_ruled",
        "_store",
        "_topics",
        "file",
        "numbers",
        "put_one",
        "sheet",
        "target",
    )

    def __init__(self, code: Twins, slots: Sequence[int], store_host: bytes, ruled: frozenset[str], blank: int) -> None:
        self.sheet = array("q", bytes(8 * len(NAMES)))
        self._ruled = ruled
        self.sheet[: len(_KINDS) + 1 + len(slots)] = array("q", (*map(id, _KINDS), id(ruled), *slots))
        self.put_one: Callable[[Message], int] = code.bound("put_one", self.sheet)
        """Puts a message at ``position``, which moves on; gives the bytes of its unit, or why there is none."""
        self._put_many: Callable[[list[Message]], int] = code.bound("put_many", self.sheet)
        self._blank = blank
        self._store = array("B", store_host)
        self.sheet[_STORE : _STORE + 2] = array("q", (self._store.buffer_info()[0], len(store_host)))
        self._topics: dict[str, TopicRow] = {}
        self._hosts: dict[str, array[int]] = {}
        self._pending_owners: tuple[object, ...] = ()
        self._owners: dict[int, tuple[object, ...]] = {}
        self.file: OpenFile | None = None
        """The file that the sheet describes; None if the sheet must be filled again."""
        self.target: memoryview | None = None
        self.numbers: array[int] | None = None
        self._names: tuple[str, ...] | None = None
        self.learn_map({})

    def learn_topic(self, name: str, row: TopicRow) -> None:
        """Add the topic ``name``; ``row`` has the places of its queues."""
        topics = self._topics if name in self._topics or len(self._topics) < _MAX_ROWS else {}
        topics = {**topics, name: row}
        rows = array("q")
        for topic_name, topic_row in topics.items():
            rows.extend((id(topic_name), *_unpack_topic(topic_row.row)))
        places = [topic_row.places for topic_row in topics.values()]
        self._write_addresses(_TOPICS, (rows.buffer_info()[0], len(topics)), (topics, rows, places))
        self._topics = topics

    def learn_host(self, host: str) -> None:
        """Add the born host ``host`` (``ip:port``). Raises ``ValueError``."""
        hosts = self._hosts if host in self._hosts or len(self._hosts) < _MAX_ROWS else {}
        hosts = {**hosts, host: array("B", host_raw(host))}
        rows = array("q")
        for host_text, raw in hosts.items():
            rows.extend((id(host_text), raw.buffer_info()[0], len(raw), host_bits(bytes(raw), bytes(self._store))))
        self._write_addresses(_HOSTS, (rows.buffer_info()[0], len(hosts)), (hosts, rows))
        self._hosts = hosts

    def learn_map(self, properties: dict[str, str]) -> bool:
        """Expect maps with the names of ``properties`` (the same text objects).

        Returns False if put has rules for one of the names, if they make no valid text, or if they are already
        known.
        """
        names = tuple(properties)
        if names == self._names or not self._ruled.isdisjoint(names):
            return False
        try:
            text, ends = name_texts(names)
        except ValueError:
            return False
        objects = array("q", map(id, names))
        numbers = (objects.buffer_info()[0], len(names), text.buffer_info()[0], ends.buffer_info()[0])
        self._write_addresses(_SHAPE, numbers, (names, objects, text, ends))
        self._names = names
        return True

    def _write_addresses(self, place: int, numbers: tuple[int, ...], owners: tuple[object, ...]) -> None:
        """Write ``numbers`` into the sheet, among them addresses in the ``owners``.

        Keeps a reference to the owners from before the write until the next one, so an interrupt cannot leave
        dangling pointers.
        """
        self._pending_owners = owners
        self.sheet[place : place + len(numbers)] = array("q", numbers)
        self._owners[place] = owners

    def learn_numbers(self, numbers: array[int]) -> None:
        """Take queue offsets from ``numbers`` from now on."""
        self.sheet[_NUMBERS] = numbers.buffer_info()[0]
        self.numbers = numbers

    def learn_file(self, file: OpenFile, target: memoryview, base: int, backed: int, longest_body: int) -> bool:
        """Write units to ``target`` from now on: the bytes of ``file``, whose first byte has the offset ``base``, up
        to ``backed`` (where the disk has room). Returns False if the bytes have no address to write to.
        """
        self.file = file if self.learn_bytes(target, base, backed, longest_body) else None
        return self.file is not None

    def learn_bytes(self, target: memoryview, base: int, backed: int, longest_body: int) -> bool:
        """:meth:`learn_file` for bytes that belong to no file."""
        self.file = None
        if target.readonly or not target.c_contiguous or target.nbytes < self._blank:
            return False
        start: int = np.frombuffer(target, np.uint8).__array_interface__["data"][0]
        limit = min(backed, target.nbytes - self._blank)
        self.sheet[_NUMBERS + 1 : _NUMBERS + 5] = array("q", (start, base, limit, longest_body))
        self.target = target
        return True

    def release_file(self) -> None:
        """Release the file's bytes."""
        self.file = self.target = None

    def start(self, now: int, position: int) -> None:
        """Set the time ``now`` (ms) and the ``position`` in the file for the next puts."""
        self.sheet[NOW], self.sheet[POSITION] = now, position

    @property
    def position(self) -> int:
        """The position behind the last unit, in the file."""
        return self.sheet[POSITION]

    def is_current(self, file: OpenFile, numbers: array[int]) -> bool:
        """Return True if units go to ``file``, which is still open, and queue offsets come from ``numbers``."""
        return file is self.file and file.open_view is self.target and numbers is self.numbers

    def put_many(self, messages: list[Message], row: int, out: array[int]) -> tuple[int, int]:
        """Put ``messages`` from ``row`` on while nothing changes between them; returns the next row and why it
        stopped (0: all are written).

        ``out`` gets the offsets of all rows, then their queue offsets, then their sizes in bytes.
        """
        sheet, rows, out_address = self.sheet, len(messages), out.buffer_info()[0]
        sheet[_ROW : _ROW + 5] = array("q", (row, rows, out_address, out_address + 8 * rows, out_address + 16 * rows))
        outcome = self._put_many(messages)
        return sheet[_ROW], outcome


@functools.lru_cache(maxsize=256)
def name_texts(names: tuple[str, ...]) -> tuple[array[int], array[int]]:
    """Return the names as property text has them, one behind the other, and the end of each. Raises ``ValueError``."""
    template_of(names)
    pieces = [f"{name}\x01".encode() for name in names]
    ends = [len(b"".join(pieces[: number + 1])) for number in range(len(pieces))]
    return array("B", b"".join(pieces)), array("q", ends)


def object_put(store_host: bytes, ruled: frozenset[str], blank: int) -> ObjectPut | None:
    """Return a sheet for a log; None if only plain Python is available, now or for good."""
    if columns.twin() is None:
        return None
    code_and_slots = _load()
    return None if code_and_slots is None else ObjectPut(*code_and_slots, store_host, ruled, blank)


def twin() -> object | None:
    """Load the compiled code, which takes seconds if the user's cache has none yet; returns None if there is none."""
    return None if columns.twin() is None else _load()


@functools.cache
def _load() -> tuple[Twins, list[int]] | None:
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None  # without the interpreter's lock, objects change while machine code reads them
    try:
        code, slots = twins("compiled_put"), message_slots()
        return None if slots is None or not _writes_same_unit(code, slots) else (code, slots)
    except Exception:  # noqa: BLE001  numba and LLVM fail in many ways; plain Python does it then
        return None


def message_slots() -> list[int] | None:
    """Return the position of each field's reference in a message object, in bytes; None if this interpreter lays
    objects out differently.
    """
    sample = Message(
        "a topic",
        b"a body",
        1 << 40,
        {},
        b"a text",
        flag=1 << 41,
        sys_flag=1 << 42,
        reconsume_times=1 << 43,
        born_timestamp=1 << 44,
        prepared_transaction_offset=1 << 45,
        born_host="a host",
        store_host="its",
    )
    words = [
        ctypes.c_int64.from_address(id(sample) + position).value for position in range(0, Message.__basicsize__, 8)
    ]
    field_addresses = [id(getattr(sample, name)) for name in FIELDS]
    if words[1:2] != [id(Message)] or any(words.count(address) != 1 for address in field_addresses):
        return None
    return [8 * words.index(address) for address in field_addresses]


def _writes_same_unit(code: Twins, slots: Sequence[int]) -> bool:
    """Return True if a sample message becomes exactly the unit that the plain way gives."""
    sample = Message("a topic", b"a body", 3, {"KEYS": "a key"}, born_timestamp=1 << 44, born_host="1.2.3.4:5")
    unit = encode_unit(
        sample, queue_offset=7, physical_offset=1 << 30, store_timestamp=1 << 45, store_host="6.7.8.9:10"
    )
    target, numbers = bytearray(1 << 10), array("q", (0, 7))
    row = TopicRow(len("a topic").to_bytes(1, "big") + b"a topic", int.from_bytes(unit[4:8], "big", signed=True))
    row.set_place(3, 1)
    put = ObjectPut(code, slots, host_raw("6.7.8.9:10"), frozenset(), 8)
    put.learn_topic(sample.topic, row)
    put.learn_host(sample.born_host)
    put.learn_numbers(numbers)
    put.learn_map(sample.properties or {})
    put.learn_bytes(memoryview(target), 1 << 30, 1 << 10, 99)
    put.start(1 << 45, 0)
    size = put.put_one(sample)
    return (
        size == len(unit) == put.sheet[POSITION]
        and list(numbers) == [0, 8]
        and put.sheet[QUEUE_OFFSET] == 7
        and (target[:size] == unit and not any(target[size:]))
    )

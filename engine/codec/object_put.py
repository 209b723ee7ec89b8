"""Message objects put by compiled code: their units written where the log goes on, without a step of the interpreter's.

Only plain messages go this way, and only while everything is as the sheet says: a topic and a host of birth that it
knows, properties as text or as a map with the names of the one before, a queue that has its place, room in the file.
For all others the caller has a longer way with the same bytes; :class:`ObjectPut` learns what is new.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
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
"""The fields of a message, as their slots are called."""
NAMES = (
    # addresses of objects that never go away: types, None, the number 0, and the set of names that put has rules for
    "message_type",
    "bytes_type",
    "str_type",
    "dict_type",
    "int_type",
    "none",
    "zero",
    "ruled",
    # where in a message object the references to its fields stand
    *FIELDS,
    # names that a map must have, in order: their objects, their text with 0x01 behind each, where each ends
    "names",
    "name_count",
    "name_text",
    "name_ends",
    # tables of topics and of hosts of birth, and how many rows they have; the raw host of the store
    "topics",
    "topic_count",
    "hosts",
    "host_count",
    "store_raw",
    "store_size",
    # next queue offsets; where the file is in memory and in the log, how far units may go, bytes of the longest body
    "numbers",
    "target",
    "base",
    "limit",
    "longest_body",
    # a call: ms, the position in the file, which moves on; the queue offset of the unit that was written last
    "now",
    "position",
    "queue_offset",
    # many of them: the next row, how many there are, columns to be filled
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
"""The numbers in their order: 64 bits each, in the machine's own byte order."""
REFUSED, ANOTHER, OTHER_MAP, NO_PLACE, NO_ROOM = -1, -2, -3, -4, -5
"""Why nothing was written: only the longer way knows; another topic or host than the one before; a map with other
names; the queue has no place yet; the file, or what of it has room on the disk, ends."""

TOPIC_WIDTH, HOST_WIDTH = 48, 32
"""Bytes of a table's row: the text object, then a topic's row as :class:`TopicRow` packs it; or address and length of
the raw host and the SYSFLAG bits.
"""
_MOST_ROWS = 64
"""Rows of a table; with one more it begins anew."""

_AT = {name: number for number, name in enumerate(NAMES)}
_TOPICS, _HOSTS, _SHAPE, _STORE = _AT["topics"], _AT["hosts"], _AT["names"], _AT["store_raw"]
_NUMBERS, _ROW = _AT["numbers"], _AT["row"]
NOW, POSITION, QUEUE_OFFSET = _AT["now"], _AT["position"], _AT["queue_offset"]
_KINDS: tuple[object, ...] = (Message, bytes, str, dict, int, None, 0)
_unpack_topic = struct.Struct("=5q").unpack


class OpenFile(Protocol):
    """A file as far as it is asked here."""

    @property
    def open_view(self) -> memoryview | None:
        """Its bytes, as appends go to them; None while nothing is open."""


class ObjectPut:
    """The sheet of one log, and the two functions that read it. To be used under the log's append lock only.

    ``store_host`` is the log's own, raw; ``ruled`` are the names of properties that put has rules for, ``blank`` the
    bytes that must be left behind every unit. What stands in the sheet by address is kept here, too.
    """

    __slots__ = (
        "_blank",
        "_coming",
        "_hosts",
        "_kept",
        "_many",
        "_names",
        "_ruled",
        "_store",
        "_topics",
        "file",
        "numbers",
        "one",
        "sheet",
        "target",
    )

    def __init__(self, code: Twins, slots: Sequence[int], store_host: bytes, ruled: frozenset[str], blank: int) -> None:
        self.sheet = array("q", bytes(8 * len(NAMES)))
        self._ruled = ruled
        self.sheet[: len(_KINDS) + 1 + len(slots)] = array("q", (*map(id, _KINDS), id(ruled), *slots))
        self.one: Callable[[Message], int] = code.bound("put_one", self.sheet)
        """Puts a message at ``position``, which moves on; gives the bytes of its unit, or why there is none."""
        self._many: Callable[[list[Message]], int] = code.bound("put_many", self.sheet)
        self._blank = blank
        self._store = array("B", store_host)
        self.sheet[_STORE : _STORE + 2] = array("q", (self._store.buffer_info()[0], len(store_host)))
        self._topics: dict[str, TopicRow] = {}
        self._hosts: dict[str, array[int]] = {}
        self._coming: tuple[object, ...] = ()
        self._kept: dict[int, tuple[object, ...]] = {}
        self.file: OpenFile | None = None
        """The file that the sheet tells of; None where it has to be told anew."""
        self.target: memoryview | None = None
        self.numbers: array[int] | None = None
        self._names: tuple[str, ...] | None = None
        self.learn_map({})

    def learn_topic(self, name: str, row: TopicRow) -> None:
        """Messages of the topic ``name`` come, whose queues have the places that ``row`` tells."""
        topics = self._topics if name in self._topics or len(self._topics) < _MOST_ROWS else {}
        topics = {**topics, name: row}
        rows = array("q")
        for known, one in topics.items():
            rows.extend((id(known), *_unpack_topic(one.row)))
        places = [one.places for one in topics.values()]
        self._tell(_TOPICS, (rows.buffer_info()[0], len(topics)), (topics, rows, places))
        self._topics = topics

    def learn_host(self, host: str) -> None:
        """Messages born at ``host`` (``ip:port``) come. Raises ``ValueError``."""
        hosts = self._hosts if host in self._hosts or len(self._hosts) < _MOST_ROWS else {}
        hosts = {**hosts, host: array("B", host_raw(host))}
        rows = array("q")
        for known, one in hosts.items():
            rows.extend((id(known), one.buffer_info()[0], len(one), host_bits(bytes(one), bytes(self._store))))
        self._tell(_HOSTS, (rows.buffer_info()[0], len(hosts)), (hosts, rows))
        self._hosts = hosts

    def learn_map(self, found: dict[str, str]) -> bool:
        """Maps with the names of ``found`` come: of just these text objects; False where put has rules for one of them,
        or no text can be made of them, or they were known (by other objects).
        """
        names = tuple(found)
        if names == self._names or not self._ruled.isdisjoint(names):
            return False
        try:
            text, ends = name_texts(names)
        except ValueError:
            return False
        objects = array("q", map(id, names))
        numbers = (objects.buffer_info()[0], len(names), text.buffer_info()[0], ends.buffer_info()[0])
        self._tell(_SHAPE, numbers, (names, objects, text, ends))
        self._names = names
        return True

    def _tell(self, place: int, numbers: tuple[int, ...], kept: tuple[object, ...]) -> None:
        """Write ``numbers`` into the sheet, among them addresses in what is ``kept``: that stays alive from before they
        stand there until others do, whatever interrupts.
        """
        self._coming = kept
        self.sheet[place : place + len(numbers)] = array("q", numbers)
        self._kept[place] = kept

    def learn_numbers(self, numbers: array[int]) -> None:
        """Queue offsets are taken from ``numbers``, until there is another array of them."""
        self.sheet[_NUMBERS] = numbers.buffer_info()[0]
        self.numbers = numbers

    def learn_file(self, file: OpenFile, target: memoryview, base: int, backed: int, longest_body: int) -> bool:
        """Units go to ``target``, the bytes of ``file``, whose first has the offset ``base``, as far as ``backed``
        (where there is room on the disk); False for bytes that have no address to write to.
        """
        self.file = file if self.learn_bytes(target, base, backed, longest_body) else None
        return self.file is not None

    def learn_bytes(self, target: memoryview, base: int, backed: int, longest_body: int) -> bool:
        """:meth:`learn_file` for bytes that are no file's."""
        self.file = None
        if target.readonly or not target.c_contiguous or target.nbytes < self._blank:
            return False
        start: int = np.frombuffer(target, np.uint8).__array_interface__["data"][0]
        limit = min(backed, target.nbytes - self._blank)
        self.sheet[_NUMBERS + 1 : _NUMBERS + 5] = array("q", (start, base, limit, longest_body))
        self.target = target
        return True

    def let_go(self) -> None:
        """Hold no file's bytes any more."""
        self.file = self.target = None

    # Putting

    def start(self, now: int, position: int) -> None:
        """What is put next gets the time ``now`` (ms) and stands at ``position`` of the file."""
        self.sheet[NOW], self.sheet[POSITION] = now, position

    @property
    def position(self) -> int:
        """Behind the last unit, in the file."""
        return self.sheet[POSITION]

    def knows(self, file: OpenFile, numbers: array[int]) -> bool:
        """Whether units go to ``file``, whose bytes nobody has taken away, and queue offsets come from ``numbers``."""
        return file is self.file and file.open_view is self.target and numbers is self.numbers

    def put_many(self, messages: list[Message], row: int, out: array[int]) -> tuple[int, int]:
        """Put ``messages`` from ``row`` on, as far as nothing changes between them; gives the next row and why it
        stopped (0: all are there). ``out`` has the offsets of all rows, then their queue offsets, then their sizes in
        bytes.
        """
        sheet, rows, at = self.sheet, len(messages), out.buffer_info()[0]
        sheet[_ROW : _ROW + 5] = array("q", (row, rows, at, at + 8 * rows, at + 16 * rows))
        why = self._many(messages)
        return sheet[_ROW], why


@functools.lru_cache(maxsize=256)
def name_texts(names: tuple[str, ...]) -> tuple[array[int], array[int]]:
    """Names as they stand in a text, one behind the other, and where each ends. Raises ``ValueError``."""
    template_of(names)
    pieces = [f"{name}\x01".encode() for name in names]
    ends = [len(b"".join(pieces[: number + 1])) for number in range(len(pieces))]
    return array("B", b"".join(pieces)), array("q", ends)


def object_put(store_host: bytes, ruled: frozenset[str], blank: int) -> ObjectPut | None:
    """A sheet for a log; None where only plain Python is to be had, for now or for good."""
    if columns.twin() is None:
        return None
    found = _load()
    return None if found is None else ObjectPut(*found, store_host, ruled, blank)


def twin() -> object | None:
    """Have the compiled code loaded, which takes seconds where none is in the user's cache yet; None without it."""
    return None if columns.twin() is None else _load()


@functools.cache
def _load() -> tuple[Twins, list[int]] | None:
    if sys.implementation.name != "cpython":
        return None
    try:
        code, slots = twins("compiled_put"), message_slots()
        return None if slots is None or not _puts(code, slots) else (code, slots)
    except Exception:  # noqa: BLE001  numba and LLVM fail in many ways; plain Python does it then
        return None


def message_slots() -> list[int] | None:
    """Where in a message object the references to its fields stand, in bytes; None where this interpreter has them
    in another way.
    """
    known = Message(
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
    words = [ctypes.c_int64.from_address(id(known) + at).value for at in range(0, Message.__basicsize__, 8)]
    wanted = [id(getattr(known, name)) for name in FIELDS]
    if words[1:2] != [id(Message)] or any(words.count(address) != 1 for address in wanted):
        return None
    return [8 * words.index(address) for address in wanted]


def _puts(code: Twins, slots: Sequence[int]) -> bool:
    """Whether a message that is known becomes the unit that it is."""
    known = Message("a topic", b"a body", 3, {"KEYS": "a key"}, born_timestamp=1 << 44, born_host="1.2.3.4:5")
    unit = encode_unit(known, queue_offset=7, physical_offset=1 << 30, store_timestamp=1 << 45, store_host="6.7.8.9:10")
    target, numbers = bytearray(1 << 10), array("q", (0, 7))
    row = TopicRow(len("a topic").to_bytes(1, "big") + b"a topic", int.from_bytes(unit[4:8], "big", signed=True))
    row.set_place(3, 1)
    put = ObjectPut(code, slots, host_raw("6.7.8.9:10"), frozenset(), 8)
    put.learn_topic(known.topic, row)
    put.learn_host(known.born_host)
    put.learn_numbers(numbers)
    put.learn_map(known.properties or {})
    put.learn_bytes(memoryview(target), 1 << 30, 1 << 10, 99)
    put.start(1 << 45, 0)
    size = put.one(known)
    return (
        size == len(unit) == put.sheet[POSITION]
        and list(numbers) == [0, 8]
        and put.sheet[QUEUE_OFFSET] == 7
        and (target[:size] == unit and not any(target[size:]))
    )

"""Message objects into columns, a batch at a time: no loop over the fields of each message.

Gives None for a batch that has to be put message by message: other ways of writing properties among them, a property
with rules, a number out of its field, something missing. That way gives the same bytes, and says what is wrong.

Batches as they mostly are (plain fields, no property text or maps with the same names) go through a compiled twin that
asks the interpreter's C functions for the fields, a sixth of the time; what it refuses goes through plain Python.
"""

from __future__ import annotations

import functools
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol, cast

from engine.codec import gather_job, message_columns
from engine.codec.encode import Message, between_values, encode_properties, template_of
from engine.codec.message_columns import I32, I64, MessageColumns

_values = dict.values
_BYTE_ZERO, _I32_ZERO, _I64_ZERO = array("B", [0]), array("i", [0]), array("q", [0])
_SPARE = 1024
"""Bytes of room beyond what the batch before needed."""


def gather(messages: Sequence[Message], ruled: frozenset[str]) -> MessageColumns | None:
    """The columns of ``messages``; ``ruled`` are the names of properties that put has rules for."""
    compiled = twin()
    if compiled is not None:
        try:
            found = compiled.gather(messages if type(messages) is list else list(messages), ruled)
        except (TypeError, ValueError):
            found = None
        if found is not None:
            return found
    return gather_plain(messages, ruled)


def gather_plain(messages: Sequence[Message], ruled: frozenset[str]) -> MessageColumns | None:
    """:func:`gather` in plain Python."""
    try:
        texts = _texts(messages, ruled)
        if texts is None:
            return None
        properties, lengths, pairs = texts
        bodies = [m.body for m in messages]
        born = [m.born_timestamp for m in messages]
        unborn = born.count(None)
        if unborn and unborn != len(born):
            return None
        topics, topic_id = _numbered([m.topic for m in messages])
        hosts, born_host = _numbered([m.born_host for m in messages])
        if any([m.store_host for m in messages]):  # noqa: C419  twice as quick as a generator
            return None
        return MessageColumns(
            topics, b"".join(bodies), _i32(list(map(len, bodies))), properties, lengths,
            _i32([m.queue_id for m in messages]), topic_id, _unless_0([m.flag for m in messages]),
            _unless_0([m.sys_flag for m in messages]), None if unborn else _i64(born), born_host, None,
            _unless_0([m.reconsume_times for m in messages]), _prepared(messages), hosts, pairs,
        )  # fmt: skip
    except (TypeError, ValueError, struct.error):
        return None


def _texts(messages: Sequence[Message], ruled: frozenset[str]) -> tuple[bytes, I32 | None, int] | None:
    """All property texts behind each other, and their lengths or the number of pairs that each of them has."""
    raws = [m.properties_raw for m in messages]
    maps = [m.properties for m in messages]
    given = len(raws) - raws.count(None)
    if not given and all(maps):
        names = tuple(maps[0])  # type: ignore[arg-type]  # no None among them
        if list(chain.from_iterable(maps)) == list(names) * len(maps):  # type: ignore[arg-type]
            return _alike(maps, names, ruled)  # type: ignore[arg-type]
    for found in maps:
        if found and not ruled.isdisjoint(found):
            return None
    if given == len(raws):
        texts: list[bytes] = raws  # type: ignore[assignment]
    else:
        texts = [
            raw if raw is not None else encode_properties(found) if found else b""
            for raw, found in zip(raws, maps, strict=True)
        ]
    return b"".join(texts), _i32(list(map(len, texts))), 0


def _alike(
    maps: list[dict[str, str]], names: tuple[str, ...], ruled: frozenset[str]
) -> tuple[bytes, I32 | None, int] | None:
    """The texts of maps that have the same names in the same order."""
    if not ruled.isdisjoint(names):
        return None
    parts = list(between_values(names)) * (2 * len(maps))
    parts[::2] = parts[: len(names) * len(maps)]
    parts[1::2] = chain.from_iterable(map(_values, maps))
    raw = "".join(parts).encode()[1:] + b"\x02"
    if raw.count(2) != len(names) * len(maps):
        return None
    return raw, None, len(names)


def _numbered(names: list[str]) -> tuple[list[str], I32 | None]:
    """The different names, and which of them each row has; None where all have the same."""
    if names.count(names[0]) == len(names):
        return names[:1], None
    different = list(dict.fromkeys(names))
    number = {name: at for at, name in enumerate(different)}
    return different, _i32([number[name] for name in names])


def _prepared(messages: Sequence[Message]) -> I64 | None:
    offsets = [m.prepared_transaction_offset for m in messages]
    return _i64(offsets) if any(offsets) else None


def _unless_0(numbers: list[int]) -> I32 | None:
    return _i32(numbers) if any(numbers) else None


def _i32(numbers: list[int]) -> array[int]:
    return array("i", _packer("i", len(numbers))(*numbers))


def _i64(numbers: list[Any]) -> array[int]:
    return array("q", _packer("q", len(numbers))(*numbers))


@functools.lru_cache(maxsize=256)
def _packer(kind: str, count: int) -> Callable[..., bytes]:
    """Packs so many numbers into the bytes of an array; an array made of a list takes half as long again."""
    return struct.Struct(f"={count}{kind}").pack


class Compiled(Protocol):
    """The functions of :mod:`engine.codec.compiled_gather`."""

    def gather_rows(self, sheet: int) -> int:
        """Gather the messages of an order sheet; gives how it ended."""

    def word(self, address: int) -> int:
        """The 64 bits at an address."""


class Gatherer:
    """Gathers by the compiled twin. Any thread may: the interpreter's lock is held while it runs."""

    __slots__ = ("_bodies", "_code", "_constant", "_texts")

    def __init__(self, code: Compiled, slots: Sequence[int]) -> None:
        self._code = code
        kinds: tuple[object, ...] = (Message, bytes, str, dict, int, None, 0)
        self._constant = (*map(id, kinds), *slots)
        self._bodies = self._texts = _SPARE

    def gather(self, messages: list[Message], ruled: frozenset[str]) -> MessageColumns | None:
        """The columns of ``messages``, None where plain Python has to look."""
        rows, first = len(messages), messages[0].properties
        names = tuple(first) if first else ()
        if not ruled.isdisjoint(names):
            return None
        text, ends = _name_texts(names)
        objects = array("q", map(id, names))
        lengths, text_lengths, queue_ids, born = _I32_ZERO * rows, _I32_ZERO * rows, _I32_ZERO * rows, _I64_ZERO * rows
        while True:
            bodies, texts = _BYTE_ZERO * self._bodies, _BYTE_ZERO * self._texts
            sheet = array("q", gather_job.SHEET.pack(
                id(messages), rows, *self._constant, objects.buffer_info()[0], len(names), text.buffer_info()[0],
                ends.buffer_info()[0], lengths.buffer_info()[0], text_lengths.buffer_info()[0],
                queue_ids.buffer_info()[0], born.buffer_info()[0], bodies.buffer_info()[0], len(bodies),
                texts.buffer_info()[0], len(texts), 0, 0, 0, 0, 0, 0, 0, 0,
            ))  # fmt: skip
            ended = self._code.gather_rows(sheet.buffer_info()[0])
            if ended == gather_job.REFUSED:
                return None
            body_bytes, text_bytes, one_topic, one_host, all_born = sheet[gather_job.BODIES_SIZE :][:5]
            if ended == gather_job.DONE:
                break
            self._bodies, self._texts = body_bytes + _SPARE, text_bytes + _SPARE
        del bodies[body_bytes:], texts[text_bytes:]
        topics, topic_id = ([messages[0].topic], None) if one_topic else _numbered([m.topic for m in messages])
        hosts, host = ([messages[0].born_host], None) if one_host else _numbered([m.born_host for m in messages])
        return MessageColumns(
            topics, bodies, lengths, texts, text_lengths, queue_ids, topic_id, None, None, born if all_born else None,
            host, None, None, None, hosts,
        )  # fmt: skip


@functools.lru_cache(maxsize=256)
def _name_texts(names: tuple[str, ...]) -> tuple[array[int], array[int]]:
    """Names as they stand in a text, one behind the other, and where each ends. Raises ``ValueError``."""
    template_of(names)
    pieces = [f"{name}\x01".encode() for name in names]
    ends = [len(b"".join(pieces[: number + 1])) for number in range(len(pieces))]
    return array("B", b"".join(pieces)), array("q", ends)


class _Kept:
    """The gatherer that was found in this process."""

    gatherer: Gatherer | None = None


def twin() -> Gatherer | None:
    """The compiled gatherer; None where only plain Python is to be had, or ``STORESCOPE_PLAIN=1`` asked for it before
    one was found.
    """
    if _Kept.gatherer is None and message_columns.twin() is not None:
        _Kept.gatherer = _load()
    return _Kept.gatherer


@functools.cache
def _load() -> Gatherer | None:
    if sys.implementation.name != "cpython":
        return None
    try:
        from engine.codec import compiled_gather

        code = cast("Compiled", compiled_gather)
        slots = _slots(code)
        found = None if slots is None else Gatherer(code, slots)
        return found if found is not None and _gathers(found) else None
    except Exception:  # noqa: BLE001  numba and LLVM fail in many ways; plain Python does it then
        return None


def _gathers(what: Gatherer) -> bool:
    """Whether a message that is known comes out as it is."""
    known = [Message("a topic", b"a body", 7, {"KEYS": "a key"}, born_timestamp=1 << 44)]
    found = what.gather(known, frozenset())
    if found is None or found.queue_id is None or found.born_timestamp is None:
        return False
    blobs = bytes(found.bodies), bytes(found.properties)
    return blobs == (b"a body", b"KEYS\x01a key\x02") and (found.queue_id[0], found.born_timestamp[0]) == (7, 1 << 44)


def _slots(code: Compiled) -> list[int] | None:
    """Where in a message object the references to its fields stand, in bytes; None where this interpreter has them
    in another way.
    """
    known = Message(
        "a topic", b"a body", 1 << 40, {}, b"a text", flag=1 << 41, sys_flag=1 << 42, reconsume_times=1 << 43,
        born_timestamp=1 << 44, prepared_transaction_offset=1 << 45, born_host="a host", store_host="its",
    )  # fmt: skip
    words = [code.word(id(known) + at) for at in range(0, Message.__basicsize__, 8)]
    wanted = [id(getattr(known, name)) for name in gather_job.FIELDS]
    if words[1:2] != [id(Message)] or any(words.count(address) != 1 for address in wanted):
        return None
    return [8 * words.index(address) for address in wanted]

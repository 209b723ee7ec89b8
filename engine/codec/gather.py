"""Message objects into columns, a batch at a time: no loop over the fields of each message.

Gives None for a batch that has to be put message by message: other ways of writing properties among them, a property
with rules, a number out of its field, something missing. That way gives the same bytes, and says what is wrong.
"""

from __future__ import annotations

import functools
import struct
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from engine.codec.encode import Message, between_values, encode_properties
from engine.codec.message_columns import I32, I64, MessageColumns

_values = dict.values


def gather(messages: Sequence[Message], ruled: frozenset[str]) -> MessageColumns | None:
    """The columns of ``messages``; ``ruled`` are the names of properties that put has rules for."""
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

"""The body with which a broker registers: plain JSON, or packed (protocol 2.2). Java: ``RegisterBrokerBody``."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from engine.codec.json_dialect import parse
from engine.namesrv.routes import DataVersion, Queues
from engine.remoting.codes import WrongRequest

LARGEST = 64 << 20
"""Bytes that a packed body unpacks to at most."""

Body = tuple[DataVersion, dict[str, Queues], tuple[str, ...]]
"""What the broker's topics are a state of, its topics, its filter servers."""


def read_body(body: bytes | memoryview, *, compressed: bool) -> Body:
    """The body of a registration. Raises :class:`WrongRequest`, whose sentence is the answer."""
    if not body:
        return DataVersion(), {}, ()
    return _packed(bytes(body)) if compressed else _plain(bytes(body))


def check_crc(body: bytes | memoryview, told: int) -> None:
    """Raises :class:`WrongRequest` where the body is not the one that was sent; 0 asks for nothing."""
    if told != 0 and zlib.crc32(body) & 0x7FFFFFFF != told:
        raise WrongRequest("crc32 not match")


def _json(text: bytes | str) -> Any:
    read = parse(text)
    if read.fault is not None:
        raise WrongRequest(f"the body is no JSON: {read.fault.words}")
    return read.value


def _plain(body: bytes) -> Body:
    told = _json(body)
    if not isinstance(told, Mapping):
        raise WrongRequest("the body is no object")
    wrapper = told.get("topicConfigSerializeWrapper")
    if not isinstance(wrapper, Mapping):
        wrapper = told  # as brokers of before 3.0.11 send it
    table = wrapper.get("topicConfigTable")
    topics = {str(name): _queues(one) for name, one in table.items() if isinstance(one, Mapping)} if table else {}
    servers = told.get("filterServerList")
    return DataVersion.of(wrapper.get("dataVersion")), topics, tuple(map(str, servers)) if servers else ()


def _queues(config: Mapping[Any, Any]) -> Queues:
    """From a ``TopicConfig``; what is absent is as in Java's."""
    told = [config.get(name, usual) for name, usual in _USUAL]
    return Queues(*(one if isinstance(one, int) else usual for one, (_, usual) in zip(told, _USUAL, strict=True)))


_USUAL = (("readQueueNums", 16), ("writeQueueNums", 16), ("perm", 6), ("topicSysFlag", 0))


def _packed(body: bytes) -> Body:
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(body, LARGEST)
    except zlib.error as error:
        raise WrongRequest(f"the body cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise WrongRequest(f"the body unpacks to more than {LARGEST:,} bytes")
    pieces = _Pieces(data)
    version = DataVersion.of(_json(pieces.text()))
    topics = dict(_topic(pieces.text()) for _ in range(pieces.number()))
    servers = _json(pieces.text())
    return version, topics, tuple(map(str, servers or ()))


class _Pieces:
    """Numbers of 32 bits, and texts with their lengths, one behind the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        if self._at + 4 > len(self._data):
            raise WrongRequest(f"the body ends at {len(self._data):,}, within a number")
        self._at += 4
        return int.from_bytes(self._data[self._at - 4 : self._at], "big", signed=True)

    def text(self) -> str:
        length = self.number()
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise WrongRequest(f"a text of the body has {length:,} bytes, and {len(self._data) - self._at:,} are there")
        self._at, start = end, self._at
        return self._data[start:end].decode("utf-8", "replace")


def _topic(text: str) -> tuple[str, Queues]:
    """``name readQueueNums writeQueueNums perm filterType [attributes]``."""
    words = text.split(" ")
    try:
        name, read, write, permission = words[0], int(words[1]), int(words[2]), int(words[3])
    except (IndexError, ValueError):
        raise WrongRequest(f"a topic of the body cannot be read: {text[:80]!r}") from None
    return name, Queues(read, write, permission)

"""The body with which a broker registers at a name server: plain JSON, or packed
(docs/protocol/name-server.md#registration). Pure.

Java: ``RegisterBrokerBody``.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from engine.codec.json_dialect import parse
from engine.namesrv.routes import DataVersion, Queues
from engine.remoting.codes import WrongRequest

MAX_BODY_BYTES = 64 << 20
"""Maximum bytes that a packed body unpacks to."""
_TOPIC_DEFAULTS = (("readQueueNums", 16), ("writeQueueNums", 16), ("perm", 6), ("topicSysFlag", 0))
"""Java's defaults of the fields of a ``TopicConfig``."""


class RegistrationBody(NamedTuple):
    """Version and rows of the broker's topics, its filter servers, and its parts of static topics."""

    version: DataVersion
    topics: dict[str, Queues]
    filter_servers: tuple[str, ...] = ()
    mappings: Mapping[str, Mapping[Any, Any]] = {}


def read_body(body: bytes | memoryview, *, compressed: bool) -> RegistrationBody:
    """Decode the body of a registration. Raises :class:`WrongRequest`, whose text is the answer."""
    if not body:
        return RegistrationBody(DataVersion(), {})
    return _packed(bytes(body)) if compressed else _plain(bytes(body))


def check_crc(body: bytes | memoryview, expected: int) -> None:
    """Raise :class:`WrongRequest` if the body has another CRC than ``expected``; 0 skips the check."""
    if expected != 0 and zlib.crc32(body) & 0x7FFFFFFF != expected:
        raise WrongRequest("crc32 not match")


def _json(text: bytes | str) -> Any:
    parsed = parse(text)
    if parsed.fault is not None:
        raise WrongRequest(f"the body is no JSON: {parsed.fault.words}")
    return parsed.value


def _plain(body: bytes) -> RegistrationBody:
    fields = _json(body)
    if not isinstance(fields, Mapping):
        raise WrongRequest("the body is no object")
    wrapper = fields.get("topicConfigSerializeWrapper")
    if not isinstance(wrapper, Mapping):
        wrapper = fields  # the form that brokers before 3.0.11 send
    table = wrapper.get("topicConfigTable")
    topics = (
        {str(name): _queues(config) for name, config in table.items() if isinstance(config, Mapping)} if table else {}
    )
    servers = fields.get("filterServerList")
    server_names = tuple(map(str, servers)) if servers else ()
    return RegistrationBody(DataVersion.of(wrapper.get("dataVersion")), topics, server_names, _mappings(wrapper))


def _mappings(wrapper: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """Return the broker's parts of static topics."""
    table = wrapper.get("topicQueueMappingInfoMap")
    rows = table.items() if isinstance(table, Mapping) else ()
    return {str(name): info for name, info in rows if isinstance(info, Mapping)}


def _queues(config: Mapping[Any, Any]) -> Queues:
    """Read a ``TopicConfig``; absent fields have Java's defaults."""
    values = [config.get(name, default) for name, default in _TOPIC_DEFAULTS]
    return Queues(
        *(
            value if isinstance(value, int) else default
            for value, (_, default) in zip(values, _TOPIC_DEFAULTS, strict=True)
        )
    )


def _packed(body: bytes) -> RegistrationBody:
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(body, MAX_BODY_BYTES)
    except zlib.error as error:
        raise WrongRequest(f"the body cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise WrongRequest(f"the body unpacks to more than {MAX_BODY_BYTES:,} bytes")
    reader = _BodyReader(data)
    version = DataVersion.of(_json(reader.text()))
    topics = dict(_topic(reader.text()) for _ in range(reader.number()))
    servers = _json(reader.text())
    infos = [_json(reader.text()) for _ in range(0 if reader.is_at_end else reader.number())]
    mappings = {str(info.get("topic")): info for info in infos if isinstance(info, Mapping)}
    return RegistrationBody(version, topics, tuple(map(str, servers or ())), mappings)


class _BodyReader:
    """Reads 32-bit numbers, and texts with their length in front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    @property
    def is_at_end(self) -> bool:
        """True behind the last value; bodies of brokers before 5.0 end here."""
        return self._position == len(self._data)

    def number(self) -> int:
        if self._position + 4 > len(self._data):
            raise WrongRequest(f"the body ends at {len(self._data):,}, within a number")
        self._position += 4
        return int.from_bytes(self._data[self._position - 4 : self._position], "big", signed=True)

    def text(self) -> str:
        length = self.number()
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise WrongRequest(
                f"a text of the body has {length:,} bytes, and {len(self._data) - self._position:,} are there"
            )
        self._position, start = end, self._position
        return self._data[start:end].decode("utf-8", "replace")


def _topic(text: str) -> tuple[str, Queues]:
    """Parse ``name readQueueNums writeQueueNums perm filterType [attributes]``."""
    words = text.split(" ")
    try:
        name, read, write, permission = words[0], int(words[1]), int(words[2]), int(words[3])
    except (IndexError, ValueError):
        raise WrongRequest(f"a topic of the body cannot be read: {text[:80]!r}") from None
    return name, Queues(read, write, permission)

"""Frames of the remoting protocol: bytes in, commands out, and the other way round; no socket, no clock
(docs/protocol/frames.md).

Java: ``RemotingCommand``, ``RocketMQSerializable``, ``NettyDecoder``. A fault is a value: the connection ends with it,
for there is no error frame.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from engine.sentences import Sentence, sentence

JSON, BINARY = 0, 1
"""Serialize types: the first byte of the header's length."""
ANSWER, ONE_WAY = 1, 2
"""Bits of ``flag``."""
MAX_FRAME_BYTES = 16 << 20
"""Bytes of a frame with its own length field; a longer one ends the connection (``frameMaxLength``)."""
LANGUAGES = (
    "JAVA",
    "CPP",
    "DOTNET",
    "PYTHON",
    "DELPHI",
    "ERLANG",
    "RUBY",
    "OTHER",
    "HTTP",
    "GO",
    "PHP",
    "OMS",
    "RUST",
    "NODE_JS",
)
VERSION = 479
"""Ordinal of 5.3.3, which answers name (1.5): below 233 a Java client asks nothing that filters by SQL92."""

_FIRST_REGULAR = 213
"""Of 4.0.0; from there on each release and its snapshot count up by one."""
TLS_HELLO = b"\x16"
"""The first byte of a connection that begins with TLS."""
_PROXY = (b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n")
_MAX_KEY_BYTES = 0x7FFF
_WRAPS = 1 << 31
_AS_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_TEXTS = {str}
_HEAD = struct.Struct(">HBHiii")
_LENGTH = struct.Struct(">i")
_QUOTED = json.encoder.encode_basestring
_FROM_JSON = json.JSONDecoder()


def release_of(ordinal: int) -> str:
    """The release whose ordinal a client sends (1.5; Java: ``MQVersion``): ``5.3.3``, with the number where no rule
    tells it.
    """
    step, snapshot = divmod(ordinal - _FIRST_REGULAR, 2)
    if not 0 <= step < 200:
        return f"version {ordinal}"
    major, minor = divmod(step + snapshot, 100)
    return f"{4 + major}.{minor // 10}.{minor % 10}{'-SNAPSHOT' * snapshot}"


def ordinal_of(release: str) -> int:
    """Return the ordinal of a release such as ``5.3.3``, the reverse of :func:`release_of`."""
    major, minor, patch = map(int, release.split("."))
    return _FIRST_REGULAR + 2 * ((major - 4) * 100 + minor * 10 + patch)


@dataclass(slots=True)
class Command:
    """A request or an answer. ``fields`` are the header fields as text, ``body`` is empty if there is none.

    ``flag`` holds :data:`ANSWER` and :data:`ONE_WAY`; ``opaque`` ties an answer to its request; ``form`` is the way
    that the header was written (:data:`JSON` or :data:`BINARY`).
    """

    code: int
    fields: dict[str, str] = field(default_factory=dict)
    body: bytes | memoryview = b""
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    language: str = "JAVA"
    version: int = VERSION
    form: int = JSON

    @property
    def is_answer(self) -> bool:
        return bool(self.flag & ANSWER)

    @property
    def is_one_way(self) -> bool:
        return bool(self.flag & ONE_WAY)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the bytes at ``offset`` of a connection are no frame; nothing behind them is read."""

    reason: str
    offset: int


class FrameReader:
    """The frames of one connection, as its bytes come: :meth:`feed`, then :meth:`commands`."""

    def __init__(self, largest: int = MAX_FRAME_BYTES) -> None:
        self._bytes: bytes | bytearray = b""
        self._largest = largest
        self._offset = 0
        """Bytes of the connection in front of those that are held."""
        self._begun = 0
        self.fault: Fault | None = None

    @property
    def held(self) -> int:
        """Bytes that :meth:`commands` has not given yet."""
        return len(self._bytes)

    @property
    def frame(self) -> bytes:
        """The bytes of what :meth:`commands` gave last; of a fault all that came from there on."""
        if self.fault is not None:
            return bytes(self._bytes[self._begun :])
        (total,) = _LENGTH.unpack_from(self._bytes, self._begun)
        return bytes(self._bytes[self._begun : self._begun + 4 + total])

    def feed(self, data: bytes | memoryview) -> None:
        """Take what the connection gave; behind a fault it is dropped."""
        if self.fault is not None:
            return
        if not self._bytes:
            self._bytes = bytes(data)  # mostly whole frames: cut out as they are
        else:
            if not isinstance(self._bytes, bytearray):
                self._bytes = bytearray(self._bytes)
            self._bytes += data

    def commands(self) -> Generator[Command | Fault, None, None]:
        """Yield the complete frames in order; a fault is the last item. A caller that closes the generator early
        gets the rest next time.
        """
        position = 0
        try:
            while self.fault is None:
                parsed = self._next(position)
                if parsed is None:
                    break
                self._begun = position
                item, position = parsed
                if isinstance(item, Fault):
                    self.fault = item
                    position = len(self._bytes)
                yield item
        finally:
            self._offset += position
            if position < len(self._bytes):
                self._bytes = self._bytes[position:] if position else self._bytes
            else:
                self._bytes = b""

    def _next(self, start: int) -> tuple[Command | Fault, int] | None:
        data = self._bytes
        if self._offset == 0 and start == 0 and (protocol := _other_protocol(data)):
            return Fault(protocol, 0), start
        if len(data) - start < 4:
            return None
        (total,) = _LENGTH.unpack_from(data, start)
        offset = self._offset + start
        if total < 4:
            return Fault(
                sentence("the frame's length is {n:,}, less than the 4 bytes of its header's length", n=total), offset
            ), start
        if total + 4 > self._largest:
            return Fault(
                sentence("the frame has {n:,} bytes, more than {limit:,}", n=total + 4, limit=self._largest), offset
            ), start
        if len(data) - start < 8:
            return None
        (length,) = _LENGTH.unpack_from(data, start + 4)
        form, length = length >> 24 & 0xFF, length & 0xFFFFFF
        if form not in (JSON, BINARY):
            return Fault(
                sentence("the header's type is {type}, neither 0 (JSON) nor 1 (binary)", type=form), offset
            ), start
        if length > total - 4:
            return Fault(
                sentence("the header has {n:,} bytes in a frame of {total:,}", n=length, total=total), offset
            ), start
        end = start + 4 + total
        if len(data) < end:
            return None
        header = bytes(data[start + 8 : start + 8 + length])
        try:
            command = _read_json(header) if form == JSON else _read_binary(header)
        except (ValueError, TypeError, OverflowError, RecursionError, struct.error) as error:
            text = str(error)
            reason = text if isinstance(text, Sentence) else text[:200] or type(error).__name__
            return Fault(sentence("the header cannot be read: {reason}", reason=reason), offset), start
        command.body = bytes(data[start + 8 + length : end])
        return command, end


def _other_protocol(data: bytes | bytearray) -> str | None:
    if data[:1] == TLS_HELLO:
        return sentence("the client begins with TLS, which is not served here")
    if any(data and (data.startswith(sign) or (len(data) < 4 and sign.startswith(bytes(data)))) for sign in _PROXY):
        return sentence("a PROXY header comes first, which is not supported here") if len(data) >= 4 else None
    return None


def _read_json(header: bytes) -> Command:
    text = header.decode("utf-8", "replace")
    if text[:1] == "{":
        fields, end = _FROM_JSON.raw_decode(text)
        if end != len(text):
            fields = _FROM_JSON.decode(text)  # white space, or what it says is wrong with the rest
    else:
        fields = json.loads(text)
    if not isinstance(fields, dict):
        raise ValueError(sentence("it is {type}, not an object", type=type(fields).__name__))
    extra = fields.get("extFields")
    remark = fields.get("remark")
    return Command(
        code=_integer(fields.get("code")),
        fields=_fields(extra) if isinstance(extra, dict) else {},
        opaque=_integer(fields.get("opaque")),
        flag=_integer(fields.get("flag")),
        remark=None if remark is None else _text(remark),
        language=str(fields.get("language") or "JAVA"),
        version=_integer(fields.get("version")),
        form=JSON,
    )


def _fields(extra: dict[str, Any]) -> dict[str, str]:
    if set(map(type, extra.values())) <= _TEXTS:
        return extra
    return {name: _text(value) for name, value in extra.items() if value is not None}


def _integer(value: Any) -> int:
    """A number of 32 bits, as Java's ``int`` wraps."""
    if type(value) is int and -_WRAPS <= value < _WRAPS:
        return value
    number = 0 if value is None else int(value)
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _text(value: Any) -> str:
    """A header field: some clients send numbers and booleans, which Java takes for their text."""
    if isinstance(value, str):
        return value
    return _AS_JSON(value)


def _read_binary(header: bytes) -> Command:
    code, language, version, opaque, flag, length = _HEAD.unpack_from(header)
    position = _HEAD.size
    remark, position = _piece(header, position, length)
    (size,) = struct.unpack_from(">i", header, position)
    position += 4
    if size < 0 or position + size > len(header):
        raise ValueError(
            sentence("its fields have {n:,} bytes, and {found:,} are there", n=size, found=len(header) - position)
        )
    end, fields = position + size, {}
    while position < end:
        (length,) = struct.unpack_from(">h", header, position)
        name, position = _piece(header, position + 2, length)
        (length,) = struct.unpack_from(">i", header, position)
        value, position = _piece(header, position + 4, length)
        if name and value:
            fields[name] = value
    if position != end:
        raise ValueError(sentence("a field ends behind all fields"))
    return Command(
        code=code - (1 << 16) if code > _MAX_KEY_BYTES else code,
        fields=fields,
        opaque=opaque,
        flag=flag,
        remark=remark or None,
        language=LANGUAGES[language] if language < len(LANGUAGES) else "OTHER",
        version=version,
        form=BINARY,
    )


def _piece(header: bytes, position: int, length: int) -> tuple[str, int]:
    if length < 0 or position + length > len(header):
        raise ValueError(
            sentence("a text has {n:,} bytes, and {found:,} are there", n=length, found=len(header) - position)
        )
    return header[position : position + length].decode("utf-8", "replace"), position + length


def encode(command: Command) -> list[bytes | memoryview]:
    """The frame, in pieces that are written one behind the other: what comes before the body, then the body as it is.

    A code that the binary form has no room for (above 32,767) goes as JSON. Raises ``ValueError`` where the frame would
    be longer than any peer takes.
    """
    form = command.form if command.code <= _MAX_KEY_BYTES else JSON
    header = _json(command) if form == JSON else _binary(command)
    total = 4 + len(header) + len(command.body)
    if total + 4 > MAX_FRAME_BYTES or len(header) > 0xFFFFFF:
        raise ValueError(f"the frame would have {total + 4:,} bytes, more than {MAX_FRAME_BYTES:,}")
    head = b"".join((total.to_bytes(4, "big"), bytes([form]), len(header).to_bytes(3, "big"), header))
    return [head, command.body] if command.body else [head]


def _json(command: Command) -> bytes:
    fields = command.fields
    extra_fields = f',"extFields":{_template(tuple(fields)) % tuple(map(_QUOTED, fields.values()))}' if fields else ""
    remark = "" if command.remark is None else f',"remark":{_QUOTED(command.remark)}'
    return (
        f'{{"code":{int(command.code)}{extra_fields},"flag":{command.flag},"language":{_QUOTED(command.language)},'
        f'"opaque":{command.opaque}{remark},"serializeTypeCurrentRPC":"JSON","version":{command.version}}}'
    ).encode("utf-8", "replace")


@lru_cache(maxsize=256)
def _template(names: tuple[str, ...]) -> str:
    """A format of the JSON object with these names."""
    return "{" + ",".join(f"{_QUOTED(name).replace('%', '%%')}:%s" for name in names) + "}"


def _binary(command: Command) -> bytes:
    remark = (command.remark or "").encode("utf-8", "replace")
    pieces = []
    for name, value in command.fields.items():
        key, text = name.encode("utf-8", "replace"), value.encode("utf-8", "replace")
        if len(key) > _MAX_KEY_BYTES:
            raise ValueError(f"a field's name has {len(key):,} bytes, more than {_MAX_KEY_BYTES:,}")
        pieces += [len(key).to_bytes(2, "big"), key, len(text).to_bytes(4, "big"), text]
    fields = b"".join(pieces)
    language = LANGUAGES.index(command.language) if command.language in LANGUAGES else LANGUAGES.index("OTHER")
    head = _HEAD.pack(
        command.code & 0xFFFF, language, command.version & 0xFFFF, command.opaque, command.flag, len(remark)
    )
    return b"".join((head, remark, len(fields).to_bytes(4, "big"), fields))


def answer_to(
    request: Command,
    code: int = 0,
    *,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    remark: str | None = None,
) -> Command:
    """The answer to ``request``, in the form that it came in."""
    return Command(code, fields or {}, body, opaque=request.opaque, flag=ANSWER, remark=remark, form=request.form)

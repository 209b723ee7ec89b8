"""The table of decoders: what each reads, which package it needs and which options it has.

A decoder is bounded: it gets at most :data:`MAX_BODY_BYTES`, and its values are those of :mod:`engine.decoding.values`.
What comes from a library is caught here, so a body that is something else is a :class:`BadBody` with the reason.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from engine.codec import message_trace
from engine.decoding.rules import FILES, DecodingRule
from engine.decoding.values import MAX_DECIMAL_EXPONENT, MAX_DEPTH, MAX_NUMBER_BITS, BadBody, as_json_value
from engine.errors import StoreError, UsageError
from engine.sentences import msgid, plural, sentence

MAX_BODY_BYTES = 4 << 20
"""Maximum length of a body that is decoded: RocketMQ's own limit for a message, by default."""
EXTRA = "pip install 'storescope[decoders]'"

Decode = Callable[[bytes], Any]
"""Returns the value of a body, or raises :class:`BadBody`."""


class MissingDecoder(StoreError):
    """A package or a file that a decoder needs is not there."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """A row of the table. ``package`` is "" for the standard library; ``options`` are those of a rule that it reads."""

    name: str
    title: str
    package: str
    options: tuple[str, ...]
    required: tuple[str, ...]
    prepare: Callable[[DecodingRule], Decode]


def missing_package(decoder: str, package: str) -> MissingDecoder:
    """Return the error for a package that is not installed."""
    return MissingDecoder(
        sentence(
            "decoding {decoder} needs the package {package}: {command}",
            decoder=decoder,
            package=package,
            command=EXTRA,
        )
    )


# ---- JSON and text ---------------------------------------------------------------------------------------------------


def _number(text: str) -> float | str:
    """Return a JSON number with a fraction; its text if it is too large for a float."""
    value = float(text)
    return value if math.isfinite(value) else text


_json = json.JSONDecoder(parse_constant=str, parse_float=_number)


def _prepare_json(rule: DecodingRule) -> Decode:
    encoding = rule.option("encoding", "utf-8")

    def decode(body: bytes) -> Any:
        text = _text(body, encoding)
        try:
            value = _json.decode(text.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            position = len(text[: error.pos].encode(encoding, "replace"))
            raise BadBody(sentence("not valid {kind}: {problem}", kind="JSON", problem=error.msg), position) from None
        except RecursionError:
            raise BadBody(sentence("nested deeper than {n} levels", n=MAX_DEPTH)) from None
        except ValueError as error:  # a number with too many digits
            raise BadBody(sentence("not valid {kind}: {problem}", kind="JSON", problem=error)) from None
        if body.count(b"{") + body.count(b"[") > MAX_DEPTH or b"\\u" in body:
            return as_json_value(value)  # checks the depth, and replaces half surrogates
        return value

    return decode


def _prepare_text(rule: DecodingRule) -> Decode:
    return partial(_text, encoding=rule.option("encoding", "utf-8"))


def _text(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadBody(sentence("not valid {encoding}", encoding=encoding), error.start) from None
    except (UnicodeError, ValueError) as error:
        raise BadBody(sentence("not valid {encoding}: {problem}", encoding=encoding, problem=error)) from None


# ---- MessagePack and CBOR --------------------------------------------------------------------------------------------


def _prepare_msgpack(_rule: DecodingRule) -> Decode:
    try:
        import msgpack
    except ImportError:
        raise missing_package("MessagePack", "msgpack") from None

    def decode(body: bytes) -> Any:
        unpacker = msgpack.Unpacker(
            None, strict_map_key=False, unicode_errors="backslashreplace", timestamp=3, max_buffer_size=MAX_BODY_BYTES
        )
        try:
            unpacker.feed(body)
            value = unpacker.unpack()
        except msgpack.OutOfData:
            raise BadBody(
                sentence("not valid {kind}: the body ends too early", kind="MessagePack"), len(body)
            ) from None
        except Exception as error:  # noqa: BLE001 (a body may bring any error out of the library)
            raise _bad("MessagePack", error) from None
        if unpacker.tell() != len(body):
            raise BadBody(
                bytes_follow("MessagePack", len(body) - unpacker.tell()),
                unpacker.tell(),
            )
        return as_json_value(value)

    return decode


def _prepare_cbor(_rule: DecodingRule) -> Decode:
    try:
        import cbor2
    except ImportError:
        raise missing_package("CBOR", "cbor2") from None
    import io

    tags: dict[int, Callable[[Any, bool], Any]] = {tag: partial(_tagged_number, tag) for tag in (2, 3, 4, 5, 30)}
    tags |= dict.fromkeys((35, 36), lambda content, _: content)  # expressions and mails stay texts

    def decode(body: bytes) -> Any:
        stream = io.BytesIO(body)
        try:
            value = cbor2.CBORDecoder(stream, max_depth=MAX_DEPTH, read_size=1, semantic_decoders=tags).decode()
        except Exception as error:  # noqa: BLE001 (a body may bring any error out of the library)
            raise _bad("CBOR", error) from None
        if stream.tell() != len(body):
            raise BadBody(bytes_follow("CBOR", len(body) - stream.tell()), stream.tell())
        return as_json_value(value)

    return decode


def _tagged_number(tag: int, content: Any, _immutable: bool) -> Any:
    """Return a number that CBOR writes with a tag.

    Beyond 64 bits it is a text: Python's large numbers and decimals may be made to have the same hash, and then a map
    of them takes hours.
    """
    if tag in (2, 3) and isinstance(content, bytes):
        if len(content) * 8 > MAX_NUMBER_BITS:
            raise BadBody(sentence("a number of {n:,} bits", n=len(content) * 8))
        number = int.from_bytes(content, "big")
        number = number if tag == 2 else -1 - number
        return number if number.bit_length() < 64 else str(number)
    if isinstance(content, list | tuple) and len(content) == 2 and all(isinstance(part, int | str) for part in content):
        first, second = content
        if tag == 4 and isinstance(first, int) and abs(first) <= MAX_DECIMAL_EXPONENT and isinstance(second, int):
            return str(Decimal(second).scaleb(first))
        return f"{second} × 2^{first}" if tag == 5 else f"{first}/{second}" if tag == 30 else f"{second} × 10^{first}"
    raise BadBody(
        sentence("not valid {kind}: {problem}", kind="CBOR", problem=sentence("tag {tag} has no number", tag=tag))
    )


def bytes_follow(kind: str, count: int) -> str:
    """Return the reason for a body that is longer than its value."""
    problem = plural("{n:,} byte follows the value", "{n:,} bytes follow the value", n=count)
    return sentence("not valid {kind}: {problem}", kind=kind, problem=problem)


def _bad(kind: str, error: BaseException) -> BadBody:
    """Return the reason in an error of a library: its first line, or that of what caused it."""
    if isinstance(error.__cause__, BadBody):
        return error.__cause__
    problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BadBody(sentence("not valid {kind}: {problem}", kind=kind, problem=problem))


# ---- Protobuf and Avro -----------------------------------------------------------------------------------------------


def _prepare_protobuf(rule: DecodingRule) -> Decode:
    from engine.decoding import protobuf_bodies

    return protobuf_bodies.prepare(rule.option("descriptorSet"), rule.option("messageType"))


def _prepare_avro(rule: DecodingRule) -> Decode:
    from engine.decoding import avro_bodies

    return avro_bodies.prepare(rule.option("schema"))


# ---- message traces --------------------------------------------------------------------------------------------------


def _prepare_traces(_rule: DecodingRule) -> Decode:
    return _traces


def _traces(body: bytes) -> Any:
    parts = [part for part in body.split(b"\x02") if part.strip()]
    traces = list(message_trace.decode(body))
    if len(traces) != len(parts):
        raise BadBody(
            plural("{n:,} part is no message trace", "{n:,} parts are no message trace", n=len(parts) - len(traces))
        )
    return [
        {_camel(name): value for name, value in asdict(trace).items() if value not in ("", None)} for trace in traces
    ]


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _prepare_own(rule: DecodingRule) -> Decode:
    from engine.decoding import own_decoders

    return own_decoders.prepare(rule.option("name"), rule)


DECODERS: dict[str, Decoder] = {
    decoder.name: decoder
    for decoder in (
        Decoder("json", msgid("JSON"), "", ("encoding",), (), _prepare_json),
        Decoder("text", msgid("Text"), "", ("encoding",), (), _prepare_text),
        Decoder("msgpack", msgid("MessagePack"), "msgpack", (), (), _prepare_msgpack),
        Decoder("cbor", msgid("CBOR"), "cbor2", (), (), _prepare_cbor),
        Decoder(
            "protobuf",
            msgid("Protobuf"),
            "protobuf",
            ("descriptorSet", "messageType"),
            ("descriptorSet", "messageType"),
            _prepare_protobuf,
        ),
        Decoder("avro", msgid("Avro"), "fastavro", ("schema",), ("schema",), _prepare_avro),
        Decoder("trace", msgid("Message trace"), "", (), (), _prepare_traces),
        Decoder("own", msgid("A decoder of your own"), "", ("name",), ("name",), _prepare_own),
    )
}
"""Every decoder by its name in rules."""


def prepared(rule: DecodingRule) -> Decode:
    """:func:`prepare`, once for a rule and the state of its files."""
    stamps = []
    for name in FILES:
        with contextlib.suppress(OSError):
            status = os.stat(rule.option(name))  # noqa: PTH116 (an option that is not set is "", which is no folder)
            stamps.append((name, status.st_mtime_ns, status.st_size))
    return _prepared(rule, tuple(stamps))


@lru_cache(maxsize=64)
def _prepared(rule: DecodingRule, _stamps: tuple[object, ...]) -> Decode:
    return prepare(rule)


def prepare(rule: DecodingRule) -> Decode:
    """Return the function that decodes a body as ``rule`` says. Raises :class:`UsageError`, :class:`MissingDecoder`."""
    decoder = DECODERS.get(rule.decoder)
    if decoder is None:
        raise UsageError(
            sentence(
                "there is no decoder {name}; the decoders are {names}",
                name=repr(rule.decoder),
                names=", ".join(DECODERS),
            )
        )
    for name, _ in rule.options:
        if name not in decoder.options:
            raise UsageError(sentence("the decoder {decoder} has no option {name}", decoder=decoder.name, name=name))
    for name in decoder.required:
        if not rule.option(name):
            raise UsageError(sentence("the decoder {decoder} needs {name}", decoder=decoder.name, name=name))
    return decoder.prepare(rule)

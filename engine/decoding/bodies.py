"""Decoded bodies: rules in force, and what they give for a message.

Rules are in force for a stretch of code (:func:`decoding_by`), so that filters, columns and listings read the fields of
bodies wherever they are evaluated. Without a rule for its topic a body is undecoded: nothing is concluded about it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from engine.codec.batch import Member, members
from engine.codec.compression import COMPRESSED, KINDS, unpack
from engine.codec.message import INNER_BATCH, Unit
from engine.decoding.decoders import MAX_BODY_BYTES, Decode, prepared
from engine.decoding.rules import DecodingRule
from engine.decoding.values import ABSENT, BadBody, Path, value_at
from engine.errors import StoreError
from engine.sentences import sentence
from engine.system_names import TRACE_TOPIC

_WBITS = {"gzip": 31, "zlib": 15, "deflate": -15}
_KIND_NUMBERS = {name: number for number, name in reversed(KINDS.items())}
MAX_SAMPLES = 100
MAX_SAMPLE_BYTES = 64 << 10
TRACES = DecodingRule(TRACE_TOPIC, "trace")
"""RocketMQ's own format of its own topic: it needs no rule of the user."""


class DecodedBody(NamedTuple):
    """A body decoded by a rule: its ``value``, or an ``error`` that says where and why it cannot be read.

    Without a rule for the message ``decoder`` is "".
    """

    decoder: str
    value: Any = None
    error: str = ""

    @property
    def is_decoded(self) -> bool:
        """True if ``value`` is the body's."""
        return bool(self.decoder) and not self.error


NO_RULE = DecodedBody("")


class BodyDecoders:
    """Rules, each prepared once, in their order. Not for several threads at once."""

    def __init__(self, rules: Sequence[DecodingRule]) -> None:
        self.rules = (*rules, TRACES)
        self.needs_properties = any(rule.needs_properties for rule in rules)
        self._prepared: dict[DecodingRule, Decode | str] = {}
        self._by_topic: dict[str, DecodingRule | None] = {}
        self.failed_count = 0
        """Bodies that could not be decoded."""
        self.topics_without_rule: dict[str, tuple[bytes, int]] = {}
        """Topics that no rule is for, each with a body and its sysFlag."""
        self._last: tuple[Unit, DecodedBody] | None = None

    def prepare(self) -> None:
        """Prepare every rule. Raises :class:`UsageError`, :class:`~engine.decoding.decoders.MissingDecoder`."""
        for rule in self.rules:
            self._prepared[rule] = prepared(rule)

    def rule_for(self, topic: str, tag: str | None, properties: Mapping[str, str]) -> DecodingRule | None:
        """Return the rule that decides about a message; None if there is none."""
        if self.needs_properties:
            return next((rule for rule in self.rules if rule.matches(topic, tag, properties)), None)
        if topic not in self._by_topic:
            if len(self._by_topic) > 10_000:
                self._by_topic.clear()
            self._by_topic[topic] = next((rule for rule in self.rules if rule.matches(topic, None, {})), None)
        return self._by_topic[topic]

    def decode_unit(self, unit: Unit) -> DecodedBody:
        """Return the decoded body of a unit; of a batch the list of its messages' values."""
        if self._last is not None and self._last[0] is unit:
            return self._last[1]
        if self.needs_properties:
            body = self.decode_message(unit.topic, unit.tags, unit.properties, unit.body, unit.sys_flag)
        else:
            body = self.decode_message(unit.topic, None, {}, unit.body, unit.sys_flag)
        self._last = unit, body
        return body

    def decode_message(
        self, topic: str, tag: str | None, properties: Mapping[str, str], stored: bytes, sys_flag: int
    ) -> DecodedBody:
        """Return the decoded body of a message; ``tag`` and ``properties`` count if :attr:`needs_properties`."""
        rule = self.rule_for(topic, tag, properties)
        if rule is None:
            if topic not in self.topics_without_rule and len(self.topics_without_rule) < MAX_SAMPLES:
                self.topics_without_rule[topic] = stored[:MAX_SAMPLE_BYTES], sys_flag
            return NO_RULE
        body = self.decode(rule, stored, sys_flag)
        if body.error:
            self.failed_count += 1
        return body

    def decode(self, rule: DecodingRule, stored: bytes, sys_flag: int = 0) -> DecodedBody:
        """Return a stored body as ``rule`` reads it."""
        decode = self._prepared.get(rule)
        if decode is None:
            try:
                decode = prepared(rule)
            except StoreError as error:
                decode = error.what if error.file is None else str(error)
            self._prepared[rule] = decode
        if isinstance(decode, str):
            return DecodedBody(rule.decoder, None, decode)
        try:
            if not sys_flag & (COMPRESSED | INNER_BATCH):
                return DecodedBody(rule.decoder, _decode_one(rule, decode, stored))
            data, note = unpack(stored, sys_flag)
            if note is not None:
                return DecodedBody(rule.decoder, None, note)
            if sys_flag & INNER_BATCH:
                return _decode_batch(rule, decode, data)
            return DecodedBody(rule.decoder, _decode_one(rule, decode, data))
        except BadBody as error:
            return _failed(rule, error)


def _decode_one(rule: DecodingRule, decode: Decode, data: bytes) -> Any:
    if rule.skip:
        if len(data) < rule.skip:
            raise BadBody(sentence("expected {n:,} bytes in front, found {length:,}", n=rule.skip, length=len(data)))
        data = data[rule.skip :]
    if rule.unpack:
        data = _unpacked(data, rule.unpack)
    if len(data) > MAX_BODY_BYTES:
        raise BadBody(
            sentence("bodies are decoded up to {n:,} bytes; this has {length:,}", n=MAX_BODY_BYTES, length=len(data))
        )
    return decode(data)


def _decode_batch(rule: DecodingRule, decode: Decode, data: bytes) -> DecodedBody:
    values = []
    for member in members(data):
        name = sentence("message {n:,} of the batch", n=member.index + 1)
        if not isinstance(member, Member):
            return DecodedBody(rule.decoder, None, sentence("{name}: {problem}", name=name, problem=member.reason))
        try:
            values.append(_decode_one(rule, decode, member.body))
        except BadBody as error:
            return DecodedBody(
                rule.decoder, None, sentence("{name}: {problem}", name=name, problem=_failed(rule, error).error)
            )
    return DecodedBody(rule.decoder, values)


def _failed(rule: DecodingRule, error: BadBody) -> DecodedBody:
    if error.position is None:
        return DecodedBody(rule.decoder, None, error.problem)
    return DecodedBody(rule.decoder, None, sentence("{problem} at byte {n:,}", problem=error.problem, n=error.position))


def _unpacked(data: bytes, kind: str) -> bytes:
    """Return ``data`` unpacked, which is at most one byte longer than what is decoded."""
    if kind not in _WBITS:
        unpacked, note = unpack(data, COMPRESSED | _KIND_NUMBERS[kind] << 8, MAX_BODY_BYTES)
        if note is not None:
            raise BadBody(note)
        return unpacked
    reader = zlib.decompressobj(_WBITS[kind])
    try:
        unpacked = reader.decompress(data, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise BadBody(sentence("not valid {kind}: {problem}", kind=kind, problem=error)) from None
    if len(unpacked) > MAX_BODY_BYTES:
        raise BadBody(sentence("more than {n:,} bytes after unpacking", n=MAX_BODY_BYTES))
    if not reader.eof:
        raise BadBody(sentence("not valid {kind}: the body ends too early", kind=kind), len(data))
    return unpacked


# ---- rules in force --------------------------------------------------------------------------------------------------

_in_force: ContextVar[BodyDecoders | None] = ContextVar("decoders", default=None)


@contextmanager
def decoding_by(rules: Sequence[DecodingRule]) -> Iterator[BodyDecoders]:
    """Read the fields of bodies by ``rules`` within the block, in this thread."""
    decoders = BodyDecoders(rules)
    token = _in_force.set(decoders)
    try:
        yield decoders
    finally:
        _in_force.reset(token)


def decoders_in_force() -> BodyDecoders | None:
    """Return the decoders of the block; None outside."""
    return _in_force.get()


def decode_unit(unit: Unit) -> DecodedBody:
    """Return a unit's body by the rules in force."""
    decoders = _in_force.get()
    return NO_RULE if decoders is None else decoders.decode_unit(unit)


def field_of_body(
    topic: str, tag: str | None, properties: Mapping[str, str], stored: bytes, sys_flag: int, path: Path
) -> Any:
    """:func:`field_of` for a body that is no unit's."""
    decoders = _in_force.get()
    if decoders is None:
        return UNDECODED
    return _value_of(decoders.decode_message(topic, tag, properties, stored, sys_flag), path)


class _Undecoded:
    def __repr__(self) -> str:
        return "UNDECODED"


UNDECODED = _Undecoded()
"""The value of a field of a body that is not decoded: neither present nor absent."""


def field_of(unit: Unit, path: Path) -> Any:
    """Return the value at ``path`` of a unit's body; None if it has none, :data:`UNDECODED` if that is unknown."""
    return _value_of(decode_unit(unit), path)


def _value_of(body: DecodedBody, path: Path) -> Any:
    if not body.is_decoded:
        return UNDECODED
    value = value_at(body.value, path)
    return None if value is ABSENT else value

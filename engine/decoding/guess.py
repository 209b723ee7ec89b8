"""A guess what the bodies of a topic are, by one of them. It is offered to the user, and never applied by itself."""

from __future__ import annotations

import json
from typing import NamedTuple

from engine.codec.compression import unpack
from engine.codec.message import INNER_BATCH
from engine.decoding.bodies import BodyDecoders, DecodedBody
from engine.decoding.rules import DecodingRule, rule_record, topic_pattern
from engine.sentences import sentence
from engine.system_names import TRACE_TOPIC

_PACKED = {b"\x1f\x8b\x08": "gzip", b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}
_CBOR_MARK = b"\xd9\xd9\xf7"
_MAX_SAMPLE_BYTES = 1 << 20


class Guess(NamedTuple):
    """A rule that would decode the sample, and why it is offered."""

    rule: DecodingRule
    why: str

    @property
    def text(self) -> str:
        """The rule as files have it."""
        return json.dumps(rule_record(self.rule), ensure_ascii=False)


def guess(topic: str, stored: bytes, sys_flag: int) -> Guess | None:
    """Return the rule that reads a stored body of ``topic`` best; None if none is likely."""
    data, note = unpack(stored, sys_flag, _MAX_SAMPLE_BYTES)
    if note is not None or not data or sys_flag & INNER_BATCH:
        return None
    pattern, decoders = topic_pattern(topic), BodyDecoders(())
    packing = next((name for magic, name in _PACKED.items() if data.startswith(magic)), "")

    def read(decoder: str) -> tuple[DecodingRule, DecodedBody]:
        rule = DecodingRule(pattern, decoder, unpack=packing)
        return rule, decoders.decode(rule, data)

    if topic == TRACE_TOPIC:
        return Guess(read("trace")[0], sentence("RocketMQ's clients write message traces into this topic"))
    rule, body = read("json")
    if body.is_decoded and isinstance(body.value, dict | list):
        return Guess(rule, sentence("a body is valid JSON"))
    for decoder, title in (("msgpack", "MessagePack"), ("cbor", "CBOR")):
        rule, body = read(decoder)
        is_marked = decoder == "cbor" and data.startswith(_CBOR_MARK)
        if body.is_decoded and (is_marked or _has_names(body.value)):
            return Guess(rule, sentence("a body is valid {format} with named fields", format=title))
    rule, body = read("text")
    if body.is_decoded and _is_readable(body.value):
        return Guess(rule, sentence("a body is text in UTF-8"))
    return None


def _has_names(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(name.isidentifier() for name in value)


def _is_readable(text: object) -> bool:
    return isinstance(text, str) and all(character.isprintable() or character in "\r\n\t" for character in text)

"""Filters of a subscription: applied to the queue's entry first, then to the message's properties
(docs/formats/reading.md#filters; Java: MessageFilter, DefaultMessageFilter, ExpressionMessageFilter).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from engine.codec import properties as props
from engine.codec.java import jhash
from engine.codec.message import check_frame
from engine.store.queue_entry import ExtUnit

_MASK = 0xFFFFFFFF


class MessageFilter(Protocol):
    """Two tests; a message is delivered where both say True."""

    def matches_entry(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """The test on the queue's entry: its tag code (None if that is unknown) and its ext unit."""

    def matches_unit(self, unit: bytes | memoryview) -> bool:
        """The test on the message's bytes."""


class TagFilter:
    """``TagA || TagB``: the low 32 bits of hashes are compared, so collisions pass; ``*`` and an unknown code pass.
    ``codes`` are the hashes that a client gave with the expression: those are compared then.
    """

    def __init__(self, expression: str | None, codes: Iterable[int] | None = None) -> None:
        text = (expression or "").strip()
        self.expression = text or "*"
        tags = (tag.strip() for tag in text.split("||"))
        hashes = (jhash(tag) for tag in tags if tag) if codes is None else codes
        self._codes = frozenset(tag_hash & _MASK for tag_hash in hashes)
        self.passes_all = codes is None and text in {"", "*"}

    def matches_entry(self, tags_code: int | None, ext: ExtUnit | None) -> bool:  # noqa: ARG002
        return tags_code is None or self.passes_all or tags_code & _MASK in self._codes

    def matches_unit(self, unit: bytes | memoryview) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class BloomData:
    """A group's bits in the filter bit maps of ext units, as ``consumerFilter.json`` keeps them."""

    positions: tuple[int, ...]
    bits: int
    born_timestamp: int  # ms: messages stored up to then say nothing about the group

    def may_match(self, ext: ExtUnit) -> bool:
        """False only where the bit map says that the group's expression was not TRUE."""
        bit_map = ext.bit_map
        if ext.store_timestamp <= self.born_timestamp or len(bit_map) * 8 != self.bits:
            return True
        return all(bit_map[bit >> 3] >> (bit & 7) & 1 for bit in self.positions)


class SqlFilter:
    """A SQL92 expression over the message's properties, as RocketMQ evaluates it; with ``bloom`` the ext unit's bit map
    is asked first.

    Raises :class:`engine.errors.BadFilter` for an expression that a broker would refuse.
    """

    def __init__(self, expression: str, bloom: BloomData | None = None) -> None:
        from engine.query.sql92 import compile_sql  # only here: a check without SQL groups starts 20 ms sooner

        self.expression = expression
        self._matches = compile_sql(expression)
        self._bloom = bloom

    def matches_entry(self, tags_code: int | None, ext: ExtUnit | None) -> bool:  # noqa: ARG002
        return self._bloom is None or ext is None or self._bloom.may_match(ext)

    def matches_unit(self, unit: bytes | memoryview) -> bool:
        return self._matches(properties_of(unit))


class BothFilters:
    """Passes what each of ``filters`` lets pass."""

    def __init__(self, *filters: MessageFilter) -> None:
        self._filters = filters

    def matches_entry(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        return all(message_filter.matches_entry(tags_code, ext) for message_filter in self._filters)

    def matches_unit(self, unit: bytes | memoryview) -> bool:
        return all(message_filter.matches_unit(unit) for message_filter in self._filters)


def properties_of(unit: bytes | memoryview) -> dict[str, str]:
    """The properties of a unit's bytes; {} where they are no unit."""
    frame = check_frame(unit, 0, len(unit))
    if isinstance(frame, str):
        return {}
    return props.decode(bytes(unit[frame.properties : frame.size]))

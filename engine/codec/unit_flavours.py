"""The flavours of a message unit, one list: magic number, version, width of the topic's length
(docs/formats/commit-log.md#unit).

What can follow from the list does. What a place must know itself (compiled twins have numbers of their own, a release
has rules of its own) is named in ``tests/engine/codec/test_unit_flavours.py``, which finds every such place: whoever
adds a flavour is told where to look. Widths of hosts are no flavour: two bits of sysFlag say them, in each.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from engine.releases import NAMES


class Flavour(NamedTuple):
    """One form of a unit.

    ``topic_length`` reads and writes the topic's length in front of it, and ``longest_topic`` is the most that it can
    say. ``unread_by`` are releases (as in ``Rules.release``) that take such a unit for damage, ``newer`` is what is
    said of it then. ``label`` says what is special about a store that has such units, in the English that the window
    translates; the plain form has none.
    """

    version: int
    magic: int
    topic_length: struct.Struct
    longest_topic: int
    word: str
    unread_by: tuple[str, ...] = ()
    newer: str = ""
    label: str = ""

    @property
    def topic_width(self) -> int:
        """Bytes of the topic's length."""
        return self.topic_length.size


FLAVOURS = (
    Flavour(1, 0xDAA320A7, struct.Struct(">b"), 127, "V1"),
    Flavour(
        2,
        0xDAA320AB,
        struct.Struct(">h"),
        32_767,
        "V2",
        ("4.9",),
        "a version-2 unit, for topic names over 127 bytes, which RocketMQ 4.9 cannot read",
        "long topics",
    ),
)
BY_MAGIC = {one.magic: one for one in FLAVOURS}
BY_VERSION = {one.version: one for one in FLAVOURS}
MAGICS = tuple(one.magic for one in FLAVOURS)
MAGIC_BYTES = tuple(one.magic.to_bytes(4, "big") for one in FLAVOURS)
PREFIX = bytes(first[0] for first in zip(*MAGIC_BYTES, strict=True) if len(set(first)) == 1)
"""The bytes with which every magic number begins; they differ behind it."""
LONGEST_PROPERTIES = 32_767
"""Bytes, in every flavour: PROPLEN is a signed 16-bit field."""
READ_BY = {release: frozenset(one.magic for one in FLAVOURS if release not in one.unread_by) for release in NAMES}
"""Magic numbers that a release believes."""


def unread_versions(release: str) -> tuple[int, ...]:
    """Versions that ``release`` takes for damage."""
    return tuple(one.version for one in FLAVOURS if release in one.unread_by)

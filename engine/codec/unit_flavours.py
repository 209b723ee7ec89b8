"""The flavours of a message unit in one list: magic number, version, width of the topic's length
(docs/formats/commit-log.md#unit).

Other code derives from the list what it can. Code that must know a flavour itself (compiled twins have their own
numbers, a release has its own rules) is named in ``tests/engine/codec/test_unit_flavours.py``. That test lists
every such place for the next flavour. Widths of hosts are no flavour: two bits of sysFlag give them in every
flavour.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from engine.releases import NAMES


class Flavour(NamedTuple):
    """A version of the unit layout.

    ``topic_length`` reads and writes the topic's length in front of it; ``longest_topic`` is its largest value.
    ``unread_by`` are releases (as in ``Rules.release``) that take such a unit for damage; ``unread_note`` is the
    message about it. ``label`` describes a store that has such units, in the English that the window translates;
    the plain form has none.
    """

    version: int
    magic: int
    topic_length: struct.Struct
    longest_topic: int
    word: str
    unread_by: tuple[str, ...] = ()
    unread_note: str = ""
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
BY_MAGIC = {flavour.magic: flavour for flavour in FLAVOURS}
BY_VERSION = {flavour.version: flavour for flavour in FLAVOURS}
MAGICS = tuple(flavour.magic for flavour in FLAVOURS)
MAGIC_BYTES = tuple(magic.to_bytes(4, "big") for magic in MAGICS)
PREFIX = bytes(column[0] for column in zip(*MAGIC_BYTES, strict=True) if len(set(column)) == 1)
"""The bytes with which every magic number begins."""
MAX_PROPERTIES_BYTES = 32_767
"""Maximum bytes of property text in every flavour: PROPLEN is a signed 16-bit field."""
READ_BY = {
    release: frozenset(flavour.magic for flavour in FLAVOURS if release not in flavour.unread_by) for release in NAMES
}
"""Magic numbers that each release accepts."""


def unread_versions(release: str) -> tuple[int, ...]:
    """Return the versions that ``release`` takes for damage."""
    return tuple(flavour.version for flavour in FLAVOURS if release in flavour.unread_by)

"""Hides keys and hosts in the units of a capsule. A masked text has the length of its original, so every offset stays.

Equal values stay equal within one capsule. Pseudonyms depend on a salt that is drawn for each capsule and stored
nowhere, as in :mod:`engine.rules.masking`, which knows the properties that hold keys, ids and hosts.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from engine.codec.message import Frame
from engine.codec.properties import verify_crc, with_right_crc
from engine.rules.masking import OF_HOSTS, OF_IDS, OF_KEYS, OF_ROCKETMQ, parse_parts

PARTS: Final = ("keys", "hosts", "tables")
"""Parts that can be masked, in the words of ``--mask``. Tables are left out."""
_BORN_HOST = 48
_PORT_BYTES = 4
_ID = re.compile(rb"[0-9A-F]{32}|[0-9A-F]{56}")
_ID_TAIL_DIGITS = 24
"""Digits behind the address in an id: process, class loader, time and counter, or port and offset."""
_MAKER_DIGITS = 12
"""The first of them in a unique key, which name the process; time and counter follow."""
_MIN_HIDDEN_BYTES = 4
"""Shorter words are not searched for in users' properties: they occur by chance."""
_POP_BROKER = 5
"""Position of the broker's name in the words of POP_CK."""
_KEY_NAMES = frozenset(name.encode() for name in OF_KEYS)
_ID_NAMES = frozenset(name.encode() for name in OF_IDS)
_HOST_NAMES = frozenset(name.encode() for name in OF_HOSTS)
_ROCKETMQ_NAMES = frozenset(name.encode() for name in OF_ROCKETMQ)


@dataclass(frozen=True, slots=True)
class CapsuleMasking:
    """The kinds of values to mask, and the salt."""

    keys: bool = False
    hosts: bool = False
    tables: bool = False
    salt: bytes = field(default_factory=lambda: os.urandom(16), repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> CapsuleMasking:
        """Parse words of :data:`PARTS`, separated by commas; raises UsageError for another word."""
        return cls(**parse_parts(text, PARTS))

    @property
    def parts(self) -> list[str]:
        """The masked parts, in the words of ``--mask``."""
        return [name for name in PARTS if getattr(self, name)]

    @property
    def changes_units(self) -> bool:
        """True if units are masked: then index files, damage and rows with keys are left out."""
        return self.keys or self.hosts

    def unit(self, data: bytes, frame: Frame) -> bytes:
        """Return a complete unit with its keys and hosts masked; a right property CRC stays right."""
        changed = bytearray(data)
        if self.hosts:
            for start, stop in ((_BORN_HOST, frame.store_timestamp), (frame.store_timestamp + 8, frame.after_hosts)):
                changed[start : stop - _PORT_BYTES] = self._address(data[start : stop - _PORT_BYTES])
        changed[frame.properties :] = self.properties(data[frame.properties :])
        return with_right_crc(bytes(changed)) if verify_crc(data) else bytes(changed)

    def properties(self, raw: bytes) -> bytes:
        """Return property text with the same length. Hidden words are hidden in users' properties as well."""
        pieces = [piece.partition(b"\x01") for piece in raw.split(b"\x02")]
        masked = [self._value(name, value) for name, _, value in pieces]
        hidden = dict(self._hidden_words(pieces, masked))
        return b"\x02".join(
            name + separator + (new if name in _ROCKETMQ_NAMES else _without(value, hidden))
            for (name, separator, value), new in zip(pieces, masked, strict=True)
        )

    def _value(self, name: bytes, value: bytes) -> bytes:
        if name in _KEY_NAMES and self.keys:
            return b" ".join(self._text(key) for key in value.split(b" "))
        if name in _ID_NAMES:
            return b" ".join(self._id(word) for word in value.split(b" "))
        if name == b"POP_CK" and self.hosts:
            words = value.split(b" ")
            return b" ".join(self._text(word) if n == _POP_BROKER else word for n, word in enumerate(words))
        return self._text(value) if name in _HOST_NAMES and self.hosts else value

    def _id(self, value: bytes) -> bytes:
        """Mask the address in an id (hosts), and which process made it (keys); time, counter and offset stay."""
        if _ID.fullmatch(value) is None:
            return self._text(value) if self.keys else value
        address, tail = value[:-_ID_TAIL_DIGITS], value[-_ID_TAIL_DIGITS:]
        is_offset_id = tail.startswith(b"0000")  # a port has at most two bytes
        if self.keys and not is_offset_id:
            tail = self._text(value[:-_MAKER_DIGITS])[:_MAKER_DIGITS].upper() + tail[_MAKER_DIGITS:]
        if self.hosts:
            address = self._address(bytes.fromhex(address.decode())).hex().upper().encode()
        return address + tail

    def _address(self, address: bytes) -> bytes:
        return self._digest(address)[: len(address)]

    def _text(self, value: bytes) -> bytes:
        """Return hexadecimal digits in the length of ``value``."""
        digits = self._digest(value).hex().encode()
        return (digits * (len(value) // len(digits) + 1))[: len(value)]

    def _digest(self, value: bytes) -> bytes:
        return hashlib.blake2b(value, key=self.salt).digest()

    @staticmethod
    def _hidden_words(
        pieces: Iterable[tuple[bytes, bytes, bytes]], masked: Iterable[bytes]
    ) -> Iterable[tuple[bytes, bytes]]:
        for (_, _, value), new in zip(pieces, masked, strict=True):
            for word, new_word in zip(value.split(b" "), new.split(b" "), strict=True):
                if word != new_word and len(word) >= _MIN_HIDDEN_BYTES:
                    yield word, new_word


def _without(value: bytes, hidden: dict[bytes, bytes]) -> bytes:
    for word in sorted(hidden, key=len, reverse=True):
        value = value.replace(word, hidden[word])
    return value

"""The messages of a load, made quickly: topics, sizes and places in a text are laid out in tables beforehand."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from engine.codec.encode import Message
from engine.lab.load_settings import LoadSettings

if TYPE_CHECKING:
    from engine.lab.load_settings import LoadSettings

_TABLE: Final = 4096
_TEXT: Final = 1 << 16
_TAGS: Final = (b"created", b"paid", b"packed", b"sent", b"returned")
_WORDS: Final = (
    b"please",
    b"leave",
    b"at",
    b"the",
    b"door",
    b"ring",
    b"twice",
    b"fragile",
    b"gift",
    b"before",
    b"noon",
)
_END: Final = b'"}'
_SPREAD: Final = 0x9E3779B97F4A7C15
"""Odd and without a pattern: numbers times it fall evenly among the keys."""


class MessageMaker:
    """The messages of producer ``number``: the same for the same settings."""

    def __init__(self, settings: LoadSettings, number: int) -> None:
        pick = random.Random(f"{settings.seed} {number}")
        self._n = 0
        self._keys = settings.keys
        self._queues = settings.queues
        self._first = number
        self._unique = b"UNIQ_KEY\x01%08X%08X0000%04X" % (settings.seed & 0xFFFFFFFF, pick.getrandbits(32), number)
        largest = settings.body_size + settings.body_spread
        self._text = _text(pick, largest)
        self._topics = _topics(settings, pick)
        sizes = [
            max(0, settings.body_size + pick.randint(-settings.body_spread, settings.body_spread))
            for _ in range(_TABLE)
        ]
        heads = [_head(pick, size) for size in sizes]
        self._heads = heads
        rests = [max(0, size - len(head) - len(_END)) for head, size in zip(heads, sizes, strict=True)]
        self._spans = [slice(start := pick.randrange(_TEXT), start + length) for length in rests]
        self._ends = [_END if head.startswith(b"{") else b"" for head in heads]
        self._tags = [b"TAGS\x01%s\x02" % pick.choice(_TAGS) for _ in range(_TABLE)]

    def one(self) -> Message:
        """The next message."""
        n = self._n
        self._n = n + 1
        row = n & (_TABLE - 1)
        if self._keys:
            raw = b"%s%08X\x02KEYS\x01key-%d\x02%s" % (self._unique, n, n * _SPREAD % self._keys, self._tags[row])
        else:
            raw = b"%s%08X\x02%s" % (self._unique, n, self._tags[row])
        body = self._heads[row] + self._text[self._spans[row]] + self._ends[row]
        return Message(self._topics[row], body, (self._first + n) % self._queues, None, raw)

    def many(self, count: int) -> list[Message]:
        """The next ``count`` messages."""
        make_one = self.one
        return [make_one() for _ in range(count)]


def _text(pick: random.Random, largest: int) -> bytes:
    """Words, long enough for ``largest`` bytes from any place in the first 64 KiB; any part of it is good in JSON."""
    text = b" ".join(pick.choice(_WORDS) for _ in range(8192)) + b" "
    return text * (-(-(_TEXT + largest) // len(text)))


def _head(pick: random.Random, size: int) -> bytes:
    """Return the beginning of a JSON body of ``size`` bytes: an object up to its last text, or, if there is no room
    for one, a number.
    """
    head = b'{"order":%d,"amount":%d.%02d,"city":"%s","note":"' % (
        pick.randrange(10**6),
        pick.randrange(500),
        pick.randrange(100),
        pick.choice((b"Ulm", b"Graz", b"Chur")),
    )
    if len(head) + len(_END) <= size:
        return head
    return b"".join(pick.choice((b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9")) for _ in range(size))


def _topics(settings: LoadSettings, pick: random.Random) -> list[str]:
    """The topic of each row of the table: alike, or the n-th as often as 1/n."""
    names = [settings.topic if settings.topics == 1 else f"{settings.topic}-{n + 1}" for n in range(settings.topics)]
    if len(names) == 1:
        return names * _TABLE
    if settings.zipf:
        shares = list(accumulate(1 / (n + 1) for n in range(len(names))))
        return pick.choices(names, cum_weights=shares, k=_TABLE)
    rows = (names * (-(-_TABLE // len(names))))[: max(_TABLE, len(names))]
    pick.shuffle(rows)
    return rows[:_TABLE]

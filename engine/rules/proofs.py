"""What is known of a stretch of a log in which nothing is wrong: enough for a check to pass over it.

Whoever proves a stretch holds its units against their queue entries, byte by byte, and tells what the index has to hold
for them; a check takes a proof where its own state and the index allow, and walks the stretch itself where they do not.
So it tells the same either way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class ProvenRun(NamedTuple):
    """Units of one queue whose entries are right: ``units`` of them from queue offset ``first`` on; the last one stands
    at ``last_physical`` in the log.
    """

    topic: str
    queue_id: int
    first: int
    units: int
    last_physical: int


class KeySum(NamedTuple):
    """How many index entries there are, and their digest. The number is −1 where nobody looked."""

    entries: int = -1
    digest: str = ""


class KeyDigest:
    """Index entries one after the other as one number: two lists of them are the same where it is."""

    __slots__ = ("_hashes", "_offsets", "count")

    def __init__(self) -> None:
        self._offsets = hashlib.blake2b(digest_size=16)
        self._hashes = hashlib.blake2b(digest_size=16)
        self.count = 0

    def add(self, offsets: npt.NDArray[np.int64], hashes: npt.NDArray[np.integer]) -> None:
        """Entries that lead to ``offsets`` of the log, with the hashes of their keys."""
        self._offsets.update(np.ascontiguousarray(offsets, "<i8").data)
        self._hashes.update(np.ascontiguousarray(hashes, "<i4").data)
        self.count += len(offsets)

    @property
    def text(self) -> str:
        """The number, as hex digits."""
        return self._offsets.hexdigest() + self._hashes.hexdigest()

    @property
    def sum(self) -> KeySum:
        """Count and digest of the entries so far."""
        return KeySum(self.count, self.text)


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything that begins in [``first``, ``behind``) (offsets into the log) is a good unit where it says it stands,
    or a blank; store times (ms) do not fall from ``first_time`` to ``last_time``; every unit that belongs
    into a queue has its entry. Where the store has an index, it has to hold the entries of ``keys`` for these units, or
    those of ``keys_and_tags`` (docs/formats/index-file.md#keys: RocketMQ 5.4 and later add tag entries).

    ``first_size`` is the first unit's (bytes), ``blank`` the place and size of the blank at the end, None without one.
    """

    first: int
    behind: int
    units: int
    first_size: int
    first_time: int
    last_time: int
    blank: tuple[int, int] | None
    runs: tuple[ProvenRun, ...]
    keys: KeySum
    keys_and_tags: KeySum


class ProofLine:
    """Proofs in the order of the log, asked for by somebody who goes along it; one is in memory at a time."""

    def __init__(self, proofs: Iterable[Proof] = ()) -> None:
        self._rest = iter(proofs)
        self._next = next(self._rest, None)

    def at(self, offset: int) -> Proof | None:
        """The proof of a stretch that begins at ``offset``."""
        self._pass(offset - 1)
        return self._next if self._next is not None and self._next.first == offset else None

    def behind(self, offset: int) -> Proof | None:
        """The first one that begins behind ``offset``."""
        self._pass(offset)
        return self._next

    def _pass(self, offset: int) -> None:
        while self._next is not None and self._next.first <= offset:
            self._next = next(self._rest, None)

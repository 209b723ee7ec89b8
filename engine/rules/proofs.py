"""Proofs that a range of a log has no faults, so that a check can skip it.

A prover compares the units of a range with their queue entries, byte by byte, and states what the index must hold for
them. A check uses a proof if its own state and the index allow, and walks the range itself otherwise. The result is
the same either way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class ProvenRun(NamedTuple):
    """Units of one queue whose entries are right: ``units`` of them from queue offset ``first_offset`` on; the last
    one is at ``last_physical`` in the log.
    """

    topic: str
    queue_id: int
    first_offset: int
    units: int
    last_physical: int


class KeySum(NamedTuple):
    """Number of index entries, and their digest. The number is −1 if they were not counted."""

    entries: int = -1
    digest: str = ""


class KeyDigest:
    """Digest of a sequence of index entries: equal digests mean equal sequences."""

    __slots__ = ("_hashes", "_offsets", "count")

    def __init__(self) -> None:
        self._offsets = hashlib.blake2b(digest_size=16)
        self._hashes = hashlib.blake2b(digest_size=16)
        self.count = 0

    def add(self, offsets: npt.NDArray[np.int64], hashes: npt.NDArray[np.integer]) -> None:
        """Add entries that point to ``offsets`` of the log, with the hashes of their keys."""
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
    """Everything that begins in [``start_offset``, ``end_offset``) (offsets into the log) is a good unit at its own
    offset, or a blank.

    Store times (ms) do not fall from ``first_time`` to ``last_time``; every unit that belongs into a queue has its
    entry. If the store has an index, it must hold the entries of ``keys`` for these units, or those of
    ``keys_and_tags`` (docs/formats/index-file.md#keys: RocketMQ 5.4 and later add tag entries).

    ``first_size`` is the first unit's size (bytes), ``blank`` the place and size of the blank at the end, None without
    one.
    """

    start_offset: int
    end_offset: int
    units: int
    first_size: int
    first_time: int
    last_time: int
    blank: tuple[int, int] | None
    runs: tuple[ProvenRun, ...]
    keys: KeySum
    keys_and_tags: KeySum


class ProofLine:
    """Proofs in the order of the log, read along with a walk; only one is in memory at a time."""

    def __init__(self, proofs: Iterable[Proof] = ()) -> None:
        self._rest = iter(proofs)
        self._next = next(self._rest, None)

    def at(self, offset: int) -> Proof | None:
        """The proof of a range that begins at ``offset``."""
        self._pass(offset - 1)
        return self._next if self._next is not None and self._next.start_offset == offset else None

    def behind(self, offset: int) -> Proof | None:
        """The first proof that begins behind ``offset``."""
        self._pass(offset)
        return self._next

    def _pass(self, offset: int) -> None:
        while self._next is not None and self._next.start_offset <= offset:
            self._next = next(self._rest, None)

"""Traces a key through the index: hash, slot, chain over all files, and the units at its end
(docs/formats/index-file.md#insert, #query).

RocketMQ returns every offset whose hash is the key's. This module follows each entry to its unit, so it can tell a
collision from a match, and reports chains that loop, leave the file or lead to missing bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codec import index as codec
from engine.codec import index_keys
from engine.codec.index_keys import IndexType
from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.errors import StoreError
from engine.inspection.index_reader import IndexReader
from engine.sentences import plural, sentence
from engine.times import time_text

if TYPE_CHECKING:
    from engine.inspection.rocksdb_index import RocksIndex
    from engine.inspection.snapshot import StoreSnapshot


MAX_TIME_MS = (1 << 63) - 1
MAX_FOLLOWED_ENTRIES = 100_000
"""Entries of a chain that are followed."""
DEFAULT_MAX = 32


@dataclass(frozen=True, slots=True)
class TraceFile:
    """An index file: ``chosen`` is True if its entries are searched, ``why`` is the reason for or against it.

    ``damaged``: it was skipped because it cannot be parsed, not because of its times.
    """

    file: str
    chosen: bool
    why: str
    begin_timestamp: int = 0
    end_timestamp: int = 0
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A slot or an entry on the way. ``entry`` of a slot step is the newest entry it names; ``verdict`` as in the
    contract.
    """

    file: str
    kind: str
    slot: int
    entry: int
    key_hash: int
    phy_offset: int | None
    store_timestamp: int | None
    prev: int | None
    verdict: str
    key: str | None = None  # of an entry: topic#key of its unit, if that is not the requested one
    why: str | None = None  # of a message in the window that the query misses: the reason


@dataclass(frozen=True, slots=True)
class Match:
    """A unit that has the key and the topic."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class TraceEnd:
    """End of a trace; ``complete`` is False if the maximum cut the walk or a chain could not be followed to its end."""

    matches: int
    steps: int
    complete: bool


Traced = TraceFile | TraceStep | Match | TraceEnd


def trace(
    store: StoreSnapshot,
    topic: str,
    key: str,
    begin: int = 0,
    end: int = MAX_TIME_MS,
    max_count: int = DEFAULT_MAX,
    index_type: IndexType | None = None,
) -> Iterator[Traced]:
    """Yield every file, step and match for ``topic``/``key`` in the window [begin, end] ms, newest first, then a
    :class:`TraceEnd`.

    With type T ``key`` is the whole value of a unit's TAGS. Without a type it is the text that the index hashes behind
    ``topic#``: a key, a unique key, or ``T#`` and tags.
    """
    rocksdb_index = store.index.rocksdb
    if rocksdb_index is not None:
        text = index_keys.key_text(key, index_type)
        yield from _trace_rows(rocksdb_index, topic, text, index_type, begin, end, max_count)
        return
    walk = _Walk(store, topic, index_keys.key_text(key, index_type), index_type, begin, end, max_count)
    for reader in reversed(store.index_files()):
        chosen = walk.choose(reader)
        yield chosen
        if chosen.chosen:
            yield from walk.chain(reader)
    yield TraceEnd(walk.matches, walk.steps, walk.complete and not store.unread)


def _trace_rows(
    index: RocksIndex, topic: str, text: str, index_type: IndexType | None, begin: int, end: int, max_count: int
) -> Iterator[Traced]:
    """Yield the units that rows of a RocksDB lead to; the trace is incomplete if rows may be missing."""
    matches = steps = 0
    complete = index.is_complete()
    for _, unit in index.units(topic, text, index_type, begin, end):
        if matches >= max_count:
            complete = False
            break
        steps += 1
        if unit is not None:
            matches += 1
            yield Match(unit)
    yield TraceEnd(matches, steps, complete)


class _Walk:
    """The search for one key through the index files, newest first."""

    def __init__(
        self,
        store: StoreSnapshot,
        topic: str,
        key: str,
        index_type: IndexType | None,
        begin: int,
        end: int,
        max_count: int,
    ) -> None:
        self._store = store
        self._topic, self._key, self._index_type = topic, key, index_type
        self._begin, self._end, self._max = begin, end, max_count
        self._hash = index_key_hash(topic, key)
        self._match_offsets: set[int] = set()
        self._is_window_begun = False
        self._settle_start = store.commit_log.settle_start
        self.steps = 0
        self.complete = True

    @property
    def matches(self) -> int:
        return len(self._match_offsets)

    def choose(self, reader: IndexReader) -> TraceFile:
        """Choose files as RocketMQ does: newest first, by overlap of times; none before the file in which the window
        begins.
        """
        try:
            header = reader.header
        except StoreError as error:
            self.complete = False
            return TraceFile(reader.name, False, sentence("cannot be read: {error}", error=error.what), damaged=True)
        file_begin, file_end = header.begin_timestamp, header.end_timestamp
        if len(self._match_offsets) >= self._max:
            self.complete = False
            why = plural("{n} match was found before it", "{n} matches were found before it", n=self._max)
            return TraceFile(reader.name, False, why, file_begin, file_end)
        if self._is_window_begun:
            why = sentence("the walk ended with the file that the window begins in")
            return TraceFile(reader.name, False, why, file_begin, file_end)
        self._is_window_begun = file_begin < self._begin
        if not codec.time_matched(header, self._begin, self._end):
            why = sentence("ends before the window begins")
            if file_begin > self._end:
                why = sentence("begins after the window ends")
            return TraceFile(reader.name, False, why, file_begin, file_end)
        if reader.geometry is None:
            self.complete = False
            return TraceFile(reader.name, False, reader.geometry_source, file_begin, file_end, damaged=True)
        return TraceFile(reader.name, True, _overlap_words(header, self._begin, self._end), file_begin, file_end)

    def chain(self, reader: IndexReader) -> Iterator[TraceStep | Match]:
        header, slots = reader.header, reader.slots
        slot = self._hash % slots
        number = reader.slot(slot)
        count = max(header.index_count, 1)
        verdict = "empty" if number == 0 else "beyondCount" if not 0 < number <= count or count <= 1 else "match"
        yield self._step(TraceStep(reader.name, "slot", slot, number, self._hash, None, None, number, verdict))
        if verdict != "match":
            self.complete &= verdict == "empty"
            return
        visited: set[int] = set()
        while True:
            if number in visited:
                self.complete = False
                yield self._step(TraceStep(reader.name, "entry", slot, number, self._hash, None, None, None, "loop"))
                return
            visited.add(number)
            entry = reader.entry(number)
            if entry is None:
                self.complete = False
                yield self._step(
                    TraceStep(reader.name, "entry", slot, number, self._hash, None, None, None, "beyondCount")
                )
                return
            time = codec.entry_time(header, entry)
            verdict, unit, other_key = self._judge(entry, time)
            why = self._why_hidden(entry, time) if verdict == "outOfTime" else None
            yield self._step(
                TraceStep(
                    reader.name,
                    "entry",
                    slot,
                    number,
                    entry.key_hash,
                    entry.phy_offset,
                    time,
                    entry.prev,
                    verdict,
                    other_key,
                    why,
                )
            )
            if verdict == "match" and unit is not None and unit.offset not in self._match_offsets:
                self._match_offsets.add(unit.offset)
                yield Match(unit)
                if len(self._match_offsets) >= self._max:
                    self.complete = False
                    return
            if entry.time_diff < 0 or time < self._begin:
                yield from self._missed_entries(reader, slot, entry.prev, visited)
                return
            if not codec.chain_continues(entry.prev, number, count):
                yield from self._bad_link(reader.name, slot, number, entry.prev)
                return
            number = entry.prev

    def _missed_entries(self, reader: IndexReader, slot: int, number: int, visited: set[int]) -> Iterator[TraceStep]:
        """Yield the entries behind the one at which a broker stops, if they point to messages of the window.

        The broker misses them, because an entry's time counts from the file's first unit in whole seconds.
        """
        header = reader.header
        while number > 0 and number not in visited and len(visited) < MAX_FOLLOWED_ENTRIES:
            visited.add(number)
            entry = reader.entry(number)
            if entry is None:
                return
            time = codec.entry_time(header, entry)
            if entry.time_diff >= 0 and time < self._begin - 1000:
                return
            why = self._why_hidden(entry, time) if entry.key_hash == self._hash else None
            if why is not None:
                yield self._step(
                    TraceStep(
                        reader.name,
                        "entry",
                        slot,
                        number,
                        entry.key_hash,
                        entry.phy_offset,
                        time,
                        entry.prev,
                        "outOfTime",
                        None,
                        why,
                    )
                )
            number = entry.prev

    def _why_hidden(self, entry: codec.IndexEntry, time: int) -> str | None:
        """Return why a query misses the unit of ``entry``; None if it is outside the window or has another key."""
        unit = self._store.log.seen_at(entry.phy_offset, crc=False)
        if not isinstance(unit, Unit) or not self._begin <= unit.store_timestamp <= self._end:
            return None
        if unit.topic != self._topic or (self._key != unit.unique_key and self._key not in unit.keys):
            return None
        return sentence(
            "the message at {offset:,} was stored {stored}, and the index keeps whole seconds and says {indexed}: "
            "before the window, so a query of this window misses it",
            offset=unit.offset,
            stored=time_text(unit.store_timestamp),
            indexed=time_text(time),
        )

    def _bad_link(self, file: str, slot: int, number: int, prev: int) -> Iterator[TraceStep]:
        if prev == 0:
            return
        self.complete = False
        verdict = "loop" if prev == number else "beyondCount"
        yield self._step(TraceStep(file, "entry", slot, prev, self._hash, None, None, None, verdict))

    def _judge(self, entry: codec.IndexEntry, time: int) -> tuple[str, Unit | None, str | None]:
        if entry.key_hash != self._hash:
            return "hashDiffers", None, self._other_key(entry)
        if entry.time_diff < 0 or not self._begin <= time <= self._end:
            return "outOfTime", None, None
        if entry.phy_offset >= self._settle_start:
            self._store.commit_log.settle_end()
        unit = self._store.log.seen_at(entry.phy_offset) if entry.phy_offset < self._store.log.max_offset else None
        if not isinstance(unit, Unit):
            return "gone", None, None
        if unit.topic == self._topic and index_keys.has_key(unit.properties, self._key, self._index_type):
            return "match", unit, None
        return "collision", unit, _key_of(unit, entry.key_hash)

    def _other_key(self, entry: codec.IndexEntry) -> str | None:
        unit = self._store.log.unit_at(entry.phy_offset, crc=False)
        return _key_of(unit, entry.key_hash) if isinstance(unit, Unit) else None

    def _step(self, step: TraceStep) -> TraceStep:
        self.steps += 1
        return step


def indexed_keys(unit: Unit) -> list[str]:
    """Return the keys that every release puts into the index for a unit: the unique key first, then each of KEYS."""
    return [key.text for key in index_keys.index_keys(unit.properties, tags=False)]


def _key_of(unit: Unit, key_hash: int) -> str | None:
    """Return ``topic#key`` for the key or tags of the unit with this hash, or None."""
    key = index_keys.find_key_of_hash(unit.topic, unit.properties, key_hash)
    return None if key is None else f"{unit.topic}#{key.text}"


def _overlap_words(header: codec.IndexHeader, begin: int, end: int) -> str:
    file_begin, file_end = header.begin_timestamp, header.end_timestamp
    if begin < file_begin and end > file_end:
        return sentence("the file lies inside the window")
    if file_begin <= begin <= file_end and file_begin <= end <= file_end:
        return sentence("the window lies inside the file")
    if file_begin <= begin <= file_end:
        return sentence("the window begins inside the file")
    return sentence("the window ends inside the file")

"""Reports the units that the search found: what each one is, where it lies, and how sure that is
(docs/formats/salvage.md).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import Literal, NamedTuple

from engine.callbacks import Cancelled
from engine.codec import dledger
from engine.codec import properties as props
from engine.codec.crc import crc32
from engine.codec.message import PREPARED, ROLLBACK, Unit, check_frame, decode_frame
from engine.codec.unit_search import (
    MAX_TAIL_BYTES,
    PAGE_BYTES,
    STORE_HOST_END_BYTES,
    UnitTail,
    names_other_host,
    read_store_host,
    read_tail,
)
from engine.errors import CannotRead, Undecoded
from engine.inspection.lost_units import LostUnit, entries_into, lost_units
from engine.inspection.salvage.own_copies import OwnCopies
from engine.inspection.salvage.reassembly import Piece, Reassembled, Reassembly
from engine.inspection.salvage.run_search import RunSearch
from engine.inspection.salvage.searched_files import Source, image_source, own_sources
from engine.inspection.salvage.store_units import StoreUnits, walk_store
from engine.inspection.salvage.unit_tables import HeadFragment, SearchResult, UnitRun
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.mapped.image_file import ImageFile
from engine.sentences import msgid

Verdict = Literal["whole", "reassembled", "conflict", "inBody", "unproven", "damaged", "head", "tail", "lost"]
"""``whole``: all bytes in one place; ``reassembled``: from several places; ``conflict``: whole, but the store has
another message at that offset or for that queue offset; ``inBody``: whole, but in the body of another message;
``unproven``:
whole, but nothing except its lengths says so; ``damaged``: its bytes are at their place, some of them wrong; ``head``,
``tail``: the beginning or end without the rest; ``lost``: only its queue entry is known.
"""
COMPLETE: frozenset[Verdict] = frozenset({"whole", "reassembled"})
"""Verdicts of units that are certainly messages of this log."""
WORDS: dict[Verdict, str] = {
    "whole": "all bytes are there, in one place",
    "reassembled": "all bytes are there, in several places",
    "conflict": "whole, but the store has another message there: of another time or another store",
    "inBody": "whole, but probably a copy in the body of another message",
    "unproven": "whole by its lengths, but nothing around it proves that it is a message of this log",
    "damaged": "some of its bytes are wrong",
    "head": "the beginning of a message; its end was not found",
    "tail": "the end of a message; its beginning was not found",
    "lost": "only its queue entry is known; its bytes were not found",
}
EVIDENCE_WORDS = {
    "magic": "magic code",
    "lengths": "all lengths agree",
    "bodyCrc": msgid("body CRC"),
    "propertyCrc": msgid("property CRC"),
    "ownPlace": msgid("its offset is its place in the file"),
    "unitBefore": msgid("a unit ends where it begins"),
    "unitBehind": msgid("a unit begins where it ends"),
    "queueEntry": msgid("its queue entry"),
    "storeHost": msgid("host of this store"),
    "missingInLog": msgid("missing in the log"),
    "beforeLog": msgid("in front of the log"),
    "behindLog": msgid("behind the end of the log"),
    "noBodyCrc": "no body CRC stored",
    "otherStoreHost": "another host",
    "otherUnitInStore": "the store has another message there",
    "otherUnitThere": "another message, which its queue entry names, was there",
    "likelierUnit": "another message is likelier there",
    "otherLog": "its host writes another log",
    "queueEntryElsewhere": "its queue has another message at that number",
    "insideUnit": "inside another message",
    "endNotProven": "its end may be other bytes",
    "noEnd": "end not found",
    "noHead": "beginning not found",
}
"""Short words for each sign in ``evidence`` and ``doubts``."""
MAX_LOST = 10_000
"""Maximum number of lost messages that are listed for one range of damage."""
_CHUNK_BYTES = 1 << 18
_MAX_NEIGHBOURS = 8


class Place(NamedTuple):
    """The place of bytes of a unit."""

    file: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A unit or fragment that the store does not have. Absent fields are None; ``data`` is that of a whole unit.

    ``evidence`` speaks for it, ``doubts`` against it. Of several contents for the same offset, ``rank`` is 1 for the
    likeliest; ``ties`` is the number of others with the same rank. ``copies`` are further places with the same bytes.
    """

    verdict: Verdict
    physical_offset: int | None
    size: int | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    keys: list[str]
    unique_key: str | None
    store_timestamp: int | None
    store_host: str | None
    places: tuple[Place, ...]
    evidence: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    rank: int = 1
    rivals: int = 0
    ties: int = 0
    copies: tuple[Place, ...] = ()
    data: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class _Candidate:
    """A whole unit at one place or several."""

    offset: int
    data: bytes
    pieces: tuple[Piece, ...]
    is_reassembled: bool = False
    in_damaged: bool = False
    is_enclosed: bool = False
    is_end_open: bool = False
    has_unit_before: bool = False
    has_unit_behind: bool = False
    own_copy: Place | None = None
    """The place in a compacted queue or tiered storage of the store, where it has another offset."""
    copies: list[Piece] = field(default_factory=list)


class SalvageSearch:
    """Searches a store's own files and ``images`` for what the store does not have.

    :meth:`run` reads everything; :meth:`rows` yields the rows in the order of the log, fragments last. ``counts`` has
    the number of rows of each verdict then.
    """

    def __init__(self, store: StoreSnapshot, images: Sequence[ImageFile]) -> None:
        self._store = store
        self._images = images
        self._units = StoreUnits()
        self._sources: list[Source] = []
        self._result = SearchResult()
        self._reassembly: Reassembly | None = None
        self._queues: dict[tuple[str, int], AnyQueue | None] = {}
        self._starts: set[int] = set()
        self._ends: set[int] = set()
        self._doubtful: set[tuple[int, int]] = set()
        self._other_hosts: set[bytes] = set()
        self._pieces: list[tuple[int, int, int]] = []
        self.counts: Counter[Verdict] = Counter()
        self.live_count = 0
        """Units in the images that are left out, because the store has the same bytes at their offset."""

    @property
    def bytes_to_read(self) -> int:
        """Bytes of the log and of all images."""
        return self._store.log.sequence.total_size + sum(image.size for image in self._images)

    def run(self, on_progress: Callable[[int], None], cancelled: Cancelled | None = None) -> None:
        """Search. ``on_progress`` gets the bytes done of :attr:`bytes_to_read`; what it raises ends the search."""
        self._units = walk_store(self._store, on_progress, with_digests=bool(self._images))
        self._sources = [*own_sources(self._store, self._units), *(image_source(image) for image in self._images)]
        search = RunSearch(self._store.log, self._units)
        done = self._store.log.sequence.total_size
        for number, source in enumerate(self._sources):
            is_image = source.start_offset is None
            search.search(source, number, lambda count: on_progress(done + (count if is_image else 0)))  # noqa: B023
            done += source.file.size if is_image else 0
        self._result = search.result()
        for run in self._live_runs():
            self._result.runs.append(1, *run)
        self._reassembly = Reassembly(self._sources, self._units, self._result)
        self._reassembly.run(lambda _done, _all: on_progress(done), cancelled)

    def _note_unit_borders(self) -> None:
        """Note where whole units begin and end: a unit between them is likely to be of the same log."""
        assert self._reassembly is not None
        runs = [run for run in self._result.runs if not run.in_damaged]
        self._starts = {run.physical_offset for run in runs} | {unit.offset for unit in self._reassembly.units}
        pieces = [piece for unit in self._reassembly.units for piece in unit.pieces]
        self._pieces = sorted((piece.source, piece.position, piece.position + piece.size) for piece in pieces)
        self._ends = {run.end_offset for run in runs} | {unit.end for unit in self._reassembly.units}

    def _live_runs(self) -> Iterator[UnitRun]:
        for number, source in enumerate(self._sources):
            start = source.start_offset
            if start is None:
                continue
            for live_start, live_stop in self._units.live:
                begin, end = max(live_start, start), min(live_stop, start + source.file.size)
                if begin < end:
                    yield UnitRun(number, begin - start, begin, end - begin, 0, is_live=True)

    # -- rows

    def rows(self) -> Iterator[Salvaged]:
        """Yield the rows in the order of the log, fragments last."""
        self.counts.clear()
        self._note_unit_borders()
        self.live_count = sum(run.unit_count for run in self._result.runs if run.is_live)
        self._doubtful = set(self._units.doubtful)
        self._other_hosts = self._hosts_of_other_logs()
        complete: set[int] = {offset for offset, _ in self._doubtful}
        listed: set[int | None] = set()
        for row in _without_overlapped(self._whole_rows(), self._claimed_ranges()):
            if row.verdict in COMPLETE and row.physical_offset is not None:
                complete.add(row.physical_offset)
            listed.add(row.physical_offset)
            yield from self._counted([row])
        damaged = {row.physical_offset: row for row in self._damaged(complete)}
        yield from self._counted(damaged[offset] for offset in sorted(damaged, key=lambda offset: offset or 0))
        yield from self._counted(self._heads(listed | complete | damaged.keys()))
        damaged_ends = {(row.physical_offset or 0) + (row.size or 0) for row in damaged.values()}
        yield from self._counted(self._tails(damaged_ends))

    def _hosts_of_other_logs(self) -> set[bytes]:
        """Return hosts that no unit of the store names, and of which a unit lies where the log has one of its own."""
        own: list[tuple[int, int]] = []
        strangers: list[tuple[bytes, UnitRun]] = []
        if not self._units.hosts:
            return set()
        for run in sorted(self._result.runs, key=lambda run: run.physical_offset):
            if run.is_live or run.in_damaged:
                continue
            host = read_store_host(self._sources[run.source].file.read(run.position, STORE_HOST_END_BYTES))
            if host in self._units.hosts:
                own.append((run.physical_offset, run.end_offset))
            else:
                strangers.append((host, run))
        starts, ends = [start for start, _ in own], list(accumulate((end for _, end in own), max))
        hosts = set()
        for host, run in strangers:
            index = bisect_left(starts, run.end_offset) - 1
            is_beside_own = index >= 0 and ends[index] > run.physical_offset
            if is_beside_own or self._units.overlaps(run.physical_offset, run.end_offset):
                hosts.add(host)
        return hosts

    def _claimed_ranges(self) -> list[tuple[int, int]]:
        """Return the bytes of damage that queue entries claim, ascending: what else lies there is of another time."""
        ranges = {
            (entry.offset, entry.offset + entry.size)
            for offset, size in self._damaged_ranges()
            for entry in entries_into(self._store, offset, offset + size, MAX_LOST)
        }
        return sorted(ranges)

    def _whole_rows(self) -> Iterator[Salvaged]:
        for _, group in groupby(self._candidates(), key=lambda candidate: candidate.offset):
            candidates = [candidate for candidate in group if not self._is_live(candidate)]
            if candidates:
                yield from self._ranked(candidates)

    def _counted(self, rows: Sequence[Salvaged] | Iterator[Salvaged]) -> Iterator[Salvaged]:
        for row in rows:
            self.counts[row.verdict] += 1
            yield row

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield every whole unit that is not live, by its offset in the log."""
        runs = sorted((run for run in self._result.runs if not run.is_live), key=lambda run: run.physical_offset)
        enclosed = self._enclosed_runs()
        assert self._reassembly is not None
        reassembled = sorted(self._reassembly.units, key=lambda unit: unit.offset)
        heap: list[tuple[int, int, _Candidate, Iterator[_Candidate]]] = []
        sequence = [
            *((run.physical_offset, self._units_of(run, is_enclosed=run in enclosed)) for run in runs),
            *((unit.offset, self._reassembled([unit])) for unit in reassembled),
            *self._open_ends(),
            *((candidate.offset, iter([candidate])) for candidate in self._own_copies()),
        ]
        sequence.sort(key=lambda item: item[0])
        index = 0
        while heap or index < len(sequence):
            while index < len(sequence) and (not heap or sequence[index][0] <= heap[0][0]):
                first = next(sequence[index][1], None)
                if first is not None:
                    heapq.heappush(heap, (first.offset, index, first, sequence[index][1]))
                index += 1
            if not heap:
                continue
            _, number, candidate, iterator = heapq.heappop(heap)
            yield candidate
            following = next(iterator, None)
            if following is not None:
                heapq.heappush(heap, (following.offset, number, following, iterator))

    def _own_copies(self) -> Iterator[_Candidate]:
        """Yield lost units of which a compacted queue or tiered storage of the store has a copy."""
        copies = OwnCopies(self._store)
        if not copies:
            return
        for offset, size in self._damaged_ranges():
            for lost in lost_units(self._store, offset, size, MAX_LOST):
                copy = None if self._units.overlaps(lost.offset, lost.offset + 1) else copies.find(lost)
                if copy is not None:
                    place = Place(copy.file, copy.position, len(copy.data))
                    yield _Candidate(lost.offset, copy.data, (), own_copy=place)

    def _damaged_ranges(self) -> list[tuple[int, int]]:
        return [*((item.offset, item.size) for item in self._units.damage if not item.unread), *self._units.bad]

    def _is_live(self, candidate: _Candidate) -> bool:
        """Return True if the store has the same bytes at that offset; the search compares only a few of a block."""
        is_read = self._units.overlaps(candidate.offset, candidate.offset + 1)
        if not is_read and (candidate.offset, len(candidate.data)) not in self._doubtful:
            return False
        is_live = self._store.log.read(candidate.offset, len(candidate.data)) == candidate.data
        self.live_count += is_live
        return is_live

    def _open_ends(self) -> Iterator[tuple[int, Iterator[_Candidate]]]:
        """Yield units of which another reading is not proven, by their offsets."""
        assert self._reassembly is not None
        enclosed, doubtful = self._enclosed_runs(), {offset for offset, _ in self._units.doubtful}
        for run in self._result.open_ends:
            is_read = self._sources[run.source].start_offset == -run.shift and run.physical_offset in doubtful
            if run.physical_offset not in self._reassembly.offsets and not is_read:
                candidates = list(self._units_of(run, is_enclosed=run in enclosed))
                yield run.physical_offset, iter([replace(candidate, is_end_open=True) for candidate in candidates])
        for unit in self._reassembly.open_ends:
            if unit.offset not in self._reassembly.offsets:
                yield unit.offset, self._reassembled([unit], is_end_open=True)

    def _reassembled(self, units: Iterable[Reassembled], *, is_end_open: bool = False) -> Iterator[_Candidate]:
        assert self._reassembly is not None
        for unit in units:
            data = self._reassembly.read(unit)
            yield _Candidate(unit.offset, data, unit.pieces, is_reassembled=True, is_end_open=is_end_open)

    def _units_of(self, run: UnitRun, *, is_enclosed: bool) -> Iterator[_Candidate]:
        file = self._sources[run.source].file
        position, end, data, base = run.position, run.end_position, b"", 0
        while position < end:
            start = position - base
            frame = check_frame(data, start, len(data))
            if isinstance(frame, str):
                size = int.from_bytes(file.read(position, 4), "big")
                data, base = file.read(position, max(min(_CHUNK_BYTES, end - position), size)), position
                start, frame = 0, check_frame(data, 0, len(data))
                if isinstance(frame, str):
                    return  # the file changed since it was searched
            unit_data = data[start : start + frame.size]
            following = data[start + frame.size : start + frame.size + STORE_HOST_END_BYTES]
            yield _Candidate(
                position - run.shift,
                unit_data,
                (Piece(run.source, position, frame.size),),
                in_damaged=run.in_damaged,
                is_enclosed=is_enclosed,
                is_end_open=names_other_host(unit_data, position - run.shift, following, frame, self._units.hosts),
                has_unit_before=position > run.position,
                has_unit_behind=position + frame.size < end,
            )
            position += frame.size + (dledger.HEADER_SIZE if run.has_entries else 0)

    def _enclosed_runs(self) -> set[UnitRun]:
        """Return runs that lie where their neighbours on both sides, which belong together, had something else."""
        enclosed = set()
        by_place = sorted([*self._result.runs, *self._result.open_ends], key=lambda run: (run.source, run.position))
        for number, run in enumerate(by_place):
            if run.is_live:
                continue
            previous_runs = by_place[max(number - _MAX_NEIGHBOURS, 0) : number]
            next_runs = by_place[number + 1 : number + 1 + _MAX_NEIGHBOURS]
            shifts = {
                neighbour.shift
                for neighbour in previous_runs
                if neighbour.source == run.source and neighbour.shift != run.shift
            }
            is_between = any(neighbour.shift in shifts for neighbour in next_runs if neighbour.source == run.source)
            neighbours = [*by_place[max(number - 1, 0) : number], *by_place[number + 1 : number + 2]]
            if (
                is_between
                or any(_breaks_chain(run, neighbour) for neighbour in neighbours)
                or self._in_reassembled(run)
            ):
                enclosed.add(run)
        return enclosed

    def _in_reassembled(self, run: UnitRun) -> bool:
        """Return True if the bytes of ``run`` are a part of a unit that was put together."""
        index = bisect_right(self._pieces, (run.source, run.position, 1 << 62)) - 1
        if index < 0:
            return False
        source, start, stop = self._pieces[index]
        return source == run.source and start <= run.position and run.end_position <= stop

    def _ranked(self, candidates: list[_Candidate]) -> list[Salvaged]:
        """Return the rows for one offset: one for each content, the likeliest first."""
        by_content: dict[tuple[int, int], _Candidate] = {}
        for candidate in candidates:
            known = by_content.setdefault((len(candidate.data), crc32(candidate.data)), candidate)
            if known is not candidate:
                known.copies.extend(candidate.pieces)
                known.own_copy = known.own_copy or candidate.own_copy
                known.in_damaged &= candidate.in_damaged
                known.is_enclosed &= candidate.is_enclosed
                known.has_unit_before |= candidate.has_unit_before
                known.has_unit_behind |= candidate.has_unit_behind
        rows = [self._row(candidate, rivals=len(by_content) - 1) for candidate in by_content.values()]
        rows.sort(key=_likelihood, reverse=True)
        likelihoods = [_likelihood(row) for row in rows]
        ranked = [
            replace(
                row,
                rank=1 + sum(other > likelihood for other in likelihoods),
                ties=sum(other == likelihood for other in likelihoods) - 1,
            )
            for row, likelihood in zip(rows, likelihoods, strict=True)
        ]
        if rows[0].verdict not in COMPLETE:
            return ranked
        if "storeHost" in rows[0].evidence:
            self._other_hosts |= {
                read_store_host(row.data) for row in ranked if row.rank > 1 and "otherStoreHost" in row.doubts
            }
        return [
            replace(row, verdict="conflict", doubts=(*row.doubts, "likelierUnit"))
            if row.rank > 1 and row.verdict in COMPLETE
            else row
            for row in ranked
        ]

    def _row(self, candidate: _Candidate, *, rivals: int) -> Salvaged:
        offset, data = candidate.offset, candidate.data
        frame = check_frame(data, 0, len(data))
        assert not isinstance(frame, str)
        unit = decode_frame(data, 0, frame, offset)
        end = offset + len(data)
        evidence, doubts = ["magic", "lengths"], []
        if unit.crc == "ok":
            evidence.append("bodyCrc")
        elif unit.body_crc == 0:
            doubts.append("noBodyCrc")
        if props.verify_crc(data):
            evidence.append("propertyCrc")
        start_offset, position = None, 0
        if candidate.pieces:
            first = candidate.pieces[0]
            start_offset, position = self._sources[first.source].start_offset, first.position
        is_at_own_place = start_offset is not None and start_offset + position == offset
        is_moved = start_offset is not None and bool((start_offset + position - offset) % PAGE_BYTES)
        if is_at_own_place and not candidate.is_reassembled:
            evidence.append("ownPlace")
        own_places = (candidate.own_copy,) if candidate.own_copy is not None else ()
        if own_places:
            evidence.append("storeCopy")
        if candidate.has_unit_before or offset in self._ends or self._units.overlaps(offset - 1, offset):
            evidence.append("unitBefore")
        if candidate.has_unit_behind or end in self._starts or self._units.overlaps(end, end + 1):
            evidence.append("unitBehind")
        entry_agrees = self._entry_agrees(unit)
        if entry_agrees is not None:
            (evidence if entry_agrees else doubts).append("queueEntry" if entry_agrees else "queueEntryElsewhere")
        if self._units.hosts:
            is_own_host = unit.store_host_raw in self._units.hosts
            (evidence if is_own_host else doubts).append("storeHost" if is_own_host else "otherStoreHost")
        is_of_other_log = unit.store_host_raw in self._other_hosts
        if is_of_other_log:
            doubts.append("otherLog")
        is_in_blank = any(start < end and offset < start + size for start, size in self._units.blanks)
        overlaps = (is_in_blank or self._units.overlaps(offset, end)) and not self._is_seal_broken(offset, len(data))
        begin = max(self._store.log.min_offset, 0)
        in_hole = not overlaps and begin <= offset and end <= self._units.end_offset
        if overlaps:
            doubts.append("otherUnitInStore")
        elif end <= begin:
            evidence.append("beforeLog")
        elif offset >= self._units.end_offset:
            evidence.append("behindLog")
        else:
            evidence.append("missingInLog")
        evidence_of_place = {"ownPlace", "unitBefore", "unitBehind", "queueEntry"}
        is_inside = candidate.in_damaged or candidate.is_enclosed
        verdict: Verdict = "reassembled" if candidate.is_reassembled else "whole"
        if is_inside and not entry_agrees and not (in_hole and entry_agrees is None):
            verdict = "inBody"
            doubts.append("insideUnit")
        elif overlaps or entry_agrees is False or is_of_other_log:
            verdict = "conflict"
        elif candidate.is_end_open and not (entry_agrees and is_moved):
            verdict = "unproven"
            doubts.append("endNotProven")
        elif not evidence_of_place & {*evidence} and ("noBodyCrc" in doubts or not in_hole):
            verdict = "unproven"
        return Salvaged(
            verdict,
            offset,
            unit.size,
            unit.topic,
            unit.queue_id,
            unit.queue_offset,
            unit.keys,
            unit.unique_key,
            unit.store_timestamp,
            unit.store_host,
            (*(self._place(piece) for piece in candidate.pieces), *own_places),
            tuple(evidence),
            tuple(doubts),
            rivals=rivals,
            copies=tuple(self._place(piece) for piece in candidate.copies),
            data=data,
        )

    def _is_seal_broken(self, offset: int, size: int) -> bool:
        """Return True if the store has a unit there whose property CRC says that it was changed."""
        return props.verify_crc(self._store.log.read(offset, size)) is False

    def _place(self, piece: Piece) -> Place:
        return Place(self._sources[piece.source].file.path, piece.position, piece.size)

    def _entry_agrees(self, unit: Unit) -> bool | None:
        """Return whether the queue entry of ``unit`` leads to its offset; None without an entry."""
        if unit.transaction_type in (PREPARED, ROLLBACK):
            return None  # these have none
        key = unit.topic, unit.queue_id
        try:
            if key not in self._queues:
                self._queues[key] = self._store.queues.find(*key)
            queue = self._queues[key]
            entry = queue.entry(unit.queue_offset) if queue is not None and queue.kind == "simple" else None
        except (CannotRead, Undecoded):
            self._queues[key] = None
            return None
        if entry is None or entry.state != "entry" or entry.size <= 0:
            return None
        return entry.physical_offset == unit.offset and entry.size == unit.size

    # -- what is not whole

    def _damaged(self, complete: set[int]) -> Iterator[Salvaged]:
        """Units in the store's own damage, as far as bytes and queue entries say what they were."""
        for offset, size in self._damaged_ranges():
            for lost in lost_units(self._store, offset, size, MAX_LOST):
                if lost.offset not in complete and not self._units.overlaps(lost.offset, lost.offset + 1):
                    yield self._damaged_row(lost)

    def _damaged_row(self, lost: LostUnit) -> Salvaged:
        unit = lost.salvage.unit if lost.salvage is not None else None
        file = self._store.log.sequence.find(lost.offset)
        places = (Place(file.path, lost.offset - file.start_offset, lost.size),) if file is not None and unit else ()
        wrong = tuple(f"wrong:{fault.field}" for fault in lost.wrong)
        if unit is not None and not wrong and unit.crc == "bad":
            wrong = ("wrong:body",)
        return Salvaged(
            "damaged" if unit is not None else "lost",
            lost.offset,
            lost.size,
            lost.topic,
            lost.queue_id,
            lost.queue_offset,
            lost.keys,
            unit.unique_key if unit is not None else None,
            unit.store_timestamp if unit is not None else None,
            unit.store_host if unit is not None else None,
            places,
            ("ownPlace",) if unit is not None else ("queueEntry",),
            wrong,
        )

    def _heads(self, known: set[int | None]) -> Iterator[Salvaged]:
        for fragment in sorted(self._result.heads, key=lambda fragment: fragment.head.physical_offset):
            head = fragment.head
            offset = head.physical_offset
            if offset in known or self._units.overlaps(offset, offset + 1) or fragment.in_damaged:
                continue
            known.add(offset)
            yield self._head_row(fragment)

    def _head_row(self, fragment: HeadFragment) -> Salvaged:
        head, file = fragment.head, self._sources[fragment.source].file
        unit = None
        if fragment.is_bad_body:
            data = file.read(fragment.position, head.size)
            frame = check_frame(data, 0, len(data))
            unit = decode_frame(data, 0, frame, head.physical_offset) if not isinstance(frame, str) else None
        return Salvaged(
            "damaged" if unit is not None else "head",
            head.physical_offset,
            head.size,
            unit.topic if unit is not None else None,
            head.queue_id,
            head.queue_offset,
            unit.keys if unit is not None else [],
            unit.unique_key if unit is not None else None,
            head.store_timestamp,
            unit.store_host if unit is not None else None,
            (Place(file.path, fragment.position, head.size),),
            ("magic", "lengths") if unit is not None else ("magic",),
            ("wrong:body",) if unit is not None else ("noEnd",),
        )

    def _tails(self, damaged_ends: set[int]) -> Iterator[Salvaged]:
        """Ends of units in front of a run; their beginning is not there. Those of damaged units are rows already."""
        assert self._reassembly is not None
        solved_ends = {unit.end for unit in self._reassembly.units}
        ends = {(run.source, run.end_position) for run in self._result.runs}
        for run in sorted(self._result.runs, key=lambda run: (run.source, run.position)):
            if run.in_damaged or run.physical_offset in solved_ends or (run.source, run.position) in ends:
                continue
            offset = run.physical_offset
            if (
                offset in damaged_ends
                or self._units.overlaps(offset - 1, offset)
                or self._sources[run.source].start_offset is not None
            ):
                continue
            file = self._sources[run.source].file
            start = max(run.position - MAX_TAIL_BYTES, 0)
            tail = read_tail(file.read(start, run.position - start))
            if tail is not None:
                yield self._tail_row(tail, run)

    def _tail_row(self, tail: UnitTail, run: UnitRun) -> Salvaged:
        place = Place(self._sources[run.source].file.path, run.position - tail.size, tail.size)
        keys = props.split_keys(tail.properties.get(props.KEYS))
        unique_key = tail.properties.get(props.UNIQUE_KEY)
        return Salvaged(
            "tail",
            None,
            None,
            tail.topic,
            None,
            None,
            keys,
            unique_key,
            None,
            None,
            (place,),
            ("unitBehind",),
            ("noHead",),
        )


def _without_overlapped(rows: Iterator[Salvaged], claimed: Sequence[tuple[int, int]]) -> Iterator[Salvaged]:
    """Yield ``rows`` in their order. A whole unit is a conflict if another one, which its queue entry names, has some
    of its bytes: it is of another time. Only the rows that overlap are held back.
    """
    waiting: deque[Salvaged] = deque()
    named: deque[tuple[int, int]] = deque()
    for row in rows:
        offset = row.physical_offset or 0
        while waiting and _end_of(waiting[0]) <= offset:
            yield _judged(waiting.popleft(), named, claimed)
        first = (waiting[0] if waiting else row).physical_offset or 0
        while named and named[0][1] <= first:
            named.popleft()
        waiting.append(row)
        if row.verdict in COMPLETE and "queueEntry" in row.evidence:
            named.append((offset, _end_of(row)))
    for row in waiting:
        yield _judged(row, named, claimed)


def _judged(row: Salvaged, named: Iterable[tuple[int, int]], claimed: Sequence[tuple[int, int]]) -> Salvaged:
    if row.verdict not in COMPLETE or "queueEntry" in row.evidence:
        return row
    offset, end = row.physical_offset or 0, _end_of(row)
    last = bisect_right(claimed, (end - 1, 1 << 62)) - 1
    is_claimed = last >= 0 and claimed[last][1] > offset
    if not is_claimed and not any(start < end and offset < stop for start, stop in named):
        return row
    return replace(row, verdict="conflict", doubts=(*row.doubts, "otherUnitThere"))


def _end_of(row: Salvaged) -> int:
    return (row.physical_offset or 0) + len(row.data)


def _breaks_chain(run: UnitRun, other: UnitRun) -> bool:
    """Return True if two runs lie back to back within a page, but not in the log: no log is written so."""
    if run.source != other.source or run.shift == other.shift:
        return False
    first, second = (run, other) if run.position < other.position else (other, run)
    return first.end_position == second.position and bool(second.physical_offset % PAGE_BYTES)


def _likelihood(row: Salvaged) -> tuple[int, ...]:
    """Return a sort key: a queue entry counts most, then the store's host, then how well it fits its neighbours."""
    evidence = {*row.evidence}
    return (
        "queueEntry" in evidence,
        "queueEntryElsewhere" not in row.doubts,
        row.verdict in COMPLETE,
        "storeHost" in evidence,
        len(evidence & {"unitBefore", "unitBehind"}),
        "bodyCrc" in evidence,
    )

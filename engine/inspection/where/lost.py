"""Where is a message of which the log shows no unit: expired, cut off, damaged, or never here.

A verdict is given on what the files tell: entries of the index and of queues that lead to places where the unit is no
longer, groups that have read it, and signs that the log was once longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from engine.codec.columns import UnitColumns
from engine.codec.java import index_key_hash
from engine.codec.message import PREPARED, ROLLBACK, Unit, host_text, parse_unique_key
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.counted import in_number
from engine.errors import CorruptUnit, Undecoded
from engine.inspection.block_scan import scan_log
from engine.inspection.byte_scan import places_of
from engine.inspection.entry_verdict import resolve
from engine.inspection.log_reader import LogReader
from engine.inspection.lookup import chained_offsets
from engine.inspection.lost_units import lost_at, was
from engine.inspection.queue_reader import QueueReader
from engine.inspection.where.facts import Evidence, FactFinder, time_text
from engine.rules import where as rules

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


Progress = Callable[[int], None]
MOST_SCANNED = 4 << 30
"""Bytes of the log that are looked through for the first message of a queue."""
NAMED_KEYS = 20
"""Keys that begin with half an id and are named; the others are counted."""
MOST_SPANS = 8
"""Stretches of bytes that are no unit which the evidence names one by one."""
_DAY = 86_400_000
_HOUR = 3_600_000
_LONGEST_MONTH = 32 * _DAY


@dataclass(frozen=True, slots=True)
class WhereResult:
    """The verdict on one message; place and offsets of the unit asked for, else of the message's newest unit."""

    verdict: rules.Verdict
    physical_offset: int | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    evidence: list[Evidence] = field(default_factory=list)
    next_step: str = ""
    routes: tuple[rules.Route, ...] = ()
    life: tuple[rules.LifeStep, ...] = ()
    """What has happened to the message so far; empty where no unit of it can be read."""


class LostFinder:
    """Verdicts on what has no unit in the log of ``store``."""

    def __init__(
        self, store: StoreSnapshot, facts: FactFinder, topic: str | None, progress: Progress | None = None
    ) -> None:
        self._store, self._facts, self._topic, self._progress = store, facts, topic, progress
        self._clients: dict[str, bool] = {}

    # -- an offset id, or a place in the log

    def offset(self, offset: int, said: str) -> WhereResult:
        """No unit begins at the absolute ``offset``; ``said`` is how it was asked for."""
        log = self._store.log
        span = Evidence("commit log", None, log.min_offset, f"holds {log.min_offset:,} to {log.max_offset:,}")
        if offset < log.min_offset:
            return _gone("expired" if offset >= 0 else "neverSeen", [span], offset=offset)
        if offset >= log.max_offset:
            if offset >= log.end_offset + log.sequence.file_size:
                return _gone("neverSeen", [span], offset=offset)
            verdict, signs = self._behind_the_end()
            return self._with_what_was(_gone(verdict, [span, *signs], offset=offset), offset)
        found = log.seen_at(log.align(offset))
        if isinstance(found, Unit) and found.offset < offset < found.end:
            inside = self._facts.at(found, "unit", f"{said} lies inside the unit that begins here")
            overwritten = self._written_after_a_crash(found)
            return _gone("truncated" if overwritten else "neverSeen", [span, inside, *overwritten], offset=offset)
        here = Evidence("commit log", None, offset, "no unit can be read here")
        return self._with_what_was(_gone("damaged", [span, here], offset=offset), offset)

    def _with_what_was(self, result: WhereResult, offset: int) -> WhereResult:
        """The result, with the message that stood in the unreadable bytes at ``offset`` where it can be told."""
        found = lost_at(self._store, offset)
        if found is None:
            return result
        lost = found[1][0]
        told = [Evidence("was", None, lost.offset, was(lost))]
        told += [Evidence("wrong field", None, lost.offset, one.words) for one in lost.wrong]
        return replace(
            result,
            physical_offset=lost.offset if result.physical_offset is None else result.physical_offset,
            evidence=[*result.evidence, *told],
            topic=lost.topic,
            queue_id=lost.queue_id,
            queue_offset=lost.queue_offset,
        )

    def _behind_the_end(self) -> tuple[rules.Verdict, list[Evidence]]:
        if self._store.lock_state == "held":
            return "unknown", [Evidence("lock", None, None, "a broker is running: what it has not written is not here")]
        signs = self._signs_of_a_longer_log()
        return ("truncated" if signs else "neverSeen"), signs

    def _signs_of_a_longer_log(self) -> list[Evidence]:
        """What tells that the log once went on behind its end: no clean stop, or entries and times that lead there."""
        signs = []
        paths = self._store.paths
        if self._store.abort:
            signs.append(Evidence("abort", str(paths.abort) if paths else None, None, "the store was not closed"))
        elif paths and self._store.small_file(paths.abort_bak):
            signs.append(Evidence("abort.bak", str(paths.abort_bak), None, "it was not closed before its last start"))
        for queues in self._store.topics().values():
            for queue in queues.values():
                if queue.raw_end > queue.valid_end:
                    holds = f"{queue.topic}/{queue.queue_id} has entries that point behind the end of the log"
                    return [*signs, Evidence("queue", str(queue.sequence.folders[0]), queue.valid_end, holds)]
        return signs + self._times_behind_the_end()

    def _times_behind_the_end(self) -> list[Evidence]:
        _, last = self._span_of_times
        try:
            checkpoint = self._store.checkpoint()
        except CorruptUnit:
            return []
        if checkpoint is None or last is None:
            return []
        newest = max(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp)
        if newest <= last:
            return []
        holds = f"knows a message of {time_text(newest)}, the newest unit is of {time_text(last)}"
        return [Evidence("checkpoint", None, None, holds)]

    def _written_after_a_crash(self, unit: Unit) -> list[Evidence]:
        """Whether ``unit`` was stored after the start that followed a crash: then it may stand where others were."""
        paths = self._store.paths
        if paths is None or not self._store.small_file(paths.abort_bak):
            return []
        about = self._store.reading.look(paths.abort_bak)
        started = about.st_mtime_ns // 1_000_000 if about is not None else unit.store_timestamp
        if unit.store_timestamp <= started:
            return []
        return [Evidence("abort.bak", str(paths.abort_bak), None, f"a start after a crash at {time_text(started)}")]

    # -- topic/queue/offset

    def queue_place(self, topic: str, queue_id: int, offset: int) -> WhereResult:
        """No unit of the log has this queue offset."""
        try:
            queue = self._store.queue(topic, queue_id)
        except Undecoded as error:
            evidence = [Evidence("queue", error.file, None, error.what)]
            return _gone("unknown", evidence, topic, queue_id, offset)
        readers = [one for one in self._facts.groups_in(topic, queue_id, offset) if one[1].offset > offset]
        if queue is None:
            evidence = [
                Evidence("queue", None, None, f"{topic}/{queue_id} has no folder"),
                *(one for one, _ in readers),
            ]
            expired = bool(readers) and self._store.log.min_offset > 0
            if not expired:
                return self._never_seen(evidence, topic, queue_id, offset)
            return _gone("expired", evidence, topic, queue_id, offset)
        low, high = queue.min_offset, queue.max_offset
        first = self._first_unit(topic, queue_id) if offset >= high and self._store.log.min_offset > 0 else None
        if first is not None and offset < first.queue_offset:
            return self._between_queue_and_log(queue, first, offset)
        folder = str(queue.sequence.folders[0])
        evidence = [Evidence("queue", folder, None, f"holds offsets {low:,} to {high:,}")]
        if 0 <= offset < low:
            return _gone("expired", evidence, topic, queue_id, offset)
        if offset >= high:
            evidence += [one for one, _ in readers]
            verdict = self._behind_the_queue(queue, offset, bool(readers), evidence)
            if verdict == "neverSeen" and offset < queue.max_offset + queue.entries_per_file:
                return self._never_seen(evidence, topic, queue_id, offset)
            gone = _gone(verdict, evidence, topic, queue_id, offset)
            stale = queue.entry(offset)
            if stale is None or stale.state != "entry":
                return gone
            return self._with_what_was(gone, stale.physical_offset)
        entry = queue.entry(offset)
        seen = resolve(self._store.log, topic, queue_id, entry) if entry is not None else None
        what = seen.what if seen and seen.what else "there is no entry"
        if entry is not None and entry.state == "entry":
            what = f"entry {offset:,} points at {entry.physical_offset:,}: {what}"
        elif entry is not None and entry.state == "empty":
            what = f"entry {offset:,} is empty: zero bytes"
        evidence.append(Evidence("queue entry", folder, entry.physical_offset if entry else None, what))
        lost = seen is not None and seen.verdict == "belowMinOffset"
        if entry is not None and seen is not None and seen.verdict == "missing":
            result = _gone("damaged", evidence, topic, queue_id, offset)
            return self._with_what_was(result, entry.physical_offset)
        verdict = "neverSeen" if offset < 0 else "expired" if lost else "damaged"
        return _gone(verdict, evidence, topic, queue_id, offset)

    def _first_unit(self, topic: str, queue_id: int) -> Unit | None:
        """The first unit of the log that belongs into a queue; None where a long log has it far behind its start."""
        log = self._store.log
        topics = TopicTable()
        start = max(log.min_offset, 0)
        for block in scan_log(log, start, start + MOST_SCANNED, crc=False, topics=topics):
            if not isinstance(block, UnitColumns):
                continue
            number = topics.find(topic)
            hits = (block["topic_id"] == number) & (block["queue_id"] == queue_id) if number >= 0 else []
            for offset in block["offset"][hits] if number >= 0 else ():
                unit = log.seen_at(int(offset))
                if isinstance(unit, Unit) and unit.transaction_type not in {PREPARED, ROLLBACK}:
                    return unit
        return None

    def _between_queue_and_log(self, queue: QueueReader, first: Unit, offset: int) -> WhereResult:
        """The queue ends in front of ``offset``, and the first unit that the log has of it comes behind it."""
        log = self._store.log
        holds = (
            f"ends at {queue.max_offset:,}; the log begins at {log.min_offset:,}, and the first message that it has of "
            f"the queue is {first.queue_offset:,}: those in between were in files that retention deleted"
        )
        evidence = [
            Evidence("queue", str(queue.sequence.folders[0]), None, holds),
            self._facts.at(
                first, "unit", f"{queue.topic}/{queue.queue_id}/{first.queue_offset}, the first of its queue"
            ),
        ]
        return _gone("expired", evidence, queue.topic, queue.queue_id, offset)

    def _behind_the_queue(
        self, queue: QueueReader, offset: int, was_read: bool, evidence: list[Evidence]
    ) -> rules.Verdict:
        entry = queue.entry(offset)
        if entry is not None and entry.state == "entry":
            evidence.append(Evidence("queue entry", None, entry.physical_offset, "a stale entry points behind the log"))
            return "truncated"
        if was_read:
            return "truncated"
        if offset >= queue.max_offset + queue.entries_per_file:
            return "neverSeen"
        verdict, signs = self._behind_the_end()
        evidence += signs
        return verdict

    # -- a key

    def key(
        self, text: str, host: bytes | None, unreadable: tuple[int, int] | None, longer: Sequence[str] = ()
    ) -> WhereResult:
        """No unit of the log has this key; ``host`` is the broker that it names if it is an offset id, ``unreadable``
        the first place where it stands in bytes that are no unit, and where those begin, ``longer`` names that begin
        with it.
        """
        evidence = [Evidence("commit log", None, None, "no unit of the log has this key")]
        if host is not None:
            evidence.append(Evidence("id", None, None, f"read as an offset id it names the broker {host_text(host)}"))
        if unreadable is not None:
            place, start = unreadable
            evidence.append(Evidence("commit log", None, place, "the key stands here, in bytes that are no unit"))
            verdict: rules.Verdict = "truncated" if start >= self._store.log.max_offset else "damaged"
            return self._with_what_was(_gone(verdict, evidence, offset=place), place)
        for verdict, found in self._lost_entries(text):
            return _gone(verdict, [*evidence, found], offset=found.offset)
        made = parse_unique_key(text)
        if made is not None and made.ms_in_month < _LONGEST_MONTH and self._client_is_known(text):
            return self._by_time(made.ms_in_month, evidence)
        return self._beginning(text, longer, evidence) or self._never_seen(evidence)

    def _beginning(self, text: str, longer: Sequence[str], evidence: list[Evidence]) -> WhereResult | None:
        """Half an id: what begins so is named, and nothing is said about it."""
        found = []
        if longer:
            count = in_number("{n:,} keys begin with it", {"n": len(longer)}).format(n=len(longer))
            found.append(Evidence("beginning", None, None, count))
            found += [Evidence("beginning", None, None, f"{name}{rules.BEGINS_WITH}") for name in longer[:NAMED_KEYS]]
        host = self._store_host()
        if text and host is not None and text.upper() in {host[:count] for count in range(1, len(host) + 1)}:
            found.append(Evidence("beginning", None, None, f"every offset id of this broker begins with {host}"))
        if not found:
            return None
        return replace(_gone("unknown", [*evidence, *found]), next_step=rules.BEGINNING_STEP)

    def _store_host(self) -> str | None:
        """The store host of the log's first unit, as ids have it."""
        log = self._store.log
        unit = log.seen_at(log.min_offset, crc=False) if log.files else None
        return unit.store_host_raw.hex().upper() if isinstance(unit, Unit) else None

    def _never_seen(
        self,
        evidence: list[Evidence],
        topic: str | None = None,
        queue_id: int | None = None,
        queue_offset: int | None = None,
    ) -> WhereResult:
        """No byte that can be read speaks of it; bytes that are no unit may have."""
        spans = self._unreadable
        if not spans.first:
            return _gone("neverSeen", evidence, topic, queue_id, queue_offset)
        open_ones = [
            Evidence("not ruled out", None, one.offset, f"{one.size:,} bytes here are no unit: {one.reason}")
            for one in spans.first
        ]
        if spans.more:
            holds = f"{spans.more_bytes:,} bytes in {spans.more:,} more places are no unit"
            open_ones.append(Evidence("not ruled out", None, spans.more_from, holds))
        found = _gone("unknown", [*evidence, *open_ones], topic, queue_id, queue_offset)
        return replace(found, next_step=rules.RULED_OUT_STEP)

    @cached_property
    def _unreadable(self) -> UnreadableSpans:
        """Bytes of the log that are no unit."""
        return unreadable_spans(self._store.log, MOST_SPANS, self._progress)

    def _lost_entries(self, key: str) -> Iterator[tuple[rules.Verdict, Evidence]]:
        """Index entries with the key's hash whose unit is no longer where they point."""
        log = self._store.log
        topics = [self._topic] if self._topic else list(self._facts.topics)
        for reader in reversed(self._store.index_files()):
            try:
                if reader.geometry is None:
                    continue
                for topic in topics:
                    for offset in chained_offsets(reader, {index_key_hash(topic, key): topic}):
                        verdict = self._lost_place(offset)
                        if verdict is not None:
                            where = "in front of the log" if offset < log.min_offset else "where no unit can be read"
                            holds = f"an entry for {topic}#{key} points {where}"
                            yield verdict, Evidence("index", reader.path, offset, holds, topic=topic)
            except CorruptUnit:
                continue

    def _lost_place(self, offset: int) -> rules.Verdict | None:
        log = self._store.log
        if offset < log.min_offset:
            return "expired"
        if isinstance(log.seen_at(offset, crc=False), Unit):
            return None
        return "truncated" if offset >= log.max_offset else "damaged"

    def _client_is_known(self, unique_key: str) -> bool:
        """Whether any message of the log has a unique key from the same address: else the key is of another world."""
        address = unique_key[:8] if len(unique_key) == 32 else unique_key[:32]
        known = self._clients.get(address)
        if known is None:
            needle = f"UNIQ_KEY\x01{address}".encode()
            known = next(places_of(self._store.log, needle, progress=self._progress), None) is not None
            self._clients[address] = known
        return known

    def _by_time(self, ms_in_month: int, evidence: list[Evidence]) -> WhereResult:
        """A unique key tells when it was made, counted from the first of a month: in front of the log, or behind it?"""
        first, last = self._span_of_times
        if first is None or last is None:
            return _gone("unknown", evidence)
        made = _latest_before(last + _DAY, ms_in_month)
        spans = f"the log goes from {time_text(first)} to {time_text(last)}"
        evidence = [*evidence, Evidence("unique key", None, None, f"was made at {time_text(made)}, {spans}")]
        if made < first and self._store.log.min_offset > 0:
            return _gone("expired", evidence)
        if last - 1000 <= made < last + _HOUR:
            verdict, signs = self._behind_the_end()
            if verdict != "neverSeen":
                return _gone(verdict, [*evidence, *signs])
        return self._never_seen(evidence)

    @cached_property
    def _span_of_times(self) -> tuple[int | None, int | None]:
        """Times of the log's first and last unit."""
        log = self._store.log
        head = log.seen_at(log.min_offset, crc=False) if log.files else None
        tail = log.items_before(log.max_offset, 1, crc=False)
        first = head.store_timestamp if isinstance(head, Unit) else None
        last = tail[-1].store_timestamp if tail and isinstance(tail[-1], Unit) else None
        return first, last


def _latest_before(limit: int, ms_in_month: int) -> int:
    """The newest time (ms) at or before ``limit`` that lies ``ms_in_month`` behind the first of a month, local time."""
    month = datetime.fromtimestamp(limit / 1000).astimezone()
    for _ in range(2):
        month = month.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        made = int(month.timestamp() * 1000) + ms_in_month
        if made <= limit:
            return made
        month = datetime.fromtimestamp(month.timestamp() - 1).astimezone()
    return int(month.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000) + ms_in_month


def _gone(
    verdict: rules.Verdict,
    evidence: list[Evidence],
    topic: str | None = None,
    queue_id: int | None = None,
    queue_offset: int | None = None,
    offset: int | None = None,
) -> WhereResult:
    return WhereResult(verdict, offset, topic, queue_id, queue_offset, evidence, rules.NEXT_STEPS[verdict])


class Unreadable(NamedTuple):
    """``size`` bytes from absolute offset ``offset`` on that are no unit, and why."""

    offset: int
    size: int
    reason: str


@dataclass(slots=True)
class UnreadableSpans:
    """The first stretches one by one; of the others how many there are, their bytes, and where they begin."""

    first: list[Unreadable] = field(default_factory=list)
    more: int = 0
    more_bytes: int = 0
    more_from: int = -1

    def take(self, one: Unreadable, most: int) -> None:
        """One stretch more, in the order of the log."""
        if len(self.first) < most:
            self.first.append(one)
            return
        self.more_from = self.more_from if self.more else one.offset
        self.more += 1
        self.more_bytes += one.size


def unreadable_spans(log: LogReader, most: int, progress: Callable[[int], None] | None = None) -> UnreadableSpans:
    """Every stretch of the log that is no unit, blank or zero tail, in the order of the log, ``most`` of them one by
    one; ``progress`` gets the bytes that are done. What a search for the log's end has proven whole is not read again.

    Missing files count too. Bodies are not held against their CRC: keys and places are not in them.
    """
    found, start = UnreadableSpans(), max(log.min_offset, 0)
    low, high = log.whole_stretch
    parts: list[tuple[int, int | None]] = [(start, None)] if low == high else [(start, low), (high, None)]
    for first, stop in parts:
        for one in scan_log(log, first, stop, crc=False, want_tags=False):
            if isinstance(one, Damage):
                found.take(Unreadable(one.offset, one.size, one.reason), most)
            elif progress is not None and isinstance(one, UnitColumns) and one.count:
                progress(int(one.offset[one.count - 1]) - start)
    return found

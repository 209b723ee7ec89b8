"""Explains a message of which the log shows no unit: expired, cut off, damaged, or never stored.

The evidence: entries of the index and of queues that point to places without the unit, groups that have read it, and
signs that the log was longer once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from engine.callbacks import OffsetProgress
from engine.codec.columns import UnitColumns
from engine.codec.java import index_key_hash
from engine.codec.message import PREPARED, ROLLBACK, Unit, host_text, parse_unique_key
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.errors import CorruptUnit, Undecoded
from engine.inspection import undecoded
from engine.inspection.block_scan import scan_log
from engine.inspection.byte_scan import places_of
from engine.inspection.entry_verdict import resolve
from engine.inspection.log_reader import LogReader
from engine.inspection.lookup import chained_offsets
from engine.inspection.lost_units import lost_at, was
from engine.inspection.where.facts import Evidence, FactFinder
from engine.rules import where as rules
from engine.sentences import plural, sentence
from engine.times import local_time_text

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue


MAX_SCAN_BYTES = 4 << 30
"""Bytes of the log that are searched for the first message of a queue."""
NAMED_KEYS = 20
"""Number of keys that are listed if the question is the beginning of a key; the others are counted."""
MAX_SPANS = 8
"""Number of unreadable ranges that the evidence lists."""
MAX_PORT = 65_535
"""An id whose last host bytes are no port is not an offset message id."""
_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
_MAX_MONTH_MS = 32 * _DAY_MS


@dataclass(frozen=True, slots=True)
class WhereResult:
    """The verdict on one message; place and offsets of the requested unit, else of the message's newest unit."""

    verdict: rules.Verdict
    physical_offset: int | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    evidence: list[Evidence] = field(default_factory=list)
    next_step: str = ""
    routes: tuple[rules.Route, ...] = ()
    life: tuple[rules.HistoryStep, ...] = ()
    """The message's history so far; empty if no unit of it can be read."""


class LostFinder:
    """Gives verdicts on messages without a unit in the log of ``store``."""

    def __init__(
        self, store: StoreSnapshot, facts: FactFinder, topic: str | None, progress: OffsetProgress | None = None
    ) -> None:
        self._store, self._facts, self._topic, self._progress = store, facts, topic, progress
        self._clients: dict[str, bool] = {}

    # -- an offset id, or a place in the log

    def offset(self, offset: int, asked_text: str) -> WhereResult:
        """Answer that no unit begins at the absolute ``offset``; ``asked_text`` is the text of the question."""
        log = self._store.log
        if not log.files:
            no_files = Evidence("commit log", None, None, sentence("the commit log has no files"))
            return replace(_without_unit("unknown", [no_files], offset=offset), next_step=rules.NO_LOG_STEP)
        span = Evidence(
            "commit log",
            None,
            log.min_offset,
            sentence("holds {low:,} to {high:,}", low=log.min_offset, high=log.max_offset),
        )
        if offset < log.min_offset:
            return _without_unit("expired" if offset >= 0 else "neverSeen", [span], offset=offset)
        if offset >= log.max_offset:
            if offset >= log.end_offset + log.sequence.file_size:
                return _without_unit("neverSeen", [span], offset=offset)
            verdict, signs = self._verdict_behind_the_end()
            return self._with_lost_message(_without_unit(verdict, [span, *signs], offset=offset), offset)
        item = log.seen_at(log.align(offset))
        if isinstance(item, Unit) and item.offset < offset < item.end:
            inside = self._facts.at(
                item, "unit", sentence("{what} lies inside the unit that begins here", what=asked_text)
            )
            overwritten = self._written_after_a_crash(item)
            if overwritten:
                return _without_unit("truncated", [span, inside, *overwritten], offset=offset)
            result = _without_unit("neverSeen", [span, inside], offset=offset)
            return replace(result, next_step=sentence(rules.INSIDE_UNIT_STEP, offset=item.offset))
        if log.sequence.find(offset) is None:
            no_file = Evidence("commit log", None, offset, rules.NO_FILE_AT_OFFSET)
            result = replace(_without_unit("damaged", [span, no_file], offset=offset), next_step=rules.NO_FILE_STEP)
        else:
            no_unit = Evidence("commit log", None, offset, sentence("no unit can be read here"))
            result = _without_unit("damaged", [span, no_unit], offset=offset)
        return self._with_lost_message(result, offset)

    def _with_lost_message(self, result: WhereResult, offset: int) -> WhereResult:
        """Add the message that was in the unreadable bytes at ``offset``, if it can be identified."""
        damage_and_units = lost_at(self._store, offset)
        if damage_and_units is None:
            return result
        lost = damage_and_units[1][0]
        new_evidence = [Evidence("was", None, lost.offset, was(lost))]
        new_evidence += [Evidence("wrong field", None, lost.offset, wrong.words) for wrong in lost.wrong]
        return replace(
            result,
            physical_offset=lost.offset if result.physical_offset is None else result.physical_offset,
            evidence=[*result.evidence, *new_evidence],
            topic=lost.topic,
            queue_id=lost.queue_id,
            queue_offset=lost.queue_offset,
        )

    def _verdict_behind_the_end(self) -> tuple[rules.Verdict, list[Evidence]]:
        if undecoded.has_dledger_log(self._store):
            return "unknown", []  # the log goes on where it is not decoded
        if self._store.lock_state == "held":
            return "unknown", [
                Evidence("lock", None, None, sentence("a broker is running: what it has not written yet is not here"))
            ]
        signs = self._signs_of_a_longer_log()
        return ("truncated" if signs else "neverSeen"), signs

    def _signs_of_a_longer_log(self) -> list[Evidence]:
        """Signs that the log once went on behind its end: no clean stop, or entries and times that point there."""
        signs = []
        paths = self._store.paths
        if self._store.abort:
            signs.append(
                Evidence("abort", str(paths.abort) if paths else None, None, sentence("the store was not closed"))
            )
        elif paths and self._store.small_file(paths.abort_bak):
            signs.append(
                Evidence("abort.bak", str(paths.abort_bak), None, sentence("it was not closed before its last start"))
            )
        for queues in self._store.queues.by_topic().values():
            for queue in queues.values():
                if queue.raw_end > queue.valid_end:
                    statement = sentence(
                        "{queue} has entries that point after the end of the log",
                        queue=f"{queue.topic}/{queue.queue_id}",
                    )
                    return [*signs, Evidence("queue", str(queue.folder), queue.valid_end, statement)]
        return signs + self._times_verdict_behind_the_end()

    def _times_verdict_behind_the_end(self) -> list[Evidence]:
        _, last_time = self._span_of_times
        try:
            checkpoint = self._store.checkpoint()
        except CorruptUnit:
            return []
        if checkpoint is None or last_time is None:
            return []
        newest = max(checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp)
        if newest <= last_time:
            return []
        statement = sentence(
            "knows a message of {newest}, the newest unit is of {last}",
            newest=local_time_text(newest),
            last=local_time_text(last_time),
        )
        return [Evidence("checkpoint", None, None, statement)]

    def _written_after_a_crash(self, unit: Unit) -> list[Evidence]:
        """Evidence if ``unit`` was stored after the start that followed a crash: it may have replaced other units."""
        paths = self._store.paths
        if paths is None or not self._store.small_file(paths.abort_bak):
            return []
        status = self._store.reading.status(paths.abort_bak)
        start_time = status.st_mtime_ns // 1_000_000 if status is not None else unit.store_timestamp
        if unit.store_timestamp <= start_time:
            return []
        return [
            Evidence(
                "abort.bak",
                str(paths.abort_bak),
                None,
                sentence("a start after a crash at {time}", time=local_time_text(start_time)),
            )
        ]

    # -- topic/queue/offset

    def queue_place(self, topic: str, queue_id: int, offset: int) -> WhereResult:
        """Answer that no unit of the log has this queue offset."""
        try:
            queue = self._store.queues.find(topic, queue_id)
        except Undecoded as error:
            evidence = list(self._entry_into_dledger(topic, queue_id, offset))
            evidence.append(Evidence("queue", error.file, None, error.what))
            return _without_unit("unknown", evidence, topic, queue_id, offset)
        readers = [reader for reader in self._facts.groups_in(topic, queue_id, offset) if reader[1].offset > offset]
        if queue is None:
            evidence = [
                Evidence("queue", None, None, self._facts.absent_queue(topic, queue_id)),
                *(reader_evidence for reader_evidence, _ in readers),
            ]
            expired = bool(readers) and self._store.log.min_offset > 0
            if not expired:
                return self._never_seen(evidence, topic, queue_id, offset)
            return _without_unit("expired", evidence, topic, queue_id, offset)
        min_offset, max_offset = queue.min_offset, queue.max_offset
        first_unit = (
            self._first_unit(topic, queue_id) if offset >= max_offset and self._store.log.min_offset > 0 else None
        )
        if first_unit is not None and offset < first_unit.queue_offset:
            return self._between_queue_and_log(queue, first_unit, offset)
        folder = str(queue.folder)
        evidence = [
            Evidence(
                "queue", folder, None, sentence("holds offsets {low:,} to {high:,}", low=min_offset, high=max_offset)
            )
        ]
        if 0 <= offset < min_offset:
            return _without_unit("expired", evidence, topic, queue_id, offset)
        if offset >= max_offset:
            evidence += [reader_evidence for reader_evidence, _ in readers]
            verdict = self._verdict_behind_the_queue(queue, offset, bool(readers), evidence)
            if verdict == "neverSeen" and offset < queue.max_offset + queue.entries_per_file:
                return self._never_seen(evidence, topic, queue_id, offset)
            result_without_unit = _without_unit(verdict, evidence, topic, queue_id, offset)
            stale = queue.entry(offset)
            if stale is None or stale.state != "entry":
                return result_without_unit
            return self._with_lost_message(result_without_unit, stale.physical_offset)
        entry = queue.entry(offset)
        resolved = resolve(self._store.log, topic, queue_id, entry) if entry is not None else None
        entry_words = resolved.what if resolved and resolved.what else sentence("there is no entry")
        if entry is not None and entry.state == "entry":
            entry_words = sentence(
                "entry {n:,} points at {offset:,}: {what}", n=offset, offset=entry.physical_offset, what=entry_words
            )
        elif entry is not None and entry.state == "empty":
            entry_words = sentence("entry {n:,} is empty: zero bytes", n=offset)
        evidence.append(Evidence("queue entry", folder, entry.physical_offset if entry else None, entry_words))
        is_expired = resolved is not None and resolved.verdict == "belowMinOffset"
        if entry is not None and resolved is not None and resolved.verdict == "missing":
            result = _without_unit("damaged", evidence, topic, queue_id, offset)
            return self._with_lost_message(result, entry.physical_offset)
        verdict = "neverSeen" if offset < 0 else "expired" if is_expired else "damaged"
        return _without_unit(verdict, evidence, topic, queue_id, offset)

    def _entry_into_dledger(self, topic: str, queue_id: int, offset: int) -> Iterator[Evidence]:
        queue = self._store.queues.find_beside_dledger(topic, queue_id)
        entry = queue.entry(offset) if queue is not None else None
        if queue is None or entry is None or entry.state != "entry":
            return
        if undecoded.in_dledger(self._store, entry.physical_offset):
            statement = sentence(
                "entry {n:,} points at {offset:,}, in the DLedger log, which is not decoded",
                n=offset,
                offset=entry.physical_offset,
            )
            yield Evidence("queue entry", str(queue.sequence.folders[0]), entry.physical_offset, statement)

    def _first_unit(self, topic: str, queue_id: int) -> Unit | None:
        """The first unit of the log in a queue; None if it is too far from the start of a long log."""
        log = self._store.log
        topics = TopicTable()
        start = max(log.min_offset, 0)
        for block in scan_log(log, start, start + MAX_SCAN_BYTES, crc=False, topics=topics):
            if not isinstance(block, UnitColumns):
                continue
            number = topics.find(topic)
            hits = (block["topic_id"] == number) & (block["queue_id"] == queue_id) if number >= 0 else []
            for offset in block["offset"][hits] if number >= 0 else ():
                unit = log.seen_at(int(offset))
                if isinstance(unit, Unit) and unit.transaction_type not in {PREPARED, ROLLBACK}:
                    return unit
        return None

    def _between_queue_and_log(self, queue: AnyQueue, first_unit: Unit, offset: int) -> WhereResult:
        """The queue ends before ``offset``, and its first unit in the log comes behind it."""
        log = self._store.log
        statement = sentence(
            "ends at {end:,}; the log begins at {begin:,}, and the first message that it has of the "
            "queue is {first:,}: those in between were in files that retention deleted",
            end=queue.max_offset,
            begin=log.min_offset,
            first=first_unit.queue_offset,
        )
        evidence = [
            Evidence("queue", str(queue.folder), None, statement),
            self._facts.at(
                first_unit,
                "unit",
                sentence(
                    "{place}, the first of its queue",
                    place=f"{queue.topic}/{queue.queue_id}/{first_unit.queue_offset}",
                ),
            ),
        ]
        return _without_unit("expired", evidence, queue.topic, queue.queue_id, offset)

    def _verdict_behind_the_queue(
        self, queue: AnyQueue, offset: int, was_read: bool, evidence: list[Evidence]
    ) -> rules.Verdict:
        entry = queue.entry(offset)
        if entry is not None and entry.state == "entry":
            evidence.append(
                Evidence(
                    "queue entry", None, entry.physical_offset, sentence("an old entry points after the end of the log")
                )
            )
            return "truncated"
        if was_read:
            return "truncated"
        if offset >= queue.max_offset + queue.entries_per_file:
            return "neverSeen"
        verdict, signs = self._verdict_behind_the_end()
        evidence += signs
        return verdict

    # -- a key

    def key(
        self, text: str, host: bytes | None, unreadable: tuple[int, int] | None, longer: Sequence[str] = ()
    ) -> WhereResult:
        """Answer that no unit of the log has this key.

        Args:
            text: the key.
            host: the broker that the key names, if it is an offset id.
            unreadable: the first place of the key in bytes that are no unit, and the start of those bytes.
            longer: names that begin with the key.
        """
        evidence = [Evidence("commit log", None, None, rules.NO_UNIT_HAS_KEY)]
        if host is not None and 0 < int.from_bytes(host[-4:], "big", signed=True) <= MAX_PORT:
            evidence.append(
                Evidence(
                    "id",
                    None,
                    None,
                    sentence("as an offset message id it names the broker {host}", host=host_text(host)),
                )
            )
        if unreadable is not None:
            place, start = unreadable
            remains_from = self._store.log.remains_from
            statement = sentence("the key is here, in invalid bytes")
            if remains_from is not None and place >= remains_from:
                statement = sentence(
                    "the key is here, in remains of entries that a leader replaced; no producer was told of them"
                )
            evidence.append(Evidence("commit log", None, place, statement))
            verdict: rules.Verdict = "truncated" if start >= self._store.log.max_offset else "damaged"
            return self._with_lost_message(_without_unit(verdict, evidence, offset=place), place)
        for verdict, index_evidence in self._lost_entries(text):
            result = _without_unit(verdict, [*evidence, index_evidence], offset=index_evidence.offset)
            return result if self._store.log.files else replace(result, next_step=rules.NO_LOG_STEP)
        if undecoded.has_dledger_log(self._store):
            return self._beginning(text, longer, evidence) or _without_unit("unknown", evidence)
        parsed_key = parse_unique_key(text)
        if parsed_key is not None and parsed_key.ms_in_month < _MAX_MONTH_MS and self._client_is_known(text):
            return self._by_time(parsed_key.ms_in_month, evidence)
        return self._beginning(text, longer, evidence) or self._never_seen(evidence)

    def _beginning(self, text: str, longer: Sequence[str], evidence: list[Evidence]) -> WhereResult | None:
        """Handle the beginning of an id: list the keys that begin with it, and draw no conclusion."""
        matches = []
        if longer:
            count = plural("{n:,} key begins with it", "{n:,} keys begin with it", n=len(longer))
            matches.append(Evidence("beginning", None, None, count))
            for name in longer[:NAMED_KEYS]:
                matches.append(Evidence("beginning", None, None, sentence(rules.BEGINS_WITH, name=name)))
        host = self._store_host()
        if text and host is not None and text.upper() in {host[:count] for count in range(1, len(host) + 1)}:
            matches.append(
                Evidence(
                    "beginning", None, None, sentence("every offset id of this broker begins with {host}", host=host)
                )
            )
        if not matches:
            return None
        return replace(_without_unit("unknown", [*evidence, *matches]), next_step=rules.BEGINNING_STEP)

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
        """Answer that no readable byte mentions the message; unreadable bytes may."""
        spans = self._unreadable
        if not spans.listed:
            return _without_unit("neverSeen", evidence, topic, queue_id, queue_offset)
        not_ruled_out = [
            Evidence(
                "not ruled out",
                None,
                span.offset,
                plural(
                    "{n:,} byte here is invalid: {reason}",
                    "{n:,} bytes here are invalid: {reason}",
                    n=span.size,
                    reason=span.reason,
                ),
            )
            for span in spans.listed
        ]
        if spans.further_count:
            statement = plural(
                "{count:,} bytes in {n:,} more place are invalid",
                "{count:,} bytes in {n:,} more places are invalid",
                count=spans.further_bytes,
                n=spans.further_count,
            )
            not_ruled_out.append(Evidence("not ruled out", None, spans.further_offset, statement))
        result = _without_unit("unknown", [*evidence, *not_ruled_out], topic, queue_id, queue_offset)
        return replace(result, next_step=rules.RULED_OUT_STEP)

    @cached_property
    def _unreadable(self) -> UnreadableSpans:
        """Bytes of the log that are no unit."""
        return unreadable_spans(self._store.log, MAX_SPANS, self._progress)

    def _lost_entries(self, key: str) -> Iterator[tuple[rules.Verdict, Evidence]]:
        """Index entries with the key's hash whose target no longer holds the unit."""
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
                            statement = sentence(
                                rules.ENTRY_INTO_DLEDGER
                                if undecoded.in_dledger(self._store, offset)
                                else "an entry for {key} points before the start of the log"
                                if offset < log.min_offset
                                else "an entry for {key} points where no unit can be read",
                                key=f"{topic}#{key}",
                            )
                            yield verdict, Evidence("index", reader.path, offset, statement, topic=topic)
            except CorruptUnit:
                continue

    def key_in_dledger(self, text: str) -> WhereResult | None:
        """Messages of the DLedger log that the index finds by a key which units of ``commitlog`` have, too; None if it
        finds none.
        """
        if not undecoded.has_units_beside_dledger(self._store):
            return None
        entries = (
            evidence
            for _, evidence in self._lost_entries(text)
            if evidence.offset is not None and undecoded.in_dledger(self._store, evidence.offset)
        )
        evidence = list(islice(entries, NAMED_KEYS))
        return _without_unit("unknown", evidence, offset=evidence[0].offset) if evidence else None

    def _lost_place(self, offset: int) -> rules.Verdict | None:
        log = self._store.log
        if offset < log.min_offset:
            return "expired"
        if not log.files:
            return "unknown"
        if isinstance(log.seen_at(offset, crc=False), Unit):
            return None
        return "truncated" if offset >= log.max_offset else "damaged"

    def _client_is_known(self, unique_key: str) -> bool:
        """Return True if any message of the log has a unique key from the same address: else the key is from
        elsewhere.
        """
        address = unique_key[:8] if len(unique_key) == 32 else unique_key[:32]
        is_known = self._clients.get(address)
        if is_known is None:
            needle = f"UNIQ_KEY\x01{address}".encode()
            is_known = next(places_of(self._store.log, needle, progress=self._progress), None) is not None
            self._clients[address] = is_known
        return is_known

    def _by_time(self, ms_in_month: int, evidence: list[Evidence]) -> WhereResult:
        """Decide by the creation time in a unique key (counted from the first of a month): before the log, or behind
        it.
        """
        first_time, last_time = self._span_of_times
        if first_time is None or last_time is None:
            return _without_unit("unknown", evidence)
        creation_time = _latest_before(last_time + _DAY_MS, ms_in_month)
        spans = sentence(
            "the log goes from {first} to {last}", first=local_time_text(first_time), last=local_time_text(last_time)
        )
        statement = sentence("was made at {time}, {span}", time=local_time_text(creation_time), span=spans)
        evidence = [*evidence, Evidence("unique key", None, None, statement)]
        if creation_time < first_time and self._store.log.min_offset > 0:
            return _without_unit("expired", evidence)
        if last_time - 1000 <= creation_time < last_time + _HOUR_MS:
            verdict, signs = self._verdict_behind_the_end()
            if verdict != "neverSeen":
                return _without_unit(verdict, [*evidence, *signs])
        return self._never_seen(evidence)

    @cached_property
    def _span_of_times(self) -> tuple[int | None, int | None]:
        """Times of the log's first and last unit."""
        log = self._store.log
        head = log.seen_at(log.min_offset, crc=False) if log.files else None
        tail = log.items_before(log.max_offset, 1, crc=False)
        first_time = head.store_timestamp if isinstance(head, Unit) else None
        last_time = tail[-1].store_timestamp if tail and isinstance(tail[-1], Unit) else None
        return first_time, last_time


def _latest_before(limit: int, ms_in_month: int) -> int:
    """The newest time (ms) at or before ``limit`` that is ``ms_in_month`` after the first of a month, local time."""
    month = datetime.fromtimestamp(limit / 1000).astimezone()
    for _ in range(2):
        month = month.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        candidate = int(month.timestamp() * 1000) + ms_in_month
        if candidate <= limit:
            return candidate
        month = datetime.fromtimestamp(month.timestamp() - 1).astimezone()
    return int(month.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000) + ms_in_month


def _without_unit(
    verdict: rules.Verdict,
    evidence: list[Evidence],
    topic: str | None = None,
    queue_id: int | None = None,
    queue_offset: int | None = None,
    offset: int | None = None,
) -> WhereResult:
    return WhereResult(verdict, offset, topic, queue_id, queue_offset, evidence, rules.NEXT_STEPS[verdict])


class Unreadable(NamedTuple):
    """``size`` bytes at the absolute ``offset`` that are no unit, and the reason."""

    offset: int
    size: int
    reason: str


@dataclass(slots=True)
class UnreadableSpans:
    """The first unreadable ranges; of the further ones their number, their bytes, and the offset of the first."""

    listed: list[Unreadable] = field(default_factory=list)
    further_count: int = 0
    further_bytes: int = 0
    further_offset: int = -1

    def add(self, span: Unreadable, max_listed: int) -> None:
        """Add a range, in the order of the log."""
        if len(self.listed) < max_listed:
            self.listed.append(span)
            return
        self.further_offset = self.further_offset if self.further_count else span.offset
        self.further_count += 1
        self.further_bytes += span.size


def unreadable_spans(log: LogReader, max_listed: int, progress: Callable[[int], None] | None = None) -> UnreadableSpans:
    """Return every range of the log that is no unit, blank or zero tail; ``max_listed`` of them are listed one by one.

    ``progress`` receives the bytes done. Ranges that the search for the log's end has proven are not read again.
    Missing files count too. Bodies are not compared with their CRC: they hold no keys or offsets.
    """
    spans, start = UnreadableSpans(), max(log.min_offset, 0)
    proven_start, proven_end = log.all_blocks
    parts: list[tuple[int, int | None]] = (
        [(start, None)] if proven_start == proven_end else [(start, proven_start), (proven_end, None)]
    )
    for part_start, stop in parts:
        for item in scan_log(log, part_start, stop, crc=False, with_tags=False):
            if isinstance(item, Damage):
                spans.add(Unreadable(item.offset, item.size, item.reason), max_listed)
            elif progress is not None and isinstance(item, UnitColumns) and item.count:
                progress(int(item.offset[item.count - 1]) - start)
    return spans

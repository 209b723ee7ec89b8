"""One fault, one finding: judges the mismatches of queues and index when the broken places of the log are known.

A damaged unit leaves behind a queue entry and index entries that point to nothing. They are counted with the damage and
are no findings of their own. The rest is reported once per queue and once per file, at its first place. A log that has
lost its tail is one fault, too: queues, index and checkpoint that know more are its witnesses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from engine.codec.consume_queue import PREFILLED_SIZE
from engine.codec.message import COMMIT, Unit, decode_store_timestamp, sys_flag_words
from engine.files.layout import FILE_NAME_DIGITS
from engine.inspection.check.dispatch import UndispatchedUnits
from engine.inspection.check.log import LogCheck
from engine.inspection.check.next_start import StartEffects, of_own_release
from engine.inspection.check.places import between
from engine.inspection.check.queue_walk import QueueWalk, RocksdbWalk, Suspect
from engine.inspection.check.queues import QueueCheck
from engine.inspection.deleted_first_message import find_stale_first_file
from engine.inspection.lost_units import lost_units
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue, damage_causes, index_rules, log_rules, queue_rules
from engine.rules.damage_causes import PAGE, zero_pages
from engine.rules.findings import HAPPENED, Finding, Severity
from engine.sentences import join, plural, sentence
from engine.system_names import LMQ_PREFIX, SCHEDULE_TOPIC

MAX_LOOKUPS = 256
MAX_OWNERS = 8
MAX_SPANS = 8
"""Number of damaged spans before a unit that are searched for a unit without an entry."""
MAX_READ_BYTES = 1 << 20
"""Bytes of a queue's file behind an empty entry that are searched for pages of zeros."""


MAX_HIDDEN_ENTRIES = 1 << 20
"""Number of entries in front of a queue's minimum that are looked at."""
FAILS = sentence("every request whose range reaches it fails in a broker, so consumers stand still in front of it")


class QueueConsequences:
    """Findings of all queues.

    Afterwards :attr:`odd_units` has the units whose own fields are wrong, and :attr:`undispatched` the queues that are
    too short.
    """

    def __init__(self, store: StoreSnapshot, log: LogCheck, queues: QueueCheck, starts: StartEffects) -> None:
        self.undispatched = UndispatchedUnits(store, log, queues, starts)
        self._starts = starts
        self._early: set[tuple[str, int]] = set()
        self._gaps: set[str] = set()
        self._store = store
        self._log = log
        self._queues = queues
        self._abort = store.abort
        self._least = max(store.log.min_offset, 0)
        self._looks = 0
        self._file_sizes = _file_sizes(queues)
        self._faulty: set[tuple[str, int]] = set()
        self._beyond = 0
        self.lost = 0
        """Messages that queues know behind the end of the log, without light queues, which know the same ones."""
        self.known_to = 0
        self.cut: set[str] = set()
        """Queues that know messages behind the end of the log."""
        self._first_beyond: tuple[QueueWalk, int, int] | None = None
        self.odd_units: set[int] = set()

    def findings(self) -> Iterator[Finding]:
        """All findings about queues; adds to the log's broken places the entries that point there."""
        walks = self._queues.walks
        if not walks and self._queues.queues_without_folder and self._store.paths is not None:
            yield self.undispatched.all_gone()
            yield from self.undispatched.files_instead_of_folders(())
            return
        findings: list[Finding] = []
        for key, walk in walks.items():
            if isinstance(walk, RocksdbWalk):
                findings.extend(self._bounds(walk))
                continue
            files = self._files(walk)
            if files:
                self._faulty.add(key)
            findings.extend(files)
        for walk in walks.values():
            findings.extend(self._entries_without_units(walk))
        for walk in walks.values():
            findings.extend(self._units_without_entries(walk))
        findings.extend(self.undispatched.findings(self._faulty, self.odd_units, self._early))
        findings.extend(self._behind_the_log())
        short_names = {f"{topic}/{number}" for topic, number in self.undispatched.short}
        for finding in findings:
            emptied = finding.id == "CQ06" and finding.evidence["queue"] in short_names
            yield finding.follows("CQ10") if emptied else finding

    # -- files of a queue

    def _files(self, walk: QueueWalk) -> list[Finding]:
        reader = walk.reader
        files = [log_rules.LogFile(f.path, f.start_offset, f.size) for f in reader.files]
        size = self._file_sizes.get(reader.kind, 0)
        findings = []
        for fault in log_rules.file_sequence(files, size):
            severity: Severity | None = "warn" if fault.kind == "empty" else None
            evidence: dict[str, Any] = {"expected": fault.expected, "found": fault.message}
            evidence[HAPPENED] = log_rules.happened(fault, size, walk.name)
            text = sentence("Queue {name}: {what}", name=walk.name, what=fault.message)
            kind = "empty" if fault.kind == "empty" else ""
            if fault.kind == "size" and reader.files[-1].path == fault.path and _is_unmade(reader.files[-1], size):
                kind = "unmade"
                text += "; " + sentence("it holds nothing but zeros, and no entry is missing")
                evidence[HAPPENED] = sentence(
                    "the file {file} of the queue {queue} was never completed: the disk was full, or the broker died "
                    "while it created the file",
                    file=reader.files[-1].name,
                    queue=walk.name,
                )
            findings.append(catalogue.CQ01.finding(text, fault.path, fault.offset, evidence, severity, kind=kind))
        short_names = [file.name for file in reader.files if len(file.name) < FILE_NAME_DIGITS]
        if short_names:
            text = sentence(
                "Queue {name}: files have no names of 20 digits ({names})",
                name=walk.name,
                names=", ".join(short_names[:3]),
            )
            evidence = {"expected": sentence("names of 20 digits"), "found": short_names[:20], "queue": walk.name}
            evidence[HAPPENED] = sentence(
                "files of the queue {name} lost the zeros in front of their names", name=walk.name
            )
            findings.append(catalogue.CQ01.finding(text, reader.files[0].path, None, evidence, kind="name"))
        for oddity in reader.sequence.oddities:
            text = sentence("Queue {name}: {what}", name=walk.name, what=oddity.description)
            findings.append(catalogue.DK01.finding(text, oddity.path, None, {"found": oddity.description}))
        last_file = files[-1] if files else None
        if last_file and last_file.size and walk.end_number * walk.unit_size <= last_file.start and not findings:
            findings += self._empty_last_file(walk, last_file)
        if walk.units_before and not findings:
            path = last_file.path if last_file else None
            text = plural(
                "Queue {name} begins at entry {first:,}; {n:,} unit of the log comes before",
                "Queue {name} begins at entry {first:,}; {n:,} units of the log come before",
                name=walk.name,
                first=walk.first_number,
                n=walk.units_before,
            )
            evidence = {"units": walk.units_before, "firstUnit": walk.first_offset_before, "found": walk.first_number}
            evidence[HAPPENED] = sentence(
                "the first files of the queue {queue} are missing, before entry {entry:,}",
                queue=walk.name,
                entry=walk.first_number,
            )
            findings.append(catalogue.CQ01.finding(text, path, walk.first_number * walk.unit_size, evidence))
        return findings

    def _empty_last_file(self, walk: QueueWalk, last_file: log_rules.LogFile) -> Iterator[Finding]:
        """CQ06: the last file holds nothing but zeros."""
        evidence: dict[str, Any] = {"expected": sentence("at least one entry"), "found": 0, "queue": walk.name}
        if (walk.reader.topic, walk.reader.queue_id) in self._ending_in_zeros:
            number = last_file.start // walk.unit_size
            text = sentence(
                "Queue {name}: its last file holds nothing but zeros, and a start takes the first 20 bytes for entry "
                "{n:,}: no pull of it is answered",
                name=walk.name,
                n=number,
            )
            evidence |= {"queueOffset": number}
            yield catalogue.CQ06.finding(text, last_file.path, 0, evidence, kind="counted")
            return
        if last_file.start == 0:
            return
        text = sentence(
            "Queue {name}: its last file is empty and begins at {start:,}", name=walk.name, start=last_file.start
        )
        plans = [self._starts.plan(release) for release in self._starts.releases]
        filled = all(plan is not None and plan.will_start for plan in plans)
        light: Severity | None = "note" if self._abort else None
        kind = "filled" if filled else ""
        yield catalogue.CQ06.finding(text, last_file.path, 0, evidence, None if kind else light, kind=kind)

    @cached_property
    def _ending_in_zeros(self) -> set[tuple[str, int]]:
        """Queues of which the next start takes zero bytes for the last entry.

        Queues whose minimum the start moves behind that entry are left out: consumers are led past it.
        """
        plan = of_own_release(self._store, self._starts) if self._store.lock_state != "held" else None
        if plan is None or not plan.will_start:
            return set()
        return {
            (queue.topic, queue.queue_id)
            for queue in plan.queues
            if queue.entries_dropped < 0 and not queue.entries_added and queue.kind == "simple"
            if queue.min_offset < queue.max_offset
        }

    # -- a queue in a RocksDB

    def _bounds(self, walk: RocksdbWalk) -> Iterator[Finding]:
        """CQ16: the rows ``max`` and ``min`` against the entries."""
        rows, newest = walk.rows, walk.rows.bound("max")
        if newest is None:
            return
        if rows.first_row is None and self._least <= newest.physical_offset < self._log.end:
            text = sentence(
                "Queue {name}: its end was written for entry {n:,}, and it has no row of any entry",
                name=walk.name,
                n=newest.queue_offset,
            )
            evidence = {"queueOffset": newest.queue_offset, "expected": newest.physical_offset, "found": None}
            yield self._of_bounds(walk, text, evidence, "rows")
        last_row = rows.row(newest.queue_offset)
        if last_row is not None and last_row.physical_offset != newest.physical_offset:
            text = sentence(
                "Queue {name}: its last entry {n:,} points to {offset:,}, its end was written for {end:,}",
                name=walk.name,
                n=newest.queue_offset,
                offset=last_row.physical_offset,
                end=newest.physical_offset,
            )
            evidence = {
                "queueOffset": newest.queue_offset,
                "expected": last_row.physical_offset,
                "found": newest.physical_offset,
            }
            yield self._of_bounds(walk, text, evidence, "max")
        hidden = self._hidden_entries(walk)
        if hidden:
            text = sentence(
                "Queue {name} begins at {n:,} for consumers, but has entries from {first:,} on whose messages the log "
                "has ({count:,} are hidden)",
                name=walk.name,
                n=rows.min_offset,
                first=hidden[0],
                count=rows.min_offset - hidden[0],
            )
            evidence = {"expected": hidden[0], "found": rows.min_offset, "messages": rows.min_offset - hidden[0]}
            yield self._of_bounds(walk, text, evidence, "min")
        if walk.units_before and rows.first_row is not None:
            text = plural(
                "Queue {name} has no row before entry {first:,}; {n:,} unit of the log comes before",
                "Queue {name} has no row before entry {first:,}; {n:,} units of the log come before",
                name=walk.name,
                first=walk.first_number,
                n=walk.units_before,
            )
            evidence = {
                "queueOffset": walk.first_number,
                "units": walk.units_before,
                "firstUnit": walk.first_offset_before,
            }
            yield self._of_bounds(walk, text, evidence, "first")

    def _hidden_entries(self, walk: RocksdbWalk) -> tuple[int, ...]:
        """Queue offset of the first entry in the log that a broker hides; () for none."""
        minimum, oldest = walk.rows.min_offset, walk.rows.bound("min")
        if oldest is None or oldest.queue_offset != minimum or minimum <= walk.first_number:
            return ()  # found by a search, which missing rows mislead
        numbers, rows = walk.rows.numbered_rows(max(walk.first_number, minimum - MAX_HIDDEN_ENTRIES), minimum)
        in_log = np.flatnonzero((rows["physical_offset"] >= self._least) & (rows["physical_offset"] < self._log.end))
        return (int(numbers[in_log[0]]),) if len(in_log) else ()

    def _of_bounds(self, walk: RocksdbWalk, text: str, evidence: dict[str, Any], kind: str) -> Finding:
        evidence = {"queue": walk.name, **evidence}
        evidence[HAPPENED] = sentence("the RocksDB has wrong bounds of the queue {queue}", queue=walk.name)
        return catalogue.CQ16.finding(text, str(walk.rows.folder), None, evidence, kind=kind)

    def _rows_without_units(self, walk: RocksdbWalk, first_number: int, rows: np.ndarray) -> Iterator[Finding]:
        """CQ03: numbers with neither a row nor a unit in the log, once for a queue."""
        if walk.name in self._gaps:
            return
        self._gaps.add(walk.name)
        number = first_number + int(rows[0])
        text = sentence("has no row in the RocksDB, and the log has no unit of it") + " · " + FAILS
        evidence: dict[str, Any] = {
            "queueOffset": number,
            "expected": sentence("an entry"),
            "found": sentence("no row"),
        }
        evidence[HAPPENED] = sentence(
            "entry {entry:,} of the queue {queue} was never written", entry=number, queue=walk.name
        )
        yield self._of_entry(walk, number, "CQ03", text, evidence)

    def _missing_row(self, walk: QueueWalk, suspect: Suspect, text: str) -> tuple[str, Severity | None]:
        """What a broker does with a missing row, and its severity."""
        text += " · " + FAILS
        if self._store.lock_state == "held":
            return text, None
        plan = of_own_release(self._store, self._starts)
        if plan is None or plan.undispatched is None:
            return text, None
        key = (walk.reader.topic, walk.reader.queue_id)
        loss = next((row for row in plan.undispatched.queues if (row.topic, row.queue_id) == key), None)
        if loss is None or not loss.first_offset <= suspect.number <= loss.last_offset:
            text += " · " + sentence("the next start writes it")
            return text, "note" if self._abort else "warn"
        self._starts.left_out[key] = self._starts.left_out.get(key, 0) + loss.units
        self._starts.left_out_rule = "CQ03"
        return text + " · " + sentence("no start writes it"), None

    # -- entry → unit

    def _first_of_deleted(self, walk: QueueWalk) -> Iterator[Finding]:
        """A broker follows an entry that leads to offset 0 though the log begins later."""
        if isinstance(walk, RocksdbWalk) or find_stale_first_file(walk.reader, self._least) is None:
            return
        text = sentence(
            "leads to 0, and the log begins at {start:,}: a broker takes the first file that is left, and gives "
            "consumers bytes of other messages",
            start=self._least,
        )
        evidence = {"queueOffset": 0, "expected": self._least, "found": 0}
        yield self._of_entry(walk, 0, "CQ04", text, evidence, "warn")

    def _entries_without_units(self, walk: QueueWalk) -> Iterator[Finding]:
        yield from self._first_of_deleted(walk)
        walked_to = walk.first_number if walk.next_number is None else walk.next_number
        walk.skip(min(max(walked_to, walk.first_number), walk.end_number), walk.end_number)
        reported = walk.wrong_count > 0
        leading = True
        for start, end in walk.skipped:
            for first_number, entries in walk.chunks(start, end):
                count = len(entries.physical)
                prefilled = (entries.physical == 0) & (entries.size == PREFILLED_SIZE)
                missing = entries.physical < 0
                expired = (entries.physical < self._least) & ~missing & (entries.size > 0)
                is_leading = start == walk.first_number and leading
                if isinstance(walk, RocksdbWalk) and missing.any() and not is_leading:
                    yield from self._rows_without_units(walk, first_number, np.flatnonzero(missing))
                fine = missing | (prefilled | expired if is_leading else np.zeros(count, bool))
                beyond = (entries.physical >= self._log.end) & ~missing
                self._note_beyond(walk, beyond, first_number, entries)
                out_of_step = (
                    None if reported else self._out_of_step(walk, first_number, entries, fine & expired & ~prefilled)
                )
                if out_of_step is not None:
                    reported = True
                    yield out_of_step
                for row in np.flatnonzero(~fine & ~beyond):
                    entry = queue_rules.ComparedEntry(
                        int(entries.physical[row]), int(entries.size[row]), int(entries.tags[row])
                    )
                    finding = self._judge(walk, first_number + int(row), entry)
                    if finding is not None and not reported:
                        reported = True
                        yield finding
            leading = False

    def _out_of_step(
        self, walk: QueueWalk, first_number: int, entries: queue_rules.Entries, expired: np.ndarray
    ) -> Finding | None:
        """Compare entries whose units have expired with each other: their offsets must still rise."""
        rows = np.flatnonzero(expired)
        physical = entries.physical[rows]
        repeated = np.flatnonzero(physical[1:] == physical[:-1]) + 1
        odd = np.flatnonzero(index_rules.out_of_order(physical))
        if not len(repeated) and not len(odd):
            return None
        row = int(min([*repeated[:1], *odd[:1]]))
        number = first_number + int(rows[row])
        repeats = row in repeated
        evidence = {"queueOffset": number, "expected": sentence("offsets that rise"), "found": int(physical[row])}
        text = sentence(
            "repeats the entry before it (offset {offset:,})" if repeats else "is out of order (offset {offset:,})",
            offset=int(physical[row]),
        )
        return self._of_entry(walk, number, "CQ05" if repeats else "CQ12", text, evidence)

    def _note_beyond(
        self, walk: QueueWalk, beyond: np.ndarray, first_number: int, entries: queue_rules.Entries
    ) -> None:
        physical = entries.physical
        places = np.flatnonzero(beyond)
        if len(places):
            self.cut.add(walk.name)
            self.known_to = max(self.known_to, int((physical[places] + entries.size[places]).max()))
            self.lost += 0 if walk.reader.topic.startswith(LMQ_PREFIX) else walk.messages(first_number, places)
        for span in (broken_span for broken_span in self._log.spans.spans if broken_span.end > self._log.end):
            remaining = places[beyond[places]]
            inside = remaining[(physical[remaining] >= span.start) & (physical[remaining] < span.end)]
            if len(inside):
                span.lead_all_in(walk.name, first_number + int(inside[0]), first_number + int(inside[-1]), len(inside))
                beyond[inside] = False
        remaining = np.flatnonzero(beyond)
        if len(remaining):
            self._beyond += len(remaining)
            if self._first_beyond is None:
                self._first_beyond = (walk, first_number + int(remaining[0]), int(physical[remaining[0]]))
        beyond[places] = True

    def _judge(self, walk: QueueWalk, number: int, entry: queue_rules.ComparedEntry) -> Finding | None:
        """Explain an entry that no unit asked for."""
        span = self._log.spans.find(entry.physical)
        if span is not None and entry.size > 0:
            span.lead_in(walk.name, number)
            return None
        if walk.reader.topic.startswith(LMQ_PREFIX) and not self._queues.light_queues:
            return None
        if entry.size <= 0:
            return self._hole(walk, number)
        if self._looks >= MAX_LOOKUPS:
            return None
        self._looks += 1
        item = self._store.log.unit_at(entry.physical, crc=False)
        where = sentence("points to {offset:,}", offset=entry.physical)
        points = {"physicalOffset": entry.physical, "size": entry.size}
        evidence: dict[str, Any] = {"queueOffset": number, "found": points}
        if not isinstance(item, Unit):
            evidence["expected"] = sentence("a unit at that offset")
            return self._of_entry(
                walk, number, "CQ04", sentence("{where}, where no message begins", where=where), evidence
            )
        if number > walk.first_number and walk.entry(number - 1)[:2] == entry[:2]:
            evidence["expected"] = sentence("each unit once")
            text = sentence("repeats the entry before it ({where})", where=where)
            return self._of_entry(walk, number, "CQ05", text, evidence)
        unit_place = f"{item.topic}/{item.queue_id}/{item.queue_offset}"
        evidence["unit"] = unit_place
        same_queue = (item.topic, item.queue_id) == (walk.reader.topic, walk.reader.queue_id)
        if same_queue and any(suspect.unit.physical == item.offset for suspect in walk.suspects):
            return None  # the entry of its own number is wrong, and reported
        if same_queue and item.queue_offset == number:
            return self._not_for_queues(walk, number, item)
        if same_queue and walk.has_number(item.queue_offset):
            other_entry = walk.entry(item.queue_offset)
            if other_entry.physical == entry.physical:
                evidence["expected"] = sentence("each unit once")
                text = sentence("{where}, as does entry {n:,}", where=where, n=item.queue_offset)
                return self._of_entry(walk, number, "CQ05", text, evidence)
        if item.size == entry.size and self._is_orphan(item):
            return self._odd_unit(walk, number, item)
        evidence["expected"] = sentence("a unit of {queue} with queue offset {n:,}", queue=walk.name, n=number)
        return self._of_entry(
            walk, number, "CQ04", sentence("{where}, a unit of {own}", where=where, own=unit_place), evidence
        )

    def _is_orphan(self, unit: Unit) -> bool:
        """Return True if the unit's own fields name an entry that points elsewhere."""
        other_walk = self._queues.walks.get((unit.topic, unit.queue_id))
        if other_walk is None or not other_walk.has_number(unit.queue_offset):
            return True
        return other_walk.entry(unit.queue_offset).physical != unit.offset

    def _odd_unit(self, walk: QueueWalk, number: int, unit: Unit) -> Finding:
        self.odd_units.add(unit.offset)
        text = sentence(
            "The unit contains {topic}, queue {queue}, queue offset {n:,}; queue {name} has it as entry {entry:,}",
            topic=unit.topic,
            queue=unit.queue_id,
            n=unit.queue_offset,
            name=walk.name,
            entry=number,
        )
        evidence = {
            "expected": f"{walk.name}/{number}",
            "found": f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}",
        }
        file = self._store.log.sequence.find(unit.offset)
        return catalogue.CL09.finding(text, file.path if file else None, unit.offset, evidence)

    def _not_for_queues(self, walk: QueueWalk, number: int, unit: Unit) -> Finding | None:
        """The unit's own entry, although the unit is a half or a rolled back message."""
        if unit.transaction_type in (0, COMMIT):
            return None
        self.odd_units.add(unit.offset)
        words = join(", ", sys_flag_words(unit.sys_flag))
        text = sentence(
            "The unit contains {what}, and such units have no entry; queue {name} has it as entry {entry:,}",
            what=words,
            name=walk.name,
            entry=number,
        )
        evidence = {"expected": sentence("a message or a committed one"), "found": words, "queue": walk.name}
        file = self._store.log.sequence.find(unit.offset)
        return catalogue.CL09.finding(text, file.path if file else None, unit.offset, evidence)

    def _hole(self, walk: QueueWalk, number: int) -> Finding:
        evidence = {"queueOffset": number, "expected": sentence("an entry"), "found": sentence("zero bytes")}
        return self._of_entry(walk, number, "CQ03", sentence("is empty, and entries follow it"), evidence)

    # -- unit → entry

    def _units_without_entries(self, walk: QueueWalk) -> Iterator[Finding]:
        key = (walk.reader.topic, walk.reader.queue_id)
        suspects = [s for s in walk.suspects if s.unit.physical not in self.odd_units]
        if key in self._faulty or self._store.lock_state == "held":  # a writer adds files behind the listed ones
            suspects = [s for s in suspects if s.verdict != "missing"]
        if not suspects:
            return
        suspect = min(suspects, key=lambda s: s.number)
        if suspect.verdict == "unit":
            yield self._unit_with_other_number(walk, suspect)
            return
        text = queue_rules.words(
            suspect.verdict,
            suspect.entry,
            suspect.unit,
            in_rocksdb=walk.in_rocksdb,
            is_delayed=walk.reader.topic == SCHEDULE_TOPIC,
        )
        evidence: dict[str, Any] = {
            "queueOffset": suspect.number,
            "expected": {
                "physicalOffset": suspect.unit.physical,
                "size": suspect.unit.size,
                "tagsCode": suspect.unit.tags,
            },
            "found": {
                "physicalOffset": suspect.entry.physical,
                "size": suspect.entry.size,
                "tagsCode": suspect.entry.tags,
            },
        }
        early = self._is_one_early(walk, suspects)
        if walk.wrong_count > 1:
            evidence["furtherEntries"] = walk.wrong_count - 1
            evidence["lastQueueOffset"] = walk.last_wrong
            if not early:
                text += "; " + plural(
                    "{n:,} more entry up to {last:,} is wrong too",
                    "{n:,} more entries up to {last:,} are wrong too",
                    n=walk.wrong_count - 1,
                    last=walk.last_wrong,
                )
        evidence |= between(*[self._log.stored(suspect.unit.physical)] * 2)
        if early:
            evidence["neverDispatched"] = suspect.unit.physical
            evidence[HAPPENED] = sentence(
                "entry {entry:,} of the queue {queue} was never written, and the entries after it are one "
                "place too early",
                entry=suspect.number,
                queue=walk.name,
            )
            self._early.add(key)
            text += ": " + sentence(
                "it was never dispatched, and the {n:,} entries after it are one place too early", n=walk.wrong_count
            )
        owner = self._other_queue(walk, suspects)
        text += " · " + sentence("these are the entries of {queue}", queue=owner) if owner else ""
        text += self._cut_at(walk, suspect)
        if owner:
            evidence[HAPPENED] = sentence(
                "the queue {queue} has the entries of {other} from entry {entry:,} on: the file belongs to that queue",
                queue=walk.name,
                other=owner,
                entry=suspect.number,
            )
        elif suspect.verdict == "empty":
            evidence[HAPPENED] = self._describe_emptying(walk, suspect.number)
        severity: Severity | None = "warn" if suspect.verdict == "prefilled" else None
        if walk.in_rocksdb and suspect.verdict == "missing":
            text, severity = self._missing_row(walk, suspect, text)
            evidence[HAPPENED] = plural(
                "{n:,} row of the queue {queue} is missing in the RocksDB, from entry {entry:,} on",
                "{n:,} rows of the queue {queue} are missing in the RocksDB, from entry {entry:,} on",
                n=walk.wrong_count,
                queue=walk.name,
                entry=suspect.number,
            )
        kind = "again" if walk.in_rocksdb and suspect.verdict == "missing" and severity is not None else ""
        rule = queue_rules.RULE_OF[suspect.verdict]
        yield self._of_entry(walk, suspect.number, rule, text, evidence, severity, kind=kind)

    def _is_one_early(self, walk: QueueWalk, suspects: list[Suspect]) -> bool:
        """Return True if each entry from the first suspect on belongs one place further back."""
        return (
            walk.wrong_count > 1
            and all(suspect.verdict == "offset" for suspect in suspects)
            and all(
                following.number == current.number + 1 and current.entry[:2] == following.unit[:2]
                for current, following in pairwise(sorted(suspects, key=lambda suspect: suspect.number))
            )
        )

    def _other_queue(self, walk: QueueWalk, suspects: list[Suspect]) -> str:
        """Name the queue whose entries these are, if all that are checked stand at their numbers of one other queue."""
        names = set()
        for suspect in suspects[:MAX_OWNERS]:
            item = self._store.log.unit_at(suspect.entry.physical, crc=False) if suspect.entry.size > 0 else None
            if not isinstance(item, Unit) or item.queue_offset != suspect.number:
                return ""
            names.add((item.topic, item.queue_id))
        if len(suspects) < 2 or len(names) != 1 or (walk.reader.topic, walk.reader.queue_id) in names:
            return ""
        topic, queue_id = names.pop()
        return f"{topic}/{queue_id}"

    def _describe_emptying(self, walk: QueueWalk, number: int) -> str:
        """Describe the cause of the zeroed entries from ``number`` on: whole zero pages mean a lost write."""
        file = walk.reader.sequence.find(number * walk.unit_size)
        place = number * walk.unit_size - file.start_offset if file is not None else 0
        zeros = zero_pages(file.read(place, MAX_READ_BYTES), place) if file is not None else None
        if zeros is None or zeros[0] - place >= PAGE:
            return sentence("entry {entry:,} of the queue {queue} was never written", entry=number, queue=walk.name)
        return sentence(
            "pages of the queue {queue} are zero from entry {entry:,} on: their write was lost",
            queue=walk.name,
            entry=number,
        )

    def _cut_at(self, walk: QueueWalk, suspect: Suspect) -> str:
        """Describe what the next start does with the entries behind an empty one."""
        plan = of_own_release(self._store, self._starts) if suspect.verdict == "empty" else None
        key, entries_behind = (walk.reader.topic, walk.reader.queue_id), walk.end_number - suspect.number - 1
        for queue in plan.queues if plan is not None and entries_behind > 0 else ():
            if (queue.topic, queue.queue_id) == key and queue.max_offset - queue.entries_added <= suspect.number:
                return " · " + plural(
                    "the next start cuts the queue there: the {n:,} entry after it is deleted",
                    "the next start cuts the queue there: the {n:,} entries after it are deleted",
                    n=entries_behind,
                )
        return ""

    def _unit_with_other_number(self, walk: QueueWalk, suspect: Suspect) -> Finding:
        offset = suspect.unit.physical
        text = sentence(
            "The unit contains queue offset {n:,}; queue {name} has it as {entry:,}",
            n=suspect.entry.tags,
            name=walk.name,
            entry=suspect.number,
        )
        evidence = {"expected": suspect.number, "found": suspect.entry.tags, "queue": walk.name}
        unread = self._damaged_unit(walk, suspect)
        if unread is None:
            self.odd_units.add(offset)
        else:
            text += ", " + sentence("because the damaged message at {offset:,} got no entry", offset=unread)
        file = self._store.log.sequence.find(offset)
        cause = catalogue.CL01.id if unread is not None else None
        return catalogue.CL09.finding(text, file.path if file else None, offset, evidence, caused_by=cause)

    def _damaged_unit(self, walk: QueueWalk, suspect: Suspect) -> int | None:
        """Offset of a damaged unit whose queue offset the unit of ``suspect`` has taken; None if there is none."""
        place = (walk.reader.topic, walk.reader.queue_id, suspect.number)
        earlier_damage = [
            span for span in self._log.spans.spans if span.kind == "damage" and span.end <= suspect.unit.physical
        ]
        for span in earlier_damage[-MAX_SPANS:]:
            for lost in lost_units(self._store, span.start, span.end - span.start):
                if (lost.topic, lost.queue_id, lost.queue_offset) == place:
                    return lost.offset
        return None

    def _of_entry(
        self,
        walk: QueueWalk,
        number: int,
        rule: str,
        text: str,
        evidence: dict[str, Any],
        severity: Severity | None = None,
        *,
        kind: str = "",
    ) -> Finding:
        path, place = walk.place_of(number)
        text = sentence("Queue {name}, entry {n:,} {rest}", name=walk.name, n=number, rest=text)
        return catalogue.RULES[rule].finding(text, path, place, {"queue": walk.name, **evidence}, severity, kind=kind)

    def _behind_the_log(self) -> Iterator[Finding]:
        if self._first_beyond is None:
            return
        walk, number, physical = self._first_beyond
        text = plural(
            "points to {offset:,}, the log ends at {end:,}; {n:,} entry of all queues points after its end",
            "points to {offset:,}, the log ends at {end:,}; {n:,} entries of all queues point after its end",
            offset=physical,
            end=self._log.end,
            n=self._beyond,
        )
        evidence = {"expected": sentence("below {n:,}", n=self._log.end), "found": physical, "entries": self._beyond}
        severity: Severity | None = "note" if self._abort else None
        yield self._of_entry(walk, number, "CQ13", text, evidence, severity)


def _file_sizes(queues: QueueCheck) -> dict[str, int]:
    """The length of most queue files of each kind, whatever the configuration says."""
    sizes = {}
    for kind in ("simple", "batch"):
        walks = (walk for walk in queues.walks.values() if not walk.in_rocksdb)
        readers = [walk.reader for walk in walks if walk.reader.kind == kind]
        files = [[log_rules.LogFile(f.path, f.start_offset, f.size) for f in reader.files] for reader in readers]
        if readers:
            sizes[kind] = log_rules.likely_queue_length(files, readers[0].unit_size)
    return sizes


FIXED_FIELDS_BYTES = 128
"""Enough for the fields of a unit before its body."""
WITNESSES = ("CQ13", "IX07", "CK02", "CK04")
OFFSETS = ("CF02", "CF09")
ENTRIES = ("CQ13", "IX07")
"""Witnesses that point to bytes: behind a broken end they prove that there was more."""


def fold(
    findings: list[Finding],
    store: StoreSnapshot,
    log: LogCheck,
    queues: QueueConsequences | None,
    *,
    explained: bool = False,
) -> Iterator[Finding]:
    """Yield ``findings`` with the witnesses of a lost tail merged into one.

    If all of the log is gone (``explained``), that has been reported already. If the tail is lost, the broken end of
    the log follows from that.
    """
    witnesses = [f for f in findings if f.id in WITNESSES]
    if log.next_was_lost:
        findings = list(_beyond_the_tail(findings, queues, catalogue.CL07.id))
    broken = log.tail_is_broken and log.units > 0
    has_several = len({f.id for f in witnesses}) > 1
    written = store.lock_state == "held"  # files read after the log may know more
    if not witnesses or not (broken or has_several or explained):
        yield from findings
        return
    others_kept = [f for f in findings if f.id not in WITNESSES]
    only_checkpoint = not has_several and not any(f.id in ENTRIES for f in witnesses)
    if explained or written or (only_checkpoint and _is_torn_units_time(witnesses[0], store, log)):
        yield from others_kept
        return
    if only_checkpoint:
        yield from findings
        return
    if broken:
        log.tail_cause = catalogue.CL11.id
    yield from _beyond_the_tail(others_kept, queues, catalogue.CL11.id)
    yield _lost_tail_finding(witnesses, store, log, queues)


def _is_torn_units_time(ahead: Finding, store: StoreSnapshot, log: LogCheck) -> bool:
    """Return True if the checkpoint has the store time of the unit that was not written whole: its finding says all."""
    torn_unit = store.log.read(log.end, FIXED_FIELDS_BYTES)
    ahead_ms = int(ahead.evidence.get("aheadMs", 0))
    return log.newest_time + ahead_ms == decode_store_timestamp(torn_unit)


def of_torn_units(findings: Sequence[Finding], torn: Collection[int]) -> Iterator[Finding]:
    """Yield ``findings``; those on a single entry that points to a unit with torn properties follow from these, because
    tags and keys were stored there.
    """
    for finding in findings:
        expected, actual = finding.evidence.get("expected"), finding.evidence.get("found")
        unit = None
        if finding.id == "CQ09" and isinstance(expected, dict) and "furtherEntries" not in finding.evidence:
            unit = expected.get("physicalOffset")
        elif finding.id == "IX06" and isinstance(actual, dict) and not finding.caused_by:
            unit = actual.get("phyOffset")
        yield finding.follows(catalogue.CL04.id) if unit in torn else finding


def _beyond_the_tail(findings: Sequence[Finding], queues: QueueConsequences | None, cause: str) -> Iterator[Finding]:
    """Yield ``findings``; those on offsets in the lost tail follow from ``cause``.

    Resetting a group or a delay level to the end would be wrong if the tail turns up again.
    """
    cut = queues.cut if queues is not None else ()
    for finding in findings:
        queue_names = [
            finding.evidence.get("queue", ""),
            f"{finding.evidence.get('topic')}/{finding.evidence.get('queueId')}",
        ]
        is_beyond = finding.id in OFFSETS and finding.caused_by is None and any(name in cut for name in queue_names)
        yield finding.follows(cause) if is_beyond else finding


def _lost_tail_finding(
    witnesses: Sequence[Finding], store: StoreSnapshot, log: LogCheck, queues: QueueConsequences | None
) -> Finding:
    file = store.log.sequence.find(max(log.end - 1, 0))
    messages = [f.message for f in witnesses]
    evidence: dict[str, Any] = {"found": log.end, "witnesses": messages}
    tail_bytes = store.log.read(log.end, MAX_READ_BYTES)
    evidence[HAPPENED] = damage_causes.of_lost_tail(tail_bytes, log.end, torn=log.tail_is_broken)
    evidence |= between(log.newest_time or -1, -1)
    for witness in witnesses:
        evidence[witness.id] = witness.evidence
    lost = queues.lost if queues is not None else 0
    if lost and queues is not None:
        evidence |= {"expected": queues.known_to, "messages": lost}
        indexed = max((int(f.evidence.get("last", 0)) for f in witnesses if f.id == "IX07"), default=0)
        further = indexed >= queues.known_to
        text = sentence(
            "{lost}: the log ends at {end:,}, the queues know it up to {known:,}",
            lost=_how_many(lost, further),
            end=log.end,
            known=queues.known_to,
        )
        if further:
            evidence["atLeast"] = True
            text += ", " + sentence("the index holds keys of units up to {indexed:,}", indexed=indexed)
    else:
        text = sentence(
            "The end of the log is lost: it ends at {end:,}, other files know more: {who}",
            end=log.end,
            who=join("; ", messages),
        )
    cause = catalogue.CL07.id if log.next_was_lost else None
    return catalogue.CL11.finding(text, file.path if file else None, log.end, evidence, caused_by=cause)


def _how_many(lost: int, further: bool) -> str:
    """Words for the messages that queue entries know; ``further`` if the index knows units behind them."""
    if further:
        return plural("At least the last message is lost", "At least {n:,} messages are lost", n=max(lost, 1))
    return plural("The last message is lost", "The last {n:,} messages are lost", n=max(lost, 1))


def _is_unmade(file: ReadOnlyFile, size: int) -> bool:
    """Return True if a file is shorter than the others (``size`` bytes) and has only zeros: its creation failed."""
    return 0 < file.size < size and not any(file.read(0, file.size))

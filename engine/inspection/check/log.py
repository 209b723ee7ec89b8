"""Checks the commit log: files, units, blanks, times, and the bytes behind the end (docs/formats/commit-log.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.crc import hex_crc
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.check import log_files
from engine.inspection.check.clock import Clock
from engine.inspection.check.log_files import OtherFile
from engine.inspection.check.log_ranges import RangeFindings
from engine.inspection.check.places import Span, Spans, between
from engine.inspection.misnamed_files import MisnamedFile, misnamed_log_files
from engine.inspection.older_front import OlderFront
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue, log_rules
from engine.rules.findings import Finding, Rule, Severity
from engine.rules.proofs import Proof
from engine.sentences import plural, sentence

MAX_FINDINGS_PER_RULE = 20
MAX_RETAINED = 10_000
_GAP = sentence("no file holds these bytes")


class LogCheck:
    """Receives the blocks of one walk; :meth:`findings` reports the results.

    Units of files that belong to another log are skipped.
    """

    def __init__(
        self,
        store: StoreSnapshot,
        clock: Clock,
        other_files: Sequence[OtherFile] = (),
        older: OlderFront | None = None,
    ) -> None:
        self._store = store
        self._older = older
        self._clock = clock
        self._other_spans = {
            other_file.start: (other_file, log_files.span_of_other_file(store, other_file))
            for other_file in other_files
        }
        self._own: set[int] = set()
        """Files (by start offset) with a unit that is at its own offset."""
        self.spans = Spans()
        self._findings: list[Finding] = []
        self._counts: dict[str, int] = {}
        self._newest = self._last_time = -1
        self._blank: tuple[int, int] | None = None
        self._roomy: list[tuple[int, int, int]] = []
        self.bad_crc: list[int] = []
        self.stand_ins: set[int] = set()
        """Offsets of the units that hold the place of a lost message; of the first :data:`MAX_RETAINED`."""
        self._no_crc = 0
        """Number of units that store CRC 0; only the first is reported, with this count."""
        self.end = 0
        self.units = 0
        self.newest_time = 0
        self._files: list[tuple[log_rules.FileFault, Span]] = []
        self._odd_lengths: set[str] = set()
        self._askew = False
        self._file_size = 0
        self._more: dict[str, int] = {}
        self._open: list[Span] = []
        """Broken places whose next unit has not been reached yet."""
        self.tail_cause: str | None = None
        """The rule whose finding explains the broken end of the log."""
        self._check_files()

    # -- files

    def _check_files(self) -> None:
        sequence = self._store.log.sequence
        files = [log_rules.LogFile(f.path, f.start_offset, f.size) for f in sequence.files]
        size = self._file_size = log_rules.likely_length(files) if self._store.kind != "file" else 0
        if self._store.kind != "file":
            short_names = log_files.short_names_finding(sequence.files)
            self._findings += [] if short_names is None else [short_names]
        older_end = self._older.start if self._older is not None else 0
        for fault in log_rules.file_sequence(files, size):
            if fault.kind == "gap" and (sequence.is_partial or fault.end <= older_end):
                continue
            self._files.append((fault, Span(fault.missing, fault.end, "gap", fault.message)))
            if fault.kind == "size":
                self._odd_lengths.add(fault.path)
            self._askew |= fault.kind in ("size", "overlap")
        for read, second in sequence.doubles:
            self._findings.append(log_files.double_finding(read, second))
        misnamed = {file.path: file for file in misnamed_log_files(self._store)}
        for oddity in sequence.oddities:
            if oddity.kind == "double":
                continue
            if oddity.path in misnamed:
                self._report_misnamed(misnamed[oddity.path])
                continue
            if oddity.kind == "stray":
                self._findings.append(log_files.stray_finding(self._store, oddity, size))
                continue
            rule = catalogue.CL07 if oddity.kind in ("double", "link", "folder") else catalogue.DK01
            self._add(rule, oddity.description, oddity.path, oddity.offset, {"found": oddity.description})

    def _report_misnamed(self, file: MisnamedFile) -> None:
        finding = log_files.misnamed_finding(self._store, file)
        self._findings.append(finding)
        if finding.kind == "misnamed":
            for _, span in self._files:
                span.is_elsewhere |= span.start == file.offset

    # -- the walk

    def block(self, columns: UnitColumns) -> NDArray[np.bool_]:
        """Check a block; returns a mask of the units that are at their own offset."""
        rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == BLANK)
        if columns.count and (span := self._foreign_span(int(columns.offset[0]))) is not None:
            self._begin(span, self._last_time)
            self._blank = None
            self.units += rows
            span.units += rows
            return np.zeros(rows, np.bool_)
        stale = log_rules.stale(columns, rows)
        if rows:
            self._note_own(columns.offset[:rows][~stale])
            self._after_blank(int(columns.size[0]))
            self._units(columns, rows, stale)
        if rows < columns.count:
            self._take_blank(int(columns.offset[rows]), int(columns.size[rows]))
        mask: NDArray[np.bool_] = ~stale
        return mask

    def _foreign_span(self, offset: int) -> Span | None:
        """The span of the foreign file that holds ``offset``; a block never reaches into a second file."""
        if not self._other_spans:
            return None
        file = self._store.log.sequence.find(offset)
        entry = self._other_spans.get(file.start_offset) if file is not None else None
        return entry[1] if entry is not None else None

    def _note_own(self, offsets: NDArray[np.int64]) -> None:
        for offset in offsets[:: max(len(offsets) - 1, 1)].tolist():
            file = self._store.log.sequence.find(offset)
            if file is not None:
                self._own.add(file.start_offset)

    def elsewhere(self) -> Iterator[tuple[ReadOnlyFile, int]]:
        """Files in which no unit is at its own offset, with the number of units."""
        for span in self.spans.spans:
            file = self._store.log.sequence.find(span.start) if span.kind == "stale" else None
            if file is not None and span.start == file.start_offset and file.start_offset not in self._own:
                units = sum(
                    stale_span.units
                    for stale_span in self.spans.spans
                    if file.start_offset <= stale_span.start < file.end_offset
                )
                yield file, units

    @property
    def other_ranges(self) -> list[tuple[int, int]]:
        """First byte and end of files that are of another log."""
        return [(span.start, span.end) for _, span in self._other_spans.values()]

    def accepts(self, proof: Proof) -> bool:
        """Return True if a proven range can be skipped here."""
        if self._askew or proof.first_time < self._newest or not self._clock.accepts(proof):
            return False
        return proof.blank is None or proof.blank[0] < self._store.log.files[-1].start_offset

    def skip(self, proof: Proof) -> None:
        """Account for a proven range as if its blocks had been walked."""
        self._after_blank(proof.first_size)
        self._note_own(np.array([proof.start_offset, proof.end_offset - 1], np.int64))
        self.units += proof.units
        self._close(proof.first_time)
        self._newest = self._last_time = self.newest_time = proof.last_time
        self._clock.skip(proof)
        if proof.blank is not None:
            self._take_blank(*proof.blank)

    def _units(self, columns: UnitColumns, rows: int, stale: NDArray[np.bool_]) -> None:
        self.units += rows
        previous = log_rules.PrecedingUnits(self._newest, self._last_time)
        for rule in log_rules.UNIT_RULES:
            broken = rule.broken(columns, rows, previous)
            if not len(broken):
                continue
            match rule.rule.id:
                case "CL05":  # neighbouring units make one finding
                    self._stale(columns, broken, rule)
                case "CL08":  # the clock reports all its steps together
                    pass
                case "CL15":  # neighbouring units make one finding
                    self._note_stand_ins(columns, broken, rule)
                case _:
                    self._report_each(columns, broken, rule)
        times = columns.store_timestamp[:rows][~stale]
        if self._open and len(times):
            self._close_before(columns.offset[:rows][~stale], times)
        self._clock.block(columns.offset[:rows][~stale], times, log_rules.backward_times(times, *previous))
        if len(times):
            self._newest = max(self._newest, int(times.max()))
            self._last_time = int(times[-1])
            self.newest_time = self._newest

    def _report_each(self, columns: UnitColumns, broken: log_rules.Rows, unit_rule: log_rules.UnitRule) -> None:
        for row in broken.tolist():
            offset = int(columns.offset[row])
            if unit_rule.rule is catalogue.CL03 and len(self.bad_crc) < MAX_RETAINED:
                self.bad_crc.append(offset)
            if unit_rule.rule is catalogue.CL03 and log_rules.without_crc(columns, row):
                self._no_crc += 1
                if self._no_crc > 1:
                    continue
            if self._room(unit_rule.rule):
                text, evidence = unit_rule.describe(columns, row)
                self._add(unit_rule.rule, text, self._file(offset), offset, evidence)
            else:
                self._more[unit_rule.rule.id] = self._more.get(unit_rule.rule.id, 0) + 1

    def _stale(self, columns: UnitColumns, broken: log_rules.Rows, unit_rule: log_rules.UnitRule) -> None:
        for row in broken.tolist():
            offset, size = int(columns.offset[row]), int(columns.size[row])
            span = self.spans.add(offset, offset + size, "stale", unit_rule.describe(columns, row)[0], 1)
            if span.units == 1:
                earlier = columns.store_timestamp[:row][~log_rules.stale(columns, row)]
                self._begin(span, int(earlier[-1]) if len(earlier) else self._last_time)

    def _note_stand_ins(self, columns: UnitColumns, found_rows: log_rules.Rows, unit_rule: log_rules.UnitRule) -> None:
        for row in found_rows.tolist():
            offset, size = int(columns.offset[row]), int(columns.size[row])
            span = self.spans.add(offset, offset + size, "placeholder", unit_rule.describe(columns, row)[0], 1)
            if span.units == 1:
                time = int(columns.store_timestamp[row])
                span.time_before = span.time_after = time
            if len(self.stand_ins) < MAX_RETAINED:
                self.stand_ins.add(offset)

    # -- times around broken places

    def _begin(self, span: Span, last_time: int) -> None:
        """Open a broken place behind a unit with this store time (ms)."""
        if span.time_before < 0:
            span.time_before = last_time
            self._open.append(span)

    def _close(self, next_time: int) -> None:
        for span in self._open:
            span.time_after = next_time
        self._open = []

    def _close_before(self, offsets: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        """Good units follow: the first one behind each open place closes it."""
        still_open = []
        for span in self._open:
            row = int(np.searchsorted(offsets, span.end))
            if row < len(times):
                span.time_after = int(times[row])
            else:
                still_open.append(span)
        self._open = still_open

    def _take_blank(self, offset: int, size: int) -> None:
        file = self._store.log.sequence.find(offset)
        if file is None:
            return
        wrong = log_rules.blank_fault(offset, size, file.end_offset)
        if wrong and file.path not in self._odd_lengths:
            evidence = {"expected": file.end_offset - offset, "found": size, **between(self._last_time, -1)}
            self._add(catalogue.CL02, wrong, file.path, offset, evidence)
        self._blank = (offset, size)
        last_span = self.spans.spans[-1] if self.spans.spans else None
        if last_span is not None and last_span.kind == "placeholder" and last_span.end == offset:
            last_span.end += size  # a file that was missing: placeholders at its begin, a blank up to its end

    def _after_blank(self, unit_size: int) -> None:
        if self._blank and log_rules.would_have_fitted(self._blank[1], unit_size):
            offset, size = self._blank
            self._roomy.append((offset, size, unit_size))
        self._blank = None

    def damage(self, item: Damage) -> None:
        """Note bytes that are not a unit."""
        if (foreign_span := self._foreign_span(item.offset)) is not None:
            self._begin(foreign_span, self._last_time)
            return
        if item.reason == _GAP or item.unread:
            for _, span in self._files:
                if span.start <= item.offset < span.end:
                    self._begin(span, self._last_time)
            return
        if self._store.kind == "file" and item.offset == self._store.log.min_offset:
            return  # a copied piece begins in the middle of a unit
        end = item.offset + item.size
        for _, span in self._files:
            if item.offset < span.end and end >= span.start:
                span.start = min(span.start, item.offset)  # the unit that the end of the file cut off
                self._begin(span, self._last_time)
                return
        self._begin(self.spans.add(item.offset, end, "damage", item.reason), self._last_time)

    def finish(self, stop: Stop) -> None:
        """End of the walk: an unreadable range right before the stop is the torn tail."""
        self.end = stop.offset
        last_span = self.spans.spans[-1] if self.spans.spans else None
        if (
            last_span is not None
            and last_span.kind == "damage"
            and last_span.start == stop.offset
            and last_span.end > stop.offset
        ):
            last_span.kind = "cut"
        ends = self._blank is not None and self._blank[0] == stop.offset
        live = self._store.lock_state == "held"  # a writer is creating the next one
        if ends and self._store.kind == "store" and not live:
            self._files.append(log_files.next_file_fault(self._store.log.files[-1]))
        self.spans.spans.extend(span for _, span in self._files if span.end > span.start)
        self.spans.spans.extend(span for _, span in self._other_spans.values())
        if self._older is not None:
            words = sentence("retention had deleted these files; an older copy brought some of them back")
            self.spans.spans.append(Span(self._older.begin, self._older.start, "older", words, is_elsewhere=True))
        self.spans.arrange()

    @property
    def torn(self) -> frozenset[int]:
        """Units whose properties are known to differ from what was stored."""
        return frozenset(
            finding.offset for finding in self._findings if finding.id == "CL04" and finding.offset is not None
        )

    @property
    def next_was_lost(self) -> bool:
        """The file that follows the last one is missing, and queues know messages of it."""
        return any(fault.kind == "next" and span.entries for fault, span in self._files)

    @property
    def tail_is_broken(self) -> bool:
        """True if a broken place reaches behind the end of the log: entries that point there are its consequence."""
        return any(span.end > self.end for span in self.spans.spans)

    # -- the findings

    def findings(self) -> Iterator[Finding]:
        """Findings of the log; findings on spans give the number of entries that point into them."""
        live = self._store.lock_state == "held"
        for fault, span in self._files:
            if not span.is_elsewhere:
                yield log_files.file_finding(self._store, fault, span, self._file_size, self.end)
        for finding in self._findings:
            further_count = self._more.pop(finding.id, 0)
            if further_count:
                finding.evidence["furtherPlaces"] = further_count
            if not (live and finding.id == "CL03" and self._is_complete_now(finding)):
                yield self._with_those_without_crc(finding)
        yield from self._clock.findings(self._file)
        yield from self._roomy_blanks()
        ranges = RangeFindings(
            self._store,
            unit_count=self.units,
            is_held=live,
            tail_cause=self.tail_cause,
            starts_of_other_files=self._other_spans.keys(),
        )
        shown = 0
        for span in self.spans.spans:
            if span.kind == "gap" or shown >= MAX_FINDINGS_PER_RULE:
                continue
            if span.kind == "older" and self._older is not None:
                yield log_files.older_front_finding(self._store, self._older)
                continue
            if live and span.kind == "damage" and isinstance(self._store.log.unit_at(span.start), Unit):
                continue  # a page was read before it was written, and the next one after that
            shown += 1
            if span.kind == "other":
                yield log_files.other_file_finding(self._other_spans[span.start][0], self._file(span.start), span)
            else:
                yield ranges.finding(span)

    def _with_those_without_crc(self, finding: Finding) -> Finding:
        """Make the finding on the first unit without a CRC cover all of them."""
        if self._no_crc < 2 or finding.id != "CL03" or finding.evidence["expected"] != 0:
            return finding
        text = sentence(
            "{n:,} units from here on have CRC 0: the writer stored no CRC; the CRC of the first body is {crc}",
            n=self._no_crc,
            crc=hex_crc(finding.evidence["found"]),
        )
        return replace(finding, message=text, evidence={**finding.evidence, "units": self._no_crc})

    def _roomy_blanks(self) -> Iterator[Finding]:
        """One finding for all blanks that had room for the next unit."""
        if not self._roomy or self._store.log.sequence.is_partial:
            return
        offset, size, unit = self._roomy[0]
        text = plural(
            "The blank of {size:,} bytes would have held the next unit ({n:,} byte)",
            "The blank of {size:,} bytes would have held the next unit ({n:,} bytes)",
            size=size,
            n=unit,
        )
        if len(self._roomy) > 1:
            text += "; " + sentence("so would {n:,} more", n=len(self._roomy) - 1)
        evidence = {"blank": size, "unit": unit, "places": [blank[0] for blank in self._roomy[:MAX_FINDINGS_PER_RULE]]}
        yield catalogue.CL10.finding(text, self._file(offset), offset, evidence)

    def _is_complete_now(self, finding: Finding) -> bool:
        """Return True if a running broker was still writing the unit when it was read."""
        item = self._store.log.unit_at(finding.offset or 0)
        return isinstance(item, Unit) and item.crc == "ok"

    def stored(self, offset: int) -> int:
        """Store time (ms) of the unit at ``offset``; −1 if no unit begins there."""
        item = self._store.log.unit_at(offset, crc=False)
        return item.store_timestamp if isinstance(item, Unit) else -1

    def drop(self, rule: Rule, offset: int) -> None:
        """Forget a finding that turned out to be part of a bigger one."""
        self._findings = [
            f for f in self._findings if not (f.id == rule.id and f.offset is not None and f.offset >= offset)
        ]

    def add_changed_properties(self, offset: int, text: str, evidence: dict[str, Any]) -> None:
        """Add a message whose properties the index proves to be changed (CL04)."""
        self._add(catalogue.CL04, text, self._file(offset), offset, evidence, kind="index")

    def _room(self, rule: Rule) -> bool:
        return self._counts.get(rule.id, 0) < MAX_FINDINGS_PER_RULE

    def _add(
        self,
        rule: Rule,
        text: str,
        file: str | None,
        offset: int | None,
        evidence: dict[str, Any],
        severity: Severity | None = None,
        kind: str = "",
    ) -> None:
        if self._room(rule):
            self._counts[rule.id] = self._counts.get(rule.id, 0) + 1
            self._findings.append(rule.finding(text, file, offset, evidence, severity, kind=kind))
        else:
            self._more[rule.id] = self._more.get(rule.id, 0) + 1

    def _file(self, offset: int) -> str | None:
        file = self._store.log.sequence.find(offset)
        return file.path if file else None

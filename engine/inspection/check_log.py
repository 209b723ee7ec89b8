"""The commit log's part of a check: files, units, blanks, times, and what stands behind the end (spec 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage, Stop
from engine.inspection.check_places import Span, Spans
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.rules import catalogue, log_rules
from engine.rules.findings import Finding, Rule, Severity
from engine.rules.proofs import Proof
from engine.rules.zero_pages import zero_pages

MOST_OF_A_RULE = 20
MOST_KEPT = 10_000
MOST_READ = 4 << 20
"""Bytes of a damaged stretch that are looked at for pages of zeros."""
_GAP = "no file holds these bytes"


class LogCheck:
    """Fed with the blocks of one walk; :meth:`findings` tells what they showed."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self.spans = Spans()
        self._found: list[Finding] = []
        self._counts: dict[str, int] = {}
        self._newest = self._last_time = -1
        self._blank: tuple[int, int] | None = None
        self._steps = 0
        self._first_step: tuple[int, int] | None = None
        self._longest_step = 0
        self.bad_crc: list[int] = []
        self.end = 0
        self.units = 0
        self.newest_time = 0
        self._files: list[tuple[log_rules.FileFault, Span]] = []
        self._odd_lengths: set[str] = set()
        self._askew = False
        self._more: dict[str, int] = {}
        self._check_files()

    # -- files

    def _check_files(self) -> None:
        sequence = self._store.log.sequence
        files = [log_rules.LogFile(f.path, f.start_offset, f.size) for f in sequence.files]
        size = log_rules.likely_length(files) if self._store.kind != "file" else 0
        for fault in log_rules.file_sequence(files, size):
            self._files.append((fault, Span(fault.missing, fault.end, "gap", fault.message)))
            if fault.kind == "size":
                self._odd_lengths.add(fault.path)
            self._askew |= fault.kind in ("size", "overlap")
        for oddity in sequence.oddities:
            rule = catalogue.CL07 if oddity.kind in ("double", "link", "folder") else catalogue.DK01
            self._add(rule, oddity.what, oddity.path, oddity.offset, {"found": oddity.what})

    # -- the walk

    def block(self, columns: UnitColumns) -> NDArray[np.bool_]:
        """Look at one block; gives which of its units stand where they say they stand."""
        rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == BLANK)
        stale = log_rules.stale(columns, rows)
        if rows:
            self._after_blank(int(columns.size[0]))
            self._units(columns, rows, stale)
        if rows < columns.count:
            self._take_blank(int(columns.offset[rows]), int(columns.size[rows]))
        mask: NDArray[np.bool_] = ~stale
        return mask

    def accepts(self, proof: Proof) -> bool:
        """Whether a stretch that was proven can be passed over here."""
        if self._askew or proof.first_time < self._newest:
            return False
        return proof.blank is None or proof.blank[0] < self._store.log.files[-1].start_offset

    def pass_over(self, proof: Proof) -> None:
        """As if the blocks of the stretch had gone by."""
        self._after_blank(proof.first_size)
        self.units += proof.units
        self._newest = self._last_time = self.newest_time = proof.last_time
        if proof.blank is not None:
            self._take_blank(*proof.blank)

    def _units(self, columns: UnitColumns, rows: int, stale: NDArray[np.bool_]) -> None:
        self.units += rows
        before = log_rules.Before(self._newest, self._last_time)
        for one in log_rules.UNIT_RULES:
            broken = one.broken(columns, rows, before)
            if not len(broken):
                continue
            match one.rule.id:
                case "CL05":  # neighbours make one finding
                    self._stale(columns, broken, one)
                case "CL08":  # so do all steps of the clock
                    self._steps_back(columns, rows, before)
                case _:
                    self._each(columns, broken, one)
        times = columns.store_timestamp[:rows][~stale]
        if len(times):
            self._newest = max(self._newest, int(times.max()))
            self._last_time = int(times[-1])
            self.newest_time = self._newest

    def _each(self, columns: UnitColumns, broken: log_rules.Rows, one: log_rules.UnitRule) -> None:
        for row in broken.tolist():
            at = int(columns.offset[row])
            if one.rule is catalogue.CL03 and len(self.bad_crc) < MOST_KEPT:
                self.bad_crc.append(at)
            if self._room(one.rule):
                text, evidence = one.told(columns, row)
                self._add(one.rule, text, self._file(at), at, evidence)
            else:
                self._more[one.rule.id] = self._more.get(one.rule.id, 0) + 1

    def _stale(self, columns: UnitColumns, broken: log_rules.Rows, one: log_rules.UnitRule) -> None:
        for row in broken.tolist():
            at, size = int(columns.offset[row]), int(columns.size[row])
            self.spans.add(at, at + size, "stale", one.told(columns, row)[0], 1)

    def _steps_back(self, columns: UnitColumns, rows: int, before: log_rules.Before) -> None:
        for step in log_rules.steps_back(columns, rows, before):
            self._steps += 1
            self._longest_step = max(self._longest_step, step.milliseconds)
            if self._first_step is None or step.milliseconds >= log_rules.CLOCK_STEP > self._first_step[1]:
                self._first_step = (int(columns.offset[step.row]), step.milliseconds)

    def _take_blank(self, offset: int, size: int) -> None:
        file = self._store.log.sequence.find(offset)
        if file is None:
            return
        wrong = log_rules.blank_fault(offset, size, file.end_offset)
        if wrong and file.path not in self._odd_lengths:
            evidence = {"expected": file.end_offset - offset, "found": size}
            self._add(catalogue.CL02, wrong, file.path, offset, evidence)
        self._blank = (offset, size)

    def _after_blank(self, unit_size: int) -> None:
        if self._blank and log_rules.would_have_fitted(self._blank[1], unit_size):
            at, size = self._blank
            text = f"The blank of {size:,} bytes would have held the next unit ({unit_size:,} bytes)"
            self._add(catalogue.CL10, text, self._file(at), at, {"blank": size, "unit": unit_size})
        self._blank = None

    def damage(self, item: Damage) -> None:
        """Bytes that are no unit."""
        if item.reason == _GAP or item.unread:
            return
        if self._store.kind == "file" and item.offset == self._store.log.min_offset:
            return  # a copied piece begins in the middle of a unit
        end = item.offset + item.size
        for _, span in self._files:
            if item.offset < span.end and end >= span.start:
                span.start = min(span.start, item.offset)  # the unit that the end of the file cut off
                return
        self.spans.add(item.offset, end, "damage", item.reason)

    def finish(self, stop: Stop) -> None:
        """The walk is over: what lay in front of the stop and could not be read is the torn tail."""
        self.end = stop.offset
        last = self.spans.spans[-1] if self.spans.spans else None
        if last is not None and last.kind == "damage" and last.start == stop.offset and last.end > stop.offset:
            last.kind = "cut"
        if self._blank is not None and self._store.kind == "store" and self._blank[0] == stop.offset:
            self._next_is_missing(self._store.log.files[-1])
        self.spans.spans.extend(span for _, span in self._files if span.end > span.start)
        self.spans.arrange()

    def _next_is_missing(self, last: ReadOnlyFile) -> None:
        """A blank ends the last file: whoever wrote it opened the next one in the same breath."""
        end = last.end_offset
        text = f"the last file is finished by a blank unit, and the file that follows it at {end:,} is missing"
        fault = log_rules.FileFault("next", last.path, end, end, end + last.size, text, "a file that follows")
        self._files.append((fault, Span(end, end + last.size, "gap", text)))

    @property
    def tail_is_broken(self) -> bool:
        """Something broken reaches behind the end of the log: what points there is its consequence."""
        return any(span.end > self.end for span in self.spans.spans)

    # -- what was found

    def findings(self) -> Iterator[Finding]:
        """Findings of the log; those on spans tell how many entries lead into them."""
        live = self._store.lock_state == "held"
        for fault, span in self._files:
            yield self._of_file(fault, span)
        for finding in self._found:
            more = self._more.pop(finding.id, 0)
            if more:
                finding.evidence["furtherPlaces"] = more
            if not (live and finding.id == "CL03" and self._whole_by_now(finding)):
                yield finding
        yield from self._clock()
        shown = 0
        for span in self.spans.spans:
            if span.kind == "gap" or shown >= MOST_OF_A_RULE:
                continue
            shown += 1
            yield self._of_span(span, live)

    def _clock(self) -> Iterator[Finding]:
        if self._first_step:
            at, milliseconds = self._first_step
            grave = self._longest_step >= log_rules.CLOCK_STEP
            text = f"Stored {milliseconds:,} ms before an earlier unit; {self._steps:,} such steps, the longest "
            evidence = {"steps": self._steps, "longestMs": self._longest_step}
            text += f"{self._longest_step:,} ms"
            yield catalogue.CL08.found(text, self._file(at), at, evidence, "warn" if grave else "note")

    def _of_file(self, fault: log_rules.FileFault, span: Span) -> Finding:
        evidence = {**span.evidence(), "expected": fault.expected, "bytes": span.end - fault.missing}
        light = fault.kind == "empty" or (fault.kind == "next" and self._store.abort)
        severity: Severity | None = "warn" if light else None
        return catalogue.CL07.found(fault.message, fault.path, fault.offset, evidence, severity)

    def _whole_by_now(self, finding: Finding) -> bool:
        """A running broker was writing the unit while it was read."""
        seen = self._store.log.unit_at(finding.offset or 0)
        return isinstance(seen, Unit) and seen.crc == "ok"

    def _of_span(self, span: Span, live: bool) -> Finding:
        size = span.end - span.start
        file = self._file(span.start)
        if span.kind == "stale":
            text = f"{span.units:,} units from here on belong elsewhere: {span.reason}"
            return catalogue.CL05.found(text, file, span.start, {"expected": span.start, **span.evidence()})
        if span.kind == "left":
            text = f"{span.units:,} units from here on are in no queue: {span.reason}"
            return catalogue.CL06.found(text, file, span.start, span.evidence())
        if span.kind == "cut":
            text = f"The log ends here; {size:,} bytes behind it are no whole unit: {span.reason}"
            return catalogue.CL06.found(text, file, span.start, span.evidence(), "note" if live else None)
        text = f"{size:,} bytes are no unit: {span.reason.removeprefix('no unit: ')}"
        evidence = {"expected": "a unit or a blank", **span.evidence()}
        zeros = zero_pages(self._store.log.read(span.start, min(size, MOST_READ)), span.start)
        if zeros is not None:
            text += f" · {zeros[1]:,} bytes from {zeros[0]:,} on are zero: whole pages, as of a write that was lost"
            evidence |= {"zeroFrom": zeros[0], "zeroBytes": zeros[1]}
        return catalogue.CL01.found(text, file, span.start, evidence)

    def drop(self, rule: Rule, offset: int) -> None:
        """Forget a finding that turned out to be part of a bigger one."""
        self._found = [f for f in self._found if not (f.id == rule.id and f.offset is not None and f.offset >= offset)]

    def _room(self, rule: Rule) -> bool:
        return self._counts.get(rule.id, 0) < MOST_OF_A_RULE

    def _add(
        self,
        rule: Rule,
        text: str,
        file: str | None,
        offset: int | None,
        evidence: dict[str, Any],
        severity: Severity | None = None,
    ) -> None:
        if self._room(rule):
            self._counts[rule.id] = self._counts.get(rule.id, 0) + 1
            self._found.append(rule.found(text, file, offset, evidence, severity))
        else:
            self._more[rule.id] = self._more.get(rule.id, 0) + 1

    def _file(self, offset: int) -> str | None:
        file = self._store.log.sequence.find(offset)
        return file.path if file else None

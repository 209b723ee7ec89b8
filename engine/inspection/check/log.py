"""Checks the commit log: files, units, blanks, times, and the bytes behind the end (docs/formats/commit-log.md)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.crc import hex_crc
from engine.codec.message import Unit, bare_reason
from engine.codec.salvage import FieldFault
from engine.codec.unit_scan import Damage, Stop
from engine.files.layout import FILE_NAME_DIGITS, queue_file_name
from engine.files.store_folders import LOG_FOLDER
from engine.inspection.check.clock import Clock
from engine.inspection.check.places import Span, Spans, between
from engine.inspection.lost_units import lost_units
from engine.inspection.misnamed_files import MisnamedFile, misnamed_log_files
from engine.inspection.older_front import OlderFront
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile, UnexpectedEntry
from engine.mapped.sparse import last_byte
from engine.rules import catalogue, damage_causes, log_rules
from engine.rules.damage_causes import PAGE, zero_pages
from engine.rules.findings import HAPPENED, RESTORABLE, STORE, Finding, Rule, Severity
from engine.rules.proofs import Proof
from engine.sentences import join, plural, sentence

MAX_FINDINGS_PER_RULE = 20
MAX_RETAINED = 10_000
MAX_SALVAGED_BYTES = 64 << 10
"""Largest damaged range (bytes) that is treated as one changed unit."""
MAX_READ_BYTES = 4 << 20
"""Bytes of a damaged range that are searched for pages of zeros."""
MAX_FILES_PER_COMMAND = 8
"""Files that a command names one by one."""
_GAP = sentence("no file holds these bytes")
_REMAINDER_SEARCH_BYTES = 1 << 20
"""Bytes before the end of the log that are searched for the message of which a remainder is."""
_REMAINDER_SAMPLE_BYTES = 16


def _span_of(store: StoreSnapshot, other_file: OtherFile) -> Span:
    file = store.log.sequence.find(other_file.start)
    end = file.end_offset if file is not None else other_file.start
    return Span(other_file.start, end, "other", other_file.why, is_elsewhere=other_file.is_renamed)


class OtherFile(NamedTuple):
    """A file of another log, by its start offset: the reason, and the offset that its first unit names as its own (−1
    if that is this place).
    """

    start: int
    why: str
    stated_offset: int
    is_renamed: bool = False
    """Whether all of the file is of another place of this log, so that only its name is wrong."""


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
        self._other_spans = {other_file.start: (other_file, _span_of(store, other_file)) for other_file in other_files}
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
            self._report_short_names(sequence.files)
        older_end = self._older.start if self._older is not None else 0
        for fault in log_rules.file_sequence(files, size):
            if fault.kind == "gap" and (sequence.is_partial or fault.end <= older_end):
                continue
            self._files.append((fault, Span(fault.missing, fault.end, "gap", fault.message)))
            if fault.kind == "size":
                self._odd_lengths.add(fault.path)
            self._askew |= fault.kind in ("size", "overlap")
        for read, second in sequence.doubles:
            self._report_double(read, second)
        misnamed = {file.path: file for file in misnamed_log_files(self._store)}
        for oddity in sequence.oddities:
            if oddity.kind == "double":
                continue
            if oddity.path in misnamed:
                self._report_misnamed(misnamed[oddity.path])
                continue
            if oddity.kind == "stray":
                self._report_stray(oddity)
                continue
            rule = catalogue.CL07 if oddity.kind in ("double", "link", "folder") else catalogue.DK01
            self._add(rule, oddity.description, oddity.path, oddity.offset, {"found": oddity.description})

    def _report_short_names(self, files: Sequence[ReadOnlyFile]) -> None:
        """CL07: names with fewer than 20 digits; the files are read, and the next one stands in front of them."""
        short_names = [file.name for file in files if len(file.name) < FILE_NAME_DIGITS]
        if not short_names:
            return
        file = next(file for file in files if file.name == short_names[0])
        text = plural(
            "{n:,} file of the log has no name of 20 digits ({names}): a broker sorts files by their names as text, "
            "and makes the next one with 20 digits",
            "{n:,} files of the log have no names of 20 digits ({names}): a broker sorts files by their names as text, "
            "and makes the next one with 20 digits",
            n=len(short_names),
            names=", ".join(short_names[:3]),
        )
        evidence: dict[str, Any] = {"expected": queue_file_name(file.start_offset), "found": short_names[:20]}
        evidence[HAPPENED] = sentence(
            "files of the commit log lost the zeros in front of their names ({name})", name=short_names[0]
        )
        self._findings.append(catalogue.CL07.finding(text, file.path, file.start_offset, evidence, kind="name"))

    def _report_misnamed(self, file: MisnamedFile) -> None:
        """CL07: a file of this log under another name, or packed."""
        evidence: dict[str, Any] = {"expected": file.own_name, "found": file.name, RESTORABLE: True}
        if file.is_packed:
            text = sentence(
                "{name} is a file of the log that was packed: nothing of it is read, and a broker does not start",
                name=file.name,
            )
            evidence[HAPPENED] = sentence(
                "the file {name} of the commit log was packed ({packed})", name=file.own_name, packed=file.name
            )
            self._findings.append(catalogue.CL07.finding(text, file.path, None, evidence, kind="packed"))
            return
        own_file = self._store.log.sequence.find(file.offset)
        if own_file is not None:
            text = sentence(
                "{name} holds messages of the log from {offset:,} on, where the log has the file {other}; "
                "a broker does not start with it",
                name=file.name,
                offset=file.offset,
                other=own_file.name,
            )
            evidence[HAPPENED] = sentence(
                "a second copy of the file {file} is among the commit log's files ({name})",
                file=own_file.name,
                name=file.name,
            )
            self._findings.append(catalogue.CL07.finding(text, file.path, None, evidence, kind="spare"))
            return
        text = sentence(
            "{name} is a file of the log under another name: its first unit says that it begins at {offset:,}; "
            "a broker does not start with it",
            name=file.name,
            offset=file.offset,
        )
        evidence[HAPPENED] = sentence(
            "the file {name} of the commit log was renamed to {other}", name=file.own_name, other=file.name
        )
        command: str | None = None
        if Path(file.path).parent == self._store.path / LOG_FOLDER:
            place = f"{STORE}/{LOG_FOLDER}"
            command = f"mv {place}/{shlex.quote(file.name)} {place}/{file.own_name}"
        for _, span in self._files:
            span.is_elsewhere |= span.start == file.offset
        self._findings.append(catalogue.CL07.finding(text, file.path, None, evidence, kind="misnamed", command=command))

    def _report_stray(self, stray: UnexpectedEntry) -> None:
        """CL07: a file that is none of the log's, such as one of a queue or of the index."""
        path, geometry = Path(stray.path), self._store.geometry
        info = self._store.reading.status(path)
        size = info.st_size if info is not None else 0
        folders = {geometry.consume_queue_file_size: "consumequeue"}
        if geometry.index is not None:
            folders[geometry.index.file_size] = "index"
        text = sentence(
            "{name} is no file of the log: its length and its name do not fit to the others, and it holds no messages",
            name=path.name,
        )
        words = [text]
        if size in folders:
            words.append(sentence("it has the length of the files in {folder}", folder=folders[size]))
        evidence: dict[str, Any] = {"expected": self._file_size, "found": size}
        evidence[HAPPENED] = sentence("the file {name} beside the commit log's files is none of them", name=path.name)
        self._findings.append(catalogue.CL07.finding(join("; ", words), stray.path, None, evidence, kind="stray"))

    def _report_double(self, read: ReadOnlyFile, second: ReadOnlyFile) -> None:
        """CL07: two files of one name, in two folders of a log in several."""
        zeros = [file for file in (read, second) if last_byte(file) == 0]
        text = sentence(
            "Begins at the same offset as {path}: a broker starts, writes into one of the two and reads from the other",
            path=read.path,
        )
        evidence: dict[str, Any] = {"found": [read.path, second.path], "zeros": [file.path for file in zeros]}
        name = Path(second.path).name
        evidence[HAPPENED] = sentence("the file {file} of the commit log is in two folders", file=name)
        if len(zeros) == 1:
            text = sentence(
                "Begins at the same offset as {path}; {zeros} is all zeros: a broker starts, writes into one of the "
                "two and reads from the other",
                path=read.path,
                zeros=zeros[0].path,
            )
            evidence[HAPPENED] = sentence(
                "the file {file} of the commit log is in two folders, and one of the two is all zeros ({path})",
                file=name,
                path=zeros[0].path,
            )
        path = zeros[0].path if len(zeros) == 1 else second.path
        kind = "zeros" if len(zeros) == 1 else "double"
        # Not within the log's folder: a broker does not start if a name there is not a number.
        away = Path(path).parent.parent / f"{name}.away"
        command = f"mv {shlex.quote(path)} {shlex.quote(str(away))}" if len(zeros) == 1 else None
        self._findings.append(
            catalogue.CL07.finding(text, path, second.start_offset, evidence, kind=kind, command=command)
        )

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
            self._next_is_missing(self._store.log.files[-1])
        self.spans.spans.extend(span for _, span in self._files if span.end > span.start)
        self.spans.spans.extend(span for _, span in self._other_spans.values())
        if self._older is not None:
            words = sentence("retention had deleted these files; an older copy brought some of them back")
            self.spans.spans.append(Span(self._older.begin, self._older.start, "older", words, is_elsewhere=True))
        self.spans.arrange()

    def _next_is_missing(self, last_file: ReadOnlyFile) -> None:
        """A blank ends the last file: the broker that wrote it opened the next file right away."""
        end = last_file.end_offset
        text = sentence("the last file ends with a blank, and the file that follows it at {end:,} is missing", end=end)
        fault = log_rules.FileFault(
            "next", last_file.path, end, end, end + last_file.size, text, sentence("a file that follows")
        )
        self._files.append((fault, Span(end, end + last_file.size, "gap", text)))

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

    # -- what was found

    def findings(self) -> Iterator[Finding]:
        """Findings of the log; findings on spans give the number of entries that point into them."""
        live = self._store.lock_state == "held"
        for fault, span in self._files:
            if not span.is_elsewhere:
                yield self._file_finding(fault, span)
        for finding in self._findings:
            further_count = self._more.pop(finding.id, 0)
            if further_count:
                finding.evidence["furtherPlaces"] = further_count
            if not (live and finding.id == "CL03" and self._is_complete_now(finding)):
                yield self._with_those_without_crc(finding)
        yield from self._clock.findings(self._file)
        yield from self._roomy_blanks()
        shown = 0
        for span in self.spans.spans:
            if span.kind == "gap" or shown >= MAX_FINDINGS_PER_RULE:
                continue
            if span.kind == "older" and self._older is not None:
                yield self._older_finding(self._older)
                continue
            if live and span.kind == "damage" and isinstance(self._store.log.unit_at(span.start), Unit):
                continue  # a page was read before it was written, and the next one after that
            shown += 1
            yield self._span_finding(span, live)

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

    def _file_finding(self, fault: log_rules.FileFault, span: Span) -> Finding:
        evidence = {**span.evidence(), "expected": fault.expected, "bytes": span.end - fault.missing}
        evidence[HAPPENED] = log_rules.happened(fault, self._file_size)
        kind = fault.kind
        if kind == "size":
            kind = "short" if fault.missing < fault.end else "long"
        severity: Severity | None = "warn" if kind == "next" and self._store.abort and not span.entries else None
        text = join(" · ", [fault.message, span.lost]) if span.lost else fault.message
        command: str | None = None
        name = Path(fault.path).name
        if kind == "short" and self._lacks_zeros_only(fault, span):
            kind = "unfilled" if self.end > fault.offset else "unmade"
            is_in_log_folder = Path(fault.path).parent == self._store.path / LOG_FOLDER
            place = f"{STORE}/{LOG_FOLDER}/{name}" if is_in_log_folder else shlex.quote(fault.path)
            if kind == "unmade":
                text += "; " + sentence("it holds nothing but zeros, and the log ends before it")
                evidence[HAPPENED] = sentence(
                    "the file {file} of the commit log was never completed: the disk was full, or the broker "
                    "died while it created the file",
                    file=name,
                )
                command = f"mv {place} ELSEWHERE"
            else:
                text += "; " + sentence("only zeros are missing: the log ends before the cut")
                command = f"truncate -s {self._file_size} {place}"
        return catalogue.CL07.finding(text, fault.path, fault.offset, evidence, severity, kind=kind, command=command)

    def _lacks_zeros_only(self, fault: log_rules.FileFault, span: Span) -> bool:
        """Return True if the short file is the last one, the log ends before its cut, and no queue points further."""
        files = self._store.log.files
        if span.entries or self.end > fault.missing or any(file.start_offset > fault.offset for file in files):
            return False
        for offset in range(max(self.end, fault.offset), fault.missing, MAX_READ_BYTES):
            block = self._store.log.read(offset, min(MAX_READ_BYTES, fault.missing - offset))
            if block.count(0) != len(block):
                return False
        return True

    def _is_complete_now(self, finding: Finding) -> bool:
        """Return True if a running broker was still writing the unit when it was read."""
        item = self._store.log.unit_at(finding.offset or 0)
        return isinstance(item, Unit) and item.crc == "ok"

    def _span_finding(self, span: Span, live: bool) -> Finding:
        size = span.end - span.start
        file = self._file(span.start)
        if span.kind == "stale":
            text = plural(
                "{n:,} unit from here on belongs to another place: {reason}",
                "{n:,} units from here on belong to another place: {reason}",
                n=span.units,
                reason=span.reason,
            )
            evidence = {"expected": span.start, **span.evidence(), HAPPENED: self._stale_kind(span)}
            return catalogue.CL05.finding(text, file, span.start, evidence)
        if span.kind == "placeholder":
            text = plural(
                "{n:,} unit from here on holds the place of a lost message: {first}",
                "{n:,} units from here on hold the places of lost messages, the first is {first}",
                n=span.units,
                first=span.reason,
            )
            return catalogue.CL15.finding(text, file, span.start, span.evidence())
        if span.kind == "other":
            return self._foreign_file_finding(span)
        if self._is_no_log(span):
            text = sentence(
                "The {size:,} bytes of the log have no RocketMQ message: the log belongs to another program or was "
                "overwritten completely ({reason})",
                size=size,
                reason=bare_reason(span.reason),
            )
            evidence = {"expected": sentence("units of RocketMQ"), "found": self._bytes(span)[:16].hex()}
            evidence[HAPPENED] = sentence(
                "the commit log has no RocketMQ message: it belongs to another program or was overwritten"
            )
            return catalogue.CL01.finding(text, file, span.start, evidence, kind="foreign")
        if span.kind == "left":
            text = plural(
                "{n:,} unit from here on is in no queue: {reason}",
                "{n:,} units from here on are in no queue: {reason}",
                n=span.units,
                reason=span.reason,
            )
            evidence = {
                **span.evidence(),
                HAPPENED: sentence(
                    "an earlier start cut the commit log at {at:,}, and the bytes after it came back", at=span.start
                ),
            }
            return catalogue.CL06.finding(text, file, span.start, evidence)
        if span.kind == "cut" and self._is_rest_of_page(span):
            text = plural(
                "The log ends here; {n:,} byte after it, in the same page, is the remainder of an older message",
                "The log ends here; {n:,} bytes after it, in the same page, are the remainder of older messages",
                n=size,
            )
            return catalogue.CL06.finding(text, file, span.start, span.evidence(), kind="page")
        if span.kind == "cut":
            text = plural(
                "The log ends here; {n:,} byte after it is not a complete unit: {reason}",
                "The log ends here; {n:,} bytes after it are not a complete unit: {reason}",
                n=size,
                reason=bare_reason(span.reason),
            )
            text += " · " + span.lost if span.lost else ""
            severity: Severity | None = "note" if live else None
            evidence = {**span.evidence(), HAPPENED: damage_causes.of_torn_end(self._bytes(span), span.start, size)}
            return catalogue.CL06.finding(text, file, span.start, evidence, severity, caused_by=self.tail_cause)
        text = plural(
            "{n:,} byte is invalid: {reason}",
            "{n:,} bytes are invalid: {reason}",
            n=size,
            reason=bare_reason(span.reason),
        )
        evidence = {"expected": sentence("a unit or a blank"), **span.evidence()}
        data = self._bytes(span)
        wrong = self._wrong_fields(span) if size <= MAX_SALVAGED_BYTES else ()
        evidence[HAPPENED] = damage_causes.of_damaged_range(data, span.start, size, [field.field for field in wrong])
        if wrong and wrong[0].is_overflow:
            length = wrong[0].likely or 0
            evidence[HAPPENED] = damage_causes.of_overflow(span.start, wrong[0].stored, length)
            text = sentence(
                "The message here has {n:,} bytes of properties: their 16-bit length overflowed to {says:,}; its body "
                "is complete",
                n=length,
                says=wrong[0].stored,
            )
            command = f"storescope copy {STORE} NEW"
            return catalogue.CL01.finding(text, file, span.start, evidence, kind="overflow", command=command)
        zeros = zero_pages(data, span.start)
        if zeros is not None:
            text += " · " + sentence(
                "{n:,} bytes from {offset:,} on are zero: whole pages, as after a lost write",
                n=zeros[1],
                offset=zeros[0],
            )
            evidence |= {"zeroFrom": zeros[0], "zeroBytes": zeros[1]}
        text += " · " + span.lost if span.lost else ""
        before_another = span.end in self._other_spans and not any(data)  # the log ended here
        cause = catalogue.CL05.id if before_another and not span.entries else None
        return catalogue.CL01.finding(text, file, span.start, evidence, caused_by=cause)

    def _is_rest_of_page(self, span: Span) -> bool:
        """Return True if the bytes are what a broker with ``writeWithoutMmap`` writes behind a message: its buffer up
        to the end of the page, with older messages in it (docs/formats/writing.md#without-mmap).
        """
        file = self._store.log.sequence.find(span.start)
        if file is None or span.entries or self._store.abort:
            return False
        position = span.start - file.start_offset
        if position // PAGE != (position + span.end - span.start - 1) // PAGE:
            return False
        preceding_bytes = file.read(max(position - _REMAINDER_SEARCH_BYTES, 0), min(position, _REMAINDER_SEARCH_BYTES))
        return file.read(position, min(span.end - span.start, _REMAINDER_SAMPLE_BYTES)) in preceding_bytes

    def _is_no_log(self, span: Span) -> bool:
        """Return True if the log holds no RocketMQ data from its first byte on (more than just a torn first unit)."""
        if self.units or span.start != max(self._store.log.min_offset, 0) or "magic code" not in span.reason:
            return False
        head = self._bytes(span)[:PAGE]
        return len(head) == PAGE and head.count(0) < PAGE // 2

    def _older_finding(self, older: OlderFront) -> Finding:
        """CL07: files that retention had deleted are back in front of the log."""
        names = [file.name for file in older.files]
        count = len(names)
        text = sentence(
            "The file {first} is of an older copy of this log: the queue {queue} begins at entry {entry:,}, so "
            "retention had deleted the log in front of {start:,}; nothing is lost between {end:,} and {start:,}"
            if count == 1
            else "{n:,} files, {first} to {last}, are of an older copy of this log: the queue {queue} begins at entry "
            "{entry:,}, so retention had deleted the log in front of {start:,}; nothing is lost between {end:,} and "
            "{start:,}",
            n=count,
            first=names[0],
            last=names[-1],
            queue=older.queue,
            entry=older.first_entry,
            start=older.start,
            end=older.end,
        )
        evidence: dict[str, Any] = {
            "expected": queue_file_name(older.start),
            "found": names[:MAX_FINDINGS_PER_RULE],
            "begins": older.start,
            "queue": older.queue,
            "firstEntry": older.first_entry,
            "unit": older.unit,
        }
        evidence[HAPPENED] = plural(
            "{n:,} file of an older copy of the commit log came back in front of it, the first is {name}",
            "{n:,} files of an older copy of the commit log came back in front of it, the first is {name}",
            n=count,
            name=names[0],
        )
        folders = {Path(file.path).parent for file in older.files}
        command: str | None = None
        if folders == {self._store.path / LOG_FOLDER} and count <= MAX_FILES_PER_COMMAND:
            command = f"mv {' '.join(f'{STORE}/{LOG_FOLDER}/{name}' for name in names)} ELSEWHERE"
        return catalogue.CL07.finding(text, older.files[0].path, older.begin, evidence, kind="older", command=command)

    def _foreign_file_finding(self, span: Span) -> Finding:
        """A file that is of another log."""
        other_file, _ = self._other_spans[span.start]
        file = self._file(span.start)
        name = Path(file or "").name
        evidence: dict[str, Any] = {
            "expected": sentence("units of this log from {at:,} on", at=span.start),
            **span.evidence(),
        }
        evidence[HAPPENED] = sentence("the file {name} of the commit log is not this log's", name=name)
        if other_file.stated_offset >= 0:
            evidence["physicalOffset"] = other_file.stated_offset
        if other_file.is_renamed:
            own_name = queue_file_name(other_file.stated_offset)
            text = sentence(
                "The file {name} is not at the place that its name states: {why}", name=name, why=span.reason
            )
            evidence |= {"expected": own_name, "found": name, RESTORABLE: True}
            evidence[HAPPENED] = sentence(
                "the file {name} of the commit log was renamed to {other}", name=own_name, other=name
            )
            return catalogue.CL05.finding(text, file, span.start, evidence, kind="renamed")
        text = sentence("The file {name} does not belong to this log: {why}", name=name, why=span.reason)
        text += " · " + span.lost if span.lost else ""
        return catalogue.CL05.finding(text, file, span.start, evidence, kind="file")

    def _bytes(self, span: Span) -> bytes:
        return self._store.log.read(span.start, min(span.end - span.start, MAX_READ_BYTES))

    def _wrong_fields(self, span: Span) -> Sequence[FieldFault]:
        """Wrong fields of the only unit in a broken place."""
        lost = lost_units(self._store, span.start, span.end - span.start)
        return lost[0].wrong if len(lost) == 1 else ()

    def _stale_kind(self, span: Span) -> str:
        """Describe whether the units are at their own offsets as well."""
        stale_unit = self._store.log.unit_at(span.start, crc=False)
        is_copy = False
        if isinstance(stale_unit, Unit):
            original = self._store.log.unit_at(stale_unit.physical_offset, crc=False)
            is_copy = isinstance(original, Unit) and self._store.log.read(original.offset, original.size) == (
                self._store.log.read(stale_unit.offset, stale_unit.size)
            )
        return damage_causes.of_stale(span.units, span.start, is_copy=is_copy)

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

"""Findings on ranges of the commit log that are no valid part of it: damage, stale units, and a torn end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.codec.message import Unit, bare_reason
from engine.codec.salvage import FieldFault
from engine.inspection.check.places import Span
from engine.inspection.lost_units import lost_units
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue, damage_causes
from engine.rules.damage_causes import PAGE, zero_pages
from engine.rules.findings import HAPPENED, STORE, Finding, Severity
from engine.sentences import plural, sentence

MAX_SALVAGED_BYTES = 64 << 10
"""Largest damaged range (bytes) that is treated as one changed unit."""
MAX_READ_BYTES = 4 << 20
"""Bytes of a damaged range that are searched for pages of zeros."""
_REMAINDER_SEARCH_BYTES = 1 << 20
"""Bytes before the end of the log that are searched for the message of which a remainder is."""
_REMAINDER_SAMPLE_BYTES = 16


class RangeFindings:
    """Makes the finding of one range after the other."""

    def __init__(
        self,
        store: StoreSnapshot,
        *,
        unit_count: int,
        is_held: bool,
        tail_cause: str | None,
        starts_of_other_files: Collection[int],
    ) -> None:
        self._store = store
        self._unit_count = unit_count
        self._is_held = is_held
        self._tail_cause = tail_cause
        self._starts_of_other_files = starts_of_other_files

    def finding(self, span: Span) -> Finding:
        """Return the finding of a range of any kind but a gap and a file that is not the log's own."""
        if span.kind == "stale":
            return self._stale(span)
        if span.kind == "placeholder":
            return self._placeholder(span)
        if self._is_no_log(span):
            return self._no_log(span)
        if span.kind == "left":
            return self._unqueued(span)
        if span.kind == "cut":
            return self._remainder_of_page(span) if self._is_remainder_of_page(span) else self._torn_end(span)
        return self._damage(span)

    def _stale(self, span: Span) -> Finding:
        text = plural(
            "{n:,} unit from here on belongs to another place: {reason}",
            "{n:,} units from here on belong to another place: {reason}",
            n=span.units,
            reason=span.reason,
        )
        evidence = {"expected": span.start, **span.evidence(), HAPPENED: self._cause_of_stale(span)}
        return catalogue.CL05.finding(text, self._file(span), span.start, evidence)

    def _placeholder(self, span: Span) -> Finding:
        text = plural(
            "{n:,} unit from here on holds the place of a lost message: {first}",
            "{n:,} units from here on hold the places of lost messages, the first is {first}",
            n=span.units,
            first=span.reason,
        )
        return catalogue.CL15.finding(text, self._file(span), span.start, span.evidence())

    def _no_log(self, span: Span) -> Finding:
        text = sentence(
            "The {size:,} bytes of the log have no RocketMQ message: the log belongs to another program or was "
            "overwritten completely ({reason})",
            size=span.end - span.start,
            reason=bare_reason(span.reason),
        )
        evidence = {"expected": sentence("units of RocketMQ"), "found": self._bytes(span)[:16].hex()}
        evidence[HAPPENED] = sentence(
            "the commit log has no RocketMQ message: it belongs to another program or was overwritten"
        )
        return catalogue.CL01.finding(text, self._file(span), span.start, evidence, kind="foreign")

    def _unqueued(self, span: Span) -> Finding:
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
        return catalogue.CL06.finding(text, self._file(span), span.start, evidence)

    def _remainder_of_page(self, span: Span) -> Finding:
        text = plural(
            "The log ends here; {n:,} byte after it, in the same page, is the remainder of an older message",
            "The log ends here; {n:,} bytes after it, in the same page, are the remainder of older messages",
            n=span.end - span.start,
        )
        return catalogue.CL06.finding(text, self._file(span), span.start, span.evidence(), kind="page")

    def _torn_end(self, span: Span) -> Finding:
        size = span.end - span.start
        text = plural(
            "The log ends here; {n:,} byte after it is not a complete unit: {reason}",
            "The log ends here; {n:,} bytes after it are not a complete unit: {reason}",
            n=size,
            reason=bare_reason(span.reason),
        )
        text += " · " + span.lost if span.lost else ""
        severity: Severity | None = "note" if self._is_held else None
        evidence = {**span.evidence(), HAPPENED: damage_causes.of_torn_end(self._bytes(span), span.start, size)}
        return catalogue.CL06.finding(
            text, self._file(span), span.start, evidence, severity, caused_by=self._tail_cause
        )

    def _damage(self, span: Span) -> Finding:
        size, data = span.end - span.start, self._bytes(span)
        text = plural(
            "{n:,} byte is invalid: {reason}",
            "{n:,} bytes are invalid: {reason}",
            n=size,
            reason=bare_reason(span.reason),
        )
        evidence = {"expected": sentence("a unit or a blank"), **span.evidence()}
        wrong = self._wrong_fields(span) if size <= MAX_SALVAGED_BYTES else ()
        if wrong and wrong[0].is_overflow:
            return self._overflow(span, wrong[0])
        evidence[HAPPENED] = damage_causes.of_damaged_range(data, span.start, size, [field.field for field in wrong])
        zeros = zero_pages(data, span.start)
        if zeros is not None:
            text += " · " + sentence(
                "{n:,} bytes from {offset:,} on are zero: whole pages, as after a lost write",
                n=zeros[1],
                offset=zeros[0],
            )
            evidence |= {"zeroFrom": zeros[0], "zeroBytes": zeros[1]}
        text += " · " + span.lost if span.lost else ""
        before_another = span.end in self._starts_of_other_files and not any(data)  # the log ended here
        cause = catalogue.CL05.id if before_another and not span.entries else None
        return catalogue.CL01.finding(text, self._file(span), span.start, evidence, caused_by=cause)

    def _overflow(self, span: Span, field: FieldFault) -> Finding:
        """A message whose properties are longer than its 16-bit length says."""
        length = field.likely or 0
        evidence = {
            "expected": sentence("a unit or a blank"),
            **span.evidence(),
            HAPPENED: damage_causes.of_overflow(span.start, field.stored, length),
        }
        text = sentence(
            "The message here has {n:,} bytes of properties: their 16-bit length overflowed to {says:,}; its body "
            "is complete",
            n=length,
            says=field.stored,
        )
        command = f"storescope copy {STORE} NEW"
        return catalogue.CL01.finding(text, self._file(span), span.start, evidence, kind="overflow", command=command)

    def _is_remainder_of_page(self, span: Span) -> bool:
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
        if self._unit_count or span.start != max(self._store.log.min_offset, 0) or "magic code" not in span.reason:
            return False
        head = self._bytes(span)[:PAGE]
        return len(head) == PAGE and head.count(0) < PAGE // 2

    def _cause_of_stale(self, span: Span) -> str:
        """Describe whether the units are at their own offsets as well."""
        stale_unit = self._store.log.unit_at(span.start, crc=False)
        is_copy = False
        if isinstance(stale_unit, Unit):
            original = self._store.log.unit_at(stale_unit.physical_offset, crc=False)
            is_copy = isinstance(original, Unit) and self._store.log.read(original.offset, original.size) == (
                self._store.log.read(stale_unit.offset, stale_unit.size)
            )
        return damage_causes.of_stale(span.units, span.start, is_copy=is_copy)

    def _wrong_fields(self, span: Span) -> Sequence[FieldFault]:
        """Wrong fields of the only unit in a broken place."""
        lost = lost_units(self._store, span.start, span.end - span.start)
        return lost[0].wrong if len(lost) == 1 else ()

    def _bytes(self, span: Span) -> bytes:
        return self._store.log.read(span.start, min(span.end - span.start, MAX_READ_BYTES))

    def _file(self, span: Span) -> str | None:
        file = self._store.log.sequence.find(span.start)
        return file.path if file is not None else None

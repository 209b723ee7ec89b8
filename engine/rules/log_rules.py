"""Rules over a block of units, and over the list of the log's files.

:data:`UNIT_RULES` lists all rules about single units: both reports of faults and proofs of their absence use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.codec import block_texts, filler, flipped_bits, properties
from engine.codec.columns import BAD, UnitColumns
from engine.codec.crc import crc31, hex_crc
from engine.files.layout import queue_file_name
from engine.rules import catalogue, damage_causes
from engine.rules.findings import HAPPENED, STORED_FROM, STORED_TO, Rule
from engine.sentences import Sentence, plural, sentence

Rows = NDArray[np.intp]
_CRC_HEAD = np.frombuffer(b"__CRC32#\x01", np.uint8)
_CRC_TAIL = 20
CLOCK_STEP = 1000
"""Backward step of the store time, in ms, from which on a warning is given."""


def wrong_crc(columns: UnitColumns, rows: int) -> Rows:
    """Rows whose body CRC is not the stored one; an empty body has none to compare."""
    return np.flatnonzero((columns.crc[:rows] == BAD) & (columns.body_length[:rows] > 0))


def stale(columns: UnitColumns, rows: int) -> NDArray[np.bool_]:
    """Mark units whose own offset field names another place."""
    mask: NDArray[np.bool_] = columns.physical_offset[:rows] != columns.offset[:rows]
    return mask


def zeroed_properties(columns: UnitColumns, rows: int) -> Rows:
    """Rows whose property text begins or ends with a zero byte, or has many in a row: no encoder writes that."""
    length = columns.properties_length[:rows]
    start = columns.properties_position[:rows]
    with_text = np.flatnonzero(length > 0)
    begins = columns.buffer[start[with_text]] == 0
    ends = columns.buffer[start[with_text] + length[with_text] - 1] == 0
    is_zeroed = np.zeros(rows, np.bool_)  # np.union1d would import numpy.ma
    is_zeroed[with_text[begins | ends]] = True
    is_zeroed[block_texts.rows_with_zero_run(columns, rows)] = True
    return np.flatnonzero(is_zeroed)


def wrong_property_crc(columns: UnitColumns, rows: int) -> list[int]:
    """Rows that carry a property CRC which is wrong (docs/formats/commit-log.md#property-crc)."""
    ends = columns.properties_position[:rows] + columns.properties_length[:rows]
    able = np.flatnonzero(columns.properties_length[:rows] >= _CRC_TAIL)
    if not len(able):
        return []
    able = able[columns.buffer[ends[able] - _CRC_TAIL] == _CRC_HEAD[0]]
    heads = columns.buffer[(ends[able] - _CRC_TAIL)[:, None] + np.arange(len(_CRC_HEAD))]
    carrying = able[(heads == _CRC_HEAD).all(axis=1)]
    wrong_rows = []
    for row in carrying:
        position = int(columns.offset[row]) - columns.base
        unit = columns.buffer[position : position + int(columns.size[row])].tobytes()
        if properties.verify_crc(unit) is False:
            wrong_rows.append(int(row))
    return wrong_rows


class ClockStepBack(NamedTuple):
    """A unit stored before the one in front of it, by the clock."""

    row: int
    milliseconds: int


def backward_times(times: NDArray[np.int64], newest: int, last_time: int | None = None) -> list[ClockStepBack]:
    """Steps back of the clock in ``times`` (ms, in the order of the log).

    ``newest`` is the latest earlier time, ``last_time`` the time of the previous unit if that differs.
    """
    if not len(times):
        return []
    newest_before = np.maximum.accumulate(np.concatenate([[newest], times]))[:-1]
    previous = np.concatenate([[newest if last_time is None else last_time], times[:-1]])
    steps = np.flatnonzero((times < newest_before) & (times < previous))
    return [ClockStepBack(int(row), int(newest_before[row]) - int(times[row])) for row in steps]


class PrecedingUnits(NamedTuple):
    """State of the units before a block: the latest store time, and the last one's (ms, −1 for none)."""

    newest: int = -1
    last: int = -1


def steps_back(columns: UnitColumns, rows: int, previous: PrecedingUnits) -> list[ClockStepBack]:
    """:func:`backward_times` of a block's units that are at their own offset."""
    good = np.flatnonzero(~stale(columns, rows))
    times = columns.store_timestamp[:rows][good]
    return [ClockStepBack(int(good[row]), ms) for row, ms in backward_times(times, *previous)]


def broken_properties(columns: UnitColumns, rows: int) -> Rows:
    """Rows whose properties differ from what was stored, except those whose body CRC already shows it."""
    broken = np.array([*zeroed_properties(columns, rows), *wrong_property_crc(columns, rows)], np.intp)
    return np.setdiff1d(broken, wrong_crc(columns, rows)) if len(broken) else broken


def stand_ins(columns: UnitColumns, rows: int) -> Rows:
    """Rows that hold the place of a lost message (:mod:`engine.codec.filler`)."""
    flagged = np.flatnonzero(filler.has_its_flags(columns.sys_flag[:rows]))
    chosen = [
        row
        for row in flagged.tolist()
        if filler.is_stand_in(int(columns.sys_flag[row]), columns.body(row), columns.raw_properties(row))
    ]
    return np.array(chosen, np.intp)


TextAndEvidence = tuple[str, dict[str, Any]]
"""The text and the evidence of a finding."""


class UnitRule(NamedTuple):
    """A rule about single units.

    ``broken`` returns the rows of a block's first ``rows`` units that break ``rule``; ``describe`` returns the fault of
    one of them. A rule uses no more than the block and :class:`PrecedingUnits`: a proof of a range must hold wherever
    the range begins.
    """

    rule: Rule
    broken: Callable[[UnitColumns, int, PrecedingUnits], Rows]
    describe: Callable[[UnitColumns, int], TextAndEvidence]


def _describe_crc(columns: UnitColumns, row: int) -> TextAndEvidence:
    body = int(columns.body_position[row]) + columns.base
    stored, computed = int(columns.body_crc[row]), crc31(columns.body(row))
    explained = flipped_bits.explain(columns.body(row), stored)
    evidence = {
        "expected": stored,
        "found": computed,
        "explanation": explained.words,
        "bytePositions": [body + flip.position for flip in explained.flips],
        "bodyOffset": body,
        "bodyLength": int(columns.body_length[row]),
        "topic": columns.raw_topic(row).decode("utf-8", "replace"),
        HAPPENED: damage_causes.of_body(columns.body(row), int(columns.offset[row]), body, stored, explained),
        **_stored(columns, row),
    }
    if stored == 0 and not explained.flips:
        evidence["explanation"] = sentence("no CRC was stored")
        return sentence(
            "The stored CRC is 0: the writer stored none; the CRC of the body is {crc}", crc=hex_crc(computed)
        ), evidence
    return sentence(
        "The body's CRC is {found}, the stored CRC is {expected}: {why}",
        found=hex_crc(computed),
        expected=hex_crc(stored),
        why=explained.words,
    ), evidence


def _stored(columns: UnitColumns, row: int) -> dict[str, int]:
    return dict.fromkeys((STORED_FROM, STORED_TO), int(columns.store_timestamp[row]))


def without_crc(columns: UnitColumns, row: int) -> bool:
    """Return True if a unit with a wrong CRC stores 0: its writer stored none."""
    return int(columns.body_crc[row]) == 0


def _describe_properties(columns: UnitColumns, row: int) -> TextAndEvidence:
    start, length = int(columns.properties_position[row]), int(columns.properties_length[row])
    text = columns.buffer[start : start + length]
    zeros = int((text == 0).sum())
    evidence: dict[str, Any] = {
        "expected": "name 0x01 value 0x02 …",
        "found": columns.raw_properties(row)[:64].hex(),
        "zeros": zeros,
    }
    fault_words = sentence("the CRC of its properties is wrong")
    ends_with_zeros = bool(length) and (text[0] == 0 or text[-1] == 0)
    has_zeros = ends_with_zeros or bytes(block_texts.ZERO_RUN_BYTES) in text.tobytes()
    evidence[HAPPENED] = damage_causes.of_properties(
        int(columns.offset[row]), zeros if has_zeros else 0, length, is_cut=ends_with_zeros
    )
    evidence |= _stored(columns, row)
    if ends_with_zeros:
        fault_words = sentence(
            "{zeros:,} of the {n:,} bytes of its properties are zero: it was written only in part",
            zeros=zeros,
            n=length,
        )
    elif has_zeros:
        fault_words = sentence(
            "{zeros:,} of the {n:,} bytes of its properties are zero: they were overwritten", zeros=zeros, n=length
        )
    message = sentence(
        "Unit of {size:,} bytes: {fault}; the next start keeps it and delivers it",
        size=int(columns.size[row]),
        fault=fault_words,
    )
    return message, evidence


def _describe_place(columns: UnitColumns, row: int) -> TextAndEvidence:
    field = int(columns.physical_offset[row])
    return sentence("PHYSICALOFFSET says {n:,}", n=field), {"expected": int(columns.offset[row]), "found": field}


def _describe_time(columns: UnitColumns, row: int) -> TextAndEvidence:
    return sentence("Stored before an earlier unit"), {"found": int(columns.store_timestamp[row])}


def _describe_stand_in(columns: UnitColumns, row: int) -> TextAndEvidence:
    name = f"{columns.raw_topic(row).decode('utf-8', 'replace')}/{columns.queue_id[row]}/{columns.queue_offset[row]}"
    return name, {}


UNIT_RULES: tuple[UnitRule, ...] = (
    UnitRule(catalogue.CL05, lambda columns, rows, _: np.flatnonzero(stale(columns, rows)), _describe_place),
    UnitRule(catalogue.CL03, lambda columns, rows, _: wrong_crc(columns, rows), _describe_crc),
    UnitRule(catalogue.CL04, lambda columns, rows, _: broken_properties(columns, rows), _describe_properties),
    UnitRule(
        catalogue.CL08,
        lambda *block: np.array([step.row for step in steps_back(*block)], np.intp),
        _describe_time,
    ),
    UnitRule(catalogue.CL15, lambda columns, rows, _: stand_ins(columns, rows), _describe_stand_in),
)


def first_broken(columns: UnitColumns, rows: int, previous: PrecedingUnits) -> Rule | None:
    """The first of :data:`UNIT_RULES` that a block's first ``rows`` units break; None if they break none."""
    return next((unit_rule.rule for unit_rule in UNIT_RULES if len(unit_rule.broken(columns, rows, previous))), None)


class LogFile(NamedTuple):
    """Name and place of one file of the log, in bytes."""

    path: str
    start: int
    size: int


def likely_length(files: Sequence[LogFile]) -> int:
    """The length that a sequence's files were made with: by their lengths, and by how far apart they begin."""
    votes: dict[int, int] = {}
    for number, file in enumerate(files):
        votes[file.size] = votes.get(file.size, 0) + 1
        apart = files[number + 1].start - file.start if number + 1 < len(files) else 0
        if apart:
            votes[apart] = votes.get(apart, 0) + 1
    return max(votes, key=lambda size: (votes[size], size)) if votes else 0


def likely_queue_length(sequences: Iterable[Sequence[LogFile]], entry_bytes: int) -> int:
    """The length that most files of queues were made with; 0 if unknown. It is a multiple of an entry: a file with
    another length was padded, cut or is empty.
    """
    votes: dict[int, int] = {}
    for files in sequences:
        for number, file in enumerate(files):
            apart = files[number + 1].start - file.start if number + 1 < len(files) else 0
            for length in (file.size, apart):
                if length > 0 and length % entry_bytes == 0:
                    votes[length] = votes.get(length, 0) + 1
    return max(votes, key=lambda size: (votes[size], size)) if votes else 0


class FileFault(NamedTuple):
    """A file that does not fit into the sequence, and the bytes [missing, end) of the log that are not there."""

    kind: str
    path: str
    offset: int
    missing: int
    end: int
    message: str
    expected: str


def file_sequence(files: Sequence[LogFile], file_size: int) -> list[FileFault]:
    """Gaps, overlaps and lengths that differ from ``file_size`` (bytes; 0 if unknown)."""
    faults = []
    expected = plural(
        "files of {n:,} byte, one behind the other", "files of {n:,} bytes, one behind the other", n=file_size
    )
    for number, file in enumerate(files):
        end = file.start + file.size
        following = files[number + 1] if number + 1 < len(files) else None
        if file.size == 0 and following is None:
            text = sentence("the last file has no bytes: it was created, and nothing was written into it")
            faults.append(FileFault("empty", file.path, file.start, file.start, file.start, text, expected))
        elif file_size and file.size != file_size:
            text = plural(
                "expected {n:,} byte like the other files, found {found:,}",
                "expected {n:,} bytes like the other files, found {found:,}",
                n=file_size,
                found=file.size,
            )
            full_end = file.start + file_size
            faults.append(FileFault("size", file.path, file.start, min(end, full_end), full_end, text, expected))
        elif following is not None and following.start > end:
            text = plural(
                "no file holds the {n:,} byte from {low:,} to {high:,}",
                "no file holds the {n:,} bytes from {low:,} to {high:,}",
                n=following.start - end,
                low=end,
                high=following.start,
            )
            faults.append(FileFault("gap", following.path, end, end, following.start, text, expected))
        elif following is not None and following.start < end:
            text = sentence(
                "begins at {start:,}, before the previous file ends ({end:,})", start=following.start, end=end
            )
            faults.append(FileFault("overlap", following.path, following.start, end, end, text, expected))
    return faults


def happened(fault: FileFault, file_size: int, queue: str = "") -> str:
    """Describe a fault of the commit log, or of a ``queue``, in a clause that names the file; ``file_size`` (bytes) is
    0 if unknown.
    """
    owner = sentence("the queue {queue}", queue=queue) if queue else sentence("the commit log")
    name = Path(fault.path).name
    if fault.kind in ("gap", "next"):
        return _missing(fault, file_size, owner)
    if fault.kind == "overlap":
        return sentence("the file {file} of {owner} starts before the previous file ends", file=name, owner=owner)
    file_length = fault.missing - fault.offset
    if fault.kind == "empty" or file_length == 0:
        return sentence("the file {file} of {owner} is empty", file=name, owner=owner)
    if fault.missing == fault.end:
        return sentence("the file {file} of {owner} is longer than the others", file=name, owner=owner)
    return plural(
        "the file {file} of {owner} was cut to {n:,} byte",
        "the file {file} of {owner} was cut to {n:,} bytes",
        n=file_length,
        file=name,
        owner=owner,
    )


def _missing(fault: FileFault, file_size: int, owner: Sentence) -> str:
    files, remainder = divmod(fault.end - fault.missing, file_size) if file_size else (0, 1)
    name = queue_file_name(fault.missing)
    if remainder:
        return sentence(
            "no file of {owner} holds the bytes from {low:,} to {high:,}",
            owner=owner,
            low=fault.missing,
            high=fault.end,
        )
    return plural(
        "the file {file} of {owner} is missing",
        "{n:,} files of {owner} are missing, the first is {file}",
        n=files,
        owner=owner,
        file=name,
    )


def blank_fault(offset: int, size: int, file_end: int) -> str | None:
    """Describe the fault in a blank unit's own length, or None."""
    room = file_end - offset
    return (
        None
        if size == room
        else sentence("the blank says {size:,} bytes, {n:,} are left in the file", size=size, n=room)
    )


def would_have_fitted(blank_size: int, unit_size: int) -> bool:
    """Return True if a unit did not need to go to the next file: it and 8 more bytes fitted before the file's end."""
    return unit_size + 8 <= blank_size

"""Findings on the files of the commit log: names, lengths, gaps, and files that are not its own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from engine.files.layout import FILE_NAME_DIGITS, queue_file_name
from engine.files.store_folders import LOG_FOLDER
from engine.inspection.check.places import Span
from engine.inspection.misnamed_files import MisnamedFile
from engine.inspection.older_front import OlderFront
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile, UnexpectedEntry
from engine.mapped.sparse import last_byte
from engine.rules import catalogue, log_rules
from engine.rules.findings import HAPPENED, RESTORABLE, STORE, Finding, Severity
from engine.sentences import join, plural, sentence

MAX_FILES_PER_COMMAND = 8
"""Files that a command names one by one."""
MAX_LISTED_NAMES = 20
_READ_BYTES = 4 << 20


class OtherFile(NamedTuple):
    """A file of another log, or of another place of this log."""

    start: int
    """Its start offset, as its name says."""
    why: str
    stated_offset: int
    """The offset that its first unit names as its own; −1 if that is this place."""
    is_renamed: bool = False
    """Whether all of the file is of another place of this log, so that only its name is wrong."""


def span_of_other_file(store: StoreSnapshot, other_file: OtherFile) -> Span:
    """Return the bytes of the log that the file takes."""
    file = store.log.sequence.find(other_file.start)
    end = file.end_offset if file is not None else other_file.start
    return Span(other_file.start, end, "other", other_file.why, is_elsewhere=other_file.is_renamed)


def short_names_finding(files: Sequence[ReadOnlyFile]) -> Finding | None:
    """Names with fewer than 20 digits: the files are read, and the next one sorts before them."""
    short_names = [file.name for file in files if len(file.name) < FILE_NAME_DIGITS]
    if not short_names:
        return None
    file = next(file for file in files if file.name == short_names[0])
    text = plural(
        "{n:,} file of the log has no name of 20 digits ({names}): a broker sorts files by their names as text, "
        "and makes the next one with 20 digits",
        "{n:,} files of the log have no names of 20 digits ({names}): a broker sorts files by their names as text, "
        "and makes the next one with 20 digits",
        n=len(short_names),
        names=", ".join(short_names[:3]),
    )
    evidence: dict[str, Any] = {"expected": queue_file_name(file.start_offset), "found": short_names[:MAX_LISTED_NAMES]}
    evidence[HAPPENED] = sentence(
        "files of the commit log lost the zeros in front of their names ({name})", name=short_names[0]
    )
    return catalogue.CL07.finding(text, file.path, file.start_offset, evidence, kind="name")


def misnamed_finding(store: StoreSnapshot, file: MisnamedFile) -> Finding:
    """A file of this log under another name, packed, or a second copy of a file (kinds of :data:`catalogue.CL07`)."""
    evidence: dict[str, Any] = {"expected": file.own_name, "found": file.name, RESTORABLE: True}
    if file.is_packed:
        text = sentence(
            "{name} is a file of the log that was packed: nothing of it is read, and a broker does not start",
            name=file.name,
        )
        evidence[HAPPENED] = sentence(
            "the file {name} of the commit log was packed ({packed})", name=file.own_name, packed=file.name
        )
        return catalogue.CL07.finding(text, file.path, None, evidence, kind="packed")
    own_file = store.log.sequence.find(file.offset)
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
        return catalogue.CL07.finding(text, file.path, None, evidence, kind="spare")
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
    if Path(file.path).parent == store.path / LOG_FOLDER:
        place = f"{STORE}/{LOG_FOLDER}"
        command = f"mv {place}/{shlex.quote(file.name)} {place}/{file.own_name}"
    return catalogue.CL07.finding(text, file.path, None, evidence, kind="misnamed", command=command)


def stray_finding(store: StoreSnapshot, stray: UnexpectedEntry, log_file_size: int) -> Finding:
    """A file that is none of the log's, such as one of a queue or of the index."""
    path, geometry = Path(stray.path), store.geometry
    info = store.reading.status(path)
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
    evidence: dict[str, Any] = {"expected": log_file_size, "found": size}
    evidence[HAPPENED] = sentence("the file {name} beside the commit log's files is none of them", name=path.name)
    return catalogue.CL07.finding(join("; ", words), stray.path, None, evidence, kind="stray")


def double_finding(read: ReadOnlyFile, second: ReadOnlyFile) -> Finding:
    """Two files of one name, in two folders of a log in several."""
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
    return catalogue.CL07.finding(text, path, second.start_offset, evidence, kind=kind, command=command)


def older_front_finding(store: StoreSnapshot, older: OlderFront) -> Finding:
    """Files that retention had deleted are back in front of the log."""
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
        "found": names[:MAX_LISTED_NAMES],
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
    if folders == {store.path / LOG_FOLDER} and count <= MAX_FILES_PER_COMMAND:
        command = f"mv {' '.join(f'{STORE}/{LOG_FOLDER}/{name}' for name in names)} ELSEWHERE"
    return catalogue.CL07.finding(text, older.files[0].path, older.begin, evidence, kind="older", command=command)


def other_file_finding(other_file: OtherFile, file: str | None, span: Span) -> Finding:
    """A file that is of another log, or of another place of this log."""
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
        text = sentence("The file {name} is not at the place that its name states: {why}", name=name, why=span.reason)
        evidence |= {"expected": own_name, "found": name, RESTORABLE: True}
        evidence[HAPPENED] = sentence(
            "the file {name} of the commit log was renamed to {other}", name=own_name, other=name
        )
        return catalogue.CL05.finding(text, file, span.start, evidence, kind="renamed")
    text = sentence("The file {name} does not belong to this log: {why}", name=name, why=span.reason)
    text += " · " + span.lost if span.lost else ""
    return catalogue.CL05.finding(text, file, span.start, evidence, kind="file")


def next_file_fault(last_file: ReadOnlyFile) -> tuple[log_rules.FileFault, Span]:
    """Return the fault of a log whose last file ends with a blank: the broker opened the next file right away."""
    end = last_file.end_offset
    text = sentence("the last file ends with a blank, and the file that follows it at {end:,} is missing", end=end)
    fault = log_rules.FileFault(
        "next", last_file.path, end, end, end + last_file.size, text, sentence("a file that follows")
    )
    return fault, Span(end, end + last_file.size, "gap", text)


def file_finding(store: StoreSnapshot, fault: log_rules.FileFault, span: Span, file_size: int, log_end: int) -> Finding:
    """A file that is missing, too short or too long, or overlaps with another one."""
    evidence = {**span.evidence(), "expected": fault.expected, "bytes": span.end - fault.missing}
    evidence[HAPPENED] = log_rules.happened(fault, file_size)
    kind = fault.kind
    if kind == "size":
        kind = "short" if fault.missing < fault.end else "long"
    severity: Severity | None = "warn" if kind == "next" and store.abort and not span.entries else None
    text = join(" · ", [fault.message, span.lost]) if span.lost else fault.message
    command: str | None = None
    name = Path(fault.path).name
    if kind == "short" and _lacks_zeros_only(store, fault, span, log_end):
        kind = "unfilled" if log_end > fault.offset else "unmade"
        is_in_log_folder = Path(fault.path).parent == store.path / LOG_FOLDER
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
            command = f"truncate -s {file_size} {place}"
    return catalogue.CL07.finding(text, fault.path, fault.offset, evidence, severity, kind=kind, command=command)


def _lacks_zeros_only(store: StoreSnapshot, fault: log_rules.FileFault, span: Span, log_end: int) -> bool:
    """Return True if the short file is the last one, the log ends before its cut, and no queue points further."""
    files = store.log.files
    if span.entries or log_end > fault.missing or any(file.start_offset > fault.offset for file in files):
        return False
    for offset in range(max(log_end, fault.offset), fault.missing, _READ_BYTES):
        block = store.log.read(offset, min(_READ_BYTES, fault.missing - offset))
        if block.count(0) != len(block):
            return False
    return True

"""Choice of the file of the log at which the walk of a recovery begins (docs/formats/recovery.md)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import NamedTuple

from engine.codec.message import BORN_HOST_V6
from engine.codec.unit_flavours import READ_BY
from engine.mapped.read_only import ReadOnlyFile
from engine.releases import Release, rules_of
from engine.rules.unit_check import NeedsMoreBytes, Request, Rules, check
from engine.sentences import msgid, plural, sentence
from engine.store.recovery.load_source import CHECKPOINT_NOTE
from engine.store.recovery.source import RecoverySource
from engine.store.recovery.store_rules import unit_rules
from engine.store.recovery.walk import MAX_READ_BYTES
from engine.times import time_text

HEAD_BYTES = 100
"""Bytes of a unit that hold its store time."""
PHYSICAL_OFFSET = 28
"""Position of the field PHYSICALOFFSET in a unit."""
_THIRD_LAST = 3


class Start(NamedTuple):
    """The place at which the walk begins, and why."""

    number: int  # of the file
    why: str
    limit_ms: int | None = None  # the time by which an abnormal exit chose it
    position: int = 0  # in the file: enableAcceleratedRecovery begins within it
    file_limit: int | None = None  # commitLogRecoverMaxNum, where that ended the search


class StartOfBoth(NamedTuple):
    """The start of a broker that writes queues into files and into a RocksDB. After a clean stop units behind
    ``dispatched_end`` are dispatched again.
    """

    start: Start
    dispatched_end: int


@dataclass(frozen=True, slots=True)
class StartLimit:
    """The limit that the first unit of the start file must not exceed in 5.4 and later: an offset, or a time (ms)."""

    kind: _Search
    goal: str
    offset: int | None
    limit_ms: int | None

    def fits(self, unit: Request) -> bool:
        """Return True if a walk may begin at ``unit``."""
        if self.offset is not None:
            return unit.physical_offset <= self.offset
        return unit.store_timestamp <= (self.limit_ms or 0)


class _Search(NamedTuple):
    """Sentences about a search for the file at which the walk begins: the file it chose, no file of the last ``files``
    before it was ended, no file at all.
    """

    chosen: str
    given_up: str
    none: str


_AFTER_A_STOP = _Search(
    msgid("normal exit: the last file whose first unit lies at or before {goal}"),
    msgid(
        "normal exit: no first unit of the last {files} lies at or before {goal}; commitLogRecoverMaxNum ends the "
        "search after {files}"
    ),
    msgid("normal exit: no later file's first unit lies at or before {goal}: the first file"),
)


_BY_OFFSET = _Search(
    msgid("abnormal exit: the last file whose first unit lies at or before {goal}"),
    msgid(
        "abnormal exit: no first unit of the last {files} lies at or before {goal}; commitLogRecoverMaxNum ends the "
        "search after {files}"
    ),
    msgid("abnormal exit: no later file's first unit lies at or before {goal}: the first file"),
)


_BY_TIME = _Search(
    msgid("abnormal exit: the last file whose first unit was stored at or before {goal}"),
    msgid(
        "abnormal exit: no first unit of the last {files} was stored at or before {goal}; commitLogRecoverMaxNum "
        "ends the search after {files}"
    ),
    msgid("abnormal exit: no later file's first unit was stored at or before {goal}: the first file"),
)


def start_offset(source: RecoverySource, files: list[ReadOnlyFile], known_end: int, release: Release) -> int:
    """Return where the walk of a start begins in ``files`` of the log, of which the queues know up to ``known_end``."""
    start = choose_start(source, files, known_end, unit_rules(source, release))
    return files[start.number].start_offset + start.position


def choose_start(source: RecoverySource, files: list[ReadOnlyFile], known_end: int, rules: Rules) -> Start:
    """Choose the file in which the walk begins, as the release does."""
    release = rules_of(rules.release)
    if release.clean_start == "first-unit":
        return _start_by_first_units(source, files, known_end, rules)
    if not source.abort:
        if release.clean_start == "third-last-file":
            return Start(max(len(files) - _THIRD_LAST, 0), sentence("normal exit: 4.9 begins at the third-last file"))
        for number in range(len(files) - 1, 0, -1):
            if files[number].start_offset <= known_end:
                why = sentence(
                    "normal exit: the last file that begins at or before {at:,}, the end of what the queues know",
                    at=known_end,
                )
                return Start(number, why)
        if known_end < 0:
            return Start(0, sentence("normal exit: no queue knows of the log: the first file"))
        return Start(
            0,
            sentence(
                "normal exit: the queues know the log up to {at:,}, no later file begins at or before that",
                at=known_end,
            ),
        )
    if source.rocksdb is not None:
        return _start_by_own_offset(files, known_end, rules.release)
    config = source.config
    safe = config.message_index_enable and config.message_index_safe
    limit = source.checkpoint.min_timestamp_index if safe else source.checkpoint.min_timestamp
    text = _time_in_words(source, limit, rules.release)
    for number in range(len(files) - 1, -1, -1):
        stored = _first_store_time(files[number], rules.release)
        if stored and stored <= limit:
            why = sentence("abnormal exit: the last file whose first unit was stored at or before {at}", at=text)
            return Start(number, why, limit)
    why = sentence("abnormal exit: no file's first unit was stored at or before {at}: the first file", at=text)
    return Start(0, why, limit)


def _start_by_own_offset(files: list[ReadOnlyFile], dispatched: int, release: Release) -> Start:
    """Choose the start file of 5.3 after a crash with queues in a RocksDB: the last one whose first unit has an offset
    field at or before the end of dispatch. Nothing else of the unit is checked.
    """
    goal = sentence("{at:,}, the end of dispatch in the RocksDB", at=dispatched)
    for number in range(len(files) - 1, -1, -1):
        head = files[number].read(0, HEAD_BYTES)
        if len(head) < HEAD_BYTES or struct.unpack_from(">I", head, 4)[0] not in READ_BY[release]:
            continue
        if struct.unpack_from(">q", head, PHYSICAL_OFFSET)[0] <= dispatched:
            return Start(number, sentence(_BY_OFFSET.chosen, goal=goal))
    return Start(0, sentence(_BY_OFFSET.none, goal=goal))


def start_limit(source: RecoverySource, known_end: int, rules: Rules) -> StartLimit:
    """Return the limit by which the queues of ``source``, which know the log up to ``known_end``, choose the file."""
    release, checkpoint = rules_of(rules.release), source.checkpoint
    offset = checkpoint.logics_physical_offset or 0
    if not source.abort or source.rocksdb is not None:
        goal = sentence("{at:,}, the end of what the queues know", at=known_end)
        if source.rocksdb is not None:
            goal = sentence("{at:,}, the end of dispatch in the RocksDB", at=known_end)
        return StartLimit(_BY_OFFSET if source.abort else _AFTER_A_STOP, goal, known_end, None)
    if release.crash_start == "logics-physical-offset" and offset > 0:
        goal = sentence("{at:,} (the checkpoint's logicsPhysicalOffset)", at=offset)
        return StartLimit(_BY_OFFSET, goal, offset, None)
    limit = checkpoint.min_timestamp
    if release.crash_start == "logics-physical-offset":
        limit = checkpoint.logics_msg_timestamp
    return StartLimit(_BY_TIME, _time_in_words(source, limit, rules.release), None, limit)


def _start_by_first_units(source: RecoverySource, files: list[ReadOnlyFile], known_end: int, rules: Rules) -> Start:
    """Choose the start file as 5.4 and later do: from the last file back, the first whose first unit passes the check,
    has a store time, and lies at or before a limit; after ``commitLogRecoverMaxNum`` files the search ends.
    """
    limit = start_limit(source, known_end, rules)
    return find_start(source, files, limit, known_end, rules, limit.fits)


def find_start(
    source: RecoverySource,
    files: list[ReadOnlyFile],
    limit: StartLimit,
    known_end: int,
    rules: Rules,
    is_accepted: Callable[[Request], bool],
) -> Start:
    """Search the start file from the last one back; ``is_accepted`` is asked about the first unit of each."""
    release, checkpoint, config = rules_of(rules.release), source.checkpoint, source.config
    kind, goal = limit.kind, limit.goal
    safe = config.message_index_enable and config.message_index_safe
    if safe:
        goal = sentence(
            "{goal}, and no later than the index, {at}", goal=goal, at=moment(checkpoint.index_msg_timestamp)
        )
    max_files = config.commit_log_recover_max_num
    files_left = max_files = max_files if max_files > 0 else release.recovery_file_limit or len(files)
    for number in range(len(files) - 1, -1 if source.abort else 0, -1):
        files_left -= 1
        unit = _first_unit(files[number], rules)
        if unit is not None and unit.store_timestamp != 0:
            is_indexed = not safe or unit.store_timestamp <= checkpoint.index_msg_timestamp
            if is_indexed and is_accepted(unit):
                why = sentence(kind.chosen, goal=goal)
                position = 0
                if source.abort and config.enable_accelerated_recovery and release.accelerated_recovery:
                    offset = checkpoint.logics_physical_offset or 0 if limit.offset is None else limit.offset
                    position = max(offset - files[number].start_offset, 0)
                    why += "; " + sentence("with enableAcceleratedRecovery the walk begins there")
                return Start(number, why, limit.limit_ms, position)
        if files_left <= 0 and number > 0:
            template = kind.given_up
            if not source.abort and known_end < 0:
                template = msgid(
                    "normal exit: no queue knows of the log; commitLogRecoverMaxNum ends the search after {files}"
                )
            why = sentence(template, files=plural("{n} file", "{n} files", n=max_files), goal=goal)
            return Start(number, why, limit.limit_ms, 0, max_files)
    if not source.abort and known_end < 0:
        return Start(0, sentence("normal exit: no queue knows of the log: the first file"))
    return Start(0, sentence(kind.none, goal=goal), limit.limit_ms)


def _time_in_words(source: RecoverySource, time_ms: int, release: Release) -> str:
    note = source.checkpoint_note
    if note == CHECKPOINT_NOTE and rules_of(release).crash_start == "logics-physical-offset":
        note = sentence("the checkpoint's logicsMsgTimestamp")
    return sentence("{at} ({note})", at=moment(time_ms), note=sentence(note))


def moment(time_ms: int) -> str:
    return time_text(time_ms) if time_ms > 0 else str(time_ms)


def _first_unit(file: ReadOnlyFile, rules: Rules) -> Request | None:
    """The unit with which a file begins, where a broker's check takes it."""
    length = HEAD_BYTES
    while True:
        head = file.read(0, min(length, file.size))
        answer = check(head, 0, file.size, rules)
        if not isinstance(answer, NeedsMoreBytes):
            return answer if isinstance(answer, Request) else None
        if len(head) < length or answer.size > MAX_READ_BYTES:
            return None
        length = max(answer.size, length + 1)


def _first_store_time(file: ReadOnlyFile, release: Release) -> int:
    """Store time (ms) of the first unit of a file by its bytes alone, 0 if there is no unit."""
    return first_stored(file.read(0, HEAD_BYTES), READ_BY[release])


def first_stored(head: bytes, magics: Container[int]) -> int:
    if len(head) < HEAD_BYTES:
        return 0
    magic = struct.unpack_from(">I", head, 4)[0]
    if magic not in magics:
        return 0
    (sys_flag,) = struct.unpack_from(">i", head, 36)
    stored: int = struct.unpack_from(">q", head, 48 + (20 if sys_flag & BORN_HOST_V6 else 8))[0]
    return stored

"""Undecoded parts of an opened store (docs/formats/files.md#folders, docs/formats/consume-queue.md#rocksdb).

Finds the folders of :mod:`engine.rules.undecoded` through the store's ``reading``, says which questions they leave
unanswered, and describes them. Also reads from a broker's configuration which modes it turns on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.codec.message import PREPARED, ROLLBACK, Unit
from engine.errors import CannotRead, UsageError
from engine.files.properties_file import parse, read_text
from engine.mapped.folder_listing import ReadingListing
from engine.rocksdb.database import LACKS_FAMILY, is_available
from engine.rules.findings import Part
from engine.rules.queue_sides import reading_side, writes_both
from engine.rules.undecoded import (
    SUBJECT_WORDS,
    TABLE_SUBJECTS,
    Mode,
    Subject,
    UndecodedPart,
    find_needed_part,
    find_undecoded,
    modes_in,
    refuses_double_write,
)
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.reading import Reading


_DISPATCH_LAG_MS = 60_000
"""Maximum dispatch lag of a broker that is running or was killed."""


def undecoded_parts(reading: Reading, root: Path) -> tuple[UndecodedPart, ...]:
    """Return every undecoded part of the store at ``root``."""
    return tuple(find_undecoded(ReadingListing(reading, root)))


def part_needed_for(store: StoreSnapshot, subject: Subject) -> UndecodedPart | None:
    """Return the undecoded part without which nothing is known about ``subject``, or None."""
    if subject != "queues" or store.queue_source is None:
        return part_in_own_mode(store, subject)
    return find_needed_part(store.undecoded, subject, files_count=False) if store.queue_source == "rocksdb" else None


def part_in_own_mode(store: StoreSnapshot, subject: Subject) -> UndecodedPart | None:
    """Return what :func:`part_needed_for` returns, but in the store's own storage mode."""
    if subject == "log" and store.commit_log.dledger is not None:
        return None
    part = find_needed_part(store.undecoded, subject, files_count=False)
    if part is None or subject != "queues" or not part.beside_files:
        return part
    return None if file_queues_count(store) else part


def file_queues_count(store: StoreSnapshot) -> bool:
    """Return True if a broker reads the file queues that exist next to a RocksDB of queues.

    The configuration decides (``storeType``, ``combineCQPreferCQType``). Without one they count if the last broker
    wrote them, that is, if they reach the end of the log.
    """
    config = store.config
    if config is not None and writes_both(config):
        return reading_side(config, store.release) == "files"
    if config is not None and "storeType" in config.given:
        return config.store_type == "default"
    newest = max(store.queue_folders.newest_entries(), default=None)
    if newest is None:
        return False
    reached = store.log.seen_at(newest[0], crc=False)
    first_undispatched = first_behind_dispatch(store, newest[0] + newest[1])
    if not isinstance(reached, Unit) or first_undispatched is None:
        return first_undispatched is None
    may_lag = store.abort or store.lock_state == "held"
    return may_lag and first_undispatched.store_timestamp - reached.store_timestamp <= _DISPATCH_LAG_MS


def first_behind_dispatch(store: StoreSnapshot, offset: int) -> Unit | None:
    """Return the first unit behind ``offset`` that belongs into a queue, or None."""
    for item in store.log.walk(offset, None, crc=False, resync=False):
        if isinstance(item, Unit) and item.transaction_type not in (PREPARED, ROLLBACK):
            return item
    return None


def has_rocksdb_queues(store: StoreSnapshot) -> bool:
    """Return True if the last broker kept its queues in a RocksDB, and its tables with them."""
    if writes_both(store.config):
        return False
    part = part_in_own_mode(store, "queues")
    return part is not None and part.format == "RocksDB" and not part.may_hold_queues


def rocksdb_queues(store: StoreSnapshot) -> bool:
    """Return True if a broker reads its queues from a RocksDB, whether that can be read here or not."""
    return part_needed_for(store, "queues") is not None


def unknown_queues(store: StoreSnapshot) -> bool:
    """Return True if the queues that a broker reads cannot be read here."""
    return rocksdb_queues(store) and store.why_unknown("queues") is not None


def has_dledger_log(store: StoreSnapshot) -> bool:
    """Return True if messages are in a DLedger log that is not read here."""
    return part_needed_for(store, "log") is not None


def has_units_beside_dledger(store: StoreSnapshot) -> bool:
    """Return True if ``commitlog`` holds units from before the store went over to a DLedger log."""
    part = part_needed_for(store, "log")
    return part is not None and part.beside_units


def is_read_log(store: StoreSnapshot, part: UndecodedPart) -> bool:
    """Return True if the part is the DLedger log whose messages are read."""
    return store.commit_log.dledger is not None and part.data_folder == store.commit_log.dledger.folders.label


def in_dledger(store: StoreSnapshot, offset: int) -> bool:
    """Return True if ``offset`` is behind the units of ``commitlog``, in a log that goes on as a DLedger log: the bytes
    there are not decoded.
    """
    return has_dledger_log(store) and offset >= max(store.log.max_offset, 0)


def unknown_to_plans(store: StoreSnapshot) -> bool:
    """Return True if messages or queues are in files that are not decoded: then a start's effects on them are
    unknown.
    """
    return unknown_queues(store) or has_dledger_log(store)


_READ_FROM_ROCKSDB: frozenset[Subject] = frozenset(
    {"queues", "topics", "groups", "offsets", "index", "timer", "transactions", "pop"}
)
_IN_ROWS: frozenset[Subject] = frozenset({"timer", "transactions", "pop", "index"})
"""Subjects whose rows are read and checked (:mod:`engine.inspection.rocksdb_rows`)."""
_IN_TABLES: frozenset[Subject] = frozenset({"topics", "groups", "offsets"})
"""Subjects whose tables are read (:mod:`engine.inspection.rocksdb_tables`) and checked as files are."""
_PARTS: dict[Subject, Part] = {
    "log": "log",
    "queues": "queue",
    "topics": "config",
    "groups": "config",
    "offsets": "config",
    "index": "index",
    "timer": "timer",
}
"""Subjects → the part of a store that rules conclude from."""


def parts_undecoded(store: StoreSnapshot) -> frozenset[Part]:
    """Return the parts of the store that are not completely decoded: rules that need one of them are not applied.

    Index files beside an index in a RocksDB are such a part: the broker may have stopped writing them.
    """
    return frozenset(
        part
        for subject, part in _PARTS.items()
        if store.undecoded_part(subject) is not None
        and (subject == "index" or subject not in _IN_ROWS | _IN_TABLES or store.why_unknown(subject) is not None)
        and (subject != "queues" or unknown_queues(store))
    )


def is_check_complete(store: StoreSnapshot) -> bool:
    """Return True if everything that a check looks at is decoded."""
    rows_are_known = all(store.why_unknown(subject) is None for subject in _IN_ROWS)
    return rows_are_known and not parts_undecoded(store) - {"index"}


def notes(store: StoreSnapshot) -> list[str]:
    """Return a sentence on compacted queues, on each undecoded part that may hold data, and on outdated tables."""
    compacted = [part.words for part in store.undecoded if part.compacted]
    undecoded = (part for part in store.undecoded if not is_read_log(store, part) and not part.compacted)
    parts = [note for part in undecoded if (note := _note(store, part)) is not None]
    return [*compacted, *parts, *_old_tables(store)]


class JudgedNote(NamedTuple):
    """A note on a part that checks and plans leave out. ``kind`` is the kind of its finding; ``is_grave`` is True if
    something cannot be checked because of it.
    """

    text: str
    is_grave: bool
    kind: str = ""


def judged_notes(store: StoreSnapshot) -> list[JudgedNote]:
    """Return the :func:`notes` on parts that checks and plans leave out."""
    needed_parts = {part.folder for subject in SUBJECT_WORDS if (part := store.undecoded_part(subject)) is not None}
    parts = [
        JudgedNote(note, part.folder in needed_parts, _kind_of_step(store, part))
        for part in store.undecoded
        if not (is_read_log(store, part) or part.compacted or _is_checked(store, part) or _is_masked(store, part))
        and (note := _note(store, part)) is not None
    ]
    return parts + [JudgedNote(note, is_grave=True, kind="tables") for note in _old_tables(store)]


def _is_masked(store: StoreSnapshot, part: UndecodedPart) -> bool:
    """Return True if the part was left out of a capsule because it has keys: that is no damage of the store."""
    return store.capsule is not None and store.capsule.masks_units and part.folder == "rocksdbstore"


def _kind_of_step(store: StoreSnapshot, part: UndecodedPart) -> str:
    """Return the kind of DK02 whose next step names how the part can be read; "" if it cannot."""
    if part.format != "RocksDB":
        return ""
    if part.subjects & _READ_FROM_ROCKSDB and not is_available():
        return "extra"
    if part.subjects and _is_unreadable(store, part):
        return "unreadable"
    if part.subjects and part.subjects <= set(TABLE_SUBJECTS.values()):
        return "tables"
    return "beside" if "queues" in part.subjects and part.beside_files else ""


def _is_unreadable(store: StoreSnapshot, part: UndecodedPart) -> bool:
    """Return True if the part is a damaged RocksDB that a stopped broker uses for queues or tables.

    A whole one of another layout is not damaged: nothing is known about it.
    """
    if store.lock_state == "held":
        return False  # a running broker changes its files while they are read
    return part.subjects <= _READ_FROM_ROCKSDB and any(
        part_needed_for(store, subject) is part
        and _is_damage(store.why_unknown(subject))
        and (subject != "queues" or store.queues.rocksdb is not None)
        for subject in part.subjects
    )


def _is_damage(reason: str | None) -> bool:
    return reason is not None and getattr(reason, "id", "") != LACKS_FAMILY


def _is_checked(store: StoreSnapshot, part: UndecodedPart) -> bool:
    """Return True if checks and plans read the part: a RocksDB of the queues or tables that count, and can be read."""
    return bool(part.subjects) and all(
        subject in _IN_TABLES | {"queues"}
        and part_needed_for(store, subject) is part
        and store.why_unknown(subject) is None
        for subject in part.subjects
    )


def _old_tables(store: StoreSnapshot) -> Iterator[str]:
    """Yield a sentence on each table file beside a RocksDB in which the broker keeps the same table."""
    if store.paths is None:
        return
    for name, subject in TABLE_SUBJECTS.items():
        part = store.undecoded_part(subject)
        with contextlib.suppress(CannotRead):
            if part is not None and store.reading.exists(store.paths.config / name):
                yield sentence(
                    "{file} is beside {folder}, a RocksDB of the same table: it may be old, so no conclusion is "
                    "drawn from it",
                    file=f"config/{name}",
                    folder=part.folder,
                )


def _note(store: StoreSnapshot, part: UndecodedPart) -> str | None:
    if not part.forbids_writing and part.format == "RocksDB":
        return None
    if (
        part.subjects
        and part.subjects <= _IN_ROWS
        and all(store.why_unknown(subject) is None for subject in part.subjects)
    ):
        return None
    if part_needed_for(store, "queues") is part:
        words = _words(store, part)
        if part.beside_files:
            return sentence(
                "{what} There are also file queues: storeType and combineCQPreferCQType (--config) decide which of the "
                "two a broker uses.",
                what=words,
            )
        return words
    if part.format == "DLedger log" and part.holds_data:
        return sentence(
            "{what} There is another DLedger log: dLegerSelfId (--config) decides which of them a broker uses. "
            "None is decoded without it.",
            what=part.words,
        )
    if not part.beside_files:
        return _words(store, part)
    if part.format == "RocksDB" and part.content_words and is_available():
        return sentence(
            "{what} There are also file queues: they are used, as by a broker with storeType=default. The command "
            "queue --both compares the two.",
            what=part.content_words,
        )
    return sentence(
        "{what} There are also file queues: they are used, as by a broker with storeType=default.", what=part.words
    )


def _words(store: StoreSnapshot, part: UndecodedPart) -> str:
    """Describe the content of a part, and whether it is read: a RocksDB of queues or tables may be."""
    if part.format != "RocksDB" or not part.subjects or not part.subjects <= _READ_FROM_ROCKSDB:
        return part.words
    reasons = [reason for subject in sorted(part.subjects) if (reason := store.why_unknown(subject)) is not None]
    if reasons and _is_unreadable(store, part):
        return sentence("{content} It cannot be read: {reason}", content=part.content_words, reason=reasons[0])
    if reasons:
        return sentence("{content} {reason}", content=part.content_words, reason=reasons[0])
    if _is_checked(store, part):
        return part.content_words
    return sentence("{content} Checks and plans do not look into it.", content=part.content_words)


def undecoded_modes(path: Path | str | None) -> list[Mode]:
    """Return the settings of a broker's properties file that turn on an undecoded storage mode; none without a file.

    Raises :class:`CannotRead`, :class:`UsageError`.
    """
    return modes_in(read_settings(path)) if path is not None else []


def refuse_undecoded_modes(path: Path | str | None) -> None:
    """Raise :class:`UsageError` if the configuration for writing enables such a mode."""
    for mode in undecoded_modes(path):
        text = sentence(
            "{key}={value} means {what}, which this program does not write: take the line out",
            key=mode.key,
            value=mode.value,
            what=mode.content,
        )
        raise UsageError(text, file=str(path))


def refused_by_releases(path: Path | str | None) -> str | None:
    """Return why a broker of 5.5 does not start with a properties file, or None."""
    if path is None or not refuses_double_write(read_settings(path)):
        return None
    return sentence(
        "rocksdbCQDoubleWriteEnable=true without combineCQUseRocksdbForLmq=true: a broker of 5.4 starts with this, one "
        "of 5.5 ends at once (exit 253)"
    )


def read_settings(path: Path | str) -> dict[str, str]:
    """Return all settings of a broker's properties file. Raises :class:`CannotRead`, :class:`UsageError`."""
    return {item.key: item.value for item in parse(read_text(path), str(path))}

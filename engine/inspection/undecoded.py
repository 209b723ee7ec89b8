"""Undecoded parts of an opened store (docs/formats/files.md#folders, docs/formats/consume-queue.md#rocksdb): finds the
folders of :mod:`engine.rules.undecoded` through the store's ``reading``, and notes from a broker's configuration on
such parts: storage modes, and one mode that 5.5 refuses.

Also guesses which release wrote a store last, from traces that only one release leaves; always reported as a guess.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from engine.codec.index_keys import TAG, index_keys, key_text
from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.errors import CannotRead, CorruptUnit, UsageError
from engine.files.properties_file import parse, read_text
from engine.mapped.folder_listing import ReadingListing
from engine.releases import NEWEST, Release
from engine.rocksdb.database import is_available
from engine.rules.findings import Part
from engine.rules.undecoded import (
    SUBJECT_WORDS,
    TABLE_SUBJECTS,
    Mode,
    Subject,
    UndecodedPart,
    answering,
    find_undecoded,
    modes_in,
    refuses_double_write,
)
from engine.sentences import sentence
from engine.store import written_release
from engine.store.written_release import TagEntries, WrittenRelease

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.mapped.reading import Reading


MAX_ENTRIES = 256
"""Number of newest entries of an index file that are searched for tag entries."""
_DISPATCH_LAG_MS = 60_000
"""Dispatch lag that a running or crashed broker may have had."""


def undecoded_parts(reading: Reading, root: Path) -> tuple[UndecodedPart, ...]:
    """Every undecoded part of the store at ``root``."""
    return tuple(find_undecoded(ReadingListing(reading, root)))


def part_answering(store: StoreSnapshot, subject: Subject) -> UndecodedPart | None:
    """The undecoded part that a question about ``subject`` would need, or None."""
    if subject != "queues" or store.queue_source is None:
        return own_part(store, subject)
    return answering(store.undecoded, subject, files_count=False) if store.queue_source == "rocksdb" else None


def own_part(store: StoreSnapshot, subject: Subject) -> UndecodedPart | None:
    """:func:`part_answering` in the store's own storage mode, whatever mode is supposed."""
    if subject == "log" and store.dledger is not None:
        return None
    part = answering(store.undecoded, subject, files_count=False)
    if part is None or subject != "queues" or not part.beside_files:
        return part
    return None if file_queues_count(store) else part


def file_queues_count(store: StoreSnapshot) -> bool:
    """Return True if a broker reads the file queues that exist next to a RocksDB of queues.

    The configuration decides (``storeType``). Without one they count if the last broker wrote them, that is, if they
    reach the end of the log.
    """
    config = store.config
    if config is not None and "storeType" in config.given:
        return config.store_type == "default"
    newest = max(store.newest_file_entries(), default=None)
    if newest is None:
        return False
    reached = store.log.seen_at(newest[0], crc=False)
    last_dispatched = first_behind_dispatch(store, newest[0] + newest[1])
    if not isinstance(reached, Unit) or last_dispatched is None:
        return last_dispatched is None
    may_lag = store.abort or store.lock_state == "held"
    return may_lag and last_dispatched.store_timestamp - reached.store_timestamp <= _DISPATCH_LAG_MS


def first_behind_dispatch(store: StoreSnapshot, offset: int) -> Unit | None:
    """A unit behind ``offset`` that belongs into a queue: the first, which is as late as those before it."""
    for item in store.log.walk(offset, None, crc=False, resync=False):
        if isinstance(item, Unit) and item.transaction_type not in (0x4, 0xC):
            return item
    return None


def has_rocksdb_queues(store: StoreSnapshot) -> bool:
    """Return True if the last broker kept its queues in a RocksDB."""
    part = own_part(store, "queues")
    return part is not None and part.format == "RocksDB" and not part.may_hold_queues


def rocksdb_queues(store: StoreSnapshot) -> bool:
    """The consume queues that count are a RocksDB, whether it can be read here or not."""
    return part_answering(store, "queues") is not None


def unknown_queues(store: StoreSnapshot) -> bool:
    """Which units are in the consume queues that count is not known here: they cannot be read."""
    return rocksdb_queues(store) and store.why_unknown("queues") is not None


def has_dledger_log(store: StoreSnapshot) -> bool:
    """The messages are in a DLedger log, which is not read here."""
    return part_answering(store, "log") is not None


def has_units_beside_dledger(store: StoreSnapshot) -> bool:
    """Return True if ``commitlog`` holds units from before the store went over to a DLedger log."""
    part = part_answering(store, "log")
    return part is not None and part.beside_units


def is_read_log(store: StoreSnapshot, part: UndecodedPart) -> bool:
    """Return True if the part is the DLedger log whose messages are read."""
    return store.dledger is not None and part.data_folder == store.dledger.folders.label


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
    """Parts of which not everything is decoded: no rule that needs one of them may speak.

    Beside an index in a RocksDB that is the case for index files: the broker may have stopped to write them.
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
    """A sentence for the compacted queues and for each part of another form that may hold something; last the tables
    that may be outdated.
    """
    compacted = [part.words for part in store.undecoded if part.compacted]
    undecoded = (part for part in store.undecoded if not is_read_log(store, part) and not part.compacted)
    parts = [note for part in undecoded if (note := _note(store, part)) is not None]
    return [*compacted, *parts, *_old_tables(store)]


class JudgedNote(NamedTuple):
    """A note on a part that checks and plans leave out. ``kind`` is the kind of its finding; ``is_grave`` if something
    is not looked at because of it.
    """

    text: str
    is_grave: bool
    kind: str = ""


def judged_notes(store: StoreSnapshot) -> list[JudgedNote]:
    """The :func:`notes` on parts that checks and plans leave out."""
    answering_parts = {part.folder for subject in SUBJECT_WORDS if (part := store.undecoded_part(subject)) is not None}
    parts = [
        JudgedNote(note, part.folder in answering_parts, _kind_of_step(part))
        for part in store.undecoded
        if not (is_read_log(store, part) or part.compacted or _is_checked(store, part))
        and (note := _note(store, part)) is not None
    ]
    return parts + [JudgedNote(note, is_grave=True, kind="tables") for note in _old_tables(store)]


def _kind_of_step(part: UndecodedPart) -> str:
    """The kind of DK02 whose step names what reads the part; "" if nothing does."""
    if part.format != "RocksDB":
        return ""
    if part.subjects & _READ_FROM_ROCKSDB and not is_available():
        return "extra"
    if part.subjects and part.subjects <= set(TABLE_SUBJECTS.values()):
        return "tables"
    return "beside" if "queues" in part.subjects and part.beside_files else ""


def _is_checked(store: StoreSnapshot, part: UndecodedPart) -> bool:
    """Return True if checks and plans read the part: a RocksDB of the queues or tables that count, and can be read."""
    return bool(part.subjects) and all(
        subject in _IN_TABLES | {"queues"}
        and part_answering(store, subject) is part
        and store.why_unknown(subject) is None
        for subject in part.subjects
    )


def _old_tables(store: StoreSnapshot) -> Iterator[str]:
    """Tables as files beside a RocksDB that the broker keeps them in."""
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
    if not part.is_in_the_way_of_writing and part.format == "RocksDB":
        return None
    if part.subjects and part.subjects <= _IN_ROWS and all(store.why_unknown(item) is None for item in part.subjects):
        return None
    if part_answering(store, "queues") is part:
        words = _words(store, part)
        if part.beside_files:
            return sentence(
                "{what} There are also file queues: storeType (--config) decides which of the two a broker uses.",
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
    """What the part holds, and whether it is read at all: a RocksDB of queues or tables may be."""
    if part.format != "RocksDB" or not part.subjects or not part.subjects <= _READ_FROM_ROCKSDB:
        return part.words
    reasons = [reason for subject in sorted(part.subjects) if (reason := store.why_unknown(subject)) is not None]
    if reasons:
        return sentence("{content} {reason}", content=part.content_words, reason=reasons[0])
    if _is_checked(store, part):
        return part.content_words
    return sentence("{content} Checks and plans do not look into it.", content=part.content_words)


def release_of(store: StoreSnapshot) -> Release:
    """The release that the user names, else the one that probably wrote the store, or the newest without any evidence.

    Raises :class:`CannotRead`.
    """
    if store.release is not None:
        return store.release
    written = guess(store)
    return NEWEST if written is None else written[0]


class _Files:
    """A snapshot's files, with the interface of :mod:`engine.store.written_release`."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store

    def exists(self, path: Path) -> bool:
        return self._store.reading.exists(path)

    def read(self, path: Path) -> bytes | None:
        return self._store.small_file(path)

    def names(self, folder: Path) -> list[str]:
        return [entry.name for entry in self._store.reading.entries(folder)]


def guess(store: StoreSnapshot) -> WrittenRelease | None:
    """The release that probably wrote the store, with the evidence; None without evidence.

    Raises :class:`CannotRead`.
    """
    if store.paths is None:
        return None
    return written_release.guess(store.paths, _Files(store), lambda: sample_tag_entries(store))


def sample_tag_entries(store: StoreSnapshot) -> TagEntries | None:
    """Count how many of the newest indexed units with tags have an entry for their tags; None without an index.

    Raises :class:`CannotRead`.
    """
    for reader in reversed(store.index_files(note_undecoded=False)):
        try:
            newest = reader.header.entries
            numbers = range(max(newest - MAX_ENTRIES, 0) + 1, newest + 1)
            entries = [entry for number in numbers if (entry := reader.entry(number))]
        except CorruptUnit:
            continue
        if entries and newest > MAX_ENTRIES:  # the first unit may have only some of its entries here
            entries = [entry for entry in entries if entry.phy_offset != entries[0].phy_offset]
        hashes: dict[int, set[int]] = {}
        for entry in entries:
            hashes.setdefault(entry.phy_offset, set()).add(entry.key_hash)
        units = with_entry = 0
        for offset, key_hashes in hashes.items():
            unit = store.log.unit_at(offset, crc=False)
            if not isinstance(unit, Unit) or not unit.tags:
                continue
            if any(index_key_hash(unit.topic, key.text) in key_hashes for key in index_keys(unit.properties)):
                units += 1  # an index of another store has entries that point here, but with none of the unit's keys
                with_entry += index_key_hash(unit.topic, key_text(unit.tags, TAG)) in key_hashes
        if units:
            return TagEntries(units, with_entry)
    return None


def undecoded_modes(path: Path | str | None) -> list[Mode]:
    """Settings in a broker's properties file with which it keeps a part of its store in a form that is not decoded;
    none without a file. Raises :class:`CannotRead`, :class:`UsageError`.
    """
    return modes_in(read_settings(path)) if path is not None else []


def refuse_undecoded_modes(path: Path | str | None) -> None:
    """Raise :class:`UsageError` if the configuration for writing enables such a mode."""
    for mode in undecoded_modes(path):
        text = sentence(
            "{key}={value} means {what}, which this program does not write: take the line out",
            key=mode.key,
            value=mode.value,
            what=mode.what,
        )
        raise UsageError(text, file=str(path))


def refused_by_releases(path: Path | str | None) -> str | None:
    """Why a broker of 5.5 does not start with a properties file, or None."""
    if path is None or not refuses_double_write(read_settings(path)):
        return None
    return sentence(
        "rocksdbCQDoubleWriteEnable=true without combineCQUseRocksdbForLmq=true: a broker of 5.4 starts with this, one "
        "of 5.5 ends at once (exit 253)"
    )


def read_settings(path: Path | str) -> dict[str, str]:
    """Every setting of a broker's properties file. Raises :class:`CannotRead`, :class:`UsageError`."""
    return {item.key: item.value for item in parse(read_text(path), str(path))}

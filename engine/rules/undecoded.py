"""Parts of a store that are recognised but not decoded: what is unknown because of them, and must not be overwritten.
Pure.

A folder is recognised by its content, not by its name: CURRENT next to a manifest is a RocksDB, an entry of the DLedger
library around a message is a DLedger log. :func:`find_undecoded` searches a store's folders; every reader and writer
consults the parts that it returns. Names, lengths and first bytes come through a :class:`FolderListing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from engine.codec import rocksdb
from engine.codec.dledger import FOLDER_PREFIX, HEAD_BYTES, NamedFile, begins_with_unit, dledger_log, wraps_message
from engine.codec.rocksdb import RocksFolder, rocks_folder
from engine.files.layout import FILE_NAME_DIGITS, MOVED_FOLDER, parse_file_name
from engine.sentences import join, plural, sentence, with_and

Subject = Literal["log", "queues", "topics", "groups", "offsets", "index", "timer", "transactions", "pop", "access"]
"""Kinds of content that a reader or writer may need."""
Format = Literal["RocksDB", "DLedger log", "compaction log"]

SUBJECT_WORDS: dict[Subject, str] = {
    "log": sentence("the messages are"),
    "queues": sentence("the queues are"),
    "topics": sentence("the topics are"),
    "groups": sentence("the groups are"),
    "offsets": sentence("the consumer offsets are"),
    "index": sentence("the index is"),
    "timer": sentence("the timers are"),
    "transactions": sentence("the open transactions are"),
    "pop": sentence("the popped messages are"),
    "access": sentence("users and access rules are"),
}
_SOME_MESSAGES = sentence("some of the messages are")
_QUEUES_PERHAPS = sentence("the queues may be")
PURPOSE_WORDS: dict[Subject, str] = {
    "queues": sentence("consume queues"),
    "topics": sentence("topics"),
    "groups": sentence("subscription groups"),
    "offsets": sentence("consumer offsets"),
    "index": sentence("index entries"),
    "timer": sentence("timers"),
    "transactions": sentence("open transactions"),
    "pop": sentence("popped messages"),
    "access": sentence("users and access rules"),
}
TABLE_SUBJECTS: dict[str, Subject] = {
    "topics.json": "topics",
    "subscriptionGroup.json": "groups",
    "consumerOffset.json": "offsets",
    "lmqConsumerOffset.json": "offsets",
}
"""Tables that a broker may keep in a RocksDB instead of a JSON file."""

_DOUBLE_WRITE, _LIGHT_IN_ROCKSDB = "rocksdbCQDoubleWriteEnable", "combineCQUseRocksdbForLmq"
_QUEUE_FOLDERS = ("consumequeue", "consumequeue_rocksdb")
_FILE_QUEUES = ("consumequeue", "batchconsumequeue")
_SKIPPED_FOLDERS = frozenset(
    {"commitlog", "index", "timerlog", "consumequeue_ext", "batchconsumequeue", "lost+found", MOVED_FOLDER}
)
_COMPACTION = "compaction/compactionLog"
_TABLES: frozenset[Subject] = frozenset({"topics", "groups", "offsets"})
_BY_NAME: dict[str, frozenset[Subject]] = {
    "consumequeue": frozenset({"queues"}),
    "consumequeue_rocksdb": frozenset({"queues"}),
    "rocksdbstore": frozenset({"index", "timer", "transactions"}),
    "kvStore": frozenset({"pop"}),
    "config/topics": frozenset({"topics"}),
    "config/subscriptionGroups": frozenset({"groups"}),
    "config/consumerOffsets": frozenset({"offsets"}),
    "config/rdb": _TABLES,
    "config/metadata": _TABLES,
    "config/users": frozenset({"access"}),
    "config/acls": frozenset({"access"}),
}
"""Subjects by folder, for a RocksDB whose column families do not show them."""
_ALWAYS_COUNT: frozenset[Subject] = frozenset({"queues", "topics", "groups", "offsets"})
"""Subjects that exist only in such a RocksDB, however little it holds on disk: a broker keeps the rest in memory."""
_MAX_FOLDERS = 2_000
_MAX_DEPTH = 4
_MANIFEST_BYTES = 64 << 20
_FIRST_FILES = 8
_LAST_FILES = 3
"""Number of files of ``commitlog`` that are looked at for units, and for entries of DLedger: a broker leaves one or two
empty files at the end.
"""


class Entry(NamedTuple):
    """Something in a folder: its name, its length (0 for a folder), and whether it is a folder."""

    name: str
    size: int
    is_folder: bool


class FolderListing(Protocol):
    """The folders of one store. Paths are seen from the store's root, with slashes; "" is the root."""

    def entries(self, folder: str) -> Iterable[tuple[str, int, bool]]:
        """Name, length and folder flag of everything in ``folder``; nothing if it does not exist."""

    def head(self, file: str, size: int) -> bytes:
        """The first ``size`` bytes of ``file``, b"" if it cannot be read."""


@dataclass(frozen=True, slots=True)
class UndecodedPart:
    """A folder whose content is not decoded, and its subjects.

    ``beside_files``: file queues with entries exist next to it in the same store; the broker's configuration decides
    which of both counts. ``holds_data`` is False if it cannot hold a record: no table file, on disk or in the manifest,
    and no write-ahead log with a byte. ``words`` describe it.
    """

    folder: str
    format: Format
    subjects: frozenset[Subject]
    holds_data: bool
    size: int
    words: str
    beside_files: bool = False
    beside_units: bool = False
    """For a DLedger log: ``commitlog`` holds units from before; the messages are in both."""
    compacted: tuple[str, ...] = ()
    """Queues with compacted messages, as ``topic/queue``."""
    content_words: str = ""
    """The first sentence of ``words``: what the folder holds."""
    data_folder: str = ""
    """For a DLedger log: the folder of its data files."""
    may_hold_queues: bool = False
    """True for a RocksDB of unknown content in a store without queue files: the queues may be in it."""

    def reason(self, subject: Subject) -> str:
        """Return the reason why nothing is known about ``subject``."""
        return sentence(
            "unknown: {subject} in a {format} ({folder}/), which is not decoded",
            subject=self._subject_words(subject),
            format=sentence(self.format),
            folder=self.folder,
        )

    def _subject_words(self, subject: Subject) -> str:
        if self.beside_units and subject == "log":
            return _SOME_MESSAGES
        return _QUEUES_PERHAPS if self.may_hold_queues and subject == "queues" else SUBJECT_WORDS[subject]

    def reason_without(self, subject: Subject, need: str) -> str:
        """Return the reason why nothing is known about ``subject``; ``need`` says what is missing to read it."""
        return sentence(
            "unknown: {subject} in a {format} ({folder}/). {need}",
            subject=SUBJECT_WORDS[subject],
            format=sentence(self.format),
            folder=self.folder,
            need=need,
        )

    @property
    def forbids_writing(self) -> bool:
        """True if a writer would leave this part behind, or build files next to it that a broker reads from it."""
        return self.holds_data or bool(self.subjects & _ALWAYS_COUNT)

    @property
    def refusal(self) -> str:
        """The reason why nothing is written into a store with this part."""
        if self.compacted:
            return sentence(
                "{folder}/ holds compacted messages, which only a broker can keep up to date: nothing is written into "
                "this store",
                folder=self.folder,
            )
        if "log" in self.subjects:
            return sentence(
                "{folder}/ is a {kind} of messages, which Storescope only reads: nothing is written into this store",
                folder=self.folder,
                kind=sentence(self.format),
            )
        content_words = with_and(PURPOSE_WORDS[subject] for subject in PURPOSE_WORDS if subject in self.subjects)
        return sentence(
            "{folder}/ is a {kind} of {what}, which Storescope does not change: nothing is written into this store",
            folder=self.folder,
            kind=sentence(self.format),
            what=content_words or sentence("data"),
        )


class Mode(NamedTuple):
    """A broker setting that stores something in an undecoded form: the value that enables it, and what it stores."""

    key: str
    value: str
    content: str


MODES = (
    Mode("storeType", "defaultRocksDB", sentence("consume queues in a RocksDB")),
    Mode("rocksdbCQDoubleWriteEnable", "true", sentence("consume queues in a RocksDB beside the files")),
    Mode("indexRocksDBEnable", "true", sentence("an index in a RocksDB")),
    Mode("indexFileWriteEnable", "false", sentence("no index files")),
    Mode("timerRocksDBEnable", "true", sentence("timers in a RocksDB")),
    Mode("timerWheelSnapshotFlush", "true", sentence("a timer wheel in snapshot files instead of timerwheel")),
    Mode("transRocksDBEnable", "true", sentence("open transactions in a RocksDB")),
    Mode("popConsumerKVServiceEnable", "true", sentence("popped messages in a RocksDB")),
    Mode("configManagerVersion", "v2", sentence("topics, groups and offsets in a RocksDB")),
    Mode("enableDLegerCommitLog", "true", sentence("messages in a DLedger log")),
)
"""Settings with which a broker keeps a part of its store in a form that is not decoded or written here.

``useSeparateStorePathForRocksdbCQ`` and ``useSingleRocksDBForAllConfigs`` are not among them: a broker asks for both in
a store of RocksDB queues only, which the first two rows mean. Nor is ``popConsumerKVServiceInit``: alone it stores
nothing. A store whose RocksDB has rows that it would revive is refused for these.
"""


def modes_in(settings: Mapping[str, str]) -> list[Mode]:
    """Return the entries of :data:`MODES` that a broker's configuration turns on."""
    return [mode for mode in MODES if settings.get(mode.key, "").strip().lower() == mode.value.lower()]


def refuses_double_write(settings: Mapping[str, str]) -> bool:
    """Return True if a 5.5 broker refuses to start: queues are written twice, and light queues are not only in the
    RocksDB.
    """
    is_on = {key: settings.get(key, "").strip().lower() == "true" for key in (_DOUBLE_WRITE, _LIGHT_IN_ROCKSDB)}
    return is_on[_DOUBLE_WRITE] and not is_on[_LIGHT_IN_ROCKSDB]


def find_undecoded(listing: FolderListing) -> list[UndecodedPart]:
    """Return every undecoded part of a store, in the order of their folders."""
    return sorted(_find(listing), key=lambda part: part.folder)


def find_needed_part(
    parts: Sequence[UndecodedPart], subject: Subject, *, files_count: bool | None = True
) -> UndecodedPart | None:
    """Return the part without which nothing is known about ``subject``, or None.

    ``files_count``: True if a broker reads the file queues next to a RocksDB of queues; None if that is unknown.
    """
    for part in parts:
        if subject not in part.subjects or not (part.holds_data or subject in _ALWAYS_COUNT):
            continue
        if subject == "queues" and part.beside_files and files_count:
            continue
        return part
    return next((part for part in parts if part.may_hold_queues), None) if subject == "queues" else None


def part_that_forbids_writing(parts: Iterable[UndecodedPart]) -> UndecodedPart | None:
    """Return the first part because of which nothing may be written into the store, or None."""
    return next((part for part in parts if part.forbids_writing), None)


def _find(listing: FolderListing) -> Iterator[UndecodedPart]:
    log_part = _log_of_dledger(listing)
    if log_part is not None:
        yield log_part
    folder_count = 0
    pending = [("", 0)]
    while pending and folder_count < _MAX_FOLDERS:
        folder, depth = pending.pop(0)
        folder_count += 1
        entries = [Entry(*entry) for entry in listing.entries(folder)]
        folders = [entry.name for entry in entries if entry.is_folder]
        if folder and "commitlog" in folders:
            continue  # a copy of another store
        if folder:
            part = _part(listing, folder, entries)
            if part is not None:
                yield part
                continue
        if folder in _QUEUE_FOLDERS or depth == _MAX_DEPTH:
            continue
        for name in folders:
            path = f"{folder}/{name}" if folder else name
            if path not in _SKIPPED_FOLDERS:
                pending.append((path, depth + 1))


def _part(listing: FolderListing, folder: str, entries: list[Entry]) -> UndecodedPart | None:
    files = [NamedFile(entry.name, entry.size) for entry in entries if not entry.is_folder]
    if any(file.name == "CURRENT" or file.name.startswith("MANIFEST-") or file.name.endswith(".sst") for file in files):
        current = listing.head(f"{folder}/CURRENT", 64) if any(file.name == "CURRENT" for file in files) else None
        rocks = rocks_folder(folder, files, current)
        if rocks is not None:
            return _rocksdb(listing, rocks)
    if folder == _COMPACTION:
        return _compaction(listing, entries)
    return _dledger(listing, folder, entries, files)


# -- RocksDB


def _rocksdb(listing: FolderListing, rocks: RocksFolder) -> UndecodedPart:
    manifest = None
    if rocks.manifest is not None:
        manifest = rocksdb.decode(listing.head(f"{rocks.folder}/{rocks.manifest}", _MANIFEST_BYTES))
    subjects = _BY_NAME.get(rocks.folder, frozenset())
    if manifest is not None:
        subjects = _by_families(rocks.folder, manifest, log_bytes=rocks.write_ahead_bytes) or subjects
    content_words = _rocksdb_words(rocks, subjects)
    lists_tables = manifest is not None and any(manifest.bytes_by_family().values())
    holds_data = bool(rocks.tables or rocks.write_ahead_bytes or lists_tables)
    return UndecodedPart(
        folder=rocks.folder,
        format="RocksDB",
        subjects=subjects,
        holds_data=holds_data,
        size=rocks.table_bytes + rocks.write_ahead_bytes + rocks.other_bytes,
        words=sentence(
            "{content} RocksDB is not decoded: its {purpose} are not listed.",
            content=content_words,
            purpose=_purpose_words(subjects),
        ),
        content_words=content_words,
        beside_files="queues" in subjects and _has_file_queues(listing, "consumequeue"),
        may_hold_queues=not subjects and holds_data and not any(_has_file_queues(listing, f) for f in _FILE_QUEUES),
    )


def _by_families(folder: str, manifest: rocksdb.Manifest, log_bytes: int) -> frozenset[Subject]:
    """Subjects named by the column families; of those in ``rocksdbstore`` only families that hold data count."""
    names = set(manifest.families.values())
    if {"timer", "trans"} <= names:
        bytes_by_family = manifest.bytes_by_family()
        by_family: dict[str, Subject] = {"default": "index", "timer": "timer", "trans": "transactions"}
        counting = {subject for name, subject in by_family.items() if bytes_by_family.get(name) or log_bytes}
        return frozenset(counting or by_family.values())
    if "offset" in names:
        return frozenset({"queues"})
    if "popState" in names:
        return frozenset({"pop"})
    tables: dict[str, Subject] = {"topic": "topics", "subscriptionGroup": "groups", "consumerOffset": "offsets"}
    several = frozenset(subject for name, subject in tables.items() if name in names)
    if several:
        return several
    # 5.3 gives each of its three table databases the same families: only the folder distinguishes them.
    return _TABLES if "kvDataVersion" in names and folder not in _BY_NAME else frozenset()


def _rocksdb_words(rocks: RocksFolder, subjects: frozenset[Subject]) -> str:
    return sentence(
        "The folder {folder} holds a RocksDB of {purpose}: {tables} with {n:,} bytes, {logs} with {m:,} bytes{doubt}.",
        folder=rocks.folder,
        purpose=_purpose_words(subjects),
        tables=plural("{n:,} table file", "{n:,} table files", n=rocks.tables),
        n=rocks.table_bytes,
        logs=plural("{n:,} write-ahead log", "{n:,} write-ahead logs", n=rocks.write_ahead_logs),
        m=rocks.write_ahead_bytes,
        doubt="" if rocks.is_valid else sentence("; CURRENT and MANIFEST do not match"),
    )


def _purpose_words(subjects: frozenset[Subject]) -> str:
    return join(", ", [PURPOSE_WORDS[subject] for subject in PURPOSE_WORDS if subject in subjects]) or sentence("data")


def _has_file_queues(listing: FolderListing, root: str) -> bool:
    """Return True if a queue file below the folder ``root`` holds at least one byte."""
    for topic, _, topic_is_folder in listing.entries(root):
        if not topic_is_folder:
            continue
        for queue, _, queue_is_folder in listing.entries(f"{root}/{topic}"):
            if not queue_is_folder or parse_file_name(queue) is None:
                continue
            folder = f"{root}/{topic}/{queue}"
            if any(size and not is_folder for _, size, is_folder in listing.entries(folder)):
                return True
    return False


# -- DLedger


def _dledger(listing: FolderListing, folder: str, entries: list[Entry], files: list[NamedFile]) -> UndecodedPart | None:
    names = {entry.name for entry in entries if entry.is_folder}
    has_name = "/" not in folder and folder.startswith(FOLDER_PREFIX)
    if not has_name and "data" not in names:
        return None
    inner = [
        NamedFile(f"{part}/{name}", size)
        for part in ("data", "index")
        if part in names
        for name, size, is_folder in listing.entries(f"{folder}/{part}")
        if not is_folder
    ]
    oldest = min((file.name for file in inner if file.name.startswith("data/")), default=None)
    head = listing.head(f"{folder}/{oldest}", HEAD_BYTES) if oldest is not None else b""
    log = dledger_log(folder, [*inner, *files], head)
    if log is None:
        return None
    size = log.data_bytes + log.index_bytes + log.other_bytes
    return UndecodedPart(
        folder,
        "DLedger log",
        frozenset({"log"}),
        bool(log.data_bytes),
        size,
        log.words,
        beside_units=_has_units(listing),
        data_folder=f"{folder}/data",
    )


def _log_files(listing: FolderListing) -> list[tuple[str, int]]:
    """Name and length of each file of ``commitlog``, oldest first."""
    return sorted(
        (name, size)
        for name, size, is_folder in listing.entries("commitlog")
        if not is_folder and len(name) == FILE_NAME_DIGITS and parse_file_name(name) is not None
    )


def _has_units(listing: FolderListing) -> bool:
    """Return True if one of the oldest files of ``commitlog`` begins with a unit: a broker wrote it before the store
    went over to DLedger.
    """
    return any(begins_with_unit(listing.head(f"commitlog/{name}", 8)) for name, _ in _log_files(listing)[:_FIRST_FILES])


def _log_of_dledger(listing: FolderListing) -> UndecodedPart | None:
    """``commitlog`` itself, if its oldest or its newest files begin with an entry of DLedger instead of a unit."""
    files = _log_files(listing)
    if not any(_is_dledger_file(listing, name) for name, _ in (*files[:1], *files[-_LAST_FILES:])):
        return None
    in_dledger = [(name, size) for name, size in files if _is_dledger_file(listing, name)]
    size = sum(size for _, size in in_dledger)
    words = plural(
        "commitlog holds entries of a DLedger log: {n} file with {count:,} bytes.",
        "commitlog holds entries of a DLedger log: {n} files with {count:,} bytes.",
        n=len(in_dledger),
        count=size,
    )
    beside_units = _has_units(listing)
    return UndecodedPart(
        "commitlog",
        "DLedger log",
        frozenset({"log"}),
        True,
        size,
        words,
        beside_units=beside_units,
        data_folder="commitlog",
    )


def _is_dledger_file(listing: FolderListing, name: str) -> bool:
    return wraps_message(listing.head(f"commitlog/{name}", HEAD_BYTES))


# -- compaction


def _compaction(listing: FolderListing, entries: list[Entry]) -> UndecodedPart | None:
    """Messages of topics with ``cleanup.policy=COMPACTION``: a log and queues of their own, by topic and queue."""
    compacted, size = [], 0
    for topic in entries:
        if not topic.is_folder:
            continue
        for queue, _, is_folder in listing.entries(f"{_COMPACTION}/{topic.name}"):
            files = list(listing.entries(f"{_COMPACTION}/{topic.name}/{queue}")) if is_folder else []
            queue_bytes = sum(length for _, length, is_inner_folder in files if not is_inner_folder)
            compacted += [f"{topic.name}/{queue}"] if queue_bytes else []
            size += queue_bytes
    if not size:
        return None
    words = plural(
        "{folder} holds compacted messages of {n} queue in {count:,} bytes: consumers of its topic read from there.",
        "{folder} holds compacted messages of {n} queues in {count:,} bytes: consumers of their topics read from "
        "there.",
        folder=_COMPACTION,
        n=len(compacted),
        count=size,
    )
    return UndecodedPart(
        _COMPACTION, "compaction log", frozenset(), holds_data=True, size=size, words=words, compacted=tuple(compacted)
    )

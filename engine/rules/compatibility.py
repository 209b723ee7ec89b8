"""Storage modes of a broker, and what a release or a mode does not read of what others wrote. Pure.

:mod:`engine.inspection.compatibility` fills in :class:`StoreContents`, and adds what a start does with the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from engine.releases import NAMES, Release, rules_of
from engine.rules.undecoded import refuses_double_write
from engine.sentences import join, plural, sentence

ModeName = Literal["files", "files-v2", "combined", "rocksdb", "rocksdb-v2"]
QueueForm = Literal["files", "rocksdb"]
QueueSource = Literal["files", "rocksdb", "new rocksdb"]
"""The queues that a start finds: those in files, those in the store's RocksDB, or a RocksDB that it makes."""
TableSubject = Literal["topics", "groups", "offsets"]
TableForm = Literal["json", "rows", "single", "v2"]
"""How a broker keeps topics, groups and offsets: JSON files, three RocksDBs, ``config/metadata``, ``config/rdb``."""

_LIGHT_IN_ROCKSDB = ("combineCQUseRocksdbForLmq", "true")
_SEPARATE_FOLDER = ("useSeparateStorePathForRocksdbCQ", "true")
_SINGLE_TABLES = ("useSingleRocksDBForAllConfigs", "true")


@dataclass(frozen=True, slots=True)
class StorageMode:
    """A way in which a broker keeps queues and tables, the settings that turn it on, and the first release with it."""

    name: ModeName
    queues: QueueForm
    tables: Literal["json", "rows", "v2"]
    settings: tuple[tuple[str, str], ...]
    since: Release
    words: str


_ROCKSDB_TYPE = ("storeType", "defaultRocksDB")
_VERSION_2 = ("configManagerVersion", "v2")
MODES: dict[ModeName, StorageMode] = {
    mode.name: mode
    for mode in (
        StorageMode("files", "files", "json", (), "4.9", sentence("queues in files")),
        StorageMode("files-v2", "files", "v2", (_VERSION_2,), "5.3", sentence("queues in files, tables in config/rdb")),
        StorageMode(
            "combined",
            "files",
            "json",
            (("rocksdbCQDoubleWriteEnable", "true"),),
            "5.3",
            sentence("queues in files and in a RocksDB"),
        ),
        StorageMode("rocksdb", "rocksdb", "rows", (_ROCKSDB_TYPE,), "5.3", sentence("queues in a RocksDB")),
        StorageMode(
            "rocksdb-v2",
            "rocksdb",
            "v2",
            (_ROCKSDB_TYPE, _VERSION_2),
            "5.3",
            sentence("queues in a RocksDB, tables in config/rdb"),
        ),
    )
}
"""The modes in the order of a report."""


def modes_of(release: Release) -> list[StorageMode]:
    """Return the storage modes that a release has."""
    return [mode for mode in MODES.values() if NAMES.index(mode.since) <= NAMES.index(release)]


def mode_in(settings: Mapping[str, str]) -> StorageMode:
    """Return the mode that a broker's configuration turns on."""
    values = {key: value.strip().lower() for key, value in settings.items()}
    tables = "-v2" if values.get("configManagerVersion") == "v2" else ""
    if values.get("storeType") == "defaultrocksdb":
        return MODES["rocksdb-v2" if tables else "rocksdb"]
    if tables:
        return MODES["files-v2"]
    return MODES["combined" if values.get("rocksdbCQDoubleWriteEnable") == "true" else "files"]


def prefers_rocksdb(configuration: Mapping[str, str] | None, release: Release) -> bool:
    """Return True if a broker that writes both kinds of queues lets consumers read those in the RocksDB."""
    preferred = (configuration or {}).get("combineCQPreferCQType", "").strip().lower()
    return preferred == _ROCKSDB_TYPE[1].lower() and rules_of(release).chooses_queue_side


class Setting(NamedTuple):
    """A line of the broker's configuration to set before the start, and what happens without it."""

    key: str
    value: str
    without: str
    is_needed_to_start: bool = False

    def record(self) -> dict[str, str | bool]:
        """The row of ``settings`` in a record."""
        return {
            "key": self.key,
            "value": self.value,
            "without": self.without,
            "neededToStart": self.is_needed_to_start,
        }


@dataclass(frozen=True, slots=True)
class Hidden:
    """Something in the store that the started broker does not read. ``count`` is None if nothing was counted."""

    kind: str
    count: int | None
    text: str

    def record(self) -> dict[str, str | int | None]:
        """The row of ``hidden`` in a record."""
        return {"kind": self.kind, "count": self.count, "message": self.text}


@dataclass(frozen=True, slots=True)
class TableContents:
    """A table that a broker keeps in a file or in a RocksDB: its form, its rows (None: unknown), and the
    counter of its ``dataVersion``.
    """

    subject: TableSubject
    form: TableForm
    folder: str
    rows: int | None
    counter: int = 0


@dataclass(frozen=True, slots=True)
class StoreContents:
    """Facts of a store that decide what a release does not read. None stands for a number that is not known."""

    tables: tuple[TableContents, ...] = ()
    queue_rows_folder: str | None = None
    """The folder of the RocksDB of queues, whether a broker uses it or not."""
    has_file_queues: bool = False
    timer_rows: int | None = 0
    transaction_rows: int | None = 0
    pop_rows: int | None = 0
    has_index_rows: bool = False
    has_index_files: bool = True
    has_tag_entries: bool = False
    wheel_messages: int = 0
    """Messages in the topic of the timer wheel."""
    has_pops: bool = False
    lite_topics: tuple[str, ...] = ()
    priority_topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    batch_topics: tuple[str, ...] = ()
    light_queues: int = 0
    compacted_queues: int = 0
    mapped_topics: int = 0
    """Static topics."""
    has_dledger_log: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of the store that are not RocketMQ's defaults, by their keys in a configuration."""
    kinds: tuple[tuple[str, str], ...] = ()
    """Settings besides sizes that the store's files show."""


def table_setting(contents: StoreContents, mode: StorageMode, release: Release) -> tuple[str, str] | None:
    """Return the setting with which a broker with RocksDB queues goes on with the tables of ``config/metadata``."""
    is_single = any(table.form == "single" for table in contents.tables)
    return _SINGLE_TABLES if is_single and mode.tables == "rows" and _is_from(release, "5.4") else None


def settings_for(
    contents: StoreContents, release: Release, mode: StorageMode, configuration: Mapping[str, str] | None
) -> list[Setting]:
    """Return the settings that the store needs in this mode and that the configuration does not have."""
    settings = [
        Setting(key, value, sentence("the broker starts in another storage mode")) for key, value in mode.settings
    ]
    if mode.name == "combined" and release == "5.5":
        without = sentence("a broker of 5.5 ends at once (exit 253)")
        settings.append(Setting(*_LIGHT_IN_ROCKSDB, without, is_needed_to_start=True))
    if _has_separate_rows(contents) and _opens_queue_rows(mode) and release == "5.5":
        without = sentence("a broker of 5.5 ends at once: the RocksDB is in the other folder")
        settings.append(Setting(*_SEPARATE_FOLDER, without, is_needed_to_start=True))
    if (single := table_setting(contents, mode, release)) is not None:
        settings.append(Setting(*single, sentence("topics, groups and offsets in config/metadata are not read")))
    if contents.has_dledger_log:
        without = sentence("the broker does not read the DLedger log")
        settings.append(Setting("enableDLegerCommitLog", "true", without, is_needed_to_start=True))
    for key, size in contents.sizes.items():
        settings.append(Setting(key, str(size), _without_size(key), key in _NEEDED_SIZES))
    settings += _kind_settings(contents, release)
    return [setting for setting in settings if not _is_given(setting, configuration)]


def writes_light_queues_to_rocksdb(release: Release, mode: StorageMode) -> bool:
    """Return True if light queues are in a RocksDB: 5.5 does not start with both kinds of queues otherwise."""
    return mode.queues == "rocksdb" or (mode.name == "combined" and release == "5.5")


def without_failing_dispatch(settings: list[Setting], release: Release, mode: StorageMode) -> list[Setting]:
    """Return ``settings`` for a store with a message at which the dispatch to light queues fails (CQ17)."""
    if writes_light_queues_to_rocksdb(release, mode):
        setting = Setting("enableLmq", "false", sentence("dispatch stops at a message (CQ17)"))
    else:
        without = sentence("the broker does not start (CQ17)")
        setting = Setting("enableMultiDispatch", "false", without, is_needed_to_start=True)
    return [setting, *(other for other in settings if other.key != setting.key)]


def _without_size(key: str) -> str:
    if key in _INDEX_SIZES:
        return sentence("the broker misreads the index")
    if key in _NEEDED_SIZES:
        return sentence("the broker does not start")
    return sentence("the broker misreads these files")


def _kind_settings(contents: StoreContents, release: Release) -> Iterator[Setting]:
    is_of_5 = rules_of(release).major == 5
    for key, value in contents.kinds:
        yield Setting(key, value, sentence("ext files are ignored: the queues point to addresses that nobody reads"))
    if contents.light_queues:
        without = sentence("light queues get no new messages")
        yield Setting(rules_of(release).light_queues_by, "true", without)
        if is_of_5:
            yield Setting("enableMultiDispatch", "true", without)
    if contents.timer_rows != 0 and _is_from(release, "5.4"):
        yield Setting("timerRocksDBEnable", "true", sentence("timers in the RocksDB are not delivered"))
    if contents.transaction_rows != 0 and _is_from(release, "5.4"):
        yield Setting("transRocksDBEnable", "true", sentence("open transactions in the RocksDB are not checked"))
    if contents.pop_rows != 0 and is_of_5:
        for key in ("popConsumerKVServiceInit", "popConsumerKVServiceEnable"):
            yield Setting(key, "true", sentence("popped messages in the RocksDB are not given back"))
    if contents.has_index_rows and not contents.has_index_files and _is_from(release, "5.4"):
        yield Setting("indexRocksDBEnable", "true", sentence("older messages are not found by key"))


def _is_given(setting: Setting, configuration: Mapping[str, str] | None) -> bool:
    return configuration is not None and configuration.get(setting.key, "").strip().lower() == setting.value.lower()


def _is_from(release: Release, first_release: Release) -> bool:
    return NAMES.index(release) >= NAMES.index(first_release)


def _has_separate_rows(contents: StoreContents) -> bool:
    return contents.queue_rows_folder == "consumequeue_rocksdb"


def reads_queue_rows(contents: StoreContents, release: Release, mode: StorageMode) -> bool:
    """Return True if a broker in this mode reads the store's RocksDB of queues; 5.5 alone knows the separate folder."""
    if mode.queues != "rocksdb" or contents.queue_rows_folder is None:
        return False
    return release == "5.5" or not _has_separate_rows(contents)


def refusals(
    contents: StoreContents, release: Release, mode: StorageMode, configuration: Mapping[str, str] | None
) -> Iterator[str]:
    """Yield why a broker does not start with this configuration; nothing without one."""
    if configuration is None:
        return
    if mode.name == "combined" and release == "5.5" and refuses_double_write({**configuration, **dict(mode.settings)}):
        yield sentence(
            "rocksdbCQDoubleWriteEnable=true without combineCQUseRocksdbForLmq=true: a broker of 5.4 starts with this, "
            "one of 5.5 ends at once (exit 253)"
        )
    folder = contents.queue_rows_folder
    if folder in _ROWS_FOLDERS and release == "5.5" and _opens_queue_rows(mode):
        key, value = _SEPARATE_FOLDER
        is_separate = configuration.get(key, "").strip().lower() == value
        if is_separate != _has_separate_rows(contents):
            text = sentence(
                "the RocksDB of the queues is in {folder}, and {key} is {value}: 5.5 refuses this",
                folder=folder,
                key=key,
                value="true" if is_separate else "false",
            )
            yield text
    for key in _NEEDED_SIZES if mode.queues == "files" else _NEEDED_SIZES[:1]:
        if key in contents.sizes and key not in configuration:
            yield sentence(
                "the configuration lacks {key}={value}, the size of the store's files",
                key=key,
                value=contents.sizes[key],
            )


_NEEDED_SIZES = ("mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "mapperFileSizeBatchConsumeQueue")
_INDEX_SIZES = ("maxHashSlotNum", "maxIndexNum")
_ROWS_FOLDERS = ("consumequeue", "consumequeue_rocksdb")


def _opens_queue_rows(mode: StorageMode) -> bool:
    return mode.queues == "rocksdb" or mode.name == "combined"


def hidden(
    contents: StoreContents, release: Release, mode: StorageMode, configuration: Mapping[str, str] | None = None
) -> Iterator[Hidden]:
    """Yield what a broker of ``release`` in this mode does not read of the store.

    Settings that show something count as set, unless the configuration lacks them.
    """
    yield from _hidden_tables(contents, release, mode, configuration)
    yield from _hidden_rows(contents, release, configuration)
    yield from _hidden_queues(contents, release, mode)
    yield from _hidden_topics(contents, release)
    lacking = [
        key for key in _INDEX_SIZES if configuration is not None and key in contents.sizes and key not in configuration
    ]
    if lacking and contents.has_index_files:
        text = sentence("the index is misread: the configuration lacks {keys}", keys=join(", ", lacking))
        yield Hidden("index", None, text)
    if contents.has_tag_entries and not rules_of(release).writes_tag_entries:
        yield Hidden(
            "tagEntries",
            None,
            sentence(
                "messages are not found by tag: {release} does not ask the index for tags", release=_title(release)
            ),
        )


def _title(release: Release) -> str:
    return rules_of(release).title


def _hidden_tables(
    contents: StoreContents, release: Release, mode: StorageMode, configuration: Mapping[str, str] | None
) -> Iterator[Hidden]:
    for table in contents.tables:
        if table.rows == 0 or _reads_table(table, release, mode, configuration):
            continue
        words = _TABLE_WORDS[table.subject]
        if table.rows is None:
            text = sentence(
                "{folder} holds {table}: not read, and how many there are cannot be told",
                folder=table.folder,
                table=words,
            )
        else:
            text = plural(
                "{n:,} row of {table} in {folder} is not read",
                "{n:,} rows of {table} in {folder} are not read",
                n=table.rows,
                table=words,
                folder=table.folder,
            )
        yield Hidden(table.subject, table.rows, text + "; " + _TABLE_LOSSES[table.subject])


_TABLE_WORDS = {
    "topics": sentence("topics"),
    "groups": sentence("subscription groups"),
    "offsets": sentence("consumer offsets"),
}
_TABLE_LOSSES = {
    "topics": sentence("clients find no route to their topics until they are made again"),
    "groups": sentence("groups have default settings"),
    "offsets": sentence("groups begin where their clients say"),
}


def _reads_table(
    table: TableContents, release: Release, mode: StorageMode, configuration: Mapping[str, str] | None
) -> bool:
    """RocksDB tables of the first layout take over JSON files with a higher counter, which is 0 in a new one; nothing
    else is taken over. The counter of offsets goes up with every 500th commit only.
    """
    if mode.tables == "json":
        return table.form == "json"
    if mode.tables == "v2":
        return table.form == "v2"
    if table.form == "single":
        return _is_from(release, "5.4") and (
            configuration is None or _is_given(Setting(*_SINGLE_TABLES, ""), configuration)
        )
    return table.form == "rows" or (table.form == "json" and table.counter > 0)


_ROW_KINDS = (
    ("timerRows", "timer_rows", "5.4", ("timerRocksDBEnable",)),
    ("transactionRows", "transaction_rows", "5.4", ("transRocksDBEnable",)),
    ("popRows", "pop_rows", "5.3", ("popConsumerKVServiceEnable",)),
)


def _hidden_rows(
    contents: StoreContents, release: Release, configuration: Mapping[str, str] | None
) -> Iterator[Hidden]:
    for kind, name, since, keys in _ROW_KINDS:
        count: int | None = getattr(contents, name)
        is_set = configuration is None or all(configuration.get(key, "").strip().lower() == "true" for key in keys)
        if count == 0 or (_is_from(release, since) and is_set):  # type: ignore[arg-type]
            continue
        yield Hidden(kind, count, _row_words(kind, count))
    is_index_set = configuration is None or configuration.get("indexRocksDBEnable", "").strip().lower() == "true"
    if contents.has_index_rows and not contents.has_index_files and not (_is_from(release, "5.4") and is_index_set):
        yield Hidden("indexRows", None, sentence("the index in the RocksDB is not read: no message is found by key"))


def _row_words(kind: str, count: int | None) -> str:
    if count is None:
        return {
            "timerRows": sentence("timers in the RocksDB are not delivered; how many cannot be told"),
            "transactionRows": sentence("open transactions in the RocksDB are not checked; how many cannot be told"),
            "popRows": sentence("popped messages in the RocksDB are not given back; how many cannot be told"),
        }[kind]
    if kind == "timerRows":
        return plural(
            "{n:,} timer in the RocksDB is not delivered", "{n:,} timers in the RocksDB are not delivered", n=count
        )
    if kind == "transactionRows":
        return plural(
            "{n:,} open transaction in the RocksDB is not checked",
            "{n:,} open transactions in the RocksDB are not checked",
            n=count,
        )
    return plural(
        "{n:,} popped message in the RocksDB is not given back",
        "{n:,} popped messages in the RocksDB are not given back",
        n=count,
    )


def rebuilt_queues(contents: StoreContents, release: Release, mode: StorageMode) -> str | None:
    """Return a sentence on queues that the broker leaves aside and builds again from the log; None without any."""
    if mode.name == "combined":
        return None
    if contents.queue_rows_folder is not None and not reads_queue_rows(contents, release, mode):
        return sentence(
            "the queues in {folder}, a RocksDB, are not read: the start builds them again from the log",
            folder=contents.queue_rows_folder,
        )
    if contents.has_file_queues and mode.queues == "rocksdb":
        return sentence("the queues in files are not read: the RocksDB counts, and is filled from the log")
    return None


def _hidden_queues(contents: StoreContents, release: Release, mode: StorageMode) -> Iterator[Hidden]:
    if contents.batch_topics and (not rules_of(release).batch_queues or mode.queues == "rocksdb"):
        yield Hidden(
            "batchQueues",
            len(contents.batch_topics),
            plural(
                "batch queues of {n:,} topic are not read",
                "batch queues of {n:,} topics are not read",
                n=len(contents.batch_topics),
            ),
        )
    if contents.compacted_queues and rules_of(release).major < rules_of("5.3").major:
        yield Hidden(
            "compactedQueues",
            contents.compacted_queues,
            plural(
                "compacted messages of {n:,} queue are not read",
                "compacted messages of {n:,} queues are not read",
                n=contents.compacted_queues,
            ),
        )


def _hidden_topics(contents: StoreContents, release: Release) -> Iterator[Hidden]:
    if contents.wheel_messages and not rules_of(release).timers:
        yield Hidden(
            "timers",
            contents.wheel_messages,
            plural(
                "{n:,} message went through the timer wheel: what waits there is not delivered",
                "{n:,} messages went through the timer wheel: what waits there is not delivered",
                n=contents.wheel_messages,
            ),
        )
    if contents.has_pops and not rules_of(release).pop:
        yield Hidden("pops", None, sentence("popped messages that were not acknowledged are not given back"))
    if contents.mapped_topics and rules_of(release).major < rules_of("5.3").major:
        yield Hidden(
            "staticTopics",
            contents.mapped_topics,
            plural(
                "{n:,} static topic has no logical offsets",
                "{n:,} static topics have no logical offsets",
                n=contents.mapped_topics,
            ),
        )
    for kind, topic_type, topics, since in (
        ("liteTopics", "LITE", contents.lite_topics, "5.5"),
        ("priorityTopics", "PRIORITY", contents.priority_topics, "5.4"),
    ):
        if topics and NAMES.index(release) < NAMES.index(since):
            yield Hidden(
                kind,
                len(topics),
                sentence(
                    "topics of type {type} are ordinary topics for {release}: {topics}",
                    type=topic_type,
                    release=_title(release),
                    topics=", ".join(topics),
                ),
            )
    longest = rules_of(release).longest_group_letters
    long_groups = [group for group in contents.groups if len(group) > longest]
    if long_groups:
        yield Hidden(
            "longGroups",
            len(long_groups),
            sentence(
                "groups with names of more than {n:,} letters, whose clients {release} refuses: {groups}",
                n=longest,
                release=_title(release),
                groups=", ".join(long_groups),
            ),
        )

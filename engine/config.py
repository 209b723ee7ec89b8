"""MessageStoreConfig: the store's settings of a broker, with RocketMQ 5.3.3's defaults (docs/formats/configuration.md).

Each attribute has in its metadata: ``java`` (the key as RocketMQ spells it), ``unit``, ``low`` and ``high`` (the
permitted range), ``clamp`` (the range to which RocketMQ itself limits the value), ``choices`` and ``meaning``.
``given`` are the keys that are really written down: geometry uses those and derives the others from the files.

Also the keys of a broker's configuration file that do not concern its files. One file configures every part of a
broker, so a key is "unknown" only if no part takes it. The names are those of the releases 4.9 to 5.4. Pure data.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.files.properties_file import Property, parse, read_text
from engine.sentences import sentence

CQ_UNIT = 20
DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS_OF_TIME = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_I32 = (1 << 31) - 1
_I64 = (1 << 63) - 1
_MIB = 1 << 20


def _int(
    java: str,
    default: int,
    unit: str,
    meaning: str,
    minimum: int = 0,
    maximum: int = _I32,
    clamp: tuple[int, int] | None = None,
) -> Any:
    shared = {"java": java, "unit": unit, "meaning": meaning, "choices": None}
    return field(default=default, metadata={**shared, "low": minimum, "high": maximum, "clamp": clamp})


def _flag(java: str, meaning: str, *, default: bool) -> Any:
    return field(default=default, metadata={"java": java, "unit": "", "meaning": meaning, "choices": None})


def _text(java: str, default: str, meaning: str, choices: tuple[str, ...] | None = None) -> Any:
    return field(default=default, metadata={"java": java, "unit": "", "meaning": meaning, "choices": choices})


def _path(java: str, meaning: str) -> Any:
    """A path, or a list of paths: :mod:`engine.files.store_folders` decides whether it belongs to the store."""
    shared = {"java": java, "unit": "", "meaning": meaning, "choices": None}
    return field(default="", metadata={**shared, "path": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStoreConfig:
    """The store's part of a broker's configuration. An empty path means RocketMQ's own default below the root."""

    given: frozenset[str] = frozenset()  # the keys that are written down, in RocketMQ's spelling
    file: str | None = field(default=None, compare=False)  # the file from which they were read
    paths_from_config: bool = False  # the user's consent: folders outside of the named store belong to it too
    paths_left_out: bool = field(default=False, compare=False)  # the user's choice: all paths are ignored
    other_paths: tuple[tuple[str, str], ...] = ()  # (key, path) of keys that no release accepts, but that name a store

    # Where the files are
    store_path_root_dir: str = _path("storePathRootDir", "root of the store; default $HOME/store")
    store_path_commit_log: str = _path("storePathCommitLog", "folder of the log; a comma list is a multi-path log")
    read_only_commit_log_store_paths: str = _path("readOnlyCommitLogStorePaths", "log folders that get no new file")
    store_path_dledger_commit_log: str = _path("storePathDLedgerCommitLog", "folder of a DLedger log")
    store_path_epoch_file: str = _path("storePathEpochFile", "epoch table of controller mode")
    store_path_broker_identity: str = _path("storePathBrokerIdentity", "identity file of controller mode")
    tiered_store_file_path: str = _text("tieredStoreFilePath", "", "folder of tiered storage with the posix provider")
    store_type: str = _text("storeType", "default", "default, or defaultRocksDB for RocksDB queues")

    # Lengths of files and units
    mapped_file_size_commit_log: int = _int("mappedFileSizeCommitLog", 1 << 30, "bytes", "one commit log file", 128)
    mapped_file_size_consume_queue: int = _int(
        "mappedFileSizeConsumeQueue", 6_000_000, "bytes", "one consume queue file; rounded up to a multiple of 20", 1
    )
    mapper_file_size_batch_consume_queue: int = _int(
        "mapperFileSizeBatchConsumeQueue", 13_800_000, "bytes", "one batch queue file; 46 bytes an entry", 46
    )
    enable_consume_queue_ext: bool = _flag("enableConsumeQueueExt", "filter data beside the queues", default=False)
    mapped_file_size_consume_queue_ext: int = _int(
        "mappedFileSizeConsumeQueueExt", 48 * _MIB, "bytes", "one ext queue file", 24
    )
    bit_map_length_consume_queue_ext: int = _int(
        "bitMapLengthConsumeQueueExt", 64, "bits", "filter bit map; the broker overwrites it with 112"
    )
    max_hash_slot_num: int = _int("maxHashSlotNum", 5_000_000, "slots", "hash slots of an index file", 1)
    max_index_num: int = _int("maxIndexNum", 20_000_000, "entries", "entries of an index file; it holds one less", 2)
    mapped_file_size_timer_log: int = _int("mappedFileSizeTimerLog", 100 * _MIB, "bytes", "one timer log file", 68)
    compaction_mapped_file_size: int = _int(
        "compactionMappedFileSize", 100 * _MIB, "bytes", "one compacted log file", 1
    )
    compaction_cq_mapped_file_size: int = _int(
        "compactionCqMappedFileSize", 10 * _MIB, "bytes", "one compacted queue file; rounded down to 46", 46
    )
    max_message_size: int = _int(
        "maxMessageSize", 4 * _MIB, "bytes", "largest body; a whole unit may be 64 KiB longer", 1
    )
    auto_message_version_on_topic_len: bool = _flag(
        "autoMessageVersionOnTopicLen", "version 2 units for topics over 127 characters", default=True
    )
    enabled_append_prop_crc: bool = _flag(
        "enabledAppendPropCRC", "CRC of the whole unit as last property", default=False
    )
    force_verify_prop_crc: bool = _flag("forceVerifyPropCRC", "that CRC replaces the body's in checks", default=False)

    # Index and queries
    message_index_enable: bool = _flag("messageIndexEnable", "build index files", default=True)
    message_index_safe: bool = _flag("messageIndexSafe", "recovery waits for the index's time too", default=False)
    max_msgs_num_batch: int = _int("maxMsgsNumBatch", 64, "messages", "most matches of a key query", 1)
    default_query_max_num: int = _int("defaultQueryMaxNum", 32, "messages", "matches where the request names none", 1)

    # Flush and commit
    flush_disk_type: str = _text("flushDiskType", "ASYNC_FLUSH", "when a put is on disk", ("ASYNC_FLUSH", "SYNC_FLUSH"))
    flush_interval_commit_log: int = _int("flushIntervalCommitLog", 500, "ms", "pause of the log flusher")
    flush_commit_log_timed: bool = _flag("flushCommitLogTimed", "that pause cannot be cut short", default=True)
    flush_commit_log_least_pages: int = _int(
        "flushCommitLogLeastPages", 4, "pages of 4 KiB", "dirty pages worth a flush"
    )
    flush_commit_log_thorough_interval: int = _int(
        "flushCommitLogThoroughInterval", 10_000, "ms", "flush whatever is there"
    )
    commit_interval_commit_log: int = _int("commitIntervalCommitLog", 200, "ms", "pause of the pool committer")
    commit_commit_log_least_pages: int = _int("commitCommitLogLeastPages", 4, "pages of 4 KiB", "pages worth a commit")
    commit_commit_log_thorough_interval: int = _int(
        "commitCommitLogThoroughInterval", 200, "ms", "commit whatever is there"
    )
    flush_interval_consume_queue: int = _int("flushIntervalConsumeQueue", 1000, "ms", "pause of the queue flusher")
    flush_consume_queue_least_pages: int = _int(
        "flushConsumeQueueLeastPages", 2, "pages of 4 KiB", "pages worth a flush"
    )
    flush_consume_queue_thorough_interval: int = _int(
        "flushConsumeQueueThoroughInterval", 60_000, "ms", "flush whatever is there, and note the time"
    )
    sync_flush_timeout: int = _int("syncFlushTimeout", 5000, "ms", "wait of a put under SYNC_FLUSH")
    slave_timeout: int = _int("slaveTimeout", 3000, "ms", "wait of a put for its slaves")
    wake_flush_when_put_message: bool = _flag("wakeFlushWhenPutMessage", "a put wakes the flusher", default=False)
    wake_commit_when_put_message: bool = _flag("wakeCommitWhenPutMessage", "a put wakes the committer", default=True)
    transient_store_pool_enable: bool = _flag("transientStorePoolEnable", "puts go to memory first", default=False)
    transient_store_pool_size: int = _int("transientStorePoolSize", 5, "files", "buffers of that pool", 1)
    fast_fail_if_no_buffer_in_store_pool: bool = _flag(
        "fastFailIfNoBufferInStorePool", "no file without a free buffer", default=False
    )
    warm_maped_file_enable: bool = _flag("warmMapedFileEnable", "touch every page of a new file", default=False)
    flush_least_pages_when_warm_maped_file: int = _int(
        "flushLeastPagesWhenWarmMapedFile", 4096, "pages of 4 KiB", "how often to sync"
    )
    put_consume_queue_data_by_file_channel: bool = _flag(
        "putConsumeQueueDataByFileChannel", "queue entries by file write, not through the map", default=True
    )

    # Put
    use_reentrant_lock_when_put_message: bool = _flag(
        "useReentrantLockWhenPutMessage", "kind of append lock", default=True
    )
    use_abs_lock: bool = _flag("useABSLock", "adaptive append lock", default=False)
    topic_queue_lock_num: int = _int("topicQueueLockNum", 32, "locks", "locks that queues share", 1)
    os_page_cache_busy_time_out_mills: int = _int(
        "osPageCacheBusyTimeOutMills", 1000, "ms", "append lock held this long: OS_PAGE_CACHE_BUSY", maximum=_I64
    )
    duplication_enable: bool = _flag("duplicationEnable", "DUP_INFO mode with a confirm offset", default=False)

    # Reading
    max_transfer_bytes_on_message_in_memory: int = _int(
        "maxTransferBytesOnMessageInMemory", 262_144, "bytes", "one pull, hot"
    )
    max_transfer_count_on_message_in_memory: int = _int(
        "maxTransferCountOnMessageInMemory", 32, "messages", "one pull, hot"
    )
    max_transfer_bytes_on_message_in_disk: int = _int(
        "maxTransferBytesOnMessageInDisk", 65_536, "bytes", "one pull, cold"
    )
    max_transfer_count_on_message_in_disk: int = _int(
        "maxTransferCountOnMessageInDisk", 8, "messages", "one pull, cold"
    )
    access_message_in_memory_max_ratio: int = _int(
        "accessMessageInMemoryMaxRatio", 40, "percent", "of memory that counts as hot", 0, 100
    )
    max_filter_message_size: int = _int("maxFilterMessageSize", 16_000, "bytes", "queue entries examined by one pull")
    travel_cq_file_num_when_get_message: int = _int(
        "travelCqFileNumWhenGetMessage", 1, "files", "queue files of one pull", 1
    )
    disk_fall_recorded: bool = _flag("diskFallRecorded", "statistics of how far readers are behind", default=True)
    offset_check_in_slave: bool = _flag("offsetCheckInSlave", "a slave corrects offsets too", default=False)

    # Recovery and dispatch
    check_crc_on_recover: bool = _flag("checkCRCOnRecover", "body CRC in recovery", default=True)
    commit_log_recover_max_num: int = _int(
        "commitLogRecoverMaxNum", 10, "files", "log files that a start of 5.4 and later looks back at", -_I32
    )
    enable_accelerated_recovery: bool = _flag(
        "enableAcceleratedRecovery", "5.5: a start after a crash begins within its first file", default=False
    )
    check_commit_log_offset_on_recover: bool = _flag(
        "checkCommitLogOffsetOnRecover", "5.5: recovery ends at a unit that tells another file's offset", default=False
    )
    recheck_reput_offset_from_cq: bool = _flag(
        "recheckReputOffsetFromCq", "dispatch from the queues' end", default=False
    )
    read_un_committed: bool = _flag("readUnCommitted", "dispatch beyond the confirm offset", default=False)
    disappear_time_after_start: int = _int("disappearTimeAfterStart", -1, "ms", "pause before registration", -1)

    # Cleaning
    delete_when: str = _text("deleteWhen", "04", "hours of the day, separated by ;")
    file_reserved_time: int = _int("fileReservedTime", 72, "hours", "age at which a log file may go", 0)
    disk_max_used_space_ratio: int = _int(
        "diskMaxUsedSpaceRatio", 75, "percent", "full: delete expired files", -_I32, _I32, (10, 95)
    )
    disk_space_clean_forcibly_ratio: int = _int(
        "diskSpaceCleanForciblyRatio", 85, "percent", "full: delete at once", -_I32, _I32, (30, 85)
    )
    disk_space_warning_level_ratio: int = _int(
        "diskSpaceWarningLevelRatio", 90, "percent", "full: refuse puts", -_I32, _I32, (35, 90)
    )
    clean_file_forcibly_enable: bool = _flag(
        "cleanFileForciblyEnable", "under pressure age does not count", default=True
    )
    delete_file_batch_max: int = _int("deleteFileBatchMax", 10, "files", "most files of one run")
    clean_resource_interval: int = _int("cleanResourceInterval", 10_000, "ms", "pause between runs", 1)
    delete_commit_log_files_interval: int = _int("deleteCommitLogFilesInterval", 100, "ms", "pause between log files")
    delete_consume_queue_files_interval: int = _int(
        "deleteConsumeQueueFilesInterval", 100, "ms", "pause between queues"
    )
    destroy_maped_file_interval_forcibly: int = _int("destroyMapedFileIntervalForcibly", 120_000, "ms", "then force")
    redelete_hanged_file_interval: int = _int("redeleteHangedFileInterval", 120_000, "ms", "next try at a hanged file")
    replicas_per_disk_partition: int = _int("replicasPerDiskPartition", 1, "stores", "stores that share a disk")
    logical_disk_space_clean_forcibly_threshold: float = field(
        default=0.8,
        metadata={
            "java": "logicalDiskSpaceCleanForciblyThreshold",
            "unit": "share",
            "low": 0,
            "high": 1,
            "clamp": None,
            "choices": None,
            "meaning": "of a shared disk: delete at once",
        },
    )

    # Delay and timer
    message_delay_level: str = _text("messageDelayLevel", DEFAULT_LEVELS, "delay of each level; units s, m, h, d")
    flush_delay_offset_interval: int = _int("flushDelayOffsetInterval", 10_000, "ms", "pause between saves", 1, _I64)
    enable_schedule_async_deliver: bool = _flag("enableScheduleAsyncDeliver", "deliver without waiting", default=False)
    timer_wheel_enable: bool = _flag("timerWheelEnable", "timer messages of any time", default=True)
    timer_wheel_snapshot_flush: bool = _flag(
        "timerWheelSnapshotFlush", "keep the wheel in snapshots (5.3.4 and later)", default=False
    )
    timer_precision_ms: int = _int("timerPrecisionMs", 1000, "ms", "one slot of the wheel", 1)
    timer_max_delay_sec: int = _int("timerMaxDelaySec", 259_200, "s", "furthest delivery time")
    timer_roll_window_slot: int = _int("timerRollWindowSlot", 172_800, "slots", "further messages are rolled", 2)
    timer_flush_interval_ms: int = _int("timerFlushIntervalMs", 1000, "ms", "pause between flushes", 1)
    timer_congest_num_each_slot: int = _int("timerCongestNumEachSlot", _I32, "messages", "a slot is crowded", 1)
    timer_enable_retry_until_success: bool = _flag("timerEnableRetryUntilSuccess", "deliver or stop", default=False)

    # Replication
    broker_role: str = _text("brokerRole", "ASYNC_MASTER", "role", ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE"))
    in_sync_replicas: int = _int("inSyncReplicas", 1, "stores", "stores that a put of SYNC_MASTER waits for")
    min_in_sync_replicas: int = _int("minInSyncReplicas", 1, "stores", "fewest stores in sync")
    total_replicas: int = _int("totalReplicas", 1, "stores", "stores of this broker name")
    ha_listen_port: int = _int("haListenPort", 10_912, "port", "slaves connect here", 0, 65_535)
    ha_send_heartbeat_interval: int = _int("haSendHeartbeatInterval", 5000, "ms", "silence before a heartbeat")
    ha_housekeeping_interval: int = _int("haHousekeepingInterval", 20_000, "ms", "silence before a close")
    ha_transfer_batch_size: int = _int("haTransferBatchSize", 32_768, "bytes", "largest transfer", 1)
    ha_max_gap_not_in_sync: int = _int("haMaxGapNotInSync", 268_435_456, "bytes", "behind, yet in sync")
    ha_slave_fallbehind_max: int = _int(
        "haSlaveFallbehindMax", 268_435_456, "bytes", "behind, and yet waited for (before 5.x)"
    )
    ha_master_address: str = _text("haMasterAddress", "", "address that a slave copies from")

    # Light, compacted and DLedger stores
    enable_lmq: bool = _flag("enableLmq", "light queues get offsets", default=False)
    enable_multi_dispatch: bool = _flag("enableMultiDispatch", "light queues get entries", default=False)
    enable_compaction: bool = _flag("enableCompaction", "compaction topics", default=True)
    enable_dleger_commit_log: bool = _flag("enableDLegerCommitLog", "log kept by DLedger", default=False)
    d_leger_group: str = _text("dLegerGroup", "", "DLedger group")
    d_leger_peers: str = _text("dLegerPeers", "", "DLedger members")
    d_leger_self_id: str = _text("dLegerSelfId", "", "this DLedger member")
    rocksdb_cq_double_write_enable: bool = _flag(
        "rocksdbCQDoubleWriteEnable", "files beside RocksDB queues", default=False
    )
    combine_cq_loading_cq_types: str = _text(
        "combineCQLoadingCQTypes", "default;defaultRocksDB", "with both kinds of queues: those that are opened"
    )
    combine_cq_prefer_cq_type: str = _text(
        "combineCQPreferCQType", "default", "with both kinds of queues: those that consumers read"
    )
    combine_assign_offset_cq_type: str = _text(
        "combineAssignOffsetCQType", "default", "with both kinds of queues: those that number new messages"
    )
    combine_cq_max_extra_search_commit_log_files: int = _int(
        "combineCQMaxExtraSearchCommitLogFiles",
        3,
        "files",
        "with both kinds of queues: log files that a start looks further back for the other queues",
        -_I32,
    )
    use_separate_store_path_for_rocksdb_cq: bool = _flag(
        "useSeparateStorePathForRocksdbCQ", "a RocksDB of queues in consumequeue_rocksdb", default=False
    )
    combine_cq_use_rocksdb_for_lmq: bool = _flag(
        "combineCQUseRocksdbForLmq", "with both kinds of queues: light queues only in the RocksDB", default=False
    )
    rocksdb_cq_selective_double_write_enable: bool = _flag(
        "rocksdbCQSelectiveDoubleWriteEnable",
        "with both kinds of queues: only lite topics in the RocksDB",
        default=False,
    )

    @property
    def consume_queue_file_size(self) -> int:
        """Bytes of a consume queue file in RocketMQ: rounded up to a multiple of 20."""
        return -(-self.mapped_file_size_consume_queue // CQ_UNIT) * CQ_UNIT

    def delay_levels(self) -> tuple[int, ...]:
        """Return the milliseconds of each delay level, level 1 first."""
        return delay_levels(self.message_delay_level)

    def overlaid(self, top: MessageStoreConfig) -> MessageStoreConfig:
        """Return this configuration with the keys that ``top`` was really given."""
        values = {item.name: getattr(top, item.name) for key, item in _by_java().items() if key in top.given}
        return replace(
            self,
            given=self.given | top.given,
            other_paths=self.other_paths + top.other_paths,
            paths_from_config=self.paths_from_config or top.paths_from_config,
            file=top.file or self.file,
            **values,
        )

    @property
    def paths(self) -> list[tuple[str, str]]:
        """(key, value) of every path that is written down, including keys that only old guides mention."""
        named = [(str(item.metadata["java"]), getattr(self, item.name)) for item in _path_fields()]
        return [(key, text) for key, text in (*named, *self.other_paths) if text.strip()]

    def only_paths(self) -> MessageStoreConfig:
        """Return only the paths of this configuration."""
        return replace(self, given=PATH_KEYS & self.given)

    def without_paths(self) -> MessageStoreConfig:
        """Return this configuration without any path: everything is below the named folder."""
        empty: dict[str, Any] = {item.name: "" for item in _path_fields()}
        return replace(
            self, given=self.given - PATH_KEYS, other_paths=(), paths_from_config=False, paths_left_out=True, **empty
        )

    def clamped(self) -> list[tuple[str, int, int]]:
        """Return (key, given value, used value) of each number that RocketMQ silently limits to its own range."""
        clamped_values = []
        for item in fields(self):
            bounds = item.metadata.get("clamp")
            if bounds:
                value = getattr(self, item.name)
                used = min(max(value, bounds[0]), bounds[1])
                if used != value:
                    clamped_values.append((str(item.metadata["java"]), value, used))
        return clamped_values


def read_config(path: Path | str) -> MessageStoreConfig:
    """Return the configuration in a broker's properties file (``broker.conf``).

    Unknown keys are ignored, as a broker does; :func:`read_properties` returns them. Raises :class:`CannotRead`,
    or :class:`UsageError` with file, line, key, and the permitted values.

    """
    return read_properties(path)[0]


def read_properties(path: Path | str, base: MessageStoreConfig | None = None) -> tuple[MessageStoreConfig, list[str]]:
    """Return the configuration in a broker's properties file, over ``base``, and the unknown keys.

    Raises :class:`CannotRead`, or :class:`UsageError` with file, line, key, and the permitted values.

    """
    config, unknown = parse_properties(read_text(path), str(path), base)
    return replace(config, file=str(path)), unknown


def parse_properties(
    text: str, file: str | None = None, base: MessageStoreConfig | None = None
) -> tuple[MessageStoreConfig, list[str]]:
    """Return the configuration in the text of a properties file, and the unknown keys in the text's order."""
    values: dict[str, Any] = {}
    given_keys: set[str] = set()
    unknown: dict[str, None] = {}
    other_paths: dict[str, str] = {}
    for item in parse(text, file):
        config_field = _by_java().get(item.key)
        if config_field is not None:
            values[config_field.name] = _read(config_field, item, file)
            given_keys.add(item.key)
        elif item.key not in OTHER_KEYS:
            unknown[item.key] = None
            if item.key in OLD_PATH_KEYS:
                other_paths[item.key] = item.value.strip()
    return _over(base, values, given_keys, file, other_paths), list(unknown)


def from_mapping(
    mapping: Mapping[str, object], base: MessageStoreConfig | None = None, file: str | None = None
) -> tuple[MessageStoreConfig, list[str]]:
    """Return the configuration in a plan's ``config`` object (booleans, numbers or texts), and the unknown keys."""
    values: dict[str, Any] = {}
    given_keys: set[str] = set()
    unknown = []
    other_paths: dict[str, str] = {}
    for key, value in mapping.items():
        config_field = _by_java().get(key)
        if config_field is None:
            if key not in OTHER_KEYS:
                unknown.append(key)
            if key in OLD_PATH_KEYS and isinstance(value, str):
                other_paths[key] = value.strip()
            continue
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, int | float | str):
            text = str(value)
        else:
            raise UsageError(
                sentence(
                    "{key}: expected {permitted}, found {name}",
                    key=key,
                    permitted=permitted(config_field),
                    name=type(value).__name__,
                ),
                file=file,
            )
        values[config_field.name] = _read(config_field, Property(key, text, 0), file)
        given_keys.add(key)
    return _over(base, values, given_keys, file, other_paths), unknown


def delay_levels(text: str) -> tuple[int, ...]:
    """Return the milliseconds of each level of a ``messageDelayLevel`` text.

    Raises :class:`UsageError` with the level.
    """
    levels: list[int] = []
    for word in text.split(" "):
        number, unit = word[:-1], word[-1:]
        if unit not in _UNITS_OF_TIME or not (number.isascii() and number.isdigit()) or len(number) > 12:
            raise UsageError(
                sentence(
                    "messageDelayLevel: expected a number and s, m, h or d for level {value}, found {word}",
                    value=len(levels) + 1,
                    word=repr(word),
                )
            )
        levels.append(int(number) * _UNITS_OF_TIME[unit])
    return tuple(levels)


def permitted(item: Field[Any]) -> str:
    """Describe the values that the attribute accepts."""
    if item.metadata["choices"]:
        return " or ".join(item.metadata["choices"])
    if isinstance(item.default, bool):
        return "true or false"
    if isinstance(item.default, str):
        return "a text"
    kind = "a whole number" if isinstance(item.default, int) else "a number"
    return f"{kind} from {item.metadata['low']} to {item.metadata['high']} ({item.metadata['unit']})"


@cache
def _path_fields() -> tuple[Field[Any], ...]:
    return tuple(item for item in fields(MessageStoreConfig) if item.metadata.get("path"))


@cache
def _by_java() -> dict[str, Field[Any]]:
    return {item.metadata["java"]: item for item in fields(MessageStoreConfig) if "java" in item.metadata}


def _read(item: Field[Any], pair: Property, file: str | None) -> bool | int | float | str:
    """Return the value of one property.

    RocketMQ keeps its default for a value that it cannot parse; here that is an error.
    """
    text = pair.value
    if isinstance(item.default, bool):
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
    elif isinstance(item.default, str):
        choices = item.metadata["choices"]
        if not choices or text.strip() in choices:
            return text.strip()
    else:
        number = _number(text, is_integer=isinstance(item.default, int))
        if number is not None and item.metadata["low"] <= number <= item.metadata["high"]:
            return number
    place = f" (line {pair.line})" if pair.line else ""
    raise UsageError(
        sentence(
            "{key}{place}: expected {permitted}, found {text}",
            key=pair.key,
            place=place,
            permitted=permitted(item),
            text=repr(text[:80]),
        ),
        file=file,
    )


def _number(text: str, *, is_integer: bool) -> int | float | None:
    """Parse the text as Java's ``parseInt`` or ``parseDouble`` does; None if it is invalid.

    Blanks and underscores are refused.
    """
    if not text.isascii() or len(text) > 40 or "_" in text:
        return None
    try:
        return int(text) if is_integer and text == text.strip() else None if is_integer else float(text)
    except ValueError:
        return None


def _over(
    base: MessageStoreConfig | None,
    values: dict[str, Any],
    given_keys: set[str],
    file: str | None,
    other_paths: dict[str, str],
) -> MessageStoreConfig:
    start = base or MessageStoreConfig()
    all_other_paths = tuple({**dict(start.other_paths), **other_paths}.items())
    config = replace(start, given=start.given | given_keys, other_paths=all_other_paths, **values)
    if "messageDelayLevel" in given_keys:
        try:
            config.delay_levels()
        except UsageError as error:
            raise UsageError(error.what, file=file) from None
    return config


_BROKER_KEYS = """
    accountStatsEnable accountStatsPrintZeroValues ackMessageThreadPoolNums ackThreadPoolQueueCapacity
    aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond aclEnable aclFile adminBrokerThreadPoolNums
    adminBrokerThreadPoolQueueCapacity allowRecallWhenBrokerNotWriteable appendAckAsync appendCkAsync
    asyncSendEnable authConfigPath authenticationEnabled authenticationMetadataProvider authenticationProvider
    authenticationStrategy authenticationWhitelist authorizationEnabled authorizationMetadataProvider
    authorizationProvider authorizationStrategy authorizationWhitelist autoCreateSubscriptionGroup
    autoCreateTopicEnable autoDeleteUnusedStats batchDeleteSubscriptionGroupMaxRate batchDeleteTopicMaxRate
    bindAddress broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond brokerClusterName brokerConfigPath
    brokerElectionPriority brokerFastFailureEnable brokerHeartbeatInterval brokerId brokerIP1 brokerIP2 brokerName
    brokerNotActiveTimeoutMillis brokerPermission brokerTopicEnable cgColdReadThreshold channelExpiredTimeout
    channelNotActiveInterval checkSyncStateSetPeriod cleanOfflineBrokerInterval clearRetryTopicWhenDeleteTopic
    clientAsyncSemaphoreValue clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds
    clientCloseSocketIfTimeout clientManagerThreadPoolQueueCapacity clientManageThreadPoolNums
    clientOnewaySemaphoreValue clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
    clientWorkerThreads clusterName clusterTopicEnable coldCtrStrategyEnable commercialBaseCount commercialBigCount
    commercialEnable commercialSizePerMsg commercialTimerCount commercialTransCount compatibleWithOldNameSrv
    compressedRegister configBlackList configFile configManagerVersion configName connectTimeoutMillis
    consumerFallbehindThreshold consumerManagerThreadPoolQueueCapacity consumerManageThreadPoolNums
    consumerOffsetUpdateVersionStep controllerAddr controllerHeartBeatTimeoutMills defaultMessageRequestMode
    defaultPopShareQueueNum defaultTopicQueueNums delayOffsetUpdateVersionStep disableCallbackExecutor
    disableConsumeIfConsumerReadSlowly disableNettyWorkerGroup enableBroadcastOffsetStore enableCalcFilterBitMap
    enableConnectionMetrics enableControllerMode enableCreateSysGroup enableDetailStat enableDLegerController
    enableFastChannelEventProcess enableLagAndDlqMetrics enableLitePopLog enableLmqStats enableMessageStoreMetrics
    enableMixedMessageType enableNetWorkFlowControl enableNotifyAfterPopOrderLockRelease
    enableNotifyBeforePopCalculateLag enablePopBatchAck enablePopBufferMerge enablePopLog enablePopMessageThreshold
    enablePopMetrics enablePropertyFilter enableReconnectForGoAway enableRegisterProducer enableRemoteEscape
    enableRemotingMetrics enableRequestMetrics enableRetryTopicV2 enableShutdownGracefully enableSingleTopicRegister
    enableSkipLongAwaitingAck enableSlaveActingMaster enableSplitMetadata enableSplitRegistration enableStatsMetrics
    enableTransactionMetrics endTransactionPoolQueueCapacity endTransactionThreadPoolNums estimateAccumulation
    expectConsumerNumUseFilter fetchControllerAddrByDnsLookup fetchNamesrvAddrByAddressServer
    fetchNameSrvAddrByDnsLookup fetchNamesrvAddrInterval filterDataCleanTimeSpan filterServerNums filterSupportRetry
    flushConsumerOffsetHistoryInterval flushConsumerOffsetInterval forceRegister forwardTimeout
    globalColdReadThreshold heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity highSpeedMode inBrokerContainer
    initAuthenticationUser initPopOffsetByCheckMsgInMem innerClientAuthenticationCredentials isolateLogEnable
    listenPort liteEventCapacityCacheTtlMs liteEventCheckInterval liteEventFullDispatchDelayTime
    liteEventFullDispatchDelayTimeForWildcardGroup liteLagCountMetricsEnable liteLagLatencyCollectEnable
    liteLagLatencyMetricsEnable liteLagLatencyTopK litePullMessageEnable litePullMessageThreadPoolNums
    litePullThreadPoolQueueCapacity liteSubscriptionCheckInterval liteSubscriptionCheckTimeoutMills
    liteTtlCheckInterval loadBalancePollNameServerInterval loadBalanceProcessorThreadPoolNums
    loadBalanceThreadPoolQueueCapacity lockInStrictMode longPollingEnable maxClientEventCount maxDelayTime
    maxErrorRateOfBloomFilter maxLiteSubscriptionCount maxMessageFilterNumForNotification maxPopPollingSize
    maxReconnectIntervalTimeSeconds maxStatsIdleTimeInMinutes messageStorePlugIn metricGrpcExporterIntervalInMills
    metricGrpcExporterTimeOutInMills metricLoggingExporterIntervalInMills metricsExportBatchMaxConcurrent
    metricsExportBatchMaxDataPoints metricsExportBatchSplitEnabled metricsExporterType metricsExportOtelMemoryMode
    metricsGrpcExporterHeader metricsGrpcExporterTarget metricsInDelta metricsLabel metricsOtelCardinalityLimit
    metricsPromExporterHost metricsPromExporterPort migrateAuthFromV1Enabled minLiteTTl msgTraceTopicName
    namesrvAddr notifyConsumerIdsChangedEnable persistConsumerOffsetIncrementally popCkMaxBufferSize
    popCkOffsetMaxQueueSize popCkStayBufferTime popCkStayBufferTimeOut popConsumerFSServiceInit
    popConsumerKVServiceEnable popConsumerKVServiceInit popConsumerKVServiceLog popFromRetryProbability
    popFromRetryProbabilityForPriority popInflightMessageThreshold popLongPollingForceNotifyInterval
    popOrderLockTimerTickMs popOrderLockTimerTicksPerWheel popPollingMapExpireTimeSeconds popPollingMapSize
    popPollingSize popResponseReturnActualRetryTopic popReviveConcurrency popReviveMaxAttemptTimes
    popReviveMaxReturnSizePerRead popReviveSkipIfGroupAbsent printChannelGroups printChannelGroupsMinNum
    priorityOrderAsc processReplyMessageThreadPoolNums pullMessageThreadPoolNums pullThreadPoolQueueCapacity
    putMessageFutureThreadPoolNums putThreadPoolQueueCapacity queryMessageThreadPoolNums
    queryThreadPoolQueueCapacity realTimeNotifyConsumerChange recallMessageEnable recoverConcurrently
    recoverThreadPoolNums regionId registerBrokerTimeoutMills registerNameServerPeriod rejectPullConsumerEnable
    rejectTransactionMessage replyThreadPoolQueueCapacity retrieveMessageFromPopRetryTopicV1 reviveAckWaitMs
    reviveInterval reviveMaxSlow reviveQueueNum reviveScanTime rmqAddressServerDomain rmqAddressServerSubGroup
    rocketmqHome scanAvailableNameSrv sendHeartbeatTimeoutMillis sendMessageThreadPoolNums
    sendThreadPoolQueueCapacity serverAsyncSemaphoreValue serverCallbackExecutorThreads
    serverChannelMaxIdleTimeSeconds serverLoadBalancerEnable serverNettyWorkerGroupEnable serverOnewaySemaphoreValue
    serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketBacklog serverSocketRcvBufSize
    serverSocketSndBufSize serverWorkerThreads shortPollingTimeMills shutdownWaitTimeSeconds skipPreOnline
    skipWhenCKRePutReachMaxTimes slaveReadEnable socksProxyConfig splitMetadataSize splitRegistrationSize
    startAcceptSendRequestTimeStamp statefulAuthenticationCacheExpiredSecond statefulAuthenticationCacheMaxNum
    statefulAuthorizationCacheExpiredSecond statefulAuthorizationCacheMaxNum storeReplyMessageEnable
    subscriptionExpiredTimeout syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod syncControllerMetadataPeriod
    tls.enable tlsTestModeEnable traceOn traceTopicEnable transactionCheckInterval transactionCheckMax
    transactionCheckRocksdbCoreThreads transactionCheckRocksdbMaxThreads transactionCheckRocksdbQueueCapacity
    transactionMetricFlushInterval transactionOpBatchInterval transactionOpMsgMaxSize transactionTimeOut
    transferMsgByHeap updateNameServerAddrPeriod useEpollNativeSelector useMessageFilterForNotification
    usePIDColdCtrStrategy userCacheExpiredSecond userCacheMaxNum userCacheRefreshSecond useSeparateRetryQueue
    useServerSideResetOffset useSingleRocksDBForAllConfigs useStaticSubscription useTLS
    validateSystemTopicWhenUpdateTopic waitTimeMillsInAckQueue waitTimeMillsInAdminBrokerQueue
    waitTimeMillsInHeartbeatQueue waitTimeMillsInLitePullQueue waitTimeMillsInPullQueue waitTimeMillsInSendQueue
    waitTimeMillsInTransactionQueue writeBufferHighWaterMark writeBufferLowWaterMark
"""
BROKER_KEYS = frozenset(_BROKER_KEYS.split())
"""Keys of BrokerConfig, BrokerIdentity, NettyServerConfig, NettyClientConfig and AuthConfig."""

_OTHER_STORE_KEYS = """
    accessMessageInMemoryHotRatio allAckInSyncStateSet appendTopicForTimerDeleteKey asyncLearner
    batchDispatchRequestThreadPoolNums bottomMostCompressionTypeForConsumeQueueStore cleanRocksDBDirtyCQIntervalMin
    cleanSwapedMapInterval coldDataFlowControlEnable coldDataScanEnable combineCQEnableCheckSelf
    commitLogForceSwapMapInterval commitLogSwapMapInterval
    commitLogSwapMapReserveFileNum
    compactionScheduleInternal compactionThreadNum correctLogicMinOffsetForceInterval
    correctLogicMinOffsetSleepInterval correctMinOffsetMadviseEnable dataReadAheadEnable debugLockEnable
    dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread enableAsyncReput enableAutoInSyncReplicas
    enableBatchPush enableBuildConsumeQueueConcurrently enableCleanExpiredOffset enableLmqQuota
    enableLogConsumeQueueRepeatedlyBuildWhenRecover enableRocksDBLog enableRunningFlagsInFlush
    enableScheduleMessageStats haFlowControlEnable haMaxTimeSlaveNotCatchup indexFileReadEnable indexFileWriteEnable
    indexRocksDBEnable iteratorWhenUseRocksdbConsumeQueue logicQueueForceSwapMapInterval logicQueueSwapMapInterval
    logicQueueSwapMapReserveFileNum mappedFileSwapEnable maxAsyncPutMessageRequests maxBatchDeleteFilesNum
    maxCheckMessageReuseBufferSize maxChecksumRange maxConsumeQueueScan maxHaTransferByteInSecond
    maxLmqConsumeQueueNum maxOffsetMapSize maxRecoveryCommitlogFiles maxRocksDBIndexQueryDays maxSlaveResendLength
    maxTopicLength memTableFlushIntervalMs popRocksdbBlockCacheSize popRocksdbWriteBufferSize preferredLeaderId
    pullBatchMaxMessageCount putMessageTimeout putMsgIndexHightWater realTimePersistRocksDBConfig
    rocksdbCompressionType rocksdbFlushWalFrequency
    rocksdbMaxSizeAmplificationPercent rocksdbWalFileRollingThreshold sampleCountThreshold sampleSteps
    scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked searchBcqByCacheEnable
    sharedByteBufferNum spinLockCollisionRetreatOptimalDegree statRocksDBCQIntervalSec syncFromLastFile
    syncMasterFlushOffsetWhenStartup timerCheckMetricsWhen timerColdDataCheckIntervalMs timerEnableCheckMetrics
    timerEnableDisruptor timerGetMessageThreadNum timerInterceptDelayLevel timerMetricSmallThreshold
    timerProgressLogIntervalMs timerPutMessageThreadNum timerRecallToTimelineEnable timerRecallToTimeWheelEnable
    timerReputServiceCorePoolSize timerReputServiceMaxPoolSize timerReputServiceQueueCapacity timerRocksDBEnable
    timerRocksDBPrecisionMs timerRocksDBRollIntervalHours timerRocksDBRollMaxTps timerRocksDBRollRangeHours
    timerRocksDBStopScan timerRocksDBTimeExpiredMaxTps timerSkipUnknownError timerStopDequeue timerStopEnqueue
    timerWarmEnable timerWheelSnapshotIntervalMs transRocksDBEnable
    transWriteOriginTransHalfEnable writeWithoutMmap
"""
OTHER_STORE_KEYS = frozenset(_OTHER_STORE_KEYS.split())
"""Keys of MessageStoreConfig without a field here: they change nothing in the files, or ``MODES`` of
:mod:`engine.rules.undecoded` refuses them.
"""

OTHER_KEYS = BROKER_KEYS | OTHER_STORE_KEYS

RENAMED = {
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
    "mappedFileSizeBatchConsumeQueue": "mapperFileSizeBatchConsumeQueue",
    "maxHashSlotNums": "maxHashSlotNum",
    "storePathConsumeQueue": "storePathRootDir",
    "storePathIndex": "storePathRootDir",
    "storeCheckpoint": "storePathRootDir",
    "abortFile": "storePathRootDir",
}
"""Keys that old guides name and no release since 4.7 takes → the key that decides instead."""

OLD_PATH_KEYS = frozenset(key for key, decides in RENAMED.items() if decides == "storePathRootDir")
"""Keys of :data:`RENAMED` that name a part of a store: nobody follows them, but they tell which store was meant."""

PATH_KEYS = frozenset(str(item.metadata["java"]) for item in _path_fields())
"""Keys of :class:`MessageStoreConfig` that name a file or folder: :mod:`engine.files.store_folders` decides about each.
"""

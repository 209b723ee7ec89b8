"""The table of RocketMQ releases: what each one writes, reads, recovers, deletes and refuses.

Every difference between releases is a column here, and every part of the program uses ``rules_of(release).column``. A
new release is one more row: the previous row with its differences. "4.9" stands for 4.9.0 to 4.9.8, "5.3" for 5.0
to 5.3.3; each row names the patch release with which it was compared.

"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from engine.sentences import Sentence, sentence

Release = Literal["4.9", "5.3", "5.4", "5.5"]

CleanStart = Literal["third-last-file", "file-start", "first-unit"]
"""How the first file of a walk is chosen after a normal exit: the third-last one, the last file that begins at or
before the end of the queues, or the last file whose first unit is valid and lies at or before that end."""
CrashStart = Literal["store-time", "logics-physical-offset"]
"""How the first file of a walk is chosen after a crash: by store time and the checkpoint's times less three seconds, or
by the checkpoint's ``logicsPhysicalOffset``."""


JsonParser = Literal["fastjson 1.2.69", "fastjson 1.2.83", "fastjson 2"]
"""The parser of a broker's tables: parsers accept different values for the same type."""


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules of one release of RocketMQ. Names of settings in the comments are those of ``MessageStoreConfig``."""

    name: Release
    covers: str  # the releases that the row covers, for use in a sentence
    patch: str  # the patch release with which these rules were compared
    major: int  # 4 or 5: the line of releases, for words and fields on the wire that came with 5.0

    # Units of the log
    checks_length_before_magic: bool
    """A length field that reaches beyond the file is refused before the magic number is checked."""
    refuses_negative_length: bool  # before the magic number is checked
    allocates_by_length_field: bool
    """The check allocates as much heap as the length field says, before it compares the remaining bytes."""
    long_topics: bool  # autoMessageVersionOnTopicLen: version-2 units are written
    property_crc: bool  # enabledAppendPropCRC, forceVerifyPropCRC
    verifies_duplicates: bool  # duplicationEnable: DUP_INFO is checked on recovery
    closes_last_property: bool  # the text of properties ends with the separator of the last pair

    limits_properties_by_letters: bool  # 32,767 letters of their text, besides the bytes
    drops_times_of_delayed: bool  # a message with a delay level loses the properties of timers
    drops_wait_of_light: bool  # a message for light queues loses WAIT
    long_retry_topics: bool  # %RETRY% topics of more than 127 bytes are accepted

    # Queues and index
    batch_queues: bool
    minimum_by_halving: bool  # correctMinOffset halves the last file; before 5.x it walks the first one
    writes_tag_entries: bool  # one index entry more for each unit with tags: ``topic#T#tags``
    light_queues_by: Literal["enableMultiDispatch", "enableLmq"]
    light_queue_limit: bool  # a put fails where there are too many light queues
    offset_boundaries: bool  # an offset by time has a lower and an upper boundary
    scans_rocksdb_by_count: bool
    """getMessage with a filter looks at no more entries of a RocksDB queue than messages are asked for (to 5.5.0)."""
    recovers_rocksdb_queues: bool
    """The start goes by the end of dispatch in the RocksDB, as a plan of ours does (compared with 5.3.3 and later)."""
    light_queues_in_rocksdb: bool
    """combineCQUseRocksdbForLmq counts: of two kinds of queues only the RocksDB has the light ones. And a kind that
    holds nothing does not decide where a start begins.
    """
    chooses_queue_side: bool
    """combineCQPreferCQType and combineAssignOffsetCQType count (since 5.3.4): a broker that writes queues into files
    and into a RocksDB may read the RocksDB.
    """
    dispatches_flushed_only: bool  # SYNC_FLUSH: units are dispatched when they are on the disk

    # Loading and recovery
    skips_folders: bool  # a folder among a sequence's files is skipped; before 5.x the start fails
    deletes_empty_last_file: bool  # of a sequence of files, while it loads
    checks_queue_kinds: bool  # a start fails over a topic whose queues are of another kind than its table says
    loads_timers: bool  # timer wheel and log are loaded
    clean_start: CleanStart
    crash_start: CrashStart
    recovery_file_limit: int | None  # default of commitLogRecoverMaxNum; None: all files
    dispatches_on_clean_start: bool  # the walk of a clean start dispatches units behind the queues' end
    dispatches_after_recovery: bool  # a second pass always follows; since 5.x with recheckReputOffsetFromCq only
    walks_dledger_after_crash: bool
    """After a crash the messages of a DLedger log are dispatched again from a start file on, and the queues are cut
    where that ends, counted without the headers of the entries (docs/formats/dledger.md#start).
    """
    knows_delays_in_recovery: bool  # delay levels are read before the log is recovered
    cuts_by_end_after_dispatch: bool
    """Queues are cut where they reach the end of the log after the walk, not where they did before it."""
    minimum_needs_entries: bool
    """correctMinOffset fails over a queue whose last file is empty and does not begin at 0."""
    accelerated_recovery: bool  # enableAcceleratedRecovery counts for queues in files
    checks_unit_offset: bool  # checkCommitLogOffsetOnRecover
    index_folders_fail: bool  # a folder with the name of an index file ends the start

    # Checkpoint, abort, tables
    checkpoint_numbers: int  # how many of the checkpoint's numbers are written: 3, 5 or 6
    logics_time_at_thorough_flush: bool
    """The queues' time and offset go into the checkpoint at a thorough flush of the queues only, once a minute."""
    flushes_checkpoint: bool  # by a service of its own, every second
    checks_disk_by_service: bool  # a service of its own checks the free space
    backs_up_abort: bool  # abort holds the process id, abort.bak stays behind
    table_backup: Literal["copied", "renamed"]
    """X.json.bak is a copy of the table before, or X.json itself, renamed before the new one is written."""
    json_parser: JsonParser
    tables_of_5: bool  # attributes, state versions, groupTopicMap, forbiddenTable
    order_levels: bool  # consumerOrderInfo.json names orderedConsumptionLevel
    has_rocksdb_transactions: bool  # rocksdbstore/ and the topics of half messages in it are made at every start
    transaction_metric_flush_ms: int  # transactionMetricFlushInterval

    # Names
    longest_group_letters: int
    longest_retry_topic: int
    """Letters of a %RETRY% or %DLQ% topic that a client may name; other topics have 127. Brokers themselves make longer
    ones: the retry topic of a group that pops has the names of group and topic.
    """
    quotes_wrong_topics: bool  # a refusal of a topic's name repeats the name
    faq: str  # the page that refusals name
    nameless_groups: bool
    """A group whose name is empty is declared like any other, and groups may be declared under any name."""

    # Messages that a broker stores
    appends_batch_properties: bool
    """Each message of a batch gets the batch's properties besides its own (to 5.3.3)."""
    keeps_real_topic: bool
    """A committed message keeps REAL_TOPIC and REAL_QID of its half message (to 5.3.4)."""
    marks_popping_group: bool
    """A message that returns to the retry topic of a pop has ORIGIN_GROUP, and wakes that group's waiting pops."""

    # Topics of a kind
    message_types: tuple[str, ...]
    """Values of a topic's message.type, in the order in which a refusal names them."""
    priorities: bool
    """The priority of a message decides its queue, and a pop of a PRIORITY topic reads the highest queue first."""
    lite_topics: bool
    """A message with __LITE_TOPIC goes to a light queue of its topic."""

    # Broker
    pages_tables: bool
    """Topics and groups are answered in pages where a request asks for them, with their total (since 5.3.4)."""
    checks_viewed_topic: bool
    """VIEW_MESSAGE_BY_ID refuses a message of another topic than the request's (since 5.5.1)."""
    tells_version_number: bool  # GET_BROKER_RUNTIME_INFO has brokerVersion, besides brokerVersionDesc
    timers: bool
    pop: bool
    timer_buffer_extra_bytes: int
    """The timer reads messages into a buffer of maxMessageSize and this many bytes more."""
    timer_skips_large_messages: bool
    """The timer passes over a message that does not fit into its buffer and never delivers it; before 5.4 it tries
    again forever, and every message behind it waits.
    """

    @property
    def title(self) -> str:
        """The release's name in a sentence: "RocketMQ 5.5.1"."""
        return f"RocketMQ {self.patch}"

    @property
    def version_name(self) -> str:
        """The release's name as a broker reports it (Java: ``MQVersion``): "V5_5_1"."""
        return f"V{self.patch.replace('.', '_')}"


_4_9 = ReleaseRules(
    name="4.9",
    covers="4.x",
    patch="4.9.8",
    major=4,
    checks_length_before_magic=False,
    refuses_negative_length=False,
    allocates_by_length_field=True,
    long_topics=False,
    property_crc=False,
    verifies_duplicates=False,
    closes_last_property=False,
    limits_properties_by_letters=True,
    drops_times_of_delayed=False,
    drops_wait_of_light=True,
    long_retry_topics=False,
    batch_queues=False,
    minimum_by_halving=False,
    writes_tag_entries=False,
    light_queues_by="enableMultiDispatch",
    light_queue_limit=True,
    offset_boundaries=False,
    scans_rocksdb_by_count=False,
    recovers_rocksdb_queues=False,
    light_queues_in_rocksdb=False,
    chooses_queue_side=False,
    dispatches_flushed_only=False,
    skips_folders=False,
    deletes_empty_last_file=False,
    checks_queue_kinds=False,
    loads_timers=False,
    clean_start="third-last-file",
    crash_start="store-time",
    recovery_file_limit=None,
    dispatches_on_clean_start=False,
    dispatches_after_recovery=True,
    walks_dledger_after_crash=False,
    knows_delays_in_recovery=False,
    cuts_by_end_after_dispatch=False,
    minimum_needs_entries=False,
    accelerated_recovery=False,
    checks_unit_offset=False,
    index_folders_fail=False,
    checkpoint_numbers=3,
    logics_time_at_thorough_flush=False,
    flushes_checkpoint=False,
    checks_disk_by_service=True,
    backs_up_abort=False,
    table_backup="copied",
    json_parser="fastjson 1.2.69",
    tables_of_5=False,
    order_levels=False,
    has_rocksdb_transactions=False,
    transaction_metric_flush_ms=3_000,
    longest_group_letters=255,
    longest_retry_topic=127,
    quotes_wrong_topics=False,
    faq="http://rocketmq.apache.org/docs/faq/",
    nameless_groups=True,
    appends_batch_properties=True,
    keeps_real_topic=True,
    marks_popping_group=False,
    message_types=("UNSPECIFIED", "TRANSACTION", "FIFO", "MIXED", "DELAY", "NORMAL"),
    priorities=False,
    lite_topics=False,
    pages_tables=False,
    checks_viewed_topic=False,
    tells_version_number=True,
    timers=False,
    pop=False,
    timer_buffer_extra_bytes=100,
    timer_skips_large_messages=False,
)
_5_3 = replace(
    _4_9,
    name="5.3",
    covers="5.0 to 5.3",
    patch="5.3.3",
    major=5,
    checks_length_before_magic=True,
    allocates_by_length_field=False,
    long_topics=True,
    property_crc=True,
    verifies_duplicates=True,
    closes_last_property=True,
    limits_properties_by_letters=False,
    drops_times_of_delayed=True,
    drops_wait_of_light=False,
    long_retry_topics=True,
    faq="https://rocketmq.apache.org/docs/bestPractice/06FAQ",
    batch_queues=True,
    recovers_rocksdb_queues=True,
    minimum_by_halving=True,
    light_queues_by="enableLmq",
    light_queue_limit=False,
    offset_boundaries=True,
    scans_rocksdb_by_count=True,
    dispatches_flushed_only=True,
    skips_folders=True,
    deletes_empty_last_file=True,
    checks_queue_kinds=True,
    loads_timers=True,
    clean_start="file-start",
    dispatches_on_clean_start=True,
    dispatches_after_recovery=False,
    walks_dledger_after_crash=True,
    knows_delays_in_recovery=True,
    minimum_needs_entries=True,
    index_folders_fail=True,
    checkpoint_numbers=5,
    flushes_checkpoint=True,
    checks_disk_by_service=False,
    backs_up_abort=True,
    json_parser="fastjson 1.2.83",
    tables_of_5=True,
    timers=True,
    pop=True,
)
_5_4 = replace(
    _5_3,
    name="5.4",
    covers="5.4",
    patch="5.4.0",
    writes_tag_entries=True,
    chooses_queue_side=True,  # since 5.3.4
    clean_start="first-unit",
    recovery_file_limit=10,
    cuts_by_end_after_dispatch=True,
    table_backup="renamed",  # since 5.3.4
    json_parser="fastjson 2",
    order_levels=True,
    has_rocksdb_transactions=True,
    transaction_metric_flush_ms=10_000,
    longest_group_letters=120,
    longest_retry_topic=255,
    quotes_wrong_topics=True,
    nameless_groups=False,
    appends_batch_properties=False,  # since 5.3.4
    keeps_real_topic=False,
    marks_popping_group=True,
    message_types=("UNSPECIFIED", "MIXED", "TRANSACTION", "PRIORITY", "FIFO", "DELAY", "NORMAL"),
    priorities=True,
    pages_tables=True,  # since 5.3.4
    tells_version_number=False,
    timer_skips_large_messages=True,
)
_5_5 = replace(
    _5_4,
    name="5.5",
    covers="5.5",
    patch="5.5.1",
    light_queues_in_rocksdb=True,
    scans_rocksdb_by_count=False,
    crash_start="logics-physical-offset",
    refuses_negative_length=True,
    minimum_needs_entries=False,
    accelerated_recovery=True,
    checks_unit_offset=True,
    checkpoint_numbers=6,
    logics_time_at_thorough_flush=True,
    faq="https://rocketmq.apache.org/docs/faq/",
    checks_viewed_topic=True,
    message_types=("UNSPECIFIED", "MIXED", "TRANSACTION", "PRIORITY", "FIFO", "DELAY", "LITE", "NORMAL"),
    lite_topics=True,
    timer_buffer_extra_bytes=65_536,
)

TABLE: dict[Release, ReleaseRules] = {row.name: row for row in (_4_9, _5_3, _5_4, _5_5)}
NAMES: tuple[Release, ...] = get_args(Release)
"""Every release, the oldest first."""
NEWEST: Release = NAMES[-1]
"""The release of a new store."""


_NEXT_START = re.compile(r"\b([Tt]he next start)\b(?! of )")

NEWEST_FIRST: tuple[Release, ...] = NAMES[::-1]


def rules_of(release: Release) -> ReleaseRules:
    """Return the rules of a release."""
    return TABLE[release]


def of_version(version: str) -> Release | None:
    """Return the release whose rules speak for a version as a broker reports it ("5.4.0"); None for any other text."""
    numbers = version.removesuffix("-SNAPSHOT").split(".")
    if len(numbers) < 2 or not all(number.isdecimal() for number in numbers):
        return None
    named = tuple(map(int, numbers[:2]))
    line = [row.name for row in TABLE.values() if row.major == named[0]]
    candidates = (name for name in line if named <= tuple(map(int, name.split("."))))
    return next(candidates, line[-1] if line else None)


def name_next_start(text: str, release: Release) -> str:
    """Return ``text`` with the release's name behind each "the next start": each release starts in its own way."""
    named = _NEXT_START.sub(rf"\1 of {rules_of(release).title}", text)
    if named == text:
        return text
    unnamed = sentence(text)
    return Sentence(named, unnamed.id, unnamed.params, unnamed.plural_id, rules_of(release).title)


def compared_with(release: Release) -> Release:
    """Return the release of the other line whose start is shown beside that of ``release``."""
    return "4.9" if rules_of(release).major > rules_of("4.9").major else "5.3"


def parse(text: str) -> Release:
    """Return the release of that name; raises ``ValueError`` with the valid names for any other text."""
    for name in NAMES:
        if name == text:
            return name
    raise ValueError(f"the release is one of {', '.join(NAMES)}, not {text!r}")

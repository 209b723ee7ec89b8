"""The upgrade and downgrade oracle: for a release and a storage mode, whether a broker would start on a store, what the
start loses and builds again, and what of the store it does not read.

What a start does with the files is a plan of :mod:`engine.store.recovery`, made for the queues of that mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index import ENTRY_SIZE
from engine.config import MessageStoreConfig
from engine.errors import CannotRead, CorruptUnit, StoreError
from engine.inspection import start_losses, tables, undecoded
from engine.inspection.derived_config import derived_config
from engine.inspection.index_reader import IndexReader
from engine.inspection.recovery import plan
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.start_losses import WalkOptions
from engine.inspection.written_release import sample_tag_entries
from engine.releases import NAMES, NEWEST, Release, rules_of
from engine.rules import compatibility as rules
from engine.rules.compatibility import (
    MODES,
    Hidden,
    QueueSource,
    Setting,
    StorageMode,
    StoreContents,
    TableContents,
    TableForm,
    TableSubject,
)
from engine.sentences import join, plural, sentence
from engine.store.recovery.plan import RecoveryPlan, file_limit_words
from engine.system_names import LMQ_PREFIX, REVIVE_PREFIX, TIMER_TOPIC

_ENTRIES_AT_A_TIME = 1 << 20
Verdict = Literal["safe", "loses", "refused", "unknown"]
OpenStore = Callable[[], StoreSnapshot]
_EXIT_CODES: dict[Verdict, int] = {"safe": 0, "loses": 1, "refused": 3, "unknown": 3}
_TABLE_FORMS: dict[str, TableForm] = {"config/rdb": "v2", "config/metadata": "single"}
_SIZES = (
    "mappedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue",
    "mapperFileSizeBatchConsumeQueue",
    "mappedFileSizeConsumeQueueExt",
    "maxHashSlotNum",
    "maxIndexNum",
)
_TABLE_NAMES: dict[TableSubject, str] = {
    "topics": "topics.json",
    "groups": "subscriptionGroup.json",
    "offsets": "consumerOffset.json",
}


@dataclass(slots=True)
class TopicEffect:
    """The effects of a start on one topic. ``not_dispatched`` and ``dropped`` are messages that are lost, the other two
    queue entries.
    """

    topic: str
    not_dispatched: int = 0
    dropped: int = 0
    entries_cut: int = 0
    entries_added: int = 0

    @property
    def lost(self) -> int:
        """Messages that no consumer gets any more."""
        return self.not_dispatched + self.dropped

    def record(self) -> dict[str, Any]:
        """The row of ``topics`` in a record."""
        return {
            "topic": self.topic,
            "lost": self.lost,
            "notDispatched": self.not_dispatched,
            "dropped": self.dropped,
            "entriesCut": self.entries_cut,
            "entriesAdded": self.entries_added,
        }


@dataclass(frozen=True, slots=True)
class Compatibility:
    """A release in one storage mode. ``unknown`` are sentences on effects that are unknown."""

    release: Release
    mode: StorageMode
    plan: RecoveryPlan | None = None
    topics: tuple[TopicEffect, ...] = ()
    refusals: tuple[str, ...] = ()
    index_entries_removed: int = 0
    index_entries_lost: int | None = 0
    hidden: tuple[Hidden, ...] = ()
    settings: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())

    @property
    def starts(self) -> bool | None:
        """True if the broker would start; None if that is unknown."""
        if self.refusals:
            return False
        return None if self.plan is None else True

    @property
    def messages_lost(self) -> int:
        """Messages that no consumer gets any more."""
        return sum(topic.lost for topic in self.topics)

    @property
    def entries_cut(self) -> int:
        """Queue entries that the start removes."""
        return sum(topic.entries_cut for topic in self.topics)

    @property
    def loses(self) -> bool:
        """True if the start loses something that is in the store, or the broker does not read it."""
        harms_messages = self.plan is not None and bool(
            self.plan.misnumbered or self.plan.loses_new_messages or self.plan.dispatch_stops_at
        )
        return bool(self.messages_lost or self.entries_cut or self.index_entries_lost or self.hidden or harms_messages)

    @property
    def verdict(self) -> Verdict:
        """``safe``: it starts and loses nothing; ``loses``; ``refused``: it does not start; ``unknown``."""
        if self.starts is False:
            return "refused"
        if self.starts and self.loses:
            return "loses"
        return "unknown" if self.starts is None or self.unknown else "safe"

    @property
    def exit_code(self) -> int:
        """The exit code of a deployment gate."""
        return _EXIT_CODES[self.verdict]

    @property
    def message(self) -> str:
        """The answer in one sentence."""
        params = {"release": rules_of(self.release).title, "mode": self.mode.words}
        if self.verdict == "refused":
            return sentence("{release} with {mode} would not start: {why}", why=self.refusals[0], **params)
        if self.starts is None:
            return sentence("{release} with {mode}: cannot be told: {why}", why=join("; ", self.unknown), **params)
        if self.verdict == "loses":
            return sentence("{release} with {mode} would start, but: {losses}", losses=self._losses(), **params)
        if self.verdict == "unknown":
            return sentence(
                "{release} with {mode} would start; not everything can be told: {why}",
                why=join("; ", self.unknown),
                **params,
            )
        return sentence("{release} with {mode} would start and lose nothing", **params)

    def _losses(self) -> str:
        parts: list[str] = []
        if self.plan is not None and self.plan.empty_log is not None:
            parts.append(self.plan.empty_log.message)
        if self.messages_lost:
            parts.append(plural("{n:,} message would be lost", "{n:,} messages would be lost", n=self.messages_lost))
        if self.entries_cut:
            parts.append(
                plural("{n:,} queue entry would be cut", "{n:,} queue entries would be cut", n=self.entries_cut)
            )
        if self.plan is not None and self.plan.misnumbered:
            parts.append(
                plural(
                    "{n:,} message would get a wrong queue offset",
                    "{n:,} messages would get wrong queue offsets",
                    n=self.plan.misnumbered,
                )
            )
        if self.plan is not None and self.plan.dispatch_stops_at is not None:
            parts.append(
                sentence(
                    "dispatch would stop at the message {place} at {at:,}",
                    place=self.plan.dispatch_stops_at.place,
                    at=self.plan.dispatch_stops_at.offset,
                )
            )
        if self.plan is not None and self.plan.loses_new_messages:
            parts.append(sentence("new messages would be lost: two log files begin at one offset"))
        if self.index_entries_lost:
            parts.append(
                plural(
                    "{n:,} index entry would not be built again",
                    "{n:,} index entries would not be built again",
                    n=self.index_entries_lost,
                )
            )
        if self.hidden:
            parts.append(
                plural(
                    "{n:,} part of the store would not be read",
                    "{n:,} parts of the store would not be read",
                    n=len(self.hidden),
                )
            )
        return join("; ", parts)

    def record(self, *, chosen: bool) -> dict[str, Any]:
        """The ``compatibility`` record of the command line."""
        start = self.plan
        return {
            "type": "compatibility",
            "release": self.release,
            "patch": rules_of(self.release).patch,
            "mode": self.mode.name,
            "chosen": chosen,
            "verdict": self.verdict,
            "exitCode": self.exit_code,
            "message": self.message,
            "starts": self.starts,
            "refusals": list(self.refusals),
            "exit": start.exit if start is not None else None,
            "startFile": start.start_file if start is not None else None,
            "endOffset": start.end_offset if start is not None else None,
            "fileLimit": start.file_limit if start is not None else None,
            "unitsDispatched": start.units if start is not None else None,
            "messagesLost": self.messages_lost if start is not None else None,
            "entriesCut": self.entries_cut if start is not None else None,
            "entriesAdded": sum(topic.entries_added for topic in self.topics) if start is not None else None,
            "wrongNumbers": start.misnumbered if start is not None else None,
            "losesNewMessages": start.loses_new_messages if start is not None else None,
            "dispatchStopsAt": (
                start.dispatch_stops_at.record() if start is not None and start.dispatch_stops_at is not None else None
            ),
            "indexEntriesRemoved": self.index_entries_removed if start is not None else None,
            "indexEntriesLost": self.index_entries_lost if start is not None else None,
            "topics": [topic.record() for topic in self.topics],
            "queues": [
                {
                    "topic": queue.topic,
                    "queueId": queue.queue_id,
                    "minOffset": queue.min_offset,
                    "maxOffset": queue.max_offset,
                }
                for queue in (start.queues if start is not None else ())
            ],
            "hidden": [item.record() for item in self.hidden],
            "settings": [setting.record() for setting in self.settings],
            "notes": list(self.notes),
            "unknown": list(self.unknown),
        }


def own_mode(store: StoreSnapshot) -> StorageMode:
    """Return the storage mode in which the last broker kept the store."""
    is_version_2 = any(part.folder == "config/rdb" for part in store.undecoded)
    if undecoded.has_rocksdb_queues(store):
        return MODES["rocksdb-v2" if is_version_2 else "rocksdb"]
    if is_version_2:
        return MODES["files-v2"]
    return MODES["combined" if _queue_rows_folder(store) is not None else "files"]


def _queue_rows_folder(store: StoreSnapshot) -> str | None:
    parts = (part for part in store.undecoded if "queues" in part.subjects and part.format == "RocksDB")
    return next((part.folder for part in parts), None)


# -- facts of the store


@dataclass(frozen=True, slots=True)
class _Facts:
    contents: StoreContents
    unknown: tuple[str, ...]


class _Reader:
    """Collects the facts; what cannot be read becomes a sentence in :attr:`unknown`."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self.unknown: list[str] = []

    def facts(self) -> _Facts:
        store = self._store
        topics = self._ask(lambda: tables.topics(store)) or {}
        groups = self._ask(lambda: tables.groups(store)) or set()
        queues = self._ask(store.queues.by_topic) or {}
        types = {name: row.attributes.get("message.type", "").upper() for name, row in topics.items()}
        config = self._ask(lambda: derived_config(store)) or MessageStoreConfig()
        samples = self._ask(lambda: sample_tag_entries(store))
        wheel = queues.get(TIMER_TOPIC, {}).get(0)
        index_files = store.index.files(note_undecoded=False)
        contents = StoreContents(
            tables=tuple(self._tables()),
            queue_rows_folder=_queue_rows_folder(store),
            has_file_queues=bool(store.queue_folders.newest_entries()),
            timer_rows=self._count_rows("timer"),
            transaction_rows=self._count_rows("transactions"),
            pop_rows=self._count_rows("pop"),
            has_index_rows=store.undecoded_part("index") is not None,
            has_index_files=bool(index_files),
            has_tag_entries=bool(samples is not None and samples.with_entry),
            wheel_messages=wheel.max_offset - wheel.min_offset if wheel is not None else 0,
            has_pops=any(
                topic.startswith(REVIVE_PREFIX) and any(queue.max_offset for queue in by_id.values())
                for topic, by_id in queues.items()
            ),
            lite_topics=tuple(sorted(name for name, kind in types.items() if kind == "LITE")),
            priority_topics=tuple(sorted(name for name, kind in types.items() if kind == "PRIORITY")),
            groups=tuple(sorted(groups)),
            batch_topics=tuple(
                sorted({topic for topic, by_id in queues.items() if any(q.kind == "batch" for q in by_id.values())})
            ),
            light_queues=sum(len(by_id) for topic, by_id in queues.items() if topic.startswith(LMQ_PREFIX)),
            compacted_queues=len(self._ask(store.compacted_queues) or []),
            mapped_topics=self._count_mapped_topics(),
            has_dledger_log=store.commit_log.dledger is not None,
            sizes=_unusual_sizes(config),
            kinds=(("enableConsumeQueueExt", "true"),) if config.enable_consume_queue_ext else (),
        )
        return _Facts(contents, tuple(dict.fromkeys(self.unknown)))

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (CannotRead, CorruptUnit, StoreError) as error:
            self.unknown.append(str(error))
            return None

    def _count_rows(self, subject: Literal["timer", "transactions", "pop"]) -> int | None:
        rows = self._store.rocksdb_rows
        try:
            if not rows.exist(subject):
                return 0
            return sum(row.state != "delivered" for row in rows.rows(subject))
        except CannotRead as error:
            self.unknown.append(str(error))
            return None

    def _count_mapped_topics(self) -> int:
        table = self._ask(lambda: tables.loaded(self._store, "topicQueueMapping.json"))
        mapped = table.get("topicQueueMappingInfoMap") if table is not None else None
        return len(mapped) if isinstance(mapped, dict) else 0

    def _tables(self) -> Iterator[TableContents]:
        store = self._store
        for subject, name in _TABLE_NAMES.items():
            part = store.undecoded_part(subject)
            folder = part.folder if part is not None else "config"
            form: TableForm = "json" if part is None else _TABLE_FORMS.get(part.folder, "rows")
            counter = 0
            try:
                rows: int | None = len(_COUNTED[subject](store))
                version = (tables.loaded(store, name) or {}).get("dataVersion")
                counter = int(version.get("counter", 0)) if isinstance(version, dict) else 0
            except CannotRead as error:
                rows = None
                self.unknown.append(str(error))
            yield TableContents(subject, form, folder, rows, counter)


_COUNTED: dict[str, Callable[[StoreSnapshot], Any]] = {
    "topics": lambda store: tables.topics(store) or (),
    "groups": lambda store: tables.groups(store) or (),
    "offsets": tables.offsets,
}


def _unusual_sizes(config: MessageStoreConfig) -> dict[str, int]:
    """Sizes in ``config`` that are not RocketMQ's defaults, by their keys."""
    names = {item.metadata["java"]: item.name for item in fields(MessageStoreConfig) if "java" in item.metadata}
    usual = MessageStoreConfig()
    return {
        key: getattr(config, names[key])
        for key in _SIZES
        if key in config.given and getattr(config, names[key]) != getattr(usual, names[key])
    }


# -- starts


@dataclass(frozen=True, slots=True)
class CompatOptions:
    """The releases and modes to answer for, and the settings of the broker's configuration (None without one)."""

    pairs: tuple[tuple[Release, StorageMode], ...]
    configuration: Mapping[str, str] | None = None
    progress: Callable[[int, int], None] | None = None


def all_pairs() -> tuple[tuple[Release, StorageMode], ...]:
    """Every release with each of its modes, the newest release first."""
    return tuple((release, mode) for release in reversed(NAMES) for mode in rules.modes_of(release))


def chosen_pair(store: StoreSnapshot, configuration: Mapping[str, str] | None) -> tuple[Release, StorageMode]:
    """The newest release, in the mode of the configuration, or the store's own without one."""
    return NEWEST, own_mode(store) if configuration is None else rules.mode_in(configuration)


def compare(open_store: OpenStore, options: CompatOptions) -> list[Compatibility]:
    """Answer for each pair of ``options``, in that order.

    Raises :class:`engine.errors.UsageError` for a part of a store. What cannot be read makes an answer unknown; the
    readings have a record of it.
    """
    with open_store() as store:
        facts = _Reader(store).facts()
        is_running = store.lock_state == "held"
    sources = {pair: _source_for(facts.contents, *pair) for pair in options.pairs}
    starts: dict[tuple[Release, QueueSource], _Start] = {}
    for source in dict.fromkeys(sources.values()):
        releases = [release for release, mode in options.pairs if sources[release, mode] == source]
        with open_store() as store:
            store.queue_source = source
            starts.update({(start.release, source): start for start in _starts(store, releases, options.progress)})
    return [
        _answer(facts, starts[release, sources[release, mode]], mode, options.configuration, is_running=is_running)
        for release, mode in options.pairs
    ]


def _source_for(contents: StoreContents, release: Release, mode: StorageMode) -> QueueSource:
    if mode.queues == "files":
        return "files"
    return "rocksdb" if rules.reads_queue_rows(contents, release, mode) else "new rocksdb"


@dataclass(frozen=True, slots=True)
class _Start:
    """The effects of a start of one release on the queues of one source; ``why_unknown`` if no plan can be made."""

    release: Release
    plan: RecoveryPlan | None = None
    why_unknown: str = ""
    losses_known: bool = False
    index_removed: int = 0
    index_lost: int | None = 0


def _starts(
    store: StoreSnapshot, releases: Sequence[Release], progress: Callable[[int, int], None] | None
) -> Iterator[_Start]:
    """Plan each release's start; the losses of all are found in one walk through the log."""
    plans: dict[Release, RecoveryPlan] = {}
    for release in dict.fromkeys(releases):
        if store.queue_source != "files" and not rules_of(release).recovers_rocksdb_queues:
            yield _Start(
                release,
                why_unknown=sentence(
                    "starts of {release} on queues in a RocksDB are not known here", release=rules_of(release).title
                ),
            )
            continue
        if store.queue_source != "files" and store.commit_log.dledger is not None:
            why = sentence("queues in a RocksDB beside a DLedger log are not known here")
            yield _Start(release, why_unknown=why)
            continue
        try:
            plans[release] = plan(store, release, losses=False, look=WalkOptions(progress))
        except (CannotRead, CorruptUnit) as error:
            yield _Start(release, why_unknown=str(error))
    counted = {release: start for release, start in plans.items() if start_losses.can_tell(store, start)}
    try:
        losses = start_losses.undispatched(store, list(counted.values()), WalkOptions(progress))
        for (release, start), loss in zip(counted.items(), losses, strict=True):
            plans[release] = replace(start, undispatched=loss, dropped=start_losses.dropped(store, start))
    except CannotRead as error:
        for release in plans:
            yield _Start(release, why_unknown=str(error))
        return
    for release, start in plans.items():
        removed, lost = _index_entries(store, start)
        yield _Start(release, start, "", release in counted or start.start_file is None, removed, lost)


def _index_entries(store: StoreSnapshot, start: RecoveryPlan) -> tuple[int, int | None]:
    """Number of index entries that a start removes, and of those among them that it does not build again."""
    names = {index.name for index in start.index_deleted}
    if not names:
        return 0, 0
    removed, lost = 0, 0
    spans = [span for span in (start.first_pass, start.second_pass) if span is not None]
    for reader in store.index.files(note_undecoded=False):
        if reader.name not in names:
            continue
        try:
            for offsets in _entry_offsets(reader):
                is_built = np.zeros(len(offsets), bool)
                for span in spans:
                    is_built |= (offsets >= span.start) & (offsets < span.end) & (offsets > span.after_offset)
                removed += len(offsets)
                lost += int((~is_built).sum())
        except (CorruptUnit, CannotRead):
            return sum(index.entries for index in start.index_deleted), None
    return removed, lost


def _entry_offsets(reader: IndexReader) -> Iterator[np.ndarray]:
    """Offsets in the log of all entries of an index file, some at a time."""
    stop = reader.last_entry + 1
    if reader.geometry is None:
        return
    for number in range(1, stop, _ENTRIES_AT_A_TIME):
        size = min(_ENTRIES_AT_A_TIME, stop - number) * ENTRY_SIZE
        data = reader.file.read(reader.geometry.entry_position(number), size)
        usable = len(data) // ENTRY_SIZE * ENTRY_SIZE
        yield np.frombuffer(data[:usable], INDEX_ENTRY)["phy_offset"].astype(np.int64)


def _answer(
    facts: _Facts, start: _Start, mode: StorageMode, configuration: Mapping[str, str] | None, *, is_running: bool
) -> Compatibility:
    release, contents = start.release, facts.contents
    blockers = start.plan.blockers if start.plan is not None else ()
    if rules.writes_light_queues_to_rocksdb(release, mode):
        blockers = tuple(blocker for blocker in blockers if blocker.finding != "CQ17")
    refusals = [blocker.message for blocker in blockers]
    refusals += rules.refusals(contents, release, mode, configuration)
    settings = rules.settings_for(contents, release, mode, configuration)
    if start.plan is not None and start.plan.dispatch_stops_at is not None:
        settings = rules.without_failing_dispatch(settings, release, mode)
    unknown = list(facts.unknown)
    notes = list(start.plan.notes) if start.plan is not None else []
    if mode.name == "combined" and contents.has_dledger_log:
        unknown.append(sentence("queues in a RocksDB beside a DLedger log are not known here"))
    if mode.name == "combined" and rules.prefers_rocksdb(configuration, release):
        unknown.append(
            sentence(
                "what a start does with the queues in the RocksDB, which combineCQPreferCQType lets consumers read"
            )
        )
    if start.plan is None:
        unknown.insert(0, start.why_unknown)
    else:
        if not start.losses_known:
            unknown.append(sentence("which messages are lost"))
        if start.index_lost is None:
            unknown.append(sentence("which index entries are built again"))
        undispatched = start.plan.undispatched
        if mode.name == "combined" and undispatched is not None and undispatched.messages:
            unknown.append(
                sentence("how many messages are lost: for the RocksDB a start may look further back and dispatch more")
            )
        if start.plan.file_limit is not None and undispatched is not None and undispatched.messages:
            settings.insert(0, _recover_max(start.plan))
            notes.append(file_limit_words(start.plan))
    rebuilt = rules.rebuilt_queues(contents, release, mode)
    notes += [rebuilt] if rebuilt is not None else []
    if is_running:
        notes.append(
            sentence("a broker has the store open: this is what a start after a crash would do. Ask after it stopped")
        )
    return Compatibility(
        release,
        mode,
        start.plan,
        _topic_effects(start.plan),
        tuple(dict.fromkeys(refusals)),
        start.index_removed,
        start.index_lost,
        tuple(rules.hidden(contents, release, mode, configuration)),
        tuple(settings),
        tuple(notes),
        tuple(unknown),
    )


def _recover_max(start: RecoveryPlan) -> Setting:
    without = sentence("the start does not look at the older log files: their messages are in no queue")
    return Setting("commitLogRecoverMaxNum", str(start.log_files), without)


def _topic_effects(start: RecoveryPlan | None) -> tuple[TopicEffect, ...]:
    if start is None:
        return ()
    topics: dict[str, TopicEffect] = {}

    def effect(topic: str) -> TopicEffect:
        return topics.setdefault(topic, TopicEffect(topic))

    for queue in start.queues:
        effect(queue.topic).entries_cut += queue.entries_dropped
        effect(queue.topic).entries_added += queue.entries_added
    for loss in start.undispatched.queues if start.undispatched is not None else ():
        effect(loss.topic).not_dispatched += loss.messages
    for loss in start.dropped.queues if start.dropped is not None else ():
        effect(loss.topic).dropped += loss.messages
    changed = (topic for topic in topics.values() if topic.lost or topic.entries_cut or topic.entries_added)
    return tuple(sorted(changed, key=lambda topic: (-topic.lost, topic.topic)))

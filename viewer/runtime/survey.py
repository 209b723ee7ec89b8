"""Facts for the store card and the tree: topics, queues, files, sizes, times, as one frozen value. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from engine.codec.message import Unit
from engine.errors import CannotRead, StoreError
from viewer.look.assets import tr, tr_plural
from viewer.look.broken import bytes_missing
from viewer.look.engine_words import engine_words
from viewer.look.formats import store_name

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.store_queues import AnyQueue

T = TypeVar("T")
MESSAGES_KNOWN = 4096
"""Maximum number of queues whose newest unit is read for its size: more would take too long for a card."""


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue by its bounds, offsets in messages; ``note`` if it could not be read."""

    queue_id: int
    min_offset: int
    max_offset: int
    note: str = ""
    unread: bool = False
    """True if its files cannot be read. If False, ``note`` describes an error in what was read."""
    is_moved: bool = False
    """Whether only tiered storage has it; the bounds are those there."""

    @property
    def count(self) -> int:
        return max(self.max_offset - max(self.min_offset, 0), 0)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic: its queues, and its bytes in the log estimated from the newest unit of each queue."""

    name: str
    queues: tuple[QueueFacts, ...]
    bytes: int

    @property
    def count(self) -> int:
        return sum(queue.count for queue in self.queues)

    @property
    def is_moved(self) -> bool:
        """True if only tiered storage has it."""
        return bool(self.queues) and all(queue.is_moved for queue in self.queues)

    @property
    def known(self) -> bool:
        """True if the bounds of all its queues could be read."""
        return not any(queue.note for queue in self.queues)


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """An index file with its number of used entries; −1 if its header cannot be read."""

    name: str
    count: int
    begin: int = 0
    end: int = 0
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """Overview of a store. Sizes in bytes, times in ms since the epoch, None if unknown."""

    name: str
    path: str
    kind: str
    log_files: int
    log_bytes: int
    min_offset: int
    max_offset: int
    first_time: int | None
    last_time: int | None
    topics: tuple[TopicFacts, ...]
    index: tuple[IndexFacts, ...]
    tables: tuple[str, ...]
    groups: int
    checkpoint: int | None
    has_checkpoint: bool
    abort: bool
    lock: str
    notes: tuple[str, ...]
    format: str
    flavour: tuple[str, ...] = ()
    """Special features of the store, in the words of the ``info`` command."""
    all_readable: bool = True
    """True if everything that was looked at could be read."""
    missing: int = 0
    """Bytes of the log that no file contains although it continues behind them; not part of ``log_bytes``."""
    evidence: str = ""
    """Evidence for the release in ``format``; empty without any."""
    row_subjects: tuple[str, ...] = ()
    """Tables that the broker keeps as rows of a RocksDB: timer, transactions, pop, index."""
    has_priorities: bool = False
    """Whether a topic is of type PRIORITY."""
    log_gone: bool = False
    """True if the log is empty although queues, index or positions refer to it."""

    @property
    def written_by(self) -> str:
        """The release that probably wrote the store, and why; empty if unknown."""
        if not self.evidence:
            return ""
        return tr("{release} probably wrote this store: {why}", release=self.format, why=engine_words(self.evidence))

    @property
    def kinds(self) -> str:
        """The format and special features, in words."""
        from engine.inspection.info import FLAVOURS

        parts = [self.format] + [tr(FLAVOURS[flavour_id]) for flavour_id in self.flavour if FLAVOURS.get(flavour_id)]
        return " · ".join(flavour_id for flavour_id in parts if flavour_id)

    @property
    def messages(self) -> int:
        """Number of messages in the store's own queues."""
        return sum(queue.count for topic in self.topics for queue in topic.queues if not queue.is_moved)

    @property
    def unqueued(self) -> bool:
        """True if topics are known only from the units of the log, once they are counted, and not from queues."""
        return self.kind != "store" or all(topic.is_moved for topic in self.topics)

    @property
    def topics_by_bytes(self) -> list[str]:
        return [topic.name for topic in sorted(self.topics, key=lambda t: (-t.bytes, t.name))]

    @property
    def state(self) -> tuple[str, str]:
        """Mark and English text for the card: how the store was closed."""
        if not self.all_readable:
            return "unread", "not all readable"
        if self.log_gone:
            return "error", "the log is gone"
        if self.kind != "store":
            return "note", {"commitlog": "log only", "file": "one file"}.get(self.kind, "a part")
        if self.lock == "held":
            return "live", "broker is running"
        return ("warn", "not closed") if self.abort else ("ok", "closed")


def card_status(survey: Survey, counts: Mapping[str, int], *, complete: bool, lab: bool = False) -> tuple[str, str]:
    """Return mark and text for the card: the worst of how the store was closed and of its findings (``counts`` by
    severity).

    A store that is not fully checked is not called healthy. ``lab``: our own engine has it open.
    """
    mark, word = survey.state
    state_words = tr("open in the lab") if lab and mark != "unread" else tr(word)
    errors, warnings = counts.get("error", 0), counts.get("warn", 0)
    if mark == "unread":
        return mark, state_words
    if errors and not survey.log_gone:
        count_words = tr_plural("{n:,} error", "{n:,} errors", n=errors)
        return "error", f"{state_words} · {count_words}"
    if survey.missing:
        return "error", f"{state_words} · {tr('files missing')}"
    if lab:
        return "live", state_words
    if warnings and mark != "error":
        count_words = tr_plural("{n:,} warning", "{n:,} warnings", n=warnings)
        return "warn", state_words if mark == "warn" else f"{state_words} · {count_words}"
    return ("chat", state_words) if mark == "ok" and not complete else (mark, state_words)


def survey(store: StoreSnapshot) -> Survey:
    """Survey heads and tails; unreadable parts are left out and named in ``notes``."""
    notes = list(store.notes)
    log = store.log
    min_offset, max_offset = (
        max(_or_default(lambda: log.min_offset, 0), 0),
        max(_or_default(lambda: log.max_offset, 0), 0),
    )
    first_unit = _or_default(lambda: _first_unit(store), None)
    none: tuple[TopicFacts, ...] = ()
    log_gone = _or_default(lambda: max_offset <= min_offset and _is_gone(store), False)
    topics = _or_default(lambda: tuple(_topics(store, log_gone=log_gone)), none)
    checkpoint = _checkpoint(store, notes)
    release, evidence = _or_default(lambda: _format(store, first_unit), ("", ""))
    missing = bytes_missing(
        (file.start_offset, file.end_offset) for file in log.files if file.start_offset < max_offset
    )
    return Survey(
        name=store_name(str(store.path)),
        path=str(store.path),
        kind=store.kind,
        log_files=len(log.files),
        log_bytes=max(max_offset - min_offset - missing, 0),
        min_offset=min_offset,
        max_offset=max_offset,
        first_time=first_unit.store_timestamp if first_unit else None,
        last_time=_last_time(store),
        topics=topics,
        index=_or_default(lambda: tuple(_index(store)), ()),
        tables=_or_default(lambda: tuple(_tables(store)), ()),
        groups=_groups(store),
        checkpoint=checkpoint,
        has_checkpoint=_or_default(
            lambda: store.paths is not None and store.reading.exists(store.paths.checkpoint), True
        ),
        abort=_or_default(lambda: store.abort, False),
        lock=store.lock_state,
        notes=tuple(notes),
        format=release,
        evidence=evidence,
        flavour=_flavour(store),
        row_subjects=_row_subjects(store),
        log_gone=log_gone,
        has_priorities=bool(store.priority_topics),
        missing=missing,
        all_readable=not (store.unread or store.reading.undecoded),
    )


def _or_default(ask: Callable[[], T], unknown: T) -> T:
    """Return what ``ask`` returns, or ``unknown`` if it needs unreadable bytes; the reader has noted these."""
    try:
        return ask()
    except CannotRead:
        return unknown


def _is_gone(store: StoreSnapshot) -> bool:
    from engine.inspection.recovery import without_log

    return without_log(store) is not None


def _first_unit(store: StoreSnapshot) -> Unit | None:
    for item in store.log.items(store.log.min_offset, 1, crc=False) if store.log.files else []:
        if isinstance(item, Unit):
            return item
    return None


def _last_time(store: StoreSnapshot) -> int | None:
    """Return the store time of the last unit."""
    try:
        for item in reversed(store.log.items_before(store.log.max_offset, 2, crc=False)):
            if isinstance(item, Unit):
                return item.store_timestamp
    except StoreError:
        return None
    return None


def _topics(store: StoreSnapshot, *, log_gone: bool) -> Iterator[TopicFacts]:
    queues_asked = 0
    own_queues = store.queues.by_topic()
    for topic, queues in store.queues.by_topic_with_moved().items():
        facts, size = [], 0
        for number, queue in queues.items():
            if number not in own_queues.get(topic, {}):
                facts.append(_moved_queue(store, topic, number))
                continue
            queue_facts = _queue(number, queue, log_gone=log_gone)
            facts.append(queue_facts)
            newest = _or_default(queue.newest, None) if queues_asked < MESSAGES_KNOWN and queue_facts.count else None
            queues_asked += 1
            size += queue_facts.count * (newest[1] if newest else 200)
        yield TopicFacts(topic, tuple(facts), size)


def _queue(number: int, queue: AnyQueue, *, log_gone: bool) -> QueueFacts:
    """Return the queue's bounds. If the log is gone, no entry counts for a broker, and the row shows what the files
    hold.
    """
    try:
        if log_gone and queue.kind == "simple":
            return QueueFacts(number, queue.first_number, queue.raw_end // queue.unit_size)
        return QueueFacts(number, queue.min_offset, queue.max_offset)
    except StoreError as error:
        return QueueFacts(number, 0, 0, str(error), isinstance(error, CannotRead))


def _moved_queue(store: StoreSnapshot, topic: str, number: int) -> QueueFacts:
    """Return the bounds of a queue that only tiered storage has."""
    moved = store.tiered.queue(topic, number) if store.tiered is not None else None
    try:
        bounds = (0, 0) if moved is None else (moved.min_offset, moved.max_offset)
        return QueueFacts(number, *bounds, is_moved=True)
    except StoreError as error:
        return QueueFacts(number, 0, 0, str(error), isinstance(error, CannotRead), is_moved=True)


def _index(store: StoreSnapshot) -> Iterator[IndexFacts]:
    for reader in store.index_files():
        try:
            head = reader.header
            yield IndexFacts(reader.name, head.entries, head.begin_timestamp, head.end_timestamp)
        except StoreError as error:
            yield IndexFacts(reader.name, -1, unread=isinstance(error, CannotRead))


def _tables(store: StoreSnapshot) -> list[str]:
    """Return the file names under ``config/`` without backups."""
    if store.paths is None:
        return []
    names = sorted(entry.name for entry in store.reading.entries(store.paths.config))
    return [name for name in names if not name.endswith(".bak") or name.removesuffix(".bak") not in names]


def _row_subjects(store: StoreSnapshot) -> tuple[str, ...]:
    from engine.inspection.rocksdb_rows import FAMILIES

    return tuple(subject for subject in FAMILIES if store.undecoded_part(subject) is not None)


def _groups(store: StoreSnapshot) -> int:
    """Return the number of groups with an offset in a table that a broker would load (or its .bak)."""
    from engine.inspection.tables import offsets

    try:
        return len({row.group for row in offsets(store)})
    except StoreError:
        return 0


def _checkpoint(store: StoreSnapshot, notes: list[str]) -> int | None:
    try:
        page = store.checkpoint()
    except StoreError as error:
        notes.append(str(error))
        return None
    return page.physic_msg_timestamp if page is not None else None


def _flavour(store: StoreSnapshot) -> tuple[str, ...]:
    from engine.inspection.info import flavour

    try:
        return tuple(flavour(store))
    except StoreError:
        return ()


def _format(store: StoreSnapshot, first_unit: Unit | None) -> tuple[str, str]:
    """Return the release that probably wrote the store, and the evidence: files contain no version number."""
    from engine.inspection.written_release import guess

    written = guess(store)
    if written is not None:
        return f"RocketMQ {written.release}", written.evidence
    return ("RocketMQ 5.1+" if first_unit is not None and first_unit.version == 2 else ""), ""

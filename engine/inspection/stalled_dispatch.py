"""Finds the message at which the dispatch of a broker stopped (CQ17; docs/formats/consume-queue.md#light-queues).

A message may name further queues. Two names make dispatch fail, and it tries the same message again without end:

- The name of a lite topic's light queue that is not ``%LMQ%$<topic>$<lite topic>``. A broker of 5.5 fails when it
  notifies clients, behind the entries. Messages that a start dispatches are not notified.
- A name without ``%LMQ%`` before a light queue. A broker of 5.3 or later stores no queue offset for it, and fails to
  read one when it writes the entry. A start fails there, too; with queues in a RocksDB it does not fail, but dispatch
  stops again. There the units of a group, up to 256, are written together: none of them gets a row.

Java: ``ReputMessageService``, ``LiteSubscriptionRegistryImpl.getAllSubscriber``,
``ConsumeQueue.multiDispatchLmqQueue``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.codec import properties as props
from engine.codec.java import split
from engine.codec.lite_topics import LITE_PREFIX, lite_queue_name, split_lite_queue
from engine.codec.message import Unit
from engine.inspection import undecoded
from engine.inspection.written_release import release_of
from engine.releases import rules_of
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, Finding
from engine.sentences import join, sentence
from engine.system_names import RETRY_PREFIX, SCHEDULE_TOPIC, SYSTEM_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.inspection.snapshot import StoreSnapshot

_FOLLOWERS = frozenset({"CQ10", "CQ08", "IX05"})
"""Rules about what messages lack that were not dispatched."""
_MAX_GROUP_UNITS = 256
"""Units that dispatch to a RocksDB writes together at most (``RocksGroupCommitService``)."""


@dataclass(frozen=True, slots=True)
class StalledDispatch:
    """The message at which dispatch stopped, the name of the queue for it, and the first message behind
    it, if there is one.

    ``is_numbered``: the store has an offset of that queue; without one, a start fails. ``in_rocksdb``: the queues are
    in a RocksDB; the start does not fail, and dispatch stops again.
    """

    unit: Unit
    queue_name: str
    is_numbered: bool
    first_behind: Unit | None
    in_rocksdb: bool = False

    @property
    def words(self) -> str:
        """Words for where and why dispatch stopped, and for the messages behind."""
        text = sentence(
            "dispatch stopped at the message {place} at {offset:,}, because of the name of its light queue, {name}"
            if self.is_numbered
            else "dispatch stopped at the message {place} at {offset:,}, because it names {name}, which is no light "
            "queue, before a light queue",
            place=f"{self.unit.topic}/{self.unit.queue_id}/{self.unit.queue_offset}",
            offset=self.unit.offset,
            name=self.queue_name or '""',
        )
        if self.first_behind is None:
            return text
        undispatched_words = sentence("all messages from {first:,} on are in no queue", first=self.first_behind.offset)
        return join("; ", [text, undispatched_words])


def stalled_dispatch(store: StoreSnapshot) -> StalledDispatch | None:
    """Return the message at which dispatch stopped; None if it goes on, or did when the broker ended.

    The newest entry of all queues must be that of such a message, and messages must follow it; or the next start fails
    at it. Raises :class:`CannotRead`.
    """
    if store.paths is None:
        return None
    if store.queues.rocksdb is not None:  # notifications for these may fail
        return _stalled_group(store, store.queues.rocksdb.written_offset())
    newest = max(store.queue_folders.newest_entries(), default=None)
    unit = store.log.seen_at(newest[0], crc=False) if newest is not None else None
    if not isinstance(unit, Unit) or props.INNER_MULTI_QUEUE_OFFSET not in unit.properties:
        return None
    release = rules_of(release_of(store))
    name = wrong_light_queue(unit)
    is_numbered = True
    if not name or not (_stored_by_lite_release(store, unit) or release.lite_topics):
        unnumbered = unnumbered_queue(unit) if release.light_queues_by == "enableLmq" else None
        if unnumbered is None:
            return None
        name, is_numbered = unnumbered, False
    first_behind = undecoded.first_behind_dispatch(store, unit.end)
    is_reported = first_behind is not None or (store.abort and not is_numbered)
    return StalledDispatch(unit, name, is_numbered, first_behind) if is_reported else None


def _stalled_group(store: StoreSnapshot, dispatched: int) -> StalledDispatch | None:
    """Return the message at which dispatch to a RocksDB stopped: it is among the first units behind its end.

    A start after a stop dispatches the units behind the one at the end.
    """
    units = (item for item in store.log.walk(dispatched, None, crc=False, resync=False) if isinstance(item, Unit))
    for unit in itertools.islice(units, _MAX_GROUP_UNITS):
        name = unnumbered_queue(unit)
        if name is not None and (store.abort or unit.offset > dispatched):
            first_behind = undecoded.first_behind_dispatch(store, unit.end)
            return StalledDispatch(unit, name, is_numbered=False, first_behind=first_behind, in_rocksdb=True)
    return None


def _stored_by_lite_release(store: StoreSnapshot, unit: Unit) -> bool:
    """Return True if the message shows that a broker with lite topics stored it: older ones do not name the queue."""
    name = lite_queue_name(unit.topic, unit.properties.get(props.LITE_TOPIC, ""))
    return store.release is None and unit.properties.get(props.INNER_MULTI_DISPATCH) == name


def _further_queues(unit: Unit) -> list[tuple[str, str]]:
    """Names of a message's further queues with the texts of its offsets there; none if dispatch passes over them."""
    offsets = unit.properties.get(props.INNER_MULTI_QUEUE_OFFSET, "")
    names, texts = split(unit.properties.get(props.INNER_MULTI_DISPATCH, ""), ","), split(offsets, ",")
    is_used = offsets.strip() and len(names) == len(texts) and not unit.topic.startswith(RETRY_PREFIX)
    return list(zip(names, texts, strict=True)) if is_used else []


def wrong_light_queue(unit: Unit) -> str:
    """Return the first light queue of a message whose clients a broker of 5.5 fails to notify; "" if there is none."""
    queues = _further_queues(unit)
    if not all(text for _, text in queues):
        return ""
    return next((name for name, _ in queues if name.startswith(LITE_PREFIX) and split_lite_queue(name) is None), "")


def unnumbered_queue(unit: Unit) -> str | None:
    """Return the first further queue of a message without an offset, which a broker of 5.3 or later fails to read."""
    if unit.topic.startswith(SYSTEM_PREFIX) or unit.topic == SCHEDULE_TOPIC:
        return None
    return next((name for name, text in _further_queues(unit) if not text), None)


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CQ17. Raises :class:`CannotRead`."""
    stalled = stalled_dispatch(store)
    if stalled is None:
        return
    file = store.log.sequence.find(stalled.unit.offset)
    evidence: dict[str, Any] = {
        "queue": f"{stalled.unit.topic}/{stalled.unit.queue_id}",
        "queueOffset": stalled.unit.queue_offset,
        "furtherQueue": stalled.queue_name,
        HAPPENED: stalled.words,
    }
    if stalled.first_behind is not None:
        evidence["firstUnit"] = stalled.first_behind.offset
    is_running = store.lock_state == "held"
    kinds = ("", "stopped") if stalled.is_numbered else ("unnumbered", "unnumberedStopped")
    if stalled.in_rocksdb:
        kinds = ("rocksdb", "rocksdbStopped")
    path = file.path if file is not None else None
    yield rules.CQ17.finding(stalled.words, path, stalled.unit.offset, evidence, kind=kinds[0 if is_running else 1])


def follow(findings_so_far: Iterable[Finding], stalls: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings_so_far``; what the messages behind a stalled dispatch lack becomes a consequence of that, unless
    no start dispatches them.
    """
    is_stalled = any(True for _ in stalls)
    for finding in findings_so_far:
        follows = is_stalled and finding.id in _FOLLOWERS and finding.severity != "error" and finding.caused_by is None
        yield finding.follows("CQ17") if follows else finding

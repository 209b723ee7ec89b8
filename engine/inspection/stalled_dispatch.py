"""Finds the message at which the dispatch of RocketMQ 5.5 stopped (CQ17; docs/protocol/broker.md#lite).

Behind the entries of a message, dispatch notifies the clients of each light queue of a lite topic. That fails if the
queue's name is not ``%LMQ%$<topic>$<lite topic>``, and dispatch tries the same message again without end. Messages that
a start dispatches are not notified. Java: ``ReputMessageService``, ``LiteSubscriptionRegistryImpl.getAllSubscriber``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.codec import properties as props
from engine.codec.java import split
from engine.codec.lite_topics import LITE_PREFIX, lite_queue_name, split_lite_queue
from engine.codec.message import Unit
from engine.inspection import undecoded
from engine.inspection.tables import release_of
from engine.releases import of
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, Finding
from engine.sentences import sentence
from engine.system_names import RETRY_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.inspection.snapshot import StoreSnapshot

_FOLLOWERS = frozenset({"CQ10", "CQ08", "IX05"})
"""Rules about what messages lack that were not dispatched."""


@dataclass(frozen=True, slots=True)
class StalledDispatch:
    """The message at which dispatch stopped, the name of its light queue, and the first message behind it."""

    unit: Unit
    light_queue: str
    first_behind: Unit

    @property
    def place(self) -> str:
        """The message as topic/queue/offset."""
        return f"{self.unit.topic}/{self.unit.queue_id}/{self.unit.queue_offset}"

    @property
    def words(self) -> str:
        """Where dispatch stopped and why."""
        return sentence(
            "dispatch stopped at the message {place} at {offset:,}, because of the name of its light queue, {name}; "
            "all messages from {first:,} on are in no queue",
            place=self.place,
            offset=self.unit.offset,
            name=self.light_queue,
            first=self.first_behind.offset,
        )


def stalled_dispatch(store: StoreSnapshot) -> StalledDispatch | None:
    """Return the message at which dispatch stopped; None if it goes on, or did when the broker ended.

    The newest entry of all queues must be that of such a message, and messages must follow it. Raises
    :class:`CannotRead`.
    """
    if store.paths is None or store.rocksdb_queues is not None:  # notifications for these may fail
        return None
    newest = max(store.newest_file_entries(), default=None)
    unit = store.log.seen_at(newest[0], crc=False) if newest is not None else None
    if not isinstance(unit, Unit):
        return None
    name = wrong_light_queue(unit)
    if not name or not (_stored_by_lite_release(store, unit) or of(release_of(store)).lite_topics):
        return None
    first_behind = undecoded.first_behind_dispatch(store, unit.end)
    return StalledDispatch(unit, name, first_behind) if first_behind is not None else None


def _stored_by_lite_release(store: StoreSnapshot, unit: Unit) -> bool:
    """Return True if the message shows that a broker with lite topics stored it: older ones do not name the queue."""
    name = lite_queue_name(unit.topic, unit.properties.get(props.LITE_TOPIC, ""))
    return store.release is None and unit.properties.get(props.INNER_MULTI_DISPATCH) == name


def wrong_light_queue(unit: Unit) -> str:
    """Return the first light queue of a message whose clients a broker of 5.5 fails to notify; "" if there is none."""
    if unit.topic.startswith(RETRY_PREFIX):
        return ""
    names = split(unit.properties.get(props.INNER_MULTI_DISPATCH, ""), ",")
    offsets = unit.properties.get(props.INNER_MULTI_QUEUE_OFFSET, "")
    if not offsets.strip() or len(names) != len(split(offsets, ",")):
        return ""
    return next((name for name in names if name.startswith(LITE_PREFIX) and split_lite_queue(name) is None), "")


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CQ17. Raises :class:`CannotRead`."""
    stalled = stalled_dispatch(store)
    if stalled is None:
        return
    file = store.log.sequence.find(stalled.unit.offset)
    evidence: dict[str, Any] = {
        "queue": f"{stalled.unit.topic}/{stalled.unit.queue_id}",
        "queueOffset": stalled.unit.queue_offset,
        "lightQueue": stalled.light_queue,
        "firstUnit": stalled.first_behind.offset,
        HAPPENED: stalled.words,
    }
    kind = "" if store.lock_state == "held" else "stopped"
    path = file.path if file is not None else None
    yield rules.CQ17.finding(stalled.words, path, stalled.unit.offset, evidence, kind=kind)


def follow(findings_so_far: Iterable[Finding], stalls: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings_so_far``; what the messages behind a stalled dispatch lack becomes a consequence of that, unless
    no start dispatches them.
    """
    is_stalled = any(True for _ in stalls)
    for finding in findings_so_far:
        follows = is_stalled and finding.id in _FOLLOWERS and finding.severity != "error" and finding.caused_by is None
        yield finding.follows("CQ17") if follows else finding

"""The state of the queue view: the chosen queues, what was read from them, and the selected entry. No Qt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.system_names import LMQ_PREFIX
from viewer.look.assets import tr, tr_plural
from viewer.look.topic_kinds import is_system_topic
from viewer.queues.facts import LoadedQueues, QueueFacts, QueueKey
from viewer.queues.rows import PROBLEMS, EntryRow, QueueSource
from viewer.queues.verdict_work import Verdicts
from viewer.runtime.places import Place

if TYPE_CHECKING:
    from viewer.runtime.survey import TopicFacts

MAX_QUEUES = 4_096
_BEHIND_ALL = 1 << 62


@dataclass
class QueuesModel:
    """Several queues of several topics may be chosen. ``current`` is the queue of the chosen row."""

    queues: list[QueueKey] = field(default_factory=list)
    """The chosen queues, whether or not the store has them."""
    facts: dict[QueueKey, QueueFacts] = field(default_factory=dict)
    source: QueueSource | None = None
    current: QueueKey | None = None
    entry: EntryRow | None = None
    """The chosen entry. None if the chosen row is no entry."""
    generation: int = 0
    """Grows with each new choice. An answer of an earlier generation is dropped."""

    # ---- the choice --------------------------------------------------------------------------------------------------

    def forget_store(self) -> None:
        """Forget the choice too, for another store."""
        self.generation += 1
        self.queues = []
        self.forget()

    def forget(self) -> None:
        """Forget the entries that were read."""
        self.facts, self.source, self.current, self.entry = {}, None, None, None

    def choose(self, queues: Sequence[QueueKey], *, again: bool = False) -> int:
        """Choose queues and return the generation of their reading. ``again``: read the same queues anew."""
        if not again:
            self.generation += 1
        self.queues = list(queues[:MAX_QUEUES])
        return self.generation

    @property
    def topics(self) -> list[str]:
        """Topics of the chosen queues."""
        return list(dict.fromkeys(topic for topic, _ in self.queues))

    def queue_items(self, topics: Sequence[TopicFacts]) -> list[tuple[QueueKey, str]]:
        """Return the queues of the chosen topics, each with the words of the list."""
        chosen = self.topics
        return [
            (
                (topic.name, queue.queue_id),
                f"{queue.queue_id}" if len(chosen) == 1 else f"{topic.name}/{queue.queue_id}",
            )
            for topic in topics
            if topic.name in chosen
            for queue in topic.queues
        ]

    # ---- what was read -----------------------------------------------------------------------------------------------

    def take(self, loaded: LoadedQueues, place: Place | None) -> QueueKey | None:
        """Take a look at the chosen queues. Return the queue to show: that of ``place``, or the first that exists."""
        self.forget()
        self.facts, self.source = loaded.facts, loaded.source
        chosen_key = (place.topic, place.queue_id) if place is not None else None
        return next((key for key in self.facts if key == chosen_key), next(iter(self.facts), None))

    def holds(self, loaded: LoadedQueues) -> bool:
        """Return True if ``loaded`` is a look at the queues that are shown already."""
        return self.source is not None and list(loaded.facts) == list(self.facts)

    def grow(self, loaded: LoadedQueues) -> list[QueueKey]:
        """Take a newer look at the same queues. Return those that have more entries."""
        assert self.source is not None
        longer = [key for key, facts in loaded.facts.items() if facts.raw_end != self.facts[key].raw_end]
        self.facts = loaded.facts
        self.source.adopt(loaded.source)
        return longer

    def missing_words(self) -> str:
        """Return the sentence for chosen queues that the store does not have."""
        missing = ", ".join(f"{topic}/{queue}" for topic, queue in self.queues[:3])
        return tr("This store has no queue {queue}.", queue=missing)

    def head_note(self) -> str:
        """Return what the head of the table says of the current queue."""
        if self.current is None:
            return ""
        facts = self.facts[self.current]
        size = "46" if facts.kind == "batch" else "28" if facts.in_rocksdb else "20"
        note = tr("{size} bytes each", size=size)
        if facts.groups:
            count = len(facts.groups)
            drawn = tr("offset of 1 group drawn where it reads next")
            many = tr_plural(
                "offsets of {n:,} group drawn where they read next",
                "offsets of {n:,} groups drawn where they read next",
                n=count,
            )
            note += " · " + (drawn if count == 1 else many)
        return note

    def goal(self, key: QueueKey, offset: int | None) -> int:
        """Return the queue offset to go to: ``offset``, or the queue's minimum."""
        return self.facts[key].minimum if offset is None else offset

    def outside_words(self, key: QueueKey, offset: int | None) -> str:
        """Return the sentence for an offset that the queue has no entry of. Empty if it has one."""
        facts = self.facts[key]
        if offset is None or facts.first <= offset < max(facts.raw_end, facts.maximum):
            return ""
        numbers = {"queue": f"{key[0]}/{key[1]}", "n": offset, "low": facts.minimum, "high": facts.maximum}
        return tr("{queue} has no entry {n:,}: it holds {low:,} to {high:,}.", **numbers)

    def next_problem(self, counts: Verdicts, step: int) -> int | None:
        """Return the offset of the next (−1: previous) entry that does not agree with the log, as far as is known."""
        start = self.entry.queue_offset if self.entry is not None else (-1 if step > 0 else _BEHIND_ALL)
        offsets = [offset for offset, _ in counts.problems]
        ahead = [offset for offset in offsets if (offset > start if step > 0 else offset < start)]
        return None if not ahead else ahead[0] if step > 0 else ahead[-1]


def busiest_queue(topic: TopicFacts) -> QueueKey:
    """Return the queue of a topic with the most entries."""
    best = max(topic.queues, key=lambda queue: (queue.count, -queue.queue_id), default=None)
    return topic.name, best.queue_id if best is not None else 0


def first_queue(topics: Sequence[TopicFacts]) -> QueueKey:
    """Return the queue that is shown first: the busiest one, of a topic of the user's if there is any."""
    return busiest_queue(max(topics, key=lambda topic: (not is_system_topic(topic.name), topic.count)))


def queue_of_place(place: Place, topics: Sequence[TopicFacts]) -> QueueKey:
    """Return the queue that a place names. A place without a queue means the busiest queue of its topic."""
    topic = next((candidate for candidate in topics if candidate.name == place.topic), None)
    if topic is None or not topic.queues or place.queue_id is not None:
        return place.topic, place.queue_id or 0
    return busiest_queue(topic)


def queues_of_topics(names: Collection[str], topics: Sequence[TopicFacts]) -> list[QueueKey]:
    """Return the queues to show for chosen topics: the busiest one of a single topic, all of several topics."""
    chosen = [topic for topic in topics if topic.name in names and topic.queues]
    if len(chosen) == 1:
        return [busiest_queue(chosen[0])]
    return [(topic.name, queue.queue_id) for topic in chosen for queue in topic.queues]


def times_term(topic: str, queue_id: int) -> str | None:
    """Return the filter of a queue's messages in the log; None for a light queue, whose messages have other topics."""
    from engine.query import condition

    if topic.startswith(LMQ_PREFIX):
        return None
    return f"{condition('topic', topic)} and {condition('queueId', queue_id)}"


def verdict_sentence(key: QueueKey | None, counts: Verdicts | None) -> str:
    """Return the verdicts of a queue for the status bar."""
    if key is None or counts is None:
        return ""
    looked = sum(counts.counts.values())
    bad = sum(n for kind, n in counts.counts.items() if kind in PROBLEMS)
    unread = counts.counts["unread"]
    moved = counts.counts["moved"]
    compared = looked - moved - unread
    agree = []
    if bad:
        agree.append(tr_plural("{n:,} does not agree with the log", "{n:,} do not agree with the log", n=bad))
    elif moved and compared:
        agree.append(
            tr_plural("{n:,} compared with the log, it agrees", "{n:,} compared with the log, all agree", n=compared)
        )
    elif not (moved or unread):
        agree.append(tr("all agree with the log"))
    if moved:
        agree.append(tr_plural("{n:,} only in tiered storage", "{n:,} only in tiered storage", n=moved))
    if unread:
        agree.append(
            tr_plural(
                "{n:,} points into a file that cannot be read", "{n:,} point into files that cannot be read", n=unread
            )
        )
    edge = (
        tr("complete")
        if counts.complete
        else tr_plural("first {n:,} entry looked at", "first {n:,} entries looked at", n=looked)
    )
    entries = tr_plural("{n:,} entry", "{n:,} entries", n=looked + counts.total - counts.reached)
    return " · ".join((f"{key[0]}/{key[1]}", entries, *agree, edge))

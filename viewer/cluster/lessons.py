"""Lessons: scripted experiments with the user's own clients, each showing one harm or habit of RocketMQ. No Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from engine.client.consuming import BROADCASTING
from engine.client.events import Committed, Rebalanced, Sent
from engine.system_names import DLQ_PREFIX
from viewer.cluster.clients_process import DEFAULT_OPTIONS, Options
from viewer.cluster.lesson_figures import GIVEN_UP, Record
from viewer.look.assets import words

Verb = Literal[
    "broker", "producer", "consumer", "again", "running", "shared", "handed", "stop", "kill", "wait", "until"
]
ACTION_TIMEOUT_MS = 90_000
"""Ms that an action waits before the run fails."""
TOPIC = "Lesson"
RETRIES = "messageDelayLevel=1s 1s 1s 2s 3s"
"""Levels 3 and 4 are the delays of a retried message: 10 s and 30 s by default."""
CHECKS = "transactionTimeOut=500\ntransactionCheckInterval=500\ntransactionCheckMax=3"
SLOW_FLUSH_S = 0.6
"""Seconds of a flush on the slow disk: from 0.55 s on, a producer of 5.3 avoids a broker for two seconds."""
SEND_COUNT, BROADCAST_COUNT, LATER_COUNT, RETRY_COUNT, HALF_COUNT = 16, 60, 40, 20, 8
"""Numbers of messages: of each producer, before and while a client is away, of the retry lesson, of half messages."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action or a condition to wait for.

    ``amount`` is a producer's rate, a consumer's ms a message, clients that share all queues, messages delivered,
    the number of a consumer (from 0), or seconds. ``name`` is a suffix of the group (for a broker: a prefix),
    ``topic`` another topic than the lesson's; ``{group}`` in it is replaced. ``condition`` is the condition of
    "until".
    """

    verb: Verb
    amount: float = 0
    options: Options = DEFAULT_OPTIONS
    name: str = ""
    topic: str = ""
    condition: Callable[[Record], bool] | None = None


def _sent(count: int) -> Action:
    """Wait until so many messages are stored."""
    return Action("until", condition=lambda record: len(record.of(Sent)) >= count)


def _each_got(count: int, consumers: int) -> Action:
    """Wait until each of so many consumers has received so many messages."""

    def is_met(record: Record) -> bool:
        received = Counter(delivery.client_id for delivery in record.deliveries)
        return len(received) == consumers and min(received.values()) >= count

    return Action("until", condition=is_met)


def _one_got(count: int) -> Action:
    """Wait until one consumer has received so many messages."""
    return Action(
        "until",
        condition=lambda record: max(Counter(delivery.client_id for delivery in record.deliveries).values()) >= count,
    )


def _not_committed(consumer_index: int, count: int) -> Action:
    """Wait until a consumer (counted from 0) has received so many messages beyond its last commit."""

    def is_met(record: Record) -> bool:
        client_id = [event for event, options in record.clients.items() if options.stalls][consumer_index]
        committed = {event.queue: event.offset for event in record.of(Committed) if event.client_id == client_id}
        deliveries = [event for event in record.deliveries if event.client_id == client_id]
        return sum(event.queue_offset >= committed.get(event.queue, 0) for event in deliveries) >= count

    return Action("until", condition=is_met)


def _allocated(clients: int) -> Action:
    """Wait until so many clients have seen each other and allocated queues."""

    def is_met(record: Record) -> bool:
        list_lengths = {
            rebalance.client_id: len(rebalance.client_ids)
            for rebalance in record.of(Rebalanced)
            if rebalance.topic == record.topic
        }
        return len(list_lengths) == clients and set(list_lengths.values()) == {clients}

    return Action("until", condition=is_met)


def _read(topic: str, count: int) -> Action:
    """Wait until so many messages of a broker's topic were read."""
    return Action("until", condition=lambda record: len(record.of_queue(topic.format(group=record.group))) >= count)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A script with title and description. ``about_moves``: a lesson on rebalance, whose harms are shown."""

    key: str
    title: str
    about: str
    acts: tuple[Action, ...]
    about_moves: bool = False


LESSONS = (
    Lesson(
        "more",
        words("One more consumer"),
        words(
            "Two consumers share four queues, and a third one joins. Queues move. The lesson measures how long "
            "each queue pauses, and what is delivered twice."
        ),
        (
            Action("producer", 200),
            Action("consumer"),
            Action("consumer"),
            Action("shared", 2),
            Action("handed", 400),
            Action("wait", 6),
            Action("consumer"),
            Action("shared", 3),
            Action("wait", 8),
        ),
        about_moves=True,
    ),
    Lesson(
        "many",
        words("One too many"),
        words(
            "Four consumers share four queues, and a fifth one joins. A queue has only one owner at a time, so "
            "one of the five consumers is idle."
        ),
        (
            Action("producer", 200),
            *(Action("consumer"),) * 4,
            Action("shared", 4),
            Action("handed", 400),
            Action("wait", 6),
            Action("consumer"),
            Action("wait", 12),
        ),
        about_moves=True,
    ),
    Lesson(
        "kill",
        words("Async commit and a kill"),
        words(
            "Three consumers need 20 ms for a message, and one second more for each fiftieth. A consumer commits "
            "only up to its oldest unfinished message. The second consumer is killed: messages that it took after "
            "that offset are delivered again."
        ),
        (
            Action("producer", 300),
            *(Action("consumer", 20, Options(stalls=50)),) * 3,
            Action("shared", 3),
            Action("handed", 900),
            Action("wait", 6),
            _not_committed(1, 10),
            Action("kill", 1),
            Action("shared", 2),
            Action("wait", 12),
        ),
        about_moves=True,
    ),
    Lesson(
        "disagree",
        words("Two clients disagree"),
        words(
            "Two consumers of a group use different allocation strategies, AVG and AVG_BY_CIRCLE. Both see the "
            "same list of clients, and each computes its own share. Some queues get two owners, some none."
        ),
        (
            Action("producer", 200),
            Action("consumer"),
            Action("handed", 100),
            Action("consumer", options=Options(strategy="AVG_BY_CIRCLE")),
            _allocated(2),
            Action("wait", 4),
        ),
    ),
    Lesson(
        "slow",
        words("The slow queue and least latency"),
        words(
            "A topic is on two brokers, and the disk of one needs 0.6 s for each flush. One producer sends to all "
            "queues in turn. Another one has sendLatencyFaultEnable and avoids a broker that was slow."
        ),
        (
            Action("broker", name="quick", options=Options(settings="flushDiskType=SYNC_FLUSH")),
            Action("broker", name="slow", options=Options(settings="flushDiskType=SYNC_FLUSH", slow=SLOW_FLUSH_S)),
            Action("running"),
            Action("producer", 100, Options(message_count=SEND_COUNT)),
            _sent(SEND_COUNT),
            Action("producer", 100, Options(message_count=SEND_COUNT, avoids=True)),
            _sent(2 * SEND_COUNT),
        ),
    ),
    Lesson(
        "broadcast",
        words("Broadcast"),
        words(
            "Two consumers each get every message, and each keeps its offsets in its own file. The second one "
            "stops, messages arrive, and it starts again under its old name: it continues from the offsets in its "
            "file."
        ),
        (
            Action("producer", 200, Options(message_count=BROADCAST_COUNT)),
            _sent(BROADCAST_COUNT),
            Action("consumer", options=Options(model=BROADCASTING)),
            Action("consumer", options=Options(model=BROADCASTING, name="{group}-2")),
            _each_got(BROADCAST_COUNT, 2),
            Action("wait", 2),
            Action("stop", 1),
            Action("producer", 200, Options(message_count=LATER_COUNT)),
            _one_got(BROADCAST_COUNT + LATER_COUNT),
            Action("again", options=Options(model=BROADCASTING, name="{group}-2")),
            _each_got(BROADCAST_COUNT + LATER_COUNT, 2),
        ),
    ),
    Lesson(
        "retry",
        words("Retry to the dead letters"),
        words(
            "A consumer rejects each fifth message. The broker delivers it again after a delay, which grows each "
            "time; after two retries it is a dead letter. Delays are short here: 1 s and 2 s."
        ),
        (
            Action("broker", name="retry", options=Options(settings=RETRIES)),
            Action("running"),
            Action("consumer", options=Options(refuses=5, max_reconsume=2)),
            Action("producer", 200, Options(message_count=RETRY_COUNT)),
            Action("consumer", name="-dead", topic=DLQ_PREFIX + "{group}"),
            _read(DLQ_PREFIX + "{group}", RETRY_COUNT // 5),
        ),
    ),
    Lesson(
        "transaction",
        words("A transaction that nobody finishes"),
        words(
            "A producer commits every second half message and never finishes the others. The broker checks these "
            "again and again, then gives up: they are never delivered. Here it checks three times, every half "
            "second."
        ),
        (
            Action("broker", name="checks", options=Options(settings=CHECKS), topic=GIVEN_UP),
            Action("running"),
            Action("consumer"),
            Action("consumer", name="-given-up", topic=GIVEN_UP),
            Action("producer", 100, Options(message_count=HALF_COUNT, commits=2)),
            _read(GIVEN_UP, HALF_COUNT // 2),
        ),
    ),
)

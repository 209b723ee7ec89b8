"""What a broker knows beside its store: what each release has of it, who is told, and what is forgotten with whom."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.broker.broker import REQUEST_MODES, Broker, timers_of
from engine.broker.clients import BROADCASTING, CLUSTERING, ConsumerGroup, Member
from engine.broker.config import BrokerConfig
from engine.broker.pull_message import HeldPull
from engine.broker.queue_locks import LIVES_MS, QueueName
from engine.broker.topics import WRITE, plain_topic
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.remoting.frame import Command

QUEUE = QueueName("broker-a", "Orders", 0)


class Link:
    """A connection that notes what is sent over it."""

    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with MessageStore(tmp_path, services=False) as message_store:
        yield message_store


def consuming(broker: Broker, *links: Link, model: str = CLUSTERING) -> ConsumerGroup:
    """A group with a member behind each link."""
    expected = ConsumerGroup("readers", model=model)
    for number, link in enumerate(links):
        broker.clients.add_consumer(expected, link, Member(f"client-{number}", "JAVA", 479, 0))  # type: ignore[arg-type]
    return broker.clients.consumers["readers"]


def held_pull(link: Any, topic: str = "Orders") -> HeldPull:
    return HeldPull(Command(11), link, (topic, 0), 5, 1_000, lambda: None)


@pytest.mark.parametrize(
    ("like", "config", "there"),
    [("5.3", {}, True), ("5.3", {"timer_wheel_enable": False}, False), ("4.9", {}, False)],
)
def test_messages_for_any_time_are_of_5_and_only_where_they_are_wanted(
    tmp_path: Path, like: Any, config: dict[str, Any], there: bool
) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(**config), like=like, services=False) as store:
        assert (timers_of(store, lambda: 0) is not None) is there
        assert (Broker(store).timers is not None) is there


@pytest.mark.parametrize(("like", "known"), [("5.3", True), ("4.9", False)])
def test_which_groups_pop_is_read_by_5_only(tmp_path: Path, like: Any, known: bool) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / REQUEST_MODES).write_text('{"messageRequestModeMap":{"Orders":{}}}')
    with MessageStore(tmp_path, like=like, services=False) as store:
        assert bool(Broker(store).request_modes.value) is known


def test_a_clock_that_is_set_later_holds_for_locks_too(store: MessageStore) -> None:
    """Locks of queues went on by the clock of the beginning, where everything else went by the new one."""
    broker = Broker(store, now=lambda: 1_000)
    assert broker.locks.lock("readers", "one", [QUEUE]) == [QUEUE]
    assert broker.locks.lock("readers", "two", [QUEUE]) == []
    broker.now = lambda: 1_000 + LIVES_MS + 1
    assert broker.locks.lock("readers", "two", [QUEUE]) == [QUEUE]


def test_every_member_of_a_group_is_told_one_way(store: MessageStore) -> None:
    broker, links = Broker(store), (Link(), Link())
    broker.tell_members(consuming(broker, *links))
    for link in links:
        (reported,) = link.sent
        assert (reported.code, reported.fields, reported.is_one_way) == (40, {"consumerGroup": "readers"}, True)


@pytest.mark.parametrize(
    ("model", "config"),
    [(BROADCASTING, BrokerConfig()), (CLUSTERING, BrokerConfig(notify_consumers=False))],
    ids=["each reads all for himself", "switched off"],
)
def test_members_are_not_told_where_it_changes_nothing_for_them(
    store: MessageStore, model: str, config: BrokerConfig
) -> None:
    broker, link = Broker(store, config), Link()
    broker.tell_members(consuming(broker, link, model=model))
    assert link.sent == []


def test_whoever_leaves_waits_for_nothing_and_the_others_are_told(store: MessageStore) -> None:
    broker, removed_link, stays = Broker(store), Link(), Link()
    consuming(broker, removed_link, stays)
    for link in (removed_link, stays):
        broker.held.hold(held_pull(link))
    assert broker.is_waited_for
    broker.disconnected(removed_link)  # type: ignore[arg-type]
    assert [item.connection for item in broker.held] == [stays]
    assert ([one.code for one in removed_link.sent], [one.code for one in stays.sent]) == ([], [40])
    broker.disconnected(stays)  # type: ignore[arg-type]
    assert not broker.is_waited_for
    assert broker.clients.consumers == {}


def test_a_group_that_is_no_more_takes_only_its_own_with_it(store: MessageStore) -> None:
    broker = Broker(store)
    keys = [(group, topic, 0) for group in ("readers", "others") for topic in ("Orders", "Clicks")]

    def left() -> tuple[list[tuple[str, str, int]], ...]:
        return (
            [*broker.pulled],
            [*broker.popped.in_flight],
            sorted((*popping_group, 0) for popping_group in broker.popped.popping_groups),
        )

    for key in keys:
        broker.pulled[key] = 7
        broker.popped.in_flight[key] = 2
        broker.popped.popping_groups.add(key[:2])
    broker.forget_readers("readers")
    assert left() == ([keys[2], keys[3]], [keys[2], keys[3]], sorted([keys[2], keys[3]]))
    broker.forget_readers(topics=["Clicks"])
    assert left() == ([keys[2]], [keys[2]], [keys[2]])


def test_without_a_name_server_the_route_is_its_own_where_it_may_be_read(store: MessageStore) -> None:
    broker = Broker(store, BrokerConfig(broker_name="north"))
    broker.topics.declare(plain_topic("Orders", 3), plain_topic("Shut", 2, WRITE))

    async def scenario() -> list[dict[str, int] | None]:
        return [await broker.route_of(topic) for topic in ("Orders", "Shut", "Unknown")]

    assert asyncio.run(scenario()) == [{"north": 3}, None, None]


@pytest.mark.parametrize(("role", "is_slave"), [("ASYNC_MASTER", False), ("SYNC_MASTER", False), ("SLAVE", True)])
def test_a_slave_is_one_by_its_role(tmp_path: Path, role: str, is_slave: bool) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(broker_role=role), services=False) as store:
        assert Broker(store).is_slave is is_slave

"""A broker's state beside its store: release differences, client notifications, and clean-up when clients leave."""

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
from engine.broker.queue_locks import LOCK_DURATION_MS, QueueName
from engine.broker.topics import WRITE, plain_topic
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.remoting.frame import Command

QUEUE = QueueName("broker-a", "Orders", 0)


class Link:
    """A connection that records the commands sent over it."""

    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    with MessageStore(tmp_path, services=False) as message_store:
        yield message_store


def consuming(broker: Broker, *links: Link, model: str = CLUSTERING) -> ConsumerGroup:
    """Register a group with one member for each link."""
    expected = ConsumerGroup("readers", model=model)
    for number, link in enumerate(links):
        broker.clients.add_consumer(expected, link, Member(f"client-{number}", "JAVA", 479, 0))  # type: ignore[arg-type]
    return broker.clients.consumers["readers"]


def held_pull(link: Any, topic: str = "Orders") -> HeldPull:
    return HeldPull(Command(11), link, (topic, 0), 5, 1_000, lambda: None)


@pytest.mark.parametrize(
    ("release", "config", "has_timers"),
    [("5.3", {}, True), ("5.3", {"timer_wheel_enable": False}, False), ("4.9", {}, False)],
)
def test_only_5_has_timers_and_only_where_they_are_enabled(
    tmp_path: Path, release: Any, config: dict[str, Any], has_timers: bool
) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(**config), release=release, services=False) as store:
        assert (timers_of(store, lambda: 0) is not None) is has_timers
        assert (Broker(store).timers is not None) is has_timers


@pytest.mark.parametrize(("release", "is_read"), [("5.3", True), ("4.9", False)])
def test_request_modes_are_read_by_5_only(tmp_path: Path, release: Any, is_read: bool) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / REQUEST_MODES).write_text('{"messageRequestModeMap":{"Orders":{}}}')
    with MessageStore(tmp_path, release=release, services=False) as store:
        assert bool(Broker(store).request_modes.value) is is_read


def test_a_clock_that_is_set_later_applies_to_locks_too(store: MessageStore) -> None:
    """Queue locks kept using the first clock, while all other parts used the new one."""
    broker = Broker(store, now=lambda: 1_000)
    assert broker.locks.lock("readers", "one", [QUEUE]) == [QUEUE]
    assert broker.locks.lock("readers", "two", [QUEUE]) == []
    broker.now = lambda: 1_000 + LOCK_DURATION_MS + 1
    assert broker.locks.lock("readers", "two", [QUEUE]) == [QUEUE]


def test_every_member_of_a_group_is_notified_one_way(store: MessageStore) -> None:
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
def test_members_are_not_notified_where_nothing_changes_for_them(
    store: MessageStore, model: str, config: BrokerConfig
) -> None:
    broker, link = Broker(store, config), Link()
    broker.tell_members(consuming(broker, link, model=model))
    assert link.sent == []


def test_a_client_that_leaves_loses_its_held_pulls_and_the_others_are_notified(store: MessageStore) -> None:
    broker, removed_link, remaining_link = Broker(store), Link(), Link()
    consuming(broker, removed_link, remaining_link)
    for link in (removed_link, remaining_link):
        broker.held.hold(held_pull(link))
    assert broker.has_waiting_requests
    broker.disconnected(removed_link)  # type: ignore[arg-type]
    assert [pull.connection for pull in broker.held] == [remaining_link]
    assert ([command.code for command in removed_link.sent], [command.code for command in remaining_link.sent]) == (
        [],
        [40],
    )
    broker.disconnected(remaining_link)  # type: ignore[arg-type]
    assert not broker.has_waiting_requests
    assert broker.clients.consumers == {}


def test_a_group_that_ends_removes_only_its_own_state(store: MessageStore) -> None:
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
def test_the_role_decides_whether_a_broker_is_a_slave(tmp_path: Path, role: str, is_slave: bool) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(broker_role=role), services=False) as store:
        assert Broker(store).is_slave is is_slave

"""What a broker does without being asked: who does it, how often, what each step does, and what is left for the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.broker import services as module
from engine.broker.broker import Broker
from engine.broker.clients import ConsumerGroup, Member
from engine.broker.config import BrokerConfig
from engine.broker.delays import PAUSE
from engine.broker.filters import FILE as FILTERS
from engine.broker.pop_orders import FILE as ORDERS
from engine.broker.services import SERVICES, SILENT_MS, Service, services_of
from engine.broker.stats import HALF_COUNTS
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.releases import Release
from engine.remoting.subscriptions import Subscription
from engine.store.timers.messages import MOST_AT_ONCE

NOW = 1_800_000_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with MessageStore(tmp_path, services=False) as store:
        yield Broker(store, BrokerConfig(revive_interval_ms=250, transaction_check_interval_ms=700), now=lambda: NOW)


def named(name: str) -> Service:
    (actual_service,) = [service for service in SERVICES if service.name == name]
    return actual_service


def test_a_slave_puts_nothing_and_decides_nothing(tmp_path: Path) -> None:
    with MessageStore(tmp_path, MessageStoreConfig(broker_role="SLAVE"), services=False) as store:
        assert {service.name for service in services_of(Broker(store))} == {
            *("rates", "held pulls", "accounts", "silent clients"),
            *("timer messages", "timers kept"),  # they follow the master's, and put nothing
        }


def test_a_master_does_all_of_it(broker: Broker) -> None:
    assert services_of(broker) == list(SERVICES)
    assert len({service.name for service in SERVICES}) == len(SERVICES), "a name tells which one failed"


def test_the_configuration_says_how_often(broker: Broker) -> None:
    assert named("popped messages").seconds(broker) == 0.25
    assert named("open transactions").seconds(broker) == 0.7
    assert named("timers kept").seconds(broker) == broker.store.config.timer_flush_interval_ms / 1000


@pytest.mark.parametrize(("taken", "waits"), [(0, False), (3, False), (MOST_AT_ONCE, True)])
def test_a_full_step_of_timers_is_followed_by_the_next_at_once(broker: Broker, taken: int, waits: bool) -> None:
    texts: list[str] = []
    broker.timers = SimpleNamespace(step=lambda: taken)  # type: ignore[assignment]
    broker.dispatched = lambda: texts.append("dispatched")
    timers = named("timer messages")
    timers.step(broker)
    assert timers.seconds(broker) == (0.0 if waits else PAUSE)
    assert texts == ["dispatched"] * bool(taken), "who waits is looked at where messages came"


@pytest.mark.parametrize("name", ["timer messages", "timers kept"])
def test_without_timers_there_is_nothing_to_do(tmp_path: Path, name: str) -> None:
    with MessageStore(tmp_path, like="4.9", services=False) as store:
        broker = Broker(store)
        broker.dispatched = lambda: pytest.fail("nothing came")
        named(name).step(broker)
        assert not broker.timers_wait


def test_who_was_silent_for_two_minutes_is_sent_away_and_nobody_else(broker: Broker) -> None:
    closed: list[str] = []

    class Link:
        def __init__(self, name: str, seen: int) -> None:
            self.name = name
            broker.clients.add_consumer(ConsumerGroup("readers"), self, Member(name, "JAVA", 479, seen))  # type: ignore[arg-type]

        def close(self) -> None:
            closed.append(self.name)

    Link("silent", NOW - SILENT_MS - 1)
    Link("heard", NOW - SILENT_MS)
    named("silent clients").step(broker)
    assert closed == ["silent"]


def test_filters_are_kept_as_they_change_and_at_the_end_anyway(broker: Broker) -> None:
    file = broker.store.paths.config / FILTERS
    saved_named = named("filters kept")
    saved_named.step(broker)
    assert not file.exists(), "nothing has changed"
    broker.filters.register("billing", [Subscription.of("Orders", "amount > 250", 1, "SQL92")])
    saved_named.step(broker)
    assert "amount > 250" in file.read_text()
    file.unlink()
    saved_named.step(broker)
    assert not file.exists()
    assert saved_named.end is not None
    saved_named.end(broker)
    assert "amount > 250" in file.read_text()


@pytest.mark.parametrize(("like", "kept"), [("5.3", True), ("4.9", False)])
def test_what_orderly_pops_hold_is_kept_by_5_only(tmp_path: Path, like: Any, kept: bool) -> None:
    with MessageStore(tmp_path, like=like, services=False) as store:
        end = named("orderly pops kept").end
        assert end is not None
        end(Broker(store))
        assert (store.paths.config / ORDERS).exists() is kept


def test_accounts_are_looked_at_where_there_are_any(broker: Broker) -> None:
    looked: list[str] = []
    named("accounts").step(broker)
    broker.access = SimpleNamespace(step=lambda: looked.append("looked"))  # type: ignore[assignment]
    named("accounts").step(broker)
    assert looked == ["looked"]


def test_every_hold_is_looked_at_whether_or_not_its_queue_grew(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[bool] = []
    monkeypatch.setattr(module, "wake_held", lambda _broker, *, all_of_them=False: requests.append(all_of_them))
    named("held pulls").step(broker)
    assert requests == [True]


def test_half_messages_are_counted_on_after_a_restart(broker: Broker) -> None:
    saved_named, file = named("half messages counted"), broker.store.paths.config / HALF_COUNTS
    saved_named.step(broker)
    assert not file.exists(), "no half message was ever here"
    broker.stats.half["Orders"] += 2
    assert saved_named.end is not None
    saved_named.end(broker)
    assert Broker(broker.store).stats.half == {"Orders": 2}


@pytest.mark.parametrize(("release", "usual"), [("5.3", 3.0), ("5.4", 10.0), ("5.5", 10.0)])
def test_half_messages_are_counted_as_often_as_the_release_does_or_the_configuration_says(
    tmp_path: Path, release: Release, usual: float
) -> None:
    """It was three seconds whatever transactionMetricFlushInterval said, and in 5.4, too, which has ten."""
    (service,) = (item for item in SERVICES if item.name == "half messages counted")
    with MessageStore(tmp_path, like=release, services=False) as store:
        broker = Broker(store)
        assert service.seconds(broker) == usual
        assert f"transactionMetricFlushInterval={usual * 1000:.0f}" in {
            "=".join(line) for line in broker.config.lines()
        }
        assert service.seconds(Broker(store, BrokerConfig(transaction_metric_flush_ms=700))) == 0.7

"""Background services of a broker: which roles run them, how often, what a step does, and what runs at the end."""

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
from engine.store.timers.messages import MAX_PER_STEP

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
            *("timer messages", "timers kept"),  # these follow the master and put nothing
        }


def test_a_master_runs_all_services(broker: Broker) -> None:
    assert services_of(broker) == list(SERVICES)
    assert len({service.name for service in SERVICES}) == len(SERVICES), "a name tells which one failed"


def test_the_configuration_sets_the_intervals(broker: Broker) -> None:
    assert named("popped messages").seconds(broker) == 0.25
    assert named("open transactions").seconds(broker) == 0.7
    assert named("timers kept").seconds(broker) == broker.store.config.timer_flush_interval_ms / 1000


@pytest.mark.parametrize(("message_count", "waits"), [(0, False), (3, False), (MAX_PER_STEP, True)])
def test_a_full_step_of_timers_is_followed_by_the_next_at_once(broker: Broker, message_count: int, waits: bool) -> None:
    events: list[str] = []
    broker.timers = SimpleNamespace(step=lambda: message_count)  # type: ignore[assignment]
    broker.dispatched = lambda: events.append("dispatched")
    timers = named("timer messages")
    timers.step(broker)
    assert timers.seconds(broker) == (0.0 if waits else PAUSE)
    assert events == ["dispatched"] * bool(message_count), "who waits is looked at where messages came"


@pytest.mark.parametrize("name", ["timer messages", "timers kept"])
def test_without_timers_there_is_nothing_to_do(tmp_path: Path, name: str) -> None:
    with MessageStore(tmp_path, release="4.9", services=False) as store:
        broker = Broker(store)
        broker.dispatched = lambda: pytest.fail("nothing came")
        named(name).step(broker)
        assert not broker.timers_wait


def test_only_clients_silent_for_two_minutes_are_disconnected(broker: Broker) -> None:
    closed: list[str] = []

    class Link:
        def __init__(self, name: str, last_seen_ms: int) -> None:
            self.name = name
            broker.clients.add_consumer(ConsumerGroup("readers"), self, Member(name, "JAVA", 479, last_seen_ms))  # type: ignore[arg-type]

        def close(self) -> None:
            closed.append(self.name)

    Link("silent", NOW - SILENT_MS - 1)
    Link("heard", NOW - SILENT_MS)
    named("silent clients").step(broker)
    assert closed == ["silent"]


def test_filters_are_saved_when_they_change_and_at_the_end(broker: Broker) -> None:
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


@pytest.mark.parametrize(("release", "is_saved"), [("5.3", True), ("4.9", False)])
def test_orderly_pops_are_saved_by_5_only(tmp_path: Path, release: Any, is_saved: bool) -> None:
    with MessageStore(tmp_path, release=release, services=False) as store:
        end = named("orderly pops kept").end
        assert end is not None
        end(Broker(store))
        assert (store.paths.config / ORDERS).exists() is is_saved


def test_the_account_file_is_checked_if_there_are_accounts(broker: Broker) -> None:
    looked: list[str] = []
    named("accounts").step(broker)
    broker.access = SimpleNamespace(step=lambda: looked.append("looked"))  # type: ignore[assignment]
    named("accounts").step(broker)
    assert looked == ["looked"]


def test_every_held_pull_is_checked_even_if_its_queue_did_not_grow(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[bool] = []
    monkeypatch.setattr(module, "wake_held", lambda _broker, *, all_of_them=False: requests.append(all_of_them))
    named("held pulls").step(broker)
    assert requests == [True]


def test_the_count_of_half_messages_continues_after_a_restart(broker: Broker) -> None:
    saved_named, file = named("half messages counted"), broker.store.paths.config / HALF_COUNTS
    saved_named.step(broker)
    assert not file.exists(), "no half message was ever here"
    broker.stats.half["Orders"] += 2
    assert saved_named.end is not None
    saved_named.end(broker)
    assert Broker(broker.store).stats.half == {"Orders": 2}


@pytest.mark.parametrize(("release", "usual"), [("5.3", 3.0), ("5.4", 10.0), ("5.5", 10.0)])
def test_half_messages_are_counted_at_the_releases_or_the_configured_interval(
    tmp_path: Path, release: Release, usual: float
) -> None:
    """The interval was three seconds whatever transactionMetricFlushInterval said, and also in 5.4, whose default is
    ten.
    """
    (service,) = (item for item in SERVICES if item.name == "half messages counted")
    with MessageStore(tmp_path, release=release, services=False) as store:
        broker = Broker(store)
        assert service.seconds(broker) == usual
        assert f"transactionMetricFlushInterval={usual * 1000:.0f}" in {
            "=".join(line) for line in broker.config.lines()
        }
        assert service.seconds(Broker(store, BrokerConfig(transaction_metric_flush_ms=700))) == 0.7

"""Background services of a broker: one row a service, with its step and its interval (docs/protocol/behaviour.md).

Java: ``BrokerController.initializeScheduledTasks``, and the threads that it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.broker.delays import PAUSE, deliver_due
from engine.broker.pop_revive import revive
from engine.broker.pull_message import wake_held
from engine.broker.static_topic_cleaning import CLEAN_INTERVAL_S, clean_later
from engine.broker.transactions import check_transactions, write_ops
from engine.store.timers.messages import MAX_PER_STEP

if TYPE_CHECKING:
    from engine.broker.broker import Broker


SILENT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Service:
    """``step`` is called every ``seconds(broker)`` while the broker listens."""

    name: str
    seconds: Callable[[Broker], float]
    step: Callable[[Broker], None]
    end: Callable[[Broker], None] | None = None
    """Final step when the broker ends."""
    on_slave: bool = False
    """True if a slave runs it, too: a slave puts no message, and its master decides. Its timers follow the master's."""


def _wake_all(broker: Broker) -> None:
    wake_held(broker, all_of_them=True)


def _run_timers(broker: Broker) -> None:
    """Checkpoints of pops are timer messages, too: if more wait than one step handles, the next step follows at
    once.
    """
    if broker.timers is None:
        return
    handled = broker.timers.step()
    broker.timers_wait = handled >= MAX_PER_STEP
    if handled and not broker.is_slave:
        broker.dispatched()


def _keep_timers(broker: Broker) -> None:
    if broker.timers is not None:
        broker.timers.flush()
        broker.timers.clean()


def _keep_orders(broker: Broker, *, ended: bool = False) -> None:
    if broker.store.rules.major < 5:
        return
    queues = {name: topic.read_queue_nums for name, topic in broker.store.tables.topics().items()}
    groups = broker.store.tables.groups()
    broker.orders.save(lambda name: queues.get(name, 0), groups.__contains__, always=ended)


def _keep_filters(broker: Broker, *, ended: bool = False) -> None:
    broker.filters.save(broker.config.filter_lives_ms, always=ended)


def _keep_half_counts(broker: Broker) -> None:
    if broker.store.rules.major >= 5:
        broker.stats.half.save(broker.store.parts.disk, broker.half_file, broker.now())


def _look_at_accounts(broker: Broker) -> None:
    if broker.access is not None:
        broker.access.step()


def _expire(broker: Broker) -> None:
    for connection in broker.clients.silent(broker.now() - SILENT_MS):
        connection.close()


def services_of(broker: Broker) -> list[Service]:
    """Return the services that this broker runs: a slave runs fewer than a master."""
    return [service for service in SERVICES if service.on_slave or not broker.is_slave]


def _metric_pause(broker: Broker) -> float:
    default_ms = broker.store.rules.transaction_metric_flush_ms
    return (broker.config.transaction_metric_flush_ms or default_ms) / 1000


def _sample_rates(broker: Broker) -> None:
    broker.rates.step()


SERVICES = (
    Service("rates", lambda _: 1.0, _sample_rates, on_slave=True),
    # a hold ends up to five seconds late (docs/protocol/behaviour.md#long-polling)
    Service("held pulls", lambda _: 5.0, _wake_all, on_slave=True),
    Service("delayed messages", lambda _: PAUSE, deliver_due),
    Service("timer messages", lambda broker: 0.0 if broker.timers_wait else PAUSE, _run_timers, on_slave=True),
    Service("popped messages", lambda broker: broker.config.revive_interval_ms / 1000, revive),
    Service("orderly pops kept", lambda _: 10.0, _keep_orders, lambda broker: _keep_orders(broker, ended=True)),
    Service("accounts", lambda _: 5.0, _look_at_accounts, on_slave=True),
    Service("filters kept", lambda _: 10.0, _keep_filters, lambda broker: _keep_filters(broker, ended=True)),
    Service(
        "timers kept",
        lambda broker: broker.store.config.timer_flush_interval_ms / 1000,
        _keep_timers,
        _keep_timers,
        on_slave=True,
    ),
    Service("half messages counted", _metric_pause, _keep_half_counts, _keep_half_counts),
    Service("decided transactions", lambda _: 1.0, write_ops, lambda broker: write_ops(broker, all_decisions=True)),
    Service("open transactions", lambda broker: broker.config.transaction_check_interval_ms / 1000, check_transactions),
    Service("mappings of static topics", lambda _: CLEAN_INTERVAL_S, clean_later),
    Service("silent clients", lambda _: 10.0, _expire, on_slave=True),
)

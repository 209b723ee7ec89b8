"""SQL filters: which groups have them, when they are dead, and the bits that ext units carry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario

from engine.broker.config import BrokerConfig
from engine.broker.filters import FILE, ConsumerFilters
from engine.broker.serving import serving_store
from engine.codec.bloom import bit_map, positions
from engine.codec.encode import Message
from engine.codec.json_dialect import parse
from engine.config import MessageStoreConfig
from engine.mapped.disk import RealDisk
from engine.remoting.subscriptions import Subscription
from engine.rules.unit_check import Request
from engine.store.config_tables import ConfigTable
from engine.store.queue_entry import unit_at

DAY = 24 * 3_600_000


class Clock:
    """A time that a test sets (ms)."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def filters(tmp_path: Path, clock: Clock) -> ConsumerFilters:
    return ConsumerFilters(ConfigTable(tmp_path / FILE, RealDisk()), clock)


def sql(expression: str = "amount > 250", version: int = 1, topic: str = "Orders") -> Subscription:
    return Subscription.of(topic, expression, version, "SQL92")


def request(topic: str = "Orders", **properties: str) -> Request:
    return Request(topic, 0, 0, 100, 0, 1, 0, 0, properties, -1, 0)


def test_a_filter_is_saved_like_a_brokers(filters: ConsumerFilters, clock: Clock, tmp_path: Path) -> None:
    filters.register("billing", [sql(), Subscription.of("Orders2", "paid")])
    clock.ms += 5
    filters.unregister("billing")
    filters.save(DAY)
    row = {
        "bloomFilterData": {"bitNum": 112, "bitPos": list(positions("billing", "Orders"))},
        "bornTime": 1_000_000,
        "clientVersion": 1,
        "consumerGroup": "billing",
        "dead": True,
        "deadTime": 1_000_005,
        "expression": "amount > 250",
        "expressionType": "SQL92",
        "topic": "Orders",
    }
    value = parse((tmp_path / FILE).read_bytes()).value
    assert value == {"filterDataByTopic": {"Orders": {"groupFilterData": {"billing": row}, "topic": "Orders"}}}


def test_a_later_version_replaces_a_filter(filters: ConsumerFilters, clock: Clock) -> None:
    """An equal version revives a dead filter. A later version with an invalid expression removes it."""
    filters.register("billing", [sql(version=5)])
    filters.register("billing", [sql("amount > 1", version=4)])
    first_filter = filters.get("Orders", "billing")
    assert first_filter is not None
    assert (first_filter.expression, first_filter.born) == ("amount > 250", 1_000_000)
    filters.unregister("billing")
    assert first_filter.is_dead
    filters.register("billing", [sql(version=5)])
    assert not first_filter.is_dead
    clock.ms += 10
    filters.register("billing", [sql("amount > 1", version=6)])
    later_filter = filters.get("Orders", "billing")
    assert later_filter is not None
    assert (later_filter.expression, later_filter.born) == ("amount > 1", 1_000_010)
    filters.register("billing", [sql("amount >", version=7)])
    assert filters.get("Orders", "billing") is None


def test_a_filter_that_a_group_no_longer_names_is_dead(filters: ConsumerFilters) -> None:
    filters.register("billing", [sql(), sql(topic="Refunds")])
    filters.register("billing", [sql()])
    states = [filters.get(topic, "billing") for topic in ("Orders", "Refunds")]
    assert [state is not None and state.is_dead for state in states] == [False, True]


def test_bits_are_set_for_groups_whose_expression_matches(filters: ConsumerFilters) -> None:
    assert filters.bit_map(request(amount="300")) == b""
    filters.register("billing", [sql()])
    filters.register("warehouse", [sql("region = 'north'")])
    wanting = bit_map([positions("billing", "Orders")])
    assert filters.bit_map(request(amount="300", region="south")) == wanting
    assert filters.bit_map(request(amount="1")) == bytes(14)
    assert filters.bit_map(request("Refunds", amount="300")) == b""


def test_at_the_next_start_all_filters_are_dead(filters: ConsumerFilters, clock: Clock, tmp_path: Path) -> None:
    filters.register("billing", [sql()])
    filters.save(DAY)
    clock.ms += 100_000
    second_filters = ConsumerFilters(ConfigTable(tmp_path / FILE, RealDisk()), clock)
    second_filters.load()
    results = second_filters.get("Orders", "billing")
    assert results is not None
    assert (results.dead, results.is_dead) == (1_070_000, True)
    clock.ms += DAY
    second_filters.save(DAY, always=True)
    assert parse((tmp_path / FILE).read_bytes()).value == {"filterDataByTopic": {}}


def test_bits_of_another_length_discard_the_file(filters: ConsumerFilters, clock: Clock, tmp_path: Path) -> None:
    filters.register("billing", [sql()])
    filters.save(DAY)
    path = tmp_path / FILE
    path.write_text(path.read_text().replace('"bitNum":112', '"bitNum":64'))
    second_filters = ConsumerFilters(ConfigTable(path, RealDisk()), clock)
    second_filters.load()
    assert second_filters.get("Orders", "billing") is None


def test_an_unchanged_table_is_not_written(filters: ConsumerFilters, tmp_path: Path) -> None:
    filters.save(DAY)
    assert not (tmp_path / FILE).exists()


def _beat(version: int = 9) -> bytes:
    group = {
        "groupName": "billing",
        "subscriptionDataSet": [
            {"topic": "Orders", "subString": "amount > 250", "expressionType": "SQL92", "subVersion": version}
        ],
    }
    return json.dumps({"clientID": "me", "consumerDataSet": [group], "producerDataSet": []}).encode()


def test_heartbeats_register_filters_and_pulls_use_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, BrokerConfig(property_filter=True)) as client:
            await client.send("Orders", b"one", properties="amount\x01300\x02")
            client.server.broker.store.wait_dispatched()
            assert (await client.ask(34, _beat())).code == 0
            request_fields = {"group": "billing", "sysFlag": 0, "subVersion": 9, "expressionType": "SQL92"}
            assert (await client.pull("Orders", 0, **request_fields)).code == 0
            broker = client.server.broker
            item = broker.filters.get("Orders", "billing")
            assert item is not None
            item.version = 8
            late = await client.pull("Orders", 0, **request_fields)
            assert (late.code, late.remark) == (28, "the consumer's consumer filter data not latest")
            assert (await client.ask(35, clientID="me", consumerGroup="billing")).code == 0
            assert item.is_dead
        assert (tmp_path / "config" / FILE).exists()

    run_scenario(scenario)


def test_ext_units_carry_the_bits(tmp_path: Path) -> None:
    async def scenario() -> None:
        config = BrokerConfig(property_filter=True, calc_bit_map=True)
        ext = MessageStoreConfig(enable_consume_queue_ext=True)
        async with serving_store(tmp_path, config, ext, port=0) as server:
            broker = server.broker
            broker.filters.register("billing", [sql()])
            for amount in ("300", "1"):
                assert broker.store.put_message(Message("Orders", b"x", 0, {"amount": amount})).ok
            broker.store.wait_dispatched()
            queue = broker.store.parts.queues.queue("Orders", 0)
            assert queue is not None
            entries = [unit_at(queue, position) for position in (0, 1)]
            bits = [entry.ext.bit_map for entry in entries if entry is not None and entry.ext is not None]
            assert bits == [bit_map([positions("billing", "Orders")]), bytes(14)]

    run_scenario(scenario)

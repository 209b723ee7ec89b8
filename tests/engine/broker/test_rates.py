"""Rates and sums as administrators are told them: over spans, by topic and group, from midnight on."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import asking, run

from engine.broker.rates import GET_NUMS, PUT_NUMS, PUT_SIZE, Rates, Totals
from engine.broker.stats import NORMAL, BrokerStats

START = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.ms = START

    def __call__(self) -> int:
        return self.ms


def counting() -> tuple[Rates, BrokerStats, Clock]:
    stats, clock = BrokerStats(), Clock()
    put = lambda: sum(flow.messages for flow in stats.put.values())  # noqa: E731
    return Rates(stats, put, clock, "C"), stats, clock


def test_rates_are_those_of_the_last_seconds_or_of_the_time_since_the_start() -> None:
    rates, stats, clock = counting()
    for second in range(1, 121):
        clock.ms = START + second * 1000
        stats.put["Orders", NORMAL].add(5 if second > 60 else 1, 100)
        stats.got["readers", "Orders", None].add(2, 100)
        rates.step()
        if second == 4:
            assert [round(one, 6) for one in rates.per_second()[0]] == [1.0, 1.0, 1.0]
    put, got = rates.per_second()
    assert [round(one, 3) for one in put] == [5.0, 5.0, 3.0]
    assert [round(one, 3) for one in got] == [2.0, 2.0, 2.0]


def test_sums_of_a_minute_and_an_hour_by_topic_and_group() -> None:
    rates, stats, clock = counting()
    assert rates.of(PUT_NUMS, "Orders") is None
    for step in range(1, 31):
        clock.ms = START + step * 10_000
        stats.put["Orders", NORMAL].add(2, 300)
        stats.got["readers", "Orders", None].add(4, 600)
        rates.step()
    told = rates.of(PUT_NUMS, "Orders")
    assert told is not None
    assert told["statsMinute"] == {"avgpt": 2.0, "sum": 12, "tps": 0.2}
    assert told["statsHour"] == {"avgpt": 2.0, "sum": 60, "tps": 0.2}
    assert told["statsDay"] == told["statsHour"]
    size, read = rates.of(PUT_SIZE, "Orders"), rates.of(GET_NUMS, "Orders@readers")
    assert size is not None and size["statsMinute"]["avgpt"] == 300.0  # noqa: PT018
    assert read is not None and read["statsHour"]["sum"] == 120  # noqa: PT018
    assert rates.of("BROKER_PUT_NUMS", "C")["statsHour"]["sum"] == 60  # type: ignore[index]
    assert rates.of(GET_NUMS, "Orders@others") is None


def test_totals_at_midnight_are_kept_for_two_days() -> None:
    rates, stats, clock = counting()
    for day in range(3):
        clock.ms = START + day * 86_400_000
        rates.step()
        stats.put["Orders", NORMAL].add(10, 100)
    assert (rates.yesterday_morning, rates.today_morning) == (Totals(10, 0), Totals(20, 0))


def test_administrators_are_told_what_was_counted(tmp_path: Path) -> None:
    """``clusterList`` showed rates of 0.0 and ``statsAll`` nothing, whatever went through the broker."""

    async def told() -> None:
        async with asking(tmp_path) as client:
            broker = client.server.broker
            for number in range(20):
                await client.send("Orders", b"%d" % number)
            broker.store.wait_dispatched()
            await client.pull("Orders", 0)
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            assert all(float(rate) > 0 for rate in table["putTps"].split())
            assert all(float(rate) > 0 for rate in table["getTransferredTps"].split())
            assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("20", "20")
            answer = await client.ask(315, statsName="TOPIC_PUT_NUMS", statsKey="Orders")
            assert json.loads(bytes(answer.body))["statsMinute"]["sum"] == 20
            answer = await client.ask(315, statsName="GROUP_GET_NUMS", statsKey="Orders@readers")
            assert json.loads(bytes(answer.body))["statsDay"]["avgpt"] == 20.0

    run(told)


def test_tables_of_a_new_broker_have_the_version_that_a_slave_asks_for(tmp_path: Path) -> None:
    """A real slave of a master without offsets wrote an error with its stack each minute: "dataVersion" is null."""

    async def told() -> None:
        async with asking(tmp_path) as client:
            for code in (21, 43, 45, 201):
                assert b'"dataVersion"' in bytes((await client.ask(code)).body)

    run(told)

"""A broker's statistics: kinds of messages, rates, and durations of requests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from brokers import asking_broker, run_scenario

from engine.broker.send_message import put_pending
from engine.broker.stats import (
    GET_NUMS,
    HALF_COUNTS,
    MAX_OPEN_REQUESTS,
    NORMAL,
    PUT_NUMS,
    PUT_SIZE,
    BrokerStats,
    HalfMessages,
    Rates,
    RpcKind,
    RpcLatency,
    Totals,
    ValueHistogram,
    kind_of,
)
from engine.codec import pop as codec
from engine.mapped.disk import RealDisk
from engine.remoting.exchanges import CAME, CLOSED, LATER, WENT, FrameEvent
from engine.remoting.frame import ANSWER, ONE_WAY, Command


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, "normal"),
        ({"TRAN_MSG": "true", "DELAY": "1"}, "transaction"),
        ({"TRAN_MSG": "false"}, "normal"),
        ({"__SHARDINGKEY": "a", "DELAY": "1"}, "fifo"),
        ({"TIMER_DELAY_MS": "5"}, "delay"),
    ],
)
def test_the_kind_of_a_message(properties: dict[str, str], kind: str) -> None:
    assert kind_of(properties) == kind


def test_flows_add_up() -> None:
    stats = BrokerStats()
    stats.put["a", "normal"].add(2, 300)
    stats.put["a", "normal"].add(1, 100)
    assert (stats.put["a", "normal"].messages, stats.put["a", "normal"].size) == (3, 400)


def test_values_fall_into_buckets_and_add_up() -> None:
    spread = ValueHistogram((10, 100))
    for value in (0, 10, 11, 100, 101, 7):
        spread.add(value)
    assert (spread.counts, spread.total) == ([3, 2, 1], 229)


def test_timers_are_counted_as_they_come_and_go() -> None:
    stats = BrokerStats()
    stats.count_timer_in("a", 59)
    stats.count_timer_in("a", 61)
    stats.count_timer_out("a")
    assert (stats.timers_in["a"], stats.timers_out["a"]) == (2, 1)
    assert stats.delays["a"].counts[:2] == [1, 1]


def rpc_event(kind: int, code: int, opaque: int, us: int = 0, flag: int = 0) -> FrameEvent:
    return FrameEvent(us, 1, kind, b"", Command(code, opaque=opaque, flag=flag))


def test_requests_are_counted_by_how_long_they_took() -> None:
    rpc = RpcLatency()
    for frame_event in (
        rpc_event(CAME, 310, 1),
        rpc_event(WENT, 0, 1, 999, ANSWER),  # below 1 ms: RocketMQ counts whole milliseconds
        rpc_event(CAME, 310, 2),
        rpc_event(WENT, 0, 2, 4_000, ANSWER),
        rpc_event(CAME, 11, 3),
        rpc_event(LATER, 19, 3, 9_000_000, ANSWER),
        rpc_event(CAME, 15, 4, flag=ONE_WAY),
        rpc_event(WENT, 40, 5),
        rpc_event(CAME, 0, 5, 7_000, ANSWER),  # requests of the broker itself are not counted as a client's
        rpc_event(WENT, 0, 6, 8_000, ANSWER),
        rpc_event(CAME, 310, 7),
        FrameEvent(0, 1, CLOSED),
        rpc_event(WENT, 0, 7, 8_000, ANSWER),
    ):
        rpc.take(frame_event)
    reported = {kind: (spread.counts, spread.total) for kind, spread in rpc.spreads.items()}
    assert reported == {
        RpcKind("send_message_v2", "success", False, "success"): ([1, 0, 1, 0, 0, 0, 0, 0, 0, 0], 4),
        RpcKind("pull_message", "pull_not_found", True, "success"): ([0] * 9 + [1], 9_000),
        RpcKind("update_consumer_offset", "success", False, "oneway"): ([1] + [0] * 9, 0),
    }


def test_unanswered_requests_do_not_accumulate() -> None:
    rpc = RpcLatency()
    for opaque in range(MAX_OPEN_REQUESTS + 5):
        rpc.take(rpc_event(CAME, 310, opaque))
    assert len(rpc._asked[1]) == MAX_OPEN_REQUESTS


BROKER_WROTE = (
    b'{"dataVersion":{"counter":329,"stateVersion":0,"timestamp":1795248845298},"transactionCount":{"OrderEvents":'
    b'{"count":6,"timeStamp":1795248845298},"PaymentEvents":{"count":-1,"timeStamp":1795248834751}}}'
)


def test_the_count_of_half_messages_continues_from_a_brokers_file(tmp_path: Path) -> None:
    disk, file, half = RealDisk(), tmp_path / HALF_COUNTS, HalfMessages()
    file.write_bytes(BROKER_WROTE)
    half.load(disk, file)
    assert half == {"OrderEvents": 6, "PaymentEvents": -1}
    half.save(disk, file, 1_800_000_000_000)
    assert file.read_bytes() == BROKER_WROTE, "nothing has changed"
    half["OrderEvents"] -= 1
    half.save(disk, file, 1_800_000_000_000)
    expected = BROKER_WROTE.replace(b"329", b"330").replace(b":6,", b":5,").replace(b"1795248845298", b"1800000000000")
    assert file.read_bytes() == expected
    assert file.with_name(HALF_COUNTS + ".bak").read_bytes() == BROKER_WROTE


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"transactionCount":5}', b'{"dataVersion":{"counter":"x"}}'])
def test_the_count_of_half_messages_begins_at_zero_with_an_invalid_file(tmp_path: Path, text: bytes) -> None:
    file, half = tmp_path / HALF_COUNTS, HalfMessages()
    file.write_bytes(text)
    half.load(RealDisk(), file)
    assert not half
    half["Orders"] += 1
    half.save(RealDisk(), file, 7)
    second_messages = HalfMessages()
    second_messages.load(RealDisk(), file)
    assert second_messages == {"Orders": 1}


START = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.ms = START

    def __call__(self) -> int:
        return self.ms


def counting() -> tuple[Rates, BrokerStats, Clock]:
    stats, clock = BrokerStats(), Clock()
    counters = lambda: {"dispatch.units": sum(flow.messages for flow in stats.put.values())}  # noqa: E731
    return Rates(stats, counters, clock, "C"), stats, clock


def test_rates_are_those_of_the_last_seconds_or_of_the_time_since_the_start() -> None:
    rates, stats, clock = counting()
    for second in range(1, 121):
        clock.ms = START + second * 1000
        stats.put["Orders", NORMAL].add(5 if second > 60 else 1, 100)
        stats.got["readers", "Orders", None].add(2, 100)
        rates.step()
        if second == 4:
            assert [round(rate, 6) for rate in rates.per_second().put] == [1.0, 1.0, 1.0]
    put, got = rates.per_second().put, rates.per_second().got
    assert [round(rate, 3) for rate in put] == [5.0, 5.0, 3.0]
    assert [round(rate, 3) for rate in got] == [2.0, 2.0, 2.0]


def test_sums_of_a_minute_and_an_hour_by_topic_and_group() -> None:
    rates, stats, clock = counting()
    assert rates.of(PUT_NUMS, "Orders") is None
    for step in range(1, 31):
        clock.ms = START + step * 10_000
        stats.put["Orders", NORMAL].add(2, 300)
        stats.got["readers", "Orders", None].add(4, 600)
        rates.step()
    reported = rates.of(PUT_NUMS, "Orders")
    assert reported is not None
    assert reported["statsMinute"] == {"avgpt": 2.0, "sum": 12, "tps": 0.2}
    assert reported["statsHour"] == {"avgpt": 2.0, "sum": 60, "tps": 0.2}
    assert reported["statsDay"] == reported["statsHour"]
    size, read = rates.of(PUT_SIZE, "Orders"), rates.of(GET_NUMS, "Orders@readers")
    assert size is not None and size["statsMinute"]["avgpt"] == 300.0  # noqa: PT018
    assert read is not None and read["statsHour"]["sum"] == 120  # noqa: PT018
    assert rates.of("BROKER_PUT_NUMS", "C")["statsHour"]["sum"] == 60  # type: ignore[index]
    assert rates.of(GET_NUMS, "Orders@others") is None
    for _ in range(3):
        stats.count_own_put("Orders", 100)
    assert rates.of(PUT_NUMS, "Orders")["statsHour"]["sum"] == 63  # type: ignore[index]
    assert rates.of("BROKER_PUT_NUMS", "C")["statsHour"]["sum"] == 63  # type: ignore[index]
    stats.count_own_put("Late", 100)
    assert rates.of(PUT_SIZE, "Late")["statsMinute"]["sum"] == 100  # type: ignore[index]
    assert rates.put_tps("Late") > 0


def test_totals_at_midnight_are_kept_for_two_days() -> None:
    rates, stats, clock = counting()
    for day in range(3):
        clock.ms = START + day * 86_400_000
        rates.step()
        stats.put["Orders", NORMAL].add(10, 100)
    assert (rates.yesterday_morning, rates.today_morning) == (Totals(10, 0), Totals(20, 0))


def test_administrators_get_the_counted_rates(tmp_path: Path) -> None:
    """``clusterList`` showed rates of 0.0, and ``statsAll`` showed no rows, whatever traffic the broker had."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
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

    run_scenario(scenario)


def test_tables_of_a_new_broker_have_the_version_that_a_slave_asks_for(tmp_path: Path) -> None:
    """A real slave of a master without offsets logged an error with its stack trace each minute: ``dataVersion`` is
    null.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for code in (21, 43, 45, 201):
                assert b'"dataVersion"' in bytes((await client.ask(code)).body)

    run_scenario(scenario)


def test_calls_that_found_and_missed_timers_and_slaves_have_rates() -> None:
    stats, clock = BrokerStats(), Clock()
    results, sent = [0, 0], {"slave": 0}
    counters = lambda: {"dispatch.units": 0, "get.found": results[0], "get.missed": results[1]}  # noqa: E731
    rates = Rates(stats, counters, clock, "C", tuple, lambda: sent)
    for second in range(1, 21):
        clock.ms = START + second * 1000
        results[0] += 3
        results[1] += 2
        sent["slave"] += 700
        stats.timers_in["T"] += 4
        stats.timers_out["T"] += 1
        rates.step()
    per_second = rates.per_second()
    assert [
        round(values[0], 6)
        for values in (per_second.found, per_second.missed, per_second.timers_in, per_second.timers_out)
    ] == [
        3,
        2,
        4,
        1,
    ]
    assert rates.sent_last_second == {"slave": 700}
    del sent["slave"]
    rates.step()
    assert rates.sent_last_second == {}


def test_times_of_puts_are_those_of_the_last_whole_minute() -> None:
    """RocketMQ reports none before the first minute is over."""
    clock, times = Clock(), [5, 1]
    rates = Rates(BrokerStats(), lambda: {"dispatch.units": 0}, clock, "C", lambda: tuple(times))
    times[:] = [9, 2]
    rates.step()
    assert rates.last_minute is None
    clock.ms += 60_001
    rates.step()
    assert rates.last_minute == (4, 1)
    clock.ms += 60_001
    rates.step()
    assert rates.last_minute == (0, 0)


def test_rates_for_administrators_are_counted(tmp_path: Path) -> None:
    """Requests 28, 202, 208 and 315 showed 0.0 for rates that were never counted."""

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            for number in range(5):
                await client.send("Orders", b"%d" % number)
            client.server.broker.store.wait_dispatched()
            await client.pull("Orders", 0)
            await client.pull("Orders", 5)
            assert (await client.ask(36, offset=0, group="readers", delayLevel=0)).code == 0
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            results, missed, total = (
                float(table[name].split()[0]) for name in ("getFoundTps", "getMissTps", "getTotalTps")
            )
            assert results > 0
            assert missed > 0
            assert total >= results + missed - 1e-9
            assert table["putMessageDistributeTime"] == "null"
            client.server.broker.rates.last_minute = client.server.broker.store.put_times()
            table = json.loads(bytes((await client.ask(28)).body))["table"]
            rows = dict(row.split(":") for row in table["putMessageDistributeTime"].split())
            assert list(rows)[:2] == ["[<=0ms]", "[0~10ms]"]
            assert sum(map(int, rows.values())) >= 6
            assert b'"topicPutTps":0.0' not in bytes((await client.ask(202, topic="Orders")).body)
            assert b'"consumeTps":0.0' not in bytes((await client.ask(208, consumerGroup="readers")).body)
            back = json.loads(
                bytes((await client.ask(315, statsName="SNDBCK_PUT_NUMS", statsKey="Orders@readers")).body)
            )
            assert back["statsMinute"]["sum"] == 1

    run_scenario(scenario)


def test_latencies_checkpoints_and_acknowledgements_are_counted(tmp_path: Path) -> None:
    """Request 28 left out rows that a real 5.3.3 has, or showed a fixed 0. Request 315 had no latencies and no pop
    figures.
    """

    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:

            async def figures(name: str, key: str) -> tuple[int, float] | None:
                answer = await client.ask(315, statsName=name, statsKey=key)
                if answer.code != 0:
                    return None
                row = json.loads(bytes(answer.body))["statsMinute"]
                return row["sum"], row["avgpt"]

            broker = client.server.broker
            for number in range(5):
                await client.send("Orders", b"%d" % number)
            broker.store.wait_dispatched()
            await client.pull("Orders", 0)
            pop = {
                "consumerGroup": "readers",
                "topic": "Orders",
                "queueId": 0,
                "maxMsgNums": 3,
                "invisibleTime": 60_000,
                "pollTime": 0,
                "bornTime": 0,
                "initMode": 0,
                "order": "false",
            }
            popped = await client.ask(200050, **pop)
            assert popped.code == 0
            fields = popped.fields
            handle = codec.Handle(
                0, int(fields["popTime"]), 60_000, int(fields["reviveQid"]), "0", broker.config.broker_name
            )
            ack = {"consumerGroup": "readers", "topic": "Orders", "queueId": 0, "offset": 0}
            assert (await client.ask(200051, **ack, extraInfo=handle.of_message(0, 0))).code == 0
            later = {**ack, "offset": 1, "invisibleTime": 5000}
            assert (await client.ask(200053, **later, extraInfo=handle.of_message(0, 1))).code == 0
            assert await figures("GROUP_CK_NUMS", "Orders@readers") == (2, 1.0)
            assert await figures("GROUP_ACK_NUMS", "Orders@readers") == (2, 1.0)
            cluster = broker.config.cluster
            assert await figures("BROKER_CK_NUMS", cluster) == (2, 0.0)
            assert await figures("BROKER_ACK_NUMS", cluster) == (2, 0.0)
            assert await figures("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", cluster) == (5, 0.0)
            assert await figures("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC", cluster) == (8, 0.0)
            assert broker.stats.put_ms["Orders", 0].calls == 5
            broker.stats.put_ms["Orders", 0].size += 50
            average = (await figures("TOPIC_PUT_LATENCY", "0@Orders") or (0, 0.0))[1]
            assert average >= 10.0
            assert await figures("TOPIC_PUT_LATENCY", "Orders") is None
            assert await figures("GROUP_GET_LATENCY", "0@Orders@readers") is not None
            assert broker.stats.got_ms["readers", "Orders", 0].calls == 2
            assert await figures("GROUP_GET_FROM_DISK_NUMS", "0@Orders@readers") is None

    run_scenario(scenario)


def test_rows_of_a_brokers_status_are_measured_or_left_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            broker = client.server.broker
            sent = [await client.send("Orders", bytes(1000)) for _ in range(4)]
            assert {answer.code for answer in sent} == {0}
            broker.store.wait_dispatched()

            async def table() -> dict[str, str]:
                return json.loads(bytes((await client.ask(28)).body))["table"]

            rows = await table()
            end = int(rows["commitLogMaxOffset"])
            assert int(rows["putMessageSizeTotal"]) == end
            assert float(rows["putMessageAverageSize"]) == end / 4
            assert rows["commitLogDirCapacity"].startswith("Total : ")
            assert rows["pageCacheLockTimeMills"] == "0"
            assert not [name for name in rows if name.endswith("Capacity") and name != "commitLogDirCapacity"]
            assert "dispatchMaxBuffer" not in rows
            log = broker.store.parts.commit_log
            log.locked_since = log.clock() - 70
            assert int((await table())["pageCacheLockTimeMills"]) >= 70
            log.locked_since = 0
            broker.sends.busy = True
            waiting = asyncio.ensure_future(client.send("Orders", b"waits"))
            await asyncio.sleep(0.05)
            rows = await table()
            assert rows["sendThreadPoolQueueSize"] == "1"
            assert int(rows["sendThreadPoolQueueHeadWaitTimeMills"]) >= 40
            broker.sends.busy = False
            put_pending(broker)
            assert (await waiting).code == 0

    run_scenario(scenario)

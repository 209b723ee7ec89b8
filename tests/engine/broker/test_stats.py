"""What kind a message is, by the properties that it was sent with; and how long requests took."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.broker.stats import HALF_COUNTS, MOST_ASKED, BrokerStats, HalfMessages, RpcKind, RpcLatency, Spread, kind_of
from engine.mapped.disk import RealDisk
from engine.remoting.exchanges import CAME, CLOSED, LATER, WENT, FrameEvent
from engine.remoting.frame import ANSWER, ONE_WAY, Command


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({}, "normal"),
        ({"TRAN_MSG": "true", "DELAY": "1"}, "transaction"),
        ({"TRAN_MSG": "false"}, "normal"),
        ({"__SHARDINGKEY": "a", "DELAY": "1"}, "fifo"),
        ({"TIMER_DELAY_MS": "5"}, "delay"),
    ],
)
def test_the_kind_of_a_message(found: dict[str, str], kind: str) -> None:
    assert kind_of(found) == kind


def test_flows_add_up() -> None:
    stats = BrokerStats()
    stats.put["a", "normal"].add(2, 300)
    stats.put["a", "normal"].add(1, 100)
    assert (stats.put["a", "normal"].messages, stats.put["a", "normal"].size) == (3, 400)


def test_values_fall_into_buckets_and_add_up() -> None:
    spread = Spread((10, 100))
    for value in (0, 10, 11, 100, 101, 7):
        spread.add(value)
    assert (spread.counts, spread.total) == ([3, 2, 1], 229)


def test_timers_are_counted_as_they_come_and_go() -> None:
    stats = BrokerStats()
    stats.timer_came("a", 59)
    stats.timer_came("a", 61)
    stats.timer_left("a")
    assert (stats.timers_in["a"], stats.timers_out["a"]) == (2, 1)
    assert stats.delays["a"].counts[:2] == [1, 1]


def seen(kind: int, code: int, opaque: int, us: int = 0, flag: int = 0) -> FrameEvent:
    return FrameEvent(us, 1, kind, b"", Command(code, opaque=opaque, flag=flag))


def test_requests_are_counted_by_how_long_they_took() -> None:
    rpc = RpcLatency()
    for one in (
        seen(CAME, 310, 1),
        seen(WENT, 0, 1, 999, ANSWER),  # below 1 ms: RocketMQ counts whole ones
        seen(CAME, 310, 2),
        seen(WENT, 0, 2, 4_000, ANSWER),
        seen(CAME, 11, 3),
        seen(LATER, 19, 3, 9_000_000, ANSWER),
        seen(CAME, 15, 4, flag=ONE_WAY),
        seen(WENT, 40, 5),
        seen(CAME, 0, 5, 7_000, ANSWER),  # what the broker asks is none of a client's
        seen(WENT, 0, 6, 8_000, ANSWER),
        seen(CAME, 310, 7),
        FrameEvent(0, 1, CLOSED),
        seen(WENT, 0, 7, 8_000, ANSWER),
    ):
        rpc.take(one)
    told = {kind: (spread.counts, spread.total) for kind, spread in rpc.spreads.items()}
    assert told == {
        RpcKind("send_message_v2", "success", False, "success"): ([1, 0, 1, 0, 0, 0, 0, 0, 0, 0], 4),
        RpcKind("pull_message", "pull_not_found", True, "success"): ([0] * 9 + [1], 9_000),
        RpcKind("update_consumer_offset", "success", False, "oneway"): ([1] + [0] * 9, 0),
    }


def test_requests_that_nobody_answers_do_not_pile_up() -> None:
    rpc = RpcLatency()
    for opaque in range(MOST_ASKED + 5):
        rpc.take(seen(CAME, 310, opaque))
    assert len(rpc._asked[1]) == MOST_ASKED


BROKER_WROTE = (
    b'{"dataVersion":{"counter":329,"stateVersion":0,"timestamp":1795248845298},"transactionCount":{"OrderEvents":'
    b'{"count":6,"timeStamp":1795248845298},"PaymentEvents":{"count":-1,"timeStamp":1795248834751}}}'
)


def test_half_messages_go_on_from_what_a_broker_wrote(tmp_path: Path) -> None:
    disk, file, half = RealDisk(), tmp_path / HALF_COUNTS, HalfMessages()
    file.write_bytes(BROKER_WROTE)
    half.load(disk, file)
    assert half == {"OrderEvents": 6, "PaymentEvents": -1}
    half.save(disk, file, 1_800_000_000_000)
    assert file.read_bytes() == BROKER_WROTE, "nothing has changed"
    half["OrderEvents"] -= 1
    half.save(disk, file, 1_800_000_000_000)
    wanted = BROKER_WROTE.replace(b"329", b"330").replace(b":6,", b":5,").replace(b"1795248845298", b"1800000000000")
    assert file.read_bytes() == wanted
    assert file.with_name(HALF_COUNTS + ".bak").read_bytes() == BROKER_WROTE


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"transactionCount":5}', b'{"dataVersion":{"counter":"x"}}'])
def test_half_messages_begin_at_nothing_where_the_file_is_none(tmp_path: Path, text: bytes) -> None:
    file, half = tmp_path / HALF_COUNTS, HalfMessages()
    file.write_bytes(text)
    half.load(RealDisk(), file)
    assert not half
    half["Orders"] += 1
    half.save(RealDisk(), file, 7)
    again = HalfMessages()
    again.load(RealDisk(), file)
    assert again == {"Orders": 1}

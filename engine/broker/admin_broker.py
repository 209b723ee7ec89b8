"""Requests about the broker itself: changes of its configuration while it runs, and its figures
(docs/protocol/broker.md#admin).

Java: ``AdminBrokerProcessor.getBrokerConfig``, ``updateBrokerConfig``, ``prepareRuntimeInfo``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.broker.json_bodies import write
from engine.broker.stats import PerSecond
from engine.errors import UsageError
from engine.remoting.codes import STORE_RELEASE, Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import VERSION, Command, answer_to
from engine.remoting.settings import key_value_pairs, overlay
from engine.store.query_message import earliest_message_time
from engine.system_names import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


VERSION_NAME = "V5_3_3"
"""Name of the version number :data:`engine.remoting.frame.VERSION`."""
DAYS = ("YesterdayMorning", "TodayMorning")
POOLS = tuple(f"{name}ThreadPoolQueue" for name in ("send", "pull", "litePull", "query", "ack"))
"""Queues of requests in RocketMQ; here no request waits."""
HELD_PULLS = "heldPulls"
"""Field of a request 28 that asks for a figure which RocketMQ's brokers do not have, and the name of that figure:
``[[topic, queue id, consumer group, pulls that are held], …]``.
"""
_SHARES = {"99": 0.99, "999": 0.999}
FIXED = frozenset({"brokerName", "brokerClusterName", "brokerId", "brokerIP1", "listenPort", "namesrvAddr"})
"""Keys of the broker that cannot change while it runs."""


def configuration(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_CONFIG: ``key=value`` lines, of the broker and of its store."""
    numbers = {"counter": 0, "timestamp": broker.started}
    if broker.store.rules.major >= 5:
        numbers["stateVersion"] = 0
    version = json.dumps(dict(sorted(numbers.items())), separators=(",", ":"))
    lines = broker.config.lines() + key_value_pairs(broker.store.config)
    return answer_to(request, fields={"version": version}, body="".join(f"{k}={v}\n" for k, v in lines).encode())


def reconfigure(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """UPDATE_BROKER_CONFIG: apply ``key=value`` lines to the configuration. A key of the store, and a key that cannot
    change while the broker runs, are refused (RocketMQ accepts any line, and applies some of them).
    """
    text = bytes(request.body).decode("utf-8", "replace")
    try:
        config, other_keys = overlay(broker.config, text)
    except UsageError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    old_values, new_values = dict(broker.config.lines()), dict(config.lines())
    store_values = dict(key_value_pairs(broker.store.config))
    requested_values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    fixed = [key for key in sorted(FIXED) if old_values[key] != new_values[key]]
    fixed += [
        key for key in other_keys if key in store_values and requested_values.get(key, "").strip() != store_values[key]
    ]
    if fixed:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"cannot be changed while the broker runs: {', '.join(fixed)}")
    broker.config = config
    return answer_to(request)


def runtime(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_RUNTIME_INFO: runtime figures as texts. Figures that are not counted here are left out. Held pulls are
    reported only to a client that asks for them; all others get what RocketMQ's broker answers.
    """
    store = broker.store
    positions, counters, parts = store.positions(), store.counters(), store.parts
    put = counters["dispatch.units"]
    failed = sum(number for name, number in counters.items() if name.startswith("put.") and name != "put.calls")
    rates = broker.rates.per_second()
    total_rates = [hits + misses for hits, misses in zip(rates.found, rates.missed, strict=True)]
    mornings = broker.rates.yesterday_morning, broker.rates.today_morning
    table = {
        "bootTimestamp": broker.started,
        "brokerActive": "true",
        "brokerVersion": VERSION,
        "brokerVersionDesc": VERSION_NAME,
        STORE_RELEASE: store.release,
        "earliestMessageTimeStamp": earliest_message_time(store.parts.log),
        "runtime": _since(broker.now() - broker.started),
        "startAcceptSendRequestTimeStamp": broker.config.accept_sends_from,
        "commitLogMinOffset": max(positions.min, 0),
        "commitLogMaxOffset": positions.wrote,
        "dispatchBehindBytes": positions.behind,
        "commitLogDiskRatio": parts.disk.usage(parts.paths.commitlog),
        "consumeQueueDiskRatio": parts.disk.usage(parts.queue_folder),
        "putMessageTimesTotal": put,
        "msgPutTotalTodayNow": put,
        "msgGetTotalTodayNow": broker.rates.totals().got,
        "putMessageFailedTimes": failed,
        "remainHowManyDataToFlush": f"{positions.unflushed} B",
        f"commitLogDiskRatio_{parts.paths.commitlog}": parts.disk.usage(parts.paths.commitlog),
        **{
            f"putLatency{digits}": f"{positions.put_latency.quantile(share) / 1e6:.2f}"
            for digits, share in _SHARES.items()
        },
        "pageCacheLockTimeMills": 0,
        **{f"{pool}{name}": 0 for pool in POOLS for name in ("Size", "HeadWaitTimeMills")},
        "putTps": _rates(rates.put),
        "getFoundTps": _rates(rates.found),
        "getMissTps": _rates(rates.missed),
        "getTotalTps": _rates(total_rates),
        "getTransferredTps": _rates(rates.got),
        "putMessageDistributeTime": _put_times(broker.rates.last_minute),
        "putMessageEntireTimeMax": counters["slowest.putMs"],
        "getMessageEntireTimeMax": counters["slowest.getMs"],
        **{f"msgPutTotal{day}": totals.put for day, totals in zip(DAYS, mornings, strict=True)},
        **{f"msgGetTotal{day}": totals.got for day, totals in zip(DAYS, mornings, strict=True)},
        **_levels(broker),
        **_timers(broker, rates),
    }
    if request.fields.get(HELD_PULLS) == "true":
        held_pulls = broker.held.by_group().items()
        rows = [[*queue, group, count] for queue, groups in held_pulls for group, count in groups.items()]
        table[HELD_PULLS] = json.dumps(rows, separators=(",", ":"))
    return answer_to(request, body=write({"table": {name: str(value) for name, value in table.items()}}))


def _since(ms: int) -> str:
    days, seconds = divmod(ms // 1000, 86_400)
    return f"[ {days} days, {seconds // 3600} hours, {seconds // 60 % 60} minutes, {seconds % 60} seconds ]"


def _levels(broker: Broker) -> dict[str, str]:
    """Return the offset of each delay level, and the end of its queue; before 5.x only for levels that delivered
    something.
    """
    table, store = {}, broker.store
    for level in range(1, len(store.config.delay_levels()) + 1):
        offset, end = store.tables.delay_offset(level), store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
        if offset > 0 or (end > 0 and store.rules.major >= 5):
            table[f"scheduleMessageOffset_{level}"] = f"{offset},{end}"
    return table


def _rates(values: Sequence[float]) -> str:
    return " ".join(map(str, values))


_PUT_TIMES = (
    *("<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s"),
    *("1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~"),
)


def _put_times(counts: Sequence[int] | None) -> str:
    """Spread of put times in the last complete minute, in RocketMQ's spelling; "null" before there is one."""
    if counts is None:
        return "null"
    return "".join(f"[{words}]:{count} " for words, count in zip(_PUT_TIMES, counts, strict=True))


def _timers(broker: Broker, rates: PerSecond) -> dict[str, str]:
    if broker.timers is None:
        return {}
    delay_ms, waiting = broker.timers.behind()
    return {
        "timerReadBehind": str(delay_ms),
        "timerOffsetBehind": str(waiting),
        "timerCongestNum": str(broker.timers.left_to_put()),
        "timerEnqueueTps": str(rates.timers_in[0]),
        "timerDequeueTps": str(rates.timers_out[0]),
    }


ANSWERS: dict[int, Processor] = {
    RequestCode.UPDATE_BROKER_CONFIG: reconfigure,
    RequestCode.GET_BROKER_CONFIG: configuration,
    RequestCode.GET_BROKER_RUNTIME_INFO: runtime,
}

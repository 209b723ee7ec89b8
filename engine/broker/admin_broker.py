"""What a broker tells of itself, and how it is told otherwise while it runs (docs/protocol/broker.md#admin).

Java: ``AdminBrokerProcessor.getBrokerConfig``, ``updateBrokerConfig``, ``prepareRuntimeInfo``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.broker.broker import Broker, Header, Processor
from engine.broker.json_bodies import write
from engine.broker.rates import PerSecond
from engine.broker.topics import SCHEDULE
from engine.errors import UsageError
from engine.remoting.codes import STORE_RELEASE, Answer, Refused
from engine.remoting.connection import Connection
from engine.remoting.frame import VERSION, Command, answer_to
from engine.remoting.settings import over, pairs

VERSION_NAME = "V5_3_3"
"""What a broker of that number (:data:`engine.remoting.frame.VERSION`) calls itself."""
DAYS = ("YesterdayMorning", "TodayMorning")
POOLS = tuple(f"{name}ThreadPoolQueue" for name in ("send", "pull", "litePull", "query", "ack"))
"""Where requests wait in RocketMQ; here none does."""
HELD_PULLS = "heldPulls"
"""The field by which a request 28 asks for what no broker of RocketMQ tells, and the figure that then stands beside the
others: ``[[topic, queue id, consumer group, pulls that are held], …]``.
"""
_SHARES = {"99": 0.99, "999": 0.999}
FIXED = frozenset({"brokerName", "brokerClusterName", "brokerId", "brokerIP1", "listenPort", "namesrvAddr"})
"""Keys of a broker's own that hold for as long as it runs."""


def configuration(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """26: ``key=value`` lines, of the broker and of its store."""
    numbers = {"counter": 0, "timestamp": broker.started}
    if broker.store.rules.major >= 5:
        numbers["stateVersion"] = 0
    version = json.dumps(dict(sorted(numbers.items())), separators=(",", ":"))
    lines = broker.config.lines() + pairs(broker.store.config)
    return answer_to(request, fields={"version": version}, body="".join(f"{k}={v}\n" for k, v in lines).encode())


def reconfigure(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """25: ``key=value`` lines over what holds. A key of the store, and what cannot change while the broker runs, is
    refused (RocketMQ takes any line, and heeds some of them).
    """
    text = bytes(request.body).decode("utf-8", "replace")
    try:
        config, others = over(broker.config, text)
    except UsageError as error:
        raise Refused(Answer.SYSTEM_ERROR, str(error)) from error
    before, after = dict(broker.config.lines()), dict(config.lines())
    standing = dict(pairs(broker.store.config))
    told = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    fixed = [key for key in sorted(FIXED) if before[key] != after[key]]
    fixed += [key for key in others if key in standing and told.get(key, "").strip() != standing[key]]
    if fixed:
        raise Refused(Answer.SYSTEM_ERROR, f"cannot be changed while the broker runs: {', '.join(fixed)}")
    broker.config = config
    return answer_to(request)


def runtime(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """28: figures as texts. What is not counted here is not among them. Held pulls are told to those alone
    that ask for them: to all others it answers as RocketMQ's broker does.
    """
    store = broker.store
    at, counted, parts = store.positions(), store.counters(), store.parts
    put = counted["dispatch.units"]
    failed = sum(number for name, number in counted.items() if name.startswith("put.") and name != "put.calls")
    rates = broker.rates.per_second()
    total_rates = [found + missed for found, missed in zip(rates.found, rates.missed, strict=True)]
    mornings = broker.rates.yesterday_morning, broker.rates.today_morning
    table = {
        "bootTimestamp": broker.started,
        "brokerActive": "true",
        "brokerVersion": VERSION,
        "brokerVersionDesc": VERSION_NAME,
        STORE_RELEASE: store.release,
        "earliestMessageTimeStamp": store.earliest_message_time(),
        "runtime": _since(broker.now() - broker.started),
        "startAcceptSendRequestTimeStamp": broker.config.accept_sends_from,
        "commitLogMinOffset": max(at.min, 0),
        "commitLogMaxOffset": at.wrote,
        "dispatchBehindBytes": at.behind,
        "commitLogDiskRatio": parts.disk.usage(parts.paths.commitlog),
        "consumeQueueDiskRatio": parts.disk.usage(parts.queue_folder),
        "putMessageTimesTotal": put,
        "msgPutTotalTodayNow": put,
        "msgGetTotalTodayNow": broker.rates.totals().got,
        "putMessageFailedTimes": failed,
        "remainHowManyDataToFlush": f"{at.unflushed} B",
        f"commitLogDiskRatio_{parts.paths.commitlog}": parts.disk.usage(parts.paths.commitlog),
        **{f"putLatency{digits}": f"{at.put_latency.quantile(share) / 1e6:.2f}" for digits, share in _SHARES.items()},
        "pageCacheLockTimeMills": 0,
        **{f"{pool}{name}": 0 for pool in POOLS for name in ("Size", "HeadWaitTimeMills")},
        "putTps": _rates(rates.put),
        "getFoundTps": _rates(rates.found),
        "getMissTps": _rates(rates.missed),
        "getTotalTps": _rates(total_rates),
        "getTransferredTps": _rates(rates.got),
        "putMessageDistributeTime": _put_times(broker.rates.last_minute),
        "putMessageEntireTimeMax": counted["slowest.putMs"],
        "getMessageEntireTimeMax": counted["slowest.getMs"],
        **{f"msgPutTotal{day}": totals.put for day, totals in zip(DAYS, mornings, strict=True)},
        **{f"msgGetTotal{day}": totals.got for day, totals in zip(DAYS, mornings, strict=True)},
        **_levels(broker),
        **_timers(broker, rates),
    }
    if request.fields.get(HELD_PULLS) == "true":
        held = broker.held.by_group().items()
        rows = [[*queue, group, count] for queue, groups in held for group, count in groups.items()]
        table[HELD_PULLS] = json.dumps(rows, separators=(",", ":"))
    return answer_to(request, body=write({"table": {name: str(value) for name, value in table.items()}}))


def _since(ms: int) -> str:
    days, seconds = divmod(ms // 1000, 86_400)
    return f"[ {days} days, {seconds // 3600} hours, {seconds // 60 % 60} minutes, {seconds % 60} seconds ]"


def _levels(broker: Broker) -> dict[str, str]:
    """Where each delay level stands, and its queue's end; before 5.x of levels only that delivered something."""
    found, store = {}, broker.store
    for level in range(1, len(store.config.delay_levels()) + 1):
        at, end = store.tables.delay_offset(level), store.max_offset_in_queue(SCHEDULE, level - 1)
        if at > 0 or (end > 0 and store.rules.major >= 5):
            found[f"scheduleMessageOffset_{level}"] = f"{at},{end}"
    return found


def _rates(values: Sequence[float]) -> str:
    return " ".join(map(str, values))


_PUT_TIMES = (
    *("<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s"),
    *("1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~"),
)


def _put_times(counts: Sequence[int] | None) -> str:
    """How many puts of the last whole minute took how long, as RocketMQ spells it; "null" before there was one."""
    if counts is None:
        return "null"
    return "".join(f"[{words}]:{count} " for words, count in zip(_PUT_TIMES, counts, strict=True))


def _timers(broker: Broker, rates: PerSecond) -> dict[str, str]:
    if broker.timers is None:
        return {}
    late, waiting = broker.timers.behind()
    return {
        "timerReadBehind": str(late),
        "timerOffsetBehind": str(waiting),
        "timerCongestNum": str(broker.timers.left_to_put()),
        "timerEnqueueTps": str(rates.timers_in[0]),
        "timerDequeueTps": str(rates.timers_out[0]),
    }


ANSWERS: dict[int, Processor] = {25: reconfigure, 26: configuration, 28: runtime}

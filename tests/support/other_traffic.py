"""Scenarios of RocketMQ clients against two servers, and the results that must be equal (``other_clients``).

A seed fixes topics, queues, bodies, tags, keys and their order. :data:`LACKS` names features that a client lacks: they
are left out.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from other_clients import Line, OtherClient, ServerPair, wait_until

CONFIG = {
    "brokerClusterName": "PeerCluster",
    "brokerFastFailureEnable": "false",
    "enablePropertyFilter": "true",
    "mappedFileSizeCommitLog": "1048576",
    "mappedFileSizeConsumeQueue": "6000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "osPageCacheBusyTimeOutMills": "600000",
    "messageDelayLevel": " ".join(["1s"] * 18),
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "2000",
    "transactionCheckMax": "8",
    "transactionOpBatchInterval": "100",
}
"""Of both brokers: small files, one second for each delay level, checks that come soon, but not before a decision is
written down: RocketMQ 5 gathers those. A real broker on a machine with other work would drop what waits for 200 ms
(``BrokerFastFailure``), or comes while its log is locked for a second: a one-way sender gets no error.
"""
LACKS: dict[str, frozenset[str]] = {
    "go": frozenset(),
    "node": frozenset({"unique ids", "async", "oneway", "batch", "orderly", "transactions", "admin"}),
    "python_cpp": frozenset(
        {
            "async",
            "sql",
            "admin",
            "unique ids of a batch",
            "begin of a broadcast",
            "limit of tries",
            "one message at a time",
            "early heartbeat",
            "stop behind a restart",
        }
    ),
    "java": frozenset(),
}
"""Scenarios that a client does not support. For C++ also those that fail at a real 5.3.3 as they do at ours:
``test_clients_get_the_same_results`` (``tests/clients/test_other_languages.py``) describes them.
"""
SERVERS = {"go": "5.3.3", "node": "5.3.3", "python_cpp": "5.3.3", "java": "4.9.7"}
"""The release of the servers that each client meets. Java's is 4.9.8, whose broker nobody published."""
TAGS = ("created", "paid", "shipped", "标签", "")
NUMBERS_OF_A_PULL = ("MAX_OFFSET", "MIN_OFFSET")
"""Properties that clients add to a message from the answer to a pull: they tell when it was asked."""
OF_TIME = frozenset({"CONSUME_START_TIME", "CLIENT_SEND_TIME", "BORN_TIMESTAMP", *NUMBERS_OF_A_PULL})


class ClientTraffic:
    """Scenarios of one client, setting and seed, and their results beside the client's own output."""

    def __init__(self, language: str, client: OtherClient, setting: ServerPair, seed: int) -> None:
        self.lacks = LACKS[language]
        self.client = client
        self.setting = setting
        self.facts: dict[str, Any] = {}
        self._seed = seed
        self._random = random.Random(seed)
        self._sent: dict[str, dict[str, Any]] = {}

    def named(self, word: str) -> str:
        """Return a topic's or group's name: two seeds share none."""
        return f"{word}{self._seed}"

    def message(self, topic: str, queue: int, key: str, **options: object) -> dict[str, Any]:
        """Return a message of the seed."""
        drawn = self._random
        words = " ".join(drawn.choice(("order", "北", "crate", "grün", "€")) for _ in range(drawn.randrange(3, 40)))
        output = {"topic": topic, "broker": "broker-a", "queue": queue, "key": key, "body": f"{key} {words}"}
        properties = {"amount": str(drawn.randrange(500)), "region": drawn.choice("ns")}
        return output | {"tag": drawn.choice(TAGS), "properties": properties} | options

    def note(self, messages: Iterable[dict[str, Any]]) -> None:
        """Remember sent messages for their expected receivers."""
        for record in messages:
            self._sent[record["key"]] = record

    def wanted(self, *topics: str, chosen: Callable[[dict[str, Any]], bool] = lambda _: True) -> list[tuple[str, int]]:
        return [(key, 1) for key, record in self._sent.items() if record["topic"] in topics and chosen(record)]

    def send(self, message: dict[str, Any], mode: str = "sync") -> None:
        """Send one message and wait until it is in the store, even without an acknowledgement."""
        self.note([message])
        offset_before = self.setting.max_offset(message["topic"], message["queue"]) if mode == "oneway" else 0
        self.client.run(do="send", id="p", mode=mode, message=message)
        if mode == "oneway":
            wait_until(
                lambda: self.setting.max_offset(message["topic"], message["queue"]) > offset_before,
                f"{message['key']} did not arrive",
            )

    def settled(self, groups: dict[str, dict[str, int]]) -> None:
        """Wait until each group's offset is at the end of its messages: a client that is stopped at once does not
        commit the messages that it has just consumed.
        """
        for group, topics in groups.items():
            for topic, queues in topics.items():
                for queue in range(queues):
                    end = self.setting.max_offset(topic, queue)
                    wait_until(
                        lambda position=(group, topic, queue), end=end: (self.setting.consumed(*position) or 0) >= end,
                        f"{group} does not get to {end} of {topic}-{queue}",
                    )

    def closing(self, groups: dict[str, dict[str, int]]) -> None:
        """Note the lengths of the queues of each group's topics, and the offsets of the group."""
        for group, topics in groups.items():
            for topic, queues in topics.items():
                for queue in range(queues):
                    self.facts[f"{topic}-{queue} has"] = self.setting.max_offset(topic, queue)
                    self.facts[f"{group} stands in {topic}-{queue}"] = self.setting.consumed(group, topic, queue)


def sends(t: ClientTraffic) -> None:
    """Every way to send; groups with all messages, tags, SQL92, in order, and two members that each get everything."""
    many, few = t.named("Events"), t.named("Ledger")
    t.setting.topic(many, 4)
    t.setting.topic(few, 2)
    t.client.run(do="producer", id="p", group=t.named("senders"))
    modes = [mode for mode in ("sync", "async", "oneway") if mode not in t.lacks]
    for number in range(60):
        t.send(t.message(many, number % 4, f"m{number}", flag=number % 3 * 7), modes[number % 5 % len(modes)])
    t.send(t.message(many, 1, "large", body="large " + "0123456789" * 900))
    for number in range(20):
        t.send(t.message(few, number % 2, f"o{number}"))
    if "batch" not in t.lacks:
        for number in range(3):
            batch = [t.message(many, number, f"b{number}-{item}") for item in range(5)]
            if "unique ids of a batch" not in t.lacks:  # or it is one message, and handed out as none of them
                t.note(batch)
            t.client.run(do="send", id="p", mode="sync", messages=batch)
    for number in range(4):  # behind what nobody can wait for: a tag that not every client reckons as the broker does
        t.send(t.message(many, number, f"last{number}", tag="paid"))
    everything = {"type": "TAG", "expression": "*"}
    t.client.run(do="consumer", id="all", group=t.named("all"), topics={many: everything, few: everything})
    paid = {many: {"type": "TAG", "expression": "paid || 标签"}}
    t.client.run(do="consumer", id="tags", group=t.named("tags"), topics=paid)
    if "sql" not in t.lacks:
        rich = {many: {"type": "SQL92", "expression": "amount BETWEEN 100 AND 400 AND region = 'n'"}}
        t.client.run(do="consumer", id="sql", group=t.named("sql"), topics=rich)
    if "orderly" not in t.lacks:
        t.client.run(
            do="consumer",
            id="ordered",
            group=t.named("ordered"),
            topics={few: everything},
            orderly=True,
            fails={"o4": 2},
        )
    wide = t.named("Wide") if "begin of a broadcast" in t.lacks else few
    _broadcast(t, wide)
    for number in range(20, 30):
        t.send(t.message(few, number % 2, f"o{number}"))
    t.client.until_received("all", *t.wanted(many, few))
    t.client.until_received("tags", *t.wanted(many, chosen=lambda row: row["tag"] == "paid"))
    if "sql" not in t.lacks:
        t.client.until_received("sql", *t.wanted(many, chosen=_rich))
    if "orderly" not in t.lacks:
        t.client.until_received("ordered", *t.wanted(few))
    for member in MEMBERS:
        t.client.until_received(member, *t.wanted(wide))
    t.settled({t.named("all"): {many: 4, few: 2}})
    for record in ("all", "tags", *MEMBERS, *({"sql", "ordered"} - {"sql", "ordered"} & _absent(t)), "p"):
        t.client.run(do="stop", id=record)
    t.closing({t.named("all"): {many: 4, few: 2}})


MEMBERS = ("wide-1", "wide-2")


def _broadcast(t: ClientTraffic, topic: str) -> None:
    """Start two members that each get everything. A client that cannot choose where they begin begins at the end: it
    has a topic of its own, with messages until both have begun.
    """
    if has_own_topic := "begin of a broadcast" in t.lacks:
        t.setting.topic(topic, 1)
    for member in MEMBERS:
        everything = {topic: {"type": "TAG", "expression": "*"}}
        t.client.run(do="consumer", id=member, group=t.named("wide"), topics=everything, broadcast=True)
    if not has_own_topic:
        return
    wait_until(lambda: _all_received(t, topic), "a member of a broadcast does not begin")
    for number in range(6):
        t.send(t.message(topic, 0, f"{WORD}{number}"))


def _all_received(t: ClientTraffic, topic: str) -> bool:
    """Return True if each member got one of the messages; otherwise send one more."""
    if all(t.client.received(member) for member in MEMBERS):
        return True
    word = {"topic": topic, "broker": "broker-a", "queue": 0, "key": LOUD, "body": "do you hear?", "tag": ""}
    t.client.run(do="send", id="p", mode="sync", message=word)
    return False


LOUD, WORD = "loud", "w"
"""The key of what is sent until somebody hears: how often differs; and how those begin that are sent behind it."""


def _rich(line: dict[str, Any]) -> bool:
    return 100 <= int(line["properties"]["amount"]) <= 400 and line["properties"]["region"] == "n"


def _absent(t: ClientTraffic) -> set[str]:
    return {consumer for consumer, lacking in (("sql", "sql"), ("ordered", "orderly")) if lacking in t.lacks}


def retries(t: ClientTraffic) -> None:
    """Failed messages come again, or end as dead letters; delayed ones come later."""
    topic, group = t.named("Tries"), t.named("tries")
    t.setting.topic(topic, 2)
    t.setting.topic(f"%RETRY%{group}", 1)  # or a client that looked for it too early looks again after 20 seconds
    t.client.run(do="producer", id="p", group=t.named("senders"))
    fails = {"r1": 1, "r3": 2, "r5": 99}
    tries = 17 if "limit of tries" in t.lacks else 3
    t.client.run(
        do="consumer",
        id="tries",
        group=group,
        topics={topic: {"type": "TAG", "expression": "*"}},
        maxReconsumeTimes=2,
        fails=fails,
    )
    for number in range(8):
        key = f"r{number}"
        t.send(t.message(topic, number % 2, key))
        if "one message at a time" in t.lacks and key in fails:  # or those beside it come again with it
            t.client.until_received("tries", (key, min(fails[key] + 1, tries)))
    for number in range(3):  # levels that nothing comes again by
        t.send(t.message(topic, number % 2, f"d{number}", delay=number + 10))
    t.client.until_received("tries", *t.wanted(topic), ("r1", 2), ("r3", 3), ("r5", tries))
    wait_until(lambda: t.setting.max_offset(f"%DLQ%{group}", 0) == 1, "no dead letter")
    t.settled({group: {topic: 2, f"%RETRY%{group}": 1}})
    t.client.run(do="stop", id="tries")
    t.client.run(do="stop", id="p")
    t.closing({group: {topic: 2, f"%RETRY%{group}": 1, f"%DLQ%{group}": 1}})


PLANS = ("commit", "rollback", "commit-at-first", "rollback-at-first", "commit-at-second")


def transactions(t: ClientTraffic) -> None:
    """Half messages that are decided at once, at the first check or at the second."""
    topic, group = t.named("Deeds"), t.named("deeds")
    t.setting.topic(topic, 2)
    t.client.run(do="producer", id="t", group=t.named("deciders"), plan="transactions")
    if "early heartbeat" in t.lacks:
        t.client.run(do="half", id="t", message=t.message(topic, 0, "first"), plan="rollback")
        wait_until(
            lambda: t.setting.ask(204, producerGroup=t.named("deciders")).code == 0, "no heartbeat of the producer"
        )
    t.client.run(do="consumer", id="deeds", group=group, topics={topic: {"type": "TAG", "expression": "*"}})
    for number in range(10):
        plan = PLANS[number % len(PLANS)]
        message = t.message(topic, number % 2, f"t{number}", plan=plan)
        t.note([message])
        t.client.run(do="half", id="t", message=message, plan=plan)
    t.client.until_received("deeds", *t.wanted(topic, chosen=lambda record: record["plan"].startswith("commit")))
    for number in (3, 8):
        key = f"t{number}"
        t.client.wait_until(
            lambda lines, key=key: any(row["event"] == "checked" and row["keys"] == [key] for row in lines), "no check"
        )
    t.settled({group: {topic: 2}})
    t.client.run(do="stop", id="deeds")
    t.client.run(do="stop", id="t")
    t.closing({group: {topic: 2}})


def restart(t: ClientTraffic) -> None:
    """The broker is restarted while a producer and a consumer run; both continue."""
    topic, group = t.named("Stays"), t.named("stays")
    t.setting.topic(topic, 2)
    t.client.run(do="producer", id="p", group=t.named("senders"))
    t.client.run(do="consumer", id="stays", group=group, topics={topic: {"type": "TAG", "expression": "*"}})
    for number in range(10):
        t.send(t.message(topic, number % 2, f"s{number}"))
    t.client.until_received("stays", *t.wanted(topic))
    t.settled({group: {topic: 2}})  # or the last of them come again
    t.setting.restart()
    for number in range(10, 20):
        message = t.message(topic, number % 2, f"s{number}")
        t.note([message])
        wait_until(lambda message=message: _stored(t, message), f"{message['key']} could not be sent")
    t.client.until_received("stays", *t.wanted(topic))
    t.settled({group: {topic: 2}})
    if "stop behind a restart" not in t.lacks:
        t.client.run(do="stop", id="stays")
        t.client.run(do="stop", id="p")
    t.closing({group: {topic: 2}})


def _stored(t: ClientTraffic, message: dict[str, Any]) -> bool:
    """Try once; the caller repeats a refused or unsent message."""
    output, error = t.client.try_command(do="send", id="p", mode="sync", message=message)
    sent = [record for record in output if record["event"] == "sent" and record["keys"] == [message["key"]]]
    return error is None and bool(sent) and "error" not in sent[-1]


def admin(t: ClientTraffic) -> None:
    """The client makes a topic, finds it in name server and list, and deletes it."""
    t.client.run(do="admin", topic=t.named("Made"), broker=t.setting.address, queues=3)


def has_places(language: str, scenario: str) -> bool:
    """Return True if each place in the log equals that of the other run: nothing else happens beside the sends, and the
    broker makes no unique ids.
    """
    return scenario == "sends" and not {"unique ids", "unique ids of a batch"} & LACKS[language]


SCENARIOS: dict[str, Callable[[ClientTraffic], None]] = {
    "sends": sends,
    "retries": retries,
    "transactions": transactions,
    "restart": restart,
    "admin": admin,
}


def compared(lines: list[Line], facts: dict[str, Any], *, places: bool) -> dict[str, Any]:
    """Return the results that must be equal in all settings: a dictionary by name.

    Left out: times, ports, unique ids (each becomes whether it is the one that the sender was told; an id made by the
    broker is longer with IPv6), values that depend on the time of a pull. Places in the log only with ``places``.
    """
    ids: dict[str, str] = {}
    out: dict[str, Any] = dict(facts)
    loud = sum(row["event"] == "sent" for row in lines if row.get("keys") == [LOUD])
    lines = [line for line in lines if line.get("keys") != [LOUD]]
    sent: defaultdict[str, list[Line]] = defaultdict(list)
    for record in lines:
        if record["event"] in ("sent", "half") and "error" not in record:
            ids |= zip(record["keys"], record["msgId"].split(","), strict=False)
            if loud and record["keys"][0].startswith(WORD):
                record = {**record, "queueOffset": record["queueOffset"] - loud}  # noqa: PLW2901  that of a topic without them
            sent[f"{record['event']} {','.join(record['keys'])}"].append(_sent(record, places=places))
        elif record["event"] in ("queues", "topics", "deleted"):
            out[record["event"]] = record
    out |= sent
    handed: defaultdict[str, list[Line]] = defaultdict(list)
    order: defaultdict[str, list[str]] = defaultdict(list)
    for record in lines:
        if record["event"] in ("received", "checked", "executing"):
            client = record.get("consumer", record["event"])
            handed[f"{client} was handed {record['keys'][0]}"].append(_unit(record, ids, places=places))
            if record["event"] == "received" and record["reconsumeTimes"] == 0:
                order[f"{client} in the order of {record['topic']}-{record['queueId']}"].append(record["keys"][0])
    out |= {name: sorted(all_of_it, key=str) for name, all_of_it in handed.items()}
    out |= {name: keys for name, keys in order.items() if name.startswith("ordered ")}
    return out


def _sent(line: Line, *, places: bool) -> Line:
    saved = {key: value for key, value in line.items() if key not in ("msgId", "offsetMsgId", "transactionId")}
    ids = (line.get("offsetMsgId") or "").split(",")
    if line["event"] == "half":
        saved.pop("queueOffset", None)
    return saved | {
        "ids": [len(text) for text in line["msgId"].split(",")],
        "places": [int(text[-16:], 16) if places and text else len(text) for text in ids],
        "transaction": line.get("transactionId") in line["msgId"].split(",") if line.get("transactionId") else "none",
    }


def _unit(line: Line, ids: dict[str, str], *, places: bool) -> Line:
    """Return a message as a listener got it."""
    saved = {key: value for key, value in line.items() if key not in ("msgId", "offsetMsgId", "transactionId")}
    for name in () if places else ("commitLogOffset", "queueOffset", "prepared"):
        if name in saved:
            saved[name] = saved[name] > 0 if name == "prepared" else "somewhere"
    sender_s_id = ids.get(line["keys"][0])
    saved["its own id"] = line["msgId"] == sender_s_id if "msgId" in line else line.get("transactionId") == sender_s_id
    saved["id of its place"] = len(line.get("offsetMsgId") or "")
    properties = dict(line.get("properties") or {})
    if "storeSize" in saved:
        saved["storeSize"] -= len(properties.get("UNIQ_KEY", ""))
    for name, value in properties.items():
        if name in OF_TIME or name in ("ORIGIN_MESSAGE_ID", "UNIQ_KEY", "__transactionId__"):
            properties[name] = "its own" if value == sender_s_id else "another"
        if name.startswith("TRAN_PREPARED_QUEUE_OFFSET"):
            properties[name] = "a number"
    saved["properties"] = properties
    return saved


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return readable lines: each difference with both answers."""
    texts = []
    for name in sorted(theirs.keys() | ours.keys()):
        real_answer, our_answer = theirs.get(name, "nothing"), ours.get(name, "nothing")
        if real_answer != our_answer:
            texts.append(f"{name}:\n  real {real_answer}\n  ours {our_answer}")
    return texts


def handed_out(lines: list[Line]) -> Counter[str]:
    """Return the number of deliveries of each consumer."""
    return Counter(record["consumer"] for record in lines if record["event"] == "received" and record["keys"] != [LOUD])

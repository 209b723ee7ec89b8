"""The scenarios of ``tests/clients/java`` run by our clients: the same messages, the same groups, the same record.

A message of a seed equals that of Java's program byte for byte; requests of admin tools alone are left out. Twin of
``Scenarios.java`` and ``Clients.java``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from engine.callbacks import system_clock
from engine.client.broker_api import max_offset
from engine.client.consumer import Consumer
from engine.client.consuming import BROADCASTING, FROM_FIRST, ConsumerConfig
from engine.client.messages import Message, ReceivedMessage, SendResult
from engine.client.producer import Producer, ProducerConfig, TransactionState
from engine.client.pulling import PullConsumer
from engine.client.routes import MessageQueue
from engine.codec import message as codec
from engine.codec.java import i32, jhash

NAMES = (
    ("OrderEvents", "PaymentEvents", "ShipmentEvents", "AuditTrail", "billing", "warehouse", "dashboard", "ledger"),
    ("CartUpdates", "StockLevels", "PriceTicks", "ClickStream", "pricing", "restock", "wallboard", "archive"),
)
WORDS = (
    "order",
    "user",
    "item",
    "price",
    "paid",
    "sent",
    "lost",
    "late",
    "gift",
    "blue",
    "north",
    "crate",
    "pallet",
    "route",
    "customs",
    "grün",
    "数量",
    "заказ",
    "€",
)
TAGS = ("created", "paid", "shipped", "Aa", "BB", "标签", None)
TWINS = ("AaAa", "AaBB", "BBAa", "BBBB")
_KINDS = frozenset({"run", "send", "batch", "oneway", "half", "received", "consumed", "pull", "checked"})
_LONG_GROUP = "g-" + "0123456789" * 14
_STATES = {"COMMIT": "COMMIT_MESSAGE", "ROLLBACK": "ROLLBACK_MESSAGE", "UNKNOWN": "UNKNOW"}


def is_compared(line: dict[str, Any]) -> bool:
    """Return True if our clients write such a line, and must write the same.

    The retry topic of the long group has a name that nobody may send to, so its messages are consumed again and again:
    the number depends on their times; and Java's client changes their properties meanwhile.
    """
    if line.get("group") == _LONG_GROUP:
        return line["kind"] == "received" and line["reconsumeTimes"] == 0
    return line["kind"] in _KINDS


class JavaRandom:
    """``java.util.Random``."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def _next(self, bits: int) -> int:
        self._seed = (self._seed * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return self._seed >> (48 - bits)

    def below(self, bound: int) -> int:
        """``nextInt(bound)``."""
        if bound & (bound - 1) == 0:
            return bound * self._next(31) >> 31
        while True:
            drawn = self._next(31)
            results = drawn % bound
            if drawn - results + bound - 1 < 1 << 31:
                return results

    def coin(self) -> bool:
        """``nextBoolean()``."""
        return self._next(1) != 0


class OurTraffic:
    """A scenario with the brokers of a name server; :attr:`lines` is the record."""

    def __init__(self, namesrv: str, broker: str, scenario: str, seed: int, version: str, folder: Path) -> None:
        self._namesrv, self._broker, self._folder = namesrv, broker, folder
        self._scenario, self._seed, self._version = scenario, seed, version
        self._random = JavaRandom(seed)
        self._names = NAMES[seed & 1]
        self._serial = 0
        self._counts: Counter[tuple[str, str]] = Counter()
        self._came: Counter[str] = Counter()
        """How often consumers got a message, by its unique id."""
        self.lines: list[dict[str, Any]] = []

    def write(self, folder: Path) -> Path:
        """Write the record in the form of ``same``."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "truth.jsonl"
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines if is_compared(line))
        path.write_text("".join(lines), "utf-8")
        return path

    async def run(self) -> None:
        """Run the scenario."""
        self._say(
            "run",
            scenario=self._scenario,
            seed=self._seed,
            version=self._version,
            brokerName="broker-a",
            threads=1,
            namesrv=self._namesrv,
            broker=self._broker,
            config={},
        )
        await {"orders": self._orders, "retries": self._retries, "transactions": self._transactions}[self._scenario]()
        for (group, topic), count in sorted(self._counts.items()):
            self._say("consumed", group=group, topic=topic, count=count)

    def _say(self, kind: str, **fields: Any) -> None:
        self.lines.append({"kind": kind, **{name: value for name, value in fields.items() if value is not None}})

    # Messages

    def _body(self, about: int) -> bytes:
        self._serial += 1
        chance, text = self._random, f'{{"n":{self._serial}'
        while len(text) < about:
            text += f',"{WORDS[chance.below(len(WORDS))]}":'
            text += str(chance.below(100_000)) if chance.coin() else f'"{WORDS[chance.below(len(WORDS))]}"'
        return (text + "}").encode()

    def _message(self, topic: str, about: int) -> Message:
        chance = self._random
        message = Message(topic, self._body(about))
        message.tags = TAGS[chance.below(len(TAGS))] or ""
        keys = []
        if chance.below(5) > 0:
            keys.append(f"K{self._serial}")
        if chance.below(3) == 0:
            keys.append(f"user-{chance.below(30)}")
        if chance.below(12) == 0:
            keys.append(TWINS[chance.below(4)])
        if chance.below(40) == 0:
            keys.append(f"ключ-{chance.below(4)}")
        message.keys = keys
        own_properties = {}
        if chance.below(3) == 0:
            own_properties["amount"] = str(chance.below(500))
            own_properties["region"] = "north" if chance.coin() else "süd"
        if chance.below(20) == 0:
            own_properties["note"] = "😀 smile, 100 % & more=yes"
        message.properties = own_properties
        if chance.below(10) == 0:
            message.flag = chance.below(1 << 20)
        if chance.below(15) == 0:
            message.waits = False
        return message

    @staticmethod
    def _minimum_hash_key(topic: str) -> str:
        chance = JavaRandom(jhash(topic))
        while True:
            text = "".join(chr(ord("a") + chance.below(26)) for _ in range(5))
            remainder = i32(-(1 << 31) - i32(jhash(f"{topic}#{text}") * 961))
            for number in range(ord("0"), ord("z") + 1):
                last_letter = i32(remainder - 31 * number)
                if ord("0") <= last_letter <= ord("z") and chr(number).isalnum() and chr(last_letter).isalnum():
                    return text + chr(number) + chr(last_letter)

    # Clients

    async def _producer(self, group: str, **options: Any) -> Producer:
        config = ProducerConfig(release=self._version[:3], send_timeout=10.0, **options)
        producer = Producer(group, self._namesrv, config)
        await producer.start()
        return producer

    async def _topic(self, producer: Producer, name: str, queues: int) -> None:
        fields = {
            "topic": name,
            "defaultTopic": "TBW102",
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
        }
        await producer.instance.call(self._broker, 17, fields)
        async with asyncio.timeout(60):
            while await producer.instance.fresh_route(name) is None:
                await asyncio.sleep(0.05)

    async def _consumer(
        self, group: str, topics: dict[str, str], verdict: Callable[..., bool | None] | None = None, **options: Any
    ) -> Consumer:
        def listener(messages: Sequence[ReceivedMessage], context: Any) -> bool:
            (message,) = messages
            fine = verdict is None or verdict(message, context) is not False
            answer = "CONSUME_SUCCESS" if fine else "RECONSUME_LATER"
            self._received(group, message, "ordered" if options.get("orderly") else answer)
            return fine

        config = ConsumerConfig(
            start=FROM_FIRST, threads=1, commit_interval=1.0, offsets_folder=self._folder / "offsets", **options
        )
        consumer = Consumer(group, listener, self._namesrv, config)
        for topic, expression in topics.items():
            consumer.subscribe(topic, expression)
        await consumer.start()
        return consumer

    def _received(self, group: str, message: ReceivedMessage, answer: str) -> None:
        self._counts[group, message.topic] += 1
        self._came[message.msg_id] += 1
        fields = _fields(message)
        if self._version.startswith("4") and message.sys_flag & codec.COMPRESSION_MASK:
            fields["sysFlag"] |= codec.COMPRESSED  # clients of 4.9 leave the bit when they have unpacked a body
        self._say("received", **fields, group=group, answer=answer)

    async def _send(self, producer: Producer, message: Message, queue_id: int = -1) -> SendResult:
        queue = None if queue_id < 0 else MessageQueue(message.topic, "broker-a", queue_id)
        result = await producer.send(message, queue=queue)
        self._sent(result, message, anywhere=queue is None)
        return result

    def _sent(self, result: SendResult, message: Message, *, anywhere: bool = False) -> None:
        self._say(
            "send",
            anyQueue=anywhere or None,
            topic=message.topic,
            queueId=result.queue.queue_id,
            queueOffset=result.queue_offset,
            status=result.status,
            msgId=result.msg_id,
            offsetMsgId=result.offset_msg_id,
            flag=message.flag,
            **_sent_fields(message),
        )

    # Scenarios

    async def _orders(self) -> None:
        a, b, c, d = self._names[:4]
        producer = await self._producer("peer-producer")
        for name, queues in [(a, 4), (b, 4), (c, 4), (d, 2), (f"Dropped{d}", 1)]:
            await self._topic(producer, name, queues)
        everything = await self._consumer(self._names[4], {a: "*", b: "*"})
        some = await self._consumer(self._names[5], {a: "paid || Aa"})
        wide = await self._consumer(self._names[6], {c: "*"}, model=BROADCASTING)
        ordered = await self._consumer(self._names[7], {d: "*"}, orderly=True)
        five = self._version.startswith("5")
        await self._mixed(producer, (a, b, c, d), 2600 if five else 2200)
        for _ in range(5):
            await self._send(producer, self._message(f"Dropped{d}", 200), 0)
        await self._send(producer, self._message(f"MadeBySending{a}", 100))
        hard = self._message(a, 100)
        hard.keys = [self._minimum_hash_key(a), "after-minimum"]
        await self._send(producer, hard, 1)
        await self._send(producer, Message(b, self._body(50), tags="paid", keys="  two  spaces "), 0)
        for kind in ("zlib", "lz4", "zstd") if five else ():
            compressing_producer = await self._producer(f"peer-{kind}", compression=kind)
            for number in range(2):
                message = self._message(a, 9000)
                message.properties = {**message.properties, "codec": kind.upper()}
                await self._send(compressing_producer, message, number)
            await compressing_producer.stop()
        groups = {self._names[4]: (a, b), self._names[6]: (c,), self._names[7]: (d,)}
        goals = {(group, topic): self._sent_to(topic) for group, topics in groups.items() for topic in topics}
        goals[self._names[5], a] = self._sent_to(a, {"paid", "Aa"})
        await self._until(lambda: all(self._counts[key] >= count for key, count in goals.items()))
        for consumer in (everything, some, ordered, wide):
            await consumer.stop()
        for number in range(60):
            sent = await self._send(producer, self._message(a if number % 2 == 0 else d, 150), number % 2)
            await self._until_readable(producer, sent)
        await self._pulls(a, 4, "*", "paid", "Aa || BB", "标签")
        await self._pulls(d, 2, "*")
        await producer.stop()

    def _sent_to(self, topic: str, tags: set[str] | None = None) -> int:
        """Return the number of messages sent to a topic, with one of these tags if any are given."""
        sent = [line for line in self.lines if line["kind"] in {"send", "oneway", "batch"} and line["topic"] == topic]
        each = [message for line in sent for message in line.get("elements", (line,))]
        return sum(tags is None or message.get("tags") in tags for message in each)

    async def _until_readable(self, producer: Producer, sent: SendResult) -> None:
        """Wait until the queue has the message."""
        async with asyncio.timeout(200):
            while await max_offset(producer.instance, sent.queue) <= sent.queue_offset:
                await asyncio.sleep(0.002)

    async def _mixed(self, producer: Producer, topics: tuple[str, ...], count: int) -> None:
        chance = self._random
        a, b, c, d = topics
        for number in range(count):
            topic = a if number % 10 < 6 else b if number % 10 < 8 else c if number % 10 < 9 else d
            queue = MessageQueue(topic, "broker-a", chance.below(2 if topic == d else 4))
            if number % 90 == 17:
                batch: list[Message] = []
                while len(batch) < 3 + chance.below(10):
                    batch.append(self._message(topic, 40 + chance.below(200)))
                    batch[-1].waits = True
                result = await producer.send(batch, queue=queue)
                elements = [{"flag": item.flag, **_sent_fields(item, properties=False)} for item in batch]
                self._say(
                    "batch",
                    topic=topic,
                    queueId=queue.queue_id,
                    queueOffset=result.queue_offset,
                    status=result.status,
                    msgId=result.msg_id,
                    offsetMsgId=result.offset_msg_id,
                    elements=elements,
                )
            elif number % 100 == 41:
                await self._send(producer, self._message(topic, 5000 + chance.below(15_000)), queue.queue_id)
            elif number % 60 == 33:
                message = self._message(topic, 100)
                output = _sent_fields(message, properties=False)
                output.pop("bodyLen")
                self._say("oneway", topic=topic, queueId=queue.queue_id, **output)
                await producer.send_one_way(message, queue=queue)
                await asyncio.sleep(0.02)
            elif number % 25 == 7:
                message = self._message(topic, 300)
                self._sent(await producer.send_soon(message, queue=queue), message)
            else:
                about = 20 + chance.below(3000 if chance.below(8) == 0 else 900)
                await self._send(producer, self._message(topic, about), queue.queue_id)

    async def _pulls(self, topic: str, queues: int, *expressions: str) -> None:
        async with PullConsumer("peer-puller", self._namesrv) as puller:
            await puller.queues(topic)
            for number in range(queues):
                queue = MessageQueue(topic, "broker-a", number)
                end = await max_offset(puller.instance, queue)
                for expression in expressions:
                    for position in (0, 1, end // 2, end - 1, end, end + 1, end + 7):
                        if position < 0:
                            continue
                        got = await puller.pull(queue, position, expression=expression)
                        self._say(
                            "pull",
                            topic=topic,
                            queueId=number,
                            expression=expression,
                            offset=position,
                            maxNums=32,
                            status=got.status,
                            next=got.next_offset,
                            min=got.min_offset,
                            max=got.max_offset,
                            found=[message.queue_offset for message in got.messages],
                        )

    async def _retries(self) -> None:
        a, b, group = self._names[0], self._names[1], self._names[4]
        chance, five = self._random, self._version.startswith("5")
        producer = await self._producer("peer-producer")
        await self._topic(producer, a, 4)
        await self._topic(producer, b, 2)

        def verdict(message: ReceivedMessage, context: Any) -> bool:
            plan = message.properties.get("plan")
            context.delay_level = 2 if message.properties.get("pace") == "slow" else 1
            if plan == "direct":
                context.delay_level = -1
            return not (plan in ("never", "direct") or (plan == "once" and message.reconsume_times == 0))

        consumers = [
            await self._consumer(group, {a: "*"}, verdict, max_reconsume=2),
            await self._consumer(_LONG_GROUP, {b: "*"}, verdict, max_reconsume=1),
        ]
        for _ in range(400):
            message = self._message(a, 60 + chance.below(500))
            dice = chance.below(20)
            if dice < 4:
                plan = "never" if dice == 0 else "direct" if dice == 1 else "once"
                pace = "slow" if chance.below(3) == 0 else "fast"
                message.properties = {**message.properties, "plan": plan, "pace": pace}
            await self._send(producer, message, chance.below(4))
        for number in range(12):
            message = self._message(b, 100)
            message.properties = {**message.properties, "plan": ("once", "never", "ok")[number % 3]}
            await self._send(producer, message, number % 2)
        levels = (1, 1, 2, 2, 3, 3, 4, 9, 18, 25)
        for number in range(len(levels) * 3):
            message = self._message(a, 120)
            message.delay_level = levels[number % len(levels)]
            await self._send(producer, message, number % 4)
        handles, recalled = [], set()
        for number in range(40) if five else ():
            message = self._message(a, 120)
            name, value = _timer(number, system_clock())
            message.properties = {**message.properties, name: value, "timer": f"case{number % 5}"}
            result = await self._send(producer, message, number % 4)
            if number in (12, 33):
                handles.append((message.topic, result.recall_handle))
                recalled.add(message.msg_id)
        for topic, handle in handles:
            await producer.recall(topic, handle)
        goals = {name: times for name, times in self._deliveries(4 if five else 3).items() if name not in recalled}
        await self._until(lambda: all(self._came[name] >= times for name, times in goals.items()))
        for consumer in consumers:
            await consumer.stop()
        await producer.stop()

    def _deliveries(self, level: int) -> dict[str, int]:
        """Return the number of deliveries of each message of the scenario of retries, by unique id: by its plan, and
        only those delayed up to a level and a day. Messages of the long group come again at the broker's choice.
        """
        count_by_plan = {"once": 2, "never": 3}
        count_by_id: dict[str, int] = {}
        for line in self.lines:
            properties = line["properties"] if line["kind"] == "send" else None
            if properties is None or int(properties.get("DELAY", 0)) > level or properties.get("timer") == "case3":
                continue
            count_by_id[line["msgId"]] = (
                count_by_plan.get(properties.get("plan", ""), 1) if line["topic"] == self._names[0] else 1
            )
        return count_by_id

    async def _transactions(self) -> None:
        a, b, group = self._names[0], self._names[1], self._names[4]
        setting_up = await self._producer("peer-setting-up")
        await self._topic(setting_up, a, 4)
        await self._topic(setting_up, b, 2)
        await setting_up.stop()
        consumer = await self._consumer(group, {a: "*", b: "*"})
        config = ProducerConfig(release=self._version[:3], send_timeout=10.0)
        decides = _DecideByMessage(self._say)
        producer = Producer(f"peer-tx-{group}", self._namesrv, config, listener=decides)
        await producer.start()
        plans = ("commit", "commit", "commit", "rollback", "check-commit", "check-rollback", "second-check", "never")
        for number in range(160):
            message = self._message(b if number % 3 == 0 else a, 80 + self._random.below(400))
            await self._half(producer, message, plans[number % 4] if number < 100 else plans[number % 8])
        await self._half(producer, self._message(a, 6000), "commit")
        plain = await self._producer("peer-producer")
        for number in range(40):
            await self._send(plain, self._message(a, 200), number % 4)
        await self._until(lambda: decides.is_done and self._decided() <= self._came.keys())
        for _ in range(6):
            await self._half(producer, self._message(a, 150), "never")
        await consumer.stop()
        await self._pulls(b, 2, "*")
        await plain.stop()
        await producer.stop()

    async def _half(self, producer: Producer, message: Message, plan: str) -> None:
        message.properties = {**message.properties, "plan": plan}
        producer.choice.turn(message.topic, self._serial)
        begun = system_clock()
        result, state = await producer.send_in_transaction(message)
        output = _sent_fields(message)
        output["properties"]["__transactionId__"] = result.transaction_id
        self._say(
            "half",
            topic=message.topic,
            queueId=result.queue.queue_id,
            queueOffset=result.queue_offset,
            status=result.status,
            state=_STATES[state.name],
            plan=plan,
            msgId=result.msg_id,
            before=begun,
            **output,
        )
        if plan == "commit":  # nobody answers a decision: the next one might be carried out before it
            await self._until(lambda: message.msg_id in self._came)

    def _decided(self) -> set[str]:
        """Return the unique ids of half messages that are committed sooner or later."""
        plans = ("commit", "check-commit", "second-check")
        return {line["msgId"] for line in self.lines if line["kind"] == "half" and line["plan"] in plans}

    @staticmethod
    async def _until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(200):
            while not condition():
                await asyncio.sleep(0.002)


class _DecideByMessage:
    """The listener of the scenario's transactions: it answers by each message's plan and by the number of its
    checks.
    """

    MOST: ClassVar[dict[str, int]] = {"check-commit": 1, "check-rollback": 1, "second-check": 2, "never": 3}
    """How often a broker asks by plan, after which it knows or gives up."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._checks: Counter[str] = Counter()
        self._wanted: dict[str, int] = {}
        """How often each message is to be asked for, by unique id."""

    @property
    def is_done(self) -> bool:
        """Return True if brokers have made all their checks."""
        return all(self._checks[name] >= wanted for name, wanted in self._wanted.items())

    def execute(self, message: Message, _argument: object) -> TransactionState:
        plan = message.properties["plan"]
        if plan in self.MOST:
            self._wanted[message.msg_id] = self.MOST[plan]
        states = {"commit": TransactionState.COMMIT, "rollback": TransactionState.ROLLBACK}
        return states.get(plan, TransactionState.UNKNOWN)

    def check(self, message: ReceivedMessage) -> TransactionState:
        self._checks[message.transaction_id] += 1
        count, plan = self._checks[message.transaction_id], message.properties["plan"]
        # Nothing is decided twice: a broker that asks again before it has carried that out would do it twice.
        state = TransactionState.UNKNOWN
        if (plan, count) in (("check-commit", 1), ("second-check", 2)):
            state = TransactionState.COMMIT
        elif (plan, count) == ("check-rollback", 1):
            state = TransactionState.ROLLBACK
        self._say("checked", **_fields(message), check=count, answer=_STATES[state.name])
        return state


def _timer(number: int, now: int) -> tuple[str, str]:
    """Return a property that delays: seconds, ms, a time soon, a day ahead, one that has passed."""
    return (
        ("TIMER_DELAY_SEC", str(2 + number % 7)),
        ("TIMER_DELAY_MS", str(1500 + 700 * number % 9000)),
        ("TIMER_DELIVER_MS", str(now + 3000 + 250 * number)),
        ("TIMER_DELIVER_MS", str(now + 86_400_000 + 60_000 * number)),
        ("TIMER_DELIVER_MS", str(now - 5000)),
    )[number % 5]


def _sent_fields(message: Message, *, properties: bool = True) -> dict[str, Any]:
    """Return the fields of a record about a sent message."""
    record: dict[str, Any] = {
        "keys": message.key_text or None,
        "tags": message.tags or None,
        "bodyLen": len(message.body),
        "bodySha256": hashlib.sha256(message.body).hexdigest(),
    }
    if properties:
        record["properties"] = dict(sorted({**message.all_properties(), "UNIQ_KEY": message.msg_id}.items()))
    return record


def _fields(message: ReceivedMessage) -> dict[str, Any]:
    """Return the fields of a record about a received message."""
    return {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "commitLogOffset": message.physical_offset,
        "storeSize": message.store_size,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bodyCRC": message.body_crc,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "properties": dict(sorted(message.properties.items())),
        "bodyLen": len(message.body),
        "bodySha256": hashlib.sha256(message.body).hexdigest(),
        "at": time.time_ns(),
    }

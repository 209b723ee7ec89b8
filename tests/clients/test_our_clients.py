"""Our producers and consumers with RocketMQ's own brokers, together with Java's consumers in the same groups."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import real_cluster
from handmade_stores import HandmadeStore
from java_members import JavaMember
from served_broker import wait_until

from engine.cli.main import main
from engine.client.broker_api import POP, pop, query_assignment, set_request_mode
from engine.client.consumer import Consumer
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import BrokerRefused
from engine.client.messages import Message, ReceivedMessage
from engine.client.popping import PopConfig, PopConsumer
from engine.client.producer import Producer, ProducerConfig, TransactionState
from engine.client.rebalance import Averagely
from engine.client.routes import MessageQueue
from engine.remoting.subscriptions import Subscription

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]
# a broker gathers for 3 s what was decided: asked earlier, it would ask about what is decided already
SWITCHES = ("transactionTimeOut=5000", "transactionCheckInterval=1000", "timerWheelEnable=true")
_names = itertools.count(1)


@pytest.fixture(scope="module", params=["5.3.3", pytest.param("4.9.7", marks=pytest.mark.clients_full)])
def cluster(request, tmp_path_factory):
    """Return (release, name server, broker) of a real cluster with small files."""
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    switches = [word for switch in SWITCHES for word in ("--set", switch)]
    with real_cluster.real(
        tmp_path_factory.mktemp("real"), *ports, "--small", *switches, release=request.param
    ) as output:
        yield request.param, output["namesrv"], output["broker"]


def run(scenario: Callable[[], object], seconds: float = 180.0) -> None:
    async def timed() -> None:
        async with asyncio.timeout(seconds):
            await scenario()  # type: ignore[misc]

    asyncio.run(timed())


@contextlib.asynccontextmanager
async def producing(cluster, **options) -> AsyncIterator[Producer]:
    release, namesrv, _ = cluster
    async with Producer(f"senders{next(_names)}", namesrv, ProducerConfig(release=release[:3]), **options) as producer:
        yield producer


async def make_topic(producer: Producer, broker: str, queues: int) -> str:
    topic = f"Topic{next(_names)}"
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": queues,
        "writeQueueNums": queues,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
    }
    await producer.instance.call(broker, 17, fields)

    async def routed() -> None:
        while (await producer.instance.fresh_route(topic)) is None:
            await asyncio.sleep(0.05)

    await routed()
    return topic


def reader(cluster, group: str, topic: str, received: list[ReceivedMessage], **config) -> Consumer:
    consumer = Consumer(
        group, lambda messages, _: received.extend(messages), cluster[1], ConsumerConfig(start=FROM_FIRST, **config)
    )
    consumer.subscribe(topic)
    return consumer


class DecidingListener:
    """A listener that commits messages with the tag COMMIT and answers late for the rest."""

    def execute(self, message: Message, _argument: object) -> TransactionState:
        return TransactionState[message.tags]

    def check(self, message: ReceivedMessage) -> TransactionState:
        return TransactionState.ROLLBACK if message.tags == "ROLLBACK" else TransactionState.COMMIT


def test_sends_of_every_kind_come_whole_to_both_kinds_of_consumers(cluster, tmp_path: Path) -> None:
    release, namesrv, broker = cluster

    async def scenario() -> None:
        received: list[ReceivedMessage] = []
        async with producing(cluster, listener=DecidingListener()) as producer:
            topic = await make_topic(producer, broker, 4)
            member = JavaMember(release, namesrv, "java-readers", topic, tmp_path / "home")
            try:
                async with reader(cluster, "our-readers", topic, received):
                    sent = await send_all(producer, topic, release)
                    with contextlib.suppress(TimeoutError):  # what is missing is named below
                        await wait_until(lambda: len(received) == len(member.received) == len(sent), 60)
            finally:
                await asyncio.to_thread(member.stop)
        ours = {(message.keys, hashlib.sha256(message.body).hexdigest()) for message in received}
        java = {(record["keys"], record["bodySha256"]) for record in member.received}
        assert ours == java == {(key, hashlib.sha256(body).hexdigest()) for key, body in sent.items()}
        assert {message.msg_id for message in received} == {row["msgId"] for row in member.received}

    run(scenario)


async def send_all(producer: Producer, topic: str, release: str) -> dict[str, bytes]:
    """Send messages of every kind that should arrive; return their bodies by key."""
    sent: dict[str, bytes] = {}

    def new_message(kind: str, body: bytes = b"x", **options) -> Message:
        key = f"{kind}-{len(sent)}"
        sent[key] = body
        return Message(topic, body, keys=key, **options)

    for number in range(20):
        await producer.send(new_message("one", b"body %d" % number, tags="hot", properties={"n": str(number)}))
    await asyncio.gather(*(producer.send_soon(new_message("beside")) for _ in range(20)))
    for _ in range(5):
        await producer.send_one_way(new_message("one-way"))
        await producer.send(new_message("by-key"), key="order-1")
        await producer.send(new_message("selected"), select=lambda queues, _: queues[1])
    await producer.send([new_message("batch", b"%d" % number) for number in range(10)])
    large = b"a large cup of tea " * 1000
    await producer.send(new_message("zlib", large))
    if release.startswith("5"):
        for kind in ("lz4", "zstd"):
            async with Producer(
                f"{kind}-senders", config=ProducerConfig(compression=kind), instance=producer.instance
            ) as compressing_producer:
                await compressing_producer.send(new_message(kind, large))
        await producer.send(new_message("timer", delay_ms=1500))
    await producer.send(new_message("delayed", delay_level=1))
    await producer.send_in_transaction(new_message("committed", tags="COMMIT"))
    await producer.send_in_transaction(new_message("checked", tags="UNKNOWN"))
    await producer.send_in_transaction(Message(topic, b"never", tags="ROLLBACK"))
    return sent


def is_shared(topic: str, members: list, queues: int) -> bool:
    """Return True if every queue has one owner, and each member owns some."""
    lists = [
        member.owned
        if isinstance(member, JavaMember)
        else [queue.queue_id for queue in member.owned if queue.topic == topic]
        for member in members
    ]
    return all(lists) and sorted(number for numbers in lists for number in numbers) == list(range(queues))


def test_a_mixed_group_shares_queues_without_gap_or_overlap(cluster, tmp_path: Path) -> None:
    """Each message comes once while nobody comes or goes; after kills on both sides each comes at least once, and only
    what was not committed comes twice.
    """
    release, namesrv, broker = cluster

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 8), f"mixed{next(_names)}"
            observed: list[ReceivedMessage] = []
            members = [JavaMember(release, namesrv, group, topic, tmp_path / f"home{number}") for number in range(2)]
            ours = [reader(cluster, group, topic, observed, commit_interval=1.0) for _ in range(2)]
            try:
                for our in ours:
                    await our.start()
                await wait_until(lambda: is_shared(topic, [*members, *ours], 8), 90)
                await send_numbers(producer, topic, 0, 200)
                await wait_until(lambda: len(keys(observed, members)) == 200, 60)
                assert set(keys(observed, members).values()) == {1}
                assert len(observed) == sum(len(item.received) for item in members) == 100
                await ours[0].kill()
                await send_numbers(producer, topic, 200, 400)
                await wait_until(lambda: is_shared(topic, [*members, ours[1]], 8), 60)
                await asyncio.to_thread(members[0].kill)
                await send_numbers(producer, topic, 400, 600)
                await wait_until(lambda: is_shared(topic, [members[1], ours[1]], 8), 60)
                await wait_until(lambda: len(keys(observed, members)) == 600, 60)
                await ours[1].stop()
                await wait_until(lambda: is_shared(topic, [members[1]], 8), 60)
            finally:
                for member in members:
                    await asyncio.to_thread(member.stop)
                for our in ours:
                    await our.stop()
        results = keys(observed, members)
        assert results.keys() == {str(number) for number in range(600)}
        assert all(results[str(number)] <= 3 for number in range(600))

    run(scenario)


async def send_numbers(producer: Producer, topic: str, begin: int, end: int) -> None:
    for number in range(begin, end):
        queue = MessageQueue(topic, "broker-a", number % 8)
        await producer.send(Message(topic, b"%d" % number, keys=str(number)), queue=queue)


def keys(received: list[ReceivedMessage], members: list[JavaMember]) -> Counter[str]:
    return Counter(
        [
            *(message.keys for message in received),
            *(row["keys"] for member in members for row in tuple(member.received)),
        ]
    )


def test_in_order_a_mixed_group_keeps_each_queue_s_order(cluster, tmp_path: Path) -> None:
    release, namesrv, broker = cluster

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 4), f"ordered{next(_names)}"
            observed: list[ReceivedMessage] = []
            member = JavaMember(release, namesrv, group, topic, tmp_path / "home", "orderly")
            try:
                async with reader(cluster, group, topic, observed, orderly=True) as ours:
                    await wait_until(lambda: is_shared(topic, [member, ours], 4), 90)
                    for number in range(100):
                        queue = MessageQueue(topic, "broker-a", number % 4)
                        await producer.send(Message(topic, b"%d" % number, keys=str(number)), queue=queue)
                    await wait_until(lambda: len(observed) + len(member.received) == 100, 60)
            finally:
                await asyncio.to_thread(member.stop)
        order: dict[int, list[int]] = {}
        for queue_id, key in [
            *((item.queue.queue_id, item.keys) for item in observed),
            *((row["queueId"], row["keys"]) for row in member.received),
        ]:
            order.setdefault(queue_id, []).append(int(key))
        assert order == {queue: list(range(queue, 100, 4)) for queue in range(4)}

    run(scenario)


def test_failed_messages_come_again_and_end_as_dead_letters(cluster) -> None:
    _, _, broker = cluster

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 2), f"failing{next(_names)}"
            times: Counter[str] = Counter()

            def listener(messages, context) -> bool:
                times[messages[0].keys] += 1
                context.delay_level = 1
                return messages[0].keys == "late" and times["late"] > 1

            consumer = Consumer(group, listener, cluster[1], ConsumerConfig(start=FROM_FIRST, max_reconsume=1))
            consumer.subscribe(topic)
            async with consumer:
                await producer.send(Message(topic, b"x", keys="late"))
                await producer.send(Message(topic, b"x", keys="dead"))
                await wait_until(lambda: times == {"late": 2, "dead": 2}, 60)
                dead: list[ReceivedMessage] = []
                async with reader(cluster, f"{group}-dead", f"%DLQ%{group}", dead):
                    await wait_until(lambda: dead, 60)
            assert [item.keys for item in dead] == ["dead"]

    run(scenario)


@pytest.mark.clients_full
def test_members_of_a_group_pop_each_message_once(cluster) -> None:
    """Brokers of 5.x hand messages out; one of 4.9 knows no such request, and says so."""
    release, namesrv, broker = cluster

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 8), f"popping{next(_names)}"
            if release.startswith("4"):
                with pytest.raises(BrokerRefused, match="not supported"):
                    await pop(producer.instance, group, "broker-a", Subscription(topic))
                return
            times: Counter[str] = Counter()

            def listener(messages, context) -> bool:
                times[messages[0].keys] += 1
                context.delay_level = 1
                return messages[0].keys != "7" or times["7"] > 1

            members = [
                PopConsumer(group, listener, namesrv, PopConfig(start=FROM_FIRST, hold=2.0, pull_batch=8))
                for _ in range(2)
            ]
            for member in members:
                member.subscribe(topic)
            async with members[0], members[1]:
                await send_numbers(producer, topic, 0, 100)
                await wait_until(lambda: len(times) == 100 and times["7"] == 2, 60)
            assert times == {str(number): 2 if number == 7 else 1 for number in range(100)}

    run(scenario)


@pytest.mark.clients_full
def test_a_broker_assigns_queues_to_popping_members(cluster) -> None:
    """The broker of 5.3.3 decides: nobody pops from a topic that the group pulls; all pop from all queues; with shares
    each of four members pops its own queues and the next one's, also when one is killed and another comes.
    """
    release, namesrv, broker = cluster
    if release.startswith("4"):
        return

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 8), f"assigned{next(_names)}"
            times: Counter[str] = Counter()
            config = PopConfig(start=FROM_FIRST, hold=1.0, shared_by_broker=True, rebalance_interval=2.0)

            def member() -> PopConsumer:
                consumer = PopConsumer(
                    group, lambda messages, _: times.update(message.keys for message in messages), namesrv, config
                )
                consumer.subscribe(topic)
                return consumer

            members = [member() for _ in range(4)]
            for member_ in members:
                await member_.start()
            await wait_until(lambda: all(not member_.popped_queues for member_ in members))
            assert await query_assignment(members[0].instance, group, topic) is not None
            await set_request_mode(producer.instance, group, topic, POP)
            all_queues = (MessageQueue(topic, "broker-a", -1),)
            await wait_until(lambda: all(member_.popped_queues == all_queues for member_ in members), 60)
            await send_numbers(producer, topic, 0, 80)
            await wait_until(lambda: len(times) == 80, 60)
            await set_request_mode(producer.instance, group, topic, POP, share_queues=1)
            queues = (await producer.instance.fresh_route(topic)).subscribe_queues
            await wait_until(lambda: pops_shares(members, queues), 60)
            await send_numbers(producer, topic, 80, 160)
            await wait_until(lambda: len(times) == 160, 60)
            await members[0].kill()
            members[0] = member()
            await members[0].start()
            await wait_until(lambda: pops_shares(members, queues), 60)
            await send_numbers(producer, topic, 160, 240)
            await wait_until(lambda: len(times) == 240, 60)
            for member_ in members:
                await member_.stop()
            assert times == {str(number): 1 for number in range(240)}

    run(scenario)


def pops_shares(members: list[PopConsumer], queues: tuple[MessageQueue, ...]) -> bool:
    """Return True if each member pops its own queues and those of the next one."""
    ids = sorted(client.client_id for client in members)
    queues_by_id = {client_id: set(Averagely().allocate(client_id, queues, ids)) for client_id in ids}
    return all(
        set(member.popped_queues)
        == queues_by_id[member.client_id] | queues_by_id[ids[(ids.index(member.client_id) + 1) % len(ids)]]
        for member in members
    )


@pytest.mark.clients_full
def test_a_broker_shares_out_among_java_s_members_and_ours(cluster, tmp_path: Path) -> None:
    """With shares of one more, each of 8 queues is popped by two of four members, also when a member of Java's is
    killed (-9) and comes back; each message comes at least once. (What Java's client pops of a queue that it gives up
    just then, it drops: that comes again when it is visible again, after a minute.)
    """
    release, namesrv, broker = cluster
    if release.startswith("4"):
        return

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 8), f"popped-by-both{next(_names)}"
            observed: list[ReceivedMessage] = []
            config = PopConfig(start=FROM_FIRST, hold=1.0, shared_by_broker=True, rebalance_interval=2.0)
            ours = [PopConsumer(group, lambda got, _: observed.extend(got), namesrv, config) for _ in range(2)]
            for our in ours:
                our.subscribe(topic)
                await our.start()
            await ours[0].set_request_mode(topic, POP, share_queues=1)
            members = [
                JavaMember(release, namesrv, group, topic, tmp_path / f"home{number}", "pop") for number in range(2)
            ]
            ever = list(members)
            try:
                await wait_until(lambda: is_popped_twice([*ours, *members], 8), 120)
                await send_numbers(producer, topic, 0, 200)
                await wait_until(lambda: observed and all(item.received for item in ever), 60)
                await asyncio.to_thread(members[0].kill)
                members[0] = JavaMember(release, namesrv, group, topic, tmp_path / "home2", "pop")
                ever.append(members[0])
                await wait_until(lambda: is_popped_twice([*ours, *members], 8), 120)
                await send_numbers(producer, topic, 200, 400)
                await wait_until(lambda: len(keys(observed, ever)) == 400, 180)
            finally:
                for member in members:
                    await asyncio.to_thread(member.stop)
                for our in ours:
                    await our.stop()

    run(scenario, 600)


def is_popped_twice(members: list, queues: int) -> bool:
    """Return True if each queue is popped by two of the members, and each of them pops some."""
    lists = [
        member.owned if isinstance(member, JavaMember) else [queue.queue_id for queue in member.popped_queues]
        for member in members
    ]
    return all(lists) and sorted(number for numbers in lists for number in numbers) == sorted([*range(queues)] * 2)


@pytest.mark.clients_full
def test_popped_in_order_each_queue_is_in_one_hand_also_where_messages_fail_and_members_are_killed(cluster) -> None:
    """Three members pop in order; every seventh message of a queue fails at first; a member is killed with messages in
    its hands, which come again when their invisible time is over. Each message is consumed at least once, and in order,
    except for messages that the killed member held.
    """
    release, namesrv, broker = cluster
    if release.startswith("4"):
        return

    async def scenario() -> None:
        async with producing(cluster) as producer:
            topic, group = await make_topic(producer, broker, 8), f"popped-in-order{next(_names)}"
            done: dict[int, list[int]] = {}
            failed: Counter[tuple[int, int]] = Counter()
            hands: Counter[int] = Counter()
            crowded: list[ReceivedMessage] = []
            config = PopConfig(start=FROM_FIRST, hold=1.0, orderly=True, pull_batch=4, invisible=5.0, suspend=0.2)

            def member() -> tuple[PopConsumer, set[int]]:
                queues: set[int] = set()

                async def listener(messages, _context) -> bool:
                    (message,) = messages
                    queue, position = message.queue.queue_id, message.queue_offset
                    hands[queue] += 1
                    queues.add(queue)
                    if hands[queue] > 1:
                        crowded.append(message)
                    await asyncio.sleep(0.002)
                    hands[queue] -= 1
                    queues.discard(queue)
                    if position % 7 == 3 and not failed[queue, position]:
                        failed[queue, position] += 1
                        return False
                    done.setdefault(queue, []).append(position)
                    return True

                consumer = PopConsumer(group, listener, namesrv, config)
                consumer.subscribe(topic)
                return consumer, queues

            members = [member() for _ in range(3)]
            for pop_consumer, _ in members:
                await pop_consumer.start()
            await send_numbers(producer, topic, 0, 160)
            await wait_until(lambda: sum(len(set(offsets)) for offsets in done.values()) >= 80, 60)
            pop_consumer, ours = members[0]
            await pop_consumer.kill()
            hands.subtract(ours)
            members[0] = member()
            await members[0][0].start()
            await send_numbers(producer, topic, 160, 320)
            await wait_until(lambda: sum(len(set(offsets)) for offsets in done.values()) == 320, 90)
            for pop_consumer, _ in members:
                await pop_consumer.stop()
        assert crowded == []
        assert all(sorted(set(offsets)) == list(range(40)) for offsets in done.values())
        for offsets in done.values():
            assert list(dict.fromkeys(offsets)) == list(range(40))  # in order, but for what came twice
            assert len(offsets) <= 40 + config.pull_batch
        assert set(failed.values()) == {1}
        assert failed.keys() == {(queue, offset) for queue in range(8) for offset in range(3, 40, 7)}

    run(scenario)


def test_dead_letters_of_a_store_are_sent_again_once(cluster, tmp_path: Path) -> None:
    """Full form: ``test_resend.py`` has the dead letters of real brokers and a Java consumer."""
    _, _, broker = cluster
    store = HandmadeStore()
    topics: list[str] = []

    async def make() -> None:
        async with producing(cluster) as producer:
            topics.append(await make_topic(producer, broker, 2))

    run(make)
    (topic,) = topics
    for number in range(6):
        store.put("%DLQ%billing", unique=f"U{number}", keys=f"k{number}", more={"RETRY_TOPIC": topic})
    command = ["resend", str(store.write(tmp_path / "store")), "--where", "true", "--to", broker, "--yes", "--quiet"]
    assert [main(command), main(command)] == [0, 0]

    async def read() -> None:
        received: list[ReceivedMessage] = []
        async with reader(cluster, "readers-of-dead-letters", topic, received):
            await wait_until(lambda: len(received) >= 6)
            await asyncio.sleep(0.2)
        assert sorted((message.msg_id, message.keys) for message in received) == [
            (f"U{number}", f"k{number}") for number in range(6)
        ]

    run(read)

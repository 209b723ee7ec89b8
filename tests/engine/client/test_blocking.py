"""The clients without an event loop, beside a broker that a thread serves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.broker.config import BrokerConfig
from engine.broker.serving import serving_beside
from engine.client.blocking import (
    BlockingConsumer,
    BlockingLitePullConsumer,
    BlockingPopConsumer,
    BlockingProducer,
    BlockingPullConsumer,
)
from engine.client.consuming import FROM_FIRST, ConsumerConfig
from engine.client.errors import ClientError, NotRunning, WrongMessage
from engine.client.messages import Message, reply_to
from engine.client.popping import PopConfig
from engine.client.producer import TransactionState
from engine.client.routes import MessageQueue

FROM_FIRST_CONFIG = ConsumerConfig(start=FROM_FIRST, threads=4)


@pytest.fixture
def namesrv(tmp_path: Path):
    with serving_beside(tmp_path / "store", BrokerConfig(recall_message=True)) as addresses:
        yield addresses.namesrv


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def threads() -> list[str]:
    return [item.name for item in threading.enumerate() if item.name == "storescope-client"]


def test_messages_go_from_a_producer_to_a_listener_in_threads(namesrv: str) -> None:
    bodies: list[bytes] = []
    names: set[str] = set()

    def listener(messages, _context) -> bool:
        names.add(threading.current_thread().name)
        bodies.extend(message.body for message in messages)
        return True

    consumer = BlockingConsumer("readers", listener, namesrv, FROM_FIRST_CONFIG)
    consumer.subscribe("Orders")
    with BlockingProducer("senders", namesrv) as producer, consumer:
        assert producer.send(Message("Orders", b"1"), key="k").is_ok
        assert producer.send_soon(Message("Orders", b"2")).result(10).is_ok
        queue = producer.send_one_way(Message("Orders", b"3"))
        until(lambda: len(bodies) == 3)
        consumer.commit()
        assert queue in consumer.owned
        consumer.pause()
        consumer.resume()
        consumer.seek(queue, 0)
        until(lambda: len(bodies) > 3)
        producer.pause()
        waiting = producer.send_soon(Message("Orders", b"4"))
        producer.resume()
        assert waiting.result(10).is_ok
        consumer.unsubscribe("Orders")
        until(lambda: not [item for item in consumer.owned if item.topic == "Orders"])
        assert producer.client_id != consumer.client_id
        assert threads() == ["storescope-client"]
    assert all(name.startswith("storescope-readers") for name in names)
    assert threads() == []


def test_polls_and_pulls(namesrv: str) -> None:
    queue = MessageQueue("Orders", "broker-a", 1)
    lite = BlockingLitePullConsumer("readers", namesrv, ConsumerConfig(start=FROM_FIRST))
    lite.subscribe("Orders")
    with BlockingProducer("senders", namesrv) as producer:
        for number in range(5):
            producer.send(Message("Orders", b"%d" % number), queue=queue)
        with lite:
            results: list = []
            while len(results) < 5:
                results += lite.poll(20)
            lite.commit()
            assert lite.committed(queue) == 5
            assert queue in lite.owned
            lite.seek(queue, 4)
            until(lambda: lite.poll(1))
            lite.pause_queues(queue)
        with BlockingLitePullConsumer("assigned", namesrv) as assigned:
            assigned.assign([queue])
            until(lambda: assigned.owned)
        with BlockingPullConsumer("pullers", namesrv) as puller:
            assert queue in puller.queues("Orders")
            result = puller.pull(queue, 2)
            assert [message.body for message in result.messages] == [b"2", b"3", b"4"]
            puller.commit(queue, 3)
            assert puller.fetch_offset(queue) == 3
            puller.send_back(result.messages[0])


def test_pops(namesrv: str) -> None:
    bodies: list[bytes] = []
    popper = BlockingPopConsumer(
        "poppers",
        lambda got, _: bodies.extend(item.body for item in got),
        namesrv,
        PopConfig(start=FROM_FIRST, threads=2),
    )
    popper.subscribe("Orders")
    with BlockingProducer("senders", namesrv) as producer:
        producer.send(Message("Orders", b"x"))
        with popper:
            until(lambda: bodies)
    assert bodies == [b"x"]


def test_pops_report_a_brokers_refusal(namesrv: str) -> None:
    bodies: list[bytes] = []
    config = PopConfig(start=FROM_FIRST, threads=2, hold=0.5, orderly=True, shared_by_broker=True)
    popper = BlockingPopConsumer("poppers", lambda got, _: bodies.extend(item.body for item in got), namesrv, config)
    popper.subscribe("Orders")
    with BlockingProducer("senders", namesrv) as producer:
        queue = producer.send(Message("Orders", b"0")).queue
        for number in range(1, 10):
            producer.send(Message("Orders", b"%d" % number), queue=queue)
        with popper:
            assert popper.popped_queues == ()
            popper.set_request_mode("Orders", "POP")
            until(lambda: len(bodies) == 10)
            assert popper.popped_queues == (MessageQueue("Orders", "broker-a", -1),)
    assert bodies == [b"%d" % number for number in range(10)]


class DecidingListener:
    def execute(self, _message, argument) -> TransactionState:
        assert threading.current_thread().name != "storescope-client"
        return argument

    def check(self, _message) -> TransactionState:
        return TransactionState.COMMIT


def test_transactions_requests_and_recalls(namesrv: str) -> None:
    with BlockingProducer("senders", namesrv, listener=DecidingListener()) as producer:
        _, state = producer.send_in_transaction(Message("Orders", b"x"), TransactionState.COMMIT)
        assert state is TransactionState.COMMIT
        handle = producer.send(Message("Orders", b"later", delay_ms=3_600_000)).recall_handle
        assert producer.recall("Orders", handle)

        def listener(messages, _context) -> None:
            producer.reply(reply_to(messages[0], b"yes"))

        replier = BlockingConsumer("repliers", listener, namesrv, FROM_FIRST_CONFIG)
        replier.subscribe("Questions")
        with replier:
            assert producer.request(Message("Questions", b"?"), 20).body == b"yes"


def test_errors_reach_the_caller(namesrv: str) -> None:
    producer = BlockingProducer("senders", namesrv)
    with pytest.raises(NotRunning):
        producer.send(Message("Orders", b"x"))
    with producer, pytest.raises(WrongMessage):
        producer.send(Message("Orders", b""))
    producer.stop()
    ring = producer.events.ring()
    assert ring.take() == []
    with pytest.raises(ClientError):
        BlockingProducer("senders", "127.0.0.1:1").start()
    assert threads() == []


@pytest.mark.parametrize("pops", [False, True])
def test_a_stop_waits_for_listener_threads_until_its_timeout(namesrv: str, *, pops: bool) -> None:
    """A listener's thread finished after the stop, but its result was discarded, and the message was delivered
    again.
    """
    begun, ended, go_on = threading.Event(), threading.Event(), threading.Event()

    def listener(_messages, _context) -> bool:
        begun.set()
        go_on.wait(60)
        ended.set()
        return True

    def consumer() -> BlockingConsumer | BlockingPopConsumer:
        if pops:
            running_consumer = BlockingPopConsumer(
                "readers", listener, namesrv, PopConfig(start=FROM_FIRST, hold=1.0, invisible=2.0)
            )
        else:
            running_consumer = BlockingConsumer("readers", listener, namesrv, FROM_FIRST_CONFIG)
        running_consumer.subscribe("Orders")
        running_consumer.start()
        return running_consumer

    with BlockingProducer("senders", namesrv) as producer:
        producer.send(Message("Orders", b"1"))
    stopped_early = consumer()
    assert begun.wait(60)
    stopped_early.stop(timeout=0.2)
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(60)
    begun.clear()
    ended.clear()
    go_on.clear()
    finishing = consumer()
    assert begun.wait(60), "the message comes again"
    threading.Timer(0.5, go_on.set).start()
    finishing.stop()
    assert ended.is_set()
    begun.clear()
    third_consumer = consumer()
    assert not begun.wait(3), "the message is consumed"
    third_consumer.stop()

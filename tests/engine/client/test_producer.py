"""Our producer beside our broker: messages are stored as Java's producers write them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from brokers import run_scenario
from served_broker import ServedBroker, served, wait_until

from engine.broker.config import BrokerConfig
from engine.client.errors import BrokerRefused, ClientError, NoReply, NotRunning, NotSent, WrongMessage
from engine.client.events import Paced, SendFailed, Sent, Started, Stopped, TransactionEnded
from engine.client.instance import ClientInstance
from engine.client.messages import Message
from engine.client.producer import Producer, ProducerConfig, TransactionState
from engine.client.routes import MessageQueue
from engine.codec.compression import unpack
from engine.codec.message import parse_unique_key
from engine.remoting.codes import Refused, ResponseCode


def sending(
    tmp_path: Path, scenario, config: ProducerConfig | None = None, broker: BrokerConfig | None = None, **options
):
    """Run ``scenario(producer, served)`` with a producer of the group ``senders``."""

    async def with_client() -> None:
        async with (
            served(tmp_path / "store", broker) as beside,
            Producer("senders", beside.namesrv, config, **options) as producer,
        ):
            await scenario(producer, beside)

    run_scenario(with_client)


def test_a_message_is_stored_as_it_was_sent(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        message = Message("Orders", b"tea", tags="hot", keys=["k1", "k2"], properties={"mine": "1"}, flag=7)
        result = await producer.send(message)
        assert result.is_ok
        (unit,) = beside.units("Orders")
        assert (unit.body, unit.tags, unit.keys, unit.flag) == (b"tea", "hot", ["k1", "k2"], 7)
        assert unit.properties["mine"] == "1"
        assert unit.properties["WAIT"] == "true"
        assert unit.unique_key == result.msg_id == message.msg_id
        assert parse_unique_key(result.msg_id) is not None
        assert (result.queue, result.queue_offset) == (MessageQueue("Orders", "broker-a", unit.queue_id), 0)
        assert result.offset_msg_id == unit.offset_msg_id

    sending(tmp_path, scenario)


def test_queues_are_taken_in_turn_and_a_key_stays_in_its_queue(tmp_path: Path) -> None:
    async def scenario(producer: Producer, _: ServedBroker) -> None:
        turns = [(await producer.send(Message("Orders", b"x"))).queue.queue_id for _ in range(8)]
        assert sorted(turns[:4]) == [0, 1, 2, 3]
        assert turns[4:] == turns[:4]
        same = {(await producer.send(Message("Orders", b"x"), order_by="order-7")).queue for _ in range(5)}
        assert len(same) == 1
        to_last_queue = await producer.send(Message("Orders", b"x"), select=lambda queues, _: queues[-1])
        assert to_last_queue.queue.queue_id == 3
        chosen = await producer.send(Message("Orders", b"x"), queue=MessageQueue("Orders", "broker-a", 2))
        assert chosen.queue.queue_id == 2

    sending(tmp_path, scenario)


@pytest.mark.parametrize(("kind", "bits"), [("zlib", 0x301), ("lz4", 0x101), ("zstd", 0x201)])
def test_bodies_from_4_kib_on_are_compressed(tmp_path: Path, kind: str, bits: int) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        queue = MessageQueue("Orders", "broker-a", 0)
        for size in (4095, 4096):
            await producer.send(Message("Orders", b"tea " * 1024 if size == 4096 else b"x" * size), queue=queue)
        small, large = beside.units("Orders", 0)
        assert (small.sys_flag, len(small.body)) == (0, 4095)
        assert large.sys_flag == bits
        assert len(large.body) < 200
        assert unpack(large.body, large.sys_flag).data == b"tea " * 1024

    sending(tmp_path, scenario, ProducerConfig(compression=kind))


def test_a_batch_goes_to_one_queue_and_each_message_has_its_id(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        messages = [Message("Orders", b"%d" % number, keys=f"k{number}") for number in range(5)]
        result = await producer.send(messages)
        units = beside.units("Orders", result.queue.queue_id)
        assert [unit.body for unit in units] == [b"0", b"1", b"2", b"3", b"4"]
        assert [unit.queue_offset for unit in units] == list(range(5))
        assert result.msg_id.split(",") == [message.msg_id for message in messages]
        assert result.offset_msg_id.split(",") == [unit.offset_msg_id for unit in units]

    sending(tmp_path, scenario)


def test_many_are_sent_at_once_one_way_and_with_a_call_back(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        reports: list[object] = []
        tasks = [
            producer.send_soon(Message("Orders", b"%d" % number), lambda result, error: reports.append((result, error)))
            for number in range(50)
        ]
        results = await asyncio.gather(*tasks)
        assert all(result.is_ok for result in results)
        assert [error for _, error in reports] == [None] * 50
        for number in range(10):
            await producer.send_one_way(Message("Orders", b"one way %d" % number))
        await wait_until(lambda: len(beside.units("Orders")) == 60)

    sending(tmp_path, scenario)


def test_sends_over_the_limit_wait_before_their_timeout_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty thousand sends were started at once. All were written before an answer was read, and their timeouts began
    at the call. So every send failed, although a third of them was stored.
    """
    in_flight, max_in_flight = 0, 0

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        from engine.broker import processors

        await producer.send(Message("Orders", b"first"))
        answer_send, loop = processors.HANDLERS[310], asyncio.get_running_loop()
        free_at = 0.0

        def answer_slowly(broker, request, header, connection):
            nonlocal free_at, in_flight, max_in_flight
            free_at = max(free_at, loop.time()) + 0.05
            in_flight, max_in_flight = in_flight + 1, max(max_in_flight, in_flight + 1)

            def answer() -> None:
                nonlocal in_flight
                in_flight -= 1
                answered = answer_send(broker, request, header, connection)
                if answered is not None:
                    connection.send(answered)

            loop.call_at(free_at, answer)

        monkeypatch.setitem(processors.HANDLERS, 310, answer_slowly)
        sends = [producer.send_soon(Message("Orders", b"%d" % number)) for number in range(40)]
        sends += [asyncio.ensure_future(producer.send(Message("Orders", b"%d" % number))) for number in range(40, 80)]
        assert all(result.is_ok for result in await asyncio.gather(*sends))
        assert max_in_flight <= 4
        assert sum(len(beside.units("Orders", queue_id)) for queue_id in range(4)) == 81

    sending(tmp_path, scenario, ProducerConfig(max_in_flight=4))
    with pytest.raises(WrongMessage, match="max_in_flight is 0"):
        ProducerConfig(max_in_flight=0)


def test_an_unanswered_send_has_an_error_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a send without an answer ended with a colon and no reason."""

    async def scenario(producer: Producer, _: ServedBroker) -> None:
        from engine.broker import processors

        await producer.send(Message("Orders", b"first"))
        monkeypatch.setitem(processors.HANDLERS, 310, lambda *_: None)
        with pytest.raises(NotSent, match=r"BrokersSent: .*: no answer within 50 ms"):
            await producer.send(Message("Orders", b"x"), timeout_s=0.05)

    sending(tmp_path, scenario)


def test_delays_and_timers_are_sent_to_the_broker(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"later", delay_level=3))
        (unit,) = beside.units("SCHEDULE_TOPIC_XXXX", 2)
        assert unit.properties["REAL_TOPIC"] == "Orders"
        result = await producer.send(Message("Orders", b"in an hour", delay_ms=3_600_000))
        assert result.recall_handle
        assert await producer.recall("Orders", result.recall_handle) == result.msg_id

    sending(tmp_path, scenario, broker=BrokerConfig(recall_message=True))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message("Orders", b""), "length is zero"),
        (Message("Or ders", b"x"), "illegal characters"),
        (Message(" ", b"x"), "blank"),
        (Message("o" * 128, b"x"), "longer than topic max length"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "forbidden"),
        (Message("Orders", b"x" * (4 << 20) + b"x"), "over max value"),
        (Message("Orders", b"x", properties={"a": "\x02"}), "0x01 or 0x02"),
        (Message("Orders", b"x", properties={"a": ""}), "blank string"),
        (Message("Orders", b"x", properties={"KEYS": "k"}), "has a field for it"),
        ([], "without messages"),
        ([Message("A", b"x"), Message("B", b"x")], "should be the same"),
        ([Message("A", b"x", delay_level=1)], "not supported for batching"),
        ([Message("A", b"x"), Message("A", b"x", waits=False)], "waitStoreMsgOK"),
    ],
)
def test_invalid_messages_are_refused_by_the_producer(tmp_path: Path, message, words: str) -> None:
    async def scenario(producer: Producer, _: ServedBroker) -> None:
        with pytest.raises(WrongMessage, match=words):
            await producer.send(message)

    sending(tmp_path, scenario)


def answering(beside: ServedBroker, monkeypatch: pytest.MonkeyPatch, codes: list[int]) -> None:
    """Let the broker refuse sends with these codes, one after the other, before it accepts."""
    from engine.broker import processors

    real = processors.HANDLERS[310]

    def refuses(broker, request, header, connection):
        if codes:
            raise Refused(codes.pop(0), "not now")
        return real(broker, request, header, connection)

    monkeypatch.setitem(processors.HANDLERS, 310, refuses)


@pytest.mark.parametrize(
    ("release", "codes", "tries"),
    [("5.3", [2, 14], 3), ("5.3", [13], 0), ("4.9", [14, 17], 3), ("4.9", [2], 0), ("5.3", [1, 1, 1], 0)],
)
def test_retries_follow_the_release(tmp_path: Path, monkeypatch, release: str, codes: list[int], tries: int) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"first"))
        answering(beside, monkeypatch, list(codes))
        ring = producer.events.ring()
        message = Message("Orders", b"x")
        if tries:
            result = await producer.send(message)
            (sent,) = [item for item in ring.take() if isinstance(item, Sent)]
            assert (sent.tries, sent.msg_id) == (tries, result.msg_id)
        elif len(codes) == 1:
            with pytest.raises(BrokerRefused) as raised:
                await producer.send(message)
            assert raised.value.code == codes[0]
        else:
            with pytest.raises(NotSent, match=r"Send \[3\] times") as raised:
                await producer.send(message)
            assert raised.value.brokers == ["broker-a"] * 3
            assert [failed.will_retry for failed in ring.take() if isinstance(failed, SendFailed)] == [
                True,
                True,
                False,
            ]

    sending(tmp_path, scenario, ProducerConfig(release=release))


def test_sends_to_a_chosen_queue_or_with_a_callback_are_not_retried_on_a_refusal(tmp_path: Path, monkeypatch) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        await producer.send(Message("Orders", b"first"))
        answering(beside, monkeypatch, [ResponseCode.SERVICE_NOT_AVAILABLE] * 2)
        with pytest.raises(BrokerRefused):
            await producer.send(Message("Orders", b"x"), key="k")
        with pytest.raises(NotSent):
            await producer.send_soon(Message("Orders", b"x"))
        assert len(beside.units("Orders")) == 1

    sending(tmp_path, scenario)


class DecidingListener:
    def __init__(
        self, execute_result: TransactionState, check_result: TransactionState = TransactionState.COMMIT
    ) -> None:
        self.execute_result, self.check_result = execute_result, check_result
        self.checked: list[str] = []

    def execute(self, _message, argument) -> TransactionState:
        if argument == "fails":
            raise RuntimeError("the bank is closed")
        return self.execute_result

    async def check(self, message) -> TransactionState:
        self.checked.append(message.keys)
        return self.check_result


@pytest.mark.parametrize(
    ("state", "stored_count"),
    [(TransactionState.COMMIT, 1), (TransactionState.ROLLBACK, 0), (TransactionState.UNKNOWN, 0)],
)
def test_a_transaction_is_decided_by_its_listener(tmp_path: Path, state: TransactionState, stored_count: int) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        ring = producer.events.ring()
        result, decision = await producer.send_in_transaction(Message("Orders", b"paid", keys="k"))
        assert result.is_ok
        assert decision == state
        if stored_count:
            await wait_until(lambda: beside.units("Orders"))
        assert len(beside.units("Orders")) == stored_count
        (ended,) = [event for event in ring.take() if isinstance(event, TransactionEnded)]
        assert (ended.decision, ended.checked) == (state.name, False)

    sending(tmp_path, scenario, listener=DecidingListener(state))


def test_a_broker_checks_an_undecided_transaction(tmp_path: Path) -> None:
    listener = DecidingListener(TransactionState.UNKNOWN)

    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        _, state = await producer.send_in_transaction(Message("Orders", b"paid", keys="order-1"), "fails")
        assert state == TransactionState.UNKNOWN
        await wait_until(lambda: beside.units("Orders"), 60)
        assert listener.checked == ["order-1"]

    quick = BrokerConfig(transaction_timeout_ms=200, transaction_check_interval_ms=300)
    sending(tmp_path, scenario, broker=quick, listener=listener)


def test_an_unanswered_request_times_out(tmp_path: Path) -> None:
    async def scenario(producer: Producer, beside: ServedBroker) -> None:
        with pytest.raises(NoReply):
            await producer.request(Message("Questions", b"?"), 0.3)
        (unit,) = beside.units("Questions")
        assert unit.properties["REPLY_TO_CLIENT"] == producer.client_id
        assert unit.properties["TTL"] == "300"

    sending(tmp_path, scenario)


def test_hooks_are_called_for_each_attempt(tmp_path: Path) -> None:
    class RecordingHook:
        def __init__(self) -> None:
            self.seen: list[object] = []

        def before(self, message, queue) -> None:
            self.seen.append(("before", message.body, queue.topic))

        def after(self, _message, _queue, result, error) -> None:
            self.seen.append(("after", result.status if result else None, error))

    hook = RecordingHook()

    async def scenario(producer: Producer, _: ServedBroker) -> None:
        await producer.send(Message("Orders", b"x"))
        assert hook.seen == [("before", b"x", "Orders"), ("after", "SEND_OK", None)]

    sending(tmp_path, scenario, hooks=[hook])


def test_a_producer_can_be_watched_and_paused(tmp_path: Path) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside:
            producer = Producer("senders", beside.namesrv)
            ring = producer.events.ring()
            with pytest.raises(NotRunning):
                await producer.send(Message("Orders", b"x"))
            await producer.start()
            assert beside.server.broker.clients.producer(producer.client_id) is not None
            producer.pause()
            waiting = producer.send_soon(Message("Orders", b"x"))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            producer.resume()
            producer.slow_down(0.01)
            await waiting
            await producer.stop()
            await wait_until(lambda: beside.server.broker.clients.producer(producer.client_id) is None)
            assert [type(item) for item in ring.take()] == [Started, Paced, Paced, Paced, Sent, Stopped]
            killed = Producer("senders", beside.namesrv)
            await killed.start()
            await killed.kill()
            await wait_until(lambda: not beside.server.broker.clients.producers)
            with pytest.raises(NotRunning):
                await killed.send(Message("Orders", b"x"))

    run_scenario(both)


def test_two_of_one_group_in_one_client_are_refused(tmp_path: Path) -> None:
    async def both() -> None:
        async with served(tmp_path / "store") as beside:
            shared = ClientInstance(beside.namesrv)
            async with Producer("senders", instance=shared):
                with pytest.raises(ClientError, match="created before"):
                    await Producer("senders", instance=shared).start()
                async with Producer("others", instance=shared) as second_producer:
                    await second_producer.send(Message("Orders", b"x"))

    run_scenario(both)


def test_a_start_without_a_name_server_fails_with_a_message() -> None:
    async def both() -> None:
        with pytest.raises(ClientError, match="no name server answers"):
            await Producer("senders", "127.0.0.1:1").start()

    run_scenario(both)
    with pytest.raises(ClientError, match="no name server address"):
        Producer("senders", "")
    with pytest.raises(WrongMessage):
        Producer("no group", "127.0.0.1:1")

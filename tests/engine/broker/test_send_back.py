"""What a consumer could not take comes again, at a level, or lies among the dead letters."""

from __future__ import annotations

from pathlib import Path

from brokers import Asking, asking, run, units

GROUP = "readers"


async def offset_of(client: Asking, body: bytes, **more: object) -> int:
    answer = await client.send("Orders", body, properties="KEYS\x01K\x02", **more)
    return int(str(answer.fields["msgId"])[-16:], 16)


def test_it_waits_in_the_levels_and_goes_to_the_retry_topic(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            offset = await offset_of(client, b"one")
            answer = await client.ask(36, offset=offset, group=GROUP, delayLevel=0, originTopic="Orders")
            assert (answer.code, answer.fields) == (0, {})
            (waiting,) = units(client, "SCHEDULE_TOPIC_XXXX", 2)
            assert (waiting.body, waiting.reconsume_times) == (b"one", 1)
            found = waiting.properties
            assert found["REAL_TOPIC"] == f"%RETRY%{GROUP}"
            assert (found["DELAY"], found["RETRY_TOPIC"], found["WAIT"], found["KEYS"]) == ("3", "Orders", "false", "K")
            origin = client.server.broker.store.look_message_by_offset(offset)
            assert origin is not None
            assert found["ORIGIN_MESSAGE_ID"] == origin.offset_msg_id
            topic = client.server.broker.topics.get(f"%RETRY%{GROUP}")
            assert topic is not None
            assert (topic.read_queue_nums, topic.perm) == (1, 6)

    run(told)


def test_after_the_last_time_it_is_a_dead_letter(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            for number, asked in enumerate(({"delayLevel": -1}, {"delayLevel": 0, "maxReconsumeTimes": 0})):
                offset = await offset_of(client, b"%d" % number)
                assert (await client.ask(36, offset=offset, group=GROUP, **asked)).code == 0
            found = units(client, f"%DLQ%{GROUP}")
            assert [unit.body for unit in found] == [b"0", b"1"]
            assert [unit.properties["DELAY"] for unit in found] == ["0", "0"]

    run(told)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            offset = await offset_of(client, b"one")
            answer = await client.ask(36, offset=offset + 1, group=GROUP, delayLevel=0)
            assert (answer.code, answer.remark) == (1, f"look message by offset failed, {offset + 1}")

    run(told)


def test_what_came_again_comes_again(tmp_path: Path) -> None:
    """The client names the topic that the message was sent to, not the retry topic that it lies in: a check of that
    name lost every second retry.
    """

    async def told() -> None:
        async with asking(tmp_path) as client:
            offset = await offset_of(client, b"one")
            for times in (1, 2):
                asked = {"offset": offset, "group": GROUP, "delayLevel": 1, "originTopic": "Orders"}
                assert (await client.ask(36, **asked)).code == 0
                (*_, waiting) = units(client, "SCHEDULE_TOPIC_XXXX")
                assert (waiting.reconsume_times, waiting.properties["RETRY_TOPIC"]) == (times, "Orders")
                offset = waiting.physical_offset

    run(told)


def test_dead_letters_of_a_group_with_a_long_name_have_a_topic_and_no_message(tmp_path: Path) -> None:
    """As in RocketMQ 5.3, which makes the topic and puts nothing there: the name is too long for a message. Ours told
    of an error of its own, and took sends to such a retry topic, which RocketMQ refuses.
    """
    long = "g-" + "0123456789" * 14

    async def told() -> None:
        async with asking(tmp_path, release="5.3") as client:
            offset = await offset_of(client, b"one")
            answer = await client.ask(36, offset=offset, group=long, delayLevel=-1)
            assert (answer.code, answer.remark) == (1, "MESSAGE_ILLEGAL")
            assert client.server.broker.topics.get(f"%DLQ%{long}") is not None
            refused = await client.send(f"%RETRY%{long}", b"two", reconsumeTimes=1)
            assert (refused.code, refused.remark) == (29, "The specified topic is longer than topic max length.")

    run(told)

"""Records of the revive topic, handles and names: real bytes of a 5.3.3 broker
(docs/protocol/check-vectors.md#pop), in both directions.
"""

from __future__ import annotations

import pytest

from engine.codec.pop import (
    Ack,
    CheckPoint,
    Handle,
    entries,
    is_retry_v2,
    mark_of,
    normal_topic,
    read_ack,
    read_check_point,
    real_topic,
    retry_topic,
    revive_topic,
)

CHECK_POINT = CheckPoint("PopTopic", "popg", 0, 0, 1795424194035, 10_000, "broker-a", (1,), 1)
CHECK_POINT_BODY = (
    b'{"bm":0,"bn":"broker-a","c":"popg","d":[1],"it":10000,"n":1,"pt":1795424194035,"q":0,"reviveTime":1795424204035,'
    b'"ro":0,"so":0,"t":"PopTopic"}'
)
ACKS = [
    pytest.param(
        Ack("PopTopic", "popg", 1, 0, 1795424194035, "broker-a", 0),
        "ack",
        b'{"ao":0,"bn":"broker-a","c":"popg","pt":1795424194035,"q":1,"so":0,"t":"PopTopic"}',
        "PopTopic@1@0@popg@1795424194035@broker-a@ack",
        id="one",
    ),
    pytest.param(
        Ack("PopTopic", "apig", 0, 0, 1795424194767, "broker-a", offsets=(0, 1, 2, 3, 4)),
        "bAck",
        b'{"ao":-1,"aol":[0,1,2,3,4],"bn":"broker-a","c":"apig","pt":1795424194767,"q":0,"so":0,"t":"PopTopic"}',
        "PopTopic@0@-1@apig@1795424194767@broker-a@ack",
        id="a batch",
    ),
]


def test_a_checkpoint_is_written_as_java_writes_it() -> None:
    assert CHECK_POINT.body() == CHECK_POINT_BODY
    assert CHECK_POINT.unique_key == "PopTopic@0@0@popg@1795424194035@broker-a@ck"
    assert (CHECK_POINT.due, CHECK_POINT.offsets) == (1795424204035, (1,))


def test_a_checkpoint_is_read() -> None:
    assert read_check_point(CHECK_POINT_BODY, 0) == CHECK_POINT
    second_point = CheckPoint("T", "g", 0, 4, 1, 2, "b", (0,), 1, 3, 9)
    assert b'"ro":0,"rp":"3","so":4' in second_point.body()
    assert read_check_point(second_point.body(), 9) == second_point


def test_a_checkpoint_of_the_oldest_form_counts_from_its_start_offset() -> None:
    results = read_check_point(b'{"so":5,"n":3,"t":"T","c":"g","pt":1,"it":2,"rp":"often"}', 7)
    assert results is not None
    assert (results.offsets, results.rewrite_count, results.revive_offset) == ((5, 6, 7), 127, 7)


@pytest.mark.parametrize("body", [b"", b"2-17", b"[]", b'{"t":1,"c":"g"}', b"\xff", b"[" * 100_000])
def test_an_invalid_record_is_none(body: bytes) -> None:
    assert read_check_point(body, 0) is None
    assert read_ack(body, "ack", "broker-a") is None


@pytest.mark.parametrize(("ack", "tag", "body", "key"), ACKS)
def test_an_acknowledgement_is_written_and_read(ack: Ack, tag: str, body: bytes, key: str) -> None:
    assert (ack.tag, ack.body(), ack.unique_key) == (tag, body, key)
    actual_ack = read_ack(body, tag, "another")
    assert actual_ack == ack


def test_an_acknowledgement_finds_its_checkpoint() -> None:
    ack = Ack("PopTopic", "popg", 0, 0, 1795424194035, "broker-a", 1)
    assert ack.merge_key == CHECK_POINT.merge_key
    assert ack.all_offsets == CHECK_POINT.offsets
    unnamed = read_ack(b'{"topic":"PopTopic","consumerGroup":"popg","popTime":1795424194035}', "ack", "broker-a")
    assert unnamed is not None
    assert unnamed.merge_key == CHECK_POINT.merge_key


def test_a_handle_is_read_and_written() -> None:
    text = "0 1795424194035 10000 1 0 broker-a 1 0"
    handle = Handle.parse(text)
    assert handle == Handle(0, 1795424194035, 10_000, 1, "0", "broker-a")
    assert handle.of_message(1, 0) == text
    assert Handle.parse(text + " 37952") == handle
    assert (handle.due, handle.is_orderly) == (1795424204035, False)
    assert Handle.parse("0 1 2 999 0 b").is_orderly


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 1 2", "getBrokerName fail, extraInfoStrs length 3"),
        ("0 one 2 3 0 broker-a 1 0", 'For input string: "one"'),
    ],
)
def test_an_invalid_handle_is_refused_with_javas_message(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Handle.parse(text)


def test_retry_topics_have_names_of_two_forms() -> None:
    assert revive_topic("PeerCluster") == "rmq_sys_REVIVE_LOG_PeerCluster"
    form_1, form_2 = retry_topic("PopTopic", "a_b"), retry_topic("PopTopic", "a_b", v2=True)
    assert (form_1, form_2) == ("%RETRY%a_b_PopTopic", "%RETRY%a_b+PopTopic")
    assert [normal_topic(name, "a_b") for name in (form_1, form_2, "PopTopic")] == ["PopTopic"] * 3
    assert [mark_of(name) for name in ("PopTopic", form_1, form_2)] == ["0", "1", "2"]
    assert [real_topic("PopTopic", "a_b", mark) for mark in "012"] == ["PopTopic", form_1, form_2]
    assert [is_retry_v2(name) for name in (form_1, form_2)] == [False, True]
    with pytest.raises(ValueError, match="format is wrong"):
        real_topic("PopTopic", "a_b", "3")


def test_texts_are_entries_of_three_fields() -> None:
    assert entries([("0", 1, 0), ("0", 0, "1,2")]) == "0 1 0;0 0 1,2"
    assert entries([]) == ""

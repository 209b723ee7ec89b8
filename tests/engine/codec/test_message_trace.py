"""Traces as RocketMQ 5.5.1 clients wrote them."""

from __future__ import annotations

import pytest

from engine.codec.message_trace import MessageTrace, decode

KEY, REQUEST = "FD0000000000000000000000000000027C6230946E0995940DBE0000", "FD0000000000000000000000000000027C62"
SENT = f"Pub|1796000708506|DefaultRegion|shop1|Orders|{KEY}|T|K1-0|127.0.0.1:30911|6|61|0|7F0000010000|true"
RECEIVED = f"SubBefore|1796000769119|DefaultRegion|billing|{REQUEST}|{KEY}|0|K1-5"
FAILED = f"SubAfter|{REQUEST}|{KEY}|10|false|K2-33|4|1796000769133|billing"
ENDED = f"EndTransaction|5|DefaultRegion|shop|Orders|{KEY}|null|null|h:1|2|{KEY}|COMMIT_MESSAGE|false"
RECALLED = f"Recall|5|DefaultRegion|shop|Orders|{KEY}|true"


def body(*traces: str) -> bytes:
    return "".join(trace.replace("|", "\x01") + "\x02" for trace in traces).encode()


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        (
            SENT,
            MessageTrace(
                "send",
                KEY,
                1796000708506,
                "shop1",
                "Orders",
                "K1-0",
                "127.0.0.1:30911",
                61,
                True,
                message_type="normal",
                offset_message_id="7F0000010000",
            ),
        ),
        (
            RECEIVED,
            MessageTrace("receive", KEY, 1796000769119, "billing", keys="K1-5", retry_times=0, request_id=REQUEST),
        ),
        (
            FAILED,
            MessageTrace(
                "consumed",
                KEY,
                1796000769133,
                "billing",
                keys="K2-33",
                cost_ms=10,
                is_success=False,
                result="failed",
                request_id=REQUEST,
            ),
        ),
        (
            ENDED,
            MessageTrace(
                "endTransaction",
                KEY,
                5,
                "shop",
                "Orders",
                broker="h:1",
                result="COMMIT_MESSAGE",
                message_type="commit",
            ),
        ),
        (RECALLED, MessageTrace("recall", KEY, 5, "shop", "Orders", is_success=True)),
    ],
)
def test_each_kind_of_trace(text, trace):
    assert list(decode(body(text))) == [trace]


def test_traces_of_one_body_come_in_order_and_what_is_none_is_passed_over():
    read = list(decode(body(RECEIVED, "Unknown|1", "Pub|1", FAILED) + b"\xff\x00"))
    assert [trace.action for trace in read] == ["receive", "consumed"]


def test_a_send_without_an_offset_id_and_a_listener_of_an_old_client():
    old = SENT.replace("|7F0000010000", "")
    assert [(trace.is_success, trace.offset_message_id) for trace in decode(body(old))] == [(True, "")]
    (consumed,) = decode(body(f"SubAfter|{REQUEST}|{KEY}|x|true|K"))
    assert (consumed.time, consumed.cost_ms, consumed.result) == (None, None, "")

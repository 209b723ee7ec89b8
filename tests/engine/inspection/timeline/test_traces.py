"""Message traces as events: who sent and received, how long, how it ended."""

from __future__ import annotations

import zlib

from engine.inspection import open_store
from engine.inspection.timeline.timeline import find_timeline
from engine.inspection.timeline.traces import TraceCollector
from engine.message_store import Message, MessageStore
from engine.system_names import TRACE_TOPIC

A, B = "0A0000011F4012345678001122330007", "0A0000011F4012345678001122330008"


def trace(*fields) -> str:
    return "\x01".join(str(field) for field in fields) + "\x02"


SENT = trace("Pub", 1000, "R", "shop", "Orders", A, "T", "K1", "10.0.0.9:10911", 6, 61, 0, "7F00", "true")
NOT_SENT = trace("Pub", 2000, "R", "shop", "Orders", B, "T", "K2", "null", 6, 3000, 0, "null", "false")
RECEIVED = trace("SubBefore", 3000, "R", "billing", "Q1", A, 1, "K1")
CONSUMED = trace("SubAfter", "Q1", A, 250, "false", "K1", 4, 3251, "billing")
LEFT_OPEN = trace("SubBefore", 4000, "R", "billing", "Q2", B, 0, "K2")
COMMITTED = trace("EndTransaction", 5000, "R", "shop", "Orders", A, "T", "K1", "h:1", 2, A, "COMMIT_MESSAGE", "false")


def events_of(root, *bodies: bytes, sys_flag: int = 0, **options):
    with MessageStore(root) as store:
        for body in bodies:
            message = Message(TRACE_TOPIC, body, born_host="10.0.0.5:4000", sys_flag=sys_flag)
            assert store.put_message(message).status.name == "PUT_OK"
    collector = TraceCollector(**options)
    with open_store(root) as store:
        timeline = find_timeline(store, traces=collector)
    return [event for event in timeline.events if event.source == TRACE_TOPIC], timeline


def test_a_message_is_followed_from_its_sender_to_the_end_of_its_listener(tmp_path):
    events, timeline = events_of(tmp_path, (SENT + NOT_SENT).encode(), (RECEIVED + LEFT_OPEN + CONSUMED).encode())
    assert [(event.kind, event.start, event.end, event.evidence["success"]) for event in events] == [
        ("messageSent", 1000, 1061, True),
        ("messageSent", 2000, 5000, False),
        ("messageConsumed", 3000, 3250, False),
        ("messageConsumed", 4000, None, None),
    ]
    assert [event.message for event in events] == [
        f"Group shop at 10.0.0.5:4000 sent message {A} to topic Orders within 61 ms",
        f"Group shop at 10.0.0.5:4000 failed to send message {B} to topic Orders, after 3 s",
        f"Group billing at 10.0.0.5:4000 consumed message {A} within 250 ms: failed",
        f"Group billing at 10.0.0.5:4000 got message {B}; no trace says how that ended",
    ]
    assert (timeline.trace_units, timeline.unknown_traces) == (2, 0)


def test_one_message_is_chosen_by_its_unique_key_or_a_key(tmp_path):
    bodies = (SENT + NOT_SENT + RECEIVED + CONSUMED + COMMITTED).encode()
    events, _ = events_of(tmp_path, bodies, message=A)
    assert [event.kind for event in events] == ["messageSent", "messageConsumed", "transactionEnded"]
    with open_store(tmp_path) as store:
        collector = TraceCollector(message="K2")
        find_timeline(store, traces=collector)
    assert [event.evidence["uniqueKey"] for event in collector.events] == [B]


def test_compressed_traces_are_read_and_others_counted_as_unknown(tmp_path):
    events, timeline = events_of(tmp_path, zlib.compress(SENT.encode()), b"nothing", sys_flag=1)
    assert [event.kind for event in events] == ["messageSent"]
    assert (timeline.trace_units, timeline.unknown_traces) == (2, 1)


def test_traces_beyond_the_limit_are_counted_and_without_a_wish_only_the_units(tmp_path):
    events, timeline = events_of(tmp_path, (SENT + NOT_SENT).encode(), limit=1)
    assert (len(events), timeline.traces_left_out) == (1, 1)
    with open_store(tmp_path) as store:
        timeline = find_timeline(store)
    assert (timeline.trace_units, [event.kind for event in timeline.events if event.source == TRACE_TOPIC]) == (1, [])

"""Recordings: written items are read back, also from truncated files; a size limit reports what it left out; the
request log.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import contract_records
import pytest
import recorded_requests
from brokers import run_scenario

from engine.broker.serving import serving_store
from engine.errors import CannotRead
from engine.message_store import MessageStore
from engine.remoting.exchanges import BROKEN, CAME, OPENED, FrameEvent
from engine.remoting.frame import Command, encode
from engine.remoting.recording import (
    MAGIC,
    Recorder,
    Recording,
    Replay,
    RequestLog,
    ResentRequest,
    decode_events,
    encode_events,
    exchanges_of,
)

COMMAND = Command(34, opaque=3, language="GO", version=397)
ITEMS = [
    FrameEvent(1_700_000_000_000_000, 1, OPENED, b"127.0.0.1:4711 broker"),
    FrameEvent(1_700_000_000_000_001, 1, CAME, b"".join(encode(COMMAND)), COMMAND),
    FrameEvent(1_700_000_000_000_002, 1, BROKEN, b"GET", None, "no frame"),
]


def test_items_round_trip() -> None:
    assert list(decode_events(io.BytesIO(encode_events(ITEMS)))) == ITEMS


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "talk.requests")
    for item in ITEMS:
        recorder.take(item)
    recorder.close()
    recorder.close()
    recording = Recording(tmp_path / "talk.requests")
    assert (list(recording), recording.left_out) == (ITEMS, 0)


def test_a_truncated_recording_is_read_to_its_end(tmp_path: Path) -> None:
    magic = MAGIC + encode_events(ITEMS)
    for length in range(len(MAGIC), len(magic)):
        (tmp_path / "cut").write_bytes(magic[:length])
        recording = Recording(tmp_path / "cut")
        actual_recording = list(recording)
        assert actual_recording == ITEMS[: len(actual_recording)]
        assert recording.left_out is None


def test_a_full_recording_reports_what_it_left_out(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "full", len(MAGIC) + len(encode_events(ITEMS[:2])))
    for item in [*ITEMS, *ITEMS]:
        recorder.take(item)
    recorder.close()
    recording = Recording(tmp_path / "full")
    assert list(recording) == ITEMS[:2]
    assert recording.left_out == 4


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no").write_bytes(b"{}\n")
    with pytest.raises(CannotRead, match="is not a recording"):
        list(Recording(tmp_path / "no"))
    (tmp_path / "spoilt").write_bytes(MAGIC + b"\xff" * 100)
    with pytest.raises(CannotRead, match="holds no item before byte"):
        list(Recording(tmp_path / "spoilt"))


def test_a_recording_begins_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "there")


def test_the_log_has_a_line_for_each_exchange(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "requests.jsonl")
    recorded_requests.seen_in_a_talk(tmp_path / "store", log.take)
    log.take(ITEMS[0])
    log.take(ITEMS[1])
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        assert not contract_records.complaints(line), line
    assert [line["name"] for line in lines].count("PULL_MESSAGE") == 3
    assert [line["held"] for line in lines if line["name"] == "PULL_MESSAGE"] == [False, True, False]
    last_line = lines[-1]
    assert (last_line["name"], last_line["answer"], last_line["ms"], last_line["language"]) == (
        "HEART_BEAT",
        None,
        None,
        "GO",
    )


def entries(store: MessageStore, topic: str) -> list[bytes]:
    message = store.get_message("g", topic, 0 if topic == "Orders" else 2, 0)
    if message is None:
        return []
    with message:
        return [unit.body for unit in message.units()]


def test_the_second_store_holds_what_the_first_does(tmp_path: Path) -> None:
    exchanges = exchanges_of(recorded_requests.seen_in_a_talk(tmp_path / "first"))
    calls: list[ResentRequest] = []

    async def scenario() -> None:
        async with serving_store(tmp_path / "second", port=0) as server:
            await recorded_filler(server.broker.store)
            result = await Replay(exchanges, server.address, calls.append).run()
            assert (result.sent, result.one_way, result.unanswered) == (11, 1, 0)
            assert result.same + result.differs + result.answered_now + result.one_way == result.sent
            assert (result.same, result.differs) == (10, 0), [item for item in calls if not item.same]
            assert result.left_out == 1  # requests of the broker itself
            server.broker.store.wait_dispatched()
            assert entries(server.broker.store, "Orders") == [b"cup 0", b"cup 1", b"cup 2", b"cup 3"]

    run_scenario(scenario)
    with MessageStore(tmp_path / "second") as store:
        message = store.get_message("g", "Orders", 2, 0)
        assert message is not None
        with message:
            assert [unit.body for unit in message.units()] == [b"0"]  # the transaction, committed at its new offset


async def recorded_filler(store: MessageStore) -> None:
    """Put a message of another topic first, so that offsets differ from those in the first store."""
    from engine.codec.encode import Message

    assert store.put_message(Message("Filler", b"x" * 1000)).ok


def test_only_some_requests_are_sent_again(tmp_path: Path) -> None:
    exchanges = exchanges_of(recorded_requests.seen_in_a_talk(tmp_path / "first"))

    async def scenario() -> None:
        async with serving_store(tmp_path / "second", port=0) as server:
            result = await Replay(exchanges, server.address, only=["SEND_MESSAGE"]).run()
            assert (result.sent, result.same, result.left_out) == (5, 5, 7)
            assert dict(result.by_name) == {"SEND_MESSAGE": 5}

    run_scenario(scenario)

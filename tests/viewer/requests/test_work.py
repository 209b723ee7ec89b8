"""Files of requests are read as they were written, and errors are reported with their position."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import recorded_requests

from engine.errors import CannotRead, UsageError
from engine.message_store import MessageStore
from engine.remoting.exchanges import Exchange
from engine.remoting.recording import Recorder, Recording, exchanges_of
from engine.remoting.recording import RequestLog as LinesOfRequests
from viewer.requests import work
from viewer.requests.request_log import RequestLog


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    recorder, log = Recorder(folder / "talk.requests"), LinesOfRequests(folder / "talk.jsonl")
    recorded_requests.seen_in_a_talk(folder / "store", recorder.take, log.take)
    recorder.close()
    log.close()
    return folder


def test_both_kinds_of_files_have_the_same_requests(files: Path) -> None:
    frames, lines = work.read_file(files / "talk.requests"), work.read_file(files / "talk.jsonl")
    from_frames = exchanges_of(frames.items)

    def key(exchange: Exchange) -> tuple[object, ...]:
        return (
            exchange.time,
            exchange.opaque,
            exchange.name,
            exchange.answer_code,
            exchange.topic,
            exchange.offset,
        )

    assert sorted(map(key, from_frames), key=str) == sorted(map(key, lines.exchanges), key=str)
    assert (frames.left_out, lines.left_out, frames.passed, lines.passed) == (0, 0, 0, 0)


def test_a_growing_log_is_read_to_its_end(files: Path, tmp_path: Path) -> None:
    content = (files / "talk.jsonl").read_bytes()
    (tmp_path / "half.jsonl").write_bytes(content[:-20])
    opened = work.read_file(tmp_path / "half.jsonl")
    assert (len(opened.exchanges), opened.left_out) == (11, None)


def test_a_large_recording_shows_its_end(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_SHOWN_BYTES", 5_000)
    opened = work.read_file(files / "talk.requests")
    assert opened.passed > 0
    assert len(opened.items) + opened.passed == len(list(Recording(files / "talk.requests")))


def test_a_file_without_requests_is_reported(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("hello")
    with pytest.raises(CannotRead, match="holds no requests"):
        work.read_file(tmp_path / "no")
    (tmp_path / "other.jsonl").write_text('{"type":"unit"}\n')
    with pytest.raises(CannotRead, match="line 1: a record of the type request is expected"):
        work.read_file(tmp_path / "other.jsonl")
    with pytest.raises(OSError, match="absent"):
        work.read_file(tmp_path / "absent")


def test_shown_rows_are_written_as_lines_and_as_a_recording(files: Path, tmp_path: Path) -> None:
    opened = work.read_file(files / "talk.requests")
    log = RequestLog()
    log.take(opened.items)
    assert work.write_lines(tmp_path / "out.jsonl", log.rows) == 12
    names = [json.loads(line)["name"] for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert names == [row.name for row in log.rows]
    log.show_by_frame(True)
    assert work.write_lines(tmp_path / "frames.jsonl", log.rows) == len(log.rows) > 12
    records = [json.loads(line) for line in (tmp_path / "frames.jsonl").read_text("utf-8").splitlines()]
    assert [(record["type"], record["number"]) for record in records] == [("frame", row.number) for row in log.rows]
    with pytest.raises(CannotRead, match="line 1: a record of the type request is expected, not 'frame'"):
        work.read_file(tmp_path / "frames.jsonl")
    assert work.write_recording(tmp_path / "out.requests", opened.items) == len(opened.items)
    assert work.read_file(tmp_path / "out.requests").items == opened.items


def test_a_recording_is_replayed_into_a_new_store(files: Path, tmp_path: Path) -> None:
    exchanges = exchanges_of(work.read_file(files / "talk.requests").items)
    result = work.replay_into(tmp_path / "again", exchanges)
    assert (result.sent, result.differs, result.unanswered) == (11, 0, 0)
    with MessageStore(tmp_path / "again") as store:
        assert store.max_offset_in_queue("Orders", 0) == 4
    with pytest.raises(UsageError, match="is not empty"):
        work.replay_into(tmp_path / "again", exchanges)

"""Sources of rows: files, and a server that is followed, paused, lost; each frame appears once, and losses are
counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import recorded_requests

from engine.errors import BadFilter
from engine.remoting.exchanges import FrameEvent
from engine.remoting.recording import Recorder, encode_events
from viewer.requests.watch import RequestWatch


def run(work, done, failed):
    try:
        result = work()
    except Exception as error:  # noqa: BLE001
        failed(error)
    else:
        done(result)


class FrameFeed:
    """A feed of stored frames, ``piece`` at a time."""

    def __init__(self, items: list[FrameEvent], piece: int = 5) -> None:
        self.items, self.piece = items, piece
        self.address = "127.0.0.1:10911"
        self.on: list[bool] = []
        self.gone = 0

    def fetch(self, since, done):
        start = max(since, self.gone)
        frames = self.items[start : start + self.piece]
        done(start, start + len(frames), encode_events(frames))

    def record(self, on, done=lambda: None):
        self.on.append(on)
        done()


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> list[FrameEvent]:
    return recorded_requests.seen_in_a_talk(tmp_path_factory.mktemp("talk") / "store")


@pytest.fixture
def watch(qtbot) -> RequestWatch:
    return RequestWatch(run)


def test_a_file_is_shown(watch: RequestWatch, talk: list[FrameEvent], tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "talk.requests")
    for frame in talk:
        recorder.take(frame)
    recorder.close()
    watch.open_file(tmp_path / "talk.requests")
    assert (watch.source_status.kind, len(watch.log.rows)) == ("file", 12)


def test_a_recording_that_another_broker_writes_is_followed_to_its_end(
    watch: RequestWatch, talk: list[FrameEvent], tmp_path: Path
) -> None:
    """Requests of a broker outside the window's lab could be read only from a completed file."""
    recorder = Recorder(tmp_path / "talk.requests")
    for frame in talk[:8]:
        recorder.take(frame)
    watch.open_file(tmp_path / "talk.requests")
    row_count = len(watch.log.rows)
    assert (watch.source_status.kind, watch.running) == ("file", False)
    watch._fetch()
    assert (watch.source_status.kind, len(watch.log.rows)) == ("file", row_count)
    for frame in talk[8:]:
        recorder.take(frame)
    watch._fetch()
    assert (watch.source_status.kind, len(watch.log.rows), watch.running, watch.unsaved) == ("live", 12, True, 0)
    recorder.close()
    watch._fetch()
    assert (watch.source_status.kind, watch.source_status.left_out, watch.feed) == ("file", 0, None)
    assert len(watch.log.rows) == 12


def test_a_followed_recording_can_be_paused_and_stopped(
    watch: RequestWatch, talk: list[FrameEvent], tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path / "talk.requests")
    watch.open_file(tmp_path / "talk.requests")
    recorder.take(talk[0])
    watch._fetch()
    watch.pause()
    assert (watch.source_status.kind, watch._timer.isActive()) == ("paused", False)
    watch.pause()
    recorder.close()
    (tmp_path / "talk.requests").unlink()
    watch._fetch()
    assert watch.source_status.kind == "live", "what cannot be read just now brings nothing"
    watch.end()
    assert (watch.source_status.kind, watch.running) == ("file", False)


def test_an_unreadable_file_has_a_reason(watch: RequestWatch, tmp_path: Path) -> None:
    watch.open_file(tmp_path / "absent")
    assert watch.source_status.kind == "off"
    assert watch.source_status.fault == f"{tmp_path / 'absent'}: No such file or directory"


def test_a_server_is_followed_piece_by_piece(watch: RequestWatch, talk: list[FrameEvent]) -> None:
    feed = FrameFeed(talk)
    watch.follow(feed)
    assert (watch.source_status.kind, feed.on) == ("live", [True])
    rows = []
    watch.rowsChanged.connect(lambda new, _changed: rows.extend(new))
    for _ in range(10):
        watch._fetch()
    assert [row.name for row in rows] == [row.name for row in watch.log.rows]
    assert (len(rows), watch.log.missed) == (12, 0)
    watch.end()
    assert (watch.source_status.kind, feed.on) == ("ended", [True, False])
    assert len(watch.log.rows) == 12


def test_frames_dropped_before_the_fetch_are_counted(watch: RequestWatch, talk: list[FrameEvent]) -> None:
    feed = FrameFeed(talk)
    watch.follow(feed)
    watch._fetch()
    feed.gone = 12
    watch._fetch()
    assert watch.log.missed == 7


def test_a_pause_sends_no_request(watch: RequestWatch, talk: list[FrameEvent]) -> None:
    watch.follow(FrameFeed(talk))
    watch.pause()
    assert (watch.source_status.kind, watch._timer.isActive()) == ("paused", False)
    watch.pause()
    assert (watch.source_status.kind, watch._timer.isActive()) == ("live", True)


def test_a_server_that_is_gone_ends_it(watch: RequestWatch, talk: list[FrameEvent]) -> None:
    feed = FrameFeed(talk)
    watch.follow(feed)
    feed.address = ""
    watch._fetch()
    assert watch.source_status.kind == "ended"


def test_an_invalid_filter_changes_nothing(watch: RequestWatch, talk: list[FrameEvent]) -> None:
    watch.log.take(talk)
    watch.show("held")
    with pytest.raises(BadFilter):
        watch.show("held and")
    assert (watch.text, len(watch.log.rows)) == ("held", 1)


def test_rows_are_exported_and_replayed(watch: RequestWatch, talk: list[FrameEvent], tmp_path: Path) -> None:
    watch.log.take(talk)
    watch.show("held")
    results: list[object] = []
    watch.export(tmp_path / "out.jsonl", watch.log.rows, results.append)
    watch.export(tmp_path / "out.requests", watch.log.rows, results.append)
    assert results[0] == 1
    watch.replay(tmp_path / "again", results.append)
    assert results[2].sent == 11
    watch.replay(tmp_path / "again", results.append)
    assert "not empty" in str(results[3])

"""Looks that are written to a file and shown again."""

from __future__ import annotations

import pytest
from sample_position_looks import FILES, START, look

from viewer.positions.recording import NoRecording, Recorder, read_recording
from viewer.runtime.live_history import LiveHistory, fill
from viewer.runtime.position_reading import Flush, gaps_of


def test_a_recording_keeps_the_answers(tmp_path) -> None:
    recorder = Recorder(tmp_path / "seen.jsonl", "/store")
    for number in (1, 2, 3):
        recorder.add(look(number, statuses={"PUT_OK": 4 if number < 3 else 9}))
    recorder.write()
    lines = (tmp_path / "seen.jsonl").read_text("utf-8").splitlines()
    assert ["statuses" in line for line in lines[1:]] == [True, False, True]
    assert [item.puts for item in read_recording(tmp_path / "seen.jsonl")[1]] == [4, 4, 9]


def test_a_recording_gives_back_what_was_looked_at(tmp_path) -> None:
    looks = [look(n, flushes=(Flush(START + n, n, n, 1.5, 2),) if n % 3 == 0 else ()) for n in range(30)]
    recorder = Recorder(tmp_path / "one.jsonl", "/a/store")
    for item in looks:
        recorder.add(item)
        if item.time_ms % 500 == 0:
            recorder.write()
    recorder.write()
    store, results = read_recording(recorder.path)
    assert store == "/a/store"
    assert [one.offsets() for one in results] == [one.offsets() for one in looks]
    assert [one.flushes for one in results] == [one.flushes for one in looks]
    assert {one.files for one in results} == {FILES}
    assert fill(LiveHistory(), results).gaps["flush"].values[-1] == gaps_of(looks[-1]).flush


def test_a_recording_that_was_cut_off_still_opens(tmp_path) -> None:
    recorder = Recorder(tmp_path / "one.jsonl", "/a/store")
    for number in range(3):
        recorder.add(look(number))
    recorder.write()
    text = recorder.path.read_text("utf-8")
    recorder.path.write_text(text[:-20], encoding="utf-8")
    assert len(read_recording(recorder.path)[1]) == 2


@pytest.mark.parametrize("text", ["", "no json\n", '{"type": "unit"}\n', '{"type": "recording", "version": 9}\n'])
def test_what_is_no_recording_is_said_to_be_none(tmp_path, text: str) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NoRecording):
        read_recording(path)

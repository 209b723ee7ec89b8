"""Samples that are written to a file and shown again."""

from __future__ import annotations

import pytest
from sample_position_looks import FILES, START, look

from viewer.positions.recording import NoRecording, Recorder, read_recording
from viewer.runtime.live_history import LiveHistory, fill
from viewer.runtime.position_reading import Flush, gaps_of


def test_a_recording_keeps_the_positions(tmp_path) -> None:
    recorder = Recorder(tmp_path / "seen.jsonl", "/store")
    for number in (1, 2, 3):
        recorder.add(look(number, statuses={"PUT_OK": 4 if number < 3 else 9}))
    recorder.write()
    lines = (tmp_path / "seen.jsonl").read_text("utf-8").splitlines()
    assert ["statuses" in line for line in lines[1:]] == [True, False, True]
    assert [item.puts for item in read_recording(tmp_path / "seen.jsonl")[1]] == [4, 4, 9]


def test_a_recording_returns_the_written_samples(tmp_path) -> None:
    written = [look(n, flushes=(Flush(START + n, n, n, 1.5, 2),) if n % 3 == 0 else ()) for n in range(30)]
    recorder = Recorder(tmp_path / "one.jsonl", "/a/store")
    for sample in written:
        recorder.add(sample)
        if sample.time_ms % 500 == 0:
            recorder.write()
    recorder.write()
    store, read_samples = read_recording(recorder.path)
    assert store == "/a/store"
    assert [sample.offsets() for sample in read_samples] == [sample.offsets() for sample in written]
    assert [sample.flushes for sample in read_samples] == [sample.flushes for sample in written]
    assert {sample.files for sample in read_samples} == {FILES}
    assert fill(LiveHistory(), read_samples).gaps["flush"].values[-1] == gaps_of(written[-1]).flush


def test_a_truncated_recording_still_opens(tmp_path) -> None:
    recorder = Recorder(tmp_path / "one.jsonl", "/a/store")
    for number in range(3):
        recorder.add(look(number))
    recorder.write()
    text = recorder.path.read_text("utf-8")
    recorder.path.write_text(text[:-20], encoding="utf-8")
    assert len(read_recording(recorder.path)[1]) == 2


@pytest.mark.parametrize("text", ["", "no json\n", '{"type": "unit"}\n', '{"type": "recording", "version": 9}\n'])
def test_another_file_is_refused(tmp_path, text: str) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(NoRecording):
        read_recording(path)

"""A recording returns the written readings, and opens even if it is truncated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sample_clusters as made

from engine.cluster.state import Refusal
from viewer.cluster.recording import NoRecording, Recorder, head_line, read_recording, state_of, state_record

STATES = [
    made.small(0),
    made.small(1),
    made.small(2, owns={made.C1: made.A}, refusals=(Refusal("a:1", "GET_X", "g c", 3, "no"),)),
    made.small(3, name_servers={made.NAMES: "no answer"}),
]


@pytest.mark.parametrize("state", [*STATES, made.large(0, 6, 4, 6)])
def test_a_state_round_trips_through_its_record(state):
    record = json.loads(json.dumps(state_record(state)))
    assert state_of(record) == state


def test_slaves_and_held_pulls_are_recorded_and_absent_in_older_recordings():
    record = state_record(STATES[0])
    assert [(broker.broker_id, broker.held_pulls is None) for broker in state_of(record).brokers] == [
        (0, False),
        (1, False),
        (0, True),
    ]
    del record["held"]
    assert {item.held_pulls for item in state_of(record).brokers} == {None}


def written(path: Path) -> Recorder:
    recorder = Recorder(path, made.NAMES)
    for state in STATES:
        recorder.add(state)
    recorder.write()
    return recorder


def test_recorded_readings_are_read_back(tmp_path: Path):
    recorder = written(tmp_path / "r.jsonl")
    assert (recorder.count, recorder.bytes) == (4, (tmp_path / "r.jsonl").stat().st_size)
    assert read_recording(tmp_path / "r.jsonl") == (made.NAMES, STATES)
    lines = (tmp_path / "r.jsonl").read_text("utf-8").splitlines()
    assert "groups" in json.loads(lines[1])
    assert "groups" not in json.loads(lines[2]), "what did not change is not written again"


def test_a_truncated_line_is_left_out(tmp_path: Path):
    written(tmp_path / "r.jsonl")
    content = (tmp_path / "r.jsonl").read_bytes()
    (tmp_path / "r.jsonl").write_bytes(content[:-20])
    assert read_recording(tmp_path / "r.jsonl") == (made.NAMES, STATES[:3])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found something else"),
        ('{"type": "recording"}\n', "found something else"),
        ('{"type": "clusterRecording", "version": 9}\n', "of version 9"),
        (head_line("a:1"), "holds no reading"),
        (head_line("a:1") + '{"at": "x", "brokers": 3}\n', "holds no reading"),
        (head_line("a:1") + "[]\n", "holds no reading"),
    ],
)
def test_another_file_is_refused_with_its_content(tmp_path: Path, text: str, words: str):
    (tmp_path / "r.jsonl").write_text(text, "utf-8")
    with pytest.raises(NoRecording, match=words):
        read_recording(tmp_path / "r.jsonl")

"""What was recorded is read back the same, also from a file that is still written, cut off, or too large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.codec.checkpoint import Checkpoint
from engine.errors import CannotRead
from engine.lab.recording import NotARecording, Recorder, Recording
from engine.lab.samples import FlushMark, PositionSample, Rates, ServiceState
from engine.store.latency import BUCKETS, Histogram
from engine.store.positions import Positions

ZEROS = (0,) * BUCKETS
POSITIONS = Positions(
    0, 900, 800, 700, 600, 800, 590, -1, Checkpoint(1, 2, 3, None, 5), None, 4, Histogram((0, 5, *ZEROS[2:])),
    Histogram(ZEROS),
)  # fmt: skip
FULL = PositionSample(
    1_700_000_000_000, POSITIONS, Rates(1.5, 2.5, 3.5, 4.5, 5.5, 6.5), {"PUT_OK": 7, "FLUSH_DISK_TIMEOUT": 1},
    (FlushMark(1, 1_700_000_000_001, 700, 300, 0.25, 3),),
    {"flush": ServiceState(True, 10, None, 4, "bytes", 2), "clean": ServiceState(False, None, 9)}, 0, 1 << 30, "läuft",
)  # fmt: skip
BARE = PositionSample(1_700_000_000_100, replace(POSITIONS, buffers_left=2))


def test_samples_come_back_as_they_were(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r", {"store": "orders"}) as recorder:
        assert recorder.append(FULL)
        recorder.note(FULL.at_ms, "插头")
        assert recorder.append(BARE)
        assert recorder.size == (tmp_path / "r").stat().st_size
    with Recording(tmp_path / "r") as recording:
        assert list(recording) == [FULL, BARE]
        assert (recording.about, recording.cut) == ({"store": "orders"}, "")
        assert [(note.at_ms, note.text) for note in recording.notes] == [(FULL.at_ms, "插头")]
        assert [recording.before(at) for at in (0, FULL.at_ms, FULL.at_ms + 99, BARE.at_ms, 1 << 50)] == [
            -1,
            0,
            0,
            1,
            1,
        ]
        assert list(recording.times_ms) == [FULL.at_ms, BARE.at_ms]


def test_it_is_read_while_it_is_written(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r") as recorder, Recording(tmp_path / "r") as recording:
        assert len(recording) == 0
        for number in range(1, 4):
            recorder.append(replace(FULL, at_ms=number))
            assert recording.refresh() == 1
            assert recording.at(-1).at_ms == number


def test_a_sample_is_small(tmp_path: Path) -> None:
    """Ten a second for a day must fit where somebody records: less than half a kilobyte each."""
    with Recorder(tmp_path / "r") as recorder:
        before = recorder.size
        for _ in range(100):
            recorder.append(FULL)
        assert (recorder.size - before) / 100 < 500


@pytest.mark.parametrize("left", [1, 5, 100])
def test_a_cut_recording_is_read_up_to_the_cut(tmp_path: Path, left: int) -> None:
    with Recorder(tmp_path / "r") as recorder:
        recorder.append(FULL)
        whole = recorder.size
        recorder.append(BARE)
    with (tmp_path / "r").open("rb+") as file:
        file.truncate(whole + left)
    with Recording(tmp_path / "r") as recording:
        assert list(recording) == [FULL]
        assert f"at byte {whole:,}" in recording.cut


def test_damage_ends_it_and_is_told(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r") as recorder:
        recorder.append(FULL)
        whole = recorder.size
        recorder.append(BARE)
    raw = bytearray((tmp_path / "r").read_bytes())
    raw[whole + 40] ^= 1
    (tmp_path / "r").write_bytes(raw)
    with Recording(tmp_path / "r") as recording:
        assert (len(recording), bool(recording.cut)) == (1, True)


def test_it_ends_at_its_size(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r", most_bytes=2000) as recorder:
        while recorder.append(FULL):
            pass
        assert recorder.full
        assert recorder.size <= 2000
        assert recorder.samples >= 3
        assert not recorder.append(BARE)
    assert not recorder.append(BARE)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("something else")
    with pytest.raises(NotARecording, match="found something else"):
        Recording(tmp_path / "r")
    with pytest.raises(CannotRead, match="No such file"):
        Recording(tmp_path / "none")
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "r")
    assert (tmp_path / "r").read_text() == "something else"

"""What a history says of looks: gaps, rates, marks, and the way back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.inspection.positions import Position, Positions
from viewer.look import assets
from viewer.pane.live_plots import Range, positions_frame, rate_frame
from viewer.positions.recording import NoRecording, Recorder, read_recording
from viewer.runtime.live_feed import Feed
from viewer.runtime.live_history import DISPATCH_ALARM, LiveHistory, checkpoint_age, fill
from viewer.runtime.position_look import KEYS, Flush, Look, Service, gaps_of

START = 1_795_280_000_000
FILES = ((0, 1 << 20, "0" * 20), (1 << 20, 2 << 20, f"{1 << 20:020d}"))


def look(number: int = 0, *, lab: bool = True, checkpoint: int = START, live: bool = True, **more) -> Look:
    """A look 100 ms times ``number`` after the start."""
    told = {"wrote": 1000 * number, "committed": 900 * number, "flushed": 500 * number, "confirm": 900 * number,
            "dispatched": 800 * number, "queue_max": 800 * number, "index_end": 800 * number, "min": 0}  # fmt: skip
    told |= {key: value for key, value in more.items() if key in told}
    found = {key: Position(value, "told") if value is not None else Position(None, why="nobody tells")
             for key, value in told.items()}  # fmt: skip
    at = {"physicMsgTimestamp": Position(100, "by time", timestamp=checkpoint)}
    rest = {key: value for key, value in more.items() if key not in told}
    settled = {"files": FILES, "heads": ((START, 0), (START + 100 * number, told["wrote"])), **rest}
    return Look(Positions(checkpoint=at, **found), at=START + 100 * number, live=live, lab=lab, units=10 * number,
                **settled)  # fmt: skip


def names(history: LiveHistory) -> list[str]:
    return [mark.words()[0] for mark in history.marks]


def test_gaps_are_as_rocketmq_counts_them() -> None:
    gaps = gaps_of(look(10))
    assert (gaps.commit, gaps.flush, gaps.dispatch) == (1000, 4000, 1000)
    outside = gaps_of(look(10, lab=False, flushed=None, confirm=None))
    assert outside.commit is None
    assert outside.flush == 8900
    assert outside.dispatch == 2000


def test_rates_and_the_way_back() -> None:
    history = fill(LiveHistory(), [look(n) for n in range(50)])
    assert history.rate("wrote", history.last) == pytest.approx(10_000)
    assert history.puts.values[-1] == pytest.approx(100)
    assert history.unit_size() == pytest.approx(100)
    then = history.look_at(START + 2040)
    assert then.at == START + 2000
    assert then.offsets() == look(20).offsets()
    rows, unknown = history.held_rows()
    assert len(rows) == 50
    assert tuple(rows[0].tolist()[2:]) == look(0).offsets()
    assert unknown not in rows


def test_puts_of_a_lab_are_what_was_answered_as_stored() -> None:
    def told(number: int) -> Look:
        return look(number, statuses={"PUT_OK": 20 * number, "FLUSH_DISK_TIMEOUT": number, "OS_PAGE_CACHE_BUSY": 7})

    history = fill(LiveHistory(), [told(n) for n in range(1, 30)])
    assert history.puts.values[-1] == pytest.approx(210)
    assert look(3, lab=False, statuses={"PUT_OK": 5}).puts == 30


def test_what_nobody_knew_stays_unknown_on_the_way_back() -> None:
    history = fill(LiveHistory(), [look(n, flushed=None) for n in range(5)])
    then = history.look_at(START + 200)
    assert then.offset("flushed") is None
    assert then.position("flushed").why == "nobody tells"


def test_rolls_files_and_a_log_that_was_cut_are_marked() -> None:
    history = LiveHistory()
    history.add(look(1, files=FILES[:1]))
    history.add(look(2, files=FILES))
    history.add(look(2000, wrote=(1 << 20) + 5, files=FILES))
    history.add(look(2001, wrote=(1 << 20) + 9, files=FILES[1:]))
    history.add(look(2002, wrote=(1 << 20) + 1, files=FILES[1:]))
    assert names(history)[:4] == ["file made", "roll", "file deleted", "log is shorter"]
    assert len(history.rolls) == 1


def test_dispatch_that_falls_behind_is_marked_once_and_when_it_is_back() -> None:
    history = LiveHistory()
    for behind in (0, DISPATCH_ALARM + 1, DISPATCH_ALARM + 2, DISPATCH_ALARM // 2 + 1, 10, 0):
        history.add(look(5, confirm=1 << 24, dispatched=(1 << 24) - behind, lab=False))
    assert [name for name in names(history) if "dispatch" in name] == ["dispatch behind", "dispatch catches up"]


def test_a_checkpoint_that_ages_is_marked() -> None:
    old = look(2000, lab=False)
    assert checkpoint_age(old) == 200_000
    history = fill(LiveHistory(), [look(1, lab=False), old, look(2001, lab=False, checkpoint=START + 200_000)])
    assert "checkpoint is old" in names(history)
    assert "checkpoint is new" in names(history)


def test_services_flushes_and_brokers_are_marked() -> None:
    history = LiveHistory()
    history.add(look(1, services={"flush": Service(False)}))
    history.add(look(2, services={"flush": Service(True)}, flushes=(Flush(START, 5, 1 << 20, 51.0),)))
    history.add(look(3, services={"flush": Service(False)}))
    assert names(history)[:3] == ["flush paused", "flush", "flush goes on"]
    assert history.marks[1].words()[1] == "1.00 MiB in 51 ms"
    stopped = fill(LiveHistory(), [look(1, lab=False), look(2, lab=False, live=False)])
    assert names(stopped) == ["broker stopped"]


def test_marks_speak_chinese() -> None:
    history = fill(LiveHistory(), [look(1, lab=False), look(2, lab=False, live=False)])
    assets.set_language("zh_CN")
    try:
        assert history.marks[0].words()[0] == "Broker 已停止"
    finally:
        assets.set_language("en")


def test_a_recording_keeps_the_answers(tmp_path) -> None:
    recorder = Recorder(tmp_path / "seen.jsonl", "/store")
    for number in (1, 2, 3):
        recorder.add(look(number, statuses={"PUT_OK": 4 if number < 3 else 9}))
    recorder.write()
    lines = (tmp_path / "seen.jsonl").read_text("utf-8").splitlines()
    assert ["statuses" in line for line in lines[1:]] == [True, False, True]
    assert [one.puts for one in read_recording(tmp_path / "seen.jsonl")[1]] == [4, 4, 9]


def test_a_recording_gives_back_what_was_looked_at(tmp_path) -> None:
    looks = [look(n, flushes=(Flush(START + n, n, n, 1.5, 2),) if n % 3 == 0 else ()) for n in range(30)]
    recorder = Recorder(tmp_path / "one.jsonl", "/a/store")
    for one in looks:
        recorder.add(one)
        if one.at % 500 == 0:
            recorder.write()
    recorder.write()
    store, found = read_recording(recorder.path)
    assert store == "/a/store"
    assert [one.offsets() for one in found] == [one.offsets() for one in looks]
    assert [one.flushes for one in found] == [one.flushes for one in looks]
    assert {one.files for one in found} == {FILES}
    assert fill(LiveHistory(), found).gaps["flush"].values[-1] == gaps_of(looks[-1]).flush


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


def test_every_position_has_a_place_in_a_look() -> None:
    assert len(look(3).offsets()) == len(KEYS) == 9


def test_nothing_leads_over_a_time_in_which_nobody_sampled() -> None:
    history = fill(LiveHistory(), [look(n) for n in (*range(30), *range(600, 630))])
    last, later = (START + 2900) / 1000, (START + 60_000) / 1000
    assert list(history.breaks) == [(last, later)]
    for width in (40, 4000):
        xs, ys = history.torn(*history.positions["wrote"].columns(later + 3, 120, width))
        assert (np.diff(xs) >= 0).all()
        gap = np.flatnonzero(np.isnan(ys))
        assert len(gap) == 1
        assert xs[gap[0] + 1] > last + 50 - 120 / width
    assert np.nanmax(history.bytes.values) < 20_000, "no rate is taken over the break"
    assert not history.sampled_at(last + 30)
    assert history.sampled_at(later + 1)
    drawn = rate_frame(history, Range(later + 3, 120), 400, messages=False)
    assert np.isnan(drawn.traces[0].ys).any()
    assert len(drawn.breaks) == 1


def test_rates_are_not_taken_from_files_to_the_engine() -> None:
    """Messages are counted from another start by each."""
    history = fill(LiveHistory(), [replace(look(n, lab=False), units=1_000_000) for n in range(20)])
    fill(history, [look(n, statuses={"PUT_OK": 5}) for n in range(20, 40)])
    assert np.nanmax(history.puts.values) == 0


def test_what_was_done_by_hand_is_marked_in_both_plots() -> None:
    history = fill(LiveHistory(), [look(n) for n in range(30)])
    history.note("live", "flushed", "by hand", at=START + 1000)
    history.note("error", "plug pulled", at=START + 2000)
    shown = Range((START + 2900) / 1000, 60)
    for frame in (rate_frame(history, shown, 400, messages=True), positions_frame(history, shown, 400)):
        assert [line.words for line in frame.lines] == ["plug pulled", "flushed"]


def test_all_windows_of_a_store_show_one_series_from_its_start(tmp_path: Path) -> None:
    first, second = Feed(tmp_path), Feed(tmp_path)
    first.add(look(0))
    assert second.history is first.history
    second.add(look(0))
    assert len(second.history) == 1
    first.close()
    second.add(look(1))
    assert len(second.history) == 2
    assert Feed(tmp_path / "other").history is not second.history

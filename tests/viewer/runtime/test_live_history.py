"""Values that a history derives from samples: gaps, rates, marks, and the samples read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sample_position_looks import FILES, START, look

from viewer.look import assets
from viewer.pane.live_plots import Range, rate_frame
from viewer.runtime.live_history import DISPATCH_ALARM, LiveHistory, checkpoint_age, fill
from viewer.runtime.position_reading import KEYS, Flush, PositionReading, Service, gaps_of


def names(history: LiveHistory) -> list[str]:
    return [mark.words()[0] for mark in history.marks]


def test_gaps_are_as_rocketmq_counts_them() -> None:
    gaps = gaps_of(look(10))
    assert (gaps.commit, gaps.flush, gaps.dispatch) == (1000, 4000, 1000)
    outside = gaps_of(look(10, lab=False, flushed=None, confirm=None))
    assert outside.commit is None
    assert outside.flush == 8900
    assert outside.dispatch == 2000


def test_the_flush_gap_does_not_jump_to_the_checkpoint() -> None:
    """Between a power loss and its mark, the gap to flush was 5.4 MiB for a second, although it had been 65 KiB. The
    files were read instead of the engine, and their checkpoint is minutes older.
    """
    files = [look(n, lab=False, flushed=None, confirm=None) for n in range(10, 20)]
    history = fill(LiveHistory(), [*(look(n) for n in range(10)), *files])
    values = list(history.gaps["flush"].values)
    assert all(np.isfinite(values[:10]))
    assert not any(np.isfinite(values[10:]))
    alone = fill(LiveHistory(), files)
    assert all(np.isfinite(list(alone.gaps["flush"].values))), "of a store of files it is what is known"


def test_rates_and_read_back_samples() -> None:
    history = fill(LiveHistory(), [look(n) for n in range(50)])
    assert history.rate("wrote", history.last) == pytest.approx(10_000)
    assert history.put_rate.values[-1] == pytest.approx(100)
    assert history.unit_size() == pytest.approx(100)
    then = history.reading_at(START + 2040)
    assert then.time_ms == START + 2000
    assert then.offsets() == look(20).offsets()
    rows, unknown = history.held_rows()
    assert len(rows) == 50
    assert tuple(rows[0].tolist()[2:]) == look(0).offsets()
    assert unknown not in rows


def test_puts_of_a_lab_are_those_answered_as_stored() -> None:
    def reading(number: int) -> PositionReading:
        return look(number, statuses={"PUT_OK": 20 * number, "FLUSH_DISK_TIMEOUT": number, "OS_PAGE_CACHE_BUSY": 7})

    history = fill(LiveHistory(), [reading(n) for n in range(1, 30)])
    assert history.put_rate.values[-1] == pytest.approx(210)
    assert look(3, lab=False, statuses={"PUT_OK": 5}).puts == 30


def test_unknown_values_stay_unknown_when_read_back() -> None:
    history = fill(LiveHistory(), [look(n, flushed=None) for n in range(5)])
    then = history.reading_at(START + 200)
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
    for gap_bytes in (0, DISPATCH_ALARM + 1, DISPATCH_ALARM + 2, DISPATCH_ALARM // 2 + 1, 10, 0):
        history.add(look(5, confirm=1 << 24, dispatched=(1 << 24) - gap_bytes, lab=False))
    assert [name for name in names(history) if "dispatch" in name] == ["dispatch behind", "dispatch catches up"]


def test_a_checkpoint_that_ages_is_marked() -> None:
    old = look(2000, lab=False)
    assert checkpoint_age(old) == 200_000
    history = fill(LiveHistory(), [look(1, lab=False), old, look(2001, lab=False, checkpoint=START + 200_000)])
    assert "checkpoint is old" in names(history)
    assert "checkpoint is new" in names(history)


def test_a_mark_calls_the_dispatch_as_the_lab_does() -> None:
    """The lab showed "Dispatch", but the mark of its pause "reput paused"."""
    history = LiveHistory()
    history.add(look(1, services={"reput": Service(False)}))
    history.add(look(2, services={"reput": Service(True)}))
    assert names(history)[:1] == ["dispatch paused"]


def test_services_flushes_and_brokers_are_marked() -> None:
    history = LiveHistory()
    history.add(look(1, services={"flush": Service(False)}))
    history.add(look(2, services={"flush": Service(True)}, flushes=(Flush(START, 5, 1 << 20, 51.0),)))
    history.add(look(3, services={"flush": Service(False)}))
    assert names(history)[:3] == ["flush paused", "flush", "flush continues"]
    assert history.marks[1].words()[1] == "1.00 MiB in 51 ms"
    stopped = fill(LiveHistory(), [look(1, lab=False), look(2, lab=False, live=False)])
    assert names(stopped) == ["broker stopped"]


def test_marks_are_in_chinese() -> None:
    history = fill(LiveHistory(), [look(1, lab=False), look(2, lab=False, live=False)])
    assets.set_language("zh_CN")
    try:
        assert history.marks[0].words()[0] == "Broker 已停止"
    finally:
        assets.set_language("en")


def test_every_position_is_in_a_sample() -> None:
    assert len(look(3).offsets()) == len(KEYS) == 9


def test_nothing_is_drawn_over_a_time_without_samples() -> None:
    history = fill(LiveHistory(), [look(n) for n in (*range(30), *range(600, 630))])
    before_gap, after_gap = (START + 2900) / 1000, (START + 60_000) / 1000
    assert list(history.breaks) == [(before_gap, after_gap)]
    for width in (40, 4000):
        xs, ys = history.with_gaps(*history.positions["wrote"].columns(after_gap + 3, 120, width))
        assert (np.diff(xs) >= 0).all()
        gap = np.flatnonzero(np.isnan(ys))
        assert len(gap) == 1
        assert xs[gap[0] + 1] > before_gap + 50 - 120 / width
    assert np.nanmax(history.write_rate.values) < 20_000, "no rate is taken over the break"
    assert not history.sampled_at(before_gap + 30)
    assert history.sampled_at(after_gap + 1)
    drawn = rate_frame(history, Range(after_gap + 3, 120), 400, messages=False)
    assert np.isnan(drawn.traces[0].ys).any()
    assert len(drawn.breaks) == 1


def test_no_rate_is_computed_between_files_and_engine() -> None:
    """Files and engine count messages from different starts."""
    history = fill(LiveHistory(), [replace(look(n, lab=False), units=1_000_000) for n in range(20)])
    fill(history, [look(n, statuses={"PUT_OK": 5}) for n in range(20, 40)])
    assert np.nanmax(history.put_rate.values) == 0

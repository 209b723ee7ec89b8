"""A person watches a lab store's positions move, stops the picture, records, replays and exports."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from walker import Run, Walker

from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS
from viewer.positions.live_side import export_samples
from viewer.positions.pane import PositionsPane

pytestmark = pytest.mark.timeout(180)


async def watched(walker: Walker, folder: Path) -> PositionsPane:
    """Open the positions of a lab store with a transient pool under a light load."""
    lab = walker.window.lab
    assert await lab.open_lab(folder, PRESETS[2].config, "5.3")
    walker.window.show_view("positions")
    await lab.session.set_load(LoadSettings(rate=200, body_size=300))
    pane = walker.window.pane("positions")
    assert isinstance(pane, PositionsPane)
    await walker.until(lambda: len(pane.over_time.history.flush_ms) > 2, "flushes come")
    await walker.until(lambda: pane.over_time.ready, "plots come")
    return pane


def test_38_nine_positions_move_on_one_ruler_and_in_five_plots(run: Run, walker: Walker, tmp_path: Path) -> None:
    async def walk() -> None:
        pane = await watched(walker, tmp_path / "lab")
        lab, live = walker.window.lab, pane.over_time
        for key in ("wrote", "committed", "flushed", "confirm", "dispatched", "queueMax", "min"):
            await walker.until(
                lambda key=key: any(row.key == key and row.offset is not None for row in pane.now.table.rows), key
            )
        await walker.until(lambda: "wrote" in pane.ruler.accessibleDescription(), "the ruler has its flags")
        for plot, word in (
            (live.plot, "flushed"),
            (live.gaps, "to dispatch"),
            (live.latency, "median"),
            (live.group, "median"),
            (live.rate, "messages/s"),
        ):
            await walker.until(lambda plot=plot, word=word: word in plot.accessibleDescription(), word)
        await lab.session.pause("flush", True)
        await walker.until(lambda: any("paused" in m.words()[0] for m in live.history.marks), "the pause is marked")
        await walker.until(lambda: "lost" in _texts(pane.beside.power_facts), "losses are said in messages")
        marks = pane.beside.marks.table  # a flush that was under way may have ended after the pause
        await walker.until(
            lambda: any("paused" in marks.texts(row)[2] for row in range(min(2, marks.rowCount()))), "it stands on top"
        )
        pane.setFocus()
        walker.press(pane, Qt.Key.Key_Space)
        end = live.range().end
        await walker.until(lambda: live.history.span[1] / 1000 > end + 0.4, "looks go on")
        assert live.range().end == end
        assert not live.at_end
        live.zoom(0.5, 0.0)
        assert live.range().span == 30.0
        walker.press(pane, Qt.Key.Key_F)
        oldest_ms, newest_ms = live.history.span
        assert abs(live.range().span - max(2.0, (newest_ms - oldest_ms) / 1000)) < 1.0
        live._pointed(-0.5)
        await walker.until(lambda: _texts(pane.beside.there) != "", "values at the cursor")
        live.go_live()
        assert live.at_end
        walker.window.grab()

    run(walk())


def test_a_session_is_recorded_replayed_and_exported(run: Run, walker: Walker, tmp_path: Path) -> None:
    async def walk() -> None:
        pane = await watched(walker, tmp_path / "lab")
        live, file = pane.over_time, tmp_path / "seen.jsonl"
        assert walker.window.session is not None
        inside = walker.window.session.path / "seen.jsonl"
        live.record_to(inside)
        assert not live.recording
        assert not inside.exists()
        live.record_to(file)
        begun = len(live.history)
        await walker.until(lambda: len(live.history) > begun + 8, "looks come")
        live.record()
        assert not live.recording
        await walker.rest()
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        assert lines[0]["type"] == "recording"
        assert len(lines) > 8
        live.load(file)
        await walker.until(lambda: live.shown is not live.history, "the recording is shown")
        assert len(live.shown) == len(lines) - 1
        live.go_to(lines[3]["at"])
        wrote = next(row for row in pane.now.table.rows if row.key == "wrote")
        assert wrote.offset == lines[3]["offsets"][1]
        live.play()
        await walker.until(lambda: live.range().end * 1000 > lines[3]["at"] + 200, "time runs on")
        live.go_live()
        assert live.shown is live.history
        for name in ("samples.csv", "samples.jsonl"):
            export_samples(pane, pane.over_time, tmp_path / name)
        await walker.until((tmp_path / "samples.jsonl").exists, "the samples are written")
        await walker.rest()
        rows = list(csv.DictReader((tmp_path / "samples.csv").read_text("utf-8").splitlines()))
        assert len(rows) > 10
        assert int(rows[-1]["wrote"]) >= int(rows[0]["wrote"])
        last_sample = json.loads((tmp_path / "samples.jsonl").read_text("utf-8").splitlines()[-1])
        assert last_sample["to_commit"] == last_sample["wrote"] - last_sample["committed"]
        assert last_sample["put_rate"] > 0
        rows_with_flushes = [row for row in rows if row["flushes"] != "0"]
        assert rows_with_flushes
        assert all(float(row["flush_ms"]) > 0 and int(row["flush_bytes"]) > 0 for row in rows_with_flushes)

    run(walk())


def _texts(facts) -> str:
    return " ".join(f"{item.name} {item.value} {item.note}" for item in facts._shown)

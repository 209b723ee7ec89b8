"""The Two Ways page with fake engines: how both stores are made, loaded, lose power, are shown and deleted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from engine.codec.checkpoint import Checkpoint
from engine.config import MessageStoreConfig
from engine.errors import StoreError
from engine.lab.lab_store import LabStore
from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS
from engine.lab.samples import LoadCounts, PositionSample, Rates
from engine.releases import NEWEST
from engine.store.latency import BUCKETS, Histogram
from engine.store.positions import Positions
from viewer.lab import two_ways_page as module
from viewer.lab.two_ways_page import (
    FILE_SIZES,
    MAX_POOLED_FILE_BYTES,
    SHOWN_SECONDS,
    SidePanel,
    TwoWaysPage,
    _curve,
    _delete,
)
from viewer.runtime.live_history import LONG_PAUSE

TIME_MS = 1_700_000_000_000
POSITIONS = Positions(
    0,
    5000,
    4000,
    1000,
    3000,
    4000,
    3000,
    2900,
    Checkpoint(TIME_MS, TIME_MS, TIME_MS),
    None,
    0,
    Histogram(),
    Histogram(),
)
LOAD = LoadSettings(rate=100)
SMALL = MessageStoreConfig(mapped_file_size_commit_log=1 << 20)
LATENCY = Histogram(tuple(10 if n == 15 else 0 for n in range(BUCKETS)))


class FakeLabDesk(QObject):
    """A lab desk whose engine does every request at once."""

    changed = Signal()
    sampled = Signal(object)
    counted = Signal(object)
    failed = Signal(str)
    died = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[Any, ...]] = []
        self.begun: list[Any] = []
        self.alive = False
        self.load: LoadSettings | None = None
        self.load_paused = False
        self.report: Any = None
        self.error: Exception | None = None

    @property
    def can_cut_power(self) -> bool:
        return self.alive

    def begin(self, work: Any) -> None:
        self.begun.append(work)

    async def open(self, folder: Path, config: MessageStoreConfig, release: str) -> None:
        self.requests.append(("open", folder, config, release))
        if self.error is not None:
            raise self.error
        self.alive, self.report = True, None
        self.changed.emit()

    async def close(self) -> None:
        self.requests.append(("close",))
        self.alive, self.load = False, None

    async def set_load(self, settings: LoadSettings | None) -> None:
        self.load = settings

    async def pause_load(self, on: bool) -> None:
        self.load_paused = on

    async def cut_power(self, seed: int) -> None:
        self.requests.append(("plug", seed))
        self.load = None

    async def recover(self) -> None:
        self.report = SimpleNamespace(
            loss=SimpleNamespace(messages=3, allowed=True),
            recovered_ms=7.0,
            state_before=SimpleNamespace(end_offset=900),
            state_after=SimpleNamespace(end_offset=640, units=5),
        )


@pytest.fixture
def page(themed_app: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TwoWaysPage]:
    monkeypatch.setattr(module, "LabSession", FakeLabDesk)
    two_ways = TwoWaysPage()
    two_ways.folder = tmp_path
    yield two_ways
    two_ways._timer.stop()
    two_ways.deleteLater()


@pytest.fixture
def desks(page: TwoWaysPage) -> tuple[Any, Any]:
    first_lab, second_lab = page.labs
    return first_lab, second_lab


@pytest.fixture
def messages(page: TwoWaysPage) -> list[str]:
    words: list[str] = []
    page.statusText.connect(words.append)
    return words


def sample(time_ms: int, rate: float = 500.0) -> PositionSample:
    return PositionSample(TIME_MS + time_ms, POSITIONS, Rates(messages=rate))


def put_counts(desk: Any, *times: int) -> None:
    for time_ms in times:
        desk.sampled.emit(sample(time_ms))
    desk.counted.emit(LoadCounts(True, 10, 1000, {"PUT_OK": 10}, LATENCY))


# ---- how a store is made ---------------------------------------------------------------------------------------------


@pytest.fixture
def panel(themed_app: object) -> Iterator[SidePanel]:
    side_panel = SidePanel(1, 0)
    yield side_panel
    side_panel.deleteLater()


def test_a_preset_sets_all_values_and_single_values_are_marked(panel: SidePanel) -> None:
    for number in (1, 0):
        panel.preset.setCurrentIndex(number)
        assert panel.config == PRESETS[number].config
    preset_text = panel.words.text()
    panel.change(flush_disk_type="SYNC_FLUSH")
    assert panel.sync.isChecked()
    assert panel.config.flush_disk_type == "SYNC_FLUSH"
    assert panel.words.text() != preset_text
    assert "flushDiskType=SYNC_FLUSH" in panel.words.text()
    assert "flushDiskType=SYNC_FLUSH" in panel.say()


def test_an_unusual_length_can_be_chosen_too(panel: SidePanel) -> None:
    panel.set_config(replace(PRESETS[0].config, mapped_file_size_commit_log=3 << 20))
    offered = [panel.files.itemData(number) for number in range(panel.files.count())]
    assert offered == sorted({*FILE_SIZES, 3 << 20})
    assert panel.files.currentData() == 3 << 20


@pytest.mark.parametrize(("length", "expected"), [(1 << 30, MAX_POOLED_FILE_BYTES), (16 << 20, 16 << 20)])
def test_a_pool_is_not_made_of_five_huge_buffers(panel: SidePanel, length: int, expected: int) -> None:
    panel.set_config(replace(PRESETS[0].config, mapped_file_size_commit_log=length, transient_store_pool_enable=False))
    panel.pool.click()
    assert panel.config.transient_store_pool_enable
    assert panel.config.mapped_file_size_commit_log == expected
    panel.pool.click()
    assert not panel.config.transient_store_pool_enable
    assert panel.config.mapped_file_size_commit_log == expected, "switching it off changes nothing else"


def test_the_logs_folder_is_shown_while_it_exists(panel: SidePanel) -> None:
    panel.show_sample(sample(0, rate=1234.0))
    assert panel.state.text() == "1,234 messages a second, 5,000 bytes"
    panel.show_sample(None)
    assert panel.state.text() == ""


# ---- the two of them -------------------------------------------------------------------------------------------------


def test_both_stores_are_made_as_chosen_and_get_the_same_load(
    page: TwoWaysPage, desks: tuple[Any, Any], tmp_path: Path, messages: list[str]
) -> None:
    (tmp_path / "two-ways-1").mkdir()
    page.panels[1].change(flush_disk_type="SYNC_FLUSH")
    asyncio.run(page.run(LOAD))
    folder = tmp_path / "two-ways-2"
    assert page.folder_made == folder, "what is there already is left alone"
    for desk, panel, name in zip(desks, page.panels, ("a", "b"), strict=True):
        assert desk.requests == [("close",), ("open", folder / name, panel.config, NEWEST)]
        assert desk.load is LOAD
    assert messages == ["Making both stores", "Both stores get the same load"]
    assert not page.panels[0].preset.isEnabled(), "values stand while the load runs"
    assert page.cut.isEnabled()


def test_a_store_that_cannot_be_made_leaves_the_page_usable(
    page: TwoWaysPage, desks: tuple[Any, Any], messages: list[str]
) -> None:
    desks[1].error = StoreError("no room for it")
    with pytest.raises(StoreError):
        asyncio.run(page.run(LOAD))
    assert page.panels[0].preset.isEnabled()
    assert not page.cut.isEnabled()
    desks[1].failed.emit("no room for it")
    assert messages[-1] == "B: no room for it"
    desks[1].error = None
    asyncio.run(page.run(LOAD))
    assert page.cut.isEnabled()


def test_a_second_start_does_nothing(page: TwoWaysPage, desks: tuple[Any, Any]) -> None:
    page.begin(LOAD)
    page._busy = True
    page.begin(LOAD)
    page.pull()
    assert len(desks[0].begun) == 1
    desks[0].begun[0].close()


def test_both_stores_lose_power_alike_and_losses_are_in_the_table(page: TwoWaysPage, desks: tuple[Any, Any]) -> None:
    asyncio.run(page.run(LOAD))
    for desk in desks:
        put_counts(desk, 0, 1000)
    asyncio.run(page.pull_both())
    assert [desk.requests[-1] for desk in desks] == [("plug", 1)] * 2, "the same chance for both"
    assert [(side.lost, side.lost_bytes, side.recovered_units) for side in page.sides] == [(3, 260, 5)] * 2
    assert not page.cut.isEnabled(), "it is pulled once"
    assert "lost at the power cut" in page.markdown()


def test_actions_reach_both_running_engines(page: TwoWaysPage, desks: tuple[Any, Any]) -> None:
    asyncio.run(page.run(LOAD))
    desks[1].alive = False
    page.load.pauseRequested.emit(True)
    page.load.stopRequested.emit()
    assert (len(desks[0].begun), desks[1].begun) == (2, [])

    async def done() -> None:
        for work in desks[0].begun:
            await work

    asyncio.run(done())
    assert (desks[0].load_paused, desks[0].load) == (True, None)


def test_samples_during_a_paused_load_are_not_counted(page: TwoWaysPage, desks: tuple[Any, Any]) -> None:
    asyncio.run(page.run(LOAD))
    put_counts(desks[0], 0, 1000)
    desks[0].load_paused = True
    put_counts(desks[0], 60_000)
    assert page.sides[0].seconds == 1.0
    assert page.sides[0].rate == 10.0
    assert len(page._rates[0]) == 2


def test_figures_and_curves_restart_with_the_load(page: TwoWaysPage, desks: tuple[Any, Any]) -> None:
    asyncio.run(page.run(LOAD))
    put_counts(desks[0], 0, 1000)
    assert page.has_figures
    asyncio.run(page.run(LOAD))
    assert not page.has_figures
    assert [len(rates) for rates in page._rates] == [0, 0]
    assert not page.copy.isEnabled()


def test_the_copied_comparison_uses_the_settings_of_its_run(
    page: TwoWaysPage, desks: tuple[Any, Any], messages: list[str]
) -> None:
    asyncio.run(page.run(LOAD))
    for desk in desks:
        put_counts(desk, 0, 1000)
    page.panels[0].set_config(replace(PRESETS[0].config, mapped_file_size_commit_log=3 << 20))
    page.copy_markdown()
    text = QGuiApplication.clipboard().text()
    assert "3145728" not in text
    assert "| PUT_OK | 10 | 10 |  |" in text
    assert messages[-1] == "Copied the comparison as Markdown"


# ---- the end ---------------------------------------------------------------------------------------------------------


def test_leaving_closes_both_stores_and_deletes_only_their_files(
    page: TwoWaysPage, desks: tuple[Any, Any], tmp_path: Path
) -> None:
    asyncio.run(page.run(LOAD))
    folder = page.folder_made
    assert folder is not None
    LabStore.create(folder / "a", SMALL).close()
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "mine.txt").write_text("mine")
    ending = page.end()
    assert page.folder_made is None, "whatever becomes of the page, it is deleted once"
    asyncio.run(ending)
    assert [desk.requests[-1] for desk in desks] == [("close",)] * 2
    assert not (folder / "a").exists()
    assert (folder / "b" / "mine.txt").read_text() == "mine", "what the lab did not make is not the lab's to delete"
    asyncio.run(page.end())
    assert folder.exists()


def test_a_folder_without_other_files_is_deleted_too(tmp_path: Path) -> None:
    for name in ("a", "b"):
        LabStore.create(tmp_path / "two" / name, SMALL).close()
    _delete(tmp_path / "two")
    assert not (tmp_path / "two").exists()
    _delete(tmp_path / "two")


# ---- curves ----------------------------------------------------------------------------------------------------------


def test_a_curve_is_a_minute_long_with_gaps_during_pauses() -> None:
    pause = LONG_PAUSE / 1000
    curve = _curve("A", "posLog", [(0.0, 1.0), (100.0, 2.0), (101.0, 3.0), (101.0 + pause + 1, 4.0)])
    assert curve.xs[0] == 100.0, f"what is older than {SHOWN_SECONDS} s has gone"
    assert [math.isnan(rate) for rate in curve.ys] == [False, False, True, False]
    assert curve.ys[-1] == 4.0


def test_messages_of_a_store_are_shown_with_its_name(
    page: TwoWaysPage, desks: tuple[Any, Any], messages: list[str]
) -> None:
    signals: list[str] = []
    page.changed.connect(lambda: signals.append("changed"))
    desks[0].died.emit("killed")
    assert messages == ["A: killed"]
    assert signals == ["changed"], "what can be done now is looked at"


def test_the_text_about_a_preset_uses_the_space_of_missing_figures(qtbot) -> None:
    """The end of the text about the transient pool was cut, because an empty line kept its space."""
    panel = SidePanel(1, 2)
    qtbot.addWidget(panel)
    panel.resize(450, 153)
    panel.show()
    assert panel.words.height() >= panel.words.heightForWidth(panel.words.width())

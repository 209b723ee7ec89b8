"""A window on a store without one log file reports no part as healthy, and hatches the gap in every view."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from panes import wait_until
from PySide6.QtWidgets import QLabel, QWidget

from engine.inspection import open_store
from viewer.look.broken import UnreadableRange
from viewer.runtime.survey import card_status, survey
from viewer.shell.main_window import MainWindow
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Chip
from viewer.widgets.line_strip import LineStrip

HOLE = UnreadableRange(1 << 20, 2 << 20, "missing")
SOUND = ("nothing would be lost", "nothing is lost", "closed", "The files show every position.")


@pytest.fixture
def holed(golden: Callable[..., Path], tmp_path: Path) -> Path:
    """A cleanly closed store without its second log file."""
    shutil.copytree(golden("broker-orders"), tmp_path / "store")
    (tmp_path / "store" / "commitlog" / f"{HOLE.start:020d}").unlink()
    return tmp_path / "store"


def texts(window: QWidget) -> list[str]:
    """Return the visible texts in labels and chips."""
    parts = [*QWidget.findChildren(window, QLabel), *QWidget.findChildren(window, Chip)]
    return [
        text for part in parts if part.isVisible() for text in (getattr(part, "text", str)(), part.accessibleName())
    ]


@pytest.mark.golden
def test_no_view_reports_it_as_healthy(run: Any, window: MainWindow, holed: Path) -> None:
    async def walk() -> None:
        assert await window.open(holed)
        window.show_view("findings")
        await window.settled(60)
        session = window.session
        assert session is not None
        assert session.broken == (HOLE,)
        await wait_until(lambda: session.findings_complete, "the check has ended")
        for view in BY_KIND:
            window.show_view(view)
            await window.settled(60)
            assert [text for text in texts(window) if text in SOUND] == [], view
            lines = [item for item in QWidget.findChildren(window, LineStrip) if item.isVisible()]
            assert [line.broken for line in lines if line.broken != (HOLE,)] == [], view
        card = window.side.card
        assert card.chip.accessibleName() in {"closed · 1 error", "1 error"}
        assert card._status == ("error", "closed · 1 error")
        assert card.facts.text().startswith("1.35 MiB")
        positions, space, findings = (window.panes[name] for name in ("positions", "space", "findings"))
        assert positions.ruler._view.broken == (HOLE,)
        while not space.line._broken:  # the log is gone through in the worker
            await asyncio.sleep(0.02)
        assert space.line._broken == (HOLE,)
        assert [kind for _, _, kind in findings.recovery.line._broken] == ["missing"]
        assert not findings.incident.isHidden()
        accessible_description = findings.incident.accessibleDescription()
        assert accessible_description.startswith(
            "Lost already: 1,200 messages · by the next start of RocketMQ 5.3.3: nothing more · "
        )
        assert "it does not read here" in findings.detail._why.text()
        findings.incident._fold_button.click()
        assert findings.incident.folded
        assert "the start of RocketMQ 5.3.3 loses nothing more" in [
            chip.accessibleName() for chip in findings.findChildren(Chip)
        ]

    run(walk())


@pytest.mark.golden
def test_the_incident_stays_folded_or_open_in_log_and_findings(run: Any, window: MainWindow, holed: Path) -> None:
    async def walk() -> None:
        assert await window.open(holed)
        window.show_view("findings")
        while window.session is None or window.session.incident is None:
            await asyncio.sleep(0.02)
        log = window.panes["log"].incident
        findings = window.panes["findings"].incident
        assert log.folded, "a line in the log, where nobody has opened it"
        assert not log.isHidden()
        log._fold_button.click()
        log._table_button.click()
        assert not findings.folded
        assert findings._table_button.isChecked()
        rows = log.table.source.rows
        assert (rows[-1].messages, rows[-1].queues) == (1_200, 14)
        assert {row.topic: row.messages for row in rows if row.queue_id is None}["OrderEvents"] == 688
        log.table.placeRequested.emit(rows[1].place)
        assert window.view == "queue"
        assert await window.open(holed)
        while log.isHidden():
            await asyncio.sleep(0.02)
        window.show_view("findings")
        assert log._below.isVisibleTo(window.panes["log"]), "the store is opened as it was left"
        findings._fold_button.click()
        assert log.folded
        window.rebuild()
        window.show_view("log")
        second_incident = window.panes["log"].incident
        assert second_incident is not None, "a view that is made after the check tells of it too"
        assert not second_incident.isHidden()

    run(walk())


@pytest.mark.golden
def test_the_card_is_green_only_after_a_complete_check(golden: Callable[..., Path], holed: Path) -> None:
    with open_store(golden("broker-orders")) as store:
        sound = survey(store)
    assert card_status(sound, {}, complete=False) == ("chat", "closed")
    assert card_status(sound, {"note": 3}, complete=True) == ("ok", "closed")
    assert card_status(sound, {"warn": 1}, complete=True) == ("warn", "closed · 1 warning")
    assert card_status(sound, {"error": 4, "warn": 1}, complete=True) == ("error", "closed · 4 errors")
    assert card_status(sound, {}, complete=True, lab=True) == ("live", "open in the lab")
    with open_store(holed) as store:
        holes = survey(store)
    assert holes.log_bytes == sound.log_bytes - (HOLE.end - HOLE.start)
    assert card_status(holes, {}, complete=False) == ("error", "closed · files missing")


@pytest.mark.golden
def test_a_file_missing_at_the_very_end_is_hatched_in_every_line(
    run: Any, window: MainWindow, golden: Callable[..., Path], tmp_path: Path
) -> None:
    """Findings reported it, but every Line ended where the file before it did."""
    store = tmp_path / "cut"
    shutil.copytree(golden("broker-orders"), store)
    (store / "commitlog" / f"{2 << 20:020d}").unlink()
    hole = UnreadableRange(2 << 20, 3 << 20, "missing")

    async def walk() -> None:
        assert await window.open(store)
        window.show_view("findings")
        while window.session is None or not window.session.findings_complete:
            await asyncio.sleep(0.02)
        assert window.session.broken == (hole,)
        for view in BY_KIND:
            window.show_view(view)
            await window.settled(60)
            for line in (item for item in QWidget.findChildren(window, LineStrip) if item.isVisible()):
                assert line.broken == (hole,), view
                assert line._line.high == hole.end, view
        space = window.panes["space"].line
        while not space._broken:  # the log is gone through in the worker
            await asyncio.sleep(0.02)
        assert (space._broken, space._line.high) == ((hole,), hole.end)

    run(walk())

"""The welcome page: recent stores pinned and cleared, the guided tour; crash notes of the last run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QDialog, QLabel, QPushButton, QWidget
from walker import Run, Walker

from viewer.runtime.settings import RecentStore
from viewer.shell import workspace
from viewer.shell.tour import STEPS, Tour

pytestmark = pytest.mark.journey


def test_recent_stores_are_pinned_and_cleared(run: Run, walker: Walker, orders: Path) -> None:
    async def walk() -> None:
        window, settings = walker.window, walker.window.settings
        settings.forget_recent()
        for name in ("old", "new"):
            settings.remember(RecentStore(f"/data/{name}", name, 1))
        window.show_welcome()
        walker.find(QAbstractButton, "welcome.pin./data/old").click()
        await walker.until(lambda: any(store.pinned for store in settings.recent), "it is pinned")
        settings.remember(RecentStore(str(orders), "orders", 2))
        assert [store.name for store in settings.recent] == ["old", "orders", "new"]
        window.show_welcome()
        assert walker.find(QAbstractButton, "welcome.pin./data/old").isChecked()
        link = walker.find(QLabel, "welcome.clear")
        walker.press(link, Qt.Key.Key_Return)
        await walker.until(lambda: [store.name for store in settings.recent] == ["old"], "what is pinned stays")
        settings.pin("/data/old")
        settings.forget_recent()

    run(walk())


def test_the_guided_tour_of_five_steps(run: Run, walker: Walker) -> None:
    assert len(STEPS) == 5

    async def walk() -> None:
        window = walker.window
        window.show_welcome()
        walker.press(walker.find(QWidget, "welcome.tour"), Qt.Key.Key_Return)
        await walker.until(
            lambda: window.session is not None and window.findChild(Tour, "tour") is not None, "it begins"
        )
        tour = walker.find(Tour, "tour")
        views = []
        for number, step in enumerate(STEPS):
            await walker.until(lambda step=step: _is_shown(walker, step.part), f"{step.part} is framed")
            assert tour.at == number
            views.append(window.view)
            if number + 1 < len(STEPS):
                walker.find(QPushButton, "tour.next").click()
        assert views == ["log", "index", "where", "findings", "findings"]
        assert walker.find(QPushButton, "tour.deed").isVisible()
        walker.press(tour, Qt.Key.Key_Escape)
        await walker.until(lambda: window.findChild(QWidget, "tour") is None, "it ends")

    run(walk())


def _is_shown(walker: Walker, part: str) -> bool:
    widget = walker.window.findChild(QWidget, part)
    frame = walker.window.findChild(QWidget, "tour.frame")
    return widget is not None and widget.isVisible() and frame is not None and frame.isVisible()


def test_section_8_last_words_are_offered_to_be_copied(
    run: Run, walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "OFFER_AFTER_MS", 0)

    async def walk() -> None:
        walker.window.workspace.offer_crash_notes("Fatal Python error: Aborted")
        await walker.until(lambda: walker.window.findChild(QDialog, "crashNotes.box") is not None, "it is offered")
        box = walker.find(QDialog, "crashNotes.box")
        await walker.until(box.isVisible, "it stands there")
        walker.find(QPushButton, "crashNotes.copy").click()
        text = QGuiApplication.clipboard().text()
        assert "Fatal Python error: Aborted" in text
        assert "Storescope" in text, "the versions stand above it"
        box.accept()
        await asyncio.sleep(0.02)

    run(walk())

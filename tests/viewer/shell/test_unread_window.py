"""A window on a store with unreadable files says so in every view, and shows no part as clean."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from engine.inspection.samples import sample
from engine.mapped.reading import SystemDisk
from viewer.log.columns import look
from viewer.log.rows import NonUnitRow
from viewer.runtime.recovery_plan import recovery_of
from viewer.shell.app import take_picture
from viewer.shell.main_window import MainWindow
from viewer.shell.views import BY_KIND
from viewer.widgets.basics import Chip
from viewer.widgets.line_strip import LineStrip
from viewer.widgets.record_view import RecordView

CLEAN = (
    "nothing would be lost",
    "closed",
    "no message",
    "The files show every position.",
    "No problems found: every rule checked the whole store.",
    "nothing is lost",
    "complete",
    "No finding: everything here is as a broker leaves it.",
)
"""What the window says of a store without a fault."""


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample("orders", tmp_path_factory.mktemp("samples"))


@pytest.fixture(params=["commitlog", "consumequeue", "index"])
def part(request: pytest.FixtureRequest, orders: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select a part of the store whose files this process cannot open; the worker, another process, can."""
    system, folder = SystemDisk.open, str(orders / request.param)

    def refuse(self: SystemDisk, path: str) -> int:
        if path.startswith(folder):
            raise OSError(errno.EACCES, "Permission denied", path)
        return system(self, path)

    monkeypatch.setattr(SystemDisk, "open", refuse)
    return str(request.param)


def texts(window: QWidget) -> list[str]:
    """Return all visible texts in labels and chips, and their accessible names."""
    parts = [*QWidget.findChildren(window, QLabel), *QWidget.findChildren(window, Chip)]
    return [
        text for item in parts if item.isVisible() for text in (getattr(item, "text", str)(), item.accessibleName())
    ]


@pytest.mark.full_form(keep=2)
def test_every_view_reports_unread_files(
    run: Any, window: MainWindow, orders: Path, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With unreadable log files the window showed "✓ nothing would be lost"."""

    async def walk() -> None:
        assert await window.open(orders)
        await window.settled(60)
        session = window.session
        assert session is not None
        window.show_view("log")
        await window.settled(60)
        if part == "commitlog":
            table = window.findChild(RecordView, "units.table")
            assert table is not None
            shown = table.current_row()
            assert isinstance(shown, NonUnitRow)
            assert look(shown).mark == "unread", "a file that cannot be read was a red, damaged row"
            line = window.findChild(LineStrip, "units.line")
            assert line is not None
            assert [item.kind for item in line.broken][:1] == ["unread"]
            assert line.words_at(line.width() / 4), "the Line was empty, as if nothing had been written"
        for view in BY_KIND:
            window.show_view(view)
            await window.settled(60)
            session.note_unread()
            assert session.unread, view
            assert part in session.unread.words
            assert window.unread.isVisible(), view
            assert session.unread.words in window.unread.accessibleName()
            assert window.status.unread.accessibleName() == session.unread.count
            assert [text for text in texts(window) if text in CLEAN] == [], view
        assert not session.findings_complete
        assert session.counts()["error"] >= 1
        assert recovery_of(session).plan is None
        assert session.survey is not None
        assert session.survey.state == ("unread", "not all readable")
        assert await take_picture(window, tmp_path / "window.png", opened=True) == 3
        assert (tmp_path / "window.png").is_file()
        assert f"{part}" in capsys.readouterr().err

    run(walk())

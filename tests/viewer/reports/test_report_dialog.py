"""The report as it is asked for: what may be left out, where it is refused, and what is said of how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from handmade_stores import healthy
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget

from engine.errors import StoreError
from engine.rules.masking import Masking
from viewer.reports import report_dialog as module
from viewer.reports.report_dialog import FURTHER_MASKS, ReportBox, ask_report, grab_window, save_report
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.unread import UnreadLedger


class Window(QWidget):
    """Fake window with the parts that a report uses; its jobs end at once."""

    def __init__(self, store: Path) -> None:
        super().__init__()
        self.said: list[str] = []
        self.say = self.said.append
        self.begun: list[Any] = []
        self.error: Exception | None = None
        self.session: Any = SimpleNamespace(
            path=store,
            findings=(),
            findings_complete=True,
            survey=None,
            harmed=False,
            snapshot=None,
            incident=None,
            unread=UnreadLedger(store, self),
            closed=False,
            jobs=self,
        )

    async def run(self, _title: str, work: Callable[[Control], Any]) -> Any:
        if self.error is not None:
            raise self.error
        return work(Control(lambda *_told: None))

    def start(self, work: Any) -> None:
        self.begun.append(work)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return healthy(6).write(tmp_path / "store")


@pytest.fixture
def window(themed_app: object, store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr(module, "bookmarks_of", lambda _session: SimpleNamespace(list=(), notes=""))
    monkeypatch.setattr(module, "recovery_of", lambda _session: SimpleNamespace(plan=None))
    fake_window = Window(store)
    yield fake_window
    fake_window.deleteLater()


@pytest.fixture
def report_inputs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each report was to hold; its text is ``the report``."""
    results: list[Any] = []
    monkeypatch.setattr(module, "gather", lambda _control, _store, request: results.append(request))
    monkeypatch.setattr(module, "render", lambda _report: "the report")
    return results


def saved(window: Window, target: Path, mask: Masking | None = None, *, pictures: bool = True) -> bool:
    grab = partial(grab_window, window, "Log") if pictures else None
    return asyncio.run(save_report(window.session, target, window.say, mask, grab))


def test_each_tick_leaves_out_its_part_and_any_of_them_the_picture(window: Window) -> None:
    box = ReportBox(window, "/data/store", 3)
    assert not box.masking.any
    assert box.pictures.isEnabled()
    for name, tick in box.further_masks.items():
        tick.click()
        assert list(box.masking.parts) == [name]
        assert not box.pictures.isEnabled(), "names can be read in a picture, too"
        tick.click()
    box.masked.click()
    masking = box.masking
    assert (masking.bodies, masking.keys, masking.hosts) == (True, True, True)
    assert (masking.groups, masking.lmq, masking.properties) == (False, False, False)
    assert set(FURTHER_MASKS) == {"groups", "lmq", "properties"}


def test_the_file_holds_what_was_asked_for_and_is_said(
    window: Window, report_inputs: list[Any], tmp_path: Path
) -> None:
    target = tmp_path / "report.html"
    assert saved(window, target)
    assert target.read_text() == "the report"
    assert window.said == [f"Report saved: {target}"]
    (report_input,) = report_inputs
    (picture,) = report_input.pictures
    assert picture.png.startswith(b"\x89PNG")
    assert not report_input.mask.any


@pytest.mark.parametrize("how", [{"pictures": False}, {"mask": Masking(groups=True)}])
def test_there_is_no_picture_of_what_is_left_out(
    window: Window, report_inputs: list[Any], tmp_path: Path, how: dict[str, Any]
) -> None:
    assert saved(window, tmp_path / "report.html", **how)
    assert report_inputs[0].pictures == ()


def test_nothing_is_written_into_the_store_whatever_it_is_called(
    window: Window, report_inputs: list[Any], store: Path, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to(store)
    for target in (store / "report.html", tmp_path / "way" / "report.html"):
        assert not saved(window, target)
        assert not target.exists()
    assert window.said == ["Nothing is written into the store: choose another folder."] * 2
    assert report_inputs == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Cancelled(), "The report was stopped; no file was written."),
        (StoreError("the log is gone"), "{target}: the log is gone"),
    ],
)
def test_a_report_that_fails_leaves_what_was_there(
    window: Window, report_inputs: list[Any], tmp_path: Path, error: Exception, words: str
) -> None:
    target = tmp_path / "report.html"
    target.write_text("last week's")
    window.error = error
    assert not saved(window, target)
    assert target.read_text() == "last week's"
    assert window.said == [words.format(target=target)]


def test_a_place_that_cannot_be_written_is_said(window: Window, report_inputs: list[Any], tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    target = tmp_path / "a file" / "report.html"
    assert not saved(window, target)
    assert window.said[0].startswith(f"{target}: ")


def test_of_a_store_that_was_closed_nothing_is_written(
    window: Window, report_inputs: list[Any], tmp_path: Path
) -> None:
    window.session.closed = True
    assert not saved(window, tmp_path / "report.html")
    assert list(tmp_path.glob("*.html")) == []


def test_it_is_asked_what_to_leave_out_and_then_where(window: Window, report_inputs: list[Any], tmp_path: Path) -> None:
    ask_report(window, window.session, window.say, partial(grab_window, window, "Log"))
    box = window.findChild(ReportBox)
    assert box is not None
    box.further_masks["groups"].click()
    box.accept()
    (dialog,) = window.findChildren(QFileDialog, "report.dialog")
    assert dialog.acceptMode() == QFileDialog.AcceptMode.AcceptSave
    assert dialog.defaultSuffix() == "html"
    dialog.fileSelected.emit(str(tmp_path / "report.html"))
    (work,) = window.begun
    assert asyncio.run(work)
    assert list(report_inputs[0].mask.parts) == ["groups"]
    dialog.reject()


def test_a_report_before_the_end_of_the_check_says_that_it_has_the_findings_so_far(window: Window) -> None:
    """The box promised "0 findings with their bytes" of a damaged store whose check had just begun."""
    for is_checked in (True, False):
        box = ReportBox(window, "/data/store", 0, is_checked=is_checked)
        sentences = " ".join(label.text() for label in box.findChildren(QLabel))
        assert ("The check has not finished" in sentences) is not is_checked

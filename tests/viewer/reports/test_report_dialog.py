"""The report dialog: omitted parts, refused targets, and the final message."""

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
from viewer.runtime.unread import UnreadFiles


class Window(QWidget):
    """Fake window with the parts that a report uses; its jobs end at once."""

    def __init__(self, store: Path) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.say = self.messages.append
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
            unread=UnreadFiles(store, self),
            closed=False,
            jobs=self,
        )

    async def run(self, _title: str, work: Callable[[Control], Any]) -> Any:
        if self.error is not None:
            raise self.error
        return work(Control(lambda *_progress: None))

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
    """Return the inputs of each report; its text is ``the report``."""
    results: list[Any] = []
    monkeypatch.setattr(module, "gather", lambda _control, _store, request: results.append(request))
    monkeypatch.setattr(module, "render", lambda _report: "the report")
    return results


def saved(window: Window, target: Path, mask: Masking | None = None, *, pictures: bool = True) -> bool:
    grab = partial(grab_window, window, "Log") if pictures else None
    return asyncio.run(save_report(window.session, target, window.say, mask, grab))


def test_each_option_omits_its_part_and_any_of_them_the_picture(window: Window) -> None:
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


def test_the_file_has_the_requested_parts_and_is_reported(
    window: Window, report_inputs: list[Any], tmp_path: Path
) -> None:
    target = tmp_path / "report.html"
    assert saved(window, target)
    assert target.read_text() == "the report"
    assert window.messages == [f"Report saved: {target}"]
    (report_input,) = report_inputs
    (picture,) = report_input.pictures
    assert picture.png.startswith(b"\x89PNG")
    assert not report_input.mask.any


@pytest.mark.parametrize("how", [{"pictures": False}, {"mask": Masking(groups=True)}])
def test_no_picture_shows_omitted_parts(
    window: Window, report_inputs: list[Any], tmp_path: Path, how: dict[str, Any]
) -> None:
    assert saved(window, tmp_path / "report.html", **how)
    assert report_inputs[0].pictures == ()


def test_nothing_is_written_into_the_store_under_any_name(
    window: Window, report_inputs: list[Any], store: Path, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to(store)
    for target in (store / "report.html", tmp_path / "way" / "report.html"):
        assert not saved(window, target)
        assert not target.exists()
    assert window.messages == ["Nothing is written into the store: choose another folder."] * 2
    assert report_inputs == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Cancelled(), "The report was stopped; no file was written."),
        (StoreError("the log is gone"), "{target}: the log is gone"),
    ],
)
def test_a_failed_report_keeps_the_existing_file(
    window: Window, report_inputs: list[Any], tmp_path: Path, error: Exception, words: str
) -> None:
    target = tmp_path / "report.html"
    target.write_text("last week's")
    window.error = error
    assert not saved(window, target)
    assert target.read_text() == "last week's"
    assert window.messages == [words.format(target=target)]


def test_an_unwritable_target_is_reported(window: Window, report_inputs: list[Any], tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    target = tmp_path / "a file" / "report.html"
    assert not saved(window, target)
    assert window.messages[0].startswith(f"{target}: ")


def test_no_report_is_written_after_the_store_is_closed(
    window: Window, report_inputs: list[Any], tmp_path: Path
) -> None:
    window.session.closed = True
    assert not saved(window, tmp_path / "report.html")
    assert list(tmp_path.glob("*.html")) == []


def test_the_dialog_asks_for_omitted_parts_and_then_for_the_target(
    window: Window, report_inputs: list[Any], tmp_path: Path
) -> None:
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


def test_a_report_during_the_check_says_that_findings_are_incomplete(window: Window) -> None:
    """The dialog promised "0 findings with their bytes" for a damaged store whose check had just begun."""
    for is_checked in (True, False):
        box = ReportBox(window, "/data/store", 0, is_checked=is_checked)
        sentences = " ".join(label.text() for label in box.findChildren(QLabel))
        assert ("The check has not finished" in sentences) is not is_checked

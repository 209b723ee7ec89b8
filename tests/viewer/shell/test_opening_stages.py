"""The order when a store opens: rows on the screen first, then the survey, the other panes and the worker."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from panes import wait_until
from PySide6.QtWidgets import QWidget

from engine.inspection.queue_folders import QueueFolders
from engine.inspection.snapshot import StoreSnapshot
from viewer.log import pane as log_pane
from viewer.runtime import survey as survey_module
from viewer.shell import opening_stages as stages
from viewer.shell.main_window import MainWindow
from viewer.widgets.record_view import RecordView

pytestmark = pytest.mark.usefixtures("every_pane")

Run = Callable[[Any], Any]
Golden = Callable[..., Path]


def test_rows_are_painted_before_the_store_is_surveyed(
    run: Run, window: MainWindow, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed: list[tuple[bool, int, bool]] = []
    real = survey_module.survey

    def watched(store: StoreSnapshot) -> object:
        table = window.panes["log"].findChild(RecordView, "units.table")
        observed.append((table.drawn, table.model().rowCount(), window.jobs.worker.alive))
        return real(store)

    monkeypatch.setattr(survey_module, "survey", watched)
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    drawn, rows, worker = observed[0]
    assert drawn
    assert rows > 10
    assert not worker


def test_rows_are_painted_before_unreadable_bytes_are_identified(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store with damage in its first rows showed them 0.1 s later, because all its queues were read first."""
    store = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), store)
    newest = min((store / "commitlog").iterdir())
    with newest.open("r+b") as file:
        file.write(bytes(100))
    requests: list[bool] = []
    real = log_pane.lost_units

    def watched(*words: Any) -> object:
        requests.append(window.panes["log"].findChild(RecordView, "units.table").drawn)
        return real(*words)

    monkeypatch.setattr(log_pane, "lost_units", watched)
    assert run(window.open(store))
    run(window.settled())
    table = window.panes["log"].findChild(RecordView, "units.table")

    async def scenario() -> str:
        await wait_until(lambda: table.table.rows and table.table.rows[0].was, "it is said what stood there")
        return str(table.table.rows[0].was)

    assert run(scenario()).count("/") == 2
    assert requests
    assert all(requests)


def test_parts_of_unvisited_views_can_be_found(
    run: Run, window: MainWindow, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window.stages, "_make_next", lambda: None)
    assert window.findChild(QWidget, "index.files") is None
    assert run(window.open(golden("broker-orders")))
    assert set(window.panes) == {"log"}
    assert window.findChild(QWidget, "index.files") is not None
    assert window.findChild(QWidget, "no.such.name") is None
    assert "positions.ruler" in {part.objectName() for part in window.findChildren(QWidget)}


def test_a_change_of_language_before_the_check_began_does_not_lose_it(
    run: Run, window: MainWindow, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "FINDINGS_AFTER_MS", 3_600_000)

    async def changed() -> None:
        assert await window.open(golden("broker-orders"))
        session = window.session
        assert session is not None
        window.stages.make_all()
        monkeypatch.setattr(stages, "MAKE_AFTER_MS", 50)
        monkeypatch.setattr(stages, "FINDINGS_AFTER_MS", 50)
        assert not session.findings_complete, "the check has not begun"
        window.rebuild()
        await wait_until(lambda: session.findings_complete, "the check has ended")

    run(changed())


def test_a_store_closed_before_its_rows_is_released_at_once(run: Run, window: MainWindow, golden: Golden) -> None:
    async def closed_early() -> bool:
        window.hide()
        window.stages.first_rows_painted = closing  # type: ignore[method-assign]
        return await window.open(golden("broker-orders"))

    async def closing() -> None:
        window.close_store()

    assert not run(closed_early())
    assert window.session is None


def test_concurrent_listings_of_queues_are_shared(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.inspection import open_store

    listed: list[int] = []
    real = QueueFolders._list
    monkeypatch.setattr(
        QueueFolders, "_list", lambda self, known_readers: (listed.append(1), real(self, known_readers))[1]
    )
    with open_store(golden("broker-orders")) as store:
        assert store.log.known_end is None
        threads = [threading.Thread(target=store.topics), threading.Thread(target=lambda: store.log.max_offset)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.log.known_end == store.log.max_offset
    assert listed == [1]


def test_a_picture_does_not_wait_for_a_count_that_takes_long(
    run: Run, window: MainWindow, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a log of 1 TiB it waited for the maximum time, and drew what had been complete long before."""
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    job = window.jobs.announce("Counting units", lambda: None)
    job.done, job.total, job.is_background = 1, 100, True
    job.begun -= 5

    def endless() -> float:
        raise AssertionError("the longest wait was waited")

    monkeypatch.setattr(stages.asyncio, "sleep", _counted(stages.asyncio.sleep, 2000, endless))
    assert run(window.settled(3600, quiet=True))
    assert job in window.jobs.list
    window.jobs.retire(job)


def _counted(function: Callable[[float], Any], max_calls: int, then: Callable[[], float]) -> Callable[[float], Any]:
    remaining = iter(range(max_calls))
    return lambda seconds: function(seconds) if next(remaining, None) is not None else then()

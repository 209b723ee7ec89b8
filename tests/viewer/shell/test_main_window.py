"""The main window in use: open, go, back, errors, drop, zoom, language, and closing during work."""

from __future__ import annotations

import asyncio
import shutil
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade_stores import healthy
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from engine.inspection.capsule_making import make_capsule
from engine.inspection.snapshot import open_store
from viewer.look import assets
from viewer.look.theme import theme
from viewer.runtime import places
from viewer.shell.error_page import ErrorPage
from viewer.shell.main_window import MainWindow
from viewer.shell.single_instance import shows_store
from viewer.shell.welcome import WelcomePage
from viewer.shell.workspace import apply_filter
from viewer.widgets.record_view import RecordView

Run = Callable[[Any], Any]
Golden = Callable[..., Path]
NAMES = (
    "store.tree",
    "units.table",
    "unit.detail",
    "unit.hex",
    "queue.table",
    "index.files",
    "index.slots",
    "index.chain",
    "trace.topic",
    "trace.key",
    "trace.steps",
    "positions.ruler",
    "positions.plot",
    "positions.gaps",
    "findings.table",
    "recovery.plan",
    "filter.field",
    "goto.field",
    "status.message",
    "jobs.list",
)


async def opened(window: MainWindow, path: Path, place: str | None = None) -> None:
    """Open and wait for the first rows."""
    assert await window.open(path, place)
    assert await window.settled()


def table(window: MainWindow, name: str) -> RecordView:
    view = window.findChild(RecordView, name)
    assert view is not None
    return view


def test_a_capsule_opens_as_a_store_and_is_named(run: Run, window: MainWindow, tmp_path: Path) -> None:
    capsule = tmp_path / "incident.capsule"
    with open_store(healthy().write(tmp_path / "store")) as store:
        make_capsule(store, capsule, 1_700_000_000_000)
    run(opened(window, capsule))
    assert window.windowTitle() == f"{capsule} (capsule, without bodies) – Storescope"
    assert window.session is not None
    assert "can be read, but not changed" in window.session.writing_refusal
    model = table(window, "units.table").model()
    assert model.rowCount() > 10


def test_another_window_has_the_same_settings_and_no_store(window, settings):
    second_window = window.another()
    try:
        assert type(second_window) is type(window)
        assert second_window.settings is settings
        assert second_window.session is None
        assert second_window.topic_colours is None
    finally:
        second_window.close()
        second_window.deleteLater()


def test_every_promised_widget_is_there_with_a_name_to_speak(run: Run, window: MainWindow, golden: Golden) -> None:
    run(opened(window, golden("broker-orders")))
    assert window.objectName() == "mainWindow"
    for name in NAMES:
        widget = window.findChild(QWidget, name)
        assert widget is not None, name
        assert widget.accessibleName(), name


def test_store_opens_with_its_first_rows_and_says_read_only(run: Run, window: MainWindow, golden: Golden) -> None:
    path = golden("broker-orders")
    run(opened(window, path))
    model = table(window, "units.table").model()
    assert model.rowCount() > 10
    texts = {model.index(0, column).data() for column in range(model.columnCount())}
    assert "OrderEvents" in texts
    promise = window.findChild(QLabel, "promise")
    assert promise is not None
    assert promise.isVisible()
    assert promise.text() == "Read-only"
    assert str(path) in window.windowTitle()


@pytest.mark.usefixtures("every_pane")
def test_reading_changes_no_byte(
    run: Run, window: MainWindow, golden: Golden, unchanged: Callable[[Path], Path]
) -> None:
    path = unchanged(golden("broker-crash"))

    async def look() -> None:
        await opened(window, path)
        for place in ("queue:OrderEvents/0/3", "index", "positions", "findings", "groups", "config", "log:0"):
            await window.go_to_text(place)
            await window.settled(60, quiet=True)

    run(look())


def test_places_are_shown_and_history_leads_back(run: Run, window: MainWindow, golden: Golden) -> None:
    async def walk() -> None:
        await opened(window, golden("broker-orders"))
        await window.go_to_text("queue:OrderEvents/1/20")
        await window.settled()
        assert window.view == "queue"
        assert window.top.crumbs.accessibleName().endswith("OrderEvents › Queue 1 › 20")
        window.go(places.Place("groups"))
        await window.settled()
        assert window.view == "groups"
        action(window, "go.back").trigger()
        await window.settled()
        assert window.view == "queue"
        assert action(window, "go.forward").isEnabled()
        action(window, "go.forward").trigger()
        assert window.view == "groups"

    run(walk())


def test_go_to_box_finds_a_key_or_reports_that_there_is_none(run: Run, window: MainWindow, golden: Golden) -> None:
    async def ask() -> None:
        await opened(window, golden("broker-orders"))
        assert await window.go_to_text("K24")
        assert window.view == "log"
        assert not await window.go_to_text("no-such-key")
        assert "no-such-key" in window.top.goto.accessibleDescription()
        assert window.top.goto.property("state") == "error"

    run(ask())


@pytest.mark.parametrize("slow", ["K24", "no-such-key"])
def test_a_search_that_ends_late_does_not_move_the_view_away_from_a_later_jump(
    run: Run, window: MainWindow, golden: Golden, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    async def ask() -> None:
        await opened(window, golden("broker-orders"))
        assert window.session is not None
        resolve, may_end = window.session.resolve, asyncio.Event()

        async def late(target: Any) -> Any:
            await may_end.wait()
            return await resolve(target)

        monkeypatch.setattr(window.session, "resolve", late)
        search = asyncio.ensure_future(window.go_to_text(slow))
        await asyncio.sleep(0.02)
        window.go(places.Place("groups"))
        may_end.set()
        assert not await search
        await window.settled()
        assert window.view == "groups"
        assert window.top.goto.property("state") != "error"

    run(ask())


@pytest.mark.parametrize("kind", ["nothing", "empty directory", "text file"])
def test_error_page_shows_what_was_found_instead(run: Run, window: MainWindow, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "here"
    if kind == "empty directory":
        path.mkdir()
    elif kind == "text file":
        path.write_text("no store")
    assert run(window.open(path)) is False
    page = window.findChild(ErrorPage, "error.page")
    assert page is not None
    assert page.isVisible()
    text = " ".join(label.text() for label in page.findChildren(QLabel))
    assert str(path) in text
    assert "Expected" in text
    assert "Found" in text
    assert not action(window, "view.queues").isEnabled()


@pytest.mark.parametrize("kind", ["store", "archive", "nothing"])
def test_a_path_with_dots_is_shown_without_them(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path, kind: str
) -> None:
    """From a terminal in another folder the title was "/data/x/../backup/s.tar". A second start with such a path did
    not find the window that showed the store.
    """
    (tmp_path / "a").mkdir()
    path = tmp_path / kind
    if kind == "store":
        shutil.copytree(golden("clean-5.3.3"), path)
    elif kind == "archive":
        path = tmp_path / "s.tar"
        with tarfile.open(path, "w") as packed:
            packed.add(golden("clean-5.3.3"), "store")
    dotted = Path(f"{tmp_path}/a/../{path.name}")
    assert run(window.open(dotted)) is (kind != "nothing")
    if kind == "nothing":
        page = window.findChild(ErrorPage, "error.page")
        assert page is not None
        shown = " ".join(label.text() for label in page.findChildren(QLabel))
        assert str(path) in shown
        assert ".." not in shown
    else:
        assert window.windowTitle() == f"{path} – Storescope"
    if kind == "store":
        assert shows_store(window, dotted)


def test_after_an_error_another_store_opens(run: Run, window: MainWindow, golden: Golden, tmp_path: Path) -> None:
    async def both() -> None:
        assert not await window.open(tmp_path)
        await opened(window, golden("broker-orders"))
        assert window.pages.currentIndex() == 0

    run(both())


def test_stores_follow_each_other_and_close(run: Run, window: MainWindow, golden: Golden) -> None:
    async def three() -> None:
        for name in ("broker-orders", "clean-4.9.8", "broker-crash"):
            await opened(window, golden(name))
        window.close_store()
        assert window.session is None
        assert table(window, "units.table").model().rowCount() == 0

    run(three())


def test_the_newest_of_two_open_requests_wins(run: Run, window: MainWindow, golden: Golden) -> None:
    async def race() -> None:
        first_open = asyncio.ensure_future(window.open(golden("broker-orders")))
        await asyncio.sleep(0)
        second_open = asyncio.ensure_future(window.open(golden("clean-4.9.8")))
        assert [await first_open, await second_open] == [False, True]
        assert window.session is not None
        assert "clean-4.9.8" in str(window.session.path)

    run(race())


def test_welcome_page_lists_stores_opened_before(run: Run, window: MainWindow, golden: Golden, tmp_path: Path) -> None:
    path = golden("broker-orders")
    run(opened(window, path))
    window.close_store()
    window.show_welcome()
    page = window.findChild(WelcomePage, "welcome")
    assert page is not None
    assert page.findChild(QWidget, f"welcome.recent.{path}") is not None
    assert page.findChild(QWidget, "welcome.sample.orders") is not None


def test_directory_can_be_dropped(run: Run, window: MainWindow, golden: Golden) -> None:
    path = golden("clean-5.3.3")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left_button, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier

    async def drop() -> None:
        window.show_welcome()
        enter = QDragEnterEvent(QPoint(400, 300), copy, data, left_button, none)
        QApplication.sendEvent(window, enter)
        assert enter.isAccepted()
        QApplication.sendEvent(window, QDropEvent(QPointF(400, 300), copy, data, left_button, none))
        await wait_for(lambda: window.session is not None)
        await window.settled()

    run(drop())
    assert window.session is not None
    assert window.session.path == path


def test_growth_is_followed(run: Run, window: MainWindow, golden: Golden, tmp_path: Path) -> None:
    """A unit appended by a broker is shown without a user action."""
    store = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), store)
    log = max((store / "commitlog").iterdir())

    async def grow() -> None:
        await opened(window, store)
        session = window.session
        assert session is not None
        end_before = session.snapshot.log.max_offset
        last_unit = session.snapshot.log.items_before(end_before, 1)[0]
        unit = bytearray(session.snapshot.log.read(last_unit.offset, last_unit.size))
        unit[28:36] = end_before.to_bytes(8, "big")
        with log.open("r+b") as file:
            file.seek(end_before - int(log.name))
            file.write(unit)
        await wait_for(lambda: session.survey is not None and session.survey.max_offset == end_before + last_unit.size)

    run(grow())


def test_store_that_vanishes_does_not_take_the_window_with_it(
    run: Run, window: MainWindow, golden: Golden, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), store)

    async def vanish() -> None:
        await opened(window, store)
        shutil.rmtree(store)
        action(window, "view.refresh").trigger()
        for view, place in (("log", "log:0"), ("queue",) * 2, ("index",) * 2, ("groups",) * 2, ("config",) * 2):
            await window.go_to_text(place)
            assert window.view == view
            assert await window.settled(60)

    run(vanish())
    assert window.isVisible()


@pytest.mark.usefixtures("every_pane")
def test_language_changes_without_restart_and_the_place_stays(run: Run, window: MainWindow, golden: Golden) -> None:
    async def speak() -> None:
        await opened(window, golden("broker-orders"))
        await window.go_to_text("queue:OrderEvents/1/20")
        await window.settled()
        action(window, "language.zh_CN").trigger()
        await window.settled()
        assert window.rail.buttons["findings"].text() == "诊断"
        assert window.view == "queue"
        assert window.top.crumbs.accessibleName().endswith("队列 1 › 20")
        head = table(window, "queue.table").model()
        heads = [head.head(n) for n in range(head.columnCount())]
        assert "物理偏移量" in heads
        assert action(window, "language.zh_CN").isChecked()

    run(speak())
    assert window.settings.language == "zh_CN"
    assert assets.language() == "zh_CN"


def test_ctrl_and_the_wheel_scale_everything(run: Run, window: MainWindow, golden: Golden) -> None:
    async def scale() -> None:
        await opened(window, golden("broker-orders"))
        view = table(window, "units.table")
        height_before = view.row_height()
        wheel = QWheelEvent(
            QPointF(50, 50),
            QPointF(50, 50),
            QPoint(0, 0),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.ControlModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(view.viewport(), wheel)
        while (theme.zoom, view.row_height() > height_before) != (110, True):
            await asyncio.sleep(0.01)
        action(window, "zoom.reset").trigger()
        while (theme.zoom, view.row_height()) != (100, height_before):
            await asyncio.sleep(0.01)

    run(scale())


def test_palette_runs_a_command_and_goes_to_a_topic(run: Run, window: MainWindow, golden: Golden) -> None:
    async def use() -> None:
        await opened(window, golden("broker-orders"))
        action(window, "palette.open").trigger()
        assert window.palette_box.isVisible()
        window.palette_box.field.setText(">consumer gr")
        assert [entry.text for entry in window.palette_box.list.entries] == ["Consumer groups"]
        window.palette_box.list.chosen.emit(window.palette_box.list.entries[0])
        assert window.view == "groups"
        assert not window.palette_box.isVisible()
        action(window, "palette.open").trigger()
        window.palette_box.field.setText("payment")
        topic = next(entry for entry in window.palette_box.list.entries if entry.text == "PaymentEvents")
        window.palette_box.list.chosen.emit(topic)
        assert window.view == "queue"

    run(use())


def test_narrow_window_has_a_slim_rail(run: Run, window: MainWindow, golden: Golden) -> None:
    async def narrow() -> None:
        await opened(window, golden("broker-orders"))
        assert window.rail.width() == 72
        window.resize(1280, 720)
        await wait_for(lambda: window.rail.width() == 48 and not window.strip.path.isVisible())

    run(narrow())


@pytest.mark.usefixtures("every_pane")
def test_layout_is_kept_and_can_be_reset(run: Run, window: MainWindow, golden: Golden) -> None:
    window.remembers = True

    async def drag() -> None:
        await opened(window, golden("broker-orders"))
        window.split.setSizes([400, 1100])
        window.layouts.keep()
        window.layouts.write()
        assert not window.settings.splitter("side").isEmpty()
        action(window, "layout.reset").trigger()
        await window.settled()
        assert abs(window.split.sizes()[0] - 264) <= 8
        assert window.settings.splitter("side").isEmpty()

    run(drag())


def test_closes_at_once_during_running_work(run: Run, window: MainWindow, golden: Golden) -> None:
    def endless(control: Any) -> None:
        while not control.cancelled:
            time.sleep(0.01)

    async def work() -> None:
        await opened(window, golden("broker-orders"))
        window.jobs.start(window.jobs.run("Endless", endless))
        await wait_for(lambda: any(job.title == "Endless" for job in window.jobs.list))
        assert window.findChild(QWidget, "jobs.list").accessibleName()
        window.close()  # without a stop it would run forever

    run(work())


def test_loop_never_waits_for_the_disk(run: Run, window: MainWindow, golden: Golden) -> None:
    """Another thread than the loop's reads the log, for every place."""
    readers: list[threading.Thread] = []

    async def slow() -> None:
        await opened(window, golden("broker-orders"))
        assert window.session is not None
        log = window.session.snapshot.log
        walk = log.walk

        def watched(*args: Any, **options: Any) -> Any:
            readers.append(threading.current_thread())
            return walk(*args, **options)

        log.walk = watched  # type: ignore[method-assign]
        for offset in (0, 1_000_000, 2_000_000):
            count = len(readers)
            await window.go_to_text(str(offset))
            await wait_for(lambda observed=count: len(readers) > observed or window.jobs.idle)

    run(slow())
    assert readers
    assert threading.main_thread() not in readers


def action(window: MainWindow, name: str) -> QAction:
    actual_action = window.findChild(QAction, name)
    assert actual_action is not None
    return actual_action


async def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        await asyncio.sleep(0.01)


def test_a_filter_chosen_in_the_palette_is_applied(run: Run, window: MainWindow, golden: Golden) -> None:
    async def choose() -> None:
        await opened(window, golden("broker-orders"))
        apply_filter(window, 'topic = "PaymentEvents"')
        filtering = window.panes["log"].model.filter  # type: ignore[attr-defined]
        await wait_for(lambda: filtering.source is not None and filtering.source.offsets)
        assert filtering.text == 'topic = "PaymentEvents"'

    run(choose())


@pytest.mark.golden
def test_view_keys_put_the_focus_on_the_main_widget(run, window, golden) -> None:
    """Ctrl+5 put the focus on the Line above the findings, so the arrow keys moved along the log."""

    async def walk() -> None:
        assert await window.open(golden("crash-flip-5.3.3"))
        window.panes["log"].table.setFocus()
        window.show_view("findings")
        await window.settled(60)
        assert window.focusWidget() is window.panes["findings"].table
        window.side.tree.setFocus()
        window.show_view("queue")
        await window.settled(60)
        assert window.focusWidget() is window.side.tree, "who walks in the tree stays there"

    run(walk())

"""Workspace of a window: the way from finding to finding, the session and its file, the store behind a path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QLineEdit, QMainWindow

from engine.errors import StoreError
from engine.rules.findings import Finding
from viewer.runtime import places
from viewer.runtime.bookmarks import Bookmark, bookmarks_of
from viewer.runtime.lab_session import LabSession
from viewer.runtime.patch_bench import PatchBench
from viewer.runtime.places import History, Place
from viewer.shell import session_file
from viewer.shell import workspace as module
from viewer.shell.open_other import StoreToOpen
from viewer.shell.session_file import Session
from viewer.shell.workspace import LAST, Workspace


class Jobs:
    """Jobs that run at once, or when the test opens their gate."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.kept: list[Path] = []

    async def run(self, title: str, work: Callable[[Any], Any]) -> Any:
        gate = self.gates.get(title)
        if gate is not None:
            await gate.wait()
        return work(None)

    def read(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None] | None = None
    ) -> None:
        try:
            actual_work = work()
        except (OSError, StoreError) as error:
            assert failed is not None
            failed(error)
        else:
            done(actual_work)

    read_saved = read

    def keep(self, file: Path, write: Callable[[], object], _failed: Callable[[Exception], None]) -> None:
        write()
        self.kept.append(file)


class FakeOpenStore(QObject):
    """A store that is open."""

    patchesEdited = Signal(object)  # noqa: N815 (named as the session names it)
    decodingSaveRequested = Signal(object)  # noqa: N815

    def __init__(self, path: Path, jobs: Jobs) -> None:
        super().__init__()
        self.patches = ()
        self.bench = PatchBench()
        self.path, self.jobs = path, jobs
        self.findings: tuple[Finding, ...] = ()
        self.findings_complete = True
        self.survey = None
        self.name = path.name
        self.decoding_rules: tuple[object, ...] = ()

    def use_decoding_rules(self, rules: tuple[object, ...]) -> None:
        self.decoding_rules = rules


class Window(QMainWindow):
    """The part of a window that a workspace uses."""

    opened = Signal()

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.jobs = Jobs()
        self.settings = SimpleNamespace(folder=folder, restore=False)
        self.history = History()
        self.session: Any = None
        self.panes: dict[str, Any] = {}
        self.remembers = True
        self.ticked: list[bool] = []
        self.actions_by_id = {
            "session.restore": SimpleNamespace(setChecked=self.ticked.append),
            "edit.undo": SimpleNamespace(trigger=lambda: None),
        }
        self.messages: list[str] = []
        self.closes = 0
        self.say = self.messages.append

    def go(self, place: Place) -> None:
        self.history.visit(place)

    def enable(self) -> None:
        """The fake has no commands to update."""

    def close(self) -> bool:
        self.closes += 1
        return True


@pytest.fixture
def fake_window(themed_app: object, tmp_path: Path) -> Iterator[Window]:
    window = Window(tmp_path / "settings")
    window.settings.folder.mkdir()
    yield window
    window.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # DeferredDelete


class Layouts:
    """Layout of a window, as it is saved and restored."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.take = self.taken.append

    def states(self) -> dict[str, bytes]:
        return {"split.side": b"ab"}


@pytest.fixture
def layouts() -> Layouts:
    return Layouts()


@pytest.fixture
def space(fake_window: Window, layouts: Layouts) -> Workspace:
    lab = SimpleNamespace(session=LabSession(), feed=lambda: None)
    return Workspace(fake_window, layouts, lab)  # type: ignore[arg-type]


@pytest.fixture
def session(fake_window: Window, tmp_path: Path) -> FakeOpenStore:
    path = tmp_path / "store"
    path.mkdir()
    fake_window.session = FakeOpenStore(path, fake_window.jobs)
    return fake_window.session  # type: ignore[no-any-return]


# ---- from finding to finding -----------------------------------------------------------------------------------------


def finding(rule: str, file: str | None = "/store/commitlog/00000000000000000000", offset: int | None = 0) -> Finding:
    return Finding(rule, "error", "log", file, offset, rule, {}, (), "")


def walked(space: Workspace, window: Window, *steps: int) -> list[str]:
    """Return the rules that the window names on the way."""
    window.messages.clear()
    for step in steps:
        space.next_finding(step)
    return [words.split()[0] for words in window.messages]


def test_findings_follow_the_log_and_then_the_other_files_and_begin_again(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    session.findings = (finding("AB01", "/store/abort", None), finding("CL06", offset=900), finding("CL03", offset=640))
    assert walked(space, fake_window, 1, 1, 1, 1) == ["CL03", "CL06", "AB01", "CL03"]
    assert walked(space, fake_window, -1, -1) == ["AB01", "CL06"]
    fake_window.go(places.log(700))
    assert walked(space, fake_window, 1) == ["CL06"]
    fake_window.go(places.log(700))
    assert walked(space, fake_window, -1) == ["CL03"]


def test_several_findings_at_one_place_are_all_gone_through(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    """The second of three came again and again: the current finding was known by its place alone."""
    session.findings = (
        finding("CL01"),
        finding("CL02", offset=640),
        finding("CL03", offset=640),
        finding("CL04", offset=640),
        finding("CL05", offset=900),
    )
    assert walked(space, fake_window, 1, 1, 1, 1, 1) == ["CL01", "CL02", "CL03", "CL04", "CL05"]
    assert walked(space, fake_window, -1, -1, -1, -1) == ["CL04", "CL03", "CL02", "CL01"]


def test_the_first_byte_of_a_log_is_not_passed_over(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    session.findings = (finding("CL01"), finding("CL02", offset=640))
    assert walked(space, fake_window, 1) == ["CL01"]
    fake_window.go(places.log())
    assert walked(space, fake_window, 1) == ["CL01"]


def test_a_finding_that_is_seen_nowhere_else_is_seen_among_the_findings(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    """Findings about the store as a whole ended the key in an error when there were no others, else they were
    skipped.
    """
    session.findings = (finding("ST01", None, None),)
    assert walked(space, fake_window, 1) == ["ST01"]
    assert fake_window.history.current == Place("findings", name="ST01")
    session.findings = (finding("ST01", None, None), finding("CL03", offset=640))
    assert walked(space, fake_window, 1, 1) == ["CL03", "ST01"]


def test_where_nothing_was_found_it_is_said_whether_anybody_has_looked(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    space.next_finding(1)
    session.findings_complete = False
    space.next_finding(1)
    fake_window.session = None
    space.next_finding(1)
    assert fake_window.messages == ["No finding.", "This store has not been checked."]


# ---- the session -----------------------------------------------------------------------------------------------------


def test_a_session_says_where_one_is_and_what_was_noted(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    assert space.here() == ""
    fake_window.go(places.log(640))
    fake_window.go(places.queue("Orders", 0, 5))
    marks = bookmarks_of(session)  # type: ignore[arg-type]
    marks.put(Bookmark("log:640", "here"))
    fake_window.panes["log"] = SimpleNamespace(
        filter=SimpleNamespace(field=QLineEdit(' topic = "Orders" ', fake_window))
    )
    actual_session = space.session()
    assert actual_session is not None
    assert (actual_session.store, actual_session.place) == (str(session.path), "queue:Orders/0/5")
    assert actual_session.places == ("log:640", "queue:Orders/0/5")
    assert [mark.name for mark in actual_session.bookmarks] == ["here"]
    assert actual_session.filter == 'topic = "Orders"'
    assert actual_session.layout == {"split.side": b"ab"}
    fake_window.session = None
    assert space.session() is None


def test_a_session_is_saved_beside_the_store_only(
    space: Workspace, fake_window: Window, session: FakeOpenStore, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to(session.path)
    for inside in (session.path / "a.storescope", tmp_path / "way" / "a.storescope"):
        space.save(inside)
        assert not inside.exists()
    space.save(tmp_path / "a.storescope")
    assert session_file.read(tmp_path / "a.storescope").store == str(session.path)
    space.save(tmp_path / "no folder" / "a.storescope")
    refused = "Nothing is written into the store: choose another folder."
    assert fake_window.messages[:3] == [refused, refused, f"Session saved: {tmp_path / 'a.storescope'}"]
    assert "no folder" in fake_window.messages[3]


def test_the_last_session_is_kept_where_that_was_chosen_and_else_forgotten(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    file = fake_window.settings.folder / LAST
    space.keep_last()
    assert not file.exists()
    space.choose_restore()
    space.keep_last()
    assert space.last() == file
    assert session_file.read(file).store == str(session.path)
    space.choose_restore()
    assert space.last() is None, "though it is there still"
    space.keep_last()
    assert not file.exists()
    assert fake_window.ticked == [True, False]
    assert fake_window.messages == [
        "The next start opens what the window showed at the end.",
        "The next start begins with the welcome page.",
    ]


def test_a_window_beside_the_first_leaves_the_last_session_alone(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    file = fake_window.settings.folder / LAST
    fake_window.settings.restore = True
    space.keep_last()
    last_session = file.read_bytes()
    fake_window.remembers = False
    fake_window.session = None
    space.keep_last()
    assert file.read_bytes() == last_session


def test_a_last_session_that_leads_nowhere_is_none(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    fake_window.settings.restore = True
    file = fake_window.settings.folder / LAST
    file.write_text("{}")
    assert space.last() is None
    space.keep_last()
    assert space.last() == file
    session.path.rmdir()
    assert space.last() is None


def test_a_last_session_that_cannot_be_kept_is_said(
    space: Workspace, fake_window: Window, session: FakeOpenStore
) -> None:
    fake_window.settings.restore = True
    (fake_window.settings.folder / LAST).mkdir()
    (fake_window.settings.folder / LAST / "in the way").touch()
    space.keep_last()
    assert len(fake_window.messages) == 1


# ---- what a path leads to --------------------------------------------------------------------------------------------


@pytest.fixture
def stores_by_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, StoreToOpen]:
    """Return a dictionary: name of a file → store that it leads to."""
    stores_by_name: dict[str, StoreToOpen] = {}
    monkeypatch.setattr(module, "take", lambda _control, path, _cache: stores_by_name[path.name])
    monkeypatch.setattr(module, "default_cache", lambda: tmp_path / "cache")
    return stores_by_name


def test_a_store_is_meant_itself_and_begins_with_its_log(
    space: Workspace, stores_by_file: dict[str, StoreToOpen]
) -> None:
    assert asyncio.run(space.taken(Path("/data/store"))) == StoreToOpen(Path("/data/store"))
    assert space.first_place() == "log"


def test_a_session_file_brings_its_place_its_bookmarks_and_its_layout(
    space: Workspace,
    fake_window: Window,
    session: FakeOpenStore,
    layouts: Layouts,
    stores_by_file: dict[str, StoreToOpen],
) -> None:
    actual_session = Session(
        str(session.path),
        "queue:Orders/0/5",
        ("log:640", "no place", "queue:Orders/0/5"),
        (Bookmark("log:640", "x"),),
        "asked Lin",
        size=(900, 600),
        layout={"split.side": b"ab"},
    )
    stores_by_file["a.storescope"] = StoreToOpen(session.path, session=actual_session)
    asyncio.run(space.taken(Path("a.storescope")))
    assert space.first_place() == "queue:Orders/0/5"
    space.began(session)  # type: ignore[arg-type]
    marks = bookmarks_of(session)  # type: ignore[arg-type]
    assert (marks.list, marks.notes) == (actual_session.bookmarks, "asked Lin")
    assert [place.kind for place in fake_window.history.places] == ["log", "queue"], "what is no place is passed over"
    assert layouts.taken == [actual_session.layout]
    assert (fake_window.width(), fake_window.height()) == (900, 600)


def test_an_older_answer_does_not_become_the_newer_store_s(
    space: Workspace, fake_window: Window, session: FakeOpenStore, stores_by_file: dict[str, StoreToOpen]
) -> None:
    """A session file that took long to read came after another store had been asked for: that store got the file's
    bookmarks and notes, and kept them.
    """
    older = Session("/data/other", "log:5", bookmarks=(Bookmark("log:5", "of another store"),), notes="of another")
    stores_by_file["slow.storescope"] = StoreToOpen(Path("/data/other"), session=older)

    async def opened() -> None:
        gate = fake_window.jobs.gates["slow.storescope"] = asyncio.Event()
        slow = asyncio.create_task(space.taken(Path("slow.storescope")))
        await asyncio.sleep(0)
        assert await space.taken(session.path) == StoreToOpen(session.path)
        gate.set()
        assert (await slow).session is older, "whoever asked for it is told"

    asyncio.run(opened())
    assert space.first_place() == "log"
    space.began(session)  # type: ignore[arg-type]
    marks = bookmarks_of(session)  # type: ignore[arg-type]
    assert (marks.list, marks.notes) == ((), "")


def test_marks_are_there_again_at_the_next_start(space: Workspace, fake_window: Window, session: FakeOpenStore) -> None:
    space.began(session)  # type: ignore[arg-type]
    bookmarks_of(session).put(Bookmark("log:640", "here"))  # type: ignore[arg-type]
    assert len(set(fake_window.jobs.kept)) == 1
    second_store = FakeOpenStore(session.path, fake_window.jobs)
    space.began(second_store)  # type: ignore[arg-type]
    assert [mark.name for mark in bookmarks_of(second_store).list] == ["here"]  # type: ignore[arg-type]


# ---- windows and views -----------------------------------------------------------------------------------------------


def test_a_place_of_its_own_window_opens_there_and_any_other_does_not(
    space: Workspace, fake_window: Window, session: FakeOpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Place] = []
    room = [True, False]

    def beside(_window: object, place: Place) -> object | None:
        shown.append(place)
        return fake_window if room.pop(0) else None

    monkeypatch.setattr(module, "show_beside", beside)
    in_new_window = Place("log", offset=640, new_window=True)
    assert not space.shown_beside(places.log(640))
    assert space.shown_beside(in_new_window)
    assert (shown, fake_window.messages) == ([in_new_window], [])
    assert space.shown_beside(in_new_window)
    assert fake_window.messages == ["There are too many windows: close one first."]
    fake_window.session = None
    space.show_here_beside()
    assert space.shown_beside(in_new_window), "without a store nothing opens, and nothing happens here"
    assert len(shown) == 2


def test_a_window_with_jobs_that_run_asks_before_it_closes(space: Workspace, fake_window: Window) -> None:
    space.close()
    assert fake_window.closes == 1
    running = ["verify: 58 of 108 tasks"]
    space.pipeline = SimpleNamespace(running_in_words=lambda: running)  # type: ignore[assignment]
    space.close()
    assert fake_window.closes == 1
    running.clear()
    space.close()
    assert fake_window.closes == 2


def test_where_nothing_is_served_it_is_said_where_that_begins(space: Workspace, fake_window: Window) -> None:
    followed: list[object] = []
    space.requests = SimpleNamespace(follow=followed.append)  # type: ignore[assignment]
    space._record_requests()
    assert fake_window.messages == ["Nothing is served here: make a lab store and press Serve there, or open a file."]
    feed: Any = object()
    space._lab.feed = lambda: feed  # type: ignore[method-assign]
    space._record_requests()
    assert followed == [feed]

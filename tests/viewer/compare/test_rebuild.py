"""The dialog that rebuilds into another folder: its texts before, during and after a run, and the results of
earlier runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.errors import StoreError
from engine.rebuilding import Rebuilt
from viewer.compare import rebuild as module
from viewer.compare.rebuild import RebuildBox, amount_words, ask_rebuild, built_words, place_of
from viewer.compare.rebuild_work import Amounts, ComparedFile, RebuildComparison
from viewer.runtime import places
from viewer.runtime.command_line import command_line
from viewer.runtime.jobs import Cancelled, Control
from viewer.runtime.places import Place

STORE = Path("/data/store")
EQUAL = ComparedFile("Orders", 0, "", 5, 5)
DIFFERS = ComparedFile("Orders", 1, "", 5, 6, 3, 640)
ANSWER = RebuildComparison(Rebuilt(units=11, queues=2, entries=11), (EQUAL, DIFFERS))


class Jobs:
    """Runs a dialog's jobs when the test says so."""

    def __init__(self) -> None:
        self.begun: list[Coroutine[Any, Any, None]] = []
        self.reads: list[tuple[Any, ...]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.begun.append(work)

    def read(self, *arguments: Any) -> None:
        self.reads.append(arguments)

    async def run(self, _title: str, work: Callable[[Control], Any]) -> Any:
        return work(Control(lambda *_progress: None))

    def finish(self) -> None:
        begun, self.begun = self.begun, []
        for work in begun:
            asyncio.run(work)


class Window(QWidget):
    """Fake window with the parts that the dialog uses."""

    def __init__(self) -> None:
        super().__init__()
        line = partial(command_line, path=STORE)
        self.session: Any = SimpleNamespace(
            jobs=Jobs(), path=STORE, config=None, snapshot=None, command_line=line, closed=False
        )
        self.messages: list[str] = []
        self.noted: list[tuple[Any, ...]] = []
        self.went: list[Place] = []
        self.say, self.go = self.messages.append, self.went.append

    def note(self, *arguments: Any) -> None:
        self.noted.append(arguments)


@pytest.fixture
def window(themed_app: object) -> Iterator[Window]:
    fake_window = Window()
    yield fake_window
    fake_window.deleteLater()


@pytest.fixture
def box(window: Window) -> RebuildBox:
    box = RebuildBox(window, window.session, window.say)
    box.placeRequested.connect(window.go)
    box.operationDone.connect(window.note)
    return box


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Results of the next runs: a comparison, the text of a refusal, or an error."""
    results: list[Any] = []

    def refused(_store: Path, _target: Path) -> str:
        return results.pop(0) if isinstance(results[0], str) else ""

    def next_result(*_arguments: object) -> RebuildComparison:
        answer = results.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    monkeypatch.setattr(module, "refusal", refused)
    monkeypatch.setattr(module, "rebuild", next_result)
    return results


def built(box: RebuildBox, window: Window, target: str = "/data/built") -> None:
    box.field.setText(target)
    box.begin()
    window.session.jobs.finish()


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (EQUAL, None),
        (DIFFERS, places.queue("Orders", 1, 3)),
        (ComparedFile("", None, "20240101", 9, 9, 4, 640), places.index("20240101", "entry", 4)),
        (ComparedFile("Orders", 2, "", 0, 6, 0, 640, in_store=False), places.log(640)),
        (ComparedFile("Orders", 2, "", 0, 6, 0, None, in_store=False), None),
    ],
    ids=["equal", "queue", "index", "only rebuilt", "and it points nowhere"],
)
def test_a_difference_links_into_the_store(row: ComparedFile, place: Place | None) -> None:
    assert place_of(row) == place


def test_amounts_are_numbers_and_a_writing_broker_is_named() -> None:
    text = amount_words(Amounts(2 << 20, 12, 1 << 20, 3, 1 << 10))
    assert text.startswith("Reads 2.00 MiB of log.")
    assert "12 queues in 1.00 MiB, 3 index files in 1.00 KiB" in text
    assert "broker" not in text
    assert "A broker has it open" in amount_words(Amounts(is_locked=True))


def test_skipped_damage_is_reported_if_any() -> None:
    assert built_words(ANSWER.built).count(" · ") == 0
    clauses = built_words(Rebuilt(damaged=2, damaged_bytes=4096, stale=3, deleted_topics=["Gone", "Old"])).split(" · ")
    assert clauses[1:] == [
        "2 damaged places of the log skipped (4.00 KiB)",
        "3 units are left over from before a truncation",
        "deleted topics without queues: Gone, Old",
    ]


def test_without_a_target_no_run_starts(box: RebuildBox, window: Window) -> None:
    for text in ("", "  "):
        box.field.setText(text)
        box.begin()
        assert not box.start.isEnabled()
    assert window.session.jobs.begun == []


def test_a_store_that_cannot_be_rebuilt_gives_a_reason(box: RebuildBox, window: Window) -> None:
    box.show_amounts(Amounts(refusal="This is a part of a store."))
    assert box.amounts_label.text() == "This is a part of a store."
    box.field.setText("/data/built")
    box.begin()
    assert window.session.jobs.begun == []
    assert not box.choose.isEnabled()


def test_one_run_at_a_time(box: RebuildBox, window: Window, answers: list[Any]) -> None:
    answers.append(ANSWER)
    box.field.setText("/data/built")
    box.begin()
    box.begin()
    assert len(window.session.jobs.begun) == 1
    assert (box.start.isEnabled(), box.stop.isEnabled(), box.copy.isEnabled()) == (False, True, False)
    window.session.jobs.finish()
    assert (box.start.isEnabled(), box.stop.isEnabled(), box.copy.isEnabled()) == (True, False, True)


def test_differences_come_first_and_are_noted_with_their_command(
    box: RebuildBox, window: Window, answers: list[Any]
) -> None:
    answers.append(ANSWER)
    built(box, window)
    assert box.comparison is ANSWER
    assert box.table.source.rows == [DIFFERS, EQUAL]
    assert window.messages == ["1 of 2 queues and index files differ."]
    assert box.note.text().startswith(f"{window.messages[0]} Built in /data/built in ")
    ((name, _words, parameters, line),) = window.noted
    assert (name, parameters) == ("dispatch.rebuild", {"to": "/data/built", "differ": 1})
    assert line == "storescope dispatch /data/store --to /data/built"
    box.copy.click()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("Orders\t1\t")


def test_equality_of_all_parts_is_reported(box: RebuildBox, window: Window, answers: list[Any]) -> None:
    answers += [RebuildComparison(Rebuilt(), (EQUAL,)), RebuildComparison(Rebuilt(), ())]
    built(box, window)
    assert window.messages == ["The 1 queue or index file is equal."]
    built(box, window)
    assert box.table.note.state is not None
    assert box.table.note.state.text == "There are no queues and no index files."


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("Nothing is written into the store: choose another folder.",) * 2,
        (StoreError("the log is gone"), "the log is gone"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (Cancelled(), "Stopped: nothing is left of what was built."),
    ],
    ids=["refused", "no store", "full", "stopped"],
)
def test_a_failed_run_gives_a_reason_and_keeps_the_earlier_table(
    box: RebuildBox, window: Window, answers: list[Any], how: Any, words: str
) -> None:
    """After a second run that was stopped or refused, the table said "Nothing was built yet.", above the rows of the
    first run, which could still be copied.
    """
    answers += [how, ANSWER, how]
    built(box, window)
    assert box.note.text() == words
    assert box.table.note.state is not None
    assert box.table.note.state.text == "Nothing was built yet."
    assert (box.comparison, box.copy.isEnabled(), window.noted) == (None, False, [])
    built(box, window)
    assert box.table.note.state is None
    built(box, window)
    assert box.note.text() == words
    assert box.table.note.state is None
    assert box.table.source.rows == [DIFFERS, EQUAL]
    assert box.copy.isEnabled()
    assert box.start.isEnabled(), "it can be tried again"


def test_a_run_stopped_before_its_turn_does_nothing(box: RebuildBox, window: Window, answers: list[Any]) -> None:
    answers.append(ANSWER)
    box.field.setText("/data/built")
    box.begin()
    box.stop.click()
    window.session.jobs.finish()
    assert answers == [ANSWER], "nobody looked at the disk"
    assert box.note.text() == "Stopped: nothing is left of what was built."


def test_a_closed_dialog_stops_its_run_and_ignores_the_result(
    box: RebuildBox, window: Window, answers: list[Any]
) -> None:
    answers.append(ANSWER)
    box.field.setText("/data/built")
    box.begin()
    box._on_finished()
    box.show_amounts(Amounts(refusal="too late"))
    window.session.jobs.finish()
    assert (box.comparison, window.messages, window.noted) == (None, [], [])
    assert box.amounts_label.text() != "too late"


def test_a_link_opens_only_in_its_own_store(box: RebuildBox, window: Window) -> None:
    place = places.queue("Orders", 1, 3)
    box.table.placeRequested.emit(place)
    assert window.went == [place]
    window.session.closed = True
    box.table.placeRequested.emit(place)
    assert window.went == [place]
    assert box.note.text() == "The store of this table is not open any more."


def test_the_numbers_are_read_off_the_loop_or_replaced_by_an_error(window: Window) -> None:
    box = ask_rebuild(window, window.session, window.say)
    ((_work, done, failed),) = window.session.jobs.reads
    done(Amounts(log=1024))
    assert box.amounts_label.text().startswith("Reads 1.00 KiB of log.")
    failed(StoreError("the log is gone"))
    assert box.amounts_label.text() == "the log is gone"
    assert not box.field.isEnabled()

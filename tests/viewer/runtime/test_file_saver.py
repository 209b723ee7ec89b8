"""The window's files are written by one thread in order: the newest state is written last, and errors are reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from viewer.log.row_markings import RowMarks, read_marks, write_marks
from viewer.runtime.file_saver import FileSaver, read_saved
from viewer.runtime.jobs import Jobs

Run = Callable[[Any], Any]


@pytest.fixture
def jobs(run: Run) -> Iterator[Jobs]:
    new_jobs = Jobs()
    yield new_jobs
    new_jobs.close()


A, B = Path("a"), Path("b")


def nothing(_error: Exception | None) -> None:
    """Ignore the result."""


def test_only_the_newest_waiting_state_is_written() -> None:
    file_saver, gate, written, finished = FileSaver(), threading.Event(), [], []
    file_saver.save(B, gate.wait, nothing)
    for number in range(5):
        file_saver.save(A, lambda number=number: written.append(number), finished.append)
    file_saver.save(B, lambda: written.append("b"), nothing)
    gate.set()
    file_saver.wait()
    assert written == [4, "b"]
    assert finished == [None] * 5, "who kept an overtaken state is answered too"


def test_a_state_that_is_being_written_is_followed_by_the_next() -> None:
    file_saver, begun, gate, written = FileSaver(), threading.Event(), threading.Event(), []

    def first() -> None:
        begun.set()
        gate.wait()
        written.append(1)

    file_saver.save(A, first, nothing)
    begun.wait()
    file_saver.save(A, lambda: written.append(2), nothing)
    gate.set()
    file_saver.wait()
    assert written == [1, 2]


def test_three_windows_write_marks_of_one_store(tmp_path: Path) -> None:
    """Three threads of the quick pool wrote marks through one temporary name: some writes failed, and an older state
    could be written last.
    """
    file_saver, failed = FileSaver(), []
    file, last_marks = tmp_path / "marks" / "x.json", RowMarks(frozenset({7}))

    def window(number: int) -> None:
        for position in range(100):
            marks = RowMarks(frozenset(range(number * 100 + position + 1)))
            file_saver.save(file, lambda marks=marks: write_marks(file, tmp_path, marks), failed.append)

    threads = [threading.Thread(target=window, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file_saver.save(file, lambda: write_marks(file, tmp_path, last_marks), failed.append)
    file_saver.wait()
    assert (set(failed), read_marks(file)) == ({None}, last_marks)


def test_an_error_is_reported_on_the_loop_and_the_next_state_is_written(run, tmp_path: Path) -> None:
    jobs, calls = Jobs(), []

    def refuse() -> None:
        raise OSError("no room")

    async def work() -> int:
        jobs.keep(tmp_path / "x", refuse, calls.append)
        await jobs.quick(lambda: None)
        return await ask(jobs)

    async def ask(jobs: Jobs) -> int:
        import asyncio

        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        jobs.keep(tmp_path / "y", lambda: (tmp_path / "y").write_text("there"), calls.append)
        jobs.read_saved(lambda: len((tmp_path / "y").read_text()), answer.set_result, calls.append)
        return await answer

    assert run(work()) == 5, "a read comes behind what is still being kept"
    assert [str(error) for error in calls] == ["no room"]
    assert jobs.idle
    jobs.close()


def test_closing_the_window_loses_no_state(run, tmp_path: Path) -> None:
    """States that waited for their turn when the window closed were dropped with the short reads."""
    from viewer.runtime.file_saver import file_saver

    jobs, gate = Jobs(), threading.Event()

    async def work() -> None:
        jobs.keep(tmp_path / "x", gate.wait, pytest.fail)
        jobs.keep(tmp_path / "y", lambda: (tmp_path / "y").write_text("there"), pytest.fail)
        jobs.close()

    run(work())
    gate.set()
    file_saver().wait()
    assert (tmp_path / "y").read_text() == "there"


def test_errors_after_a_closed_window_go_to_stderr(run, tmp_path: Path, capfd) -> None:
    from viewer.runtime.file_saver import file_saver

    jobs, gate = Jobs(), threading.Event()

    def refuse() -> None:
        gate.wait()
        raise OSError("no room for marks")

    async def work() -> None:
        jobs.keep(tmp_path / "x", refuse, pytest.fail)
        jobs.close()

    run(work())
    gate.set()
    file_saver().wait()
    assert "no room for marks" in capfd.readouterr().err


def test_an_unreadable_saved_file_is_an_error(tmp_path: Path) -> None:
    """An unreadable file of marks counted as no marks, and the next mark overwrote it."""
    from viewer.runtime import bookmarks

    (tmp_path / "x.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        read_marks(tmp_path / "x.json")
    with pytest.raises(OSError, match="directory"):
        bookmarks.read(tmp_path / "x.json")


@pytest.mark.parametrize("text", ["", "[1]", "{", "null", '{"a": 1}'])
def test_saved_text_that_is_no_object_is_ignored(tmp_path: Path, text: str) -> None:
    assert read_saved(tmp_path / "x.json") == {}
    (tmp_path / "x.json").write_text(text)
    assert read_saved(tmp_path / "x.json") == ({"a": 1} if "a" in text else {})

"""Blocking work off the loop: short reads, long jobs with a progress bar and Cancel, and work in the worker process.

Results arrive on the loop's thread. A short read concerns only its pane; a job is listed in the status bar.
``work(control)`` runs elsewhere, checks :attr:`Control.cancelled` and calls :meth:`Control.report`.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Signal

from viewer.look.assets import tr
from viewer.runtime.file_saver import CLOSE_TIMEOUT_S, file_saver
from viewer.runtime.loop_calls import open_mailbox, post, run_in
from viewer.runtime.worker import Cancelled, PatchedStore, Worker, decoding_by_rules, reading_patched

if TYPE_CHECKING:
    from engine.decoding.rules import DecodingRule

__all__ = ["Cancelled", "Control", "Job", "Jobs"]
T = TypeVar("T")
QUICK_THREADS = 3
LONG_THREADS = 2
JUDGED_AFTER = 1.0
"""Seconds after which the remaining time of a job is estimated."""
REPORT_EVERY = 0.1
"""Seconds between two reports of one job that reach the loop."""


@dataclass(eq=False)
class Job:
    """Long work as listed in the status bar; changed on the loop's thread only."""

    number: int
    title: str
    cancel: Callable[[], None]
    done: float = 0
    total: float | None = None
    note: str = ""
    begun: float = field(default_factory=time.monotonic)
    stays: bool = False
    """True if it continues when another store is opened, like a job of the pipeline."""
    is_background: bool = False
    """True if it only adds to what is shown already: ``--screenshot`` waits for it only a short time."""

    @property
    def part(self) -> float | None:
        """Progress from 0 to 1; None while the total is not known."""
        return None if not self.total else min(1.0, self.done / self.total)

    def ends_by(self, when: float) -> bool:
        """Return False if the job, at its present pace, will not have ended at ``when`` (``time.monotonic``)."""
        now = time.monotonic()
        if self.part is None or now - self.begun < JUDGED_AFTER:
            return True
        return (now - self.begun) * (1 - self.part) <= self.part * (when - now)


class Control:
    """The view that work in a thread has of its job."""

    def __init__(self, tell: Callable[[float, float | None, str], None]) -> None:
        self.stop = threading.Event()
        self._tell = tell
        self._last_report = 0.0

    @property
    def cancelled(self) -> bool:
        """True when the work must stop; check every few milliseconds."""
        return self.stop.is_set()

    def check(self) -> None:
        """Raise :class:`Cancelled` if the job must stop."""
        if self.stop.is_set():
            raise Cancelled

    def report(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report progress; calls in quick succession are dropped."""
        now = time.monotonic()
        if now - self._last_report >= REPORT_EVERY:
            self._last_report = now
            self._tell(done, total, note)


class Jobs(QObject):
    """All running jobs.

    Emits ``changed()`` after a change of the list or of a job, ``failed(error)`` for errors that no caller awaits,
    ``storeRead()`` after a job that may have read a store, ``workerFinished()`` after one of the worker's, and
    ``unreadReported(tuple)`` with the files that a long job could not read. All are emitted before the caller gets its
    result.
    """

    changed = Signal()
    failed = Signal(object)
    storeRead = Signal()
    workerFinished = Signal()
    unreadReported = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        open_mailbox()
        self._quick = ThreadPoolExecutor(QUICK_THREADS, "quick")
        self._long = ThreadPoolExecutor(LONG_THREADS, "job")
        self._numbers = itertools.count(1)
        self._pending = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._last: set[asyncio.Task[Any]] = set()
        self._controls: set[Control] = set()
        self._closed = False
        self.list: list[Job] = []
        self.patched: PatchedStore | None = None
        """The store that long jobs read as patched, as the window shows it; None: each store as it is."""
        self.decoding_rules: tuple[DecodingRule, ...] | None = None
        """The rules by which all work reads fields of bodies; None until they are known."""
        self.worker = Worker(post, self.unreadReported.emit)

    # ---- short reads -------------------------------------------------------------------------------------------------

    def read(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None] | None = None
    ) -> None:
        """Run ``work`` in a thread, then ``done`` with its result or ``failed`` with its error on the loop's thread."""
        if self._closed:
            return
        self._pending += 1

        def finish(result: Any, error: Exception | None) -> None:
            self._pending -= 1
            if self._closed:
                return
            self.storeRead.emit()
            if error is None:
                done(result)
            elif failed is not None:
                failed(error)
            else:
                self.failed.emit(error)

        rules = self.decoding_rules

        def decoding() -> Any:
            with decoding_by_rules(rules):
                return work()

        run_in(self._quick, work if rules is None else decoding, finish)

    def keep(self, file: Path, write: Callable[[], object], failed: Callable[[Exception], None]) -> None:
        """Have ``write`` save the newest state to ``file``, after everything that is being saved.

        Also done if the window closes meanwhile. ``failed`` is called on the loop's thread; if the loop is gone, stderr
        gets the error.
        """
        self._pending += 1

        def finish(error: Exception | None) -> None:
            if error is not None and self._closed:
                sys.stderr.write(f"storescope: {error}\n")
            else:
                post(on_written, error)

        def on_written(error: Exception | None) -> None:
            self._pending -= 1
            if error is not None and not self._closed:
                failed(error)

        file_saver().save(file, write, finish)

    def read_saved(
        self, read: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        """Like :meth:`read`, after everything that is still being saved."""

        def work() -> Any:
            file_saver().wait()
            return read()

        self.read(work, done, failed)

    async def quick(self, work: Callable[[], T]) -> T:
        """Run a read of milliseconds in a thread and give its result."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.read(work, lambda value: _settle(future, value), lambda error: _settle(future, None, error))
        return await future

    # ---- long work ---------------------------------------------------------------------------------------------------

    async def run(self, title: str, work: Callable[[Control], T], *, as_it_is: bool = False) -> T:
        """Run long work in a thread, listed under ``title``. Raises :class:`Cancelled` if it was stopped.

        ``as_it_is``: it reads the store without patches, whatever the window shows.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        control = Control(lambda *progress: post(self._show_progress, job, *progress))
        job = Job(next(self._numbers), title, control.stop.set)
        self._controls.add(control)
        self._begin(job)

        patched, rules = None if as_it_is else self.patched, self.decoding_rules

        def gathering() -> tuple[T | None, Exception | None, tuple[object, ...]]:
            from engine.mapped.reading import gather_unread

            with gather_unread() as unread, reading_patched(patched), decoding_by_rules(rules):
                try:
                    return work(control), None, tuple(unread)
                except Exception as error:  # noqa: BLE001 (handed to who waits, beside what could not be read)
                    return None, error, tuple(unread)

        def finish(outcome: Any, error: Exception | None) -> None:
            value, raised, unread = outcome if error is None else (None, error, ())
            if not self._closed:
                self.unreadReported.emit(unread)
                self.storeRead.emit()
            _settle(future, value, raised)

        run_in(self._long, gathering, finish)
        try:
            return await future
        except asyncio.CancelledError:
            control.stop.set()
            raise
        finally:
            self._controls.discard(control)
            self._end(job)

    async def in_worker(
        self,
        title: str,
        target: str,
        *args: object,
        on_items: Callable[[Any], None] | None = None,
        on_note: Callable[[str], None] | None = None,
        behind: bool = False,
        gives_way: bool = False,
        as_it_is: bool = False,
    ) -> Any:
        """Run ``target`` ("module:function") in the worker process, listed under ``title``.

        ``behind``: see :attr:`Job.is_background`. Such work gives way to what the user waits for, and so does work that
        ``gives_way``.

        The function is called as ``function(control, *args)``. ``on_items`` gets what it passes to ``control.emit``,
        ``on_note`` the text beside its progress. ``as_it_is``: it reads the store without patches, whatever the window
        shows.
        """
        job: Job | None = None
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def finish(value: object, error: Exception | None) -> None:
            if not self._closed:
                self.workerFinished.emit()
            _settle(future, value, error)

        def on_report(done: float, total: float | None, note: str) -> None:
            if job is not None:
                self._show_progress(job, done, total, tr(note))
            if on_note is not None:
                on_note(tr(note))

        request = self.worker.request(
            target,
            args,
            on_items or (lambda _items: None),
            on_report,
            finish,
            None if as_it_is else self.patched,
            self.decoding_rules,
            gives_way=behind or gives_way,
        )
        job = Job(next(self._numbers), title, lambda: self.worker.cancel(request), is_background=behind)
        self._begin(job)
        try:
            return await future
        except asyncio.CancelledError:
            self.worker.cancel(request)
            raise
        finally:
            self._end(job)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any] | None:
        """Start ``coroutine`` from a slot; ``failed`` reports its error."""
        if self._closed:
            coroutine.close()
            return None
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)
        return task

    def announce(self, title: str, cancel: Callable[[], None]) -> Job:
        """List work that runs elsewhere until :meth:`retire` is called; :meth:`tell` sets its status text."""
        job = Job(next(self._numbers), title, cancel)
        self._begin(job)
        return job

    def tell(self, job: Job, note: str) -> None:
        """Set the note of announced work."""
        if job in self.list and note != job.note:
            job.note = note
            self._tell()

    def retire(self, job: Job) -> None:
        """Remove announced work from the list: it has ended."""
        if job in self.list:
            self._end(job)

    def finish(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run ``coroutine`` to its end even if the window closes; :meth:`drain` waits for it."""
        task = asyncio.ensure_future(coroutine)
        self._last.add(task)
        task.add_done_callback(self._last.discard)

    @property
    def idle(self) -> bool:
        """True if no work is under way."""
        return not self._pending and not self.list and not self._tasks

    def idle_but_for(self, late: int) -> bool:
        """True if only ``late`` jobs run, for which no caller waits."""
        return not self._pending and len(self.list) <= late and len(self._tasks) <= late

    @property
    def quick_idle(self) -> bool:
        """True if no short read runs."""
        return not self._pending

    def cancel_all(self, *, staying: bool = False) -> None:
        """Stop everything except the caller. With ``staying``, jobs that do not need the store go on."""
        for job in list(self.list):
            if not (staying and job.stays):
                job.cancel()
        for task in list(self._tasks - {_own_task()}):
            task.cancel()

    def close(self) -> None:
        """Stop everything, and ignore results that still arrive."""
        self.cancel_all()
        self._closed = True
        for control in self._controls:
            control.stop.set()
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._long.shutdown(wait=False, cancel_futures=True)
        self.worker.close()

    async def drain(self, seconds: float = 2.0) -> None:
        """After :meth:`close`, wait until all work has noticed that it was stopped, so that none is left unfinished."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
        if self._last:
            await asyncio.wait(list(self._last), timeout=CLOSE_TIMEOUT_S)

    # ---- below -------------------------------------------------------------------------------------------------------

    def _begin(self, job: Job) -> None:
        self.list.append(job)
        self._tell()

    def _tell(self) -> None:
        if not self._closed:
            self.changed.emit()

    def _show_progress(self, job: Job, done: float, total: float | None, note: str) -> None:
        job.done, job.total, job.note = done, total, note
        self._tell()

    def _end(self, job: Job) -> None:
        self.list.remove(job)
        self._tell()

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or self._closed:
            return
        error = task.exception()
        if error is not None and not isinstance(error, Cancelled):
            self.failed.emit(error)


def _own_task() -> asyncio.Task[Any] | None:
    """Return the running task: a task that opens another store does not belong to the old store."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _settle(future: asyncio.Future[Any], value: object, error: Exception | None = None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)

"""A view on a real store, without the window around it: made, given a session, driven, and removed again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import qasync
from PySide6.QtWidgets import QApplication

from viewer.pane import Pane
from viewer.runtime.jobs import Jobs
from viewer.runtime.store_session import StoreSession

P = TypeVar("P", bound=Pane)
TIMEOUT_S = 120.0


async def wait_until(true: Callable[[], object], what: str = "it comes true") -> None:
    """Wait for an effect of a timer, a thread or a process; fail if it does not come."""
    end = time.monotonic() + TIMEOUT_S
    while not true():
        assert time.monotonic() < end, f"timed out waiting until {what}"
        await asyncio.sleep(0.01)


def write_in_place(file: Path, data: bytes) -> None:
    """Write bytes from the file's beginning on, like a broker: a reader never finds it cut."""
    with file.open("r+b") as opened:
        opened.write(data)


async def wait_until_idle(jobs: Jobs, quiet: int = 3) -> None:
    """Wait until no job runs; fail if that takes too long."""
    end = time.monotonic() + TIMEOUT_S
    calm = 0
    while calm < quiet:
        await asyncio.sleep(0.02)
        calm = calm + 1 if jobs.idle else 0
        assert time.monotonic() < end, f"still at work: {[job.title for job in jobs.list]}"


def on_store(
    app: QApplication, make: Callable[[], P], path: Path, drive: Callable[[P, StoreSession], Awaitable[None]]
) -> None:
    """Show the pane that ``make`` makes on the store at ``path`` and await ``drive``; no job may have failed."""
    app.setQuitOnLastWindowClosed(False)
    loop = qasync.QEventLoop(app)

    async def main() -> None:
        jobs = Jobs()
        failures: list[object] = []
        jobs.failed.connect(failures.append)
        pane = make()
        pane.resize(1400, 900)
        pane.show()
        session = await StoreSession.open(path, jobs)
        try:
            pane.set_session(session)
            session.look(anyway=True)
            await wait_until_idle(jobs)
            await drive(pane, session)
            assert not failures, failures
        finally:
            pane.set_session(None)
            pane.close()
            session.close()
            jobs.close()
            await asyncio.sleep(0.02)
            pane.deleteLater()

    with loop:
        loop.run_until_complete(main())

"""Windows: a second start shows its store in the program that runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from walker import Run, Walker

from viewer.shell import single_instance as second_start
from viewer.shell import windows
from viewer.shell.single_instance import SecondStart, SecondStartListener

pytestmark = pytest.mark.journey


@pytest.fixture
def second_start_listener(walker: Walker, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecondStartListener]:
    """Return the listener of a running program, with settings of the test's own."""
    with tempfile.TemporaryDirectory(prefix="ss") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        bell = SecondStartListener(walker.window.settings.folder)
        bell.startReceived.connect(lambda request: second_start.answer(walker.window, request))
        yield bell
        bell.close()


async def start(walker: Walker, *args: str) -> None:
    """Start the program once more, like a person; it ends at once without an error."""
    folder = str(walker.window.settings.folder)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "viewer", *args, "--config-dir", folder],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_second_start_hands_its_store_to_the_window_that_runs(
    run: Run, walker: Walker, second_start_listener: SecondStartListener, orders: Path, damaged: Path
) -> None:
    async def walk() -> None:
        window = walker.window
        assert second_start_listener.listening
        await start(walker, str(orders))
        await walker.until(lambda: window.session is not None, "the empty window takes the store")
        assert window.session is not None
        assert window.session.path == orders
        await walker.rest()
        window.showMinimized()
        await start(walker, str(orders), "--at", "findings")
        await walker.until(lambda: window.view == "findings", "the same store goes to the place asked for")
        assert not window.isMinimized()
        assert not windows.windows()
        await start(walker, str(damaged), "--at", "log:1310900")
        await walker.until(lambda: len(windows.windows()) == 1, "another store gets a window of its own")
        beside = windows.windows()[0]
        await walker.until(lambda: beside.session is not None and beside.session.path == damaged, "and stands there")
        await beside.settled(60)
        assert "1,310,900" in beside.top.crumbs.accessibleName()
        assert window.session.path == orders
        assert second_start.answer(window, SecondStart()) is window
        assert len(windows.windows()) == 1

    run(walk())
